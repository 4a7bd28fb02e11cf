"""Audited blocks where inputs, outputs and answers lie on a device, on a strict double of its arrays."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_svc.layers import Layer, caught_by
from shared.events import Status
from tests.fakes.device_arrays import DeviceArray, device
from tests.unit.evaluator import contest as contests
from tests.unit.evaluator.contest import WORK_NS, Process, contest, honest, softmax


class OnDevice(Process):
    """Its buffers can be used by arrays of the device alone."""

    poisons = False

    def placed(self, data):
        return data if isinstance(data, DeviceArray) else device(data)

    def write_sets(self, sets, index, data):
        assert isinstance(data, DeviceArray)
        super().write_sets(sets, index, data.get())

    def input_bytes(self, set_, index):
        return DeviceArray(self.inputs[set_].reshape(-1).view(np.uint8))

    def output_rows(self, index):
        return DeviceArray(super().output_rows(index))


@pytest.fixture(autouse=True)
def _on_device(monkeypatch):
    monkeypatch.setattr(contests, "Process", OnDevice)


def test_an_honest_kernel_is_verified_there():
    measured, _ = contest(honest)
    assert measured.verdict.passed
    assert measured.verified > 100


def test_one_that_answers_for_other_values_is_caught_there():
    kept = {}

    def first_answer(x, y, moment):
        if moment.address in kept:
            y[:] = kept[moment.address]
            return 1_000.0
        softmax(x, y)
        kept[moment.address] = y.copy()
        return WORK_NS

    measured, _ = contest(first_answer)
    assert (measured.verdict.status, caught_by(measured.verdict.evidence)) == (Status.CHEAT, Layer.FRESH)


def test_one_that_is_wrong_now_and_then_is_caught_there():
    def sometimes(x, y, moment):
        softmax(x, y)
        if moment.count % 97 == 0:
            y[3, 5] *= 1.5
        return WORK_NS

    measured, _ = contest(sometimes)
    assert measured.verdict.status is Status.WRONG_RESULT
