"""Loading the operator's text, drawing its inputs, and running it in a chosen precision."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from shared import contract
from shared.dtypes import DType
from shared.text_module import executed

TORCH_DTYPES: dict[DType, torch.dtype] = {dtype: getattr(torch, dtype.value) for dtype in DType}
KE_DTYPES = {torch_dtype: dtype for dtype, torch_dtype in TORCH_DTYPES.items()}
CPU = "cpu"
DIMENSIONS_MAX = 8
"""``KE_MAX_DIMS`` of ``ke_abi.h``."""


class OperatorFault(Exception):
    """The operator's text is at fault; the message is the line the user reads."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A model with one draw of its arguments. ``arguments`` may hold Python scalars, which a kernel has built in."""

    model: torch.nn.Module
    arguments: tuple[Any, ...]
    device: str = "cpu"
    """Where model, arguments and results are."""
    mutates: tuple[int, ...] = ()
    """Positions of tensor arguments that a run changes; their new values are outputs, after those returned."""
    init: tuple[list[Any], dict[str, Any]] = field(default_factory=lambda: ([], {}))
    """What the model was constructed with."""

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        """What a kernel is given: tensor arguments in order, then parameters and buffers in state-dict order."""
        given = [a for a in self.arguments if isinstance(a, torch.Tensor)]
        return tuple(given) + tuple(self.model.state_dict().values())

    def with_arguments(self, tensors: list[torch.Tensor]) -> Sample:
        """The same sample with its tensor arguments replaced, in order."""
        fresh = iter(tensors)
        return replace(self, arguments=tuple(next(fresh) if isinstance(a, torch.Tensor) else a for a in self.arguments))

    def with_state(self, tensors: list[torch.Tensor]) -> Sample:
        """The same sample with its parameters and buffers replaced, in state-dict order."""
        model = copy.deepcopy(self.model)
        model.load_state_dict(dict(zip(model.state_dict(), tensors, strict=True)))
        return replace(self, model=model)

    def tensor_arguments(self) -> list[torch.Tensor]:
        return [a for a in self.arguments if isinstance(a, torch.Tensor)]

    def state(self) -> list[torch.Tensor]:
        return list(self.model.state_dict().values())


class Operator:
    """The operator's module, executed once.

    Raises:
        OperatorFault: the module, its constructor or its inputs raise, or are of no use to a kernel.
    """

    def __init__(self, source: str, name: str, device: str = "cpu") -> None:
        self.name, self.source, self._device = name, source, device
        self._module = _guard("its top level", lambda: executed(source, "operator_under_test", f"{name}.py"))
        self._contract = contract.of(source, where=name)

    def sample(self, seed: int) -> Sample:
        """Model and arguments drawn under ``seed``, on the operator's device; the model is in inference mode."""
        with torch.device(self._device):
            return self._sample(seed)

    def _sample(self, seed: int) -> Sample:
        seed_everything(seed)
        init = _guard("get_init_inputs()", self._module.get_init_inputs)
        args, kwargs = _split_init(init)
        model = _guard("Model(...)", lambda: self._module.Model(*args, **kwargs))
        if not isinstance(model, torch.nn.Module):
            raise OperatorFault("`Model` is not a torch.nn.Module")
        arguments = _guard("get_inputs()", self._module.get_inputs)
        if not isinstance(arguments, list | tuple):
            raise OperatorFault(f"get_inputs() must return a list of tensors, not {type(arguments).__name__}")
        model = model.eval()
        if self._device != CPU:
            model = model.to(self._device)
            arguments = [a.to(self._device) if isinstance(a, torch.Tensor) else a for a in arguments]
        contiguous = tuple(a.detach().contiguous() if isinstance(a, torch.Tensor) else a for a in arguments)
        sample = Sample(
            model=model,
            arguments=contiguous,
            device=self._device,
            init=(args, kwargs),
            mutates=self._contract.mutates,
        )
        _check_tensors(sample.inputs, "input", self._device)
        count = len(sample.tensor_arguments())
        if not count:
            raise OperatorFault("get_inputs() returns no tensor")
        if any(position >= count for position in self._contract.mutates):
            raise OperatorFault(f"CONTRACT['mutates'] names an input beyond the {count} tensors of get_inputs()")
        return sample


def run(sample: Sample, precision: DType | None = None) -> tuple[torch.Tensor, ...]:
    """Outputs of ``sample``, computed in ``precision`` (None: as declared), contiguous.

    Raises:
        OperatorFault: the model raises or returns something else than tensors.
    """
    if precision is None:
        return _outputs(sample)
    dtype = TORCH_DTYPES[precision]
    model = copy.deepcopy(sample.model).to(dtype)
    cast = [a.to(dtype) if a.is_floating_point() else a for a in sample.tensor_arguments()]
    sample = replace(sample, model=model).with_arguments(cast)
    # Tensors that it makes itself are of the default type: beside others it refuses them, or rounds to them unasked.
    try:
        found = _outputs(sample)
    except OperatorFault:
        with _default(dtype):
            return _outputs(sample)
    if precision is DType.F64 and any(t.is_floating_point() and t.dtype is not dtype for t in found):
        with _default(dtype), suppress(OperatorFault):
            return _outputs(sample)
    return found


def _outputs(sample: Sample) -> tuple[torch.Tensor, ...]:
    if sample.mutates:
        sample = sample.with_arguments([a.clone() for a in sample.tensor_arguments()])
    with torch.no_grad():
        result = _guard("Model.forward", lambda: sample.model(*sample.arguments))
    outputs = (result,) if isinstance(result, torch.Tensor) else result
    if not isinstance(outputs, list | tuple) or not outputs:
        raise OperatorFault(f"Model.forward must return a tensor or a tuple of tensors, not {type(result).__name__}")
    for output in outputs:
        if not isinstance(output, torch.Tensor):
            raise OperatorFault(f"Model.forward returns a {type(output).__name__} among its outputs, not a tensor")
    changed = [sample.tensor_arguments()[position] for position in sample.mutates]
    done = tuple(output.detach().contiguous() for output in (*outputs, *changed))
    _check_tensors(done, "output", sample.device)
    return done


@contextmanager
def _default(dtype: torch.dtype) -> Iterator[None]:
    """New tensors are of ``dtype`` where their maker does not say of which."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def seed_everything(seed: int) -> None:
    """Seed every generator an operator's inputs commonly come from."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the legacy generator is the one operators use
    random.seed(seed)


def _split_init(init: Any) -> tuple[list[Any], dict[str, Any]]:
    """Constructor arguments; KernelBench also knows the form ``[[args], {kwargs}]``."""
    if isinstance(init, dict):
        return [], init
    if isinstance(init, list | tuple) and len(init) == 2 and isinstance(init[0], list) and isinstance(init[1], dict):
        return list(init[0]), init[1]
    if not isinstance(init, list | tuple):
        raise OperatorFault(f"get_init_inputs() must return a list, not {type(init).__name__}")
    return list(init), {}


def _check_tensors(tensors: tuple[torch.Tensor, ...], what: str, device: str) -> None:
    for index, tensor in enumerate(tensors):
        if tensor.dtype not in KE_DTYPES:
            raise OperatorFault(f"{what} {index} has dtype {tensor.dtype}, which kernels cannot take")
        if tensor.dim() > DIMENSIONS_MAX:
            raise OperatorFault(f"{what} {index} has {tensor.dim()} dimensions; {DIMENSIONS_MAX} are the limit")
        if tensor.numel() == 0:
            raise OperatorFault(f"{what} {index} is empty")
        if tensor.device.type != torch.device(device).type:
            raise OperatorFault(f"{what} {index} is on {tensor.device}; the reference runs on {device}")


def _guard(what: str, call: Any) -> Any:
    try:
        return call()
    except OperatorFault:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        first = str(error).strip().splitlines()
        raise OperatorFault(
            f"{what} raises {type(error).__name__}: {first[0] if first else ''}".rstrip(": ")
        ) from error
