"""``chips check``: an adapter that keeps the contract passes; each breach is one line, with how to mend it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evaluator_svc.external.conformance import Line, conformance
from shared import chips
from tests.integration.external.sheets import PYTHON, vendor

pytestmark = [
    pytest.mark.skipif(not PYTHON.exists(), reason="the vendor for tests is run by /usr/bin/python3"),
    pytest.mark.serial,
]


def lines(path: Path, *only: str) -> dict[str, Line]:
    async def tried() -> list[Line]:
        return [line async for line in conformance(chips.read(path), only)]

    return {line.requirement: line for line in asyncio.run(tried())}


def test_one_that_keeps_the_contract_passes(tmp_path):
    found = lines(vendor(tmp_path))
    assert [str(line) for line in found.values() if not line.kept] == []
    assert list(found) == [
        "sheet", "tools", "build", "build refuses", "run", "run fills outputs", "run tells wrong", "run tells a crash",
        "run ends", "profile", "profile grows",
    ]  # fmt: skip
    assert found["build refuses"].said.endswith("line 1: invalid syntax")


@pytest.mark.parametrize(
    ("breach", "requirement", "said", "mend"),
    [
        ("build:writes no JSON", "build", "result.json is no JSON", "write one JSON object"),
        ("build:exits with 1", "build", "ended with status 1: the licence has expired", "exit with 0"),
        ("build:hangs", "build", "took longer than 3 s", "raise [external.build] time_s"),
        ("build:writes no result", "build", "wrote no result.json", "into the folder of the request"),
        ("build:links its result", "build", "result.json is a link", "links are not followed"),
        ("run:writes no JSON", "run", "result.json is no JSON", "write one JSON object"),
        ("run:exits with 1", "run", "ended with status 1: the licence has expired", "exit with 0"),
        ("run:hangs", "run", "the right kernel ended as TIMEOUT", "raise [external.run] time_s"),
        ("run:writes no output", "run", "wrote no output-0.after", "into the folder of the request"),
        ("run:cuts its output", "run", "output-0.after has 0 bytes, expected 4", "write the whole tensor"),
        ("run:pads its output", "run", "output-0.after has 8 bytes, expected 4", "write the whole tensor"),
        ("run:widens its output", "run", "output 0 is 'float64', asked for was float32", "write the request's dtype"),
        ("run:links its output", "run", "output-0.after is a link", "links are not followed"),
        ("run:makes its output a folder", "run", "output-0.after is no regular file", "write a regular file"),
        ("run:writes too much", "run", "wrote more than 64 MiB into 'output-0.after'", "write less"),
        ("run:zeroes its output", "run", "the right kernel ended as WRONG_RESULT", "write what it wrote"),
        ("profile:misses the metric", "profile", "told no metric `steps`, only stairs", "mend the sheet's `metric`"),
        ("profile:not finite", "profile", "metric `steps` is nan", "leave out what is unknown"),
        ("profile:differs", "profile", "counts of equal calls differ", 'else basis = "modelled"'),
        ("profile:hangs", "profile", "ended as TIMEOUT when profiled", "raise [external.profile] time_s"),
        ("profile:zeroes its output", "profile", "ended as WRONG_RESULT when profiled", "writes its outputs"),
        ("profile:always the same", "profile grows", "four times the elements cost 12, not more than 12", "`steps`"),
    ],
)  # fmt: skip
def test_a_breach_has_a_line_of_its_own(tmp_path, breach, requirement, said, mend):
    line = lines(vendor(tmp_path, breach=breach), requirement)[requirement]
    assert not line.kept
    assert said in line.said
    assert mend in line.mend
    assert "\n" not in str(line)
    assert str(line).startswith("FAIL")


def test_a_modelled_cost_may_differ_between_profiles(tmp_path):
    found = lines(vendor(tmp_path, breach="profile:differs", basis="modelled"), "profile")
    assert found["profile"].kept


def test_a_sheet_without_commands_or_kernels_says_what_to_add(tmp_path):
    assert "docs/chips.md" in str(lines(Path(chips.__file__).with_name("mtia.toml"))["sheet"])
    path = vendor(tmp_path)
    path.write_text(path.read_text().partition("\n[external.check]")[0])
    assert "add [external.check]" in str(lines(path)["sheet"])


def test_a_program_that_is_not_there_is_named(tmp_path):
    path = vendor(tmp_path)
    path.write_text(path.read_text().replace("/usr/bin/python3", "/usr/bin/no-such-python"))
    found = lines(path)
    assert list(found) == ["sheet", "tools", "build"]
    assert "there is no program /usr/bin/no-such-python" in str(found["build"])
