"""The form of a Python-hosted kernel, read from its text and never by running it.

What is wrong with the form is a verdict (a syntax error, no ``ModelNew``, no usable ``forward``). What the text *does*
is advice: names are resolved through imports and assignments of the syntax tree, so neither a ``#`` in a string nor an
alias blinds it, but a program can always be written that a reader of texts does not understand. The one fact that the
kernel audit builds on is in ``kernels``: what this text defines as a kernel.

A child program of the standard library alone: CPython's parser can be made to need much time and memory, so it runs
under limits, outside the controller. Reads the text on stdin, writes one JSON object on stdout.
"""

from __future__ import annotations

import ast
import json
import re
import resource
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

CLASS, METHOD = "ModelNew", "forward"
SOURCE_BYTES_MAX = 1 << 20
DEPTH_MAX = 500
"""Nested nodes of the tree; a sum of n terms is n deep. People write 30."""
CPU_S, MEMORY_BYTES = 5, 1 << 30

FEATURES: dict[str, tuple[str, ...]] = {
    "threads": ("threading", "_thread", "concurrent.futures", "torch.set_num_threads", "torch.set_num_interop_threads"),
    "subprocess": (
        "subprocess", "multiprocessing", "torch.multiprocessing", "pty", "os.fork", "os.forkpty", "os.system",
        "os.popen", "os.posix_spawn", "os.posix_spawnp", "os.execv", "os.execve", "os.execvp", "os.spawnv",
    ),
    "ctypes": ("ctypes", "_ctypes", "cffi"),
    "streams": ("torch.cuda.Stream", "torch.cuda.stream", "torch.cuda.set_stream", "torch.cuda.ExternalStream"),
    "graphs": ("torch.cuda.CUDAGraph", "torch.cuda.graph", "torch.cuda.make_graphed_callables"),
    "gc": ("gc",),
    "frames": ("sys._getframe", "sys._current_frames", "inspect.currentframe", "inspect.stack", "sys.settrace",
               "sys.setprofile", "traceback.walk_stack"),
    "exec": ("exec", "eval", "compile", "__import__", "importlib", "runpy", "marshal", "types.CodeType",
             "types.FunctionType", "pickle"),
    "network": ("socket", "urllib", "http", "requests", "ftplib", "ssl", "asyncio.open_connection"),
    "files": ("open", "io.open", "os.open", "pathlib", "mmap", "shutil", "tempfile", "torch.save", "torch.load",
              "numpy.save", "numpy.load", "numpy.memmap"),
    "environment": ("os.environ", "os.getenv", "sys.argv", "platform"),
    "signals": ("signal", "atexit", "faulthandler"),
    "clocks": ("time", "timeit", "torch.cuda.Event", "triton.testing"),
    "torch.compile": ("torch.compile", "torch._dynamo", "torch._inductor", "torch.jit"),
    "reference": ("reference",),
    "obfuscated": ("base64", "codecs", "zlib", "bz2", "lzma", "binascii"),
}  # fmt: skip
"""What a text reaches for, by the full name of what it imports or calls; a name stands for everything below it."""
BUILTINS = ("exec", "eval", "compile", "__import__", "open")
"""Of those names, the ones that need no import."""
ATTRIBUTES = {
    "frames": ("f_back", "f_globals", "f_locals", "f_builtins", "tb_frame", "gi_frame"),
    "exec": ("__code__", "__globals__", "__closure__", "__subclasses__", "__builtins__"),
    "streams": ("cuda_stream", "wait_stream"),
}
"""Attributes that say the same on any object."""
IN_STRINGS = {
    "streams": re.compile(r"cudaStreamCreate|getStreamFromPool|hipStreamCreate"),
    "threads": re.compile(r"std::(j?thread|async)\b|pthread_create"),
    "subprocess": re.compile(r"\b(popen|system|fork|execve?)\s*\("),
    "files": re.compile(r"/proc/self|std::[io]?fstream|\bfopen\s*\("),
    "obfuscated": re.compile(r"^\s*#\s*define\b.*##", re.MULTILINE),
    "ctypes": re.compile(r"\bdlopen\s*\(|\bdlsym\s*\("),
}
"""In strings that are themselves programs: the sources of extensions."""
EXTENSION_CALLS = ("torch.utils.cpp_extension.load_inline", "torch.utils.cpp_extension.load")
TRITON_JIT = ("triton.jit", "triton.runtime.jit", "triton.experimental.gluon.jit")
CARRIED = re.compile(r"^(import|from) triton\b", re.MULTILINE)
OPAQUE_STRING = re.compile(r"[A-Za-z0-9+/=\\x]{400,}")
"""A long string without a space is data or a hidden program."""


@dataclass(kw_only=True)
class Form:
    """``problem`` is what is wrong with it, one line, or empty. The rest is what was seen."""

    problem: str = ""
    features: list[str] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    """Names of functions that are Triton kernels."""
    extensions: int = 0
    """Places that build an extension."""
    bases: list[str] = field(default_factory=list)
    """What ``ModelNew`` inherits from."""
    arguments: list[int] = field(default_factory=list)
    """The fewest and the most positional arguments that ``forward`` takes, -1 for any number; empty: not told."""


def read(source: str) -> Form:
    """The form of ``source``; never raises."""
    if len(source.encode("utf-8", "replace")) > SOURCE_BYTES_MAX:
        return Form(problem=f"the module is larger than {SOURCE_BYTES_MAX >> 10} KiB")
    if "\0" in source:
        return Form(problem=f"line {source[: source.index(chr(0))].count(chr(10)) + 1}: a null byte")
    try:
        tree = ast.parse(source, "kernel.py")
        depth = _depth(tree)
    except SyntaxError as error:
        return Form(problem=f"line {error.lineno or 0}: {error.msg}")
    except (RecursionError, MemoryError):
        return Form(problem="nested too deep to be read")
    except ValueError as error:  # an integer literal with too many digits, a lone surrogate
        return Form(problem=f"cannot be read: {error}")
    if depth > DEPTH_MAX:
        return Form(problem=f"nested {depth} deep, more than {DEPTH_MAX}")
    form = Form()
    _entry(tree, form)
    for each in (tree, *_carried(tree)):
        _seen(each, form)
    return form


def _carried(tree: ast.Module) -> Iterator[ast.Module]:
    """Files that the text carries as strings, as a solution of several does: modules with Triton kernels in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CARRIED.search(node.value):
            try:
                carried = ast.parse(node.value)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue  # prose, or another language
            if _depth(carried) <= DEPTH_MAX:
                yield carried


def _depth(tree: ast.AST) -> int:
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return deepest


def _entry(tree: ast.Module, form: Form) -> None:
    """Look for ``ModelNew.forward``; what the text alone cannot tell is left to loading it."""
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    names = {name for node in tree.body for name in _bound(node)}
    if CLASS not in classes:
        # It may be imported, or made by a call: then loading will tell.
        form.problem = "" if CLASS in names else f"defines no class `{CLASS}`"
        return
    found: ast.ClassDef | None = classes[CLASS]
    form.bases = [ast.unparse(base) for base in classes[CLASS].bases]
    seen: set[str] = set()
    while found is not None and found.name not in seen:
        seen.add(found.name)
        for node in found.body:
            if isinstance(node, ast.FunctionDef) and node.name == METHOD:
                _signature(node, form)
                return
            if METHOD in _bound(node):  # an assignment, a conditional definition
                return
        bases = [classes[base.id] for base in found.bases if isinstance(base, ast.Name) and base.id in classes]
        if not bases and any(not _plain_module(base) for base in found.bases):
            return  # it inherits from something that the text does not show
        found = bases[0] if bases else None
    form.problem = f"class `{CLASS}` has no method `{METHOD}`"


def _plain_module(base: ast.expr) -> bool:
    """``nn.Module`` or ``object``, which have no ``forward`` of their own."""
    return ast.unparse(base) in ("nn.Module", "torch.nn.Module", "Module", "object")


def _signature(node: ast.FunctionDef, form: Form) -> None:
    static = any(isinstance(one, ast.Name) and one.id in ("staticmethod", "classmethod") for one in node.decorator_list)
    if node.decorator_list and not static:
        return  # a decorator may change the signature
    taken = [*node.args.posonlyargs, *node.args.args]
    bound = 0 if any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list) else 1
    if len(taken) < bound and node.args.vararg is None:
        form.problem = f"line {node.lineno}: `{METHOD}` does not take `self`"
        return
    required = [
        one.arg for one, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if default is None
    ]
    if required:
        form.problem = f"line {node.lineno}: `{METHOD}` needs `{required[0]}` by keyword; inputs are positional"
        return
    most = -1 if node.args.vararg else len(taken) - bound
    form.arguments = [max(0, len(taken) - bound - len(node.args.defaults)), most]


def _bound(node: ast.stmt) -> Iterator[str]:
    """Names that a statement binds in its own scope."""
    for one in ast.walk(node):
        if isinstance(one, ast.FunctionDef | ast.ClassDef):
            yield one.name
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            yield one.id
        elif isinstance(one, ast.alias):
            yield (one.asname or one.name).split(".")[0]


def _seen(tree: ast.Module, form: Form) -> None:
    """Fill in what the text reaches for and defines."""
    names = _Names(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        found |= _reached(node, names)
        if isinstance(node, ast.FunctionDef) and any(_is_jit(one, names) for one in node.decorator_list):
            form.kernels.append(node.name)
        elif isinstance(node, ast.Call) and _is_jit(node.func, names):
            form.kernels += [ast.unparse(one) for one in node.args[:1]]
        elif isinstance(node, ast.Call) and names.of(node.func) in EXTENSION_CALLS:
            form.extensions += 1
    if _inherits_reference(tree):
        found.add("reference")
    form.features = sorted({*form.features, *found})


def _is_jit(node: ast.expr, names: _Names) -> bool:
    return names.of(node.func if isinstance(node, ast.Call) else node) in TRITON_JIT


def _reached(node: ast.AST, names: _Names) -> set[str]:
    if isinstance(node, ast.Import):
        return {one for alias in node.names for one in _features(alias.name)}
    if isinstance(node, ast.ImportFrom):
        return {one for alias in node.names for one in _features(f"{node.module}.{alias.name}")}
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        return {"monkey-patching"} if any(_foreign(one, names) for one in targets) else set()
    if isinstance(node, ast.Attribute):
        found = {name for name, known in ATTRIBUTES.items() if node.attr in known}
        return found | (_features(names.of(node)) if names.imported(node) else set())
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return _features(names.of(node)) if names.imported(node) or node.id in BUILTINS else set()
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        found = {name for name, pattern in IN_STRINGS.items() if pattern.search(text)}
        return found | ({"obfuscated"} if OPAQUE_STRING.search(text) else set())
    if isinstance(node, ast.Call):
        return _called(node, names)
    return set()


def _called(node: ast.Call, names: _Names) -> set[str]:
    """``setattr`` on what is not its own patches; an attribute whose name is put together hides."""
    name = names.of(node.func)
    found: set[str] = set()
    if name in ("setattr", "delattr", "object.__setattr__", "type.__setattr__") and node.args:
        found |= {"monkey-patching"} if names.imported(node.args[0]) else set()
    if name in ("getattr", "setattr", "delattr", "__import__", "importlib.import_module") and len(node.args) > 0:
        key = node.args[1] if name.endswith("attr") and len(node.args) > 1 else node.args[0]
        if not name.endswith("attr") or len(node.args) > 1:
            found |= set() if isinstance(key, ast.Constant | ast.Name) else {"obfuscated"}
        if name.startswith("getattr") and isinstance(key, ast.Constant) and isinstance(key.value, str):
            found |= _features(f"{names.of(node.args[0])}.{key.value}")
    if name in ("exec", "eval", "compile") and node.args and not isinstance(node.args[0], ast.Constant):
        found.add("obfuscated")
    return found


def _foreign(target: ast.expr, names: _Names) -> bool:
    """Whether assigning to ``target`` changes something that was imported."""
    if isinstance(target, ast.Tuple | ast.List):
        return any(_foreign(one, names) for one in target.elts)
    if isinstance(target, ast.Subscript):
        return names.imported(target.value) and isinstance(target.value, ast.Attribute)
    # Switches that libraries offer for setting are no patches.
    return isinstance(target, ast.Attribute) and names.imported(target.value) and ".backends" not in names.of(target)


def _features(name: str) -> set[str]:
    parts = name.split(".")
    prefixes = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
    return {feature for feature, known in FEATURES.items() if prefixes & set(known)}


def _inherits_reference(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ClassDef)
        and node.name == CLASS
        and any(isinstance(base, ast.Name) and base.id == "Model" for base in node.bases)
        for node in ast.walk(tree)
    )


class _Names:
    """Full names: ``t.cuda.Event`` is ``torch.cuda.Event`` after ``import torch as t``; plain aliases are followed."""

    def __init__(self, tree: ast.Module) -> None:
        self._full: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.split(".")[0]
                    self._full[name] = alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self._full[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
                full = self.of(node.value)
                if full.split(".")[0] in {one.split(".")[0] for one in self._full.values()}:
                    for target in node.targets:
                        if isinstance(target, ast.Name):
                            self._full.setdefault(target.id, full)

    def of(self, node: ast.expr) -> str:
        """The full name that ``node`` spells, empty for what is no name."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self._full.get(node.id, node.id), *reversed(attributes)])

    def imported(self, node: ast.expr) -> bool:
        """Whether ``node`` is, or lies below, something that was imported."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self._full


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    print(json.dumps(asdict(read(sys.stdin.buffer.read().decode("utf-8", "replace")))))
