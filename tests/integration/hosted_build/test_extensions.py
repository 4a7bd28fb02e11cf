"""Extensions of hosted kernels: compiled in the build box, found by content where no compiler is."""

import asyncio
import json
import subprocess
import sys

import pytest

from evaluator_svc.layers import Layer, caught_by
from evaluator_svc.toolchains import BuildFailed, Built, hosted
from evaluator_svc.toolchains.hosted import HostedToolchain
from shared.events import Status
from tests.integration.hosted_build.modules import PLAIN, building, module, source

LOADED = """
import sys
from pathlib import Path
from evaluator_svc.hosted import extension_calls, extensions
extensions.install(Path(sys.argv[2]) if sys.argv[2] else None)
names = {}
exec(compile(open(sys.argv[1]).read(), "kernel.py", "exec"), names)
print(eval(sys.argv[3], names))
print(dict(extension_calls.CALLS))
"""


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory):
    return HostedToolchain(directory=tmp_path_factory.mktemp("modules"))


def build(toolchain, text, language="python"):
    return asyncio.run(toolchain.build(text, [], language=language))


def evidence(failed):
    assert isinstance(failed, BuildFailed), failed
    return {entry.name: entry.value for entry in failed.evidence}


def run(built, expression):
    """What ``expression`` gives in a process that has the libraries and no way to start a compiler."""
    command = [sys.executable, "-c", LOADED, str(built.path), str(built.extensions or ""), expression]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "", "PYTHONPATH": "."})
    return done.stdout.splitlines() if done.returncode == 0 else [done.stderr.splitlines()[-1]]


BOTH = building(("one", source(1)), ("one", source(2)))
LATER = module(f"""
made = None


def extension():
    global made
    if made is None:
        code = {source(3)!r}
        made = built("later", code)
    return made


class Lazy(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        code = {source(4)!r}
        self.made = load_inline(name="inner", cpp_sources=code, no_implicit_headers=True)
""")


def test_a_module_without_extensions_is_its_own_artefact(toolchain):
    built = build(toolchain, PLAIN, "triton")
    assert isinstance(built, Built)
    assert (built.host, built.language, built.extensions) == ("hosted", "triton", None)
    assert built.path.read_text() == PLAIN
    assert not built.path.stat().st_mode & 0o222


def test_extensions_are_built_once_and_load_where_no_compiler_is_even_two_of_one_name(toolchain):
    built = build(toolchain, BOTH)
    assert isinstance(built, Built), built
    assert built.build_ns > 0
    assert "namespaces" in built.sandbox
    assert {entry.name: entry.value for entry in built.static}["extensions"] == "one"
    assert run(built, "(e0.answer(), e1.answer(), e1.answer())") == ["(1, 2, 2)", "{'one.answer': 3}"]
    again = build(toolchain, BOTH)
    assert isinstance(again, Built)
    assert (again.path, again.build_ns) == (built.path, 0)


def test_a_damaged_artefact_is_made_again(toolchain):
    built = build(toolchain, PLAIN)
    built.path.chmod(0o644)
    built.path.write_text("import this\n")
    assert build(toolchain, PLAIN).path.read_text() == PLAIN


def test_extensions_of_constructors_and_first_uses_are_built_ahead(toolchain):
    built = build(toolchain, LATER)
    assert isinstance(built, Built), built
    assert run(built, "(extension().answer(), Lazy(8).made.answer())")[0] == "(3, 4)"


def test_an_extension_that_does_not_load_is_built_all_the_same_and_says_why_where_it_runs(toolchain):
    built = build(toolchain, module("e = built('nothing', 'int nothing;')\nf = e.forward\n"))
    assert isinstance(built, Built), built
    assert "PyInit_nothing" in run(built, "f()")[0]


def test_an_extension_that_was_not_built_ahead_says_so_when_it_is_asked_for(toolchain):
    built = build(toolchain, LATER)
    assert "extension `late` was not built beforehand" in run(built, "built('late', 'int x;')")[0]


def test_a_compile_error_is_the_candidates_even_where_the_module_hides_it(toolchain):
    hiding = module("try:\n    e = built('wrong', 'int f() { return missing; }')\nexcept Exception:\n    e = None\n")
    failed = build(toolchain, hiding)
    assert failed.status is Status.COMPILE_ERROR
    assert caught_by(failed.evidence) is Layer.BUILD
    assert evidence(failed)["first_error"] == "main.cpp:1:18: error: 'missing' was not declared in this scope"


@pytest.mark.parametrize(
    ("text", "flags", "said"),
    [
        ("class ModelNew(:\n", [], "line 1: invalid syntax"),
        ("x = 1\n", [], "defines no class `ModelNew`"),
        (PLAIN, ["-O3"], "flag '-O3': a module sets the flags of its extensions itself"),
    ],
)
def test_a_bad_form_is_one_clear_line_of_the_static_gate(toolchain, text, flags, said):
    failed = asyncio.run(toolchain.build(text, flags))
    assert failed.status is Status.COMPILE_ERROR
    assert caught_by(failed.evidence) is Layer.STATIC
    assert evidence(failed)["first_error"] == said


def test_a_text_that_breaks_its_reader_is_refused_and_breaks_nothing_else(toolchain, monkeypatch):
    monkeypatch.setattr(hosted, "FORM_TIMEOUT_S", 0.001)
    assert evidence(build(toolchain, PLAIN + "# slow"))["first_error"] == hosted.FORM_UNREADABLE


def test_device_code_for_a_chip_without_a_device_is_a_clear_compile_error(toolchain):
    text = module("e = load_inline(name='d', cpp_sources='', cuda_sources='__global__ void k() {}')\n")
    assert evidence(build(toolchain, text))["first_error"] == "error: cuda_sources need a torch built for CUDA"


LINES = ('#include "/etc/passwd"', 'asm(".incbin \\"/etc/passwd\\"");', '#include "/proc/self/environ"')
HOSTILE = module(f"LINES = {LINES!r}\n" + """
import json, os, socket
from pathlib import Path
seen = {}


def attempt(name, action):
    try:
        seen[name] = repr(action())
    except Exception as error:
        seen[name] = type(error).__name__


attempt("host file", lambda: Path("/etc/passwd").read_text())
attempt("home", lambda: os.listdir(os.path.expanduser("~root")))
attempt("project", lambda: [str(p) for p in Path("/").rglob("judge.py") if "evaluator_svc" in str(p)])
attempt("write", lambda: Path("/usr/lib/x").write_text("x"))
attempt("write here", lambda: Path(__file__).with_name("x").write_text("x"))
attempt("network", lambda: socket.create_connection(("127.0.0.1", 80), 1))
attempt("processes", lambda: os.kill(1, 0) or os.listdir("/proc"))
attempt("secrets", lambda: sorted(os.environ))
attempt("device", lambda: os.mknod("/tmp/node", 0o600 | 0o060000, 1))
for number, line in enumerate(LINES):
    attempt(f"include {number}", lambda: built("spy", line))
print(json.dumps(seen))
e = built("ok", """ + repr(source(6)) + ")\n")  # fmt: skip


@pytest.fixture(scope="module")
def hostile(toolchain):
    built = build(toolchain, HOSTILE)
    assert isinstance(built, Built), built
    return json.loads(built.log.splitlines()[0])


@pytest.mark.parametrize("attempt", ["host file", "write", "write here", "network", "processes", "device"])
def test_what_a_module_attempts_while_it_is_built_is_refused(hostile, attempt):
    assert hostile[attempt] in ("FileNotFoundError", "PermissionError", "OSError")


def test_a_module_sees_nothing_of_the_project_and_of_the_environment_while_it_is_built(hostile, monkeypatch):
    assert hostile["project"] == "[]"
    assert not {"TOKEN", "KEY", "SECRET", "URL"} & {
        part for name in eval(hostile["secrets"]) for part in name.split("_")
    }


@pytest.mark.parametrize("line", range(3))
def test_extensions_cannot_include_files_of_the_host(hostile, line):
    assert hostile[f"include {line}"] == "RuntimeError"


FORGED = """
import os, struct
for fd in range(3, 4096):
    try:
        os.pwrite(fd, {data}, 0)
    except OSError:
        pass
os._exit(0)
built("x", "")
"""


def test_what_is_handed_out_in_another_form_is_refused(toolchain):
    header = 'b"KEEXT001" + struct.pack("<I64sHQ", 1, b"a" * 64, 3, 4) + b"abc#!/x"'
    said = evidence(build(toolchain, module(FORGED.format(data=header))))["first_error"]
    assert said == "extension `abc` is no shared library of at most 64 MiB"


def ended(tmp_path, body, **limits):
    """The failure of a module that takes too much, and the proof that the next build does not notice."""
    small = hosted.LIMITS.__class__(**{"time_s": 60.0, "memory_bytes": 12 << 30, "file_bytes": 8 << 20, **limits})
    toolchain = HostedToolchain(directory=tmp_path, limits=small)
    return build(toolchain, module(body + "\nbuilt('x', '')\n"))


def test_a_module_that_never_ends_is_a_timeout(tmp_path):
    failed = ended(tmp_path, "while True: pass", time_s=6.0)
    assert (failed.status, caught_by(failed.evidence)) == (Status.TIMEOUT, Layer.LIMITS)


def test_a_fork_bomb_is_ended_as_a_whole_and_the_next_build_does_not_notice(tmp_path, toolchain):
    failed = ended(
        tmp_path, "import os, time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(60)", processes=40
    )
    assert failed.status is Status.COMPILE_ERROR
    assert isinstance(build(toolchain, building(("next", source(5)))), Built)


def test_endless_output_is_cut_and_ends_the_build(tmp_path):
    failed = ended(tmp_path, "while True: print('x' * 65536)")
    assert isinstance(failed, BuildFailed)
    assert len(failed.log) <= 16 << 10


def test_memory_and_disk_that_are_refused_are_the_modules_own_affair(tmp_path):
    body = """
for greedy in (lambda: bytearray(16 << 30), lambda: open("/tmp/held", "wb").write(bytes(1 << 30))):
    try:
        greedy()
    except (MemoryError, OSError):
        print("refused")
"""
    assert ended(tmp_path, body).log.startswith("refused\nrefused\n")
