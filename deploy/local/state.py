"""``cluster.json``: what a cluster is made of, written before it is started, so that its remains can be found."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "cluster.json"
LOGS = "logs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A process as ``status`` tells of it."""

    name: str
    group: str
    ports: Mapping[str, int]
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """``server`` is where clients find the search service; ``socket`` is the supervisor's."""

    server: str
    chips: tuple[str, ...]
    workers: int
    bus_url: str
    store_url: str
    cache_url: str
    socket: str
    members: tuple[Member, ...]

    @property
    def groups(self) -> dict[str, str]:
        """Group of each member."""
        return {member.name: member.group for member in self.members}

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(port for member in self.members for port in member.ports.values())

    def member(self, name: str) -> Member:
        """Raises ``KeyError``."""
        for member in self.members:
            if member.name == name:
                return member
        raise KeyError(name)


def write(folder: Path, state: State) -> None:
    """Whole or not at all."""
    draft = folder / f"{FILE}.new"
    draft.write_text(json.dumps(asdict(state), indent=1) + "\n", encoding="utf-8")
    os.replace(draft, folder / FILE)  # noqa: PTH105 - replaces


def read(folder: Path) -> State | None:
    """None when there is no file, or none that this version wrote."""
    try:
        raw = json.loads((folder / FILE).read_text(encoding="utf-8"))
        members = tuple(Member(**member) for member in raw.pop("members"))
        return State(members=members, **(raw | {"chips": tuple(raw["chips"])}))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def forget(folder: Path) -> None:
    (folder / FILE).unlink(missing_ok=True)
