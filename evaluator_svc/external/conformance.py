"""Whether a vendor's adapter keeps the contract: tried on kernels of ``x + b`` that its sheet names.

Each requirement ends with a sentence, and a broken one with how to mend it. The judge is the one of all kernels.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from evaluator_svc.canary import Finding
from evaluator_svc.cases import Case, make_reference
from evaluator_svc.correctness import SETS, check
from evaluator_svc.external import costs
from evaluator_svc.external.process import ExternalRunner
from evaluator_svc.external.toolchain import ABSENT, ExternalToolchain, tools_of
from evaluator_svc.judge import Verdict
from evaluator_svc.ledger import Ledger
from evaluator_svc.poison import Poison
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import BuildFailed, Built
from shared import chips
from shared.chips import ChipSheet
from shared.chips.external import Check, External
from shared.dtypes import DType
from shared.errors import Fatal, UserError
from shared.events import Entry, Status
from shared.events.evaluation import CAUGHT_BY

SHAPES = ((1, 1), (7, 65), (16, 256), (3, 1000))
"""Of ``x``: one element, ragged tails, whole vectors."""
LARGER = (64, 256)
"""Four times the third: more work must cost more."""
NO_CHECK = "add [external.check] with kernels for it: docs/chips.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one requirement came to. ``mend`` says how, where it is broken."""

    requirement: str
    kept: bool
    said: str
    mend: str = ""

    def __str__(self) -> str:
        tail = f" ({self.mend})" if self.mend else ""
        return f"{'ok  ' if self.kept else 'FAIL'}  {self.requirement}: {self.said}{tail}"


class Broken(Exception):
    """A requirement is not met."""

    def __init__(self, said: str, mend: str) -> None:
        self.said, self.mend = said, mend
        super().__init__(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    sheet: ChipSheet
    tools: External
    check: Check
    toolchain: ExternalToolchain

    def runner(self, built: Built, shape: tuple[int, int], sets: int = SETS) -> ExternalRunner:
        x, b = specs(shape)
        return ExternalRunner(
            built.path,
            (x, b),
            (x,),
            tools=self.tools,
            chip=self.sheet.id,
            language=self.check.language,
            sets=sets,
        )

    async def build(self, name: str, *, fresh: bool = False) -> Built | BuildFailed:
        """``fresh``: a text that no cache of artefacts has."""
        text = (self.tools.folder / self.check.kernels[name]).read_text(encoding="utf-8")
        if fresh:
            text += "\n" * (1 + secrets.randbelow(1 << 12))
        return await self.toolchain.build(text, self.check.flags, language=self.check.language)

    async def built(self, name: str) -> Built:
        made = await self.build(name)
        if isinstance(made, BuildFailed):
            raise Broken(f"kernel `{name}` was not built: {told(made.evidence)}", "mend the kernel, or `build`")
        return made

    async def verdict(self, name: str, shapes: Sequence[tuple[int, int]]) -> Verdict:
        """The first that is not PASSED, of every shape in turn."""
        built, verdict = await self.built(name), Verdict()
        for shape in shapes:
            runner = self.runner(built, shape)
            checked = await check(runner, cases(shape), Poison(), call_s=self.tools.run.time_s, ledger=Ledger())
            verdict = checked.verdict
            if not verdict.passed:
                break
        return verdict


async def conformance(sheet: ChipSheet, only: Collection[str] = ()) -> AsyncIterator[Line]:
    """Every requirement in turn, or those named; without a kernel that is built and right, none of the later ones."""
    tools = sheet.external
    if tools is None:
        yield Line(requirement="sheet", kept=False, said="it has no table [external]", mend=ABSENT)
        return
    if tools.check is None:
        yield Line(requirement="sheet", kept=False, said="it names no kernels to try", mend=NO_CHECK)
        return
    yield Line(
        requirement="sheet",
        kept=True,
        said=f"chip `{sheet.id}`, {', '.join(sheet.languages)}; {tools.metric} are {tools.basis}, in {tools.unit}",
    )
    missing = chips.missing_tools(sheet)
    wanted = ", ".join(sheet.needs) or "nothing"
    yield Line(
        requirement="tools",
        kept=not missing,
        said=f"not on PATH: {', '.join(missing)}" if missing else f"{wanted} on PATH",
        mend="; ".join(missing.values()),
    )
    if missing:
        return
    tried = _Tried(sheet=sheet, tools=tools, check=tools.check, toolchain=ExternalToolchain(sheet=sheet))
    for name, requirement in REQUIREMENTS.items():
        if name == "build refuses" and not tools.check.broken:
            continue
        if only and name not in only:
            continue
        line = await _line(name, requirement, tried)
        yield line
        if name in ("build", "run") and not line.kept:
            return


async def probe(sheet: ChipSheet) -> Finding:
    """A worker's trial of its adapter: the right kernel, built anew, passes, and the wrong one does not."""
    begun, tools = time.monotonic(), tools_of(sheet)
    if tools.check is None:
        return Finding()
    tried = _Tried(sheet=sheet, tools=tools, check=tools.check, toolchain=ExternalToolchain(sheet=sheet))
    fault = ""
    for name, requirement in (("build", _builds), ("run", _right_once), ("run tells wrong", _wrong)):
        line = await _line(name, requirement, tried)
        fault = fault or ("" if line.kept else f"{line.requirement}: {line.said}")
    return Finding(fault=fault, tried=("right", "wrong"), seconds=time.monotonic() - begun)


async def _line(name: str, requirement: Callable[[_Tried], Awaitable[str]], tried: _Tried) -> Line:
    try:
        return Line(requirement=name, kept=True, said=await requirement(tried))
    except Broken as broken:
        return Line(requirement=name, kept=False, said=broken.said, mend=broken.mend)
    except UserError as error:
        where = error.where.partition("command ")[2]
        said = f"{where} {error.what}" if where else error.what
        return Line(requirement=name, kept=False, said=said, mend=error.hint)
    except (Fatal, OSError) as error:
        return Line(requirement=name, kept=False, said=f"{type(error).__name__}: {error}")


async def _builds(tried: _Tried) -> str:
    begin = time.monotonic()
    made = await tried.build("right", fresh=True)
    if isinstance(made, BuildFailed):
        late = made.status is Status.TIMEOUT
        mend = "raise [external.build] time_s, or see why it does not end" if late else "mend the kernel, or `build`"
        raise Broken(f"the right kernel was not built: {told(made.evidence)}", mend)
    return f"the right kernel is built, {made.path.stat().st_size} bytes, {time.monotonic() - begin:.1f} s"


async def _refuses(tried: _Tried) -> str:
    made = await tried.build("broken", fresh=True)
    if isinstance(made, Built):
        raise Broken("a text that is no program was built", 'answer {"status": "error", "message": …}')
    if made.status is not Status.COMPILE_ERROR:
        raise Broken(f"a text that is no program ended as {made.status.value}", 'answer {"status": "error", …}')
    return f"a text that is no program is refused: {told(made.evidence)}"


async def _right(tried: _Tried) -> str:
    begin = time.monotonic()
    await _expect_right(tried, SHAPES)
    return f"the right kernel is right on {len(SHAPES)} shapes, {time.monotonic() - begin:.1f} s"


async def _right_once(tried: _Tried) -> str:
    await _expect_right(tried, SHAPES[1:2])
    return "the right kernel is right"


async def _expect_right(tried: _Tried, shapes: Sequence[tuple[int, int]]) -> None:
    verdict = await tried.verdict("right", shapes)
    if verdict.passed:
        return
    mends = {
        Status.TIMEOUT: "it has to end: raise [external.run] time_s, or see what it waits for",
        Status.WRONG_RESULT: "give the kernel the `before` files as they are, and write what it wrote",
        Status.RUNTIME_ERROR: "see why the tool says so of a kernel that is right",
        Status.MUTATED_INPUT: "write inputs back as they are, or leave `inputs_back` out",
    }
    raise Broken(
        f"the right kernel ended as {verdict.status.value}: {told(verdict.evidence)}",
        mends.get(verdict.status, "a right kernel passes"),
    )


async def _idle(tried: _Tried) -> str:
    """Poison is what shows that a kernel did not write: it has to reach the kernel's buffer."""
    built = await tried.built("idle")
    shape = SHAPES[1]
    runner, case, poison = tried.runner(built, shape, 1), cases(shape)[0], Poison()
    for index, data in enumerate(case.inputs):
        runner.write_input(0, index, data)
    poison.apply(runner.output_bytes(0, 0))
    before = bytes(runner.output_bytes(0, 0))
    ran = await runner.run(1)
    if isinstance(ran, RunFailure):
        raise Broken(f"a kernel that writes nothing ended as {ran.status.value}: {told(ran.evidence)}", "let it return")
    if bytes(runner.output_bytes(0, 0)) != before:
        raise Broken(
            "an output that the kernel did not write holds something else than before",
            "fill each output's buffer from its `before` file",
        )
    return "what a kernel does not write is handed back as it was"


async def _wrong(tried: _Tried) -> str:
    verdict = await tried.verdict("wrong", SHAPES[1:2])
    if verdict.status is not Status.WRONG_RESULT:
        raise Broken(
            f"the wrong kernel ended as {verdict.status.value}: {told(verdict.evidence)}",
            "write what the kernel wrote, whatever it is",
        )
    return "the wrong kernel is told from the right one"


async def _crashes(tried: _Tried) -> str:
    begin = time.monotonic()
    verdict = await tried.verdict("crashes", SHAPES[1:2])
    if verdict.status is not Status.RUNTIME_ERROR:
        raise Broken(
            f"the crashing kernel ended as {verdict.status.value}: {told(verdict.evidence)}",
            'answer {"status": "crashed", "message": …} and exit with 0',
        )
    return f"{told(verdict.evidence)}, after {time.monotonic() - begin:.1f} s"


async def _hangs(tried: _Tried) -> str:
    verdict = await tried.verdict("hangs", SHAPES[1:2])
    if verdict.status is not Status.TIMEOUT:
        raise Broken(
            f"the hanging kernel ended as {verdict.status.value}: {told(verdict.evidence)}",
            "let it run: the command is ended after [external.run] time_s",
        )
    return f"the hanging kernel is ended after {tried.tools.run.time_s:g} s"


async def _profiles(tried: _Tried) -> str:
    found = await _cost(tried, SHAPES[2])
    assert found.estimate is not None
    again = (
        f"{tried.tools.repeat} profiles agree" if tried.tools.basis == "counted" else f"{tried.tools.repeat} profiles"
    )
    return f"{found.estimate.cost} {found.estimate.unit}; {again}"


async def _grows(tried: _Tried) -> str:
    small, large = await _cost(tried, SHAPES[2]), await _cost(tried, LARGER)
    assert small.estimate is not None
    assert large.estimate is not None
    if large.estimate.cost <= small.estimate.cost:
        raise Broken(
            f"four times the elements cost {large.estimate.cost}, not more than {small.estimate.cost}",
            f"is `{tried.tools.metric}` the cost of the kernel's call?",
        )
    return f"four times the elements cost {large.estimate.cost / small.estimate.cost:.2f} times as much"


REQUIREMENTS: dict[str, Callable[[_Tried], Awaitable[str]]] = {
    "build": _builds,
    "build refuses": _refuses,
    "run": _right,
    "run fills outputs": _idle,
    "run tells wrong": _wrong,
    "run tells a crash": _crashes,
    "run ends": _hangs,
    "profile": _profiles,
    "profile grows": _grows,
}
"""By name, in the order in which they are tried; the sheet and the tools that it needs go before."""


async def _cost(tried: _Tried, shape: tuple[int, int]) -> costs.Costed:
    runner = tried.runner(await tried.built("right"), shape, 1)
    found = await costs.cost(runner, cases(shape)[0], (), Poison(), tried.tools, tried.sheet.id)
    if not found.verdict.passed:
        mend = {
            Status.TIMEOUT: "raise [external.profile] time_s, or see what it waits for",
            Status.NONDETERMINISTIC: 'count what the kernel does alone; else basis = "modelled"',
        }
        raise Broken(
            f"the right kernel ended as {found.verdict.status.value} when profiled: {told(found.verdict.evidence)}",
            mend.get(found.verdict.status, "`profile` runs the kernel as `run` does, and writes its outputs"),
        )
    return found


def specs(shape: tuple[int, int]) -> tuple[TensorSpec, TensorSpec]:
    """Of ``x`` and ``b``."""
    return TensorSpec(shape=shape, dtype=DType.F32), TensorSpec(shape=shape[1:], dtype=DType.F32)


def cases(shape: tuple[int, int], count: int = 2) -> list[Case]:
    """``x + b`` on values that were never used before, with answers made by numpy."""
    generator = np.random.default_rng(secrets.randbits(128))
    made, (x_spec, b_spec) = [], specs(shape)
    for number in range(count):
        x = generator.standard_normal(shape).astype(np.float32)
        b = generator.standard_normal(shape[1]).astype(np.float32)
        exact = (x.astype(np.float64) + b.astype(np.float64)).reshape(-1)
        low = (x.astype(np.float16).astype(np.float32) + b.astype(np.float16).astype(np.float32)).reshape(-1)
        reference = make_reference(x_spec, exact, (x + b).reshape(-1), None, [("float16", low)])
        inputs = tuple(np.frombuffer(array.tobytes(), dtype=np.uint8) for array in (x, b))
        name = f"conformance {number}"
        made.append(Case(name=name, public=True, specs=(x_spec, b_spec), inputs=inputs, references=(reference,)))
    return made


def told(evidence: Sequence[Entry]) -> str:
    """In a line, without the layer that caught it."""
    said = "; ".join(f"{entry.name} {entry.value}" for entry in evidence if entry.name != CAUGHT_BY)
    return " ".join(said.split())[:300] or "no reason was given"
