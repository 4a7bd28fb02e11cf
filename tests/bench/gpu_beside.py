"""An operator by eager, by ``torch.compile``, by ``max-autotune``, by what else is known for it, and by an artefact.

    python tests/bench/gpu_beside.py OPERATOR.py [ARTEFACT]

Times are medians in ms of Triton's ``do_bench``, which empties the cache between calls; needs torch and Triton alone.
"""

import importlib.util
import json
import sys
from pathlib import Path

import torch
from triton.testing import do_bench

WARM_MS, REPEAT_MS = 25, 200


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def median(call):
    return do_bench(call, warmup=WARM_MS, rep=REPEAT_MS, return_mode="median")


def channels_last(model, inputs):
    """A one-dimensional convolution as a two-dimensional one whose channels lie side by side: cuDNN's fast path."""
    conv = model.conv
    x = inputs[0].unsqueeze(2).contiguous(memory_format=torch.channels_last)
    weight = conv.weight.unsqueeze(2).contiguous(memory_format=torch.channels_last)
    return lambda: torch.nn.functional.conv2d(x, weight, conv.bias, padding=(0, conv.padding[0]))


OTHERS = {"conv1d": {"channels-last conv2d": channels_last}}


def main(operator, artefact=None):
    reference = loaded(Path(operator))
    with torch.device("cuda"):
        torch.manual_seed(0)
        inputs = reference.get_inputs()
        model = reference.Model(*reference.get_init_inputs()).eval()
    with torch.inference_mode():
        result = model(*inputs)
        results = [result] if isinstance(result, torch.Tensor) else list(result)
        tensors = [*(x for x in inputs if isinstance(x, torch.Tensor)), *model.state_dict().values(), *results]
        large = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(large)
        copied = 2 * large.numel() / median(lambda: target.copy_(large)) / 1e6
        compiled, tuned = torch.compile(model), torch.compile(model, mode="max-autotune")
        ms = {"eager": median(lambda: model(*inputs)), "compiled": median(lambda: compiled(*inputs))}
        ms["max-autotune"] = median(lambda: tuned(*inputs))
        for name, made in OTHERS.get(Path(operator).stem, {}).items():
            ms[name] = median(made(model, inputs))
        if artefact:
            (path,) = Path(artefact).glob("*_kernel.py")
            shipped = loaded(path)
            ours = shipped.ModelNew(*shipped.get_init_inputs()).cuda().eval()
            ours.load_state_dict(model.state_dict())
            why = shipped.why_fallback(ours, *inputs)
            if why:
                raise SystemExit(f"the artefact falls back: {why}")
            ms["artefact"] = median(lambda: ours(*inputs))
    print(json.dumps({"ms": ms, "copy_gb_s": copied, "bytes": sum(t.numel() * t.element_size() for t in tensors)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
