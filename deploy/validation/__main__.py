"""``python -m deploy.validation``: every complaint on a line, and exit status 1 when there is one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from deploy.validation import images, linters, manifests, processes, rules
from deploy.validation.variables import ROOT


def complaints(root: Path) -> Iterator[str]:
    """What is wrong with the deployment files of the repository ``root``."""
    yield from linters.complaints(root / "deploy")
    yield from images.complaints(root)
    yield from of_compose(root / "deploy" / "compose.yaml")
    yield from of_kubernetes(root / "deploy" / "k8s")


def of_compose(path: Path) -> Iterator[str]:
    """What is wrong with the compose file, its schema aside."""
    compose = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = list(processes.of_compose(compose))
    yield from rules.of_compose(compose)
    for process in found:
        yield from rules.of_process(process)
    yield from rules.of_pair(found, frozenset(compose["services"]))
    for service, definition in compose["services"].items():
        for volume in definition.get("volumes", ()):
            source = str(volume).split(":", maxsplit=1)[0]
            if source.startswith(".") and not (path.parent / source).exists():
                yield f"compose.yaml, {service}: mounts {source}, which does not exist"


def of_kubernetes(k8s: Path) -> Iterator[str]:
    """What is wrong with the manifests, as kustomize builds them."""
    try:
        built = manifests.builds(k8s)
    except manifests.BuildError as error:
        yield str(error)
        return
    for name, objects in built.items():
        found = list(processes.of_kubernetes(objects))
        services = frozenset(item["metadata"]["name"] for item in objects if item["kind"] == "Service")
        said = [
            *manifests.complaints(objects),
            *(complaint for process in found for complaint in rules.of_process(process)),
            *rules.of_pair(found, services),
            *rules.of_pools(objects, found),
            *rules.of_references(objects),
            *rules.of_security(objects),
        ]
        yield from (f"{name}: {complaint}" for complaint in said)


def main() -> int:
    """The exit status."""
    said = list(complaints(ROOT))
    for complaint in said:
        print(complaint, file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
