"""Functions of a module and what they take, read from its syntax tree (pure)."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from shared.errors import UserError

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Parameters that a call by position can fill; ``required`` of them have no default.

    ``keywords`` are those that only a name can fill and that have no default: a call by position cannot.
    """

    names: tuple[str, ...]
    required: int
    any_number: bool = False
    keywords: tuple[str, ...] = ()

    def fits(self, count: int) -> bool:
        """Whether ``count`` arguments by position make a call."""
        return not self.keywords and self.required <= count and (self.any_number or count <= len(self.names))

    @staticmethod
    def listed(names: Sequence[str]) -> str:
        return f"({', '.join(names)})"

    def __str__(self) -> str:
        return self.listed((*self.names, *(["*args"] if self.any_number else []), *(f"{k}=" for k in self.keywords)))


def parse(text: str, *, where: str) -> ast.Module:
    """The syntax tree of a kernel's module.

    Raises:
        UserError: it is no Python.
    """
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise UserError(
            f"syntax error: {error.msg}", where=f"{where}:{error.lineno}" if error.lineno else where
        ) from error
    except ValueError as error:
        raise UserError(f"is not Python: {error}", where=where) from error
    except (MemoryError, RecursionError) as error:
        raise UserError("is nested too deeply", where=where) from error


def function(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """The function of that name at the module's top level; the last one, as for Python."""
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    return found[-1] if found else None


def signature(node: ast.FunctionDef) -> Signature:
    """What a call by position may give."""
    given = node.args
    names = tuple(each.arg for each in (*given.posonlyargs, *given.args))
    return Signature(
        names=names,
        required=len(names) - len(given.defaults),
        any_number=given.vararg is not None,
        keywords=tuple(
            each.arg for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None
        ),
    )


def binds(tree: ast.Module, name: str) -> bool:
    """Whether the module's top level gives ``name`` a value in some way: a definition, an assignment, an import."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=bound) | ast.ClassDef(name=bound) | ast.Name(id=bound, ctx=ast.Store()):
                pass
            case ast.alias(name=imported, asname=alias):
                bound = alias or imported.partition(".")[0]
                if bound == "*":
                    return True
            case _:
                continue
        if bound == name:
            return True
    return False


def imports(tree: ast.Module, package: str) -> bool:
    """Whether the module imports ``package`` or a part of it, anywhere."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                named = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), level=0):
                named = [module]
            case _:
                continue
        if any(name.partition(".")[0] == package for name in named):
            return True
    return False


def decorators(node: ast.FunctionDef) -> tuple[str, ...]:
    """Decorators as written, without their arguments: ``triton.jit``."""
    return tuple(ast.unparse(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list)


def assigned(node: ast.FunctionDef) -> set[str]:
    """Names whose tensors a function may change in place: ``x.mul_()``, ``x += y``, ``x[i] = y``, ``out=x``."""
    found = set()
    for each in ast.walk(node):
        match each:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr.endswith(
                "_"
            ) and not attr.endswith("__"):
                found.add(name)
            case ast.AugAssign(target=ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name))):
                found.add(name)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                found.add(name)
            case ast.keyword(arg="out", value=ast.Name(id=name)):
                found.add(name)
    return found
