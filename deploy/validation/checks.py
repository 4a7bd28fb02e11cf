"""All checks together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from deploy.validation import images, linters, manifests, processes, rules
from deploy.validation.manifests import Object


def complaints(root: Path) -> Iterator[str]:
    """What is wrong with the deployment files of the repository ``root``."""
    deploy = root / "deploy"
    yield from linters.complaints(deploy)
    yield from images.complaints(root)
    yield from of_compose(yaml.safe_load((deploy / "compose.yaml").read_text(encoding="utf-8")), deploy)
    yield from of_kubernetes(deploy / "k8s")


def of_compose(compose: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """What is wrong with a compose file of ``folder``, its schema aside."""
    found = list(processes.of_compose(compose))
    yield from rules.of_compose(compose, folder)
    for process in found:
        yield from rules.of_process(process)
    yield from rules.of_calls(found, frozenset(compose["services"]))
    yield from rules.of_trials(found)
    yield from rules.of_models(found)


def of_kubernetes(k8s: Path) -> Iterator[str]:
    """What is wrong with the manifests, as kustomize builds them."""
    try:
        built = manifests.builds(k8s)
    except manifests.BuildError as error:
        yield str(error)
        return
    for name, objects in built.items():
        yield from (f"{name}: {complaint}" for complaint in of_objects(objects))


def of_objects(objects: Sequence[Object]) -> Iterator[str]:
    """What is wrong with one installation."""
    found = list(processes.of_kubernetes(objects))
    services = frozenset(item["metadata"]["name"] for item in objects if item["kind"] == "Service")
    yield from manifests.complaints(objects)
    for process in found:
        yield from rules.of_process(process)
    yield from rules.of_calls(found, services)
    yield from rules.of_trials(found)
    yield from rules.of_models(found)
    yield from rules.of_pools(objects, found)
    yield from rules.of_references(objects)
    yield from rules.of_security(objects)
