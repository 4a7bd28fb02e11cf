"""System calls that no program needs which reads somebody's text, and the filter for an operator's (pure; the compiler
is seccompy).
"""

from __future__ import annotations

import errno
from functools import cache

import seccompy

CLONE_THREAD = 0x00010000
NEVER = (
    # the network and other machines
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg",
    # other processes, also those outside where there are no namespaces
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp",
    "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
    "migrate_pages", "move_pages",
    # the kernel
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "seccomp",
    "keyctl", "add_key", "request_key", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load",
    "reboot", "swapon", "swapoff", "syslog", "acct", "quotactl", "iopl", "ioperm", "modify_ldt", "lookup_dcookie",
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "vhangup",
    # files by another way than their path
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsmount", "fsconfig", "fspick",
    "mount_setattr", "unshare", "setns", "mknod", "mknodat", "name_to_handle_at", "open_by_handle_at", "fanotify_init",
    # memory that no limit of a process counts, or that outlives it
    "shmget", "msgget", "semget", "mq_open", "memfd_create", "memfd_secret", "mlock", "mlock2", "mlockall",
    # more than its share of the processor
    "setpriority", "sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity", "ioprio_set",
)  # fmt: skip
NAMESPACES = (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. (The first is part of the signal number in
clone's flags, where no signal is so large.)"""
TERMINAL = (0x5412, 0x541C)
"""TIOCSTI, TIOCLINUX: type into a terminal."""
STARTS = ("fork", "vfork", "execve", "execveat")


def refuse_namespaces(rules: seccompy.Filter) -> None:
    """Add to ``rules``: no new namespaces, and no typing into a terminal."""
    for flag in NAMESPACES:
        rules.errno("clone", errno.EPERM, args=[(0, seccompy.CmpOp.MASKED_EQ, flag, flag)])
    # Its flags lie in memory, where a filter does not see them; glibc falls back to clone.
    rules.errno("clone3", errno.ENOSYS)
    for request in TERMINAL:
        rules.errno("ioctl", errno.EPERM, args=[(1, seccompy.CmpOp.EQ, request)])


@cache
def reader_filter() -> bytes:
    """The program for a process that reads an operator's text: it starts threads and nothing else, and has neither
    network nor signals. Refused calls fail with EPERM, so that a library that tries one goes on.
    """
    rules = seccompy.Filter(default=seccompy.Action.ALLOW)
    for name in (*NEVER, *STARTS):
        rules.errno(name, errno.EPERM)
    rules.errno("clone", errno.EPERM, args=[(0, seccompy.CmpOp.MASKED_EQ, 0, CLONE_THREAD)])
    refuse_namespaces(rules)
    return rules.program
