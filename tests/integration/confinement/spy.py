"""An operator's text that reaches for what is not its own.

``text(...)`` puts it before an operator: it tries every action by name, keeps the error's name or ``GOT``, and either
raises what it found or says nothing and lets the operator be captured.
"""

from __future__ import annotations

SECRET = "s3cr3t-key-of-the-model"
PARENT = ("environ", "memory", "trace")
"""Actions against the parent that need it to be closed."""
ALL = (*PARENT, "kill", "others", "connect", "abstract", "write", "file", "program", "own")
"""``own`` reads what the text may know, and is no reach."""

SPY = """
import contextlib, ctypes, errno, json, os, signal, socket, torch

read = []

def look(path):
    with open(path, "rb") as file:
        read.append(file.read(1 << 20).decode(errors="replace"))

def environ():
    look(f"/proc/{PARENT}/environ")

def memory():
    look(f"/proc/{PARENT}/maps")
    open(f"/proc/{PARENT}/mem", "r+b")

def trace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, PARENT, 0, 0) != 0:  # PTRACE_SEIZE
        raise OSError(ctypes.get_errno(), "ptrace")

def kill():
    os.kill(PARENT, signal.SIGKILL)

def others():
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) not in (1, os.getpid()):
            look(f"/proc/{pid}/cmdline")
            return
    raise OSError(errno.ESRCH, "nobody there")

def connect():
    socket.create_connection(("127.0.0.1", PORT), 5).close()

def abstract():
    socket.socket(socket.AF_UNIX).connect("\\0" + ABSTRACT)

def write():
    with open(os.path.join(PLACE, "written"), "w") as file:
        file.write("here")

def file():
    look(os.path.join(PLACE, "planted"))

def program():
    if os.fork() == 0:
        os._exit(0)

def own():
    read.extend(os.environ.values())
    for path in ("/proc/self/environ", "/proc/1/environ"):
        with contextlib.suppress(OSError):
            look(path)

found = {}
for name in ACTIONS:
    try:
        globals()[name]()
        found[name] = "GOT"
    except OSError as error:
        found[name] = errno.errorcode.get(error.errno, type(error).__name__)
found["leak"] = SECRET_BACKWARDS[::-1] in "".join(read)
"""
OPERATOR = """
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""


def text(
    *, parent: int, actions: tuple[str, ...], tells: bool, port: int = 0, abstract: str = "", place: str = ""
) -> str:
    known = {
        "PARENT": parent, "PORT": port, "ABSTRACT": abstract, "PLACE": place, "ACTIONS": actions,
        "SECRET_BACKWARDS": SECRET[::-1],
    }  # fmt: skip
    first = "\n".join(f"{name} = {value!r}" for name, value in known.items())
    return first + SPY + ("\nraise RuntimeError(json.dumps(found))\n" if tells else "") + OPERATOR
