"""Which compiler flags a candidate may set (pure).

Allowed are flags that change how code is generated. Refused is everything that names a file, loads a plugin, starts
another program, talks to assembler or linker, or writes extra output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

DEFAULT_FLAGS = ("-O3", "-fopenmp")
"""Of a kernel that comes without flags, besides those of the chip's instruction set."""
OPTIMIZED = ("-O3",)
"""The same, of a kernel for one hart."""
FLAGS_MAX = 64
_NAME = r"[a-z0-9][a-z0-9-]*"
_ALLOWED = tuple(
    re.compile(pattern)
    for pattern in (
        r"-O([0-3sg]|fast)?",
        r"-g0?",
        r"-std=(c|gnu)\+\+(17|20|23|2a|2b)",
        r"-m(arch|tune|cpu)=[a-z0-9_.+-]+",
        r"-m(no-)?[a-z0-9][a-z0-9._-]*",
        r"-mprefer-vector-width=(none|128|256|512)",
        r"-m(fpmath|veclibabi|stack-alignment|preferred-stack-boundary|branch-cost)=[a-z0-9,+]+",
        rf"-f(no-)?{_NAME}",
        r"-f(fp-contract|vect-cost-model|simd-cost-model|excess-precision|tls-model|inline-limit)=[a-z0-9-]+",
        r"-falign-(functions|loops|jumps|labels)=[0-9:]+",
        r"--param=[a-z0-9-]+=[0-9]+",
        r"-W(no-)?[a-z][a-z0-9-]*(=[0-9])?",
        r"-[DU][A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?",
        r"-pthread",
        r"-l(m|gomp|pthread)",
        r"-w|-pedantic",
    )
)
_REFUSED = re.compile(
    r"-f(no-)?(plugin|dump|profile|auto-profile|branch-probabilities|opt-info|save-|instrument|sanitize|use-ld|report"
    r"|stack-usage|callgraph|test-coverage|lto|wpa|ltrans|split-dwarf|working-directory|diagnostics|compare-debug"
    r"|syntax-only|preprocessed|directives-only|modules?|offload|pie|no-pic|pic|rtti|time-report|mem-report).*"
    r"|-f(no-)?(pic|PIC|pie|PIE)"
    r"|-m(32|x32|16)|-mabi.*|-mcmodel.*|-minstrument.*|-mrecord.*|-mfentry.*|-mnop-mcount"
)


def refused(flags: Sequence[str]) -> str | None:
    """The first flag that is not allowed, or None."""
    if len(flags) > FLAGS_MAX:
        return f"more than {FLAGS_MAX} flags"
    for flag in flags:
        if _REFUSED.fullmatch(flag) or not any(pattern.fullmatch(flag) for pattern in _ALLOWED):
            return flag
    return None
