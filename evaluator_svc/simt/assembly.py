"""What compilers' texts tell of a GPU's kernels: resources, and how much arithmetic there is to an access (pure).

Resources are the compiler's own words: ``ptxas -v``, and the metadata of an AMDGPU object (LLVM's user guide, "Code
Object V5 Metadata"). The mix of instructions is counted in PTX or AMDGCN as it stands: loops count once, so only ratios
are of use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

KERNELS_MAX = 8
_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\(")
_BOUNDS = re.compile(r"\.maxntid\s+(\d+)")
_ASSEMBLED = re.compile(r"Compiling entry function '(\w+)'")
_USED = re.compile(r"Used (\d+) registers(?:.*?, (\d+) bytes smem)?")
_FRAME = re.compile(r"(\d+) bytes stack frame")
_METADATA = {
    "name": r"\.name:\s+(\S+)",
    "registers": r"\.vgpr_count:\s+(\d+)",
    "stack": r"\.private_segment_fixed_size:\s+(\d+)",
    "shared": r"\.group_segment_fixed_size:\s+(\d+)",
    "threads": r"\.max_flat_workgroup_size:\s+(\d+)",
}
_TOO_MUCH_LDS = re.compile(r"local memory \((\d+)\) exceeds limit \((\d+)\) in (?:function )?'(\w+)'")
_GLOBAL = {"ptx": re.compile(r"(ld|st)\.global"), "amdgcn": re.compile(r"(global|flat)_(load|store)")}
_LOAD = {"ptx": "ld.global", "amdgcn": "_load"}
_SPECIAL = {
    "ptx": re.compile(r"(ex2|lg2|sin|cos|tanh|rsqrt|sqrt|rcp|div\.(rn|full|approx)(\.ftz)?\.f)"),
    "amdgcn": re.compile(r"v_(exp|log|sin|cos|rsq|sqrt|rcp)_"),
}
_IDLE = {
    "ptx": re.compile(r"(mov|ld|st|bra|ret|bar|shfl|cvta|ex2|lg2|membar|call|prmt)\b"),
    "amdgcn": re.compile(r"(?!v_)|v_(mov|accvgpr|readfirstlane|cndmask)"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One kernel, compiled. ``shared`` of a block and ``stack`` of a thread in bytes; ``threads`` of a block at most.

    ``accesses``, ``plain`` and ``special``: instructions of its text on the chip's memory, of ordinary arithmetic, and
    of the special functions. ``burst``: reads that one thread has in flight, the most of any stretch without a jump.
    """

    name: str
    registers: int
    stack: int
    shared: int
    threads: int
    accesses: int
    plain: int
    special: int
    burst: int


def shared_of_ptx(ptx: str) -> dict[str, int]:
    """Bytes of shared memory that each kernel declares; those of the whole text count for each."""
    common = _shared(ptx[: first.start()] if (first := _ENTRY.search(ptx)) else ptx)
    return {name: common + _shared(text) for name, text in _entries(ptx)}


def nvidia(ptx: str, told: str, threads_max: int) -> tuple[Device, ...]:
    """Kernels of ``ptx``; ``told`` is what ptxas printed of them. Without bounds a block may have ``threads_max``."""
    used: dict[str, tuple[int, int, int]] = {}
    for part in told.split("ptxas"):
        found = _ASSEMBLED.search(part)
        if found is not None:
            name, stack = found[1], 0
        if (frame := _FRAME.search(part)) is not None:
            stack = int(frame[1])
        if (one := _USED.search(part)) is not None:
            used[name] = (int(one[1]), stack, int(one[2] or 0))
    made = []
    for name, text in _entries(ptx)[:KERNELS_MAX]:
        if name not in used:
            continue
        bounds = _BOUNDS.search(text)
        registers, stack, shared = used[name]
        made.append(
            Device(
                name=name,
                registers=registers,
                stack=stack,
                shared=shared,
                threads=int(bounds[1]) if bounds else threads_max,
                **_mix(text, "ptx"),
            )
        )
    return tuple(made)


def amd(text: str) -> tuple[Device, ...]:
    """Kernels of an assembler's text."""
    made = []
    for part in re.split(r"^  - \.a", text[text.find("amdhsa.kernels") :], flags=re.MULTILINE)[1 : KERNELS_MAX + 1]:
        found = {key: re.search(pattern, part) for key, pattern in _METADATA.items()}
        facts = {key: match[1] for key, match in found.items() if match is not None}
        name = facts.pop("name")
        begin = text.find(f"\n{name}:")
        body = text[begin : text.find(".section", begin)]
        made.append(Device(name=name, **{key: int(value) for key, value in facts.items()}, **_mix(body, "amdgcn")))
    return tuple(made)


def beyond_lds(log: str) -> str:
    """The kernel that declares more local memory than there is, in words; empty for none."""
    found = _TOO_MUCH_LDS.search(log)
    return f"{found[3]} needs {found[1]} bytes of shared memory a block, there are {found[2]}" if found else ""


def _entries(ptx: str) -> list[tuple[str, str]]:
    found = list(_ENTRY.finditer(ptx))
    ends = [*(one.start() for one in found), len(ptx)][1:]
    return [(one[1], ptx[one.start() : end]) for one, end in zip(found, ends, strict=False)]


def _shared(text: str) -> int:
    sizes = re.compile(r"\.shared\s+(?:\.align\s+\d+\s+)?\.[a-z](\d+)\s+\w+(?:\[(\d+)\])?\s*;")
    return sum(int(one[1]) // 8 * int(one[2] or 1) for one in sizes.finditer(text))


def _mix(text: str, dialect: str) -> dict[str, int]:
    counts = {"accesses": 0, "plain": 0, "special": 0, "burst": 1}
    reads = 0
    for line in text.splitlines():
        words = line.strip().removeprefix("{").split()
        if not line.startswith("\t") or not words or words[0].endswith(":"):
            reads = 0 if line.rstrip().endswith(":") or "BB" in line[:8] else reads
            continue
        opcode = words[1] if words[0].startswith("@") and len(words) > 1 else words[0]
        if opcode.startswith((".", "//", ";")):
            continue
        if _GLOBAL[dialect].match(opcode):
            counts["accesses"] += 1
            reads += _LOAD[dialect] in opcode
            counts["burst"] = max(counts["burst"], reads)
        elif _SPECIAL[dialect].match(opcode):
            counts["special"] += 1
        elif not _IDLE[dialect].match(opcode):
            counts["plain"] += 1
    return counts
