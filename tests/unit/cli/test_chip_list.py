"""``kernelevolve chips``: a line for each chip, and what holds for several said once."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from cli import chip_list, main
from shared import chips
from shared.chips import state
from shared.chips.state import Standing, State

CARD = {"no-smi": "a driver [of it] and its card"}
WITHOUT = State(standing=Standing.COMPILE_ONLY, missing=CARD, said="compiled, no times", languages={"cuda": {"c": "d"}})


def test_every_chip_has_a_line_with_its_standing_in_words() -> None:
    found = [(sheet, state.of(sheet)) for sheet in map(chips.load, chips.known())]
    lines = {row[0]: row for row in chip_list.rows(found)}
    assert set(lines) == set(chips.known())
    assert lines["mtia"][1] == "no toolchain"
    assert lines["simulated"][1] == "ready"


def test_what_holds_for_several_chips_is_said_once_with_their_names() -> None:
    one, other, ready = (chips.load(chip) for chip in ("nvidia-sm_90", "nvidia-sm_80", "simulated"))
    found = [(one, WITHOUT), (other, WITHOUT), (ready, State(standing=Standing.READY, missing={}))]
    assert chip_list.remarks(found) == [
        ("compile-only", "compiled, no times", "nvidia-sm_90, nvidia-sm_80"),
        ("cuda needs c", "d", "nvidia-sm_90, nvidia-sm_80"),
        ("needs no-smi", "a driver [of it] and its card", "nvidia-sm_90, nvidia-sm_80"),
    ]


@pytest.mark.parametrize("columns", ["60", "200"])
def test_no_id_and_no_standing_is_broken_by_a_narrow_terminal(columns, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    told = CliRunner().invoke(main.cli, ["chips"])
    assert told.exit_code == 0
    begun = {tuple(line.split()[:1]) for line in told.output.splitlines() if line.startswith(" ")}
    assert {(chip,) for chip in chips.known()} <= begun


def test_brackets_of_a_hint_are_shown_as_they_are(monkeypatch) -> None:
    monkeypatch.setattr(state, "of", lambda sheet: WITHOUT)
    monkeypatch.setenv("COLUMNS", "200")
    assert "a driver [of it] and its card" in CliRunner().invoke(main.cli, ["chips"]).output


def test_a_chip_without_toolchain_is_refused_with_where_to_read_on() -> None:
    told = CliRunner().invoke(main.cli, ["optimize", "examples/operators/softmax.py", "--chip", "mtia"])
    assert "chip `mtia` has no toolchain: its maker's is not public" in str(told.exception or told.output)
