"""Documents name what there is: files, headings, commands, options, targets, modules, settings and their defaults."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import MISSING, fields
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from cli.main import cli
from deploy.validation import variables

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = (".", "docs", "docs/results", "protos", "deploy", "deploy/k8s", "deploy/secrets", "search_svc/policies")
DOCUMENTS = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))
SETTINGS = sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "local-cluster.md")
"""Pages whose tables give defaults; the local cluster's gives other values."""

LINK = re.compile(r"\]\(([^)\s]+)\)")
VARIABLE = re.compile(r"(?<![\w$.])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?!\w)")
ROW = re.compile(r"^\| `([A-Z][A-Z0-9_]+)` \| ([^|]*) \|", re.MULTILINE)
BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")

SUITES = {"KAFKA_BOOTSTRAP", "MONGO_URL"}
"""Read by the tests; so is ``REDIS_URL``."""
ELSEWHERE = {
    "KERNELEVOLVE_CLUSTER": "a mark that the local cluster puts into environments",
    "KERNELEVOLVE_SYNTHESIZER_TOKEN": "a key of a Kubernetes secret",
    "OTEL_TRACES_SAMPLER": "read by opentelemetry",
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(path: Path) -> set[str]:
    """Of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(text: str, program: str) -> Iterator[list[str]]:
    """The words after ``program`` in every command of a document's blocks and inline code, up to a pipe or choice."""
    lines = [line for block in BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    for line in [*lines, *INLINE.findall(text)]:
        found = re.match(rf"\s*(?:[A-Z_]+=\S*\s+)*{program} (.*)", line)
        if found:
            yield shlex.split(re.sub(r"[|…;].*", "", found[1]), comments=True)


def amount(told: str) -> float:
    """``16 MiB`` is 16777216."""
    number, _, unit = told.partition(" ")
    return float(number) * {"": 1, "MiB": 1 << 20}[unit]


def prefixes() -> set[str]:
    return {reading.prefix for reading in variables.readings() if reading.prefix}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_link_leads_somewhere(document: Path) -> None:
    for link in LINK.findall(document.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_command_and_option_exists(document: Path) -> None:
    for words in commands(document.read_text(encoding="utf-8"), "kernelevolve"):
        command: click.Command = cli
        for word in words:
            if word.startswith("-"):
                known = {option for parameter in command.params for option in parameter.opts}
                assert word.partition("=")[0] in known, words
            elif isinstance(command, click.Group):
                found = command.get_command(click.Context(command), word)
                assert found is not None, words
                command = found


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_target_and_module_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {word for words in commands(text, "make") for word in words[:1] if "=" not in word}
    assert named <= targets
    for module in re.findall(r"python -m ([a-z_.]+)", text):
        assert find_spec(module) is not None, module
    for script in re.findall(r"python ((?:tests|deploy)/\S+\.py)", text):
        assert (ROOT / script).exists(), script


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_setting_named_is_one_that_is_read(document: Path) -> None:
    named = set(VARIABLE.findall(document.read_text(encoding="utf-8")))
    settings = {each for each in named if each.startswith(tuple(prefixes())) or each.endswith("_URL")}
    assert settings <= variables.known() | SUITES | {"REDIS_URL"} | set(ELSEWHERE)


def test_every_setting_that_is_read_is_explained() -> None:
    named = {each for document in SETTINGS for each in VARIABLE.findall(document.read_text(encoding="utf-8"))}
    read = {each for reading in variables.readings() for each in reading.names}
    assert sorted(read - named) == []


@pytest.mark.parametrize("document", SETTINGS, ids=name)
def test_defaults_are_those_of_the_program(document: Path) -> None:
    defaults = {
        reading.prefix + field.name.upper(): field.default
        for reading in variables.readings()
        for field in fields(reading.owner)
        if field.default is not MISSING
    }
    for variable, told in ROW.findall(document.read_text(encoding="utf-8")):
        default = defaults.get(variable)
        if default is None:
            continue
        if isinstance(default, bool):
            assert told == str(default).lower(), variable
        elif isinstance(default, (int, float)):
            assert amount(told) == default, variable
        else:
            assert told == f"`{default}`" if default else told.startswith(("none", "`kernelevolve-")), variable
