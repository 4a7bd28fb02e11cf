"""Property tests draw the same examples every time, so that the suite is green or red for a reason.

``pytest --hypothesis-profile explore`` draws others, and remembers in ``.hypothesis`` what failed.
"""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeatable")

# A shell that starts tests in the background has them ignore Ctrl-C, and the programs under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
