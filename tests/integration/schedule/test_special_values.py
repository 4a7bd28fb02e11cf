"""NaN, infinities and signed zeros go through emitted kernels as they go through torch."""

import pytest
import torch

from synthesizer_svc.schedule.schedule import Schedule
from tests.integration.schedule import compiled, judging, table

INF, NAN = float("inf"), float("nan")
OPERATORS = {
    "softmax": ("F.softmax(x, -1)", ["torch.randn(6, 40)"]),
    "softmax_across": ("F.softmax(x, 0)", ["torch.randn(40, 33)"]),
    "log_softmax": ("F.log_softmax(x, -1)", ["torch.randn(6, 40)"]),
    "logsumexp": ("torch.logsumexp(x, 1)", ["torch.randn(6, 40)"]),
    "extrema": ("return x.amax(1), x.amin(1), x.max(1)[1], x.argmin(1)", ["torch.randn(6, 40)"]),
    "extrema_across": ("return x.amax(0), x.argmax(0)", ["torch.randn(6, 40)"]),
    "clamp_relu": ("F.relu(x) + x.clamp(-1, 1)", ["torch.randn(6, 40)"]),
    "maximum": ("torch.maximum(x, x.flip(1)) + torch.minimum(x, x.flip(1))", ["torch.randn(6, 40)"]),
    "sums": ("return x.sum(1), x.mean(0), x.cumsum(1), x.var(1)", ["torch.randn(6, 40)"]),
    # Not gelu: torch's vectorised one answers NaN at infinity where its scalar one, and mathematics, say infinity.
    "activations": (
        "return torch.tanh(x), torch.sigmoid(x), torch.exp(x), torch.log(x)",
        ["torch.randn(6, 40)"],
    ),
    "layer_norm": ("F.layer_norm(x, (40,))", ["torch.randn(6, 40)"]),
    "predicates": ("return torch.isnan(x), torch.isinf(x), x == x, x > 0", ["torch.randn(6, 40)"]),
}
ONLINE = Schedule(choices=(("g0.softmax_stats", "online"), ("g0.chunk", 512)))


def spiced(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    x[0, 3] = NAN
    x[1, 5] = INF
    x[2, 7] = -INF
    x[3, :] = -INF
    x[4, 2], x[4, 30] = NAN, INF
    x[5, 0] = -0.0
    return x


@pytest.mark.timeout(300)
def test_special_values_pass_as_they_pass_through_torch(tmp_path):
    cases = []
    for name, case in OPERATORS.items():
        built, model, inputs = compiled.planned(table.source(case))
        x = spiced(inputs[0].shape)
        chosen = (None, ONLINE) if "softmax" in name else (None,)
        cases.extend((name, compiled.render(built, schedule), model, x) for schedule in chosen)
    launchers = compiled.compile_together([c[1].source for c in cases], tmp_path, cases[0][1].flags)
    wrong = []
    for (name, _, model, x), launcher in zip(cases, launchers, strict=True):
        declared, exact = judging.references(model, [x])
        problem = judging.agrees(compiled.launch(launcher, [x], declared), declared, exact)
        if problem:
            wrong.append((name, problem))
    assert wrong == []


def test_a_kernel_declines_shapes_strides_and_types_it_was_not_written_for(tmp_path):
    built, _, _ = compiled.planned(table.source(("x * 2", ["torch.randn(6, 40)"])))
    (launcher,) = compiled.compile_together([compiled.render(built).source], tmp_path, compiled.render(built).flags)
    for other in (torch.randn(6, 41), torch.randn(40, 6).t(), torch.randn(6, 40).double(), torch.randn(240)):
        array = (compiled.KeTensor * 1)(compiled.describe(other, other.data_ptr()))
        assert launcher(array, 1, array, 1, None) == 1
