"""Operators of the GPU emitters' own: 16-bit types, long rows, products of products, windows at odd sizes."""

import random

from synthesizer_svc.schedule import emit
from synthesizer_svc.schedule.schedule import Schedule
from tests.integration.schedule import table

H = "torch.randn({}).half()"
B = "torch.randn({}).bfloat16()"

PRODUCTS = {
    "factorization_machine": ("x @ (x.transpose(1, 2) @ y)", [H.format("5, 24, 40"), H.format("5, 24, 72")]),
    "factorization_machine_f32": ("x @ (x.transpose(1, 2) @ y)", ["torch.randn(5, 24, 40)", "torch.randn(5, 24, 36)"]),
    "from_the_left": ("(x @ y) @ z", [H.format("4, 17, 9"), H.format("4, 9, 21"), H.format("4, 21, 18")]),
    "two_batch_axes": ("x @ (y @ z)", [H.format("2, 3, 7, 9"), H.format("2, 3, 9, 11"), H.format("2, 3, 11, 18")]),
    "infinite_where_there_is_nothing": (
        "x @ (torch.where(y > 0.5, y, float('inf')) @ z)",
        ["torch.randn(4, 100, 20)", "torch.rand(4, 20, 100) + 1", "torch.randn(4, 100, 10)"],
    ),
    "three": ("x @ (x @ (x @ y))", [H.format("3, 9, 9"), H.format("3, 9, 21")]),
    "half": ("x @ y", [H.format("70, 33"), H.format("33, 50")]),
    "whole_lines": ("x @ y", [H.format("70, 40"), H.format("40, 104")]),
    "whole_lines_turned": ("F.gelu(x @ y.t() + z)", [H.format("70, 40"), H.format("104, 40"), H.format("104")]),
    "half_deep": ("x @ y", [H.format("20, 333"), H.format("333, 20")]),
    "bfloat16": ("F.gelu(x @ y.t() + z)", [B.format("40, 33"), B.format("50, 33"), B.format("50")]),
    "wide_enough_for_two_pieces": ("x @ y", [H.format("30, 40"), H.format("40, 96")]),
    "finished_beside_a_piece": ("F.gelu(x @ y + z)", [H.format("30, 40"), H.format("40, 96"), H.format("96")]),
    "finished_with_other_elements": ("F.gelu(x @ y) * z", [H.format("37, 40"), H.format("40, 72"), H.format("37, 72")]),
    "prologue": ("F.silu(x) @ (y * 2)", [H.format("33, 31"), H.format("31, 45")]),
    "mlp": (
        "self.b(F.relu(self.a(x)))",
        [H.format("20, 24")],
        "self.a = nn.Linear(24, 33, dtype=torch.half); self.b = nn.Linear(33, 17, dtype=torch.half)",
    ),
    "attention": (
        "F.softmax(x @ y.transpose(1, 2), -1) @ z",
        [H.format("2, 19, 16"), H.format("2, 21, 16"), H.format("2, 21, 16")],
    ),
}
MIXED = {
    "half_times_float": ("x.float() @ y", [H.format("13, 17"), "torch.randn(17, 19)"]),
    "float_times_half": ("y @ x.float()", [H.format("17, 19"), "torch.randn(13, 17)"]),
    "half_times_scaled": ("x.float() @ (y * 2)", [H.format("13, 17"), "torch.randn(17, 19)"]),
    "bfloat16_times_float": ("x.float() @ y.t()", [B.format("13, 17"), "torch.randn(19, 17)"]),
    "one_after_another": ("(x.float() @ y) @ z", [H.format("13, 17"), "torch.randn(17, 19)", "torch.randn(19, 7)"]),
    "rounded_first": ("x @ (y * 2).half()", [H.format("13, 17"), "torch.randn(17, 19)"]),
}
"""Products in float32 of what has 16 bits in memory."""
WINDOWS = {
    "conv1d": ("self.c(x)", [H.format("3, 20, 41")], "self.c = nn.Conv1d(20, 24, 3, padding=1, dtype=torch.half)"),
    "conv1d_wide": ("self.c(x)", [H.format("2, 96, 24")], "self.c = nn.Conv1d(96, 96, 3, padding=1, dtype=torch.half)"),
    "conv2d": (
        "F.relu(self.c(x))",
        [H.format("2, 9, 9, 11")],
        "self.c = nn.Conv2d(9, 12, 3, stride=2, padding=1, dtype=torch.half)",
    ),
    "conv2d_groups": (
        "self.c(x)",
        [H.format("2, 12, 9, 11")],
        "self.c = nn.Conv2d(12, 16, (3, 2), dilation=2, groups=2, bias=False, dtype=torch.half)",
    ),
    "padded_pool": ("F.avg_pool1d(F.pad(x, (2, 1)), 3, 2)", [H.format("3, 5, 41")]),
}
LONG = {
    "sum": ("x.sum(-1)", ["torch.randn(3, 5000).half()"]),
    "sum_all": ("x.float().mean()", ["torch.randn(70, 300).half()"]),
    "softmax": ("F.softmax(x, -1)", ["torch.randn(2, 5000).half() * 3"]),
    "nothing_in_a_part": (
        "F.softmax(x, -1)",
        ["torch.where(torch.arange(5000) < 3000, float('-inf'), torch.randn(2, 5000))"],
    ),
    "masked_rows": ("F.softmax(x, -1)", ["torch.where(torch.arange(900) < 700, float('-inf'), torch.randn(3, 900))"]),
    "layer_norm": ("F.layer_norm(x, (5000,))", ["torch.randn(2, 5000) + 5"]),
    "instance_norm": ("F.instance_norm(x)", ["torch.randn(2, 3, 60, 70).half() + 0.25"]),
    "cross_entropy": ("F.cross_entropy(x, y)", ["torch.randn(20, 3000)", "torch.randint(0, 3000, (20,))"]),
    "columns": ("x.sum(0)", ["torch.randn(3000, 40)"]),
    "extremes": ("return x.amax(-1), x.amin(-1), (x > 3).any(-1)", ["torch.randn(2, 3000)"]),
    "cumsum": ("x.cumsum(-1)", ["torch.randn(2, 5000).half()"]),
    "far_positions": (
        "far = torch.arange(66000) * 66000; return x + (far // 66000).float(), far + 3, x[far % 65521 % 66000]",
        ["torch.randn(66000)"],
    ),
    "erfc": ("torch.special.erfc(x)", ["torch.randn(13, 37) * 3"]),
    "rms_norm": (
        "(x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * y",
        ["torch.randn(9, 1000).half()", "torch.rand(1000).half()"],
    ),
}
DOUBLES = {
    "clamp": ("x.clamp(-0.1, 0.3)", ["torch.randn(5, 70).double()"]),
    "pad": ("F.pad(x, (1, 2), value=0.1).sum(-1)", ["torch.randn(5, 70).double()"]),
    "where": ("torch.where(x > 0, 0.1, x) * 0.7 + 1e300", ["torch.randn(5, 70).double()"]),
    "erf": ("torch.erf(x * 0.1)", ["torch.randn(5, 70).double()"]),
}
CASES = {"products": PRODUCTS, "mixed": MIXED, "half_windows": WINDOWS, "long": LONG, "doubles": DOUBLES}


def of(families):
    """(name, case) of tables, whose names are separated by commas."""
    known = table.FAMILIES | CASES
    return [(name, case) for family in families.split(",") for name, case in known[family].items()]


def choices(arguments):
    """Decisions and values of arguments like ``finish=2``, for every group."""
    pairs = (one.split("=") for one in arguments if "=" in one)
    return [(name, int(value) if value.isdecimal() else value) for name, value in pairs]


def schedules(built, name, count, gpu):
    """The default and ``count`` random ones, the same on every run."""
    space = emit.space("triton", built, gpu, 1)
    stream = random.Random(name)
    drawn = [Schedule(choices=tuple((d.key, stream.choice(d.values)) for d in space.decisions)) for _ in range(count)]
    return list(dict.fromkeys([space.default(), *(space.complete(s) for s in drawn)]))
