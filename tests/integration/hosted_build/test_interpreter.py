"""Triton's interpreter on the processor: right for the element types that kernels use, or refused."""

import json
import subprocess
import sys

import pytest

EXACT = 0.0
CLOSE = {"torch.float32": 1e-5, "torch.float16": 2e-2, "torch.bfloat16": 1.3e-1}
"""Of sums of 70 products near 1: half a unit in the last place of values up to 32."""


@pytest.fixture(scope="module")
def seen():
    command = [sys.executable, "-W", "ignore", "-m", "tests.integration.hosted_build.interpreted_kernels"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("dtype", sorted(CLOSE))
@pytest.mark.parametrize("kernel", ["sums", "maxima", "tuned"])
def test_arithmetic_and_comparisons_equal_torchs_in_every_type_on_inputs_that_cannot_be_written(seen, kernel, dtype):
    assert seen[f"{kernel} {dtype}"] == EXACT


@pytest.mark.parametrize("dtype", sorted(CLOSE))
def test_matrix_products_and_reductions_are_as_good_as_their_type(seen, dtype):
    assert seen[f"product {dtype}"] <= CLOSE[dtype]
    assert seen[f"softmax {dtype}"] <= CLOSE[dtype] / 100


@pytest.mark.parametrize("dtype", sorted(CLOSE))
def test_common_functions_of_libdevice_are_interpreted(seen, dtype):
    assert seen[f"squeezed {dtype}"] <= CLOSE[dtype] / 10


def test_bfloat16_is_rounded_to_nearest_even_and_its_bits_can_be_reached(seen):
    assert seen["rounding"] == EXACT
    assert seen["turned torch.bfloat16"] == EXACT


def test_what_the_interpreter_would_get_wrong_is_refused_with_a_reason(seen):
    assert "an atomic operation on bf16 is not interpreted" in seen["atomics"]
    assert "float8 is not interpreted" in seen["float8"]
