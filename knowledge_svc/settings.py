"""Settings of knowledge_svc, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from knowledge_svc import library
from shared import settings
from shared.settings import PortSettings

WITH_THE_RUN = "run:"
"""Value of ``SKILLS_URL`` that keeps what is learnt in the service's own store (``STORE_URL``). Where each search has
a store of its own, that shares nothing between searches."""
_OF_ONE_MACHINE = ("memory", "sqlite")
"""Schemes of stores that services on other machines cannot reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where documents and skills live.

    Attributes:
        folders: document folders (``KNOWLEDGE_PATH``, separated like PATH); read after the built-in corpus.
        user_folder: where ``kernelevolve knowledge add`` puts documents; read last.
        skills_url: store of skills and of documents given over gRPC, shared by all searches (``SKILLS_URL``);
            ``run:`` keeps them with the run.
        store_url: the service's own store (``STORE_URL``).
        learning: false freezes the skills, so that searches compared with each other are told the same
            (``KNOWLEDGE_LEARNING``). Facts are left on their topic meanwhile, and learnt from when it is true again.
    """

    folders: tuple[Path, ...] = ()
    user_folder: Path | None = None
    skills_url: str = WITH_THE_RUN
    store_url: str = ""
    learning: bool = True

    @property
    def in_own_store(self) -> bool:
        """Is what is learnt kept in the service's own store?"""
        return self.skills_url in (WITH_THE_RUN, self.store_url)

    @property
    def all_folders(self) -> tuple[Path, ...]:
        """Built-in corpus first; later folders win over earlier ones."""
        user = () if self.user_folder is None else (self.user_folder,)
        return (library.CORPUS, *self.folders, *user)


def from_env(environment: Mapping[str, str]) -> Settings:
    """Settings named by ``environment``.

    By default the user's data directory keeps documents and skills. Where ``STORE_URL`` names a server, that keeps
    them: replicas must not differ by the machine they run on.

    Raises:
        UserError: names the variable that does not parse.

    Example:
        ``KNOWLEDGE_PATH=/srv/docs:/srv/more SKILLS_URL=mongodb://db/skills``
    """
    store_url = settings.from_env(PortSettings, environment).store_url
    shared = store_url.partition(":")[0].lower() not in _OF_ONE_MACHINE
    data = platformdirs.user_data_path("kernelevolve", appauthor=False)
    folders = tuple(Path(part) for part in environment.get("KNOWLEDGE_PATH", "").split(os.pathsep) if part)
    return Settings(
        folders=folders,
        user_folder=None if shared else data / "knowledge",
        skills_url=environment.get("SKILLS_URL") or (store_url if shared else f"sqlite:{data / 'skills.db'}"),
        store_url=store_url,
        learning=settings.from_env(_Learning, environment, "KNOWLEDGE_").learning,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Learning:
    """``KNOWLEDGE_*`` that are read as they are."""

    learning: bool = True
