"""What a hosted kernel returned, told on the shared page: like what came before or not, it is told as it is."""

from __future__ import annotations

import mmap

import pytest
import torch

from evaluator_svc.hosted import wire
from evaluator_svc.hosted.results_page import PLACES_MAX, ResultsPage
from evaluator_svc.hosted.wire import Claim

SETS, HANDLE = 3, bytes(range(64))
CODES = {torch.float32: 0, torch.float64: 1}


class Device:
    """The host's memory, all of it one allocation from 0 on. ``asked``: the addresses it was asked for."""

    NAME = "cpu"

    def __init__(self) -> None:
        self.asked: list[int] = []

    def address(self, tensor):
        return tensor.data_ptr()

    def share(self, address):
        self.asked.append(address)
        return HANDLE, address


class Told:
    """A page of ``outputs`` results a set, and what a reader finds there."""

    def __init__(self, outputs=1, *, shares=False):
        self.outputs, self.device = outputs, Device()
        places = SETS * outputs
        self.page = memoryview(mmap.mmap(-1, wire.page_bytes(places, kept=shares)))
        self.results = ResultsPage(
            self.page, sets=SETS, outputs=outputs, codes=CODES, device=self.device, shares=shares
        )

    def block(self, *returned):
        self.results.forget()
        return self.results.tell(enumerate(returned))

    def read(self, set_, output=0):
        return wire.unpack(bytes(self.page), set_ * self.outputs + output)

    def shared(self, set_):
        return wire.shared(bytes(self.page), SETS * self.outputs, set_ * self.outputs)


def test_every_set_is_told_with_the_place_of_its_own_result() -> None:
    told, block = Told(), [[torch.empty(2, 3)] for _ in range(SETS)]
    assert not told.block(*block)
    assert not told.block(*block)
    for set_, (one,) in enumerate(block):
        found = told.read(set_)
        assert (found.claim, found.dtype, found.shape, found.strides) == (Claim.TENSOR, 0, (2, 3), (3, 1))
        assert found.address == one.data_ptr()


@pytest.mark.parametrize(
    ("other", "claim", "shape", "strides"),
    [
        (torch.empty(3, 2), Claim.TENSOR, (3, 2), (2, 1)),
        (torch.empty(3, 2).t(), Claim.TENSOR, (2, 3), (1, 2)),
        (torch.empty(2, 3, dtype=torch.float64), Claim.TENSOR, (2, 3), (3, 1)),
        (torch.empty(2, 3, dtype=torch.complex64), Claim.DTYPE, (2, 3), (0, 0)),
        (torch._neg_view(torch.empty(2, 3)), Claim.DTYPE, (2, 3), (0, 0)),
        (torch.empty(2, 3, device="meta"), Claim.LAYOUT, (), ()),
        (torch.empty(2, 3).to_sparse(), Claim.LAYOUT, (), ()),
        (torch.nn.Parameter(torch.empty(2, 3)), Claim.PARAMETER, (), ()),
        ("nothing of the kind", Claim.MISSING, (), ()),
    ],
)
def test_a_result_that_is_not_like_the_one_before_it_is_told_as_it_is(other, claim, shape, strides) -> None:
    told = Told()
    told.block([torch.empty(2, 3)], [torch.empty(2, 3)])
    told.block([torch.empty(2, 3)], [other], [torch.empty(2, 3)])
    found = told.read(1)
    assert (found.claim, found.shape, found.strides) == (claim, shape, strides)
    assert told.read(2).claim == Claim.TENSOR


def test_a_second_output_of_another_kind_is_told_as_it_is() -> None:
    told = Told(outputs=2)
    told.block([torch.empty(2), torch.empty(4)], [torch.empty(2), torch.empty(4)])
    told.block([torch.empty(2), torch.empty(4)], [torch.empty(2), torch.empty(5)])
    assert told.read(1, 0).shape == (2,)
    assert told.read(1, 1).shape == (5,)


@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_results_is_none_and_overwrites_no_other_sets(count) -> None:
    told, right = Told(outputs=2, shares=True), [torch.empty(2), torch.empty(2)]
    told.block(right, [torch.empty(2) for _ in range(count)])
    assert told.read(0).claim == Claim.TENSOR
    assert [told.read(1, output).claim for output in range(2)] == [Claim.MISSING] * 2
    assert told.read(2) is None
    assert told.shared(2) is None


def test_results_of_two_sets_in_the_same_memory_are_noticed() -> None:
    told, same = Told(), torch.empty(2, 3)
    for _ in range(2):
        assert told.block([same], [torch.empty(2, 3)], [same])
    assert told.block([same], [same.view(3, 2)])
    assert not told.block([same], [torch.empty(2, 3)], [torch.empty(2, 3)])


def test_two_results_of_one_set_may_be_the_same_memory() -> None:
    told, same = Told(outputs=2), torch.empty(2)
    assert not told.block([same, same], [torch.empty(2), torch.empty(2)])


def test_a_block_forgets_the_one_before_it() -> None:
    told = Told(shares=True)
    told.block(*([torch.empty(2)] for _ in range(SETS)))
    told.block([torch.empty(2)])
    assert told.read(1) is None
    assert told.shared(1) is None


def test_the_allocation_of_every_result_is_asked_for_in_every_block() -> None:
    told, block = Told(shares=True), [[torch.empty(2)] for _ in range(SETS)]
    for _ in range(2):
        told.block(*block)
    assert told.device.asked == [one.data_ptr() for (one,) in block] * 2
    assert [told.shared(set_) for set_ in range(SETS)] == [(HANDLE, one.data_ptr()) for (one,) in block]


def test_what_is_remembered_of_addresses_has_a_limit() -> None:
    told, memory = Told(), torch.empty(PLACES_MAX + 8)
    told.block([memory[0]])
    for place in range(PLACES_MAX + 8):
        told.block([memory[place]])
        assert told.read(0).address == memory[place].data_ptr()
    assert len(told.results._before[0].entries) <= PLACES_MAX
