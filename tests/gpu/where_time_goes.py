"""Where an evaluation's time goes: wall time of the controller's functions, as a tree of who called whom.

    python -m tests.gpu.where_time_goes examples/operators/gpu/softmax.py KERNEL --chip nvidia-sm_90 --times 3

``KERNEL`` is a file as ``kernelevolve evaluate`` takes it. Each of ``--times`` evaluations is told apart, because the
first pays for what a worker does once. Printed are, of each: its stages, its blocks, and seconds and number of calls
of each of the evaluator's functions under its caller. A function that waits for the device holds the wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import functools
import inspect
import json
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Self

import click

from cli.chip_option import chip_id
from cli.submitted import read_kernel, read_problems
from cli.verdicts import Asked, flags_of, verdicts
from evaluator_svc.ledger import Stage
from shared import chips
from shared.events import Purpose

OURS = ("evaluator_svc", "shared")


class Watch:
    """Wall time by who called whom: every function of ours is wrapped while it lives.

    A stack that is sampled instead is cheaper, but reading the frames of a thread that is in a driver ended in a
    segmentation fault (Python 3.12), and a sample does not tell one long call from a thousand short ones.
    """

    def __init__(self) -> None:
        self._path: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("path", default=())
        self.seconds: defaultdict[tuple[str, ...], float] = defaultdict(float)
        self.calls: Counter[tuple[str, ...]] = Counter()
        self._wrapped: dict[int, Callable[..., Any]] = {}

    def over(self, packages: Sequence[str]) -> Self:
        """Wrap what these packages have loaded, in each namespace that names it."""
        modules = [module for name, module in list(sys.modules.items()) if name.split(".")[0] in packages]
        for module in modules:
            self._wrap_all(module, packages)
        return self

    def _wrap_all(self, space: Any, packages: Sequence[str]) -> None:
        for name, value in list(vars(space).items()):
            if not str(getattr(value, "__module__", "")).startswith(tuple(packages)) or name.startswith("__"):
                continue
            if isinstance(value, FunctionType):
                setattr(space, name, self._wrap(value))
            elif isinstance(value, type) and isinstance(space, ModuleType) and space.__name__ == value.__module__:
                self._wrap_all(value, packages)

    def _wrap(self, function: FunctionType) -> Callable[..., Any]:
        if id(function) in self._wrapped or function in self._wrapped.values():
            return self._wrapped.get(id(function), function)
        name = f"{function.__module__.partition('.')[2]}:{function.__qualname__}"
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self._told(name):
                    return await function(*args, **kwargs)

        elif inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            return function
        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self._told(name):
                    return function(*args, **kwargs)

        self._wrapped[id(function)] = wrapper
        return wrapper

    @contextlib.contextmanager
    def _told(self, name: str) -> Iterator[None]:
        path = (*self._path.get(), name)
        token, begin = self._path.set(path), time.perf_counter()
        try:
            yield
        finally:
            self.seconds[path] += time.perf_counter() - begin
            self.calls[path] += 1
            self._path.reset(token)

    def rows(self, least_s: float) -> Iterator[str]:
        """As a tree, callers first; what took less than ``least_s`` in all is left out."""
        for path in sorted(self.seconds):
            if self.seconds[path] >= least_s:
                yield f"{self.seconds[path]:8.3f} s {self.calls[path]:6d}  {'. ' * (len(path) - 1)}{path[-1]}"
        self.seconds.clear()
        self.calls.clear()


def _blocks(calls: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Per process and contestant what a block costs besides its calls, and what a call costs: a line through them."""
    blocks: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for call in calls:
        if call["stage"] == Stage.BLOCK:
            blocks.setdefault((call["process"], call["contestant"]), []).append((call["calls"], call["controller_ns"]))
    for (process, contestant), found in sorted(blocks.items()):
        lengths, times = zip(*found, strict=True)
        if len(set(lengths)) > 1:
            line = statistics.linear_regression(lengths, times)
            yield (
                f"process {process}, {contestant}: {len(found)} blocks of {min(lengths)} to {max(lengths)} calls, "
                f"{line.intercept / 1e3:.0f} us and {line.slope / 1e3:.1f} us a call"
            )


@click.command()
@click.argument("operator", type=click.Path(path_type=Path))
@click.argument("kernel", type=click.Path(path_type=Path))
@click.option("--chip", callback=chip_id, default="cpu-x86_64")
@click.option("--language", default="")
@click.option("--times", default=3, show_default=True)
@click.option("--final", is_flag=True)
@click.option("--least", "least_s", default=0.02, show_default=True, help="Leave out what took less, in s.")
@click.option("--ledgers", type=click.Path(path_type=Path), help="A directory for the ledger of each evaluation.")
def main(**options: Any) -> None:
    asyncio.run(_run(**options))


async def _run(
    operator: Path,
    kernel: Path,
    chip: str,
    language: str,
    times: int,
    final: bool,
    least_s: float,
    ledgers: Path | None,
) -> None:
    purpose = Purpose.FINAL if final else Purpose.SEARCH
    sheet, problems = chips.load(chip), read_problems(operator, "all", None)
    submitted = read_kernel(kernel, problems, sheet, language=language, entry="")
    one = Asked(problem=problems[0], kernel=submitted.kernels[0], flags=flags_of(submitted.kernels[0], (), sheet))
    found = verdicts([one] * times, chip, 1, purpose, lambda _: None)
    import_module("deploy.embedded")  # what `verdicts` imports when it is asked first
    watch = Watch().over(OURS)
    for number in range(times):
        begin = time.monotonic()
        made = await anext(found)
        seconds, evaluation = time.monotonic() - begin, made.evaluation
        spent = dataclasses.asdict(evaluation.stages) if evaluation.stages else {}
        stages = ", ".join(f"{name.removesuffix('_ns')} {ns / 1e9:.2f}" for name, ns in spent.items() if ns)
        click.echo(f"\n=== evaluation {number + 1}: {evaluation.status.value}, {seconds:.2f} s ({stages})")
        for entry in evaluation.evidence:
            click.echo(f"    {entry.name}: {entry.value[:160]}")
        if ledgers is not None:
            ledgers.mkdir(parents=True, exist_ok=True)
            (ledgers / f"{number + 1}.json").write_text(json.dumps(made.ledger))
        for line in _blocks((made.ledger or {}).get("calls", [])):
            click.echo(f"  {line}")
        for row in watch.rows(least_s):
            click.echo(f"  {row}")


if __name__ == "__main__":
    main()
