"""Corvid's compiler, as `build` of the contract: clang for its cores, linked with the harness into one program."""

import json
import pathlib
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
TARGET = ["--target=riscv64-linux-gnu", "-march=rv64gcv_zvl256b", "-mabi=lp64d", "-std=gnu11"]
LINK = [
    "-static", "-nostartfiles", "-fuse-ld=lld", "-Wl,-e,corvid_start", "-Wl,--section-start=.corvid=0x40000000",
    "-Wl,--section-start=.text=0x40010000",
    "-Wl,--no-relax",
]  # fmt: skip
OURS = b".corvid"
ECALL = bytes((0x73, 0, 0, 0))
PROGRAM_BITS, EXECUTABLE = 1, 4
"""Type and flag of an ELF section."""


def main(path: pathlib.Path) -> None:
    folder = path.parent
    request = json.loads(path.read_text())
    (folder / request["result"]).write_text(json.dumps(build(folder, request)))


def build(folder: pathlib.Path, request: dict) -> dict:
    harness, kernel, program = folder / "harness.o", folder / request["source"], folder / request["artefact"]
    abi = f"-I{HERE}"
    steps = (
        ["clang-19", *TARGET, "-O1", abi, "-c", str(HERE / "harness.c"), "-o", str(harness)],
        ["clang-19", *TARGET, abi, *request["flags"], *LINK, str(harness), str(kernel), "-o", str(program), "-lm"],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        print(done.stderr, end="")
        if done.returncode != 0:
            lines = [line.replace(f"{folder}/", "") for line in done.stderr.splitlines()]
            first = next((line for line in lines if "error:" in line), f"the compiler ended with {done.returncode}")
            return {"status": "error", "message": first[:2000]}
    if makes_system_calls(program.read_bytes()):
        return {"status": "error", "message": "error: the kernel makes a system call, or links a function that does"}
    return {"status": "ok"}


def makes_system_calls(program: bytes) -> bool:
    """Whether executable bytes outside of the harness hold the instruction for one, also in the middle of others."""
    at, size, count, names = *struct.unpack_from("<Q", program, 0x28), *struct.unpack_from("<3H", program, 0x3A)
    sections = [struct.unpack_from("<2I4Q", program, at + size * number) for number in range(count)]
    texts = sections[names][4]
    for name, kind, flags, _, begin, length in sections:
        called = program[texts + name : program.index(b"\0", texts + name)]
        if kind == PROGRAM_BITS and flags & EXECUTABLE and called != OURS:
            found = program.find(ECALL, begin, begin + length)
            while found >= 0:
                if found % 2 == 0:
                    return True
                found = program.find(ECALL, found + 1, begin + length)
    return False


main(pathlib.Path(sys.argv[1]))
