"""Kernels under a vendor's tools meet the admission, judge and held-out cases of all others; then they are profiled."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_svc.evaluators import evaluator_of, toolchain_of
from shared import ids, operators
from shared.chips import places
from shared.errors import ChipError
from shared.events import Basis, Evaluation, EvaluationRequested, KernelRef, Purpose, Status, Trust
from shared.ports import open_ports
from shared.settings import PortSettings
from tests.integration.evaluator.pipeline import SETTINGS
from tests.integration.external.sheets import KERNELS, PYTHON, vendor

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PYTHON.exists(), reason="the vendor for tests is run by /usr/bin/python3"),
]
CHIP = "toy"
OPERATOR = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x, b):
        return x + b


def get_inputs():
    return [torch.randn(8, 24), torch.randn(24)]


def get_init_inputs():
    return []
"""
RIGHT = KERNELS["right"]
WRITES_AN_INPUT = RIGHT + "    x[1] = 0.5\n"
LOOKS_AROUND = """\
import os, socket, sys
def kernel(inputs, outputs, shape):
    folder = os.path.dirname(sys.argv[3])
    known = {"request.json", "artefact"}
    known |= {f"{kind}-{n}.{when}" for kind in ("input", "output") for n in range(2) for when in ("before", "after")}
    assert set(os.listdir(folder)) <= known, os.listdir(folder)
    for place in ("/dev/shm", "/root", "/home"):
        assert not os.path.exists(place) or not os.listdir(place), place
    try:
        socket.socket()
    except PermissionError:
        pass
    else:
        raise AssertionError("a socket")
    try:
        open("/sheet/mark", "w")
    except OSError:
        pass
    else:
        raise AssertionError("the sheet's folder can be written")
""" + RIGHT.partition("\n")[2]
FORGETS_A_TAIL = RIGHT.replace("range(len(x))", "range(len(x) - 1)")


@pytest.fixture
def sheet(tmp_path, monkeypatch):
    """Makes a sheet that this process knows."""

    def make(**options: object) -> Path:
        path = vendor(tmp_path, **options)
        monkeypatch.setenv(places.VARIABLE, str(path))
        return path

    return make


def judged(*asked: tuple[str, Purpose], flags: tuple[str, ...] = ("-O2",)) -> list[Evaluation]:
    return asyncio.run(_judged(asked, flags))


async def _judged(asked: tuple[tuple[str, Purpose], ...], flags: tuple[str, ...]) -> list[Evaluation]:
    async with open_ports(PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")) as ports:
        evaluator = evaluator_of(ports, replace(SETTINGS, chip=CHIP))
        try:
            found = []
            for number, (kernel, purpose) in enumerate(asked):
                spec = operators.parse(OPERATOR, name="operator")
                await ports.store.blobs.put(OPERATOR.encode())
                await ports.store.blobs.put(kernel.encode())
                source = ids.content_hash(kernel.encode())
                request = EvaluationRequested(
                    search_id="s",
                    evaluation_id=f"e{number}",
                    candidate_id=f"c{number}",
                    kernel=KernelRef(kernel_id=f"k{number}", language="toy", source_hash=source, flags=flags),
                    operator=spec.ref,
                    chip=CHIP,
                    purpose=purpose,
                )
                found.append(await evaluator.evaluate(request))
            return found
        finally:
            await evaluator.close()


def evidence(found: Evaluation) -> dict[str, str]:
    return {entry.name: entry.value for entry in found.evidence}


def test_kernels_are_right_or_not_and_a_final_count_is_trusted(sheet):
    sheet(back=True)
    right, final, wrong, tail, writes, looks = judged(
        (RIGHT, Purpose.SEARCH),
        (RIGHT, Purpose.FINAL),
        (KERNELS["wrong"], Purpose.SEARCH),
        (FORGETS_A_TAIL, Purpose.SEARCH),
        (WRITES_AN_INPUT, Purpose.SEARCH),
        (LOOKS_AROUND, Purpose.SEARCH),
    )
    assert (right.status, right.trust) == (Status.PASSED, Trust.L2)
    assert (final.status, final.trust) == (Status.PASSED, Trust.L3)
    assert (right.estimate.basis, right.estimate.cost, right.estimate.unit) == (Basis.COUNTED, 7 * 192 + 100, "steps")
    assert right.estimate == final.estimate
    assert evidence(right)["profiles"] == "steps of 2 profiles: 1444, 1444"
    assert {entry.name for entry in right.environment} >= {"adapter", "adapter_digest"}
    assert wrong.status is Status.WRONG_RESULT
    assert tail.status is Status.WRONG_RESULT
    assert writes.status is Status.MUTATED_INPUT
    assert (looks.status, evidence(looks).get("reason", "")) == (Status.PASSED, "")


def test_a_modelled_cost_is_never_trusted_beyond_l2(sheet):
    sheet(basis="modelled", breach="profile:differs")
    (final,) = judged((RIGHT, Purpose.FINAL))
    assert (final.status, final.trust, final.estimate.basis) == (Status.PASSED, Trust.L2, Basis.MODELLED)


@pytest.mark.parametrize(
    ("breach", "status", "said"),
    [
        ("run:cuts its output", Status.INFRASTRUCTURE, "write the whole tensor"),
        ("profile:zeroes its output", Status.WRONG_RESULT, "error above the limit"),
        ("profile:differs", Status.NONDETERMINISTIC, "counts of equal calls differ"),
    ],
)
def test_what_the_adapter_breaks_is_no_kernels_fault(sheet, breach, status, said):
    sheet(breach=breach)
    (found,) = judged((RIGHT, Purpose.SEARCH))
    assert found.status is status
    assert said in evidence(found)["reason"]
    assert found.estimate is None


def test_a_flag_that_the_sheet_does_not_allow_is_refused(sheet):
    sheet()
    (found,) = judged((RIGHT, Purpose.SEARCH), flags=("-fplugin=mine.so",))
    assert found.status is Status.COMPILE_ERROR
    assert evidence(found)["first_error"] == "flag '-fplugin=mine.so' is not allowed"


def test_a_worker_tries_its_adapter(sheet):
    async def probed() -> list[str]:
        async with open_ports(PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")) as ports:
            evaluator = evaluator_of(ports, replace(SETTINGS, chip=CHIP))
            try:
                return [(await evaluator.probe(thorough=True)).fault]
            finally:
                await evaluator.close()

    sheet()
    assert asyncio.run(probed()) == [""]
    sheet(breach="run:zeroes its output")
    assert asyncio.run(probed())[0].startswith("run: the right kernel ended as WRONG_RESULT")


def test_a_chip_without_an_adapter_has_no_toolchain():
    with pytest.raises(ChipError, match="chip `mtia` has no adapter"):
        toolchain_of("mtia")
