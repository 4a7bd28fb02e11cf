"""The command group: what it lists exists, and asking for help loads no service."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from cli import main

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
