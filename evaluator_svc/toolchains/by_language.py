"""The toolchain of a chip that takes several languages: each source goes to the one that builds its language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluator_svc.layers import Layer, caught
from evaluator_svc.toolchains import BuildFailed, Built, Toolchain
from shared.errors import ChipError
from shared.events import Entry, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolchainByLanguage:
    """``toolchains`` maps a language to what builds it. The chip is of use without the ``optional`` ones: who asks for
    such a language hears then what is missing.
    """

    toolchains: Mapping[str, Toolchain]
    optional: frozenset[str] = frozenset()

    def check(self) -> ChipError | None:
        """The first of them that is not usable says why."""
        needed = [one for language, one in self.toolchains.items() if language not in self.optional]
        return next((problem for one in needed if (problem := one.check()) is not None), None)

    def versions(self) -> tuple[Entry, ...]:
        return tuple(entry for one in self._distinct() for entry in one.versions())

    async def build(self, source: str, flags: Sequence[str], *, language: str = "cpp") -> Built | BuildFailed:
        """Build ``source`` by the toolchain of its language; one that nobody builds is the candidate's fault."""
        toolchain = self.toolchains.get(language)
        if toolchain is None:
            why = f"language `{language}`: this chip takes {', '.join(self.toolchains)}"
            return BuildFailed(
                status=Status.COMPILE_ERROR, evidence=(caught(Layer.STATIC), Entry(name="first_error", value=why))
            )
        return await toolchain.build(source, flags, language=language)

    def _distinct(self) -> tuple[Toolchain, ...]:
        return tuple({id(one): one for one in self.toolchains.values()}.values())
