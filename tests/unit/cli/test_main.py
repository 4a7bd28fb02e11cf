"""The command group: what it lists exists, and asking for help loads no service."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli import chip_table, main, outcome
from shared import exit_codes

SERVICES = ("search_svc", "synthesizer_svc", "evaluator_svc", "knowledge_svc", "numpy", "plotly")


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_listed_exists(name):
    assert importlib.import_module(f"cli.commands.{name}").command.name == name


def test_every_command_that_exists_is_listed():
    modules = Path(main.__file__).parent.glob("commands/[a-z]*.py")
    assert {module.stem for module in modules} == set(main.COMMANDS)


def test_help_and_chips_load_no_service():
    asked = f"""
import sys
from cli.main import cli
for arguments in (["--help"], ["chips"]):
    cli.main(arguments, standalone_mode=False)
print("loaded:", *sorted(set(sys.modules) & set({SERVICES!r})))
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cpu-x86_64" in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_help_and_the_page_list_every_exit_code_with_its_meaning():
    told = CliRunner().invoke(main.cli, ["-h"]).output
    page = (Path(main.__file__).parents[1] / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    for code, meaning in exit_codes.MEANINGS.items():
        assert re.search(rf"^ +{code} +{re.escape(meaning)}$", told, re.MULTILINE)
        assert f"| {code} | {meaning} |" in page
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == [str(code) for code in exit_codes.MEANINGS]


def test_every_exit_code_of_the_program_has_a_meaning():
    named = {value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    assert named - {exit_codes.SIGNALLED} == set(exit_codes.MEANINGS)
    assert set(outcome.EXIT_CODES.values()) <= named
    assert set(chip_table.BETTER_FIRST) <= named
    assert (exit_codes.PAUSED, exit_codes.STUCK, exit_codes.INTERRUPTED, exit_codes.TERMINATED) == (75, 70, 130, 143)
