"""What pipes and waits are called, and what helps against each (pure)."""

from __future__ import annotations

PIPES = {
    "tensor_share": (
        "tensor cores",
        "fewer or cheaper products; a lower precision only where the operator declares it",
    ),
    "fma_share": ("multiply-add pipe", "tensor cores where products allow them, less redundant arithmetic"),
    "alu_share": (
        "integer and logic pipe",
        "cheaper addresses and masks: wider accesses, constants, fewer conversions",
    ),
    "special_share": ("special functions (exp, log, sqrt)", "cheaper approximations, fewer of them an element"),
    "double_share": ("float64 pipe", "float32 where the operator declares it"),
}
WAITS = {
    "long_scoreboard": "for memory: more bytes in flight by wider loads, unrolling, prefetching or pipeline stages",
    "lg_throttle": "for the queue of global accesses: fewer and wider ones",
    "short_scoreboard": "for shared memory or special functions: fewer exchanges between threads, fewer exp and log",
    "mio_throttle": "for the queue of shared memory and special functions: wider accesses to shared memory",
    "barrier": "at barriers: smaller blocks, less unequal work, fewer exchanges",
    "gmma": "for tensor cores: more pipeline stages, larger tiles",
    "math_pipe_throttle": "for a pipe that is taken: spread work over others",
    "wait": "for fixed latencies: more independent instructions (unrolling, several accumulators)",
    "no_instruction": "for instructions: less unrolling, smaller code",
    "branch_resolving": "at branches: fewer, or predicated ones",
    "drain": "for their last stores: fewer, wider stores",
    "membar": "at memory fences: fewer of them",
}
"""What warps wait for and what helps, by Nsight Compute's names (Kernel Profiling Guide, "Warp State")."""
BUSY = ("selected", "not_selected")
"""No waiting: a warp is issued, or another one is."""
