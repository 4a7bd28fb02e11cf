"""Small operators of every family, at odd sizes: name -> (forward body, inputs, optional constructor body)."""

TEXT = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {names}):
        {forward}

def get_inputs():
    torch.manual_seed(7)
    return [{inputs}]

def get_init_inputs():
    return []
"""


def source(case):
    forward, inputs, *rest = case
    names = "xyzwv"[: len(inputs)]
    return TEXT.format(
        init=rest[0] if rest else "pass",
        names=", ".join(names),
        forward=forward if "return" in forward else f"return {forward}",
        inputs=", ".join(inputs),
    )


R = "torch.randn(13, 37)"
IMG = "torch.randn(2, 6, 9, 11)"

POINTWISE = {
    "gelu": ("F.gelu(x)", [R]),
    "gelu_tanh": ("F.gelu(x, approximate='tanh') + x", [R]),
    "activations": ("F.silu(x) + F.mish(x) + F.softplus(x) + F.elu(x) + F.selu(x) + F.hardswish(x)", [R]),
    "more_activations": (
        "F.hardtanh(x) + F.leaky_relu(x) + torch.sigmoid(x) + torch.tanh(x) + F.relu(x) + F.logsigmoid(x)",
        [R],
    ),
    "activations_three": (
        "F.softsign(x) + F.tanhshrink(x) + F.relu6(x) + F.hardsigmoid(x) + F.celu(x) + F.prelu(x, y)",
        [R, "torch.rand(1)"],
    ),
    "exponentials": (
        "torch.exp(x) + torch.log(x.abs() + 1) + torch.log1p(x.abs()) + torch.expm1(x) + torch.erf(x)",
        [R],
    ),
    "roots": (
        "torch.rsqrt(x.abs() + 0.5) + torch.sqrt(x.abs()) + x.abs().pow(1.7) + torch.reciprocal(x.abs() + 1)",
        [R],
    ),
    "trigonometry": ("torch.sin(x) * torch.cos(x) + torch.atan(x) + torch.sinh(x) + torch.atan2(x, y)", [R, R]),
    "rounding": (
        "torch.floor(x) + torch.ceil(x) + torch.round(x) + torch.trunc(x) + torch.sign(x) + torch.frac(x)",
        [R],
    ),
    "broadcast_bias_residual": ("F.gelu(x + y) + x", [R, "torch.randn(37)"]),
    "broadcast_both": ("x * y - z", ["torch.randn(5, 1, 7)", "torch.randn(3, 1)", "torch.randn(5, 3, 7)"]),
    "swiglu": ("a, b = x.chunk(2, -1); return F.silu(a) * b", ["torch.randn(7, 34)"]),
    "where_clamp": ("torch.where(x > y, x.clamp(-0.5, 0.5), torch.maximum(x, y) * 2)", [R, R]),
    "compare_to_bool": ("(x > 0) & (x < 1) | ~(y >= x)", [R, R]),
    "bool_input": ("x.masked_fill(y, -1e9)", [R, "torch.rand(13, 37) > 0.5"]),
    "int64": ("x * 3 + y - (x // 2) + x % 5", ["torch.randint(-50, 50, (19, 3))", "torch.randint(0, 9, (3,))"]),
    "int32_to_float": ("x.float() / 3 + y", ["torch.randint(-50, 50, (41,), dtype=torch.int32)", "torch.randn(41)"]),
    "float_to_int": ("x.mul(10).long()", [R]),
    "uint8": ("x.float() * 2", ["torch.randint(0, 255, (77,), dtype=torch.uint8)"]),
    "float64": (
        "torch.tanh(x) * y + torch.exp(x)",
        ["torch.randn(9, 21, dtype=torch.float64)", "torch.randn(21, dtype=torch.float64)"],
    ),
    "mixed_precision": ("x.double() * y", [R, "torch.randn(37, dtype=torch.float64)"]),
    "bfloat16": ("F.gelu(x) + y", ["torch.randn(11, 35).bfloat16()", "torch.randn(35).bfloat16()"]),
    "float16": ("torch.sigmoid(x) * x", ["torch.randn(11, 35).half()"]),
    "cast_through_half": ("x.half().float() + x.bfloat16().float()", [R]),
    "scalar_tensor": ("x * 2 + 1", ["torch.randn(())"]),
    "one_element": ("torch.exp(x)", ["torch.randn(1, 1)"]),
    "python_scalar_input": ("x * y", [R, "2.5"]),
    "two_outputs": ("return x + 1, x * 2", [R]),
    "parameters": (
        "F.relu(x) * self.scale + self.shift",
        [R],
        "self.shift = nn.Parameter(torch.randn(37)); self.register_buffer('scale', torch.rand(37))",
    ),
    "remainder_fmod": ("torch.remainder(x, 0.7) + torch.fmod(x, 0.3) + torch.div(x, 0.5, rounding_mode='floor')", [R]),
}
VIEWS = {
    "transpose_inside": ("x.t() + y", [R, "torch.randn(37, 13)"]),
    "transposed_input": ("x.t().contiguous() * 2", ["torch.randn(37, 13).t()"]),
    "strided_input": ("x * 2 + 1", ["torch.randn(13, 74)[:, ::2]"]),
    "expanded": ("x.expand(5, 13, 37) + y[:, None, None]", [R, "torch.randn(5)"]),
    "permute_reshape": ("x.permute(0, 2, 3, 1).reshape(2, -1, 6) * 2", [IMG]),
    "merge_then_split": ("x.reshape(2 * 6, 99).reshape(2, 3, 2, 99).sum(2)", [IMG]),
    "misaligned_reshape": ("x.t().reshape(-1, 13) + 1", [R]),
    "cat": ("torch.cat([x, y * 2, x + 1], 1)", [R, "torch.randn(13, 5)"]),
    "cat_then_softmax": ("F.softmax(torch.cat([x, y], 1), 1)", [R, "torch.randn(13, 5)"]),
    "stack_flip_slice": ("torch.stack([x, x.flip(1)], 1)[:, :, 3:30:2]", [R]),
    "pad": ("F.pad(x, (1, 2, 3, 0), value=2.0) * 2", [R]),
    "roll": ("x.roll(3, 1)", [R]),
    "tril": ("x.tril(-1) + x.triu(2)", ["torch.randn(19, 23)"]),
    "split": ("a, b, c = x.split([10, 20, 7], 1); return a.sum(1) + b.sum(1) * c.sum(1)", [R]),
    "upsample": ("F.interpolate(x, scale_factor=2) + 1", [IMG]),
    "pixel_shuffle": ("F.pixel_shuffle(x, 2)", ["torch.randn(2, 8, 5, 3)"]),
    "arange": ("x + torch.arange(37)", [R]),
    "repeat": ("x.repeat(2, 3)", [R]),
}
REDUCTIONS = {
    "sum_last": ("x.sum(-1)", ["torch.randn(13, 337)"]),
    "sum_first": ("x.sum(0)", ["torch.randn(337, 45)"]),
    "sum_middle": ("x.sum(1, keepdim=True)", ["torch.randn(5, 67, 19)"]),
    "sum_all": ("x.sum()", ["torch.randn(71, 333)"]),
    "mean_dims": ("x.mean((0, 2))", ["torch.randn(7, 13, 35)"]),
    "sum_int": ("x.sum(1)", ["torch.randint(-9, 9, (13, 37))"]),
    "sum_bool": ("(x > 0).sum(1)", [R]),
    "amax_amin": ("x.amax(1) + x.amin(1)", [R]),
    "max_with_index": ("v, i = x.max(1); return v, i", [R]),
    "min_with_index_first": ("v, i = x.min(0); return v, i", [R]),
    "argmax_ties": ("return x.round().argmax(1), x.round().argmin(1)", [R]),
    "argmax_all": ("x.argmax()", [R]),
    "argmax_across": ("x.argmax(0)", ["torch.randn(41, 37).round()"]),
    "prod": ("x.prod(1)", ["torch.rand(13, 37) + 0.5"]),
    "any_all": ("return (x > 2).any(1), (x > -3).all(0), (x > 5).any()", [R]),
    "var_std": ("return x.var(1), x.std(0, unbiased=False), x.var()", [R]),
    "norms": (
        "return x.norm(dim=1), x.norm(p=1, dim=0), x.norm(p=float('inf')), torch.linalg.vector_norm(x, 3, dim=1)",
        [R],
    ),
    "logsumexp": ("return torch.logsumexp(x, 1), torch.logsumexp(x, 0)", [R]),
    "sum_then_divide": ("x / x.sum()", [R]),
    "double_sum": ("x.sum(1)", ["torch.randn(13, 37, dtype=torch.float64)"]),
    "bfloat16_sum": ("x.sum(1)", ["torch.randn(13, 337).bfloat16()"]),
    "sum_of_transposed": ("x.t().sum(1)", [R]),
    "one_column": ("x.sum(1)", ["torch.randn(13, 1)"]),
    "fewer_than_a_vector": ("F.softmax(x, 1) + x.mean(1, keepdim=True)", ["torch.randn(13, 3)"]),
}
NORMALISATIONS = {
    "softmax": ("F.softmax(x, -1)", ["torch.randn(13, 337) * 3"]),
    "softmax_dim0": ("F.softmax(x, 0)", [R]),
    "softmax_channels": ("F.softmax(x, 1)", [IMG]),
    "log_softmax": ("F.log_softmax(x * 2, -1)", ["torch.randn(13, 337)"]),
    "softmax_bfloat16": ("F.softmax(x, -1)", ["torch.randn(5, 337).bfloat16()"]),
    "softmax_double": ("F.softmax(x, -1)", ["torch.randn(5, 37, dtype=torch.float64)"]),
    "masked_softmax": ("F.softmax(x.masked_fill(y, float('-inf')), -1)", [R, "torch.rand(13, 37) > 0.7"]),
    "layer_norm": (
        "F.layer_norm(x, (337,), y, z)",
        ["torch.randn(13, 337) + 3", "torch.randn(337)", "torch.randn(337)"],
    ),
    "layer_norm_two_dims": ("F.layer_norm(x, (9, 11))", [IMG]),
    "rms_norm": ("F.rms_norm(x, (37,), y)", [R, "torch.randn(37)"]),
    "group_norm": ("F.group_norm(x, 3, y, z)", [IMG, "torch.randn(6)", "torch.randn(6)"]),
    "instance_norm": ("F.instance_norm(x)", [IMG]),
    "instance_norm_affine": ("self.n(x)", [IMG], "self.n = nn.InstanceNorm2d(6, affine=True)"),
    "batch_norm": (
        "self.n(x)",
        [IMG],
        "self.n = nn.BatchNorm2d(6); self.n.running_mean.normal_(); self.n.running_var.uniform_(0.5, 2)",
    ),
    "residual_layer_norm": ("F.layer_norm(x + y, (37,)) * 2 + x", [R, R]),
    "normalize": ("F.normalize(x, dim=1)", [R]),
    "cosine": ("F.cosine_similarity(x, y, dim=1)", [R, R]),
}
SCANS = {
    "cumsum": ("x.cumsum(1)", ["torch.randn(13, 337)"]),
    "cumsum_first": ("x.cumsum(0) * 2", ["torch.randn(67, 37)"]),
    "cumsum_middle": ("(x * 2).cumsum(1)", ["torch.randn(3, 17, 5)"]),
    "cumprod": ("x.cumprod(1)", ["torch.rand(13, 37) + 0.5"]),
    "cumsum_int": ("x.cumsum(1)", ["torch.randint(-5, 9, (13, 37))"]),
    "cumsum_double": ("x.cumsum(-1)", ["torch.randn(5, 37, dtype=torch.float64)"]),
    "cumsum_bool": ("(x > 0).cumsum(1)", [R]),
    "cumsum_normalised": ("x.cumsum(1) / x.abs().sum(1, keepdim=True)", [R]),
}
CONTRACTIONS = {
    "matmul": ("x @ y", ["torch.randn(23, 31)", "torch.randn(31, 45)"]),
    "matmul_transposed": ("x @ y.t()", ["torch.randn(23, 31)", "torch.randn(45, 31)"]),
    "linear_gelu": ("F.gelu(self.l(x))", ["torch.randn(7, 5, 31)"], "self.l = nn.Linear(31, 45)"),
    "prologue": ("F.silu(x) @ y + x.sum(1, keepdim=True)", ["torch.randn(23, 31)", "torch.randn(31, 45)"]),
    "bmm": ("torch.bmm(x, y)", ["torch.randn(3, 13, 17)", "torch.randn(3, 17, 19)"]),
    "baddbmm": (
        "torch.baddbmm(z, x, y, beta=0.5, alpha=2)",
        ["torch.randn(3, 13, 17)", "torch.randn(3, 17, 19)", "torch.randn(13, 19)"],
    ),
    "product_of_three": ("x @ (x.transpose(1, 2) @ y)", ["torch.randn(3, 7, 21)", "torch.randn(3, 7, 5)"]),
    "einsum": ("torch.einsum('bik,bjk->bij', x, y)", ["torch.randn(3, 7, 21)", "torch.randn(3, 9, 21)"]),
    "matmul_double": (
        "x @ y",
        ["torch.randn(13, 17, dtype=torch.float64)", "torch.randn(17, 19, dtype=torch.float64)"],
    ),
    "matmul_bfloat16": ("x @ y", ["torch.randn(13, 17).bfloat16()", "torch.randn(17, 19).bfloat16()"]),
    "matmul_int": ("x @ y", ["torch.randint(-9, 9, (13, 17))", "torch.randint(-9, 9, (17, 19))"]),
    "vector": ("return x @ y, y @ y", ["torch.randn(13, 37)", "torch.randn(37)"]),
    "attention": (
        "F.scaled_dot_product_attention(x, y, z)",
        ["torch.randn(2, 3, 9, 16)", "torch.randn(2, 3, 11, 16)", "torch.randn(2, 3, 11, 16)"],
    ),
    "mlp": (
        "self.b(F.relu(self.a(x)))",
        ["torch.randn(9, 12)"],
        "self.a = nn.Linear(12, 33); self.b = nn.Linear(33, 7)",
    ),
    "matmul_softmax": ("F.softmax(x @ y, -1)", ["torch.randn(23, 31)", "torch.randn(31, 45)"]),
}
WINDOWS = {
    "conv1d": ("self.c(x)", ["torch.randn(3, 5, 41)"], "self.c = nn.Conv1d(5, 7, 3, padding=1)"),
    "conv2d": ("F.relu(self.c(x))", [IMG], "self.c = nn.Conv2d(6, 5, 3, stride=2, padding=1)"),
    "conv2d_dilated_groups": (
        "self.c(x)",
        [IMG],
        "self.c = nn.Conv2d(6, 4, (3, 2), padding=(2, 0), dilation=2, groups=2, bias=False)",
    ),
    "depthwise": ("self.c(x)", [IMG], "self.c = nn.Conv2d(6, 6, 3, padding=1, groups=6)"),
    "max_pool": ("F.max_pool2d(x, 3, 2, 1)", [IMG]),
    "avg_pool": ("F.avg_pool2d(x, 3, 2, 1) + F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)", [IMG]),
    "adaptive_pool": ("return F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 11))", [IMG]),
    "max_pool1d": ("F.max_pool1d(x, 4)", ["torch.randn(3, 5, 41)"]),
}
GATHERS = {
    "embedding": ("self.e(x)", ["torch.randint(0, 21, (3, 7))"], "self.e = nn.Embedding(21, 19)"),
    "gather": ("x.gather(1, y)", [R, "torch.randint(0, 37, (13, 9))"]),
    "index_select": ("x.index_select(0, y) * 2", [R, "torch.randint(0, 13, (29,))"]),
    "indexing_wraps": ("x[y]", [R, "torch.randint(-13, 13, (5,))"]),
    "indexing_two": (
        "x[:, y, z]",
        ["torch.randn(3, 9, 11)", "torch.randint(0, 9, (4,))", "torch.randint(0, 11, (4,))"],
    ),
    "embedding_sum": ("self.e(x).sum(1)", ["torch.randint(0, 21, (3, 7))"], "self.e = nn.Embedding(21, 19)"),
    "one_hot": ("F.one_hot(x, 9)", ["torch.randint(0, 9, (13,))"]),
}
LOSSES = {
    "cross_entropy": ("F.cross_entropy(x, y)", ["torch.randn(13, 337)", "torch.randint(0, 337, (13,))"]),
    "cross_entropy_options": (
        "F.cross_entropy(x, y, z, ignore_index=3, label_smoothing=0.1)",
        ["torch.randn(13, 9)", "torch.randint(0, 9, (13,))", "torch.rand(9)"],
    ),
    "nll": ("F.nll_loss(F.log_softmax(x, 1), y, reduction='sum')", [R, "torch.randint(0, 37, (13,))"]),
    "mse": ("F.mse_loss(x, y)", [R, R]),
    "kl": ("F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction='batchmean')", [R, R]),
    "bce": ("F.binary_cross_entropy(torch.sigmoid(x), y)", [R, "torch.rand(13, 37)"]),
    "bce_logits": ("F.binary_cross_entropy_with_logits(x, y)", [R, "torch.rand(13, 37)"]),
    "smooth_l1_huber": ("F.smooth_l1_loss(x, y) + F.huber_loss(x, y)", [R, R]),
    "triplet": ("F.triplet_margin_loss(x, y, z)", [R, R, R]),
    "hinge": ("torch.mean(torch.clamp(1 - x * y, min=0))", [R, "torch.randn(37).sign()"]),
}
COLUMN = "torch.randn(13, 1)"
ROWS_OF_ONE = {
    "softmax": ("F.softmax(x, 1)", [COLUMN]),
    "softmax_of_one": ("F.softmax(x, 0) + x", ["torch.randn(1)"]),
    "layer_norm": ("F.layer_norm(x, (1,), y)", [COLUMN, "torch.randn(1)"]),
    "group_norm": ("F.group_norm(x, 6)", ["torch.randn(2, 6, 1, 1)"]),
    "extreme_with_index": ("return *x.max(1), x.argmin(), x.argmax(0)", [COLUMN]),
    "cross_entropy": ("F.cross_entropy(x, y)", [COLUMN, "torch.zeros(13).long()"]),
    "product": ("F.softmax(x @ y, -1) + x @ y", ["torch.randn(23, 1)", "torch.randn(1, 1)"]),
    "one_key": ("F.scaled_dot_product_attention(x, y, y)", ["torch.randn(2, 3, 9, 16)", "torch.randn(2, 3, 1, 16)"]),
    "window": ("self.c(x)", ["torch.randn(1, 1, 1, 1)"], "self.c = nn.Conv2d(1, 1, 1)"),
    "after_a_row": ("F.softmax(x.mean(1, keepdim=True), 1) + x", [R]),
    "sum_of_a_sum": ("x.amax(1, keepdim=True).sum(1, keepdim=True) + x", [R]),
    "index_after_a_row": ("x * x.sum(1, keepdim=True).argmax(1, keepdim=True)", [R]),
}
FAMILIES = {
    "pointwise": POINTWISE, "views": VIEWS, "reductions": REDUCTIONS, "normalisations": NORMALISATIONS, "scans": SCANS,
    "contractions": CONTRACTIONS, "windows": WINDOWS, "gathers": GATHERS, "losses": LOSSES,
    "rows_of_one": ROWS_OF_ONE,
}  # fmt: skip
