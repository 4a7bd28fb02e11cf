"""What capture takes an operator's inputs to be."""

from synthesizer_svc.schedule.capture import capture
from tests.integration.schedule import table


def test_inputs_are_dense_rows_whatever_get_inputs_returns():
    graph = capture(table.source(("x * 2", ["torch.randn(6, 4).t()"])))

    assert [given.type.shape for given in graph.inputs] == [(4, 6)]
    assert [given.type.strides for given in graph.inputs] == [(6, 1)]
