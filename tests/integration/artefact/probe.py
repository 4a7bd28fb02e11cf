"""Run in a fresh process: imports an exported module by its directory and prints, as JSON, what it does."""

from __future__ import annotations

import copy
import json
import sys
import warnings
from pathlib import Path


def main(directory: str) -> None:
    sys.path.insert(0, directory)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import scaled_residual_kernel as shipped
    import torch

    facts = {"warnings": [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]}
    facts["modules"] = sorted(
        name for name in sys.modules if name.partition(".")[0] in ("jinja2", "shared", "cli", "evaluator_svc")
    )
    torch.manual_seed(1)
    model = shipped.ModelNew(*shipped.get_init_inputs()).eval()
    reference = shipped.reference.Model(*shipped.get_init_inputs()).eval()
    facts["loads_state"] = str(model.load_state_dict(reference.state_dict()))
    x, residual, repeat = shipped.get_inputs()
    state = list(reference.state_dict().values())
    op = getattr(
        torch.ops.kernelevolve, Path(directory, "build.json").read_text().split("kernelevolve::")[1].split('"')[0]
    )

    def same(a, b):
        return all(
            u.shape == v.shape and u.dtype == v.dtype and torch.allclose(u, v, 1e-6, 1e-6)
            for u, v in zip(a, b, strict=True)
        )

    other, other_reference = shipped.ModelNew(40, scale=5.0), shipped.reference.Model(40, scale=5.0)
    other_reference.load_state_dict(other.state_dict())
    cases = {
        "own inputs": (model, reference, (x, residual, repeat)),
        "another shape": (model, reference, (x[:3].clone(), residual[:3].clone(), repeat)),
        "strided": (model, reference, (x.t().contiguous().t(), residual, repeat)),
        "misaligned": (model, reference, (torch.rand(6 * 40 + 1)[1:].view(6, 40), residual, repeat)),
        "another value": (model, reference, (x, residual, 4)),
        "a default": (model, reference, (x, residual)),
        "double": (
            copy.deepcopy(model).double(),
            copy.deepcopy(reference).double(),
            (x.double(), residual.double(), repeat),
        ),
        "half": (copy.deepcopy(model).half(), copy.deepcopy(reference).half(), (x.half(), residual.half(), repeat)),
        "other constructor": (other, other_reference, (x, residual, repeat)),
    }
    facts["cases"] = {}
    with torch.no_grad():
        for name, (ours, theirs, arguments) in cases.items():
            facts["cases"][name] = {
                "same": same(ours(*arguments), theirs(*arguments)),
                "why": shipped.why_fallback(ours, *arguments),
            }
        facts["keywords"] = {
            "same": same(model(x, repeat=repeat, residual=residual), reference(x, residual, repeat)),
            "why": shipped.why_fallback(model, x, repeat=repeat, residual=residual),
        }
        facts["declined op"] = same(op(x[:3], residual[:3], *state), reference(x[:3], residual[:3], repeat))
        facts["misaligned op"] = same(
            op(cases["misaligned"][2][0], residual, *state), reference(cases["misaligned"][2][0], residual, repeat)
        )
        first = model(x, residual, repeat)
        kept = [output.clone() for output in first]
        model(x + 1, residual, repeat)
        facts["results_are_kept"] = all(torch.equal(a, b) for a, b in zip(first, kept, strict=True))
        launches = []
        launch = shipped._launch
        if launch is not None:
            shipped._launch = lambda *a: launches.append(1) or launch(*a)
            model(x, residual, repeat)
            model(x[:3], residual[:3], repeat)
            shipped._launch = launch
        facts["launches"] = len(launches)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        facts["autocast"] = shipped.why_fallback(model, x, residual, repeat)
    facts["gradient"] = shipped.why_fallback(model, x, residual, repeat)
    model(x, residual, repeat)[0].sum().backward()
    reference(x, residual, repeat)[0].sum().backward()
    facts["gradients_same"] = torch.allclose(model.norm["gain"].grad, reference.norm["gain"].grad)
    if "--deep" in sys.argv:
        facts["opcheck"] = torch.library.opcheck(op, (x, residual, *state))
        facts["opcheck other shape"] = torch.library.opcheck(op, (x[:3], residual[:3], *state))
        with torch.no_grad():
            compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
            facts["compiled"] = same(compiled(x, residual, repeat), reference(x, residual, repeat))
            facts["compiled other shape"] = same(
                compiled(x[:2], residual[:2], repeat), reference(x[:2], residual[:2], repeat)
            )
    print(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1])
