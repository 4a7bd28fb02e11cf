"""Corvid's compiler, as `build` of the contract: clang for its cores, linked with the harness into one program."""

import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
TARGET = ["--target=riscv64-linux-gnu", "-march=rv64gcv_zvl256b", "-mabi=lp64d", "-std=gnu11"]
LINK = [
    "-static", "-nostartfiles", "-fuse-ld=lld", "-Wl,-e,corvid_start", "-Wl,--section-start=.corvid=0x40000000",
    "-Wl,--section-start=.text=0x40010000",
    "-Wl,--no-relax",
]  # fmt: skip
OURS = ".corvid"


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
    forbidden = system_calls(program)
    if forbidden:
        return {"status": "error", "message": f"{forbidden} makes a system call: kernels have none"}
    return {"status": "ok"}


def system_calls(program: pathlib.Path) -> str:
    """The function outside of the harness that has an instruction for one; empty for none."""
    command = ["llvm-objdump-19", "-d", "--no-show-raw-insn", "--mattr=+v", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    section, function = "", ""
    for line in done.stdout.splitlines():
        if line.startswith("Disassembly of section "):
            section = line.split()[-1].rstrip(":")
        elif named := re.match(r"[0-9a-f]+ <(.+)>:", line):
            function = named[1]
        elif section != OURS and re.search(r"\t(ecall|ebreak|c\.ebreak)\b", line):
            return function
    return ""


main(pathlib.Path(sys.argv[1]))
