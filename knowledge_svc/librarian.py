"""Answers questions about documents: the folders, the users' own, the index and what chips' facets are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from knowledge_svc import library, retrieve
from knowledge_svc.documents import Document
from knowledge_svc.index import FullTextIndex
from knowledge_svc.retrieve import ChipFacets
from shared import chips
from shared.knowledge import KnowledgeQuery, Passage


class Librarian:
    """The documents of some folders, read once, and those given since; a full-text index over all of them.

    Raises ``UserError`` on construction when a document is malformed.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._shelved: dict[str, Document] = {d.id: d for d in library.load(folders)}
        self.documents: tuple[Document, ...] = tuple(self._shelved.values())
        self._index = FullTextIndex(self.documents)

    def shelved(self, document_id: str) -> Document | None:
        """The document of that id in the folders, whatever was given since."""
        return self._shelved.get(document_id)

    def give(self, given: Sequence[Document]) -> None:
        """Take ``given`` in place of those given before. They win over the folders' documents."""
        merged = {**self._shelved, **{document.id: document for document in given}}
        fresh = tuple(merged[name] for name in sorted(merged))
        index = FullTextIndex(fresh)
        self._index.close()
        self.documents, self._index = fresh, index

    def retrieve(self, query: KnowledgeQuery, limit: int) -> tuple[Passage, ...]:
        """The most relevant passages, best first, at most one per document."""
        return retrieve.retrieve(query, chip_facets(query), self.documents, self._index.search, limit)

    def close(self) -> None:
        self._index.close()


def chip_facets(query: KnowledgeQuery) -> ChipFacets:
    """Facets from the chip's sheet; a chip without a sheet has none and so excludes no document.

    A sheet of several vendors (``amd/intel``) is narrowed to those that the query's words name, e.g. by quoting the
    processor a parent was measured on.
    """
    if query.chip not in chips.known():
        return ChipFacets()
    sheet = chips.load(query.chip)
    vendors = tuple(sheet.vendor.lower().split("/"))
    named = tuple(vendor for vendor in vendors if vendor in retrieve.words(query))
    return ChipFacets(vendors=named or vendors, architecture=sheet.architecture)
