"""Settings of knowledge_svc, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from knowledge_svc import library

WITH_THE_RUN = "run:"
"""Value of ``SKILLS_URL`` that shares nothing between searches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where documents and skills live.

    Attributes:
        folders: document folders (``KNOWLEDGE_PATH``, separated like PATH); read after the built-in corpus.
        user_folder: where ``kernelevolve knowledge add`` puts documents; read last.
        skills_url: store of what was learnt, shared by all searches (``SKILLS_URL``); ``run:`` keeps it with the run.
    """

    folders: tuple[Path, ...] = ()
    user_folder: Path | None = None
    skills_url: str = WITH_THE_RUN

    @property
    def all_folders(self) -> tuple[Path, ...]:
        """Built-in corpus first; later folders win over earlier ones."""
        user = () if self.user_folder is None else (self.user_folder,)
        return (library.CORPUS, *self.folders, *user)


def from_env(environment: Mapping[str, str]) -> Settings:
    """Settings named by ``environment``; by default the user's data directory keeps documents and skills.

    Example:
        ``KNOWLEDGE_PATH=/srv/docs:/srv/more SKILLS_URL=mongodb://db/skills``
    """
    data = platformdirs.user_data_path("kernelevolve", appauthor=False)
    folders = tuple(Path(part) for part in environment.get("KNOWLEDGE_PATH", "").split(os.pathsep) if part)
    return Settings(
        folders=folders,
        user_folder=data / "knowledge",
        skills_url=environment.get("SKILLS_URL") or f"sqlite:{data / 'skills.db'}",
    )
