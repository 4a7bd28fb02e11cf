"""The page of searches on a GPU says what was found, and what was not."""

from __future__ import annotations

from tests.bench.gpu_operators import page

IMPROVED = {
    "outcome": "improved",
    "evaluations": 64,
    "best": {
        "trust": "L2",
        "bound": "memory",
        "speedup": {"eager": 3.0, "compiled": 2.0, "ci_low": 1.9, "ci_high": 2.1},
        "median_us": {"eager": 210.0, "compiled": 140.0, "candidate": 70.0},
    },
}
BESIDE = {
    "copy_gb_s": 4000.0,
    "bytes": 268_435_456,
    "ms": {"eager": 0.21, "compiled": 0.14, "max-autotune": 0.139, "artefact": 0.07, "channels-last conv2d": 0.068},
}
KEPT = {
    "command": "python -m tests.bench.gpu_operators --evaluations 64",
    "machine": "a GPU; torch 2, Triton 3",
    "evaluations": 64,
    "date": "2026-12-02",
    "operators": {
        "softmax": {"result": IMPROVED, "beside": BESIDE},
        "cumsum": {
            "result": {"outcome": "no_improvement", "evaluations": 64, "best": None},
            "beside": {"error": "more than 400 s"},
        },
    },
}


def test_an_operator_without_improvement_counts_as_one():
    assert "**Geometric mean 1.41x** over 2 operators" in page(KEPT, "nvidia-sm_90")
    assert "1.73x against eager; 1 improved" in page(KEPT, "nvidia-sm_90")


def test_bandwidth_is_a_share_of_what_a_copy_reaches():
    (line,) = (line for line in page(KEPT, "nvidia-sm_90").splitlines() if line.startswith("| softmax | 210.0"))
    assert line == "| softmax | 210.0 | 140.0 | 70.0 | 3.00 | 2.00 | 1.90 – 2.10 | 0.96 | L2 | memory | 64 | improved |"


def test_what_was_timed_beside_and_what_could_not_be_is_told():
    text = page(KEPT, "nvidia-sm_90")
    assert "| softmax | 0.2100 | 0.1400 | 0.1390 | 0.0700 | channels-last conv2d 0.0680 |" in text
    assert "| cumsum | more than 400 s |" in text
