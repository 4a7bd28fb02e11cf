"""An operator's text that looks around, and what a parent with a secret gets to hear of it."""

from __future__ import annotations

SECRET = "s3cr3t-key-of-the-model"
SPY = """
import ctypes, errno, json, os, signal, socket, torch

def environ_of_parent():
    return open(f"/proc/{os.getppid()}/environ").read()

def memory_of_parent():
    return repr(open(f"/proc/{os.getppid()}/mem", "rb"))

def trace_parent():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, os.getppid(), 0, 0) != 0:  # PTRACE_SEIZE
        raise OSError(ctypes.get_errno(), "ptrace")
    return "traced"

def own_environ():
    return " ".join(os.environ.values())

found = {}
def attempt(action):
    try:
        found[action.__name__] = "got: " + action()
    except OSError as error:
        found[action.__name__] = errno.errorcode.get(error.errno, repr(error))

for action in (environ_of_parent, memory_of_parent, trace_parent, own_environ):
    attempt(action)
"""
TELLS = "\nraise RuntimeError(json.dumps(found))\n"
