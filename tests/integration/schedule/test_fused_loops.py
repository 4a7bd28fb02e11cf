"""Choices that change what is fetched and kept, not what is computed: chained products, prefetches of the next row."""

import pytest

from synthesizer_svc.schedule import emit
from synthesizer_svc.schedule.emit.cpp.prefetch import NEXT_ROW, NEXT_ROW_AND_STORES
from tests.integration.schedule import compiled, judging, table

CHAINS = {
    "factorization_machine": ("x @ (x.transpose(1, 2) @ y)", ["torch.randn(5, 12, 33)", "torch.randn(5, 12, 20)"]),
    "two_batch_axes": (
        "x @ (y @ z)",
        ["torch.randn(2, 3, 7, 9)", "torch.randn(2, 3, 9, 11)", "torch.randn(2, 3, 11, 18)"],
    ),
    "from_the_left": ("(x @ y) @ z", ["torch.randn(4, 7, 9)", "torch.randn(4, 9, 11)", "torch.randn(4, 11, 18)"]),
    "three": ("x @ (x @ (x @ y))", ["torch.randn(3, 9, 9)", "torch.randn(3, 9, 21)"]),
}
NOT_CHAINS = {
    "intermediate_leaves": (
        "t = x @ y\n        return t, t @ z",
        ["torch.randn(4, 7, 9)", "torch.randn(4, 9, 7)", "torch.randn(4, 7, 5)"],
    ),
    "intermediate_of_other_batches": (
        "(x @ y).flip(0) @ z",
        ["torch.randn(4, 7, 9)", "torch.randn(4, 9, 7)", "torch.randn(4, 7, 5)"],
    ),
    "no_batches": ("(x @ y) @ z", ["torch.randn(7, 9)", "torch.randn(9, 7)", "torch.randn(7, 5)"]),
}
ROWS = {
    "gated": ("F.silu(x[:, :370]) * x[:, 370:]", ["torch.randn(500, 740)"]),
    "softmax": ("F.softmax(x, -1)", ["torch.randn(301, 1000)"]),
    "layer_norm": ("F.layer_norm(x, (600,))", ["torch.randn(501, 600)"]),
    "row_sum": ("x.sum(-1)", ["torch.randn(300, 1024)"]),
}


def decisions(built, name):
    return [d for d in emit.space("cpp", built, compiled.this_isa(), 1).decisions if d.name == name]


def disagreements(cases, folder):
    launchers = compiled.compile_together([c[1].source for c in cases], folder, cases[0][1].flags)
    wrong = []
    for (name, _, model, inputs), launcher in zip(cases, launchers, strict=True):
        declared, exact = judging.references(model, inputs)
        got = compiled.launch(launcher, compiled.kernel_inputs(model, inputs), declared)
        problem = judging.agrees(got, declared, exact)
        if problem:
            wrong.append((name, problem))
    return wrong


@pytest.mark.timeout(300)
def test_products_over_the_same_batches_agree_with_torch_fused_and_apart(tmp_path):
    cases = []
    for name, case in CHAINS.items():
        built, model, inputs = compiled.planned(table.source(case))
        chains = decisions(built, "chain")
        assert chains, name
        default = emit.space("cpp", built, compiled.this_isa(), 1).default()
        for value in chains[0].values:
            schedule = default.with_choice(chains[0].key, value)
            cases.append((f"{name} {value}", compiled.render(built, schedule), model, inputs))
    assert disagreements(cases, tmp_path) == []


@pytest.mark.parametrize("name", NOT_CHAINS)
def test_products_are_not_chained_when_the_intermediate_is_needed_elsewhere_or_whole(name):
    built, _, _ = compiled.planned(table.source(NOT_CHAINS[name]))
    assert decisions(built, "chain") == []


@pytest.mark.timeout(300)
def test_fetching_the_next_row_changes_no_result_and_writes_nothing(tmp_path):
    cases = []
    for name, case in ROWS.items():
        built, model, inputs = compiled.planned(table.source(case))
        space = emit.space("cpp", built, compiled.this_isa(), 1)
        for choice in (NEXT_ROW, NEXT_ROW_AND_STORES):
            schedule = space.default().with_choice("g0.prefetch", choice)
            cases.append((f"{name} {choice}", compiled.render(built, schedule), model, inputs))
    assert all("__builtin_prefetch" in c[1].source.split("the kernel")[1] for c in cases)
    assert disagreements(cases, tmp_path) == []
