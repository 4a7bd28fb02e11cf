"""Candidate's side: the results of a block, told on the shared page while the clock is running.

What a block with N results takes for telling them is charged to the kernel, and where the host is the limit nothing
hides it: a launch from Python takes 10 to 40 us. So a result that is like the one before it costs a comparison and a
copy of bytes that were made once, not a description.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from evaluator_svc.hosted import results, wire

_TENSOR, _STRIDED = torch.Tensor, torch.strided
PLACES_MAX = 4096
"""Addresses whose bytes are remembered; an allocator gives the same ones again and again."""


class ResultsPage:
    """``sets`` x ``outputs`` results on ``page``. ``codes`` numbers the element types, ``device`` is where tensors are.
    ``shares``: the allocations that results lie in are told, too, so that another process can open them.
    """

    def __init__(
        self,
        page: memoryview,
        *,
        sets: int,
        outputs: int,
        codes: dict[torch.dtype, int],
        device: Any,
        shares: bool,
    ) -> None:
        self._page, self._outputs, self._codes, self._device = page, outputs, codes, device
        self._places, self._shares = sets * outputs, shares
        self._slots = [wire.slot(page, place) for place in range(self._places)]
        self._handles = [wire.handle_slot(page, self._places, place) for place in range(self._places * shares)]
        self._before: list[_Like | None] = [None] * outputs
        """By output: what the last result was."""

    def forget(self) -> None:
        """No result is there any more."""
        wire.forget(self._page, self._places)
        if self._shares:
            wire.unshare(self._page, self._places)

    def tell(self, told: Iterable[tuple[int, Sequence[Any]]]) -> bool:
        """Sets, and what was returned for each. Whether results of two sets lie in the same memory."""
        crowded, sets = False, dict[int, int]()
        for set_, outputs in told:
            first = set_ * self._outputs
            addresses = self._told(first, outputs) or self._described(first, outputs)
            for address in addresses:
                crowded |= sets.setdefault(address, set_) != set_
        return crowded

    def _told(self, first: int, outputs: Sequence[Any]) -> list[int]:
        """Where they are, if all are as those before them but for that; only then they are told."""
        if len(outputs) != self._outputs:
            return []
        addresses = []
        for like, one in zip(self._before, outputs, strict=True):
            if like is None or not like.fits(one):
                return []
            addresses.append(one.data_ptr())
        for place, like, address in zip(itertools.count(first), self._before, addresses, strict=False):
            assert like is not None
            self._slots[place][:] = like.entries.get(address) or like.entry(address)
            if self._shares:
                self._share(place, address)
        return addresses

    def _described(self, first: int, outputs: Sequence[Any]) -> list[int]:
        """Where those are that lie anywhere."""
        described = results.described(outputs, self._outputs, self._codes, self._device)
        for output, result in enumerate(described):
            wire.pack(self._page, first + output, result)
        if any(result.claim != wire.Claim.TENSOR for result in described):
            wire.write_text(self._page, results.remark(outputs, self._outputs))
        else:
            self._before = [_Like(one, wire.packed(it)) for one, it in zip(outputs, described, strict=True)]
        lying = [(place, one.data_ptr()) for place, one in enumerate(outputs, first) if _lies(one)]
        for place, address in lying if self._shares else ():
            if place < first + self._outputs:
                self._share(place, address)
        return [address for _, address in lying]

    def _share(self, place: int, address: int) -> None:
        found = self._device.share(address)
        if found is not None:
            wire.share(self._handles[place], *found)


class _Like:
    """All that the description of a tensor depends on, but for its place."""

    __slots__ = ("_device", "_dtype", "_entry", "_shape", "_strides", "entries")

    def __init__(self, one: torch.Tensor, entry: bytes) -> None:
        self._dtype, self._shape, self._strides, self._device = one.dtype, one.shape, one.stride(), one.device
        self._entry = entry
        self.entries: dict[int, bytes] = {}
        """What is written, by the address of the first element."""

    def fits(self, one: Any) -> bool:
        return (
            _lies(one)
            and one.shape == self._shape
            and one.dtype is self._dtype
            and one.stride() == self._strides
            and one.device == self._device
            and not (one.is_neg() or one.is_conj() or one.is_nested)
        )

    def entry(self, address: int) -> bytes:
        if len(self.entries) >= PLACES_MAX:
            self.entries.clear()
        made = self.entries[address] = wire.placed(self._entry, address)
        return made


def _lies(one: Any) -> bool:
    """Whether it has elements that lie somewhere, as a plain tensor's do."""
    return type(one) is _TENSOR and one.layout is _STRIDED
