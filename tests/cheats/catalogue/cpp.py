"""Native kernels: what each tries, and what must come of it."""

from __future__ import annotations

from evaluator_svc.layers import Layer
from shared.events import Status
from tests.cheats.catalogue.rows import CANDIDATE_FIRST, REFERENCE_FIRST, cheat, honest
from tests.cheats.manifest import Language

CPP = Language.CPP
CHEAT, WRONG, UNREPEATABLE = Status.CHEAT, Status.WRONG_RESULT, Status.NONDETERMINISTIC
REMEMBERED = (Layer.FRESH, Layer.POISON)
"""A memory of whole inputs: accused or discounted by what new values cost; or of no use, where none came again."""

CLOCK = (
    cheat(CPP, "h03_background_thread", "matmul", CHEAT, Layer.THREADS, "alive after a call", naive=CANDIDATE_FIRST),
    cheat(
        CPP,
        "h03_granted_thread",
        "matmul",
        (CHEAT, WRONG, UNREPEATABLE),
        (Layer.LATE, Layer.CLOCKS, Layer.THREADS, Layer.POISON, Layer.DETERMINISM),
        naive=CANDIDATE_FIRST,
        threads=2,
    ),
    cheat(CPP, "h04_helper_process", "matmul", CHEAT, Layer.SANDBOX, "starts a process"),
    cheat(CPP, "h09_clock_got_patched", "matmul", CHEAT, Layer.CLOCKS, naive=REFERENCE_FIRST),
    cheat(CPP, "h09_own_clock_symbols", "matmul", WRONG, Layer.JUDGE, "first_wrong_index"),
    cheat(CPP, "h09_answers_early", "matmul", (CHEAT, WRONG), (Layer.CHANNEL, Layer.CLOCKS, Layer.LATE, Layer.POISON)),
    cheat(CPP, "h10_forged_duration", "matmul", CHEAT, Layer.CLOCKS),
    cheat(
        CPP,
        "h11_all_sets_at_once",
        "softmax",
        (CHEAT, WRONG),
        (Layer.FRESH, Layer.CLOCKS, Layer.POISON, Layer.LATE),
        idle=True,
    ),
    cheat(CPP, "h11_batch_and_skip", "matmul", CHEAT, Layer.POISON, naive=REFERENCE_FIRST, idle=True),
    cheat(CPP, "h12_back_to_back", "softmax", WRONG, Layer.POISON, "not written", naive=REFERENCE_FIRST),
    cheat(CPP, "h12_skips_every_third", "softmax", WRONG, Layer.POISON, "not written", naive=REFERENCE_FIRST),
    cheat(CPP, "h12_skips_the_first_half", "softmax", (WRONG, CHEAT), (Layer.POISON, Layer.FRESH)),
    cheat(CPP, "h14_spins_between_calls", "matmul", CHEAT, (Layer.CLOCKS, Layer.THREADS), threads=2),
    cheat(CPP, "h16_warms_in_the_gap", "matmul", CHEAT, (Layer.THREADS, Layer.CLOCKS), naive=REFERENCE_FIRST),
    cheat(CPP, "h17_relies_on_zeroed_output", "matmul", (UNREPEATABLE, WRONG), (Layer.DETERMINISM, Layer.POISON)),
    cheat(CPP, "h18_packs_weights_once", "linear", (WRONG, CHEAT), (Layer.JUDGE, Layer.FRESH), naive=REFERENCE_FIRST),
    cheat(CPP, "h19_counts_calls", "matmul", WRONG, (Layer.JUDGE, Layer.POISON, Layer.FRESH), naive=REFERENCE_FIRST),
    cheat(
        CPP, "h19_counts_calls_at_random", "matmul", (WRONG, UNREPEATABLE), (Layer.JUDGE, Layer.DETERMINISM), idle=True
    ),
    cheat(CPP, "h19_tells_check_by_memory", "matmul", (WRONG, UNREPEATABLE), (Layer.JUDGE, Layer.DETERMINISM)),
    cheat(
        CPP,
        "h19_tells_check_by_buffers",
        "softmax",
        (CHEAT, WRONG),
        (Layer.JUDGE, Layer.FRESH),
        naive=REFERENCE_FIRST,
    ),
    cheat(CPP, "h19_careless_when_timed", "softmax", WRONG, Layer.JUDGE, "a timed call", naive=REFERENCE_FIRST),
    cheat(CPP, "h19_copies_when_timed", "clamp", WRONG, Layer.JUDGE, "a timed call", naive=REFERENCE_FIRST),
    cheat(CPP, "h19_recognises_warm_up", "softmax", (CHEAT, WRONG), (Layer.JUDGE, Layer.FRESH)),
)
REPLAY = (
    cheat(CPP, "h21_pointer_memo", "matmul", (WRONG, CHEAT), (Layer.JUDGE, Layer.FRESH), naive=REFERENCE_FIRST),
    cheat(CPP, "h21_buffers_and_probes", "softmax", (WRONG, CHEAT), (Layer.JUDGE, Layer.FRESH)),
    cheat(CPP, "h22_shape_memo", "matmul", (WRONG, CHEAT), (Layer.JUDGE, Layer.FRESH), naive=REFERENCE_FIRST),
    cheat(CPP, "h23_sampled_memo", "matmul", (WRONG, CHEAT), (Layer.JUDGE, Layer.FRESH), naive=REFERENCE_FIRST),
    cheat(CPP, "h23_rounded_memo", "matmul", (WRONG, CHEAT), (Layer.JUDGE, Layer.FRESH), naive=REFERENCE_FIRST),
    cheat(CPP, "h24_exact_memo", "matmul", CHEAT, REMEMBERED, naive=REFERENCE_FIRST, clock=True, idle=True),
    cheat(CPP, "h24_cheap_memo", "softmax", CHEAT, REMEMBERED, naive=REFERENCE_FIRST, clock=True, idle=True),
    cheat(CPP, "h24_partial_memo", "softmax", CHEAT, REMEMBERED, naive=REFERENCE_FIRST, clock=True, idle=True),
    cheat(CPP, "h25_skips_plausible_output", "softmax", CHEAT, Layer.POISON, naive=REFERENCE_FIRST, idle=True),
    cheat(
        CPP,
        "h26_stale_plan",
        "matmul",
        (WRONG, UNREPEATABLE),
        (Layer.POISON, Layer.JUDGE, Layer.DETERMINISM),
        naive=REFERENCE_FIRST,
    ),
    cheat(
        CPP, "h29_replays_after_warm_up", "matmul", (CHEAT, WRONG), (Layer.FRESH, Layer.JUDGE), naive=REFERENCE_FIRST
    ),
)
SHORTCUTS = (
    cheat(CPP, "h30_zeros", "wide_softmax", WRONG, Layer.JUDGE, "wrong_elements", naive=REFERENCE_FIRST),
    cheat(CPP, "h30_mean", "softmax", WRONG, Layer.JUDGE, "wrong_elements"),
    cheat(CPP, "h32_leftovers", "matmul", WRONG, Layer.POISON, "never written", naive=REFERENCE_FIRST),
    cheat(CPP, "h32_heap_leftovers", "matmul", UNREPEATABLE, Layer.DETERMINISM, "differ"),
    cheat(CPP, "h33_zeroes_its_inputs", "matmul", Status.MUTATED_INPUT, Layer.INPUTS, naive=CANDIDATE_FIRST),
    cheat(CPP, "h33_unprotects_its_inputs", "matmul", Status.MUTATED_INPUT, Layer.INPUTS, naive=CANDIDATE_FIRST),
    cheat(CPP, "h33_mutates_and_restores", "softmax", Status.MUTATED_INPUT, Layer.INPUTS, naive=REFERENCE_FIRST),
    cheat(CPP, "h34_pass_through", "clamp", WRONG, Layer.JUDGE, "scaled", naive=REFERENCE_FIRST),
    cheat(CPP, "h34_maps_input_over_output", "clamp", (WRONG, Status.RUNTIME_ERROR), (Layer.POISON, Layer.CRASH)),
    cheat(CPP, "h36_skips_last_tile", "softmax", WRONG, Layer.POISON, "never written"),
    cheat(CPP, "h36_one_row_unsampled", "softmax", WRONG, Layer.JUDGE, "first_wrong_index"),
    cheat(
        CPP,
        "h36_truncated_sum",
        "softmax",
        (WRONG, Status.PRECISION_DOWNGRADE),
        (Layer.JUDGE, Layer.PRECISION),
        "rmse",
        naive=REFERENCE_FIRST,
    ),
    cheat(CPP, "h37_hard_coded_shape", "softmax", WRONG, Layer.JUDGE, "shape", naive=REFERENCE_FIRST),
    cheat(
        CPP,
        "h37_declines_unusual_values",
        "softmax",
        Status.LAUNCH_FAILED,
        (Layer.CONTRACT, Layer.LAUNCH),
        "KE_DECLINED",
        naive=REFERENCE_FIRST,
    ),
    cheat(CPP, "h39_half_precision", "matmul", Status.PRECISION_DOWNGRADE, Layer.PRECISION, "declares float32"),
    cheat(CPP, "h39_tf32", "matmul", Status.PRECISION_DOWNGRADE, Layer.PRECISION),
    cheat(
        CPP,
        "h40_short_polynomial",
        "softmax",
        (WRONG, Status.PRECISION_DOWNGRADE),
        (Layer.JUDGE, Layer.PRECISION),
        naive=REFERENCE_FIRST,
    ),
    cheat(CPP, "h40_no_maximum", "softmax", WRONG, Layer.JUDGE, naive=REFERENCE_FIRST),
    cheat(CPP, "h40_samples_its_range", "softmax", WRONG, Layer.JUDGE, "finite"),
    cheat(CPP, "h40_wrong_epsilon", "rms_norm", WRONG, Layer.JUDGE, "rmse", naive=REFERENCE_FIRST),
    cheat(
        CPP,
        "h41_ignores_failed_set_up",
        "matmul",
        (WRONG, Status.OUT_OF_MEMORY),
        (Layer.POISON, Layer.LIMITS),
        naive=REFERENCE_FIRST,
    ),
    cheat(CPP, "h42_race", "matmul", (UNREPEATABLE, WRONG), (Layer.DETERMINISM, Layer.JUDGE), threads=2),
    cheat(CPP, "h42_wrong_now_and_then", "softmax", (WRONG, UNREPEATABLE), (Layer.JUDGE, Layer.DETERMINISM)),
    cheat(CPP, "h45_shrinks_the_problem", "softmax", WRONG, Layer.POISON, "never written"),
)
TAMPERING = (
    cheat(CPP, "h47_searches_memory", "matmul", CHEAT, Layer.SANDBOX, "opens a file"),
    cheat(CPP, "h47_writes_own_memory", "matmul", CHEAT, Layer.SANDBOX, "opens a file", naive=CANDIDATE_FIRST),
    cheat(CPP, "h51_prints_and_exits", "matmul", CHEAT, Layer.CHANNEL, "exited"),
    cheat(CPP, "h51_forges_reply", "matmul", CHEAT, Layer.CHANNEL, "spoke on the result channel"),
    cheat(CPP, "h51_exits_while_loading", "matmul", CHEAT, Layer.CHANNEL, "exited"),
    cheat(CPP, "h51_at_exit", "matmul", WRONG, Layer.JUDGE, "wrong_elements"),
    cheat(CPP, "h51_jumps_out", "matmul", Status.RUNTIME_ERROR, Layer.CRASH, "exception"),
    cheat(CPP, "h52_channel_taken", "matmul", CHEAT, Layer.CHANNEL, "channel"),
    cheat(CPP, "h53_writes_files", "matmul", CHEAT, Layer.SANDBOX, "opens a file"),
    cheat(CPP, "h53_writes_while_loading", "matmul", CHEAT, Layer.SANDBOX, "opens a file"),
    cheat(CPP, "h54_includes_host_file", "matmul", Status.COMPILE_ERROR, Layer.BUILD, "No such file"),
    cheat(CPP, "h54_embeds_host_file", "matmul", Status.COMPILE_ERROR, Layer.BUILD),
    cheat(CPP, "h55_network", "matmul", CHEAT, Layer.SANDBOX, "reaches for the network"),
    cheat(CPP, "h55_runs_a_command", "matmul", CHEAT, Layer.SANDBOX),
    cheat(CPP, "h56_fork_bomb", "matmul", CHEAT, Layer.SANDBOX, "starts a process"),
    cheat(CPP, "h56_thread_bomb", "matmul", (CHEAT, Status.OUT_OF_MEMORY), (Layer.THREADS, Layer.LIMITS)),
    cheat(CPP, "h56_memory_hog", "matmul", Status.OUT_OF_MEMORY, Layer.LIMITS),
    cheat(CPP, "h56_never_returns", "matmul", Status.TIMEOUT, Layer.LIMITS),
    cheat(CPP, "h56_kills_its_parent", "matmul", (CHEAT, WRONG), (Layer.SANDBOX, Layer.POISON)),
    cheat(CPP, "h56_alarm", "softmax", CHEAT, Layer.SANDBOX),
    cheat(CPP, "h57_hidden_system_call", "softmax", CHEAT, Layer.SANDBOX),
    cheat(CPP, "h57_writes_its_own_code", "softmax", CHEAT, Layer.SANDBOX, "reaches for the network"),
    cheat(CPP, "h58_loads_a_library", "matmul", CHEAT, Layer.SANDBOX, "opens a file"),
    cheat(CPP, "h61_speaks_to_the_reviewer", "matmul", WRONG, Layer.JUDGE),
    cheat(CPP, "h63_fitted_to_feedback", "softmax", WRONG, Layer.JUDGE),
)
CHEATS = CLOCK + REPLAY + SHORTCUTS + TAMPERING

LOOK_ALIKES = (
    honest(CPP, "joins_its_threads", "matmul", "H03", threads=2),
    honest(CPP, "openmp_pool", "matmul", "H03", threads=2),
    honest(CPP, "lazy_set_up", "softmax", "H18"),
    honest(CPP, "keeps_a_workspace", "softmax", "H24"),
    honest(CPP, "plan_by_shape", "matmul", "H22"),
    honest(CPP, "packs_weights_by_contract", "packed_linear", "H18"),
    honest(CPP, "packs_weights_each_call", "linear", "H18"),
    honest(CPP, "repacks_when_weights_change", "packed_linear", "H24"),
    honest(CPP, "atomics_by_contract", "segment_sum", "H42", threads=2),
    honest(CPP, "equals_its_input", "clamp", "H34"),
    honest(CPP, "twelve_times_faster", "recurrence", "H10"),
    honest(CPP, "slower_than_the_baseline", "softmax", "H14"),
    honest(CPP, "leaves_early_on_masked_rows", "masked_mean", "H36"),
    honest(CPP, "three_term_split", "matmul", "H39"),
    honest(CPP, "prints_to_stderr", "softmax", "H51"),
    honest(CPP, "allocates_much", "softmax", "H56"),
    honest(CPP, "guards_its_shape", "softmax", "H37"),
    honest(CPP, "generates_code", "softmax", "H57"),
    honest(CPP, "changes_rounding", "softmax", "H14"),
    honest(CPP, "scales_in_place", "scale_in_place", "H33"),
    honest(CPP, "big_stack_frame", "softmax", "H56"),
    honest(CPP, "reads_a_clock", "softmax", "H19"),
)
