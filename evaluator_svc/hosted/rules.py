"""Which system calls a Python-hosted candidate may make (pure), as two filters.

The first allows what importing, compiling in memory and a private cache take: reading files, and writing them where
Landlock and the mounts let it. The second comes on top when the kernel has warmed up: nothing is opened for writing any
more. Neither ever allows a process, a socket, or a look at another process. With ``processes`` the first allows a
compiler to be started, for kernels that are compiled on first use.
"""

from __future__ import annotations

import errno
from functools import cache

import seccompy

from evaluator_svc.syscalls import NEVER_IN_A_BUILD, REFUSED, RUNNING, WRITE_FLAGS
from shared.system_calls import CLONE_THREAD

READING = (
    "openat", "open", "pread64", "readv", "preadv", "access", "faccessat", "faccessat2", "readlink", "readlinkat",
    "stat", "lstat", "statx", "fstatfs", "statfs", "getdents64", "getcwd", "select", "pselect6", "epoll_create1",
    "getresuid", "getresgid", "getpgrp", "getsid", "sched_getparam", "sched_getscheduler", "sched_getattr",
    "rt_sigpending", "rt_sigtimedwait", "mincore", "msync", "capget", "gettimeofday", "eventfd2",
)  # fmt: skip
"""What Python and torch do besides computing: importing a module on first use, asking where they are."""

WRITING = (
    "mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "ftruncate", "fsync",
    "fdatasync", "flock", "pwrite64", "utimensat", "chmod", "fchmod", "fchmodat", "umask", "link", "linkat", "symlink",
    "symlinkat", "fallocate", "copy_file_range", "sendfile", "truncate", "chdir",
)  # fmt: skip
"""A cache on a private file system."""

STARTING = (
    "clone", "fork", "vfork", "execve", "wait4", "waitid", "pipe", "pipe2", "dup", "dup2", "dup3", "fcntl", "ioctl",
    "rt_sigaction", "setpgid", "prlimit64", "kill", "close_range", "getpgid", "prctl", "pidfd_open", "epoll_ctl",
    "epoll_wait", "epoll_pwait", "setsid", "sched_get_priority_max", "sched_get_priority_min",
)  # fmt: skip
"""A compiler, run while the kernel is compiled on first use."""

QUIET = ("fadvise64", "personality", "getxattr", "lgetxattr", "fgetxattr", "listxattr", "inotify_init1")
"""Asked for by libraries that do without: refused, not punished."""


DRIVER = ("seccomp", "sched_setaffinity", "memfd_create", "mlock", "tgkill")
"""Of what no build may do: sealing itself, and what a GPU's driver and its threads do."""
STARTS = ("execve", "execveat", "fork", "vfork")


@cache
def filters_on_gpu() -> tuple[bytes, bytes]:
    """As ``filters`` for a process with a GPU, whose driver's calls nobody has listed: what is refused is listed
    instead, and files are left to mounts and Landlock. No process is started once the kernel has warmed up.
    """
    warming = seccompy.Filter(default=seccompy.Action.ALLOW)
    for name in NEVER_IN_A_BUILD:
        if name not in DRIVER:
            warming.errno(name, errno.EPERM)
    warming.errno("clone3", errno.ENOSYS)
    sealed = seccompy.Filter(default=seccompy.Action.ALLOW)
    for name in STARTS:
        sealed.trap(name)
    sealed.trap("clone", args=[(0, seccompy.CmpOp.MASKED_EQ, 0, CLONE_THREAD)])
    return warming.program, sealed.program


ABSENT = (1, 10)
"""AF_UNIX, by which the C library asks a daemon for user names, and AF_INET6, which libraries try on being imported:
answered as where there is none. Any other family is a reach for the network."""


@cache
def filters(*, processes: bool) -> tuple[bytes, bytes]:
    """The program before and the one on top of it after warming up."""
    return _loading(processes=processes), _sealed()


def _loading(*, processes: bool) -> bytes:
    rules = _base()
    allowed = (*READING, *WRITING, *(STARTING if processes else ()), "seccomp")
    for name in (*RUNNING, *allowed):
        rules.allow(name)
    for name in (*REFUSED, *QUIET):
        if name not in allowed:
            rules.errno(name, errno.EPERM)
    if not processes:
        rules.allow("clone", args=[(0, seccompy.CmpOp.MASKED_EQ, CLONE_THREAD, CLONE_THREAD)])
    return rules.program


def _sealed() -> bytes:
    rules = _base()
    for name in ("openat", "open"):
        for flag in WRITE_FLAGS:
            position = 2 if name == "openat" else 1
            rules.trap(name, args=[(position, seccompy.CmpOp.MASKED_EQ, flag, flag)])
    for name in (*RUNNING, *READING):
        rules.allow(name)
    for name in (*REFUSED, *QUIET):
        rules.errno(name, errno.EPERM)
    rules.allow("clone", args=[(0, seccompy.CmpOp.MASKED_EQ, CLONE_THREAD, CLONE_THREAD)])
    return rules.program


def _base() -> seccompy.Filter:
    rules = seccompy.Filter(default=seccompy.Action.TRAP)
    # glibc tries clone3 first, whose flags a filter cannot see, and falls back to clone on ENOSYS.
    rules.errno("clone3", errno.ENOSYS)
    for family in ABSENT:
        rules.errno("socket", errno.EAFNOSUPPORT, args=[(0, seccompy.CmpOp.EQ, family)])
    return rules
