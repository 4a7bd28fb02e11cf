"""Chip sheets: found wherever they lie, held to their form, and told what can be done for them."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from shared import chips
from shared.chips import places, state
from shared.chips.state import Standing
from shared.errors import ChipError

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "accelerators" / "corvid" / "corvid-v1.toml"
PLAIN = """\
title = "A chip"
vendor = "nobody"
architecture = "a1"
languages = ["toy"]
toolchain = "external"
"""
TOOLS = """
[external]
contract = 1
version = "1"
basis = "counted"
metric = "cycles"
unit = "cycles"
suffixes = { toy = ".toy" }

[external.build]
command = ["/bin/true"]

[external.run]
command = ["/bin/true"]

[external.profile]
command = ["/bin/true"]
"""


def sheet(tmp_path: Path, text: str, name: str = "mine") -> Path:
    path = tmp_path / f"{name}.toml"
    path.write_text(text)
    return path


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(ChipError) as told:
        chips.read(sheet(tmp_path, text))
    return str(told.value)


@pytest.mark.parametrize("chip", chips.known())
def test_every_sheet_of_the_package_can_be_read(chip):
    assert chips.load(chip).id == chip


def test_a_folder_named_by_the_variable_adds_its_chips(tmp_path, monkeypatch):
    sheet(tmp_path, PLAIN + TOOLS)
    monkeypatch.setenv(places.VARIABLE, str(tmp_path))
    assert "mine" in chips.known()
    assert "cpu-x86_64" in chips.known()
    assert chips.load("mine").external.metric == "cycles"


def test_a_sheet_of_ones_own_goes_before_the_packages(tmp_path, monkeypatch):
    path = sheet(tmp_path, PLAIN + TOOLS, "mtia")
    monkeypatch.setenv(places.VARIABLE, os.pathsep.join([str(path)]))
    assert chips.load("mtia").title == "A chip"


def test_the_file_of_a_sheet_is_named_to_the_processes_that_follow(tmp_path, monkeypatch):
    monkeypatch.setenv(places.VARIABLE, "")
    path = sheet(tmp_path, PLAIN + TOOLS)
    assert places.name(path) == "mine"
    assert places.name(path) == "mine"
    assert os.environ[places.VARIABLE] == str(path.resolve())
    assert chips.load("mine").toolchain == "external"


def test_two_sheets_of_one_chip_are_refused(tmp_path, monkeypatch):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        sheet(tmp_path / folder, PLAIN)
    monkeypatch.setenv(places.VARIABLE, f"{tmp_path / 'a'}{os.pathsep}{tmp_path / 'b'}")
    with pytest.raises(ChipError, match="two sheets are of chip `mine`"):
        chips.known()


def test_a_folder_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(places.VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(ChipError, match=r"KERNELEVOLVE_CHIPS: names .*gone.*not there"):
        chips.known()


@pytest.mark.parametrize("name", ["Upper", "a b", ".hidden"])
def test_a_name_that_could_be_no_topic_is_refused(tmp_path, name):
    with pytest.raises(ChipError, match="is no name of a chip sheet"):
        chips.read(sheet(tmp_path, PLAIN, name))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title =", "is no TOML"),
        (PLAIN.replace('vendor = "nobody"\n', ""), "`vendor` is missing (add `vendor = …`, a text)"),
        (PLAIN + "vendour = 1\n", "unknown key `vendour` (known: "),
        (PLAIN + 'memory_bandwidth_gb_s = "much"\n', "memory_bandwidth_gb_s: is 'much', expected a number"),
        (PLAIN.replace('["toy"]', '["toy", 3]'), "languages[1]: is 3, expected a text"),
        (PLAIN.replace('["toy"]', "[]"), "`languages` is empty"),
        (PLAIN + "[gpu]\nwarp = 32\n", ": gpu: `threads_max` is missing"),
        (PLAIN + TOOLS.replace("contract = 1", "contract = 2"), "`contract` is 2: this version speaks 1"),
        (PLAIN + TOOLS.replace('"counted"', '"measured"'), "times of a chip are not compared yet"),
        (PLAIN + TOOLS.replace('"counted"', '"guessed"'), "`basis` is `guessed`: expected counted or modelled"),
        (PLAIN + TOOLS.replace("[external.run]", "[external.go]"), "external: the command `run` is missing"),
        (PLAIN + TOOLS.replace('["/bin/true"]', '["true"]', 1), "expected an absolute path, or one below {sheet}/"),
        (PLAIN + TOOLS.replace('["/bin/true"]', '["/bin/true", "{x}"]', 1), "only {sheet} stands for something"),
        (PLAIN + TOOLS.replace('["/bin/true"]', "[]", 1), "external.build: `command` is empty"),
        (PLAIN + TOOLS.replace('toy = ".toy"', 'other = ".o"'), "external.suffixes: language `toy` has no suffix"),
        (PLAIN + TOOLS.replace('version = "1"\n', 'version = "1"\nflags = ["("]\n'), "no regular expression"),
        (PLAIN + TOOLS.replace('version = "1"\n', 'version = "1"\nmounts = ["lib"]\n'), "`lib` is not absolute"),
        (PLAIN + TOOLS.replace('version = "1"\n', 'version = "1"\nrepeat = 1\n'), "`repeat` is 1: expected 2 to 16"),
        (PLAIN.replace('"external"', '"cpu"') + TOOLS, "has [external], and its toolchain is `cpu`"),
        (
            PLAIN + TOOLS + '\n[external.check]\nlanguage = "toy"\nright = "r"\nwrong = "w"\n'
            'crashes = "c"\nhangs = "h"\nidle = "i"\n',
            "external.check.right: there is no file `r` (a path beside the sheet)",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(tmp_path, text, said):
    told = refused(tmp_path, text)
    assert said in told
    assert "mine.toml" in told
    assert "\n" not in told


WRONG_FACTS = [
    ("nvidia-sm_90", 'languages = ["triton", "cuda", "python"]', "languages = 3", "languages: is 3, expected an array"),
    ("nvidia-sm_90", '["triton", "cuda", "python"]', '["triton", "triton"]', "`languages` names `triton` twice"),
    ("nvidia-sm_90", '["triton", "cuda", "python"]', '["triton", ""]', "`languages`[1] is empty"),
    ("nvidia-sm_90", 'compile_only = ["cuda"]', 'compile_only = ["hip"]', "`compile_only` names `hip`, which is none"),
    ("nvidia-sm_90", "[language_needs.cuda]", "[language_needs.cudda]", "`language_needs` names `cudda`"),
    ("nvidia-sm_90", "bandwidth_gb_s = 3350.0", "bandwidth_gb_s = -1", "board: `bandwidth_gb_s` is -1.0 (a number"),
    ("nvidia-sm_90", "bandwidth_gb_s = 3350.0", "bandwidth_gb_s = nan", "bandwidth_gb_s: is nan, expected a number"),
    ("nvidia-sm_90", "special_share = 0.125", "special_share = 0", "`special_share` is 0.0"),
    ("nvidia-sm_90", "fp16 = 989.4", "fp17 = 989.4", "`tflops` names `fp17` (operands are fp8, fp16"),
    ("nvidia-sm_90", "[board.tflops]", "[board.tflops]\n[peak_tflops]", "`tflops` is empty"),
    ("nvidia-sm_90", "fp16 = 989.4", "fp16 = 0", ": board.tflops: `fp16` is 0.0"),
    ("nvidia-sm_90", "warp = 32", "warp = 33", "`warp` is 33 (a power of two"),
    ("nvidia-sm_90", "register_granule = 8", "register_granule = 0", ": gpu: `register_granule` is 0"),
    ("nvidia-sm_90", "shared_bytes = 232448", "shared_bytes = 999999", "is 999999, more than `shared_total`, 233472"),
    ("nvidia-sm_90", 'architecture = "sm_90"', 'architecture = "hopper"', "(as compilers name it, e.g. sm_90)"),
    ("nvidia-sm_90", 'toolchain = "nvidia"', 'toolchain = "riscv"', "toolchain `riscv` needs the table [vector]"),
    ("cpu-x86_64", 'toolchain = "cpu"', 'toolchain = "amd"', "toolchain `amd` needs the table [gpu]"),
    ("cpu-x86_64", "vector_bits = 512", "vector_bits = 100", ": isa[0]: `vector_bits` is 100 (128 or 256 or 512)"),
    ("cpu-x86_64", 'toolchain = "cpu"', 'toolchain = "cpu"\nmemory_bandwidth_gb_s = 0', "`memory_bandwidth_gb_s` is"),
    ("riscv-rvv", "vlen = 256", "vlen = 255", ": vector: `vlen` is 255 (a power of two from 128"),
    ("riscv-rvv", "elen = 64", "elen = 7", "`elen` is 7 (32 or 64)"),
    ("riscv-rvv", "bytes = 32.0", "bytes = 0", ": vector.cycles: `bytes` is 0.0"),
    ("riscv-rvv", "divide = 20.0", "divide = -20.0", ": vector.cycles: `divide` is -20.0"),
]  # fmt: skip


@pytest.mark.parametrize(("chip", "old", "new", "said"), WRONG_FACTS, ids=[f"{c}: {n}" for c, _, n, _ in WRONG_FACTS])
def test_a_fact_that_cannot_be_is_told_when_the_sheet_is_read(tmp_path, chip, old, new, said):
    text = places.sheets({})[chip].read_text()
    assert text.count(old) >= 1
    told = refused(tmp_path, text.replace(old, new, 1))
    assert said in told
    assert "mine.toml" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("key", "said"), [('metric = "In cycles"', "`metric` is 'In cycles'"), ('unit = "a\\nb"', "`unit` is 'a\\nb'")]
)
def test_a_metric_that_no_profile_can_tell_is_refused(tmp_path, key, said):
    old = f'{key.partition(" ")[0]} = "cycles"'
    assert said in refused(tmp_path, PLAIN + TOOLS.replace(old, key))


def test_a_limit_that_is_not_finite_is_refused(tmp_path):
    text = PLAIN + TOOLS.replace('["/bin/true"]', '["/bin/true"]\ntime_s = inf', 1)
    assert "external.build.time_s: is inf, expected a number" in refused(tmp_path, text)


def test_a_chip_without_a_machine_says_what_schedules_need(tmp_path):
    with pytest.raises(ChipError, match=r"no table of a machine .*add \[vector\]"):
        chips.machine_of(chips.read(sheet(tmp_path, PLAIN + TOOLS)), frozenset())


def test_flags_are_refused_unless_the_sheet_allows_all_of_one():
    tools = chips.read(EXAMPLE).external
    assert tools.refused(("-O3", "-march=rv64gcv_zvl256b")) is None
    assert tools.refused(("-O3", "-fplugin=x.so")) == "-fplugin=x.so"
    assert tools.refused(("-O3x",)) == "-O3x"


@pytest.mark.parametrize(
    ("chip", "standing"), [("mtia", Standing.NONE), ("arm64", Standing.NONE), ("simulated", Standing.READY)]
)
def test_what_can_be_done_for_a_chip_is_told(chip, standing):
    found = state.of(chips.load(chip))
    assert found.standing is standing
    assert ("docs/chips.md" in str(found)) == (standing is Standing.NONE)


def test_a_missing_tool_comes_with_how_to_get_it(tmp_path):
    text = PLAIN + TOOLS.replace("\n[external]", '\n[needs]\n"no-such-tool" = "ask its maker"\n\n[external]', 1)
    found = state.of(chips.read(sheet(tmp_path, text)))
    assert str(found) == "needs no-such-tool: ask its maker"
    assert found.standing is Standing.MISSING
    without = state.of(chips.read(sheet(tmp_path, 'without = "builds"\n' + text)))
    assert str(without) == "compile-only: builds; needs no-such-tool: ask its maker"


def test_the_chips_that_the_project_is_for_have_sheets():
    boards = {"nvidia-h100", "nvidia-h200", "nvidia-sm_80", "nvidia-sm_90", "nvidia-sm_100"}
    others = {"amd-gfx942", "amd-gfx950", "cpu-x86_64", "arm64", "riscv-rvv", "mtia"}
    assert boards | others <= set(chips.known())


@pytest.mark.parametrize("chip", ["nvidia-h100", "nvidia-h200"])
def test_boards_of_one_architecture_differ_by_the_board_alone(chip):
    whole, board = chips.load("nvidia-sm_90"), chips.load(chip)
    assert board.gpu == whole.gpu
    assert board.architecture == whole.architecture


def test_the_example_is_a_sheet_and_files_beside_it():
    raw = tomllib.loads(EXAMPLE.read_text())
    found = chips.read(EXAMPLE)
    assert found.id == EXAMPLE.stem
    assert set(raw["external"]["check"]) == {"language", "flags", *found.external.check.kernels}
