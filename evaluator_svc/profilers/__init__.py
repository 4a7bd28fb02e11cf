"""Vendors' profilers: what their counters say of one call of a kernel that has passed, and what follows from that.

``counters`` and ``call`` are the common form, ``ncu_report`` and ``rocprof_report`` read the tools' output into it,
``bottleneck`` decides and ``told`` writes the evidence (all pure). ``ncu`` runs NVIDIA's tool in a box; ``rocprof`` has
AMD's command lines. ``stage`` is where the evaluator asks. Nothing here decides a verdict.
"""
