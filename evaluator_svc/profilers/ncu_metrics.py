"""Which metrics Nsight Compute is asked for, and what each is here (pure). The one place where its names stand.

Names as in the sections of Nsight Compute 2025 (SpeedOfLight, MemoryWorkloadAnalysis, ComputeWorkloadAnalysis,
WarpStateStats, Occupancy, LaunchStats) and evaluation.md §4.1. A name that a chip does not have reads ``n/a``, so a
field may have several: the first that is told counts.
"""

from __future__ import annotations

BYTES: dict[str, tuple[str, ...]] = {
    "dram_read_bytes": ("dram__bytes_read.sum",),
    "dram_written_bytes": ("dram__bytes_write.sum",),
    "spill_load_bytes": ("l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum",),
    "spill_store_bytes": ("l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum",),
    "shared_bytes": ("launch__shared_mem_per_block_allocated", "launch__shared_mem_per_block"),
}
TIMES: dict[str, tuple[str, ...]] = {"duration_ns": ("gpu__time_duration.sum",)}
SHARES: dict[str, tuple[str, ...]] = {
    "compute_share": ("sm__throughput.avg.pct_of_peak_sustained_elapsed",),
    "memory_share": ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",),
    "dram_share": (
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "l2_share": ("lts__throughput.avg.pct_of_peak_sustained_elapsed",),
    "l2_hit": ("lts__t_sector_hit_rate.pct",),
    "l1_share": ("l1tex__throughput.avg.pct_of_peak_sustained_active",),
    "l1_hit": ("l1tex__t_sector_hit_rate.pct",),
    "load_use": ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",),
    "store_use": ("smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",),
    "tensor_share": (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
    ),
    "fma_share": (
        "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    ),
    "alu_share": (
        "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
    ),
    "special_share": ("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",),
    "double_share": (
        "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
    ),
    "issue_share": ("smsp__issue_active.avg.pct_of_peak_sustained_active",),
    "occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
    "occupancy_possible": ("sm__maximum_warps_per_active_cycle_pct",),
}
"""Told in per cent."""
COUNTS: dict[str, tuple[str, ...]] = {
    "blocks": ("launch__grid_size",),
    "threads": ("launch__block_size",),
    "registers": ("launch__registers_per_thread",),
    "waves": ("launch__waves_per_multiprocessor",),
    "multiprocessors": ("device__attribute_multiprocessor_count",),
}
LIMITS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
}
"""Blocks on a multiprocessor that each would allow."""
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
SHARED_ACCESSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
"""Passes over shared memory, those that conflicts added included."""
STALLS = {
    reason: f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    for reason in (
        "long_scoreboard", "short_scoreboard", "barrier", "branch_resolving", "lg_throttle", "mio_throttle",
        "tex_throttle", "math_pipe_throttle", "wait", "no_instruction", "drain", "membar", "sleeping", "dispatch_stall",
        "imc_miss", "gmma", "not_selected", "selected",
    )
}  # fmt: skip
"""``gmma``: warps that wait for the tensor cores' own instructions on Hopper."""


def asked() -> tuple[str, ...]:
    """Every name, each once, in the order of the tables."""
    tables = (TIMES, BYTES, SHARES, COUNTS)
    names = [name for table in tables for fields in table.values() for name in fields]
    return tuple(dict.fromkeys([*names, *LIMITS.values(), CONFLICTS, SHARED_ACCESSES, *STALLS.values()]))
