"""The winner as a directory that is used without this project: kernel, header, reference, module and evidence."""

from __future__ import annotations

import json
import keyword
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from cli.signature import Signature, describe
from evaluator_svc.toolchains.cpu import BASE_FLAGS
from search_svc.tree import Node
from shared import chips, ids
from shared.abi import HEADER_NAME, header
from shared.chips import ChipSheet
from shared.errors import UserError
from shared.events import Evaluation, KernelRef, SearchStarted
from shared.machine import processor
from shared.operators import OperatorSpec

NATIVE = "cpp"
LANGUAGES = (NATIVE, "python", "triton")


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """What is shipped: exactly the kernel that ``evaluation`` measured."""

    kernel: KernelRef
    source: str
    evaluation: Evaluation
    threads: int
    command: str


def export(directory: Path, spec: OperatorSpec, winner: Winner, chip: ChipSheet, signature: Signature) -> Path:
    """Write the artefact to ``directory``, replacing what was there, and return it.

    The directory appears whole or not at all. Its module is ``<operator>_kernel.py``.

    Raises:
        UserError: the directory cannot be written, or the kernel's language has no artefact form.
    """
    if winner.kernel.language not in LANGUAGES:
        raise UserError(
            f"kernels in {winner.kernel.language} cannot be exported", hint=f"known: {', '.join(LANGUAGES)}"
        )
    files = render(spec, winner, chip, signature)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".artefact-") as scratch:
            fresh = Path(scratch) / "fresh"
            fresh.mkdir()
            for name, text in files.items():
                (fresh / name).write_text(text, encoding="utf-8")
            if directory.exists():
                directory.rename(Path(scratch) / "old")
            fresh.rename(directory)
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=str(directory)) from error
    return directory


def export_winner(
    directory: Path, spec: OperatorSpec, best: Node, blobs: Mapping[str, bytes], search: SearchStarted
) -> Path:
    """``export`` of a search's announced winner, with its re-measured numbers.

    The signature is read off the reference, which is run once in a child process.

    Raises:
        UserError: see ``export``.
        OperatorError: see ``signature.describe``.
    """
    assert best.final is not None, "a winner was re-measured"
    winner = Winner(
        kernel=best.kernel,
        source=blobs[best.kernel.source_hash].decode(),
        evaluation=best.final,
        threads=search.threads,
        command=command_of(search),
    )
    return export(directory, spec, winner, chips.load(search.chip), describe(spec))


def command_of(search: SearchStarted) -> str:
    """A command line that submits the same search."""
    return (
        f"kernelevolve optimize {search.operator.name}.py --chip {search.chip} --policy {search.policy} "
        f"--evaluations {search.budget.evaluations} --seed {search.seed} --threads {search.threads}"
    )


def render(spec: OperatorSpec, winner: Winner, chip: ChipSheet, signature: Signature) -> dict[str, str]:
    """Name and text of every file of the artefact."""
    kernel = winner.kernel
    identifier = identifier_of(spec.ref.name)
    op = f"{identifier}_{kernel.kernel_id[:8]}"
    names = input_names(signature)
    facts: dict[str, Any] = {
        "operator": spec.ref.name,
        "module": f"{identifier}_kernel",
        "op": op,
        "chip": chip.id,
        "language": kernel.language,
        "kernel_id": kernel.kernel_id,
        "source_sha256": ids.content_hash(winner.source.encode()),
        "arguments": _tuple("_TENSOR" if a.tensor else a.literal for a in signature.arguments),
        "state": _tuple(repr(named.name) for named in signature.state),
        "inputs": signature.inputs,
        "outputs": signature.outputs,
        "named_inputs": list(zip(names, signature.inputs, strict=True)),
        "schema": schema(names, len(signature.outputs)),
        "forward_returns": _forward_returns(op, signature),
        "evaluation": winner.evaluation,
        "threads": winner.threads,
        "command": winner.command,
        "device": "cuda" if chip.gpu else "cpu",
        "architecture": chip.architecture,
    }
    written = _native(winner) if kernel.language == NATIVE else {"kernel.py": winner.source}
    built = _how_native(winner, chip) if kernel.language == NATIVE else {"architecture": chip.architecture}
    form = "native" if kernel.language == NATIVE else "hosted"
    build = _what(spec, winner, chip, op) | built
    return written | {
        "reference.py": spec.source,
        "build.json": json.dumps(build, indent=1) + "\n",
        "README.md": _ENVIRONMENT.get_template("artefact_readme.md.j2").render(facts | {"build": build}),
        f"{identifier}_kernel.py": _ENVIRONMENT.get_template(f"kernel_module_{form}.py.j2").render(facts),
    }


def _what(spec: OperatorSpec, winner: Winner, chip: ChipSheet, op: str) -> dict[str, object]:
    """What the kernel is, for ``build.json``."""
    kernel = winner.kernel
    return {
        "operator": spec.ref.name,
        "operator_sha256": spec.ref.source_hash,
        "op": f"kernelevolve::{op}",
        "chip": chip.id,
        "language": kernel.language,
        "kernel_id": kernel.kernel_id,
        "source_sha256": ids.content_hash(winner.source.encode()),
        "entry": kernel.entry,
    }


def _native(winner: Winner) -> dict[str, str]:
    return {"kernel.cpp": winner.source, HEADER_NAME: header()}


def _how_native(winner: Winner, chip: ChipSheet) -> dict[str, object]:
    """How a native kernel is built, for ``build.json``."""
    flags, environment = winner.kernel.flags, winner.evaluation.environment
    return {
        "flags": [*BASE_FLAGS, *flags],
        "compiler": next((entry.value for entry in environment if entry.name == "compiler"), "g++"),
        "cpu_flags": cpu_flags(flags, chip),
    }


def cpu_flags(flags: Sequence[str], chip: ChipSheet) -> list[str]:
    """Processor features that code built with ``flags`` may use, as ``/proc/cpuinfo`` names them, sorted."""
    if any(flag in ("-march=native", "-mcpu=native") for flag in flags):
        return sorted(processor().flags)
    needed = (isa.cpu_flags for isa in chip.isas if set(isa.flags) <= set(flags))
    return sorted({name for names in needed for name in names})


def identifier_of(name: str) -> str:
    """``name`` as a Python identifier: ``19_ReLU`` -> ``op_19_ReLU``."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII)
    return text if text.isidentifier() and not keyword.iskeyword(text) else f"op_{text}"


def input_names(signature: Signature) -> tuple[str, ...]:
    """A distinct identifier for every kernel input: argument names, then state-dict names with ``_`` for dots."""
    given = [a.name for a in signature.arguments if a.tensor is not None]
    given += [named.name for named in signature.state]
    names: list[str] = []
    for index, name in enumerate(given):
        text = identifier_of(name.replace(".", "_"))
        names.append(text if text not in names else f"{text}_{index}")
    return tuple(names)


def schema(names: Sequence[str], outputs: int) -> str:
    """The operator's schema: tensors in, one tensor or a tuple out."""
    arguments = ", ".join(f"Tensor {name}" for name in names)
    return f"({arguments}) -> {'Tensor' if outputs == 1 else '(' + ', '.join(['Tensor'] * outputs) + ')'}"


def _tuple(items: Iterable[str]) -> str:
    """Source text of a tuple."""
    texts = list(items)
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _forward_returns(op: str, signature: Signature) -> str:
    call = f"{op}(*tensors)"
    if signature.container == "tensor":
        return call
    items = f"({call},)" if len(signature.outputs) == 1 else call
    return f"list({items})" if signature.container == "list" else f"tuple({items})"


def _environment() -> jinja2.Environment:
    # Python and Markdown: escaping for HTML would corrupt them.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cli", "templates"),
        autoescape=False,  # noqa: S701
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["repr"] = repr
    return environment


_ENVIRONMENT = _environment()
