"""Operators of the C++ emitter for GPUs: which families it writes, and its own at sizes whose vectors are whole."""

from tests.integration.schedule import table

H, B, R = "torch.randn({}).half()", "torch.randn({}).bfloat16()", "torch.randn({})"
WRITTEN = {
    "pointwise": "gelu trigonometry broadcast_both bool_input int64 float64 two_outputs",
    "views": "strided_input pad",
    "reductions": "sum_first sum_all argmax_ties any_all var_std one_column",
    "normalisations": "softmax_channels masked_softmax layer_norm",
    "windows": "max_pool",
    "gathers": "indexing_wraps",
    "losses": "cross_entropy",
    "rows_of_one": "extreme_with_index after_a_row",
}
REFUSED = {"scans": "cumsum", "contractions": "matmul attention", "windows": "conv2d"}
WHOLE = {
    "half_softmax": ("F.softmax(x, -1)", [H.format("9, 512")]),
    "bfloat16_layer_norm": ("F.layer_norm(x, (256,), y, z)", [B.format(s) for s in ("9, 256", "256", "256")]),
    "bias_gelu": ("F.gelu(x + y) + x", [H.format("20, 264"), H.format("264")]),
    "half_and_float": ("x.float() * y", [H.format("24, 72"), R.format("24, 72")]),
    "float64_rms": ("x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)", ["torch.randn(5, 128).double()"]),
    "bytes": ("x.float() * 2 + y", ["torch.randint(0, 255, (6, 96), dtype=torch.uint8)", R.format("96")]),
    "swiglu": ("a, b = x.chunk(2, -1); return F.silu(a) * b", [H.format("7, 256")]),
    "long_rows": ("F.softmax(x, -1)", [R.format("2, 70000") + " * 3"]),
    "nothing_left": ("F.softmax(x, -1)", ["torch.full((3, 64), float('-inf'))"]),
    "infinite": ("F.softmax(x, -1)", ["torch.where(torch.arange(64) == 5, float('inf'), torch.randn(3, 64))"]),
    "not_a_number": (
        "return x.amax(1), x.argmax(1), x.softmax(1)",
        ["torch.where(torch.arange(64) == 5, float('nan'), torch.randn(3, 64))"],
    ),
    "rows_embedded": ("self.e(x)", ["torch.randint(0, 21, (3, 7))"], "self.e = nn.Embedding(21, 64)"),
}


def written():
    """(name, operator's case) of all that is written."""
    found = [(name, table.FAMILIES[family][name]) for family, names in WRITTEN.items() for name in names.split()]
    return [*found, *WHOLE.items()]
