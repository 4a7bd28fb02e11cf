"""The naive harness, to be asked whether it believes a cheat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evaluator_svc.runner.program import ABI, compiler
from tests.cheats.manifest import OPERATORS, Cheat, Language

HARNESS = Path(__file__).with_name("harness.py")
BELIEVED = "believed"


def opinions(cheats: Iterable[Cheat]) -> dict[str, str]:
    """What it says of each cheat that names an order for it, by the cheat's id."""
    chosen = [cheat for cheat in cheats if cheat.naive is not None]
    if not chosen:
        return {}
    with tempfile.TemporaryDirectory(prefix="ke-naive-") as scratch:
        with ThreadPoolExecutor(os.cpu_count()) as builders:
            requests = list(builders.map(lambda cheat: _request(cheat, Path(scratch)), chosen))
        process = subprocess.Popen(
            [sys.executable, str(HARNESS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=scratch,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        found = {}
        with process:
            for cheat, request in zip(chosen, requests, strict=True):
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
                said = []
                for line in process.stdout:
                    if line == "done\n":
                        break
                    said.append(line)
                found[cheat.id] = _opinion(said)
            process.stdin.close()
    return found


def _request(cheat: Cheat, scratch: Path) -> dict[str, str]:
    assert cheat.naive is not None
    request = {
        "language": cheat.language.value,
        "operator": (OPERATORS / f"{cheat.operator}.py").read_text(),
        "order": cheat.naive.value,
        "source": cheat.source,
    }
    if cheat.language is Language.CPP:
        source, library = scratch / f"{cheat.name}.cpp", scratch / f"{cheat.name}.so"
        source.write_text(cheat.source)
        flags = ["-shared", "-fPIC", "-std=c++17", *cheat.build_flags, f"-I{ABI}"]
        subprocess.run([str(compiler()), *flags, str(source), "-o", str(library)], check=True)
        request["library"] = str(library)
    return request


def _opinion(said: list[str]) -> str:
    """The last line that is a report counts, whoever wrote it."""
    for line in reversed(said):
        try:
            report = json.loads(line)
        except ValueError:
            continue
        if isinstance(report, dict) and "correct" in report:
            if report["correct"]:
                return f"{BELIEVED}, {report['speedup']:.3g}x"
            return f"not believed {report.get('error', '')}".strip()
    return "no report"
