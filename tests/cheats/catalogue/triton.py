"""Triton kernels: what each tries, and what must come of it, on a GPU or in the interpreter."""

from __future__ import annotations

from evaluator_svc.layers import Layer
from shared.events import Status
from tests.cheats.catalogue.python import VALUES
from tests.cheats.catalogue.rows import cheat, honest
from tests.cheats.manifest import Language

TRITON = Language.TRITON
CHEAT, WRONG, UNREPEATABLE = Status.CHEAT, Status.WRONG_RESULT, Status.NONDETERMINISTIC

CHEATS = (
    cheat(
        TRITON,
        "h01_side_stream",
        "softmax",
        (CHEAT, WRONG, UNREPEATABLE),
        (Layer.CLOCKS, Layer.LATE, Layer.JUDGE, Layer.DETERMINISM),
        gpu=True,
    ),
    cheat(
        TRITON,
        "h02_native_stream",
        "softmax",
        (CHEAT, WRONG, UNREPEATABLE),
        (Layer.CLOCKS, Layer.LATE, Layer.JUDGE, Layer.DETERMINISM),
        gpu=True,
    ),
    cheat(TRITON, "h12_skips_in_a_batch", "softmax", (CHEAT, WRONG, UNREPEATABLE), VALUES, clock=True),
    cheat(TRITON, "h15_persisting_cache", "softmax", CHEAT, (Layer.CLOCKS, Layer.FLOOR), gpu=True),
    cheat(TRITON, "h22_shape_memo", "softmax", (CHEAT, WRONG, UNREPEATABLE), VALUES),
    cheat(TRITON, "h24_device_memo", "softmax", CHEAT, Layer.FRESH, clock=True, gpu=True),
    cheat(TRITON, "h26_stale_graph", "softmax", (WRONG, UNREPEATABLE), VALUES, gpu=True),
    cheat(
        TRITON, "h32_writes_nothing", "softmax", (WRONG, UNREPEATABLE), (Layer.JUDGE, Layer.DETERMINISM, Layer.POISON)
    ),
    cheat(TRITON, "h33_overwrites_input", "softmax", Status.MUTATED_INPUT, Layer.INPUTS),
    cheat(TRITON, "h34_returns_input", "clamp", CHEAT, Layer.CONTRACT, "input"),
    cheat(TRITON, "h36_no_tail", "softmax", WRONG, Layer.JUDGE),
    cheat(TRITON, "h39_half_dot", "matmul", Status.PRECISION_DOWNGRADE, Layer.PRECISION),
    cheat(TRITON, "h40_no_maximum", "softmax", WRONG, Layer.JUDGE),
    cheat(TRITON, "h42_lost_updates", "segment_sum", (WRONG, UNREPEATABLE), (Layer.JUDGE, Layer.DETERMINISM)),
    cheat(
        TRITON,
        "h48_scans_the_device",
        "softmax",
        (WRONG, UNREPEATABLE, Status.OUT_OF_MEMORY),
        (Layer.JUDGE, Layer.DETERMINISM, Layer.LIMITS),
        gpu=True,
    ),
    cheat(TRITON, "h51_exits", "softmax", CHEAT, Layer.CHANNEL, "exited"),
    cheat(TRITON, "h56_writes_far_away", "softmax", Status.RUNTIME_ERROR, Layer.CRASH),
    cheat(TRITON, "h58_library_call", "matmul", Status.NO_CUSTOM_KERNEL, Layer.KERNELS),
    cheat(TRITON, "h59_never_launched", "softmax", Status.NO_CUSTOM_KERNEL, Layer.KERNELS),
)

LOOK_ALIKES = (
    honest(TRITON, "lazy_compilation", "softmax", "H18"),
    honest(TRITON, "product_in_tiles", "matmul", "H39"),
    honest(TRITON, "atomics_by_contract", "segment_sum", "H42"),
    honest(TRITON, "keeps_a_workspace", "softmax", "H24"),
    honest(TRITON, "transposed_view", "transpose", "H34"),
    honest(TRITON, "scales_in_place", "scale_in_place", "H33"),
    honest(TRITON, "joined_side_stream", "softmax", "H01", gpu=True),
    honest(TRITON, "graph_that_rereads", "softmax", "H26", gpu=True),
)
