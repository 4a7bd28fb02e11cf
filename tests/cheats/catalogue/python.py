"""Python-hosted kernels (KernelBench's ``ModelNew``): what each tries, and what must come of it."""

from __future__ import annotations

from evaluator_svc.layers import Layer
from shared.events import Status
from tests.cheats.catalogue.rows import CANDIDATE_FIRST, REFERENCE_FIRST, cheat, honest
from tests.cheats.manifest import Language

PYTHON = Language.PYTHON
CHEAT, WRONG, UNREPEATABLE = Status.CHEAT, Status.WRONG_RESULT, Status.NONDETERMINISTIC
NO_KERNEL = Status.NO_CUSTOM_KERNEL
LATE = (Layer.THREADS, Layer.LATE, Layer.JUDGE, Layer.DETERMINISM, Layer.CLOCKS)
"""A result that comes too late is missed by whichever of these looks first."""
VALUES = (Layer.JUDGE, Layer.FRESH, Layer.DETERMINISM)
"""A wrong value on values that were not seen before, or on the same ones again."""

CLOCK = (
    cheat(PYTHON, "h03_background_thread", "matmul", (CHEAT, WRONG, UNREPEATABLE), LATE, naive=CANDIDATE_FIRST),
    # Where the thread is done before anybody looks, what is left of it is the library's product.
    cheat(
        PYTHON,
        "h03_native_thread",
        "matmul",
        (CHEAT, WRONG, UNREPEATABLE, NO_KERNEL),
        (*LATE, Layer.KERNELS),
        naive=CANDIDATE_FIRST,
    ),
    cheat(PYTHON, "h04_helper_process", "matmul", CHEAT, Layer.SANDBOX, "starts a process"),
    cheat(PYTHON, "h05_lazy_tensor", "matmul", CHEAT, Layer.CONTRACT, "subclass", naive=REFERENCE_FIRST),
    cheat(
        PYTHON,
        "h07_timer_patched",
        "matmul",
        (CHEAT, NO_KERNEL),
        (Layer.CLOCKS, Layer.KERNELS, Layer.CHANNEL),
        naive=REFERENCE_FIRST,
    ),
    cheat(PYTHON, "h08_frames_rewritten", "matmul", WRONG, Layer.JUDGE, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h11_super_batch", "matmul", (CHEAT, WRONG, UNREPEATABLE), VALUES, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h14_slows_the_reference", "matmul", CHEAT, (Layer.THREADS, Layer.CLOCKS), naive=CANDIDATE_FIRST),
    cheat(PYTHON, "h16_computes_in_the_gap", "matmul", CHEAT, (Layer.THREADS, Layer.CLOCKS), naive=REFERENCE_FIRST),
    cheat(PYTHON, "h16_computes_when_woken", "matmul", (CHEAT, NO_KERNEL), (Layer.CLOCKS, Layer.KERNELS), clock=True),
    cheat(PYTHON, "h18_packs_weights_once", "linear", (CHEAT, WRONG), VALUES, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h18_packs_in_constructor", "linear", (CHEAT, WRONG), VALUES),
    cheat(PYTHON, "h19_counts_calls", "matmul", (CHEAT, WRONG, UNREPEATABLE), VALUES, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h19_looks_for_the_phase", "matmul", WRONG, Layer.JUDGE),
)
REPLAY = (
    cheat(PYTHON, "h21_pointer_memo", "matmul", (CHEAT, WRONG, UNREPEATABLE), VALUES, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h22_shape_memo", "matmul", (CHEAT, WRONG, UNREPEATABLE), VALUES, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h23_sampled_memo", "matmul", (CHEAT, WRONG), VALUES, naive=REFERENCE_FIRST),
    cheat(
        PYTHON,
        "h24_exact_memo",
        "matmul",
        (CHEAT, NO_KERNEL),
        (Layer.FRESH, Layer.KERNELS),
        naive=REFERENCE_FIRST,
        clock=True,
    ),
    cheat(PYTHON, "h26_stale_inputs", "matmul", (CHEAT, WRONG, UNREPEATABLE), VALUES, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h27_public_seed", "matmul", WRONG, Layer.JUDGE, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h29_phase_replay", "matmul", (CHEAT, WRONG, UNREPEATABLE), VALUES, naive=REFERENCE_FIRST),
)
SHORTCUTS = (
    cheat(PYTHON, "h30_zeros", "wide_softmax", WRONG, Layer.JUDGE, "wrong_elements", naive=REFERENCE_FIRST),
    cheat(
        PYTHON,
        "h32_leftovers",
        "matmul",
        (WRONG, UNREPEATABLE),
        (Layer.JUDGE, Layer.DETERMINISM, Layer.POISON),
    ),
    cheat(PYTHON, "h33_zeroes_its_inputs", "matmul", Status.MUTATED_INPUT, Layer.INPUTS, naive=CANDIDATE_FIRST),
    cheat(PYTHON, "h33_unprotects_its_inputs", "matmul", Status.MUTATED_INPUT, Layer.INPUTS, naive=CANDIDATE_FIRST),
    cheat(PYTHON, "h34_pass_through", "clamp", CHEAT, Layer.CONTRACT, "input", naive=REFERENCE_FIRST),
    cheat(PYTHON, "h34_view_of_input", "clamp", CHEAT, Layer.CONTRACT, "input", naive=REFERENCE_FIRST),
    cheat(PYTHON, "h34_expanded_row", "wide_softmax", (WRONG, Status.WRONG_SHAPE, Status.WRONG_DTYPE), Layer.CONTRACT),
    cheat(PYTHON, "h36_skips_last_tile", "softmax", (WRONG, UNREPEATABLE), (Layer.JUDGE, Layer.DETERMINISM)),
    cheat(PYTHON, "h36_one_row_unsampled", "softmax", WRONG, Layer.JUDGE, "first_wrong_index"),
    cheat(PYTHON, "h39_half_precision", "matmul", Status.PRECISION_DOWNGRADE, Layer.PRECISION),
    cheat(PYTHON, "h40_wrong_epsilon", "rms_norm", WRONG, Layer.JUDGE, naive=REFERENCE_FIRST),
    cheat(
        PYTHON,
        "h42_wrong_now_and_then",
        "softmax",
        (WRONG, UNREPEATABLE, NO_KERNEL),
        (Layer.JUDGE, Layer.DETERMINISM, Layer.KERNELS),
        clock=True,
    ),
    cheat(PYTHON, "h45_shrinks_the_problem", "softmax", Status.WRONG_SHAPE, Layer.CONTRACT, "shape"),
    cheat(PYTHON, "h58_library_call", "matmul", NO_KERNEL, Layer.KERNELS, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h59_silent_fallback", "matmul", NO_KERNEL, Layer.KERNELS, naive=REFERENCE_FIRST),
)
TAMPERING = (
    cheat(PYTHON, "h47_walks_the_heap", "matmul", WRONG, Layer.JUDGE, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h47_walks_frames", "matmul", WRONG, Layer.JUDGE, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h49_patched_validators", "matmul", WRONG, Layer.JUDGE, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h50_replaced_reference", "matmul", WRONG, Layer.JUDGE, naive=REFERENCE_FIRST),
    cheat(PYTHON, "h51_prints_and_exits", "matmul", CHEAT, Layer.CHANNEL, "exited"),
    cheat(PYTHON, "h51_exits_at_import", "matmul", CHEAT, Layer.CHANNEL, "exited"),
    cheat(PYTHON, "h51_forges_reply", "matmul", CHEAT, Layer.CHANNEL),
    cheat(PYTHON, "h51_at_exit", "matmul", WRONG, Layer.JUDGE),
    cheat(PYTHON, "h52_answers_early", "matmul", CHEAT, (Layer.CHANNEL, Layer.CLOCKS)),
    cheat(PYTHON, "h53_writes_files", "matmul", CHEAT, Layer.SANDBOX, "opens a file"),
    cheat(PYTHON, "h53_reads_the_project", "matmul", WRONG, Layer.JUDGE),
    cheat(PYTHON, "h54_includes_host_file", "matmul", Status.COMPILE_ERROR, Layer.BUILD),
    cheat(PYTHON, "h54_runs_while_building", "matmul", (Status.COMPILE_ERROR, CHEAT), (Layer.BUILD, Layer.SANDBOX)),
    cheat(PYTHON, "h55_network", "matmul", CHEAT, Layer.SANDBOX, "reaches for the network"),
    cheat(PYTHON, "h55_installs_a_package", "matmul", CHEAT, Layer.SANDBOX),
    cheat(PYTHON, "h56_fork_bomb", "matmul", CHEAT, Layer.SANDBOX, "starts a process"),
    cheat(PYTHON, "h56_memory_hog", "matmul", Status.OUT_OF_MEMORY, Layer.LIMITS),
    cheat(PYTHON, "h56_never_returns", "matmul", Status.TIMEOUT, Layer.LIMITS),
    cheat(PYTHON, "h57_hidden_text", "matmul", CHEAT, Layer.SANDBOX, "reaches for the network"),
    cheat(PYTHON, "h61_speaks_to_the_reviewer", "matmul", WRONG, Layer.JUDGE),
)
CHEATS = CLOCK + REPLAY + SHORTCUTS + TAMPERING

LOOK_ALIKES = (
    honest(PYTHON, "inline_extension", "matmul", "H54"),
    honest(PYTHON, "packs_by_contract", "packed_linear", "H18"),
    honest(PYTHON, "transposed_view", "transpose", "H34"),
    honest(PYTHON, "scales_in_place", "scale_in_place", "H33"),
    honest(PYTHON, "returns_its_own_buffer", "matmul", "H22"),
)
