"""How well the model of a GPU that is not there ranks kernels, against their times on that GPU.

    python -m tests.bench.gpu_schedules write DIR --draws 7        # anywhere
    python -m tests.bench.gpu_rank count DIR                       # anywhere: what the model needs to know, kept in DIR
    python tests/bench/gpu_schedules.py time DIR                   # on the GPU
    python -m tests.bench.gpu_rank page DIR

``count`` treats each module as a compile-only evaluation does: one call is interpreted and counted, every launch is
compiled for the chip. It is at the sizes that were timed and takes minutes a module at worst; what is kept is not done
again, so that a change of the model (``evaluator_svc.gpu_model``) costs nothing: ``page`` asks it. Ranks are compared
by Spearman's and Kendall's coefficients, of each operator's kernels alone, because a search compares those, and of all.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import numpy as np

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
CALL_S = 900.0
"""Longest that one call may take to be interpreted."""
COUNTED = "counted.json"
FEW = 4
"""Fewer kernels of an operator than this have no coefficient of their own."""


def ranks(values: Sequence[float]) -> np.ndarray:
    """Ranks from 1, equal values sharing the mean of theirs."""
    array = np.asarray(values)
    return np.array([((array < v).sum() + (array <= v).sum() + 1) / 2 for v in array])


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Pearson's coefficient of the ranks (C. Spearman, 1904); not a number where all of one are equal."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def kendall(a: Sequence[float], b: Sequence[float]) -> float:
    """Tau-b, which allows for ties (M. Kendall, 1945); not a number where all of one are equal."""
    first, second = np.asarray(a), np.asarray(b)
    left, right = (np.sign(x[:, None] - x[None, :]) for x in (first, second))
    with np.errstate(invalid="ignore", divide="ignore"):
        return float((left * right).sum() / np.sqrt((left**2).sum() * (right**2).sum()))


def counted(module: Path) -> str:
    """One call on the operator's own inputs, interpreted: the report that the evaluator's runner would give."""
    from evaluator_svc.hosted import interpreter

    interpreter.install()
    from evaluator_svc.hosted import kernel_audit, traffic, wire

    call, tensors = _callable(module)
    with kernel_audit.Audit() as audit, traffic.Traffic() as seen:
        call(*tensors)
    return traffic.told(audit.report(), seen.kernels, wire.TEXT_BYTES)


def needed(module: Path, chip: str) -> str:
    """What its launches need of the chip: nothing is launched."""
    from evaluator_svc.hosted.offline import Offline
    from evaluator_svc.target import target_of

    target = target_of(chip)
    if target.missing is None:
        raise click.ClickException(f"{chip} is here: nothing has to be modelled")
    offline = Offline(target.backend, target.architecture, target.missing.warp)
    offline.install()
    call, tensors = _callable(module)
    call(*tensors)
    return json.dumps(offline.report())


def _callable(module: Path) -> tuple[Any, list[Any]]:
    """The module's ``ModelNew`` and its tensors, on the processor."""
    import torch

    from tests.bench.gpu_schedules import loaded

    torch.manual_seed(0)
    reference = loaded(module.with_name("operator.py"))
    model = reference.Model(*reference.get_init_inputs()).eval()
    tensors = [*reference.get_inputs(), *(p.detach() for p in model.state_dict().values())]
    torch.set_grad_enabled(False)
    return loaded(module).ModelNew(), tensors


def known(module: Path, chip: str) -> dict[str, str]:
    """What the model needs to know: the reports of ``needed`` and of ``counted``, or an ``error``."""
    said = {}
    for what in ("needed", "counted"):
        command = [sys.executable, "-m", "tests.bench.gpu_rank", what, str(module), "--chip", chip]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=CALL_S, check=False)
        except subprocess.TimeoutExpired:
            return {"error": f"{what}: more than {CALL_S:.0f} s"}
        if done.returncode != 0:
            return {"error": f"{what}: {(done.stderr.strip().splitlines() or ['no word'])[-1][:200]}"}
        said[what] = done.stdout.splitlines()[-1]
    return said


def modelled(said: Mapping[str, str], chip: str) -> dict[str, Any]:
    """The model's cost in ns, or why there is none (``error``)."""
    from evaluator_svc import gpu_model, kernel_policy, resources
    from shared import chips

    if "error" in said:
        return dict(said)
    report, sheet = resources.parse(said["needed"]), chips.load(chip)
    if report is None or sheet.gpu is None or sheet.board is None:
        return {"error": f"not to be modelled: {said['needed'][:200]}"}
    beyond = resources.beyond(report, sheet.gpu)
    if beyond is not None:
        return {"error": f"{beyond[0].value}: {beyond[1][0].value}"}
    try:
        made = gpu_model.model(
            gpu_model.parse(said["counted"]), report, kernel_policy.parse(said["counted"]), 0, sheet.gpu, sheet.board
        )
    except gpu_model.NotModelled as why:
        return {"error": str(why)}
    return {"ns": made.estimate.cost, "bound": made.diagnosis.bound.value}


def pairs(times: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, list[tuple[str, float, float]]]:
    """By operator: module, modelled and measured ms, of those that have both."""
    found: dict[str, list[tuple[str, float, float]]] = {}
    for operator, rows in model.items():
        measured = times.get(operator, {})
        both = [
            (name, said["ns"] / 1e6, measured[name])
            for name, said in sorted(rows.items())
            if "ns" in said and isinstance(measured.get(name), float)
        ]
        if both:
            found[operator] = both
    return found


def page(found: Mapping[str, Sequence[tuple[str, float, float]]], chip: str, machine: str, without: int) -> str:
    """Markdown."""
    everything = [each for rows in found.values() for each in rows]
    modelled_ms, measured_ms = [m for _, m, _ in everything], [t for _, _, t in everything]
    alone = [spearman([m for _, m, _ in r], [t for _, _, t in r]) for r in found.values() if len(r) >= FEW]
    known = [value for value in alone if not np.isnan(value)]
    ratios = np.array(modelled_ms) / np.array(measured_ms)
    headline = (
        f"**Spearman's coefficient {spearman(modelled_ms, measured_ms):.2f}, Kendall's"
        f" {kendall(modelled_ms, measured_ms):.2f}, over {len(everything)} kernels of {len(found)} operators;"
        f" within an operator Spearman's is {np.median(known):.2f} in the median** ({min(known):.2f} to"
        f" {max(known):.2f}; {len(known)} operators)."
    )
    lines = [
        f"# The model of `{chip}` against times there",
        "",
        headline,
        "",
        f"- Machine of the times: {machine}; {datetime.now(UTC):%Y-%m-%d}",
        "- Commands: those of `tests/bench/gpu_rank.py`; times are medians of Triton's `do_bench`",
        f"- {without} kernels have a time or a modelled cost alone and are left out",
        f"- Modelled over measured: {np.median(ratios):.2f} in the median, {ratios.min():.2f} to {ratios.max():.2f}",
        "",
        "*The model's choice*: the time of the kernel that the model ranks first, over the fastest one's.",
        "",
        "| operator | kernels | Spearman | Kendall | fastest ms | slowest ms | the model's choice |",
        "|---|---|---|---|---|---|---|",
    ]
    for operator, rows in found.items():
        costs, measured = [m for _, m, _ in rows], [t for _, _, t in rows]
        chosen = measured[int(np.argmin(costs))] / min(measured)
        both = [spearman(costs, measured), kendall(costs, measured)] if len(rows) >= FEW else []
        cells = ["-" if np.isnan(value) else f"{value:.2f}" for value in both] or ["-", "-"]
        spread = [f"{min(measured):.4f}", f"{max(measured):.4f}", f"{chosen:.2f}"]
        lines.append("| " + " | ".join([operator, str(len(rows)), *cells, *spread]) + " |")
    return "\n".join(lines) + "\n"


@click.group(help=__doc__)
def main() -> None:
    pass


@main.command("counted", hidden=True)
@click.argument("module", type=click.Path(path_type=Path))
@click.option("--chip")
def count_one(module: Path, chip: str) -> None:
    del chip
    click.echo(counted(module))


@main.command("needed", hidden=True)
@click.argument("module", type=click.Path(path_type=Path))
@click.option("--chip")
def compile_one(module: Path, chip: str) -> None:
    click.echo(needed(module, chip))


@main.command("count")
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--chip", default="nvidia-sm_90", show_default=True)
@click.option("--jobs", default=2, show_default=True, help="Modules at a time.")
@click.option("--only", default="", help="Comma-separated operators; all by default.")
def count_all(folder: Path, chip: str, jobs: int, only: str) -> None:
    """Interpret and compile every module that was not yet; kept in FOLDER/counted.json."""
    file = folder / COUNTED
    kept: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    names = only.split(",") if only else [each.parent.name for each in folder.glob("*/operator.py")]
    modules = [each for name in names for each in sorted((folder / name).glob("k*.py"))]
    todo = [each for each in modules if each.stem not in kept.get(each.parent.name, {})]
    with ThreadPoolExecutor(jobs) as pool:
        for module, said in zip(todo, pool.map(lambda each: known(each, chip), todo), strict=True):
            kept.setdefault(module.parent.name, {})[module.stem] = said
            file.write_text(json.dumps(kept, indent=1) + "\n")
            click.echo(f"{module.parent.name} {module.stem}: {modelled(said, chip)}")


@main.command("page")
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--chip", default="nvidia-sm_90", show_default=True)
def write_page(folder: Path, chip: str) -> None:
    """Compare with FOLDER/times.json and write docs/results/modelled-CHIP.md, and the numbers beside it."""
    counted, times = (json.loads((folder / name).read_text()) for name in (COUNTED, "times.json"))
    model = {
        operator: {name: modelled(said, chip) for name, said in rows.items()} for operator, rows in counted.items()
    }
    found = pairs(times, model)
    if not found:
        raise click.ClickException(f"{folder}: no module has both a time and a modelled cost")
    modules = sum(len(rows) for rows in model.values())
    text = page(found, chip, times.get("machine", "not told"), modules - sum(len(rows) for rows in found.values()))
    (RESULTS / f"modelled-{chip}.md").write_text(text)
    plain = {o: [{"module": n, "modelled_ms": m, "ms": t} for n, m, t in rows] for o, rows in found.items()}
    (RESULTS / f"modelled-{chip}.json").write_text(json.dumps(plain, indent=1) + "\n")
    click.echo(text)


if __name__ == "__main__":
    main()
