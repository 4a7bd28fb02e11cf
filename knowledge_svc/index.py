"""Full-text index over the sections of documents: SQLite FTS5 in memory, ranked by BM25.

The one file of this service that imports sqlite3. BM25 as FTS5 computes it (k1 = 1.2, b = 0.75), with the title and
the heading weighted above the body.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Self

from knowledge_svc.documents import Document
from knowledge_svc.retrieve import Hit

_WEIGHTS = "0, 0, 4.0, 3.0, 2.0, 1.0"
"""Columns in order: document, section (both not searched), title, heading, facets and summary, body."""


class FullTextIndex:
    """Sections of a fixed set of documents. Not shared between threads."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(
            "CREATE VIRTUAL TABLE sections USING fts5("
            "document UNINDEXED, section UNINDEXED, title, heading, facets, body, tokenize='porter unicode61')"
        )
        rows = (
            (d.id, n, d.title, section.heading, _facets(d), section.text)
            for d in documents
            for n, section in enumerate(d.sections)
        )
        self._connection.executemany("INSERT INTO sections VALUES (?, ?, ?, ?, ?, ?)", rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def search(self, words: Sequence[str]) -> tuple[Hit, ...]:
        """Sections with any of ``words``, best first; equal scores in order of document and section."""
        if not words:
            return ()
        expression = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
        rows = self._connection.execute(
            f"SELECT document, section, -bm25(sections, {_WEIGHTS}) FROM sections WHERE sections MATCH ?",  # noqa: S608 - constant weights
            (expression,),
        )
        hits = [Hit(document_id=document, section=section, relevance=score) for document, section, score in rows]
        return tuple(sorted(hits, key=lambda hit: (-hit.relevance, hit.document_id, hit.section)))

    def close(self) -> None:
        self._connection.close()


def _facets(document: Document) -> str:
    names = (
        document.id, document.vendor, document.architecture, *document.languages, *document.operator_classes,
        *document.bounds, *document.error_signatures, document.summary,
    )  # fmt: skip
    return " ".join(name for name in names if name)
