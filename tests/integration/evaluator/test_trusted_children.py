"""The oracle and the baselines: what they are given, what they answer, and what becomes of a dead one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator_svc.baselines import Baselines
from evaluator_svc.cases import elements
from evaluator_svc.oracle import Oracle
from evaluator_svc.properties import Kind
from evaluator_svc.target import target_of
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.trusted_child import OracleLost, TrustedChild
from shared import operators
from shared.dtypes import DType
from shared.errors import OperatorError
from shared.events import Status
from tests.aio import on_loop
from tests.integration.evaluator.pipeline import bench, evidence, kernel_source

pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]

AFFINE = operators.parse(
    """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(16))
        self.register_buffer("shift", torch.zeros(16))
    def forward(self, x):
        if (x > 1e6).any():
            raise RuntimeError("told to")
        return x * self.scale + self.shift
def get_inputs():
    return [torch.randn(4, 16)]
def get_init_inputs():
    return []
""",
    name="affine",
)
INPUTS = tuple(TensorSpec(shape=shape, dtype=DType.F32) for shape in ((4, 16), (16,), (16,)))


def child(role):
    return TrustedChild(role, cpus=(), environment={}, where="affine")


@on_loop
async def test_the_oracle_draws_secret_values_and_gives_parameters_other_ones_in_held_out_cases(tmp_path: Path):
    async with child("oracle") as process:
        oracle = Oracle(process, AFFINE.ref, tmp_path, timeout_s=60)
        with pytest.raises(OperatorError, match="^affine: its top level raises"):
            await oracle.open("import nowhere_to_be_found", threads=1, device="cpu")
        await oracle.open(AFFINE.source, threads=1, device="cpu")
        suite = await oracle.suite(public=1, held_out=("scaled_up",))
        other = await oracle.suite(public=1, held_out=())
        again = [(await oracle.case(7))[0] for _ in range(2)]
    assert suite.inputs == INPUTS
    own, held_out = suite.cases
    scale = [elements(case.inputs[1], DType.F32) for case in (own, held_out)]
    assert np.all(scale[0] == 1)
    assert np.unique(scale[1]).size > 8
    x, w, b = (elements(data, DType.F32).astype(np.float64) for data in held_out.inputs)
    exact = (x.reshape(4, 16) * w + b).reshape(-1)
    np.testing.assert_allclose(held_out.references[0].exact, exact, rtol=1e-12)
    assert suite.shape_case is not None
    assert suite.shape_case.specs[0].shape == (3, 16)
    assert list(tmp_path.iterdir()) == []
    assert own.inputs[0].tobytes() != other.cases[0].inputs[0].tobytes()
    assert again[0] is not None
    assert again[1] is not None
    assert again[0].inputs[0].tobytes() == again[1].inputs[0].tobytes()


MAKES_ITS_OWN = {
    "refuses others": "return torch.zeros(4).index_add_(0, index, x)",
    "rounds to them": "y = torch.zeros(4); y[:] = torch.stack([x[index == i].sum() for i in range(4)]); return y",
}


@pytest.mark.parametrize("forward", MAKES_ITS_OWN)
@on_loop
async def test_an_operator_that_makes_tensors_of_the_default_type_is_known_in_fp64(tmp_path: Path, forward: str):
    source = f"""
import torch

class Model(torch.nn.Module):
    def forward(self, x, index):
        {MAKES_ITS_OWN[forward]}

def get_inputs():
    return [torch.randn(4096), torch.randint(0, 4, (4096,))]
def get_init_inputs():
    return []
"""
    async with child("oracle") as process:
        oracle = Oracle(process, AFFINE.ref, tmp_path, timeout_s=60)
        await oracle.open(source, threads=1, device="cpu")
        relations = await oracle.relations()
        case, _ = await oracle.case(1)
    assert case is not None
    x, index = elements(case.inputs[0], DType.F32).astype(np.float64), elements(case.inputs[1], DType.I64)
    np.testing.assert_allclose(case.references[0].exact, np.bincount(index, weights=x, minlength=4), rtol=1e-12)
    assert case.references[0].magnitude is not None
    assert Kind.AFFINE in {relation.kind for relation in relations}


@on_loop
async def test_baselines_read_what_the_controller_wrote_in_each_set(tmp_path: Path):
    async with child("baseline") as process:
        baselines = Baselines(process, AFFINE.ref, tmp_path, target=target_of("cpu-x86_64"))
        await baselines.open(AFFINE.source, INPUTS, sets=3, threads=1, timeout_s=60)
        values = [np.full(spec.nbytes // 4, 0.5, dtype=np.float32).view(np.uint8) for spec in INPUTS]
        baselines.write(range(3), values)
        assert await baselines.run("eager", 3, first=1, span=3, timeout_s=30) > 0
        await baselines.cool(1, 3, 3, outputs=True)
        values[0] = np.full(64, 1e7, dtype=np.float32).view(np.uint8)
        baselines.write((2,), values)
        assert await baselines.run("eager", 2, first=0, span=3, timeout_s=30) > 0
        assert await baselines.run("eager", 7, first=0, span=2, timeout_s=30) > 0
        with pytest.raises(OracleLost, match="told to"):
            await baselines.run("eager", 2, first=1, span=3, timeout_s=30)


@on_loop
async def test_an_operator_that_never_ends_loses_the_oracle_at_its_limit(tmp_path: Path):
    source = AFFINE.source.replace("return [torch.randn(4, 16)]", "while True: pass")
    async with child("oracle") as process:
        await Oracle(process, AFFINE.ref, tmp_path, timeout_s=60).open(source, threads=1, device="cpu")
        with pytest.raises(OracleLost, match="were not enough"):
            await Oracle(process, AFFINE.ref, tmp_path, timeout_s=1).describe()


@on_loop
async def test_an_operator_that_ends_the_oracle_is_told_with_its_exit_code(tmp_path: Path):
    source = AFFINE.source.replace("import torch\n", "import torch\nimport os\nos._exit(3)\n", 1)
    async with child("oracle") as process:
        with pytest.raises(OracleLost, match="`open`: it ended with code 3"):
            await Oracle(process, AFFINE.ref, tmp_path, timeout_s=60).open(source, threads=1, device="cpu")


def test_a_lost_oracle_is_infrastructure_and_the_next_evaluation_has_a_new_one(tmp_path: Path):
    marker = tmp_path / "died"
    text = (Path(__file__).parents[2] / "operators" / "row_softmax.py").read_text()
    dying = (
        f"import os\n    if not os.path.exists({str(marker)!r}):\n        open({str(marker)!r}, 'w'); os._exit(1)\n    "
    )
    operator = operators.parse(text.replace("return [torch.randn", dying + "return [torch.randn"), name="dying")
    with bench() as worker:
        first = worker.evaluate(kernel_source("zeros"), operator=operator)
        assert first.status is Status.INFRASTRUCTURE, evidence(first)
        assert not first.memoised
        second = worker.evaluate(kernel_source("zeros"), operator=operator)
        assert second.status is Status.WRONG_RESULT, evidence(second)
