"""Schedules at GPU sizes, timed: what ``write`` renders here, ``time`` measures on a machine with a GPU.

    python -m tests.bench.gpu_schedules write DIR [operator ...] --draws 4
    python tests/bench/gpu_schedules.py time DIR

``time`` needs torch and triton alone. Every module is compared with eager torch first; times are medians of Triton's
``do_bench``, which empties the cache between calls. Kernels are compiled first, a process per operator. It prints a
line an operator as it goes, and writes ``times.json``.
"""

import argparse
import contextlib
import importlib.util
import json
import random
import subprocess
import sys
import time
from pathlib import Path

OPERATORS = Path("examples/operators/gpu")
CLOSE = 5e-3
"""Relative error in the Euclidean norm that 16-bit results stay below."""


def write(folder, draws, names):
    """Modules of the default and of random one- and two-move neighbours of it, per operator."""
    from shared import chips
    from synthesizer_svc.schedule import capture, emit, plan

    gpu = chips.load("nvidia-sm_90").gpu
    for path in sorted(OPERATORS.glob("*.py")):
        if names and path.stem not in names:
            continue
        source = path.read_text()
        built = plan.build(capture.capture(source))
        space = emit.space("triton", built, gpu, 1)
        stream, default = random.Random(path.stem), space.default()
        kept = {emit.render("triton", built, default, gpu, 1).source: default}
        for _ in range(50 * draws):
            if len(kept) > draws:
                break
            schedule = default
            for decision in stream.sample(space.decisions, min(len(space.decisions), stream.choice((1, 2)))):
                schedule = schedule.with_choice(decision.key, stream.choice(decision.values))
            kept.setdefault(emit.render("triton", built, schedule, gpu, 1).source, schedule)
        target = folder / path.stem
        target.mkdir(parents=True, exist_ok=True)
        (target / "operator.py").write_text(source)
        for number, (text, schedule) in enumerate(kept.items()):
            changed = {k: v for k, v in schedule.choices if default.get(k) != v}
            (target / f"k{number:03d}.py").write_text(f"# {json.dumps(changed)}\n{text}")
        print(f"{path.stem}: {len(kept)} modules")


def loaded(path):
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def median(call):
    """Milliseconds."""
    from triton.testing import do_bench

    return do_bench(call, warmup=15, rep=60, return_mode="median")


def copy_bandwidth():
    """GB/s, read and written."""
    import torch

    x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    return 2 * x.numel() / median(lambda: y.copy_(x)) / 1e6


def measure(folder, seconds):
    """Times of everything under ``folder``; starts nothing new after ``seconds``."""
    import torch
    import triton

    deadline = time.monotonic() + seconds
    compile_all(folder)
    machine = f"{torch.cuda.get_device_name()}; torch {torch.__version__}, Triton {triton.__version__}"
    told = {"machine": machine, "copy_gb_s": copy_bandwidth()}
    print(f"copy {told['copy_gb_s']:.0f} GB/s", flush=True)
    for operator in sorted(folder.glob("*/operator.py")):
        if time.monotonic() < deadline:
            told[operator.parent.name] = alone(operator, deadline - time.monotonic())
            print(operator.parent.name, json.dumps(told[operator.parent.name]), flush=True)
            (folder / "times.json").write_text(json.dumps(told, indent=1))


def alone(operator, seconds):
    """Times of an operator in a process of its own, and in another after a module that the process does not survive."""
    rows, deadline = {}, time.monotonic() + seconds
    while True:
        left = str(max(0.0, deadline - time.monotonic()))
        command = [sys.executable, __file__, "one", str(operator.parent), *rows, "--seconds", left]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        for row in found:
            rows |= row
        if done.returncode == 0 or not found:
            return rows


def compile_all(folder):
    """Fill Triton's cache with every module's kernels, an operator's in a process of its own."""
    begin = time.monotonic()
    operators = sorted(folder.glob("*/operator.py"))
    processes = [subprocess.Popen([sys.executable, __file__, "compile", str(each.parent)]) for each in operators]
    for each in processes:
        each.wait()
    print(f"compiled in {time.monotonic() - begin:.0f} s", flush=True)


def compile_one(folder):
    """What fails is told when it is timed."""
    import torch

    _, _, tensors = on_device(folder / "operator.py")
    with torch.inference_mode():
        for path in sorted(folder.glob("k*.py")):
            with contextlib.suppress(Exception):
                loaded(path).ModelNew()(*tensors)


def on_device(operator):
    """The operator's model, its inputs, and these with its parameters."""
    import torch

    reference = loaded(operator)
    with torch.device("cuda"):
        torch.manual_seed(0)
        inputs = reference.get_inputs()
        model = reference.Model(*reference.get_init_inputs()).eval()
    return model, inputs, [*inputs, *(p.detach() for p in model.state_dict().values())]


def times(folder, deadline, known):
    """Print milliseconds of an operator's baselines and modules, one by one, but for those ``known``.

    Ends the process where a module leaves the device in a state that nothing else can be timed in.
    """
    import torch

    model, inputs, tensors = on_device(folder / "operator.py")
    with torch.inference_mode():
        expected, compiled = model(*inputs), torch.compile(model)
        for name, call in (("eager", model), ("compiled", compiled)):
            if name not in known:
                print(json.dumps({name: median(lambda call=call: call(*inputs))}), flush=True)
        for path in sorted(folder.glob("k*.py")):
            if path.stem in known or time.monotonic() > deadline:
                continue
            print(json.dumps({path.stem: one(path, tensors, expected)}), flush=True)
            torch.cuda.synchronize()  # raises what the module left behind


def one(path, tensors, expected):
    """The module's time in ms, or what is wrong with it."""
    try:
        call = loaded(path).ModelNew()
        got = call(*tensors)
        error = ((got.double() - expected.double()).norm() / expected.double().norm()).item()
        return median(lambda: call(*tensors)) if error < CLOSE else f"wrong: {error:.2e}"
    except Exception as error:  # noqa: BLE001 - whatever a kernel raises is what is wrong with it
        return f"{type(error).__name__}: {str(error)[:200]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["write", "time", "compile", "one"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=500.0)
    given = parser.parse_args()
    if given.what == "write":
        write(given.folder, given.draws, given.operators)
    elif given.what == "compile":
        compile_one(given.folder)
    elif given.what == "one":
        times(given.folder, time.monotonic() + given.seconds, given.operators)
    else:
        measure(given.folder, given.seconds)


if __name__ == "__main__":
    main()
