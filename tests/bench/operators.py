"""Every example operator against eager and torch.compile: the table in ``docs/results/<chip>.md``.

Each operator is a search of its own through the product's command line; the numbers are the evaluator's re-measured
ones, and an operator without an improvement counts as 1 in the geometric mean.

    python tests/bench/operators.py --evaluations 40
    python tests/bench/operators.py --evaluations 40 --only softmax,row_sum --no-write
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from shared.machine import processor

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = ROOT / "examples" / "operators"
COMMAND = "make bench"


def search(operator: Path, out: Path, *, chip: str, evaluations: int, threads: int, seed: int) -> dict[str, Any]:
    """Run one search and return its final object, with the wall time added."""
    command = [
        sys.executable, "-m", "cli.main", "optimize", str(operator), "--chip", chip, "--evaluations", str(evaluations),
        "--threads", str(threads), "--seed", str(seed), "--out", str(out), "--json",
    ]  # fmt: skip
    begin = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise click.ClickException(f"{operator.stem}: optimize exited with {done.returncode}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result | {"wall_s": time.monotonic() - begin}


def gain(result: Mapping[str, Any]) -> float:
    """Re-measured speedup over the faster baseline; 1 when nothing was improved."""
    if result["outcome"] != "improved":
        return 1.0
    speedup = result["best"]["speedup"]
    return min(v for v in (speedup["eager"], speedup["compiled"]) if v is not None)


def row(name: str, result: Mapping[str, Any]) -> str:
    """One line of the table."""
    best = result.get("best") or {}
    speedup = best.get("speedup") or {}
    times = best.get("median_us") or {}

    def us(key: str) -> str:
        value = times.get(key)
        return "-" if value is None else f"{value:.0f}"

    def x(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    interval = f"{x(speedup.get('ci_low'))} – {x(speedup.get('ci_high'))}"
    fraction = best.get("sol_fraction")
    sol = "-" if fraction is None else f"{100 * fraction:.0f} %"
    return (
        f"| {name} | {us('eager')} | {us('compiled')} | {us('candidate')} | {x(speedup.get('eager'))} | "
        f"{x(speedup.get('compiled'))} | {interval} | {sol} | {result['evaluations']} | {result['outcome']} |"
    )


def page(results: Mapping[str, Mapping[str, Any]], *, chip: str, evaluations: int, threads: int, command: str) -> str:
    """The whole Markdown page."""
    gains = {name: gain(result) for name, result in results.items()}
    mean = math.exp(sum(math.log(g) for g in gains.values()) / len(gains))
    cpu = processor()
    improved = sum(1 for result in results.values() if result["outcome"] == "improved")
    head = f"""# Results on `{chip}`

**Geometric mean {mean:.2f}x** over {len(results)} operators against the *faster* of eager and `torch.compile`;
{improved} improved (an operator without improvement counts as 1).

- Command: `{command}`
- Machine: {cpu.model}, {cpu.cores} logical processors; {threads} thread(s); torch {result_torch(results)}
- {evaluations} evaluations per operator; {datetime.now(UTC):%Y-%m-%d}

Times are medians per call in µs, measured interleaved in one run; memory pages are kept on both sides. The interval is
the 99.4 % interval of the re-measured speedup over the faster baseline. Speed of light: the calibrated floor
over the measured time.

"""
    columns = ("operator", "eager µs", "compiled µs", "ours µs", "× eager", "× compiled", "interval", "speed of light")
    columns += ("evaluations", "outcome")
    table = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    table += [row(name, result) for name, result in results.items()]
    return head + "\n".join(table) + "\n"


def result_torch(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The torch version the baselines ran with."""
    versions = {str(result.get("environment", {}).get("torch", "unknown")) for result in results.values()}
    return ", ".join(sorted(versions))


@click.command()
@click.option("--evaluations", default=40, show_default=True)
@click.option("--threads", default=1, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--chip", default="cpu-x86_64", show_default=True)
@click.option("--only", default="", help="Comma-separated operator names; all by default.")
@click.option("--write/--no-write", default=True, help="Write docs/results/<chip>.md.")
def main(evaluations: int, threads: int, seed: int, chip: str, only: str, write: bool) -> None:
    """Run the benchmark and print its table."""
    names = [n for n in only.split(",") if n] or sorted(p.stem for p in OPERATORS.glob("*.py"))
    root = ROOT / "runs" / f"bench-{time.strftime('%Y%m%d-%H%M%S')}"
    results: dict[str, dict[str, Any]] = {}
    for name in names:
        results[name] = search(
            OPERATORS / f"{name}.py", root / name, chip=chip, evaluations=evaluations, threads=threads, seed=seed
        )
        print(row(name, results[name]), f"{results[name]['wall_s']:.0f} s", file=sys.stderr, flush=True)
    command = COMMAND if not only else f"python tests/bench/operators.py --evaluations {evaluations} --only {only}"
    text = page(results, chip=chip, evaluations=evaluations, threads=threads, command=command)
    print(text)
    if write:
        target = ROOT / "docs" / "results" / f"{chip}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
