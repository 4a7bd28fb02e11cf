"""Building untrusted sources: what comes out, what is refused, and what a source cannot reach."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket
import stat
import subprocess
import sys
import time

import pytest

from evaluator_svc.scratch import sweep
from evaluator_svc.toolchains import BuildFailed, Built, artefacts
from evaluator_svc.toolchains.build_box import BuildLimits
from evaluator_svc.toolchains.cpu import CpuToolchain
from shared.events import Status
from tests.integration.evaluator.pipeline import ROOT
from tests.integration.evaluator.softmax_runner import build_failure, evidence, source

pytestmark = pytest.mark.serial

SLOW = "constexpr long f(long n) { long s = 0; for (long i = 0; i < 250000; ++i) s += i; return s + n; }\n" + "".join(
    f"constexpr long v{n} = f({n});\n" for n in range(1000)
)
"""Keeps the compiler busy for minutes."""
EMPTY = '#include "ke_abi.h"\nextern "C" int ke_launch(const KeTensor*, int, KeTensor*, int, void*) { return KE_OK; }\n'


@pytest.fixture
def toolchain(tmp_path):
    return CpuToolchain(directory=tmp_path / "builds")


def build(toolchain, text, *flags):
    return asyncio.run(toolchain.build(text, flags))


def test_a_build_is_a_hashed_read_only_file_and_says_how_it_was_boxed(toolchain):
    built = build(toolchain, EMPTY, "-O2")
    assert isinstance(built, Built)
    assert built.digest == hashlib.sha256(built.path.read_bytes()).hexdigest()
    assert stat.S_IMODE(built.path.stat().st_mode) == 0o444
    assert built.build_ns > 0
    assert built.sandbox.endswith("seccomp+landlock+rlimits")


def test_the_same_build_is_done_once(toolchain):
    first, again = build(toolchain, EMPTY, "-O2"), build(toolchain, EMPTY, "-O2")
    assert (again.path, again.digest, again.build_ns) == (first.path, first.digest, 0)
    assert build(toolchain, EMPTY, "-O3").path != first.path


def test_a_damaged_artefact_is_built_again(toolchain):
    first = build(toolchain, EMPTY)
    first.path.chmod(0o644)
    first.path.write_bytes(b"not a library")
    again = build(toolchain, EMPTY)
    assert isinstance(again, Built)
    assert again.build_ns > 0
    assert hashlib.sha256(again.path.read_bytes()).hexdigest() == again.digest


def test_equal_builds_at_once_agree(toolchain):
    async def scenario():
        return await asyncio.gather(*(toolchain.build(EMPTY, ["-O1"]) for _ in range(4)))

    built = asyncio.run(scenario())
    assert len({(b.path, b.digest) for b in built}) == 1
    assert [p.name for p in toolchain.directory.iterdir()] == [built[0].path.parent.name]


def test_a_compile_error_names_the_first_error_and_its_line():
    failed = asyncio.run(build_failure("compile_error"))
    assert failed.status is Status.COMPILE_ERROR
    assert "kernel.cpp:5:11: error: expected ';'" in evidence(failed)


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/self/environ", "/root/.profile", "/home", __file__])
def test_a_source_cannot_include_files_of_the_host(toolchain, path):
    failed = build(toolchain, f'#include "{path}"\n')
    assert isinstance(failed, BuildFailed)
    assert failed.status is Status.COMPILE_ERROR
    assert "No such file or directory" in evidence(failed) or "Permission denied" in evidence(failed)


@pytest.mark.parametrize(
    "flag",
    [
        "-fplugin=/tmp/evil.so", "-B/tmp", "@/etc/passwd", "-specs=/tmp/specs", "-wrapper", "-I/etc", "-include",
        "-Wl,-rpath,/tmp", "-Wa,-o,/tmp/x", "-Wp,-MD,/tmp/x", "-o", "/etc/passwd", "-xassembler", "-save-temps",
        "-fdump-tree-all=/tmp/x", "-fprofile-use=/tmp/x", "-fuse-ld=/tmp/ld", "-L/tmp", "-lcrypto", "--param", "-m32",
        "-fsanitize=address", "-flto", "-DX=$(id)", "-D", "-nostdlib", "-static", "-O2 -B/tmp", "", "-fno-pic",
    ],
)  # fmt: skip
def test_a_flag_off_the_list_is_a_compile_error_that_names_it(toolchain, flag):
    failed = build(toolchain, EMPTY, "-O2", flag)
    assert isinstance(failed, BuildFailed)
    assert failed.status is Status.COMPILE_ERROR
    assert repr(flag) in evidence(failed)


@pytest.mark.parametrize(
    "flag",
    [
        "-O3", "-Ofast", "-march=native", "-march=x86-64-v4", "-mprefer-vector-width=512", "-mavx2", "-mno-avx512f",
        "-ffast-math", "-fno-math-errno", "-fopenmp", "-funroll-loops", "-ffp-contract=fast", "-std=c++20",
        "--param=max-unroll-times=8", "-DTILE=64", "-DNAME", "-Wall", "-fno-exceptions", "-falign-loops=32", "-lm",
    ],
)  # fmt: skip
def test_a_flag_that_steers_code_generation_is_accepted(flag):
    # Not one build each: the list is what is tested, the compiler knows its own flags.
    from evaluator_svc.toolchains.flags import refused

    assert refused([flag]) is None


def test_all_usual_flags_build_together(toolchain):
    usual = ["-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-fopenmp", "-funroll-loops"]
    assert isinstance(build(toolchain, source("right"), *usual), Built)


def test_a_build_without_end_is_killed_with_all_its_processes(tmp_path):
    toolchain = CpuToolchain(directory=tmp_path, limits=BuildLimits(time_s=1.0))
    failed = build(toolchain, SLOW)
    assert isinstance(failed, BuildFailed)
    assert failed.status is Status.TIMEOUT
    assert "1 s" in evidence(failed)


def test_a_build_that_eats_memory_is_out_of_memory(tmp_path):
    greedy = "template <int N> struct T { T<N - 1> a; T<N - 2> b; };\n" + "int x[] = {" + "1," * 400_000 + "};\n"
    toolchain = CpuToolchain(directory=tmp_path, limits=BuildLimits(memory_bytes=90 << 20))
    failed = build(toolchain, greedy)
    assert isinstance(failed, BuildFailed)
    assert failed.status is Status.OUT_OF_MEMORY, failed.log[:500]


def test_a_build_cannot_write_large_files(tmp_path):
    toolchain = CpuToolchain(directory=tmp_path, limits=BuildLimits(file_bytes=1 << 20))
    failed = build(toolchain, EMPTY + "char big[8 << 20] = {1};\n")
    assert isinstance(failed, BuildFailed)
    assert failed.status is Status.COMPILE_ERROR


HOST_FILES = (
    "/etc/passwd", "/etc/shadow", "/proc/self/environ", "/proc/1/environ", "/dev/stdin", "/root/.bashrc",
    "/build/../etc/passwd", "../../../../etc/passwd", "/proc/self/root/etc/passwd", "/proc/self/fd/3",
)  # fmt: skip


@pytest.mark.parametrize("path", HOST_FILES)
@pytest.mark.parametrize(
    "way",
    [
        '#include "{}"', "#include_next <{}>", 'asm(".incbin \\"{}\\"");', 'asm(".include \\"{}\\"");',
        '#pragma GCC dependency "{}"\n#if __has_include("{}")\n#error it is there\n#endif\n#error not there',
    ],
)  # fmt: skip
def test_no_directive_reads_a_file_of_the_host(toolchain, way, path):
    failed = build(toolchain, EMPTY + way.replace("{}", path) + "\n")
    assert isinstance(failed, BuildFailed)
    assert failed.status is Status.COMPILE_ERROR
    assert "it is there" not in failed.log
    assert "root:" not in failed.log


def test_a_constructor_of_the_kernel_does_not_run_while_it_is_built(toolchain):
    built = build(toolchain, EMPTY + "__attribute__((constructor)) static void now() { __builtin_trap(); }\n")
    assert isinstance(built, Built)


def test_a_section_that_holds_linker_options_reaches_no_file(toolchain):
    script = 'asm(".section .drectve; .ascii \\" -L/etc -lpasswd INPUT(/etc/passwd) \\"; .text");\n'
    built = build(toolchain, EMPTY + script)
    assert isinstance(built, Built)
    assert b"root:" not in built.path.read_bytes()


def test_a_cancelled_build_ends_its_compiler(tmp_path):
    async def scenario():
        toolchain = CpuToolchain(directory=tmp_path)
        building = asyncio.ensure_future(toolchain.build(SLOW, []))
        await asyncio.wait([building], timeout=0.5)
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(building, timeout=5)

    asyncio.run(scenario())


BUILDS_FOR_EVER = """
import asyncio, os, pathlib, sys
os.chmod(sys.argv[1], 0o755)  # boxes may be another user
from evaluator_svc.toolchains.cpu import CpuToolchain
asyncio.run(CpuToolchain(directory=pathlib.Path(sys.argv[1]) / "builds").build(sys.stdin.read(), []))
"""


def test_what_a_worker_was_building_when_it_was_killed_is_removed_by_the_next_one(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", BUILDS_FOR_EVER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE) as worker:
        worker.stdin.write(SLOW.encode())
        worker.stdin.close()
        deadline = time.monotonic() + 30
        while not (begun := [path.parent for path in tmp_path.glob("ke-build-*/kernel.cpp")]):
            assert time.monotonic() < deadline
        assert sweep(tmp_path) == []
        worker.kill()
    assert sweep(tmp_path) == begun
    assert not list(tmp_path.glob("ke-build-*"))


def test_assembly_is_the_text_of_the_same_kernel(toolchain):
    built = build(toolchain, source("right"), "-O2")
    assert isinstance(built, Built)
    assert built.assembly is not None
    text = built.assembly.read_text()
    assert "ke_launch:" in text


def test_a_missing_compiler_says_how_to_install_one(toolchain, monkeypatch):
    assert toolchain.check() is None
    monkeypatch.setenv("CXX", "no-such-compiler")
    error = toolchain.check()
    assert error is not None
    assert "apt-get install g++" in str(error)


@pytest.mark.parametrize(
    "kind", ["missing", "link", "link to a device", "directory", "pipe", "socket", "empty", "huge"]
)
def test_only_a_regular_file_is_taken_from_a_build(tmp_path, kind):
    path = tmp_path / "kernel.so"
    match kind:
        case "link":
            path.symlink_to("/etc/passwd")
        case "link to a device":
            path.symlink_to("/dev/zero")
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(tmp_path):
                listener.bind("kernel.so")
        case "huge":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "empty":
            path.touch()
    with pytest.raises(artefacts.RefusedArtefact):
        artefacts.collect(path)


@pytest.mark.parametrize(
    ("change", "at"), [(b"!<arch>\n", 0), (b"#!/bin/sh", 0), (b"\x01", 4), (b"\x02", 5), (b"\x02", 16), (b"\x03", 18)]
)
def test_only_a_shared_library_for_this_machine_is_taken_from_a_build(toolchain, tmp_path, change, at):
    built = build(toolchain, EMPTY)
    whole = bytearray(built.path.read_bytes())
    path = tmp_path / "kernel.so"
    path.write_bytes(whole)
    assert artefacts.library(path) == whole
    whole[at : at + len(change)] = change
    path.write_bytes(whole)
    with pytest.raises(artefacts.RefusedArtefact, match="no shared library for x86-64"):
        artefacts.library(path)
