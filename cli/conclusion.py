"""What a finished search leaves in its run directory: log, artefact, report and result."""

from __future__ import annotations

import json
from pathlib import Path

from cli import artefact, history, outcome, rundir, unmeasured
from cli.outcome import Finished
from cli.report import render, verdict_times
from cli.rundir import RunDirectory
from search_svc.projection import winner
from search_svc.tree import Node
from shared.operators import OperatorSpec


def leave(run: RunDirectory, past: history.Past, spec: OperatorSpec, *, total_ns: int) -> Finished:
    """Write everything that ``past``, a finished search for ``spec``, leaves in ``run``.

    Raises:
        UserError: the directory cannot be written.
    """
    tree = past.tree
    history.export(run.log, past)
    best = winner(tree)
    shipped = _shipped(run, past, spec, best) if best else None
    result = outcome.final_object(tree, run_dir=run.path, artefact=shipped, total_ns=total_ns)
    rundir.write_whole(run.report, render(tree, past.blobs, result, verdict_times(past.entries)))
    rundir.write_whole(run.result, json.dumps(result, indent=1))
    return Finished(tree=tree, result=result, artefact=shipped)


def _shipped(run: RunDirectory, past: history.Past, spec: OperatorSpec, best: Node) -> Path:
    if best.final is not None and best.final.estimate is not None:
        return unmeasured.export(run.kernel, spec, past.tree, best, past.blobs)
    return artefact.export_winner(run.kernel, spec, best, past.blobs, past.tree.search)
