"""A solution, or a module of functions, as the one text that is hashed and evaluated: it has a ``ModelNew`` (pure).

A single file stays as it is, line by line, and ``ModelNew`` comes after its end. Several files become a package in
memory (``embedded_package``), C++ a torch extension built from them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from importlib.resources import files as resources

from shared import ids
from shared.submissions import bare, functions
from shared.submissions.functions import binds
from shared.submissions.interface import Interface, Output
from shared.submissions.solution import CPP_SUFFIXES, Solution
from shared.submissions.text import literal

RUNTIME = "embedded_package.py"
TORCH = "torch_of_model_new"
"""A name of its own: the file above may call anything ``torch``."""

ENTRY = "entry_of_model_new"
"""Likewise: an argument may be called as the function is."""

_CLASS = '''
{imports}

class ModelNew({torch}.nn.Module):
    """{about}"""

    def __init__(self, *_, **__):
        super().__init__(){state}

    def forward(self, {parameters}):
{body}
'''
_PLACED = """
        for name, shape, dtype in {table}:
            *above, last = name.split(".")
            owner = self
            for part in above:
                if part not in owner._modules:
                    owner.add_module(part, {torch}.nn.Module())
                owner = owner._modules[part]
            data = {torch}.zeros(shape, dtype=getattr({torch}, dtype))
            owner.register_parameter(last, {torch}.nn.Parameter(data, requires_grad=False))"""
_ORDERED = '''
def in_order_of_model_new(result):
    """Results in the operator's order, as tensors: they may come by name, as a list, or as plain numbers."""
    outputs = {outputs}
    if len(outputs) == 1 and isinstance(result, {torch}.Tensor):
        return {one}
    if isinstance(result, dict):
        result = [result[name] for name, _ in outputs]
    if not isinstance(result, (tuple, list)):
        result = [result]
    result = [
        {torch}.tensor(one, dtype=getattr({torch}, dtype)) if isinstance(one, (bool, int, float)) else one
        for one, (_, dtype) in zip(result, outputs)
    ] if len(result) == len(outputs) else result
    return {several}

'''


def of_functions(text: str, interface: Interface, name: str, *, where: str) -> str:
    """``text`` with a ``ModelNew`` after its end that calls one of its functions.

    Raises:
        UserError: see ``bare.entry``.
    """
    module = functions.parse(text, where=where)
    function, passes_outputs = bare.entry(module, interface, name, where=where)
    given = bare.arguments(module, interface, function, passes_outputs=passes_outputs)
    about = f"`{function}` of this module, called with the operator's inputs."
    return text.rstrip("\n") + "\n\n" + _model(interface, function, given, about, passes_outputs=passes_outputs)


def of_solution(solution: Solution, interface: Interface) -> str:
    """The solution's module. Equal solutions and interfaces give equal texts."""
    about = f"`{solution.entry_point}` of solution {_safe(solution.name)} by {_safe(solution.author)}."
    passes = solution.destination_passing
    if not solution.compiled and len(solution.files) == 1:
        (text,) = solution.files.values()
        if not binds(ast.parse(text), bare.CLASS):
            model = _model(interface, solution.entry_function, interface.arguments, about, passes_outputs=passes)
            return text.rstrip("\n") + "\n\n" + model
    head = f'"""Solution {_safe(solution.name)}, for definition {_safe(solution.definition)}."""\n\n'
    setting_up = _extension(solution) if solution.compiled else _package(solution)
    return head + setting_up + _model(interface, "entry", interface.arguments, about, passes_outputs=passes)


def _package(solution: Solution) -> str:
    return (
        f"{_runtime()}\n\nFILES = {_files(solution)}\n"
        f"entry = EmbeddedPackage({_package_name(solution)!r}, FILES)"
        f".entry({solution.entry_file!r}, {solution.entry_function!r})\n"
    )


def _extension(solution: Solution) -> str:
    """Builds with the options that the solution asks for; what the toolchain does not allow, it refuses."""
    sources = [path for path in solution.files if path[path.rfind(".") :] in CPP_SUFFIXES]
    options = {"extra_cflags": solution.cflags, "extra_cuda_cflags": solution.cuda_cflags,
               "extra_ldflags": solution.ld_flags}  # fmt: skip
    given = "".join(f"    {name}={list(value)!r},\n" for name, value in options.items() if value)
    cuda = "    with_cuda=True,\n" if solution.hosted_language == "cuda" else ""
    return (
        f"from torch.utils.cpp_extension import load\n\n{_runtime()}\n\nFILES = {_files(solution)}\n"
        f"directory = EmbeddedPackage({_package_name(solution)!r}, FILES).directory\n"
        f"entry = load(\n    name={_package_name(solution)!r},\n"
        f"    sources=[str(directory / path) for path in {sources!r}],\n"
        f"    extra_include_paths=[str(directory)],\n{given}{cuda}).{solution.entry_function}\n"
    )


def _runtime() -> str:
    """The embedded package's code without its docstring."""
    text = resources(__package__).joinpath(RUNTIME).read_text(encoding="utf-8")
    return text[text.index("import importlib\n") :].rstrip("\n")


def _files(solution: Solution) -> str:
    entries = "".join(f"    {path!r}: {literal(text)},\n" for path, text in solution.files.items())
    return f"{{\n{entries}}}"


def _package_name(solution: Solution) -> str:
    """One name per content, so that built extensions and compiled kernels of two solutions never meet."""
    return f"solution_{ids.derive(*(part for file in solution.files.items() for part in file))}"


def _model(interface: Interface, name: str, given: Sequence[str], about: str, *, passes_outputs: bool) -> str:
    state = [(each.name, each.shape, each.dtype.value) for each in interface.state]
    weights = "".join(f", self.get_parameter({each.name!r})" for each in interface.state)
    values = ", ".join(f"{each}.clone()" if each in interface.copied else each for each in given)
    call = f"{ENTRY}({values}{weights}{{}})"
    ordered = ""
    if passes_outputs:
        outputs = [_unlike(output.name, interface.arguments) for output in interface.outputs]
        device = interface.tensors[0]
        lines = [_allocation(output, as_, device) for output, as_ in zip(interface.outputs, outputs, strict=True)]
        results = outputs[0] if interface.container == "tensor" else f"{interface.container}([{', '.join(outputs)}])"
        lines += [call.format("".join(f", {each}" for each in outputs)), f"return {results}"]
    elif not interface.container:
        lines = [f"return {call.format('')}"]
    else:
        table = [(output.name, output.dtype.value) for output in interface.outputs]
        alone = interface.container == "tensor"
        ordered = _ORDERED.format(
            outputs=table,
            torch=TORCH,
            one="result" if alone else f"{interface.container}([result])",
            several="result[0] if len(result) == 1 else tuple(result)" if alone else f"{interface.container}(result)",
        )
        lines = [f"return in_order_of_model_new({call.format('')})"]
    return _CLASS.format(
        imports=f"import torch as {TORCH}\n\n{ENTRY} = {name}\n{ordered}",
        torch=TORCH,
        about=about,
        state=_PLACED.format(table=state, torch=TORCH) if state else "",
        parameters=", ".join(interface.arguments),
        body="\n".join(f"        {line}" for line in lines),
    )


def _allocation(output: Output, name: str, device: str) -> str:
    sizes = "".join(f"{size}, " for size in output.sizes)
    return f"{name} = {TORCH}.empty(({sizes}), dtype={TORCH}.{output.dtype.value}, device={device}.device)"


def _unlike(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _safe(text: str) -> str:
    """For a docstring: no quote and no backslash can end or bend it."""
    return text.replace("\\", "/").replace('"', "'")
