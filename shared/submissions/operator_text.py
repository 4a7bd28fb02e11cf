"""A definition under a workload, as the text of a KernelBench-style module (pure).

The reference is kept as a text of its own inside the module, so that none of its names meets the module's. What the
module adds: inputs drawn as the formats' own harnesses draw them (standard normal; integers of [-1024, 1024), of one
byte [-128, 128); fair booleans), outputs in the definition's order and of its types, and the reference in another
precision: a reference that names float32 would otherwise compute in it when it is asked for the exact answer.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from shared import operators
from shared.errors import OperatorError
from shared.operators import OperatorSpec
from shared.submissions import safetensors
from shared.submissions.definition import RUN, Definition, Tensor
from shared.submissions.text import literal
from shared.submissions.workload import Source, Workload

Read = Callable[[str], bytes]
"""A file that a workload names, by its path there. Raises ``OperatorError`` when it may not or cannot be read."""

_MODULE = '''\
"""Definition {name} under workload {uuid} ({axes})."""

import ast
import base64
import sys
import types

import torch

REFERENCE = {reference}

AXES = {axes_literal}
INPUTS = {inputs}
OUTPUTS = {outputs}
"""Name, shape (None: a plain number) and type, in order."""
FLOATS = {{"float64", "double", "float32", "float", "float16", "half", "bfloat16"}}
SEEN = {{}}


class OneFloat(ast.NodeTransformer):
    """Every floating type of the reference becomes one, so that it computes in that and in no other."""

    def __init__(self, name):
        self.name = name

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "torch" and node.attr in FLOATS:
            node.attr = self.name
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in FLOATS and not node.args:
            node.func.attr = "to"
            node.args = [ast.Attribute(ast.Name("torch", ast.Load()), self.name, ast.Load())]
        return node


def reference(name="", precision=""):
    module = types.ModuleType(name or f"reference_in_{{precision}}")
    sys.modules[module.__name__] = module
    tree = ast.parse(REFERENCE)
    if precision:
        tree = ast.fix_missing_locations(OneFloat(precision).visit(tree))
    exec(compile(tree, "reference.py", "exec", dont_inherit=True), module.__dict__)
    return module


DECLARED = reference("reference_as_written")
OTHERS = {{}}


def run_for(arguments):
    """The reference's run as written, or in the one precision that all floating inputs were brought to."""
    given = [str(a.dtype)[6:] for a in arguments if isinstance(a, torch.Tensor)]
    declared = [dtype for _, shape, dtype in INPUTS if shape is not None]
    if given == declared:
        return DECLARED.{run}
    floats = {{a.dtype for a in arguments if isinstance(a, torch.Tensor) and a.is_floating_point()}}
    if len(floats) != 1:
        return DECLARED.{run}
    precision = str(floats.pop())[6:]
    if precision not in OTHERS:
        OTHERS[precision] = reference(precision=precision)
    return OTHERS[precision].{run}


def in_order(result):
    """The outputs as the definition orders them: one tensor, or a tuple. A plain number becomes a tensor."""
    if isinstance(result, dict):
        result = [result[name] for name, _, _ in OUTPUTS]
    if not isinstance(result, (tuple, list)):
        result = [result]
    if len(result) != len(OUTPUTS):
        raise ValueError(f"the reference returns {{len(result)}} outputs, the definition has {{len(OUTPUTS)}}")
    outputs = [
        one if isinstance(one, torch.Tensor) else torch.tensor(one, dtype=getattr(torch, dtype))
        for one, (_, _, dtype) in zip(result, OUTPUTS)
    ]
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def check(arguments, outputs):
    """Whether the reference keeps to its definition; for inputs of another shape or type there is none to keep to."""
    for argument, (name, shape, dtype) in zip(arguments, INPUTS):
        if isinstance(argument, torch.Tensor) and (str(argument.dtype)[6:], tuple(argument.shape)) != (dtype, shape):
            return
    for output, (name, shape, dtype) in zip([outputs] if isinstance(outputs, torch.Tensor) else outputs, OUTPUTS):
        found = (str(output.dtype)[6:], tuple(output.shape))
        if found != (dtype, shape or ()):
            raise ValueError(f"output `{{name}}` is {{found[0]}}{{list(found[1])}}, not {{dtype}}{{list(shape or ())}}")


def drawn(shape, dtype):
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=dtype)
    low, high = {{torch.bool: (0, 2), torch.int8: (-128, 128), torch.uint8: (0, 256)}}.get(dtype, (-1024, 1024))
    return torch.randint(low, high, shape, dtype=dtype)


def loaded(encoded, shape, dtype):
    return torch.frombuffer(bytearray(base64.b85decode(encoded)), dtype=dtype).reshape(shape)


def made(values):
    """What the definition's own function drew, as the definition describes it."""
    for name, shape, dtype in INPUTS:
        if name not in values:
            raise ValueError(f"its function of inputs makes no `{{name}}`")
        value = values[name]
        if shape is None:
            if SEEN.setdefault(name, value) != value:
                raise ValueError(f"its function of inputs makes another `{{name}}` at each draw")
        elif (str(value.dtype)[6:], tuple(value.shape)) != (dtype, shape):
            found = f"{{str(value.dtype)[6:]}}{{list(value.shape)}}"
            raise ValueError(f"its function of inputs makes `{{name}}` {{found}}, not {{dtype}}{{list(shape)}}")
    return values


def _answer(model, arguments, given):
    outputs = in_order(run_for(arguments)(*given))
    if not torch.compiler.is_compiling() and not model.checked:
        check(arguments, outputs)
        model.checked = True
    return outputs


class Model(torch.nn.Module):
    """The reference. Inputs that it may change in place are copied: an operator's inputs stay as they are."""

    def __init__(self):
        super().__init__()
        self.checked = False

    def forward(self, {parameters}):
        return _answer(self, ({parameters},), ({call},))


def get_inputs():
{drawing}

def get_init_inputs():
    return []
'''


def operator(definition: Definition, workload: Workload, read: Read) -> OperatorSpec:
    """The operator of ``definition`` at the sizes of ``workload``. Equal texts in, equal text out.

    Raises:
        OperatorError: an input cannot be had, or the text is too large.
    """
    shapes = {tensor.name: workload.shape(tensor) for tensor in (*definition.inputs, *definition.outputs)}
    source = _MODULE.format(
        name=_safe(definition.name),
        uuid=_safe(workload.uuid),
        axes=_safe(", ".join(f"{name} = {size}" for name, size in workload.axes.items())),
        reference=literal(definition.reference),
        axes_literal=repr(dict(workload.axes)),
        inputs=_table(definition.inputs, shapes),
        outputs=_table(definition.outputs, shapes),
        run=RUN,
        parameters=", ".join(definition.input_names),
        call=", ".join(f"{name}.clone()" if name in definition.changed else name for name in definition.input_names),
        drawing=_drawing(definition, workload, read),
    )
    name = f"{definition.name} ({workload.label})" if workload.label else definition.name
    if len(source.encode()) > operators.SOURCE_BYTES_MAX:
        raise OperatorError(f"is larger than {operators.SOURCE_BYTES_MAX >> 20} MiB as a module", where=name)
    return operators.parse(source, name=name)


def _table(tensors: tuple[Tensor, ...], shapes: dict[str, tuple[int, ...] | None]) -> str:
    rows = "".join(f"    ({each.name!r}, {shapes[each.name]!r}, {each.dtype.value!r}),\n" for each in tensors)
    return f"[\n{rows}]"


def _drawing(definition: Definition, workload: Workload, read: Read) -> str:
    """The body of ``get_inputs``."""
    custom = any(source.kind == "custom" for source in workload.sources.values())
    lines = []
    if custom:
        scalars = {name: source.value for name, source in workload.sources.items() if source.kind == "scalar"}
        sizes = f"{{**AXES, **{scalars!r}}}" if scalars else "dict(AXES)"
        given = f"DECLARED.{definition.custom_inputs}({sizes}, torch.device('cpu'))"
        lines.append(f"    values = made({{**{scalars!r}, **{given}}})" if scalars else f"    values = made({given})")
    lines.append("    return [")
    lines += [f"        {_one(tensor, definition, workload, read)}," for tensor in definition.inputs]
    return "\n".join([*lines, "    ]", ""])


def _one(tensor: Tensor, definition: Definition, workload: Workload, read: Read) -> str:
    source, shape, dtype = workload.sources[tensor.name], workload.shape(tensor), f"torch.{tensor.dtype.value}"
    match source:
        case Source(kind="scalar", value=value):
            return repr(value)
        case Source(kind="custom"):
            return f"values[{tensor.name!r}]"
        case Source(kind="safetensors", path=path, tensor_key=key):
            assert shape is not None  # refused when the workload was read
            data = safetensors.tensor(read(path), key, shape, tensor.dtype, path)
            return f"loaded({base64.b85encode(data).decode()!r}, {shape!r}, {dtype})"
        case _:
            text = f"drawn({shape!r}, {dtype})"
            # flashinfer-bench: a sampling operator takes probabilities
            probabilities = definition.op_type == "sampling" and tensor.name == "probs"
            return f"torch.softmax({text}, dim=-1)" if probabilities else text


def _safe(text: str) -> str:
    """For a docstring: no quote and no backslash can end or bend it."""
    return text.replace("\\", "/").replace('"', "'")
