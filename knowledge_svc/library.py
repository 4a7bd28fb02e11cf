"""The folders that documents live in: the built-in corpus, those of ``KNOWLEDGE_PATH`` and the user's own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from knowledge_svc import documents
from knowledge_svc.documents import Document
from shared.errors import UserError

CORPUS = Path(__file__).parent / "corpus"
INDEX_NAME = "index.md"
DOCUMENT_BYTES_MAX = 1 << 20


def load(folders: Iterable[Path]) -> tuple[Document, ...]:
    """All documents under ``folders``, sorted by id. A later folder's document replaces an earlier one of the same id.

    Folders that do not exist are empty. ``index.md`` is generated and not a document.

    Raises:
        UserError: a document cannot be read or is malformed, or two in one folder share an id.
    """
    found: dict[str, Document] = {}
    for folder in folders:
        here: dict[str, Path] = {}
        for path in sorted(folder.rglob("*.md")):
            if path.name == INDEX_NAME:
                continue
            document = read(path)
            if document.id in here:
                raise UserError(f"has the id `{document.id}` of {here[document.id]}", where=str(path))
            here[document.id] = path
            found[document.id] = document
    return tuple(found[name] for name in sorted(found))


def read(path: Path) -> Document:
    """The document at ``path``.

    Raises:
        UserError: missing, unreadable, too large or malformed.
    """
    if not path.is_file():
        raise UserError("no such file", where=str(path), hint="give the path of a Markdown file with front matter")
    if path.stat().st_size > DOCUMENT_BYTES_MAX:
        raise UserError(f"is larger than {DOCUMENT_BYTES_MAX >> 20} MiB", where=str(path))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", where=str(path)) from error
    return documents.parse(text, where=str(path))


def add(path: Path, folder: Path) -> Path:
    """Copy the document at ``path`` into ``folder`` under its id and return where it went; replaces an older copy.

    Raises:
        UserError: the document is malformed or ``folder`` cannot be written.
    """
    document = read(path)
    target = folder / f"{document.id}.md"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot be written: {error}", where=str(target)) from error
    return target
