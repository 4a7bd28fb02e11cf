"""The capture child: operator text on stdin, JSON graph on stdout. The only synthesizer module that imports torch.

Exit codes: 0 with ``{"graph": …}``; 0 with ``{"refused": {"node": …, "why": …}}`` when the operator cannot be
captured; anything else is a crash of this process. It lies alone in its box (``shared.reading_box``), so it imports
nothing of this project.
"""

from __future__ import annotations

import json
import linecache
import logging
import math
import operator
import os
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.export.graph_signature import InputKind

CAPTURE_SEED = 0
FILE = "<operator>"
BOXED = "an operator is captured in a box: no network, no file or module but Python's environment's; docs/sandbox.md"
T = TypeVar("T")


class Refused(Exception):
    """The operator is outside of what can be captured."""

    def __init__(self, node: str, why: str) -> None:
        self.node, self.why = node, why
        super().__init__(why)


def one_line(error: BaseException) -> str:
    """First meaningful line of an error, with its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}".rstrip(": ")[:300]


def guarded(step: str, call: Callable[[], T]) -> T:
    """What ``call`` gives, which is the operator's own code; what it raises is why the operator is refused."""
    try:
        return call()
    except Exception as error:
        why = one_line(error)
        # An oracle, which has no box, has let it pass: say what is different here.
        raise Refused(step, f"{why} ({BOXED})" if isinstance(error, OSError | ImportError) else why) from error


def run_operator_text(source: str) -> dict[str, Any]:
    module = types.ModuleType("operator_under_capture")
    sys.modules[module.__name__] = module
    # Compilers of Python functions (torch.jit, triton) ask for their text.
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    exec(compile(source, FILE, "exec"), module.__dict__)  # noqa: S102  the operator's own text, in its own process
    return module.__dict__


def init_arguments(init: Any) -> tuple[list[Any], dict[str, Any]]:
    """Constructor arguments; KernelBench also knows ``[[args], {kwargs}]`` and a dictionary."""
    if isinstance(init, dict):
        return [], init
    if len(init) == 2 and isinstance(init[0], list) and isinstance(init[1], dict):
        return list(init[0]), init[1]
    return list(init), {}


def export(source: str) -> tuple[Any, list[Any], torch.nn.Module]:
    """Build the model in eval mode and export it to core ATen."""
    torch.manual_seed(CAPTURE_SEED)
    namespace = guarded("its top level", lambda: run_operator_text(source))
    args, kwargs = guarded("get_init_inputs()", lambda: init_arguments(namespace["get_init_inputs"]()))
    model = guarded("Model(...)", lambda: namespace["Model"](*args, **kwargs).eval())
    inputs = guarded("get_inputs()", lambda: [dense(value) for value in namespace["get_inputs"]()])
    try:
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                tensor.data = tensor.data.contiguous()
            program = torch.export.export(model, tuple(inputs))
            return program.run_decompositions(decompositions()), inputs, model
    except Exception as error:
        raise Refused("torch.export", one_line(error)) from error


def dense(value: Any) -> Any:
    """A tensor row by row, as the evaluator lays it out whatever ``get_inputs`` returns; anything else as it is."""
    return value.contiguous() if isinstance(value, torch.Tensor) else value


def decompositions() -> dict[Any, Any]:
    """Core ATen's own table, plus composites whose parts the lowering knows already."""
    table = dict(torch.export.default_decompositions())
    extra = [getattr(torch.ops.aten, name) for name in MORE_DECOMPOSITIONS if hasattr(torch.ops.aten, name)]
    table.update(torch._decomp.get_decompositions(extra))  # noqa: SLF001  the table has no public name
    for name in KEPT_WHOLE:
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            table.pop(getattr(packet, overload), None)
    return table


MORE_DECOMPOSITIONS = (
    "mish", "silu", "hardswish", "hardsigmoid", "softplus", "log_sigmoid_forward", "huber_loss", "smooth_l1_loss",
    "soft_margin_loss", "mse_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "addcmul", "addcdiv",
    "lerp", "dot", "mv", "addmv", "addr", "baddbmm", "heaviside", "xlogy", "logaddexp", "logaddexp2", "norm",
    "frac", "hypot", "softshrink", "hardshrink", "threshold", "celu", "rrelu", "glu", "nan_to_num", "trace", "triu",
    "tril", "stack", "std", "std_mean", "var_mean", "linspace", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle",
    "split", "unbind", "narrow", "movedim", "eye", "rsub", "sinc", "special_entr", "special_log_ndtr", "masked_fill",
    "elu", "hardtanh", "leaky_relu", "_fused_rms_norm", "rms_norm", "linalg_vector_norm", "aminmax",
    "isneginf", "isposinf",
    "unfold", "unfold_copy", "kl_div", "margin_ranking_loss", "square", "count_nonzero", "where",
    "new_zeros", "zeros_like", "ones_like",
    "full_like", "new_full", "new_ones",
)  # fmt: skip
KEPT_WHOLE = ("linalg_vector_norm", "elu", "leaky_relu", "hardtanh")  # lowered directly


def signature_inputs(
    program: Any, inputs: list[Any], model: torch.nn.Module
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Kernel inputs in ABI order, and constants (Python scalars) by placeholder name."""
    flat = torch.utils._pytree.tree_leaves(inputs)  # noqa: SLF001  the order torch.export uses
    by_target: dict[str, str] = {}
    tensors: list[dict[str, Any]] = []
    constants: dict[str, Any] = {}
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    position = 0
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            leaf = flat[position]
            position += 1
            name = spec.arg.name
            if isinstance(leaf, torch.Tensor):
                tensors.append({"name": name, "type": tensor_type(name, values[name])})
            else:
                constants[name] = leaf
        elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
            by_target.setdefault(spec.target, spec.arg.name)
        elif spec.kind is InputKind.CONSTANT_TENSOR:
            constants[spec.arg.name] = program.constants[spec.target]
        else:
            raise Refused(spec.arg.name, f"inputs of kind {spec.kind.name} are not supported")
    tensors.extend(
        {"name": by_target.get(key, f"unused_{index}"), "type": tensor_type(key, value)}
        for index, (key, value) in enumerate(model.state_dict(keep_vars=True).items())
    )
    constants.update(
        {name: frozen_buffer(program, target) for target, name in by_target.items() if target not in model.state_dict()}
    )
    return tensors, constants


def frozen_buffer(program: Any, target: str) -> Any:
    """A buffer outside the state dict (``persistent=False``) is a constant of the operator."""
    if target in program.constants:
        return program.constants[target]
    return program.state_dict[target]


def tensor_type(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, torch.Tensor):
        raise Refused(name, f"produces a {type(value).__name__}, not a tensor")
    if value.layout is not torch.strided:
        raise Refused(name, f"has layout {value.layout}, only strided tensors are supported")
    dtype = str(value.dtype).removeprefix("torch.")
    if not all(isinstance(extent, int) for extent in value.shape):
        raise Refused(name, "has a shape that depends on data")
    return {"shape": list(value.shape), "dtype": dtype, "strides": list(value.stride())}


def encode(value: Any, constants: dict[str, Any], getitems: dict[str, tuple[str, int]], where: str) -> Any:
    """An argument as JSON: plain values as they are, the rest as a one-key object."""
    if isinstance(value, torch.fx.Node):
        if value.name in constants:
            return encode_constant(value.name, constants[value.name], where)
        name, output = getitems.get(value.name, (value.name, 0))
        return {"ref": name, "output": output}
    if isinstance(value, list | tuple):
        return [encode(item, constants, getitems, where) for item in value]
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.device | torch.layout | torch.memory_format):
        return str(value)
    raise Refused(where, f"has an argument of type {type(value).__name__}")


def encode_constant(name: str, value: Any, where: str) -> Any:
    if isinstance(value, torch.Tensor):
        if value.numel() != 1:
            raise Refused(where, f"uses the constant tensor {name} of {value.numel()} elements; make it a buffer")
        scalar = value.item()
        return {"float": repr(scalar)} if isinstance(scalar, float) else scalar
    return encode(value, {}, {}, where)


def encode_graph(program: Any, inputs: list[Any], model: torch.nn.Module) -> dict[str, Any]:
    """The exported program as plain data; see ``graph.Graph``."""
    tensors, constants = signature_inputs(program, inputs, model)
    getitems: dict[str, tuple[str, int]] = {}
    calls: list[dict[str, Any]] = []
    outputs: list[Any] = []
    for node in program.graph.nodes:
        if node.op == "call_function" and node.target is operator.getitem:
            getitems[node.name] = (node.args[0].name, node.args[1])
        elif node.op == "call_function" and "val" in node.meta:  # checks made at capture have no value
            calls.append(encode_call(node, constants, getitems))
        elif node.op == "output":
            outputs = [encode(value, constants, getitems, "output") for value in node.args[0]]
    mutated = [spec.target for spec in program.graph_signature.output_specs if spec.kind.name.endswith("MUTATION")]
    if mutated:
        raise Refused("output", f"the operator mutates {', '.join(map(str, mutated))}")
    return {"inputs": tensors, "calls": calls, "outputs": outputs}


def encode_call(node: Any, constants: dict[str, Any], getitems: dict[str, tuple[str, int]]) -> dict[str, Any]:
    if not isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001
        raise Refused(str(node.target), "is not an ATen call")
    schema = node.target._schema  # noqa: SLF001
    arguments: dict[str, Any] = {}
    for index, parameter in enumerate(schema.arguments):
        if index < len(node.args):
            value = node.args[index]
        elif parameter.name in node.kwargs:
            value = node.kwargs[parameter.name]
        else:
            value = parameter.default_value
        arguments[parameter.name] = encode(value, constants, getitems, str(node.target))
    value = node.meta["val"]
    results = value if isinstance(value, list | tuple) else [value]
    types_ = [tensor_type(str(node.target), item) if isinstance(item, torch.Tensor) else None for item in results]
    if not any(types_):
        raise Refused(str(node.target), "has no tensor result")
    return {"name": node.name, "op": str(node.target), "arguments": arguments, "outputs": types_}


def main() -> int:
    """Capture stdin's operator; whatever the operator prints goes to stderr."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    result_fd = os.dup(1)
    os.dup2(2, 1)
    try:
        program, inputs, model = export(sys.stdin.read())
        reply: dict[str, Any] = {"graph": encode_graph(program, inputs, model)}
    except Refused as refusal:
        reply = {"refused": {"node": refusal.node, "why": refusal.why}}
    with os.fdopen(result_fd, "w", encoding="utf-8") as result:
        json.dump(reply, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
