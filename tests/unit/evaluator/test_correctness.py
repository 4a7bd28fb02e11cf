"""The correctness stage's order of things, on kernels that are functions in this process."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from evaluator_svc.cases import Case, Demand, make_reference
from evaluator_svc.correctness import SETS, check
from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.ledger import Ledger
from evaluator_svc.poison import Poison
from evaluator_svc.properties import Kind, Relation
from evaluator_svc.runner.host_outputs import HostOutputs
from evaluator_svc.runner.process import Ran
from evaluator_svc.tensors import TensorSpec
from shared.contract import Contract
from shared.dtypes import DType
from shared.events import Status
from tests.unit.evaluator.references import softmax

SPEC = TensorSpec(shape=(16, 32), dtype=DType.F32)
HELD_OUT = ("scaled_up", "ties", "sorted", "uniform", "spikes", "large")


def case(name, x, *, compute=softmax, public=False, special=False, in_place=()):
    exact, declared = compute(x.astype(np.float64)), compute(x).astype(np.float32)
    demand = Demand.FINITE_PART if special else Demand.LIMITS
    reference = make_reference(SPEC, exact.reshape(-1), declared.reshape(-1), None, [], held_out=not public,
                               demand=demand)  # fmt: skip
    data = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
    return Case(name=name, public=public, specs=(SPEC,), inputs=(data,), references=(reference,), special=special,
                in_place=in_place)  # fmt: skip


def draw(seed):
    return np.random.default_rng(seed).standard_normal(SPEC.shape).astype(np.float32)


def cases(compute=softmax, **fields):
    own = [case("own inputs", draw(seed), compute=compute, public=True, **fields) for seed in (1, 2)]
    return own + [case(name, draw(7 + i) * 3, compute=compute, **fields) for i, name in enumerate(HELD_OUT)]


class InProcess(HostOutputs):
    """A launcher whose kernel is ``compute(x, y)``: it writes into ``y``."""

    def __init__(self, compute):
        self._compute = compute
        self._inputs = [bytearray(SPEC.nbytes) for _ in range(SETS)]
        self._outputs = [bytearray(SPEC.nbytes) for _ in range(SETS)]
        self.calls = 0

    def write_input(self, set_, index, data):
        self._inputs[set_][:] = memoryview(data).cast("B")

    def input_bytes(self, set_, index):
        return memoryview(self._inputs[set_])

    def output_bytes(self, set_, index):
        return memoryview(self._outputs[set_])

    def slack_intact(self):
        return None

    async def run(self, calls, first_set=0, timeout_s=10.0):
        for number in range(calls):
            self.calls += 1
            set_ = (first_set + number) % SETS
            x = np.frombuffer(self._inputs[set_], dtype=np.float32).reshape(SPEC.shape)
            self._compute(x, np.frombuffer(self._outputs[set_], dtype=np.float32).reshape(SPEC.shape))
        return Ran(elapsed_ns=1, runner_ns=1, cpu_ns=1, return_code=0)


def checked(compute, given=None, **fields):
    runner, ledger = InProcess(compute), Ledger()
    done = asyncio.run(check(runner, given or cases(), Poison(), call_s=1.0, ledger=ledger, **fields))
    return done, runner, ledger


def right(x, y):
    with np.errstate(invalid="ignore"):
        y[:] = softmax(x)


def names(verdict):
    return {entry.name for entry in verdict.evidence}


def test_a_right_kernel_passes_a_history_of_more_than_ten_calls_and_every_check_is_on_record():
    done, runner, ledger = checked(right)
    assert done.verdict.passed
    assert runner.calls >= 11
    assert [check.subject for check in ledger.checks if check.layer == Layer.JUDGE.value] == [
        f"{one.name}, output 0" for one in cases()
    ]


def test_a_failure_on_held_out_values_tells_its_kind_and_nothing_about_them():
    def wrong_when_large(x, y):
        right(x, y)
        if np.abs(x).max() > 6:
            y[3, 4] += 0.5

    done, _, _ = checked(wrong_when_large)
    assert done.verdict.status is Status.WRONG_RESULT
    assert names(done.verdict) == {"caught_by", "reason", "case"}
    assert done.saw_held_out
    for entry in done.verdict.evidence:
        assert not any(character.isdigit() for character in entry.value), entry


def test_a_failure_on_the_operators_own_inputs_tells_where():
    done, _, _ = checked(lambda x, y: y.fill(1.0))
    assert {"first_wrong_index", "got", "expected", "wrong_elements"} <= names(done.verdict)
    assert caught_by(done.verdict.evidence) is Layer.JUDGE
    assert not done.saw_held_out


CAUGHT = {
    "writes nothing": (lambda _x, _y: None, Layer.POISON, Status.WRONG_RESULT),
    "leaves a row": (lambda x, y: y.__setitem__(slice(1, None), softmax(x)[1:]), Layer.POISON, Status.WRONG_RESULT),
    "draws random numbers": (
        lambda x, y: y.__setitem__(slice(None), softmax(x) * (1 + 1e-7 * np.random.default_rng().random(SPEC.shape))),
        Layer.DETERMINISM, Status.NONDETERMINISTIC,
    ),
    "rounds to half": (
        lambda x, y: y.__setitem__(slice(None), softmax(x).astype(np.float16)), Layer.JUDGE, Status.WRONG_RESULT
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CAUGHT)
def test_the_layer_that_catches_a_kernel_is_named_first(what):
    compute, layer, status = CAUGHT[what]
    done, _, _ = checked(compute)
    assert done.verdict.status is status
    assert done.verdict.evidence[0].name == "caught_by"
    assert caught_by(done.verdict.evidence) is layer


def test_what_nan_leaves_in_a_workspace_shows_in_the_next_call():
    workspace = np.zeros(SPEC.shape, dtype=np.float32)

    def accumulates(x, y):
        np.multiply(workspace, 0, out=workspace)  # clears everything but NaN
        with np.errstate(invalid="ignore"):
            workspace[:] += softmax(x)
        y[:] = workspace

    x = draw(20)
    x[2, 3] = np.nan
    given = [*cases()[:1], case("not_finite", x, special=True), *cases()[1:]]
    done, _, _ = checked(accumulates, given)
    assert done.verdict.status is Status.NONDETERMINISTIC
    assert "calls made before" in done.verdict.evidence[1].value
    passed, _, _ = checked(right, given)
    assert passed.verdict.passed


def test_an_answer_from_before_one_element_changed_is_a_cheat():
    known: dict[bytes, np.ndarray] = {}

    def remembers(x, y):
        y[:] = known.setdefault(x[0, :4].tobytes(), softmax(x))

    x = draw(1)
    x[9, 9] = x.max()
    given = [*cases(), case("one_element_changed", x)]
    done, _, _ = checked(remembers, given)
    assert done.verdict.status is Status.CHEAT
    assert caught_by(done.verdict.evidence) is Layer.FRESH
    assert checked(right, given)[0].verdict.passed


def test_a_declared_chance_is_bounded_by_the_limits_of_the_result():
    def noisy(size):
        def compute(x, y):
            y[:] = softmax(x) * (1 + size * np.random.default_rng().random(SPEC.shape))

        return compute

    contract = Contract(nondeterministic=True)
    done, _, _ = checked(noisy(1e-7), contract=contract)
    assert done.verdict.passed
    assert done.answers == ()
    assert checked(noisy(1e-3), contract=contract)[0].verdict.status is Status.WRONG_RESULT
    assert checked(noisy(1e-7))[0].verdict.status is Status.NONDETERMINISTIC


def test_an_output_that_is_an_input_changed_in_place_begins_as_that_input():
    given = cases(compute=lambda x: x + 1, in_place=(0,))

    def adds(_, y):
        y += 1

    assert checked(adds, given)[0].verdict.passed
    assert not checked(lambda _x, _y: None, given)[0].verdict.passed


def test_bitwise_contracts_refuse_the_last_bit():
    def one_bit_off(x, y):
        y[:] = np.nextafter(softmax(x), np.float32(2))

    contract = Contract(bitwise=True)
    assert checked(right, contract=contract)[0].verdict.passed
    assert checked(one_bit_off)[0].verdict.passed
    assert checked(one_bit_off, contract=contract)[0].verdict.status is Status.WRONG_RESULT


SOFTMAX = (
    Relation(kind=Kind.SHIFTED, where=((0, 0),)),
    Relation(kind=Kind.PERMUTED, where=((0, 0),), axis=0),
    Relation(kind=Kind.PERMUTED, where=((0, 1),), axis=1),
    Relation(kind=Kind.INDEPENDENT, where=((0, 0),), axis=0),
    Relation(kind=Kind.ROW_SUM, constant=1.0),
)


def knows_its_cases(spoil):
    """Right on every case of the suite, which it recognises, and ``spoil``ed on what else it is given."""
    known = {one.inputs[0].tobytes() for one in cases()}

    def compute(x, y):
        right(x, y)
        if x.tobytes() not in known:
            spoil(x, y)

    return compute


def test_a_right_kernel_keeps_to_every_relation():
    done, _, ledger = checked(right, relations=SOFTMAX)
    assert done.verdict.passed, done.verdict.evidence
    assert sum(check.subject.startswith("property") for check in ledger.checks) == len(SOFTMAX)


@pytest.mark.parametrize("relation", SOFTMAX[:4], ids=lambda relation: relation.name)
def test_relations_catch_without_an_answer_what_is_right_on_known_cases_alone(relation):
    def spoil(x, y):
        y[:] = y[::-1, ::-1] + x.max() * 1e-3

    done, _, _ = checked(knows_its_cases(spoil), relations=(relation,))
    assert done.verdict.status is Status.WRONG_RESULT
    assert "breaks a property" in done.verdict.evidence[1].value
    assert caught_by(done.verdict.evidence) is Layer.JUDGE
