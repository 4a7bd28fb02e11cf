"""Documents of the corpus: Markdown with TOML front matter between ``+++`` lines, cut into sections (pure)."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from shared.errors import UserError

FENCE = "+++"
_ID = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")
_CODE_FENCE = re.compile(r"^\s*(```|~~~)")
_EXAMPLE = "begin with +++, then id, title, concern and summary in TOML, then +++, then Markdown"


class Concern(StrEnum):
    """What a document is for; also the corpus' first level of folders."""

    CONSTRAINTS = "constraints"
    GUIDANCE = "guidance"
    HARDWARE = "hardware"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading of level two and what stands under it; the text before the first heading has the title's name."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document. Empty facets mean "for all".

    ``error_signatures`` are texts looked for, without regard to case, in the error of a failed kernel.
    """

    id: str
    title: str
    concern: Concern
    summary: str
    vendor: str = ""
    architecture: str = ""
    languages: tuple[str, ...] = ()
    operator_classes: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    error_signatures: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    text: str = field(default="", compare=False, repr=False)
    """As written, front matter included."""


def of_id(document_id: str, text: str) -> Document:
    """The document written in ``text``, which must have that id.

    Raises:
        UserError: it is malformed, or its front matter has another id.
    """
    document = parse(text, where=f"document {document_id}")
    if document.id != document_id:
        raise UserError(f"front matter has the id `{document.id}`", where=f"document {document_id}")
    return document


_TEXTS = ("id", "title", "concern", "summary", "vendor", "architecture")
_LISTS = ("languages", "operator_classes", "bounds", "error_signatures")
_REQUIRED = ("id", "title", "concern", "summary")


def parse(text: str, *, where: str) -> Document:
    """The document written in ``text``.

    Raises:
        UserError: front matter is missing, is not TOML, lacks a field, or has an unknown or ill-typed one.
    """
    header, body = _split(text, where)
    try:
        fields = tomllib.loads(header)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"front matter is not TOML: {error}", where=where, hint=_EXAMPLE) from error
    _check(fields, where)
    texts: dict[str, Any] = {name: fields[name].strip() for name in _TEXTS if name in fields}
    lists: dict[str, Any] = {name: tuple(fields[name]) for name in _LISTS if name in fields}
    sections = _sections(body, texts["title"])
    if not sections:
        raise UserError("has front matter and no text", where=where)
    return Document(**{**texts, **lists, "concern": Concern(texts["concern"]), "sections": sections, "text": text})


def _split(text: str, where: str) -> tuple[str, str]:
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].strip() != FENCE:
        raise UserError(f"does not begin with a `{FENCE}` line of front matter", where=where, hint=_EXAMPLE)
    closing = next((n for n, line in enumerate(lines[1:], 1) if line.strip() == FENCE), None)
    if closing is None:
        raise UserError(f"front matter is not closed by a second `{FENCE}` line", where=where, hint=_EXAMPLE)
    return "\n".join(lines[1:closing]), "\n".join(lines[closing + 1 :])


def _check(fields: dict[str, object], where: str) -> None:
    for name, value in fields.items():
        if name in _TEXTS:
            if not isinstance(value, str):
                raise UserError(f"front matter `{name}` must be a string", where=where)
        elif name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise UserError(f"front matter `{name}` must be a list of strings", where=where)
        else:
            known = ", ".join((*_TEXTS, *_LISTS))
            raise UserError(f"front matter has an unknown field `{name}`", where=where, hint=f"known: {known}")
    for name in _REQUIRED:
        if not str(fields.get(name, "")).strip():
            raise UserError(f"front matter lacks `{name}`", where=where, hint=f"required: {', '.join(_REQUIRED)}")
    if str(fields["concern"]).strip() not in list(Concern):
        raise UserError(f"unknown concern `{fields['concern']}`", where=where, hint=f"one of {', '.join(Concern)}")
    if not _ID.fullmatch(str(fields["id"])):
        raise UserError(f"id `{fields['id']}` is not lower-case words joined by - . _ and /", where=where)


def _sections(body: str, title: str) -> tuple[Section, ...]:
    sections: list[Section] = []
    heading, lines, in_code = title, list[str](), False
    for line in body.splitlines():
        in_code ^= bool(_CODE_FENCE.match(line))
        if line.startswith("## ") and not in_code:
            sections.append(Section(heading=heading, text="\n".join(lines).strip()))
            heading, lines = line.removeprefix("## ").strip(), []
        elif not (line.startswith("# ") and not in_code):  # the title is in the front matter already
            lines.append(line)
    sections.append(Section(heading=heading, text="\n".join(lines).strip()))
    return tuple(section for section in sections if section.text)
