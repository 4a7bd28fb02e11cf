"""Owns the tree of candidates of every search and decides what to expand, evaluate, prune and announce.

Where to look:

- What is known: ``tree`` (the values), ``apply*`` (what each event means for them), ``invariants``.
- What is decided: ``decide``, which asks ``opening`` and ``policies/`` what to expand, ``pruners`` what to close,
  ``limits`` when to stop and ``finale`` who wins; ``scoring`` says what a verdict is worth, ``spending`` what models
  cost, ``requests`` writes out the questions to the workers.
- What is kept: ``owner`` takes each fact through the journal, whose entries ``chain`` links; ``replay`` verifies,
  rebuilds and forks it, ``recompute`` makes it anew from facts, ``export`` writes it out. ``index`` lists searches.
- What is shown: ``projection`` (a search at a glance), ``story`` (one candidate's history).
- How it runs in one process of several: ``replica`` (composition), ``submissions`` (the way in), ``sweeper`` (asks
  again), ``pools`` (what evaluators announced), ``grpc_api`` and ``news`` (who watches), ``operations*`` (dead
  letters).
- How it runs embedded: ``service`` (composition, submit, cancel, fork).

What is pure says so in its first line.
"""
