"""Which system calls a box allows, compiled to seccomp programs (pure; the compiler is seccompy).

The runner's filter is an allow-list: a numeric kernel needs memory, threads, clocks and its result channel, and any
other call ends it with SIGSYS, whose record names the call. The build box runs a compiler, which forks and writes
files, so its filter is a deny-list of what no compiler needs.
"""

from __future__ import annotations

import errno
from functools import cache

import seccompy

from shared.system_calls import CLONE_THREAD, NEVER, refuse_namespaces

WRITE_FLAGS = (0o1, 0o2, 0o100, 0o1000)
"""O_WRONLY, O_RDWR, O_CREAT, O_TRUNC."""

RUNNING = (
    "read", "write", "writev", "close", "lseek", "fstat", "newfstatat", "poll", "ppoll",
    "mmap", "munmap", "mprotect", "mremap", "madvise", "brk",
    "futex", "set_robust_list", "rseq", "set_tid_address", "sched_yield", "sched_getaffinity", "getcpu", "membarrier",
    "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "tgkill", "rt_sigprocmask", "rt_sigreturn",
    "sigaltstack", "exit", "exit_group", "restart_syscall", "arch_prctl",
    "clock_gettime", "clock_getres", "gettimeofday", "time", "nanosleep", "clock_nanosleep",
    "getrandom", "getrusage", "sysinfo", "uname", "times",
)  # fmt: skip
"""What a loaded kernel may call."""

LOADING = ("openat", "pread64", "access", "readlink", "seccomp")
"""Needed besides by the dynamic linker; gone once the kernel is loaded."""

REFUSED = (
    "sched_setaffinity", "sched_setscheduler", "sched_setparam", "setpriority", "mlock", "mlock2", "mlockall", "mbind",
    "set_mempolicy", "get_mempolicy", "prctl", "prlimit64", "setrlimit", "getrlimit", "ioctl", "fcntl", "rt_sigaction",
    "dup", "dup2", "dup3",
)  # fmt: skip
"""Harmless to try (libraries do, ``perror`` duplicates) and answered with EPERM: limits, placement, signal handlers and
descriptors stay as set."""

NEVER_IN_A_BUILD = NEVER
PRETENDED = ("setsid", "setpgid")
"""Answered as if done: a build stays in the group that is killed as one, and tools that group their children go on."""


@cache
def runner_filter(*, loading: bool) -> bytes:
    """The program for a runner; ``loading`` allows what opening a shared library takes, read-only."""
    rules = seccompy.Filter(default=seccompy.Action.TRAP)
    for name in RUNNING:
        rules.allow(name)
    for name in REFUSED:
        rules.errno(name, errno.EPERM)
    # glibc tries clone3 first, whose flags a filter cannot see, and falls back to clone on ENOSYS.
    rules.errno("clone3", errno.ENOSYS)
    rules.allow("clone", args=[(0, seccompy.CmpOp.MASKED_EQ, CLONE_THREAD, CLONE_THREAD)])
    if loading:
        for flag in WRITE_FLAGS:
            rules.trap("openat", args=[(2, seccompy.CmpOp.MASKED_EQ, flag, flag)])
        for name in LOADING:
            rules.allow(name)
    return rules.program


@cache
def build_filter(*, kills_itself: bool = False) -> bytes:
    """The program for the build box: refused calls fail with EPERM. ``kills_itself``: an emulator ends by the signal of
    its guest.
    """
    rules = seccompy.Filter(default=seccompy.Action.ALLOW)
    for name in NEVER_IN_A_BUILD:
        if name != "kill" or not kills_itself:
            rules.errno(name, errno.EPERM)
    for name in PRETENDED:
        rules.errno(name, 0)
    refuse_namespaces(rules)
    return rules.program


PROFILING = (
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg",
    "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open", "pidfd_send_signal",
    "memfd_create", "mlock", "mlock2", "sched_setaffinity", "setpriority", "mknod", "mknodat",
)  # fmt: skip
"""What a profiler, the part of it in the profiled process, and a GPU's driver do: they talk to each other, by named
pipes, too. Nobody in the box may make another kind of node."""


@cache
def profiler_filter() -> bytes:
    """The program for a box with a profiler in it: as a build's, and its processes may talk and signal. Only for a box
    with namespaces, where there is nobody else and no network but its own.
    """
    rules = seccompy.Filter(default=seccompy.Action.ALLOW)
    for name in NEVER_IN_A_BUILD:
        if name not in PROFILING:
            rules.errno(name, errno.EPERM)
    refuse_namespaces(rules)
    return rules.program


MEANINGS = {
    "clone": "starts a process", "fork": "starts a process", "vfork": "starts a process",
    "execve": "runs another program", "execveat": "runs another program",
    "socket": "reaches for the network", "socketpair": "talks to another process",
    "open": "opens a file", "openat": "opens a file", "creat": "writes a file",
    "kill": "signals another process", "tkill": "signals another process",
    "ptrace": "controls another process", "process_vm_readv": "reads another process",
    "process_vm_writev": "writes another process",
}  # fmt: skip


def describe(number: int) -> str:
    """``socket (reaches for the network)`` for 41 on x86-64; ``system call N`` when unknown."""
    try:
        name = seccompy.syscall_name(number)
    except ValueError:
        return f"system call {number}"
    return f"{name} ({MEANINGS[name]})" if name in MEANINGS else name
