"""Candidate's side, under a profiler: load a module, warm it up, and make one call between two marks.

A program of its own: a profiler has to start what it looks at, and a driver survives no fork. Its argument is a file of
JSON beside the operator's inputs (``profilers.ncu.Ncu``). Nothing is checked or timed here, and nothing that comes
out of this process decides a verdict.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

WARM_CALLS = 3
"""A kernel is compiled on its first call, and perhaps tuned; the call that counts is the fourth."""


def main(file: Path) -> None:
    told: dict[str, Any] = json.loads(file.read_text())
    sys.path[:] = told["paths"]
    import torch

    model_of = importlib.import_module("evaluator_svc.hosted.model")
    torch.set_num_threads(int(told["threads"]))
    importlib.import_module("evaluator_svc.hosted.extensions").install(
        Path(told["extensions"]) if told["extensions"] else None
    )
    shared = [
        _tensor(torch, file.parent / f"input-{i}", shape, getattr(torch, dtype)).to(told["device"])
        for i, (shape, dtype) in enumerate(told["inputs"])
    ]
    private = [tensor.clone() if i in told["mutates"] else tensor for i, tensor in enumerate(shared)]
    on_gpu = told["device"] != "cpu"
    with torch.no_grad():
        model = model_of.Model(model_of.executed(told["text"]), told["signature"], private)
        arguments = model.bind(private)

    def renew() -> None:
        for i in told["mutates"]:
            private[i].copy_(shared[i])

    with torch.inference_mode():
        for _ in range(WARM_CALLS):
            renew()
            model.call(*arguments)
        renew()
        if on_gpu:
            torch.cuda.synchronize()
            torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
        model.call(*arguments)
        if on_gpu:
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]


def _tensor(torch: Any, file: Path, shape: list[int], dtype: Any) -> Any:
    data = bytearray(file.read_bytes())
    flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
    return flat.reshape(shape)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
