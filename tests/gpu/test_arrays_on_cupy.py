"""On a GPU, CuPy's arrays are judged as NumPy's are: what the double of them in ``tests/fakes`` stands for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evaluator_svc.arrays import assign, equal, namespace
from evaluator_svc.cases import elements, widened
from evaluator_svc.judge import judge, near, within
from evaluator_svc.mutants import mutants
from evaluator_svc.mutation import accepts
from evaluator_svc.poison import POOL_BYTES, Poison
from evaluator_svc.properties import broken
from evaluator_svc.repeatability import first_difference
from evaluator_svc.written import counted
from shared.dtypes import DType
from tests.unit.evaluator.placed import KINDS, case, truth
from tests.unit.evaluator.test_device_arrays import answers
from tests.unit.evaluator.test_device_values import FLOATING, RELATIONS

try:
    import cupy
except ImportError:  # chosen by the marker alone, and then a missing one is told
    cupy = None
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow"),
    pytest.mark.skipif(cupy is None or not cupy.cuda.is_available(), reason="needs a GPU and CuPy"),
]
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture(autouse=True, scope="module")
def _by_kernels_of_our_own():
    from evaluator_svc.gpu_arrays import available  # CuPy is imported there

    assert available() == ""


def device(array):
    return None if array is None else cupy.asarray(array)


def told(verdict):
    """A verdict without the last digits of its numbers."""
    return verdict.status, [(one.name, one.value) for one in verdict.evidence if "rmse" not in one.name]


@every_kind
def test_verdicts_are_alike(kind):
    mine, theirs = truth(kind), truth(kind, device)
    for name in ("rmse", "max_error", "scale_rms", "scale_max"):
        assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=1e-9), name
    for name, data in answers(kind):
        given = device(data)
        for bitwise in (False, True):
            assert told(judge(mine, data, bitwise=bitwise)) == told(judge(theirs, given, bitwise=bitwise)), name
        assert (within(mine, data), accepts(mine, data)) == (within(theirs, given), accepts(theirs, given)), name
    rows = np.stack([data for _, data in answers(kind)])
    assert near(mine, rows).tolist() == near(theirs, device(rows)).tolist()


@every_kind
def test_mutants_are_the_same_values_but_for_roundings(kind):
    mine, theirs = dict(mutants(truth(kind))), dict(mutants(truth(kind, device)))
    assert list(mine) == list(theirs)
    for name, data in theirs.items():
        one, other = (widened(elements(each, kind.dtype), kind.dtype) for each in (mine[name], data.get()))
        assert np.allclose(one, other, rtol=1e-2, atol=1e-6, equal_nan=kind.dtype.floating), name


@pytest.mark.parametrize("kind", FLOATING)
@pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
def test_relations_have_the_same_variants_and_the_same_verdict(relation, kind):
    mine, theirs = case(KINDS[kind]), case(KINDS[kind], device)
    variants = relation.variants(mine, 7)
    for one, other in zip(variants, relation.variants(theirs, 7), strict=True):
        assert [array.tobytes() for array in one] == [array.get().tobytes() for array in other]
    for wrong in (False, True):
        outputs = [np.array(inputs[0].reshape(-1)) for inputs in variants]
        outputs[-1][-3] += wrong
        given = [[one.view(np.uint8)] for one in outputs]
        moved = [[device(one[0])] for one in given]
        assert broken(relation, mine, given, 7) == broken(relation, theirs, moved, 7)


@pytest.mark.parametrize("nbytes", [4, 4096, POOL_BYTES, 100 * POOL_BYTES + 4096])
def test_poison_is_found_where_it_was_left(nbytes):
    worker, buffer = Poison(), cupy.zeros(nbytes, cupy.uint8)
    stain = worker.apply(buffer)
    buffer[: nbytes // 8 * 4] = 1
    found = counted(worker.untouched(stain, buffer, 4))
    assert (found.first, found.count) == (nbytes // 8, nbytes // 4 - nbytes // 8)
    rows = cupy.zeros((300, 4096), cupy.uint8)
    stains = worker.apply_rows(rows)
    assert all(counted(worker.untouched(*pair, 4)).count == 1024 for pair in zip(stains, rows, strict=True))
    values = cupy.random.standard_normal(1 << 22, dtype=cupy.float32)
    before = values.copy()
    worker.nudge(values.view(cupy.uint8), DType.F32)
    assert 0.3 < float((values != before).mean()) < 0.6


def test_memory_moves_and_is_compared():
    data = np.arange(1 << 20).astype(np.uint8)
    there, back = cupy.zeros(1 << 18, cupy.float32), bytearray(1 << 20)
    assign(there, data)
    assign(back, there)
    assert bytes(back) == data.tobytes()
    assert namespace(there) is cupy
    other = there.copy()
    assert equal(there, other)
    other.view(cupy.uint8)[777_777] ^= 1
    assert first_difference(there, other) == 777_777


def test_a_large_output_is_judged():
    reference = truth(replace(KINDS["float32"], shape=(1 << 14, 1 << 12)), device)
    given = reference.declared.copy()
    assert judge(reference, given.view(cupy.uint8)).passed
    given[50_000_000] += 0.01
    entries = {one.name: one.value for one in judge(reference, given.view(cupy.uint8)).evidence}
    assert entries["first_wrong_index"] == str([50_000_000 >> 12, 50_000_000 & 4095])
