"""A small schedule space, a lowering that renders it as text, and builders for requests and evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.events import (
    PPM,
    Bound,
    Diagnosis,
    Entry,
    Evaluation,
    Roofline,
    SkillDistilled,
    SkillStatus,
    Speedup,
    Status,
    Trust,
)
from shared.operators import OperatorSpec
from synthesizer_svc.schedule.emit import Emitted
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.lowering import Target
from synthesizer_svc.schedule.proposal import Parent, Situation
from synthesizer_svc.schedule.schedule import Decision, Schedule, Space

SPACE = Space(
    decisions=(
        Decision(
            group="g0",
            name="unroll",
            values=(1, 2, 4, 8),
            default=2,
            pays_when=(Bound.COMPUTE, Bound.LATENCY),
            why="more independent chains against more registers",
        ),
        Decision(
            group="g0",
            name="stores",
            values=("cached", "streaming"),
            default="cached",
            pays_when=(Bound.MEMORY,),
            why="skips the read for ownership",
        ),
        Decision(group="g1", name="accumulators", values=(1, 2, 4), default=1, pays_when=(Bound.LATENCY,)),
        Decision(group="g1", name="layout", values=("row", "packed"), default="row"),
    )
)
KINDS = {"g0": "pointwise", "g1": "reduction"}
POINTS = 4 * 2 * 3 * 2

OPERATOR = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.rand(8)]

def get_init_inputs():
    return []
"""


def a_situation(**changes) -> Situation:
    given = {"space": SPACE, "kinds": KINDS, "chip": "cpu-x86_64", "language": "cpp", "seed": 1}
    return Situation(**(given | changes))


def a_parent(schedule: Schedule | None = None, evaluation: Evaluation | None = None, name: str = "c1") -> Parent:
    return Parent(candidate_id=name, schedule=schedule or SPACE.default(), evaluation=evaluation or measured())


def measured(bound: Bound = Bound.MEMORY, ratio: float = 1.3) -> Evaluation:
    ppm = int(ratio * PPM)
    return Evaluation(
        status=Status.PASSED,
        trust=Trust.L3,
        speedups=(Speedup(baseline="eager", ratio_ppm=ppm, low_ppm=ppm - 20_000, high_ppm=ppm + 20_000),),
        roofline=Roofline(bytes_min=1 << 20, floor_ns=100_000, fraction_ppm=430_000),
        diagnosis=Diagnosis(bound=bound, summary="as measured"),
    )


def failed(status: Status = Status.COMPILE_ERROR, why: str = "expected ;") -> Evaluation:
    return Evaluation(status=status, evidence=(Entry(name="first_error", value=why),))


def a_skill(move: str, ratio: float, *, bound: Bound = Bound.MEMORY, chip: str = "cpu-x86_64") -> SkillDistilled:
    return SkillDistilled(
        skill_id=f"skill-{move}",
        move=move,
        operator_class=move.split(":", maxsplit=1)[0],
        chip=chip,
        language="cpp",
        bound=bound,
        status=SkillStatus.SUPPORTED,
        ratio_ppm=int(ratio * PPM),
        low_ppm=int(ratio * 0.99 * PPM),
        high_ppm=int(ratio * 1.01 * PPM),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLowered:
    """Renders a schedule as a kernel that does nothing but name it."""

    target: Target
    space: Space = SPACE
    kinds: Mapping[str, str] = field(default_factory=lambda: KINDS)
    operator_class: str = "pointwise reduction"

    def render(self, schedule: Schedule) -> Emitted:
        # ``layout`` changes nothing when there is one accumulator: two schedules, one kernel.
        choices = dict(schedule.choices)
        if choices["g1.accumulators"] == 1:
            choices["g1.layout"] = "row"
        return Emitted(source=f"// {sorted(choices.items())}\nint ke_launch() {{ return 0; }}\n", flags=("-O3",))


class TextLowering:
    """A lowering that needs no compiler; counts how often it was asked and refuses the operators named."""

    def __init__(self, refuses: tuple[str, ...] = ()) -> None:
        self.asked = 0
        self._refuses = refuses

    async def lower(self, operator: OperatorSpec, target: Target) -> TextLowered:
        self.asked += 1
        if operator.ref.name in self._refuses:
            raise Unsupported("aten._fft_r2c", "no lowering for complex numbers")
        return TextLowered(target=target)
