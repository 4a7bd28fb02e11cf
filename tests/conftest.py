"""Property tests draw the same examples every time, so that the suite is green or red for a reason.

``pytest --hypothesis-profile explore`` draws others, and remembers in ``.hypothesis`` what failed.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeatable")
