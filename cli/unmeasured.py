"""A winner whose chip has no clock, as files: what was counted or modelled of it is said, and nothing is promised.

An artefact proper (``artefact``) carries a measurement and a module that falls back; neither can be had without the
chip. The kernel and its reference can, so that somebody who has the chip may measure them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cli import estimates
from search_svc import projection
from search_svc.tree import Node, Tree
from shared.errors import UserError
from shared.operators import OperatorSpec

SUFFIXES = {"cpp": "cpp", "c-rvv": "c", "cuda": "cu", "hip": "hip"}
"""Of kernel files by language; Python for all others."""


def export(directory: Path, spec: OperatorSpec, tree: Tree, best: Node, blobs: Mapping[str, bytes]) -> Path:
    """Write kernel, reference and what is known of them to ``directory``, and return it.

    Raises:
        UserError: the directory cannot be written.
    """
    name = f"kernel.{SUFFIXES.get(best.kernel.language, 'py')}"
    files = {
        name: blobs[best.kernel.source_hash],
        "reference.py": spec.source.encode(),
        "README.md": _readme(spec, tree, best, name).encode(),
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (directory / file).write_bytes(content)
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=str(directory)) from error
    return directory


def _readme(spec: OperatorSpec, tree: Tree, best: Node, name: str) -> str:
    found = best.final
    assert found is not None, "a winner was evaluated again"
    what = f"`{name}` is a {best.kernel.language} kernel for `{tree.search.chip}`"
    verdict = f"status {found.status.value}, trust {found.trust.value}"
    lines = [f"# {spec.ref.name}", "", f"{what}, validated against `reference.py` without the chip: {verdict}."]
    if found.estimate is not None:
        basis = found.estimate.basis
        compared = estimates.against(projection.final_ppm(tree, best), basis.value)
        lines += ["", f"Cost: {estimates.cost(found.estimate)}, {compared}: {estimates.MEANING[basis]}."]
        if found.estimate.counts:
            lines += ["", f"Counts: {estimates.counts(found.estimate.counts)}."]
    flags = f", flags `{' '.join(best.kernel.flags)}`" if best.kernel.flags else ""
    lines += ["", f"Entry `{best.kernel.entry}`{flags}, kernel `{best.kernel.kernel_id}`."]
    lines += ["", *(f"- {entry.name}: {entry.value}" for entry in found.evidence)]
    return "\n".join(lines) + "\n"
