"""Candidate's side: from the module's text to a ``ModelNew`` whose parameters are the reference's."""

from __future__ import annotations

import inspect
import linecache
import sys
import types
from collections.abc import Sequence
from typing import Any

import torch

from evaluator_svc.hosted.plain import decode

NAME = "candidate_module"
ENTRY = "ModelNew"


class NotLoaded(Exception):
    """The module is no kernel of this operator; the message says why."""


class Model:
    """One ``ModelNew``, ready to be called.

    ``arguments`` of forward: None for the next tensor, else ``{"plain": value}``. ``state`` names the tensors that
    follow the arguments among an operator's inputs.
    """

    def __init__(self, module: types.ModuleType, signature: dict[str, Any], inputs: Sequence[torch.Tensor]) -> None:
        entry = getattr(module, ENTRY, None)
        if not isinstance(entry, type) or not issubclass(entry, torch.nn.Module):
            raise NotLoaded(f"it defines no class `{ENTRY}` that is a torch.nn.Module")
        self._arguments = [a if a is None else decode(a["plain"], _dtype) for a in signature["arguments"]]
        self._tensors = sum(a is None for a in signature["arguments"])
        self._places = [i for i, a in enumerate(signature["arguments"]) if a is None]
        names: list[str] = signature["state"]
        model = _constructed(entry, signature, without_state=bool(names))
        self.call: torch.nn.Module = model.eval().requires_grad_(requires_grad=False)
        self._bound = self._match(names, inputs[self._tensors :])

    @property
    def has_state(self) -> bool:
        """Whether ``bind`` changes the model."""
        return bool(self._bound)

    def bind(self, inputs: Sequence[torch.Tensor]) -> list[Any]:
        """The arguments of a call on ``inputs``; parameters become the memory that holds the reference's."""
        state = inputs[self._tensors :]
        for held, tensor in zip(self._bound, state, strict=False):
            held.data = tensor
        arguments = list(self._arguments)
        for place, tensor in zip(self._places, inputs, strict=False):
            arguments[place] = tensor
        return arguments if self._bound else [*arguments, *state]

    def _match(self, names: Sequence[str], state: Sequence[torch.Tensor]) -> list[Any]:
        """The candidate's parameters and buffers in the order of the reference's: by name, else by order and shape."""
        own = self.call.state_dict(keep_vars=True)
        if not names or (not own and self._takes(len(self._arguments) + len(names))):
            return []
        by_name = [own.get(name) for name in names]
        chosen = by_name if all(held is not None for held in by_name) else list(own.values())
        if len(chosen) != len(names):
            missing = ", ".join(name for name in names if name not in own)
            raise NotLoaded(f"{ENTRY} has no {missing}; it has {', '.join(own) or 'no parameters'}")
        for name, held, tensor in zip(names, chosen, state, strict=True):
            assert held is not None
            if held.shape != tensor.shape or held.dtype != tensor.dtype:
                raise NotLoaded(
                    f"{name} is {_said(held)} in {ENTRY}, {_said(tensor)} in the reference"
                    + ("" if chosen is by_name else f"; it has {', '.join(own)}, the reference {', '.join(names)}")
                )
        return chosen

    def _takes(self, count: int) -> bool:
        """Whether forward can be called with ``count`` positional arguments."""
        try:
            inspect.signature(self.call.forward).bind(*[None] * count)
        except TypeError:
            return False
        return True


def executed(text: str) -> types.ModuleType:
    """The module of a candidate's text, listed as an imported one is."""
    module = types.ModuleType(NAME)
    module.__file__ = f"{NAME}.py"
    # Compilers of Python functions (triton, torch.jit) ask for their text.
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(keepends=True), module.__file__)
    sys.modules[NAME] = module  # dataclasses, torch.library and triton look a function's module up there
    exec(compile(text, module.__file__, "exec"), module.__dict__)  # noqa: S102 - the candidate's own text
    return module


def _constructed(entry: type, signature: dict[str, Any], *, without_state: bool) -> torch.nn.Module:
    """Constructed as the reference is; with nothing where the reference has state and the candidate takes nothing."""
    args = [decode(value, _dtype) for value in signature["init"]]
    kwargs = {name: decode(value, _dtype) for name, value in signature["init_kwargs"].items()}
    if without_state and (args or kwargs) and not _accepts(entry, args, kwargs) and _accepts(entry, [], {}):
        args, kwargs = [], {}
    model: torch.nn.Module = entry(*args, **kwargs)
    return model


def _accepts(entry: type, args: list[Any], kwargs: dict[str, Any]) -> bool:
    if entry.__init__ is torch.nn.Module.__init__:  # type: ignore[misc]
        return not args and not kwargs  # it says that it takes anything, and then refuses it
    try:
        inspect.signature(entry).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found


def _said(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
