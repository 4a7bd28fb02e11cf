"""Poison, relations, flips, repeated runs and admission say the same where the arrays lie on a device."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from evaluator_svc import arrays, poison
from evaluator_svc.admission import admit
from evaluator_svc.cases import Suite, elements, narrowed, widened
from evaluator_svc.freshness import Flip, Fresh, Values, borrow, right, shows
from evaluator_svc.oracle import Oracle
from evaluator_svc.poison import POOL_BYTES, Poison
from evaluator_svc.properties import Kind as Property
from evaluator_svc.properties import Relation, broken
from evaluator_svc.repeatability import first_difference, unequal
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.written import counted, over_runs, unwritten
from shared.dtypes import DType
from shared.errors import OperatorError
from shared.events import OperatorRef
from tests.fakes.device_arrays import DeviceArray, device
from tests.unit.evaluator.placed import KINDS, Kind, case, here

FLOATING = ("float32", "float64", "float16", "bfloat16")
INTEGRAL = ("int64", "int32", "uint8", "bool")


@pytest.fixture(autouse=True)
def _several_chunks(monkeypatch):
    monkeypatch.setattr(arrays, "CHUNK", 64)
    monkeypatch.setattr(arrays, "DEVICE_CHUNK", 100)
    monkeypatch.setattr(poison, "DEVICE_BYTES", POOL_BYTES)


@pytest.mark.parametrize("nbytes", [4, 4096, POOL_BYTES, 2 * POOL_BYTES + 4096])
def test_a_devices_buffer_that_nobody_wrote_to_holds_its_poison_and_what_was_written_is_named(nbytes):
    worker, buffer = Poison(), device(np.zeros(nbytes, np.uint8))
    stain = worker.apply(buffer)
    copy = buffer.get()
    assert all(bool(part.all()) for part in worker.untouched(stain, buffer, 4))
    assert all(part.all() for part in worker.untouched(stain, memoryview(copy), 4))
    written = nbytes // 8 // 4 * 4
    copy[:written] = 1
    buffer[:written] = 1
    mine, theirs = (counted(worker.untouched(stain, one, 4)) for one in (copy, buffer))
    assert mine == theirs
    assert (mine.first, mine.count) == (written // 4, (nbytes - written) // 4)
    spec = TensorSpec(shape=(nbytes // 4,), dtype=DType.F32)
    assert unwritten(spec, mine, by_chance=0) == unwritten(spec, theirs, by_chance=0) is not None


def test_what_three_runs_on_a_device_left_alone_is_told():
    worker, buffers = Poison(), [device(np.zeros(4096, np.uint8)) for _ in range(3)]
    stains = [worker.apply(one) for one in buffers]
    for number, one in enumerate(buffers):
        one[: 400 + 4 * number] = 7
    found, some = over_runs([worker.untouched(*pair, 4) for pair in zip(stains, buffers, strict=True)])
    assert (found.first, found.count, some) == (102, 922, 2)


@pytest.mark.parametrize("shape", [(1, 4096), (1500, 64), (5, 1 << 17)])
def test_a_devices_rows_get_poison_each_and_nothing_around_them(shape):
    worker, whole = Poison(), device(np.zeros((shape[0], shape[1] + 64), np.uint8))
    rows = whole[:, 64:]
    stains = worker.apply_rows(rows)
    for row, stain in list(zip(rows, stains, strict=True))[:: max(1, shape[0] // 20)]:
        assert all(bool(part.all()) for part in worker.untouched(stain, row, 4))
    assert len({row.tobytes() for row in rows.get()}) == shape[0]
    assert not whole[:, :64].get().any()


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
def test_a_devices_values_are_nudged_in_their_last_bit_only_and_round_numbers_stay(dtype):
    values = np.random.default_rng(1).standard_normal(100_000).astype(f"f{dtype.itemsize}")
    values[::10] = [0.0, 1.0, -0.5, np.inf, -2.0] * 2000
    buffer = device(values)
    Poison().nudge(buffer.view(np.uint8), dtype)
    flipped = buffer.get().view(f"u{dtype.itemsize}") ^ values.view(f"u{dtype.itemsize}")
    assert set(np.unique(flipped)) == {0, 1}
    assert not flipped[::10].any()
    assert 0.3 < flipped.mean() < 0.6


RELATIONS = {
    "affine": Relation(kind=Property.AFFINE, where=((0, 0),)),
    "homogeneous": Relation(kind=Property.HOMOGENEOUS, where=((0, 0),), degree=1),
    "shifted": Relation(kind=Property.SHIFTED, where=((0, 0),)),
    "rows permuted": Relation(kind=Property.PERMUTED, where=((0, 0),), axis=0),
    "columns permuted": Relation(kind=Property.PERMUTED, where=((0, 1),), axis=1),
    "no matter": Relation(kind=Property.PERMUTED, where=((0, 1),)),
    "independent": Relation(kind=Property.INDEPENDENT, where=((0, 0),), axis=0),
    "row sum": Relation(kind=Property.ROW_SUM, constant=3.0),
}


@pytest.mark.parametrize(
    ("relation", "kind"),
    [(name, kind) for name in RELATIONS for kind in FLOATING]
    + [(name, kind) for name in ("rows permuted", "no matter", "independent") for kind in ("int64", "bool")],
)
def test_relations_have_the_same_variants_and_the_same_verdict(relation, kind):
    relation = RELATIONS[relation]
    mine, theirs = case(KINDS[kind]), case(KINDS[kind], device)
    variants = relation.variants(mine, 7)
    for one, other in zip(variants, relation.variants(theirs, 7), strict=True):
        assert [array.tobytes() for array in one] == [array.get().tobytes() for array in other]
    for wrong in (False, True):
        outputs = [np.array(inputs[0].reshape(-1)) for inputs in variants]  # the operator that gives what it gets
        outputs[-1][-3] += wrong
        given = [[one.view(np.uint8)] for one in outputs]
        moved = [[device(one[0])] for one in given]
        assert broken(relation, mine, given, 7) == broken(relation, theirs, moved, 7)
        spec = mine.references[0].spec
        assert relation.deviation(outputs, spec, 7) == relation.deviation([*map(device, outputs)], spec, 7)


def flipped(kind: Kind, place):
    """A case with borrowed limits and a flip: element 3 takes the value of 200, and two elements of the answer move."""
    models = [case(kind, place, seed) for seed in (1, 2)]
    one = case(kind, here, 3)
    declared = one.references[0].declared
    at = np.array([5, 470], np.int64)
    values = widened(declared[at], kind.dtype)
    after = narrowed(values + 1 if kind.dtype.floating else 1 - (values > 0), kind.dtype)
    reference = borrow(one.references[0].spec, place(declared), [model.references[0] for model in models])
    moved = replace(one, inputs=tuple(map(place, one.inputs)), references=(reference,))
    flip = Flip(input=0, to=3, source=200, changed=((place(at), place(after)),))
    answer = declared.copy()
    answer[at] = after
    return Values(fresh=Fresh(case=moved, seed=None, state_seed=None, flips=(flip,)), flip=flip), declared, answer


@pytest.mark.parametrize("kind", [*FLOATING, *INTEGRAL, "bits of bfloat16", "special values"])
def test_a_flip_shows_and_is_judged_alike(kind):
    mine, declared, answer = flipped(KINDS[kind], here)
    theirs, _, _ = flipped(KINDS[kind], device)
    assert shows(mine.flip, mine.fresh.case.references) == shows(theirs.flip, theirs.fresh.case.references)
    assert mine.element() == theirs.element()
    assert mine.fresh.nbytes == theirs.fresh.nbytes
    assert mine.fresh.case.nbytes == theirs.fresh.case.nbytes
    one, other = (values.fresh.case.references[0] for values in (mine, theirs))
    assert one.scale_rms == pytest.approx(other.scale_rms, rel=1e-12)
    assert (one.finite, one.scale_max, one.rmse, one.max_error) == (
        other.finite, other.scale_max, other.rmse, other.max_error,
    )  # fmt: skip
    verdicts = []
    for output in (declared, answer):
        data, given = output.view(np.uint8).copy(), device(output.view(np.uint8))
        for before, values, where in ((mine, mine, data), (theirs, theirs, given)):
            verdicts.append((right(values, [where]), right(replace(before, flip=None), [where])))
        assert data.tobytes() == output.tobytes() == given.get().tobytes()
    assert verdicts[0] == verdicts[1] == (False, True)
    assert verdicts[2] == verdicts[3] == (True, False)


def test_the_first_unequal_byte_of_two_runs_on_a_device_is_told():
    one = case(KINDS["bfloat16"], device)
    first = one.references[0].declared.get().view(np.uint8)
    second = first.copy()
    assert first_difference(device(first), device(second)) is None
    assert unequal(one, [device(first)], [device(second)], "why") is None
    second[301] ^= 1
    assert first_difference(device(first), device(second)) == 301
    mine = unequal(case(KINDS["bfloat16"]), [first], [second], "why")
    assert mine == unequal(one, [device(first)], [device(second)], "why")
    assert mine is not None


class Answers:
    """An oracle whose operator doubles its input; ``blind``: or one that does not look at it."""

    def __init__(self, place, *, blind=False):
        self._place, self._blind = place, blind

    async def case(self, seed):
        return doubled(self._place, seed % 97), ""

    async def repeats(self, seed):
        return True, ()

    async def wrong_names(self):
        return ("tripled", "as it is")

    async def wrong(self, one, mutant):
        reference = one.references[0]
        return (reference.declared * np.float32(1.5) if mutant == "tripled" else reference.declared.copy(),)

    async def perturbed(self, seed, other, index):
        of = doubled(self._place, seed % 97 + (not self._blind))
        return (of.references[0].declared,)


def doubled(place, seed):
    return case(replace(KINDS["float32"], shape=(12, 40)), place, seed, f"case {seed}")


def suite(place, seeds):
    cases = tuple(doubled(place, seed) for seed in seeds)
    return Suite(inputs=cases[0].specs, outputs=(cases[0].references[0].spec,), cases=cases)


def admitted(place, seeds=(1, 2, 3), **how):
    found = asyncio.run(admit(Answers(place, **how), suite(place, seeds), where="here"))  # type: ignore[arg-type]
    return found.score, found.summary, [one.core for one in found.suite.cases]


def test_an_operator_is_admitted_on_the_same_score():
    assert admitted(here) == admitted(device)


@pytest.mark.parametrize(
    ("how", "reason"), [({"seeds": (1, 1, 1)}, "is constant"), ({"blind": True}, "does not depend on input 0")]
)
def test_an_operator_is_refused_alike(how, reason):
    for place in (here, device):
        with pytest.raises(OperatorError, match=reason):
            admitted(place, **how)


class Child:
    """A trusted child that writes one block of float32 and says where."""

    async def ask(self, action, **fields):
        with open(fields["path"], "wb") as file:  # noqa: ASYNC230, PTH123 - the child's own
            file.write(np.arange(6, dtype=np.float32).tobytes())
        return {"blocks": [{"role": "declared", "shape": [2, 3], "dtype": "float32", "offset": 0}]}


def test_an_oracle_places_what_it_is_answered(tmp_path):
    oracle = Oracle(Child(), OperatorRef(name="", source_hash=""), tmp_path, timeout_s=1, placed=device)  # type: ignore[arg-type]
    (output,) = asyncio.run(oracle.perturbed(1, 2, 0))
    assert isinstance(output, DeviceArray)
    assert elements(output.view(np.uint8), DType.F32).get().tolist() == [0, 1, 2, 3, 4, 5]
