"""A module that calls itself pure is held to it by the import rules, and the other way round."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("shared", "search_svc", "synthesizer_svc", "knowledge_svc", "cli")
CONTRACT = "Pure modules touch no clock, chance, loop, system, log or port"


def _listed() -> list[str]:
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (rule for rule in rules if rule["name"] == CONTRACT)
    return contract["source_modules"]


def _claims(path: Path) -> bool:
    summary = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]
    return "(pure" in summary


def test_every_module_that_calls_itself_pure_is_under_the_import_rule_and_says_so_if_it_is():
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    listed = _listed()
    held = {name for name in modules for rule in listed if name == rule or name.startswith(f"{rule}.")}
    assert held == {name for name, path in modules.items() if _claims(path)}
