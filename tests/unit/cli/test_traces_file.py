"""A file of traces grows by whole lines, whoever else appends, and is as it was when one cannot be written."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli import traces
from shared.errors import UserError

LINE = json.dumps({"definition": "a" * 10_000}).encode() + b"\n"
WRITERS, LINES = 4, 25


def write(path: Path) -> None:
    for _ in range(LINES):
        traces.append(path, LINE)


def test_lines_of_several_programs_at_once_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=write, args=(path,)) for _ in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_bytes() == LINE * (WRITERS * LINES)


def test_a_line_that_lacks_its_end_gets_one_first(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(b'{"by": "another program"}')
    traces.append(path, b"{}\n")
    assert path.read_bytes() == b'{"by": "another program"}\n{}\n'


@pytest.fixture
def small_files() -> Iterator[None]:
    """A write across the limit is cut short, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(LINE) + 100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_half_a_line_is_cut_off_again(tmp_path: Path, small_files: None) -> None:
    path = tmp_path / "traces.jsonl"
    traces.append(path, LINE)
    with pytest.raises(OSError):
        traces.append(path, LINE)
    assert path.read_bytes() == LINE


def test_a_place_that_cannot_be_written_is_refused_beforehand_and_nothing_is_made(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "is a directory"), (tmp_path / "no" / "t.jsonl", "no such directory")):
        with pytest.raises(UserError, match=said):
            traces.check(path)
    traces.check(tmp_path / "t.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_regular_file_is_refused_before_anything_is_evaluated(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/full")):
        with pytest.raises(UserError, match="no file that could be appended to"):
            traces.check(path)
