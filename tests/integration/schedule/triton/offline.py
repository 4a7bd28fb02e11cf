"""Child program: compiles emitted modules for GPUs that are not here, and reads what their kernels need.

Arguments: architecture; how many random schedules beside the default; operator files, or names of tables; choices for
every group, as in ``finish=2``. Prints JSON: operator -> for each schedule: kernel -> shared bytes, registers, spilled
bytes, on NVIDIA's also loads of 16 bits; or the error.
"""

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from itertools import product
from pathlib import Path

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="ke-offline-"))

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction, mangle_type

from evaluator_svc.hosted.model import executed
from shared import chips
from synthesizer_svc.schedule import emit
from tests.integration.schedule import compiled, table
from tests.integration.schedule.triton import cases

CACHE = Path(os.environ["TRITON_CACHE_DIR"])
if CACHE.name.startswith("ke-offline-"):  # its own
    atexit.register(shutil.rmtree, CACHE, ignore_errors=True)
ALIGNED = [["tt.divisibility", 16]]
CUOBJDUMP = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"


def machine(architecture):
    return chips.load("amd-gfx942" if architecture == "gfx942" else "nvidia-sm_90").gpu


def target(architecture):
    return GPUTarget("hip", "gfx942", 64) if architecture == "gfx942" else GPUTarget("cuda", 90, 32)


def resources(kernel, architecture):
    """Shared bytes, registers and spilled bytes of a compiled kernel."""
    if architecture == "gfx942":
        text = kernel.asm["amdgcn"]
        read = lambda name: int(re.search(rf"\.{name}:\s+(\d+)", text)[1])
        return {
            "shared": kernel.metadata.shared,
            "registers": read("vgpr_count"),
            "spilled": read("private_segment_fixed_size"),
        }
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        said = subprocess.run([CUOBJDUMP, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    return {
        "shared": kernel.metadata.shared,
        "registers": int(re.search(r"REG:(\d+)", said)[1]),
        "spilled": int(re.search(r"STACK:(\d+)", said)[1]),
        "narrow": len(re.findall(r"ld\.global[\w.:]*\.[bu]16 ", kernel.asm["ptx"])),
    }


def compile_module(text, tensors, architecture):
    """Every launch of the module on ``tensors``, compiled and not run: kernel name -> what it needs."""
    found = {}
    module = executed(text)

    def run(self, *arguments, grid, warmup, num_warps, num_stages, **named):
        del grid, warmup
        signature = {name: mangle_type(a) for name, a in zip(self.arg_names, arguments, strict=False)}
        constants = {(self.arg_names.index(name),): value for name, value in named.items()}
        signature |= dict.fromkeys(named, "constexpr")
        attributes = {(place,): ALIGNED for place, a in enumerate(arguments) if hasattr(a, "data_ptr")}
        source = ASTSource(fn=self, signature=signature, constexprs=constants, attrs=attributes)
        options = {"num_warps": num_warps, "num_stages": num_stages}
        made = triton.compile(source, target=target(architecture), options=options)
        found[self.__name__] = {**resources(made, architecture), "threads": num_warps * machine(architecture).warp}
        found[self.__name__]["asm"] = made.asm

    original = JITFunction.run
    JITFunction.run = run
    try:
        with torch.no_grad():
            module.ModelNew()(*tensors)
    finally:
        JITFunction.run = original
    return found


def compile_all(name, source, count, architecture, choices):
    """What the kernels of an operator need under its default and ``count`` random schedules, by schedule."""
    built, model, inputs = compiled.planned(source)
    gpu, tensors, told = machine(architecture), compiled.kernel_inputs(model, inputs), []
    for schedule in cases.schedules(built, name, count, gpu):
        for group, (decision, value) in product(built.groups, choices):
            schedule = schedule.with_choice(f"{group.name}.{decision}", value)  # noqa: PLW2901
        text = emit.render("triton", built, schedule, gpu, 1).source
        try:
            kernels = compile_module(text, tensors, architecture)
        except Exception as error:  # noqa: BLE001 - whatever a compiler says is what is wrong with the kernel
            chosen = ", ".join(f"{k}={v}" for k, v in schedule.choices)
            told.append({"error": f"{type(error).__name__}: {str(error)[-800:]}", "schedule": chosen})
            continue
        told.append({n: {k: v for k, v in seen.items() if k != "asm"} for n, seen in kernels.items()})
    return told


def main():
    architecture, count, *what = sys.argv[1:]
    warnings.simplefilter("ignore")
    told = {}
    for one in what:
        if "=" in one:
            continue
        path = Path(one)
        found = [(path.stem, path.read_text())] if path.suffix else [(n, table.source(c)) for n, c in cases.of(one)]
        for name, source in found:
            told[name] = compile_all(name, source, int(count), architecture, cases.choices(what))
    print(json.dumps(told))


if __name__ == "__main__":
    main()
