"""An exported log reads back as it was; an edit is reported, damage is an error with its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared import ids, kelog, wire
from shared.errors import LogError
from shared.store import JournalEntry
from tests.unit.shared.builders import a_measurement, an_envelope

BLOBS = {ids.content_hash(data): data for data in (b"", b"int main;\n", bytes(range(256)))}


def an_entry(seq: int) -> JournalEntry:
    envelope = an_envelope(a_measurement(), n=seq)
    commands = tuple(wire.pack(an_envelope(n=100 * seq + number)) for number in range(seq))
    return JournalEntry(
        seq=seq, event_id=envelope.id, event=wire.pack(envelope), commands=commands, sent=seq < 2, digest=f"d{seq}"
    )


ENTRIES = tuple(an_entry(seq) for seq in range(3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "search.kelog"
    kelog.write(path, ENTRIES, BLOBS, stream="s1")
    return path


def rewrite(path: Path, number: int, change: Callable[[dict], object]) -> None:
    """Edit line ``number`` as somebody with an editor would, leaving its checksum alone."""
    lines = path.read_text().splitlines()
    line = json.loads(lines[number - 1])
    change(line)
    lines[number - 1] = json.dumps(line)
    path.write_text("\n".join(lines) + "\n")


def test_a_log_reads_back_as_it_was_written(path: Path) -> None:
    assert kelog.read(path) == kelog.Log(stream="s1", entries=ENTRIES, blobs=BLOBS, altered=())


def test_equal_logs_are_equal_bytes_and_nothing_else_is_left_behind(path: Path) -> None:
    again = path.with_name("again.kelog")
    kelog.write(again, ENTRIES, dict(reversed(BLOBS.items())), stream="s1")
    assert again.read_bytes() == path.read_bytes()
    assert sorted(path.parent.iterdir()) == [again, path]


def test_an_empty_log_is_a_log(tmp_path: Path) -> None:
    kelog.write(tmp_path / "empty.kelog", (), {}, stream="s1")
    assert kelog.read(tmp_path / "empty.kelog") == kelog.Log(stream="s1", entries=(), blobs={}, altered=())


def test_an_edited_measurement_is_read_and_its_line_reported(path: Path) -> None:
    rewrite(path, 3, lambda line: line["event"]["event"]["evaluation"]["speedups"][0].update(ratio_ppm=9))
    log = kelog.read(path)
    assert log.altered == (3,)
    evaluation = wire.unpack(log.entries[1].event).event.evaluation
    assert evaluation.speedups[0].ratio_ppm == 9
    assert (log.entries[0], log.entries[2]) == (ENTRIES[0], ENTRIES[2])


def test_an_edited_decision_is_read_and_its_line_reported(path: Path) -> None:
    rewrite(path, 4, lambda line: line["commands"].pop())
    log = kelog.read(path)
    assert log.altered == (4,)
    assert len(log.entries[2].commands) == 1


def test_a_line_that_was_only_formatted_anew_is_not_altered(path: Path) -> None:
    rewrite(path, 3, lambda line: line)
    assert kelog.read(path).altered == ()


def test_a_line_without_its_checksum_counts_as_altered(path: Path) -> None:
    rewrite(path, 2, lambda line: line.pop("check"))
    assert kelog.read(path).altered == (2,)


@pytest.mark.parametrize(
    ("number", "change", "reason"),
    [
        (1, lambda line: line.update(format=2), "format 2; this version reads format 1"),
        (1, lambda line: line.update(kind="x"), "is not the header"),
        (1, lambda line: line.update(entries=-1), "header.entries is negative"),
        (1, lambda line: line.update(entries="3"), "header.entries: expected an integer"),
        (1, lambda line: line.pop("stream"), "header.stream is missing"),
        (3, lambda line: line.update(seq=7), "should be entry 1, but is 'entry' 7"),
        (3, lambda line: line.update(more=1), "entry: 'more' is not a known field"),
        (3, lambda line: line.update(sent=1), "entry.sent"),
        (3, lambda line: line.update(commands=[{}]), "envelope.id is missing"),
        (3, lambda line: line["event"]["event"]["evaluation"].update(status="OK"), "evaluation.status: 'OK' is not"),
        (5, lambda line: line.update(data="!!"), "search.kelog:5"),
        (6, lambda line: line.update(data="AAAA"), "does not match its name"),
        (6, lambda line: line.update(kind="entry"), "should be a blob"),
    ],
)
def test_a_line_that_makes_no_sense_is_an_error_that_names_it(
    path: Path, number: int, change: Callable[[dict], object], reason: str
) -> None:
    rewrite(path, number, change)
    with pytest.raises(LogError, match=reason) as caught:
        kelog.read(path)
    assert f"search.kelog:{number}: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "search.kelog:1: is missing: the file is empty"),
        ("\x00\x01\n", "search.kelog:1: is not JSON"),
        ("[" * 100_000, "search.kelog:1: is not JSON"),
        ('{"a": NaN}', "search.kelog:1: is not JSON"),
        ('{"a": 1, "a": 2}', "search.kelog:1: is not JSON: a key occurs twice"),
        ("[]", "search.kelog:1: is not a JSON object"),
    ],
    ids=["empty", "binary", "deep", "nan", "twice", "list"],
)
def test_a_file_that_is_no_log_is_one_clear_line(path: Path, text: str, reason: str) -> None:
    path.write_text(text)
    with pytest.raises(LogError, match=reason) as caught:
        kelog.read(path)
    assert "\n" not in str(caught.value)


def test_a_removed_line_is_found(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))
    with pytest.raises(LogError, match="search.kelog:3: should be entry 1"):
        kelog.read(path)


def test_an_added_line_is_found(path: Path) -> None:
    path.write_text(path.read_text() + "{}\n")
    with pytest.raises(LogError, match="search.kelog:8: is past the end"):
        kelog.read(path)


@settings(max_examples=40)
@given(st.data())
def test_a_log_cut_off_anywhere_is_an_error_that_names_a_line(tmp_path_factory: object, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("cut") / "search.kelog"
    kelog.write(path, ENTRIES, BLOBS, stream="s1")
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 2))])
    with pytest.raises(LogError, match=r"search\.kelog:\d: "):
        kelog.read(path)


@settings(max_examples=60)
@given(st.data())
def test_a_flipped_byte_never_passes_unnoticed(tmp_path_factory: object, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("rot") / "search.kelog"
    kelog.write(path, ENTRIES, BLOBS, stream="s1")
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 2))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        log = kelog.read(path)
    except LogError:
        return
    assert log.altered or log == kelog.Log(stream="s1", entries=ENTRIES, blobs=BLOBS, altered=())


def test_a_missing_file_and_an_unwritable_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="nowhere.kelog: cannot be read: No such file"):
        kelog.read(tmp_path / "nowhere.kelog")
    with pytest.raises(LogError, match="search.kelog: cannot be written: No such file"):
        kelog.write(tmp_path / "nowhere" / "search.kelog", (), {}, stream="s1")


def test_what_would_not_read_back_is_not_written(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(ValueError, match="blob"):
        kelog.write(path, ENTRIES, {"0" * 64: b"x"}, stream="s1")
    with pytest.raises(ValueError, match="filed under"):
        kelog.write(path, [replace(ENTRIES[0], event_id="other")], {}, stream="s1")
    assert path.read_bytes() == before
