"""Linters and schemas that packages bring, run as they come; each complaint is what the tool said."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

LONGEST_LINE = 120
YAML_RULES = f"{{extends: default, rules: {{line-length: {{max: {LONGEST_LINE}}}, braces: {{max-spaces-inside: 0}}, \
truthy: {{allowed-values: ['true', 'false']}}, comments-indentation: disable}}}}"


def complaints(deploy: Path) -> Iterator[str]:
    """What yamllint, hadolint and the compose specification's schema say about the files under ``deploy``."""
    compose = str(deploy / "compose.yaml")
    yield from run("yamllint", "--strict", "-d", YAML_RULES, str(deploy))
    yield from run("hadolint", str(deploy / "Dockerfile"))
    yield from run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", compose)


def run(tool: str, *arguments: str) -> Iterator[str]:
    """One complaint with the tool's words when it is not content."""
    command = [str(Path(sysconfig.get_path("scripts"), tool)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"{tool}: {(done.stdout + done.stderr).strip()}"
