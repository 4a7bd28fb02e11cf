"""What cannot be captured or lowered is refused by the name of the ATen call, never compiled to something else."""

import pytest

from synthesizer_svc.schedule.capture import capture
from synthesizer_svc.schedule.graph import Unsupported
from tests.integration.schedule import compiled, table

REFUSED = {
    "aten.sort.default": ("x.sort()[0]", ["torch.randn(3, 4)"]),
    "aten.topk.default": ("x.topk(2)[0]", ["torch.randn(3, 4)"]),
    "aten.convolution.default": ("F.conv_transpose2d(x, y)", ["torch.randn(1, 2, 5, 5)", "torch.randn(2, 3, 2, 2)"]),
    "aten.median.dim": ("x.median(1)[0]", ["torch.randn(3, 4)"]),
    "aten.cummax.default": ("x.cummax(1)[0]", ["torch.randn(3, 4)"]),
}


@pytest.mark.parametrize("call", REFUSED)
def test_an_operator_without_a_lowering_is_refused_by_the_name_of_its_call(call):
    with pytest.raises(Unsupported) as refusal:
        compiled.planned(table.source(REFUSED[call]))
    assert refusal.value.node == call


def test_complex_numbers_are_refused():
    with pytest.raises(Unsupported, match="complex64"):
        compiled.planned(table.source(("torch.view_as_real(x * 2)", ["torch.randn(3, dtype=torch.complex64)"])))


def test_an_operator_whose_path_depends_on_data_is_refused_in_one_line():
    with pytest.raises(Unsupported) as refusal:
        compiled.planned(table.source(("return x * 2 if x.sum() > 0 else x", ["torch.randn(3)"])))
    assert refusal.value.node == "torch.export"
    assert "\n" not in str(refusal.value)


def test_an_operator_that_raises_is_refused_with_its_error():
    with pytest.raises(Unsupported, match="ZeroDivisionError"):
        compiled.planned(table.source(("x", ["torch.randn(3) * (1 / 0)"])))


def test_a_tensor_without_elements_is_refused():
    with pytest.raises(Unsupported, match="no elements"):
        compiled.planned(table.source(("x * 2", ["torch.randn(0, 3)"])))


def test_mutating_a_buffer_is_refused():
    case = ("self.n.add_(1); return x + self.n", ["torch.randn(3)"], "self.register_buffer('n', torch.zeros(3))")
    with pytest.raises(Unsupported, match="mutates"):
        compiled.planned(table.source(case))


def test_capture_in_a_child_process_gives_the_graph_and_keeps_prints_out_of_it():
    graph = capture(
        table.source(
            (
                "print('noise'); return torch.relu(x) + self.w",
                ["torch.randn(3)"],
                "self.w = nn.Parameter(torch.ones(3))",
            )
        )
    )
    assert [call.op for call in graph.calls] == ["aten.relu.default", "aten.add.Tensor"]
    assert [entry.name for entry in graph.inputs] == ["x", "p_w"]


def test_an_operator_that_never_ends_is_refused_after_the_time_limit():
    with pytest.raises(Unsupported, match="took more than"):
        capture("while True: pass", seconds=3)
