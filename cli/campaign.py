"""Searches for one operator on several chips: the directory they share, and what was asked of them.

::

    runs/20260131-120000-softmax/
      campaign.json   what was asked: the operator's text and a SearchStarted for each chip, in order
      cpu-x86_64/     a run directory (``cli/rundir.py``), made when the chip's turn comes
      riscv-rvv/
      result.json     the final object of all of them, as ``--json`` prints it
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from cli import rundir
from cli.rundir import RunDirectory, write_whole
from search_svc.service import SUBMITTER
from shared import envelopes, operators, wire
from shared.clock import SystemClock
from shared.errors import LogError, Poison
from shared.events import SearchStarted
from shared.operators import OperatorSpec

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """What was asked, and where. Ids and times of ``searches`` are those of the asking, not of any search."""

    directory: RunDirectory
    spec: OperatorSpec
    operator_path: Path
    searches: tuple[SearchStarted, ...]

    def run(self, chip: str) -> RunDirectory:
        """Where the search for ``chip`` is, or will be."""
        return RunDirectory(path=self.directory.path / chip)


def is_one(path: Path) -> bool:
    """Whether ``path`` is the directory of a campaign."""
    return (path / rundir.CAMPAIGN).is_file()


def create(out: Path | None, spec: OperatorSpec, searches: tuple[SearchStarted, ...], operator: Path) -> Campaign:
    """Make the directory and write down what is asked.

    Raises:
        UserError: the directory cannot be written, or already holds something.
    """
    directory = rundir.create(out, spec.ref.name)
    body = {
        "format": FORMAT,
        "operator_path": str(operator.resolve()),
        "operator": spec.source,
        "searches": [
            wire.to_json(envelopes.envelope(one, cause_id=one.search_id, source=SUBMITTER, clock=SystemClock()))
            for one in searches
        ],
    }
    write_whole(directory.path / rundir.CAMPAIGN, json.dumps(body, indent=1))
    return Campaign(directory=directory, spec=spec, operator_path=operator, searches=searches)


def read(path: Path) -> Campaign:
    """The campaign at ``path``.

    Raises:
        LogError: what was asked is corrupt or of another format.
    """
    file = path / rundir.CAMPAIGN
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
        if body["format"] != FORMAT:
            raise LogError(f"has format {body['format']}, this version reads {FORMAT}", where=str(file))
        events = [wire.from_json(each).event for each in body["searches"]]
        text, operator_path = str(body["operator"]), Path(body["operator_path"])
    except (OSError, ValueError, KeyError, TypeError, Poison) as error:
        raise LogError(f"is corrupt: {error}", where=str(file)) from error
    searches = tuple(event for event in events if isinstance(event, SearchStarted))
    if not searches or len(searches) < len(events):
        raise LogError("does not hold a SearchStarted for each chip", where=str(file))
    spec = operators.parse(text, name=searches[0].operator.name, where=str(file))
    return Campaign(directory=RunDirectory(path=path), spec=spec, operator_path=operator_path, searches=searches)
