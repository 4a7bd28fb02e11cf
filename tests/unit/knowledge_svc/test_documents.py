"""Documents: front matter, sections, folders, and the built-in corpus as a whole."""

from pathlib import Path

import pytest

from knowledge_svc import catalogue, documents, library
from knowledge_svc.documents import Concern
from shared import chips
from shared.errors import UserError
from shared.events import Bound, Status

GOOD = """+++
id = "guidance/tiles"
title = "Tiles"
concern = "guidance"
summary = "How large."
bounds = ["memory"]
+++

Opening words.

## Sizes

```sh
## not a heading
```

## Shapes

Wide.
"""


def test_a_document_is_cut_at_second_level_headings_outside_code():
    document = documents.parse(GOOD, where="tiles.md")
    assert document.concern is Concern.GUIDANCE
    assert document.bounds == ("memory",)
    assert [s.heading for s in document.sections] == ["Tiles", "Sizes", "Shapes"]
    assert "## not a heading" in document.sections[1].text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no front matter", "does not begin with"),
        ("", "does not begin with"),
        ("+++\nid = 'a'\n", "not closed"),
        ("+++\nid = a b\n+++\nx", "not TOML"),
        (GOOD.replace('title = "Tiles"\n', ""), "lacks `title`"),
        (GOOD.replace('title = "Tiles"', "title = 3"), "`title` must be a string"),
        (GOOD.replace('["memory"]', '"memory"'), "`bounds` must be a list of strings"),
        (GOOD.replace("bounds", "bound"), "unknown field `bound`"),
        (GOOD.replace('"guidance"\n', '"advice"\n'), "unknown concern `advice`"),
        (GOOD.replace("guidance/tiles", "../tiles"), "id `../tiles`"),
        (GOOD.replace("guidance/tiles", "/etc/tiles"), "id `/etc/tiles`"),
        (GOOD[: GOOD.index("Opening")], "no text"),
    ],
)
def test_malformed_front_matter_is_one_line_that_names_the_file(text, told):
    with pytest.raises(UserError) as caught:
        documents.parse(text, where="mine.md")
    assert str(caught.value).startswith("mine.md: ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_added_document_is_found_in_the_users_folder(tmp_path: Path):
    source = tmp_path / "anything.md"
    source.write_text(GOOD)
    target = library.add(source, tmp_path / "user")
    assert target == tmp_path / "user" / "guidance" / "tiles.md"
    assert [d.id for d in library.load((tmp_path / "user",))] == ["guidance/tiles"]


def test_a_malformed_document_is_not_added(tmp_path: Path):
    source = tmp_path / "bad.md"
    source.write_text("+++\n")
    with pytest.raises(UserError, match="not closed"):
        library.add(source, tmp_path / "user")
    assert not (tmp_path / "user").exists()


def test_adding_a_file_that_is_missing_or_no_text_is_one_clear_error(tmp_path: Path):
    with pytest.raises(UserError, match="no such file"):
        library.add(tmp_path / "absent.md", tmp_path)
    (tmp_path / "binary.md").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot be read"):
        library.add(tmp_path / "binary.md", tmp_path)


def test_a_later_folder_replaces_documents_of_the_same_id(tmp_path: Path):
    for name, title in (("one", "First"), ("two", "Second")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tiles.md").write_text(GOOD.replace('"Tiles"', f'"{title}"'))
    assert [d.title for d in library.load((tmp_path / "one", tmp_path / "two"))] == ["Second"]


def test_two_documents_of_one_folder_with_the_same_id_are_an_error(tmp_path: Path):
    (tmp_path / "a.md").write_text(GOOD)
    (tmp_path / "b.md").write_text(GOOD)
    with pytest.raises(UserError, match="has the id `guidance/tiles` of"):
        library.load((tmp_path,))


def test_the_corpus_index_is_not_stale():
    """Rewrite it with ``python -m knowledge_svc.catalogue``."""
    written = (library.CORPUS / library.INDEX_NAME).read_text(encoding="utf-8")
    assert catalogue.render(library.load((library.CORPUS,))) == written


def test_every_document_of_the_corpus_stands_under_its_id_and_uses_known_facets():
    sheets = [chips.load(chip) for chip in chips.known()]
    vendors = {vendor for sheet in sheets for vendor in sheet.vendor.split("/")}
    loaded = {d.id: d for d in library.load((library.CORPUS,))}
    for path in library.CORPUS.rglob("*.md"):
        if path.name == library.INDEX_NAME:
            continue
        document = loaded[path.relative_to(library.CORPUS).with_suffix("").as_posix()]
        assert document.id.startswith(document.concern.value)
        assert not document.vendor or document.vendor in vendors
        assert not document.architecture or document.architecture in {sheet.architecture for sheet in sheets}
        assert set(document.bounds) <= {bound.value for bound in Bound}
        shouted = {
            s for s in document.error_signatures if s.isupper() and "_" in s and not s.startswith(("KE_", "SIG"))
        }
        assert shouted <= {status.value for status in Status}
