"""What a kernel must look like from outside: this project's choice, whatever a model or a document says (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from shared import ids
from shared.chips import Machine
from shared.submissions.kernel import ENTRIES, GPU_NATIVE, HOSTED

OPTIMISE = "-O3"
DEFAULT_ENTRY = "ke_launch"
"""Of every native language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Language, name to call and build flags of a kernel: a model chooses its code alone."""

    language: str
    entry: str
    flags: tuple[str, ...]

    def kernel_id(self, source: str) -> str:
        """The id of the kernel of that text."""
        return ids.derive(self.language, ids.content_hash(source.encode()), *self.flags, self.entry)


def form_of(language: str, machine: Machine, threads: int) -> Form:
    """The form of kernels that a model writes in ``language`` for ``machine``."""
    flags: tuple[str, ...] = ()
    # A module sets the flags of its extensions itself; what is built for a GPU takes none.
    if language not in (*HOSTED, *GPU_NATIVE):
        flags = (OPTIMISE, *machine.flags, *(("-fopenmp",) if threads > 1 else ()))
    return Form(language=language, entry=ENTRIES.get(language, DEFAULT_ENTRY), flags=flags)
