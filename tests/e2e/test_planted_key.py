"""A planted key goes through a whole search, at an endpoint that repeats it everywhere, and stays nowhere."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import kernelevolve, last_object
from planted import ENDPOINTS, OPERATOR, SETTINGS, SPELLINGS, VARIABLE, holding

from cli import conversations, history
from shared import ids
from tests.fakes.echoing_endpoint import Echo, echoing_endpoint

pytestmark = [pytest.mark.serial, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Place:
    """Where everything goes that a process writes: ``said`` is what the commands printed."""

    root: Path
    said: Path
    echo: Echo

    @property
    def run(self) -> Path:
        return self.root / "run"

    def do(self, *arguments: object, codes: tuple[int, ...] = (0,)):
        settings = SETTINGS | {"MODEL_ENDPOINTS": str(self.root / "models.toml"), "TMPDIR": str(self.root / "tmp")}
        done = kernelevolve(*arguments, home=self.root, settings=settings)
        with self.said.open("a", encoding="utf-8") as said:
            said.write(f"{arguments}\n{done.stdout}{done.stderr}")
        assert done.returncode in codes, done.stderr
        return done


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A search that ended, and every command that reads it."""
    root = tmp_path_factory.mktemp("planted")
    (root / "tmp").mkdir()
    with echoing_endpoint(VARIABLE) as echo:
        place = Place(root, root / "said.txt", echo)
        (root / "models.toml").write_text(ENDPOINTS.format(url=echo.url, variable=VARIABLE))
        place.do("optimize", OPERATOR, "--evaluations", 1, "--out", place.run, "--json", codes=(0, 1))
        place.do("models", "list")
        place.do("models", "check", "--write", root / "checked.toml", codes=(0, 1))
        place.do("models", "check", "--json", codes=(0, 1))
    place.do("report", place.run)
    place.do("replay", place.run)
    place.do("export", place.run, "--sft", root / "sft.jsonl", "--preferences", root / "preferences.jsonl")
    shown = place.do("explain", place.run).stdout
    for name in set(re.findall(r"\b[0-9a-f]{8}\b", shown)):
        place.do("explain", place.run, name, "--prompt", codes=(0, 2))
    return place


def test_the_search_met_everything_that_the_endpoint_repeats(place):
    result = last_object(place.do("resume", place.run, "--json", codes=(0, 1)))

    assert place.echo.echoed > 8
    assert place.echo.without == 0
    assert result["evaluations"] == 1
    assert result["statuses"].get("PASSED"), result  # of kernels that would fail if they saw the variable
    assert holding(place.run, "for …")  # kept, without the key
    assert holding(place.root / "tmp", "'OMP_NUM_THREADS'"), "the operator's text wrote nothing down"


def test_the_hash_of_an_answer_is_of_the_text_that_is_kept(place):
    past = asyncio.run(history.open_past(place.run))
    told = [conversations.of(fact, past.blobs) for fact in conversations.facts(past.entries)]
    answers = [line for each in told if each for line in each.lines if line["role"] == "assistant"]

    assert any("…" in line["text"] for line in answers)
    assert all(line["hash"] == ids.content_hash(line["text"].encode()) for line in answers)


def test_the_key_is_nowhere(place):
    (place.root / "models.toml").unlink(missing_ok=True)

    assert holding(place.root, *SPELLINGS) == set()
    assert holding(place.root / "tmp", VARIABLE) == set()
