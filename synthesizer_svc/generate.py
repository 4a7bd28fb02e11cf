"""Expansions that other systems ask for: answered once, remembered, never published.

Whose money a model takes is the caller's word (``search_id``): its account is apart from those of this installation's
searches, so that a stranger's id spends nobody else's budget; days bound all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shared import ids, json_codec
from shared.errors import AlreadyExists, Poison, UserError
from shared.events import CandidateProduced, CandidateRejected, ExpansionFailed, ExpansionRequested, KernelRef
from shared.store import Store
from synthesizer_svc.expand import Expander, Fact

GENERATED = "synthesizer.generated"
"""Collection: expansion id -> its request's fingerprint and the facts that answer it. Searches' are elsewhere."""
_FACTS: dict[str, type[Fact]] = {
    owner.__name__: owner for owner in (CandidateProduced, CandidateRejected, ExpansionFailed)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """The facts that answer an expansion, and the blobs that its candidates name."""

    facts: tuple[Fact, ...]
    blobs: Mapping[str, bytes]


class Generator:
    """Answers expansions. Every call raises ``Unavailable`` while store or knowledge cannot be reached."""

    def __init__(self, expander: Expander, store: Store) -> None:
        self._expander, self._store = expander, store

    async def generate(self, expansion: ExpansionRequested, blobs: Mapping[str, bytes]) -> Generated:
        """What ``expansion`` is answered with; the first answer to its id stands. A pause, which lasts until somebody
        acts, is no answer: it is not remembered, and asked again later the expansion may be answered.

        Raises:
            UserError: a blob is not what its name says, or ``expansion`` asks for nothing or for what is unknown.
            AlreadyExists: the id was used for another expansion.
        """
        for name, data in blobs.items():
            if ids.content_hash(data) != name:
                raise UserError("is not the SHA-256 of the bytes under it", where=f"blobs[{name[:80]}]")
        fingerprint = ids.content_hash(ids.canonical_json(json_codec.to_plain(expansion)))
        answer: dict[str, Any] | None = await self._store.documents.get(GENERATED, expansion.expansion_id)
        if answer is None:
            for data in blobs.values():
                await self._store.blobs.put(data)
            answer = await self._write(expansion, fingerprint)
        if answer["fingerprint"] != fingerprint:
            raise AlreadyExists(
                "was used for another expansion",
                where=f"expansion_id {expansion.expansion_id}",
                hint="choose a new one",
            )
        facts = tuple(_fact(stored) for stored in answer["facts"])
        return Generated(facts=facts, blobs=await self._blobs(facts))

    async def _write(self, expansion: ExpansionRequested, fingerprint: str) -> dict[str, Any]:
        paying = replace(expansion, search_id=account_of(expansion))
        found: list[Fact] = []

        async def tell(some: tuple[Fact, ...]) -> None:
            found.extend(replace(fact, search_id=expansion.search_id) for fact in some)

        try:
            await self._expander.expand(paying, tell)
        except Poison as error:
            raise UserError(str(error), where="expansion") from error
        facts = sorted(found, key=lambda fact: getattr(fact, "index", 0))
        answer: dict[str, Any] = {
            "fingerprint": fingerprint,
            "facts": [{"type": type(fact).__name__, "fact": json_codec.to_plain(fact)} for fact in facts],
        }
        if any(isinstance(fact, ExpansionFailed) and fact.pauses for fact in facts):
            return answer
        return await self._store.documents.create(GENERATED, expansion.expansion_id, answer) or answer

    async def _blobs(self, facts: tuple[Fact, ...]) -> dict[str, bytes]:
        kernels = [fact.kernel for fact in facts if isinstance(fact, CandidateProduced)]
        names = dict.fromkeys(name for kernel in kernels for name in _names(kernel))
        return {name: await self._store.blobs.get(name) for name in names}


def account_of(expansion: ExpansionRequested) -> str:
    """Whose budget pays for a model that is asked for ``expansion``."""
    return ids.derive("generated", expansion.search_id)


def _names(kernel: KernelRef) -> tuple[str, ...]:
    return tuple(name for name in (kernel.source_hash, kernel.schedule_hash) if name)


def _fact(stored: Mapping[str, Any]) -> Fact:
    owner = _FACTS[stored["type"]]
    fact: Fact = json_codec.from_plain(owner, stored["fact"], owner.__name__)
    return fact
