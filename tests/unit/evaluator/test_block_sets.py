"""How many sets of buffers a process is timed on."""

from __future__ import annotations

from evaluator_svc.block_sets import sets_for
from evaluator_svc.cases import Suite
from evaluator_svc.settings import TimingSettings
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType

TIMING = TimingSettings()
L2 = 50 << 20


def suite(nbytes):
    spec = TensorSpec(shape=(nbytes,), dtype=DType.U8)
    return Suite(inputs=(spec,), outputs=(spec,), cases=())


def test_a_long_call_needs_few_sets_in_memory():
    assert sets_for(suite(1 << 20), TIMING, expected_ns=8e6) == 2


def test_on_a_gpu_they_are_enough_for_its_cache_to_have_lost_a_set_when_its_turn_comes_again():
    count = sets_for(suite(1 << 20), TIMING, expected_ns=80e6, cache_bytes=L2)
    assert count * (2 << 20) >= 2 * L2 > (count - 1) * (2 << 20)


def test_on_a_gpu_they_fill_what_its_own_setting_allows_and_no_more():
    assert sets_for(suite(1 << 28), TIMING, cache_bytes=L2) == (12 << 30) // ((2 << 28) + 128)
    assert sets_for(suite(1 << 28), TIMING) == 2


def test_small_sets_are_as_many_as_there_may_be():
    assert sets_for(suite(64), TIMING, cache_bytes=L2) == TIMING.sets_max


def test_a_smaller_gpu_holds_fewer_of_them_and_two_at_least():
    assert sets_for(suite(1 << 28), TIMING, cache_bytes=L2, memory_bytes=40 << 30) == (4 << 30) // ((2 << 28) + 128)
    assert sets_for(suite(1 << 28), TIMING, cache_bytes=L2, memory_bytes=1 << 30) == 2
    assert sets_for(suite(1 << 28), TIMING, memory_bytes=0) == 2
