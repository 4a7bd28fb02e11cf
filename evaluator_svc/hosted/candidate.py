"""Candidate's side: one process from the fork to its end.

Confinement comes first, before a line of the candidate's is read. Then commands are answered until the controller
ends the process. From *load* on everything here is in the candidate's reach, so the controller believes nothing of it:
it measures, reads memory and counts threads from outside.
"""

from __future__ import annotations

import errno
import importlib
import json
import mmap
import os
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NoReturn

import torch

from evaluator_svc.hosted import results, wire
from evaluator_svc.hosted.model import NAME, Model, NotLoaded, executed
from evaluator_svc.hosted.native import Native
from evaluator_svc.hosted.results_page import ResultsPage
from evaluator_svc.hosted.wire import Kind, Verb

CHANNEL = 4
"""``Kind::CHANNEL`` of ``report.hpp``."""
OUT_OF_REACH = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT)
"""Errors of a candidate that tried what its box does not hold."""
CHANNEL_LOST, NOT_STARTED = 76, 70
"""Exit statuses; the first as in ``native.cpp``."""
EXTENSIONS = "torch.utils.cpp_extension"
"""What our hooks for extensions import, too; on a GPU that starts the driver, which survives no fork."""
TRITON_DRIVER = "evaluator_svc.hosted.triton_driver"
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool")
"""In the order of ``enum KeDtype``."""


def warm(modules: Sequence[str]) -> None:
    """In the fork server, which has imported ``modules``: what every child would else do first."""
    own = ("cpu", "extensions", "kernel_audit") if EXTENSIONS in modules else ("cpu",)
    for module in own:
        importlib.import_module(f"evaluator_svc.hosted.{module}")
    if TRITON_DRIVER in modules:
        importlib.import_module(TRITON_DRIVER).warm()
    torch.set_num_threads(1)  # a pool of threads would not survive the fork
    with torch.inference_mode():
        torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().item()


def live(native: Native, settings: dict[str, Any], order: dict[str, Any], fds: Sequence[int], *, nested: bool) -> None:
    """Everything a candidate's process does. Never returns."""
    code = NOT_STARTED
    try:
        control, configuration, words, report, inputs, printed, commands, replies, *libraries = fds
        os.setsid()
        for standard in (1, 2):
            os.dup2(printed, standard)
        with os.fdopen(words, "rb") as file:
            told: dict[str, Any] = json.loads(file.read())
        directory = _libraries(native, settings, order, libraries, nested=nested)
        if order["cpus"]:
            os.sched_setaffinity(0, order["cpus"])
        outputs = _meet(control)
        native.prepare(configuration, report, inputs, outputs)
        page = memoryview(mmap.mmap(report, 0))
        _close_all_but(commands, replies)
        served = _Candidate(native, page, told, directory)
        layers = native.confine()
        _answer(native, replies, wire.REPLY.pack(wire.MAGIC, 0, layers, Kind.NONE, 0))
        if native.enough(layers):
            served.answer(commands, replies)
            code = 0
    except BaseException:  # noqa: BLE001 - shown to the controller, which sees that it did not start
        traceback.print_exc()
    finally:
        os._exit(code)


class _Candidate:
    def __init__(self, native: Native, page: memoryview, told: dict[str, Any], directory: str) -> None:
        self._native, self._page, self._told, self._directory = native, page, told, directory
        self._kept = "kept" in told
        """The controller holds the inputs on the device and reads the results there."""
        self._device = _device(told)
        os.environ["OMP_NUM_THREADS"] = str(told["threads"])
        if not told["processes"]:
            torch.compile = _no_compiler
        self._mutates: list[int] = told["mutates"]
        self._n_in, self._n_out = len(told["inputs"]), int(told["outputs"])
        self._shared = [self._tensors(set_) for set_ in range(int(told["sets"]))]
        self._private = [self._copies(tensors) for tensors in self._shared]
        self._results = ResultsPage(
            page,
            sets=len(self._shared),
            outputs=self._n_out,
            codes={getattr(torch, name): code for code, name in enumerate(DTYPES)},
            device=self._device,
            shares=self._kept,
        )
        self._held: dict[int, Any] = {}
        """What was returned, by set, until its next call: a baseline's results are kept as long."""
        self._reuses = False
        """It returns memory that an earlier result lies in."""
        self._last: list[int] = []
        """Sets of the last block."""
        self._model: Model | None = None
        self._offline: Any = None
        self._ready: list[list[Any]] = []
        """Arguments by set."""

    def answer(self, commands: int, replies: int) -> None:
        while True:
            data = os.read(commands, wire.COMMAND.size)
            if len(data) != wire.COMMAND.size:
                return
            _, verb, calls, first_set, sequence = wire.COMMAND.unpack(data)
            begin = perf_counter_ns()
            kind = self._done(Verb(verb), calls, first_set)
            spent = perf_counter_ns() - begin
            _answer(self._native, replies, wire.REPLY.pack(wire.MAGIC, sequence, 0, kind, spent))

    def _done(self, verb: Verb, calls: int, first_set: int) -> Kind:
        try:
            if verb is Verb.LOAD:
                self._load()
            elif verb is Verb.SEAL:
                self._native.seal()
            elif verb is Verb.PRIME:
                self._prime(calls, first_set)
            elif verb is Verb.RUN:
                self._run(calls, first_set)
            elif verb is Verb.AUDIT:
                self._audit(first_set)
            elif verb is Verb.FILL:
                for i in range(min(calls, len(self._shared))):
                    self._device.refresh(self._shared[(first_set + i) % len(self._shared)])
            elif verb is Verb.EXPORT:
                self._export()
        except SystemExit as left:
            os._exit(left.code if isinstance(left.code, int) else 1)
        except BaseException as error:  # noqa: BLE001 - whatever a candidate raises is its own
            return self._failed(error, loading=verb is Verb.LOAD)
        return Kind.NONE

    def _load(self) -> None:
        told = self._told
        if EXTENSIONS in sys.modules or "cpp_extension" in told["text"]:  # importing it takes a while
            importlib.import_module("evaluator_svc.hosted.extensions").install(Path(self._directory))
        if told["interpreted"]:
            importlib.import_module("evaluator_svc.hosted.interpreter").install()
        if told["offline"]:
            self._offline = importlib.import_module("evaluator_svc.hosted.offline").Offline(*told["offline"])
            self._offline.install()
        with torch.no_grad():
            module = executed(told["text"])
            self._model = Model(module, told["signature"], self._private[0])
            self._ready = [self._model.bind(tensors) for tensors in reversed(self._private)][::-1]

    def _prime(self, calls: int, first_set: int) -> None:
        """Whatever it raises counts for nothing, and is printed: it explains why the next call fails."""
        try:
            self._calls(calls, first_set)
            self._device.finish()
        except Exception:  # noqa: BLE001 - a candidate raises what it likes
            traceback.print_exc()
        self._held.clear()

    def _run(self, calls: int, first_set: int) -> None:
        """A block, whose results are then told on the shared page.

        A kernel may return the same memory each time. Then results are copied, as part of the call: the reference's
        stay what they are, too. The block in which that is found is made once more.
        """
        self._results.forget()
        spent_ns = self._calls(calls, first_set)
        # Where results lie is known before they are there: it is told while a device still works on them.
        if self._tell() and not self._reuses:
            self._reuses = True
            spent_ns = self._calls(calls, first_set)
            self._tell()
        self._device.finish()
        if spent_ns is not None:
            wire.write_clock(self._page, spent_ns)

    def _calls(self, calls: int, first_set: int) -> int | None:
        """Call i on set ``(first_set + i) mod sets``; of each set the last results are held. The device's time, ns.
        Who needs the results waits for ``finish``.
        """
        order = [(first_set + i) % len(self._shared) for i in range(calls)]
        self._last = list(dict.fromkeys(order))
        with torch.inference_mode():
            spent_ns: int | None = self._device.repeated(self._turn(), order)
        return spent_ns

    def _tell(self) -> bool:
        """Tell the results of the last block; whether calls on two sets returned the same memory."""
        with torch.inference_mode():
            for set_ in self._last:
                self._held[set_] = results.settled(self._held[set_])
        return self._results.tell((set_, self._outputs(set_)) for set_ in self._last)

    def _turn(self) -> Callable[[int], None]:
        """One call on a set."""
        model, held, ready, alone = self._model, self._held, self._ready, len(self._shared) == 1
        assert model is not None
        stained, call = self._told["stained"], model.call

        def plain(set_: int) -> None:
            held[set_] = call(*ready[set_])

        def whole(set_: int) -> None:
            inputs = self._private[set_]
            for position in self._mutates:
                inputs[position].copy_(self._shared[set_][position])
            arguments = ready[set_] if alone else model.bind(inputs)
            if stained:
                self._device.stain()
                self._native.stain_stack()
            result = call(*arguments)
            held[set_] = [_copied(one) for one in results.outputs_of(result)] if self._reuses else result

        return whole if stained or self._mutates or self._reuses or model.has_state else plain

    def _outputs(self, set_: int) -> list[Any]:
        """What was returned last, then what the mutable inputs hold now."""
        returned = results.outputs_of(self._held[set_])
        if not self._mutates:
            return returned
        private = self._private[set_]
        return [*returned, *(private[position] for position in self._mutates)]

    def _export(self) -> None:
        """Copy what is held to the shared outputs. More than fits is left; the controller refuses its shape."""
        for set_ in self._last:
            for output, one in enumerate(self._outputs(set_)[: self._n_out]):
                if isinstance(one, torch.Tensor) and one.nbytes <= self._told["output_bytes"][output]:
                    self._device.export(one, self._native.address(self._place(set_, output=output)))

    def _audit(self, set_: int) -> None:
        """One call on ``set_`` with every kernel it launches counted; what was seen goes to the shared page.

        Where kernels are only compiled, there is no call: what was seen when they were is told.
        """
        if self._offline is not None:
            wire.write_text(self._page, json.dumps(self._offline.report(), separators=(",", ":")))
            return
        audit = importlib.import_module("evaluator_svc.hosted.kernel_audit").Audit()
        if self._told["interpreted"]:
            traffic = importlib.import_module("evaluator_svc.hosted.traffic")
            with audit, traffic.Traffic() as counted:
                self._calls(1, set_)
            said = traffic.told(audit.report(), counted.kernels, wire.TEXT_BYTES)
        else:
            with audit:
                self._calls(1, set_)
                self._device.finish()
            said = json.dumps(audit.report())
        self._held.clear()
        wire.write_text(self._page, said)

    def _failed(self, error: BaseException, *, loading: bool) -> Kind:
        try:
            return self._noted(error, loading=loading)
        except BaseException:  # noqa: BLE001 - an exception of the candidate's own may raise when it is asked what it is
            kind = Kind.LOAD if loading else Kind.EXCEPTION
            self._native.note(kind, "an exception that cannot be shown: asked for its text, it raises another")
            return kind

    def _noted(self, error: BaseException, *, loading: bool) -> Kind:
        kind = Kind.LOAD if loading else Kind.EXCEPTION
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            kind = Kind.BAD_ALLOC
        elif isinstance(error, OSError) and error.errno in OUT_OF_REACH:
            kind = Kind.REFUSED
        name = "" if isinstance(error, NotLoaded) else f"{type(error).__name__}: "
        self._native.note(kind, f"{name}{error}{_line(error)}")
        return kind

    def _tensors(self, set_: int) -> list[torch.Tensor]:
        return [
            self._device.load_input(self._input_address(set_, i), shape, getattr(torch, dtype))
            for i, (shape, dtype) in enumerate(self._told["inputs"])
        ]

    def _input_address(self, set_: int, index: int) -> int:
        if self._kept:
            address: int = self._device.input_address(set_, index)
            return address
        return self._native.address(self._place(set_, input_=index))

    def _copies(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """The tensors, those that the operator changes in place as private copies."""
        return [torch.empty_like(t) if i in self._mutates else t for i, t in enumerate(tensors)]

    def _place(self, set_: int, *, input_: int = 0, output: int | None = None) -> int:
        return set_ * (self._n_in + self._n_out) + (input_ if output is None else self._n_in + output)


def _device(told: dict[str, Any]) -> Any:
    """Where tensors are: a module, or a device whose inputs the controller holds, ready."""
    if "kept" in told:
        return importlib.import_module("evaluator_svc.hosted.cuda_kept").Kept(told["kept"], int(told["threads"]))
    device = importlib.import_module(f"evaluator_svc.hosted.{told['device']}")
    device.setup(int(told["threads"]))
    return device


def _copied(one: Any) -> Any:
    return one.clone() if type(one) is torch.Tensor else one


def _libraries(
    native: Native, settings: dict[str, Any], order: dict[str, Any], fds: Sequence[int], *, nested: bool
) -> str:
    """Make private mounts, put the candidate's extensions where it finds them, and give up all privileges."""
    directory: str = settings["extensions"] if nested else order.get("library", order["extensions_at"])
    if nested:
        native.settle(directory, int(order["temporary_bytes"]), hide_proc=settings["hide_proc"])
    for name, fd in zip(order["extensions"], fds, strict=True):
        target = Path(directory, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(fd, "rb") as source, target.open("wb") as file:
            file.write(source.read())
    if nested:
        native.settled(directory)
    native.hold()
    return directory


def _meet(control: int) -> int:
    """Give the controller a descriptor of this process; it gives one of the outputs where it cannot read memory."""
    with socket.socket(fileno=control) as link:
        watch = os.pidfd_open(os.getpid())
        socket.send_fds(link, [b"."], [watch])
        os.close(watch)
        said, given, _, _ = socket.recv_fds(link, 1, 1)
    if not said:
        os._exit(0)
    return given[0] if given else -1


def _no_compiler(*args: Any, **kwargs: Any) -> NoReturn:
    """In the place of ``torch.compile``, which would start a compiler and be taken for a cheat."""
    del args, kwargs
    raise NotImplementedError("torch.compile needs a compiler while the kernel runs, and no process may be started")


def _close_all_but(*kept: int) -> None:
    begin = 3
    for fd in sorted(kept):
        os.closerange(begin, fd)
        begin = fd + 1
    os.closerange(begin, 1 << 16)


def _answer(native: Native, replies: int, reply: bytes) -> None:
    try:
        written = os.write(replies, reply)
    except OSError:
        written = 0
    if written != len(reply):
        native.note(CHANNEL, "the reply channel was closed")
        _leave()


def _leave() -> NoReturn:
    os._exit(CHANNEL_LOST)


def _line(error: BaseException) -> str:
    """Where in the candidate's own text."""
    if isinstance(error, SyntaxError):
        return ""
    own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == f"{NAME}.py"]
    return f" (line {own[-1]})" if own else ""
