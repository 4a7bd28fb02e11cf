"""Which runner is opened for what was built. None is entered, so no process starts."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from evaluator_svc.cases import Case, Suite
from evaluator_svc.hosted.box import INTERPRETED, PYTHON
from evaluator_svc.hosted.process import HostedRunner
from evaluator_svc.launchers import Launchers
from evaluator_svc.runner.process import Runner
from evaluator_svc.signature import Signature
from evaluator_svc.target import Kind, Target
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built
from shared.contract import Contract
from shared.dtypes import DType
from shared.errors import OperatorError

CELL = TensorSpec(shape=(4,), dtype=DType.F32)
VALUES = (np.zeros(CELL.nbytes, dtype=np.uint8), np.ones(CELL.nbytes, dtype=np.uint8))
CASE = Case(name="own", public=True, specs=(CELL, CELL), inputs=VALUES, references=())
SIGNATURE = Signature(arguments=(None,), state=("weight",))


def suite(**what):
    return Suite(**{"inputs": (CELL, CELL), "outputs": (CELL,), "cases": (CASE,), "signature": SIGNATURE, **what})


@pytest.fixture
def opened(tmp_path):
    """Opens a runner on a target, and gives up its buffers at the end."""
    module, runners = tmp_path / "kernel.py", []
    module.write_text("class ModelNew: ...\n")

    def open_(kind, host="hosted", of=None, **how):
        built = Built(path=module, digest="", log="", build_ns=0, sandbox="", host=host)
        launchers = Launchers(Target(kind=kind, device=kind.value))
        where = {"where": "softmax", "sets": 1, "memory_bytes": 1 << 20, "threads": 1, "cpus": ()}
        runners.append(launchers.open(built, of or suite(), **where, **how))
        return runners[-1]

    yield open_
    for runner in runners:
        asyncio.run(runner.__aexit__(None, None, None))


def test_a_library_with_the_c_abi_is_run_by_the_native_runner(opened):
    assert type(opened(Kind.CPU, host="native")) is Runner


def test_a_module_is_run_by_the_hosted_runner_on_its_targets_own_fork_server(opened):
    on_cores, interpreted = opened(Kind.CPU), opened(Kind.INTERPRETED)
    assert type(on_cores) is type(interpreted) is HostedRunner
    assert (on_cores._profile, interpreted._profile) == (PYTHON, INTERPRETED)


def test_on_a_gpu_that_shares_no_memory_results_are_copied_by_the_candidates_side(opened):
    runner = opened(Kind.GPU)
    assert type(runner) is HostedRunner
    assert runner._profile.device == "cuda"


def test_without_cupy_a_gpus_worker_can_say_why_it_does_not_hold_the_arrays_itself():
    launchers = Launchers(Target(kind=Kind.GPU, device="GPU-1"))
    assert "CuPy does not work here" in launchers.unkept()
    assert Launchers(Target(kind=Kind.CPU, device="cpu")).unkept() == ""


def test_it_is_warmed_up_on_the_operators_first_case(opened):
    assert opened(Kind.CPU)._primer is VALUES


def test_weights_that_persist_are_not_those_of_a_warm_up(opened):
    packed = suite(contract=Contract(persistent_weights=True))
    assert opened(Kind.CPU, of=packed)._primer is None
    assert opened(Kind.CPU, of=packed)._persistent == 1
    assert opened(Kind.CPU, host="native", of=packed)._persistent == 1


def test_another_shape_has_buffers_of_its_own_and_no_warm_up_on_values_of_the_first(opened):
    wide = TensorSpec(shape=(9,), dtype=DType.F32)
    runner = opened(Kind.CPU, specs=((wide, CELL), (wide,)))
    assert len(runner.input_bytes(0, 0)) == wide.nbytes
    assert runner._primer is None


def test_what_no_hosted_kernel_can_be_given_is_the_operators_fault(opened):
    strange = suite(signature=Signature(refused="a value of type datetime.date"))
    with pytest.raises(OperatorError, match=r"datetime\.date"):
        opened(Kind.CPU, of=strange)
