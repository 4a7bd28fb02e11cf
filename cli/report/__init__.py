"""The HTML report of a search: one self-contained file that needs no network.

``page`` puts it together; ``tables`` and ``sources`` prepare text, ``layout``, ``figures`` and ``roof`` pictures.
"""

from cli.report.page import render, verdict_times

__all__ = ["render", "verdict_times"]
