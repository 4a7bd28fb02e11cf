"""The operators of ``examples/operators/gpu`` on a GPU: a search each, and beside it what else could be had there.

    python -m tests.bench.gpu_operators --evaluations 64
    python -m tests.bench.gpu_operators --evaluations 64 --only softmax,row_sum --seconds 540
    python -m tests.bench.gpu_operators --page

Each search is one of the product's command line, and its numbers are the evaluator's re-measured ones. Beside it one
process times eager, ``torch.compile``, ``max-autotune``, what else is named below and the exported artefact by Triton's
``do_bench``. What was found is kept in ``docs/results/<chip>.json`` operator by operator, and no new one is begun
after ``--seconds``: the next run goes on with those that are missing, or had another number of evaluations. ``--page``
writes the page anew and runs nothing.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tests.bench.operators import OPERATORS, ROOT, gain, search

SUITE = OPERATORS / "gpu"
BESIDE = Path(__file__).with_name("gpu_beside.py")
BESIDE_S = 400.0
COLUMNS = (
    "operator", "eager µs", "compiled µs", "ours µs", "× eager", "× compiled", "interval", "of copy bandwidth",
    "trust", "bound by", "evaluations", "outcome",
)  # fmt: skip


def beside(operator: Path, artefact: str | None) -> dict[str, Any]:
    """What ``gpu_beside.py`` says, or why it says nothing."""
    command = [sys.executable, str(BESIDE), str(operator), *([artefact] if artefact else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BESIDE_S, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"more than {BESIDE_S:.0f} s"}
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def portable(result: Mapping[str, Any]) -> dict[str, Any]:
    """Without places of this machine."""
    best = {key: value for key, value in (result.get("best") or {}).items() if key != "artefact"}
    return {key: value for key, value in result.items() if key not in ("run_dir", "best")} | {"best": best or None}


def times(values: float | None) -> str:
    return "-" if values is None else f"{values:.2f}"


def row(name: str, entry: Mapping[str, Any]) -> str:
    """One line of the first table."""
    result, around = entry["result"], entry["beside"]
    best = result.get("best") or {}
    speedup, median = best.get("speedup") or {}, best.get("median_us") or {}
    us = [f"{median[key]:.1f}" if key in median else "-" for key in ("eager", "compiled", "candidate")]
    bandwidth = "-"
    if "candidate" in median and "copy_gb_s" in around:
        bandwidth = f"{around['bytes'] / median['candidate'] / 1e3 / around['copy_gb_s']:.2f}"
    interval = f"{times(speedup.get('ci_low'))} – {times(speedup.get('ci_high'))}"
    cells = [name, *us, times(speedup.get("eager")), times(speedup.get("compiled")), interval, bandwidth]
    cells += [best.get("trust", "-"), best.get("bound", "-"), str(result["evaluations"]), result["outcome"]]
    return "| " + " | ".join(cells) + " |"


def beside_row(name: str, entry: Mapping[str, Any]) -> str:
    """One line of the second table: milliseconds by ``do_bench``, all of one process."""
    around = entry["beside"]
    if "error" in around:
        return f"| {name} | {around['error'][:100]} | | | | |"
    ms = around["ms"]
    known = ("eager", "compiled", "max-autotune", "artefact")
    others = ", ".join(f"{key} {value:.4f}" for key, value in ms.items() if key not in known)
    return "| " + " | ".join([name, *(f"{ms[key]:.4f}" if key in ms else "-" for key in known), others]) + " |"


def page(kept: Mapping[str, Any], chip: str) -> str:
    """The Markdown page of everything that is kept."""
    entries: Mapping[str, Any] = kept["operators"]
    results = [entry["result"] for entry in entries.values()]
    gains = [gain(result) for result in results]
    eager = [result["best"]["speedup"]["eager"] if result["outcome"] == "improved" else 1.0 for result in results]
    improved = sum(result["outcome"] == "improved" for result in results)
    copies = [entry["beside"]["copy_gb_s"] for entry in entries.values() if "copy_gb_s" in entry["beside"]]
    copy = f"{statistics.median(copies):.0f} GB/s" if copies else "not measured"
    head = f"""# Results on `{chip}`

**Geometric mean {mean(gains):.2f}x** over {len(results)} operators against the *faster* of eager and `torch.compile`,
{mean(eager):.2f}x against eager; {improved} improved (an operator without improvement counts as 1).

- Command: `{kept["command"]}`
- Machine: {kept["machine"]}
- {kept["evaluations"]} evaluations per operator; {kept["date"]}
- Copy bandwidth, read and written: {copy}

Times are medians per call in µs under the evaluator's protocol: every call on buffers and values of its own, caches
flushed for kernel and baselines alike. *Of copy bandwidth*: inputs read once and results written once over the time, as
a share of what a large copy reaches.

"""
    tables = [[row(*each) for each in entries.items()], [beside_row(*each) for each in entries.items()]]
    first = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS), *tables[0]]
    second = [
        "| operator | eager | compiled | max-autotune | artefact | others |",
        "|---|---|---|---|---|---|",
        *tables[1],
    ]
    middle = "\n\nBeside the searches, by Triton's `do_bench` in one process per operator, ms, medians:\n\n"
    return head + "\n".join(first) + middle + "\n".join(second) + "\n"


def mean(ratios: list[float]) -> float:
    """The geometric one."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0


def machine() -> str:
    """The GPU, or the processor where there is none, torch and Triton."""
    lines = (
        "import torch, triton; from shared.machine import processor\n"
        "name = torch.cuda.get_device_name() if torch.cuda.is_available() else processor().model\n"
        "print(name, torch.__version__, triton.__version__, sep='|')"
    )
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    name, torch, triton = done.stdout.strip().split("|")
    return f"{name}; torch {torch}, Triton {triton}"


def _asked(kept: Mapping[str, Any], name: str) -> int | None:
    """How many evaluations an operator's search had; None without one."""
    asked: int | None = kept["operators"].get(name, {}).get("asked")
    return asked


@click.command()
@click.option("--evaluations", default=64, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--chip", default="nvidia-sm_90", show_default=True)
@click.option("--only", default="", help="Comma-separated operator names; all by default.")
@click.option("--seconds", default=math.inf, help="No operator is begun later than this.")
@click.option("--results", type=click.Path(path_type=Path), help="Where to keep results.  [default: docs/results]")
@click.option("--alone", is_flag=True, help="Searches only; nothing is timed beside them.")
@click.option("--page", "only_page", is_flag=True, help="Run nothing, write the page of what is kept.")
def main(
    evaluations: int,
    seed: int,
    chip: str,
    only: str,
    seconds: float,
    results: Path | None,
    alone: bool,
    only_page: bool,
) -> None:
    """Run what is missing, keep it and write the page."""
    folder = results or ROOT / "docs" / "results"
    file = folder / f"{chip}.json"
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"operators": {}}
    names = [n for n in only.split(",") if n] or sorted(p.stem for p in SUITE.glob("*.py"))
    begin = time.monotonic()
    for name in [] if only_page else [n for n in names if _asked(kept, n) != evaluations]:
        if time.monotonic() - begin > seconds:
            break
        out = ROOT / "runs" / f"bench-{chip}-{time.strftime('%Y%m%d-%H%M%S')}" / name
        operator = SUITE / f"{name}.py"
        result = search(operator, out, chip=chip, evaluations=evaluations, threads=1, seed=seed)
        around = {"error": "not run"} if alone else beside(operator, (result.get("best") or {}).get("artefact"))
        command = f"python -m tests.bench.gpu_operators --evaluations {evaluations}"
        date = f"{datetime.now(UTC):%Y-%m-%d}"
        kept |= {"command": command, "machine": machine(), "evaluations": evaluations, "date": date}
        kept["operators"][name] = {"asked": evaluations, "result": portable(result), "beside": around}
        file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        click.echo(f"{row(name, kept['operators'][name])} {result['wall_s']:.0f} s")
        click.echo(beside_row(name, kept["operators"][name]))
    if not kept["operators"]:
        raise click.ClickException(f"nothing is kept in {file}")
    text = page(kept, chip)
    file.with_suffix(".md").write_text(text, encoding="utf-8")
    click.echo(text)


if __name__ == "__main__":
    main()
