"""How often functions of extensions were called in this process.

Apart from ``extensions``, which imports what compiles them.
"""

from __future__ import annotations

from collections import Counter

CALLS: Counter[str] = Counter()
"""``extension.function`` -> calls so far, of every extension of this process."""
