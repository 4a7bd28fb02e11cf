"""Owns the verdict on every kernel: builds it, proves it, times it, finds out why it is slow.

Where to look:

- One evaluation: ``evaluate`` (the stages), ``toolchains`` (building), ``runner`` and ``sandbox`` (running what a
  search wrote), ``oracle`` and ``judge`` (is it right), ``timing``, ``statistics`` and ``claims`` (is it faster),
  ``diagnosis``.
- One worker of a chip's pool: ``pool`` (composition), ``intake`` and ``tracking`` (from the topic into the queue, and
  what may be committed), ``slot`` (claim to verdict), ``memo`` (remembered verdicts), ``device`` (alone on the cores),
  ``capacity`` (announcements), ``simulated`` (the chip that measures nothing).
- On demand: ``on_demand`` and ``grpc_api``.
"""
