"""The kustomizations, built by kustomize itself, and every object in them held against its schema."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

Object = dict[str, Any]

KUBERNETES = "1.34"
"""The oldest version that the manifests are for."""
SCALED_OBJECT = json.loads(Path(__file__).with_name("scaled_object.schema.json").read_text(encoding="utf-8"))
POOLS = ("cpu", "nvidia", "amd")


class BuildError(Exception):
    """Kustomize refused; the message is its own."""


def builds(k8s: Path) -> dict[str, list[Object]]:
    """What is worth building, by name: every overlay, and base with every component.

    Raises:
        BuildError: one of them cannot be built.
    """
    pools = [f"components/{pool}" for pool in POOLS]
    found = {
        "base, every pool, mesh, sandbox": composed(k8s, [*pools, "components/mesh", "components/sandbox"]),
        "base, every pool, tls, sandbox": composed(k8s, [*pools, "components/tls", "components/sandbox"]),
    }
    for overlay in sorted((k8s / "overlays").iterdir()):
        found[f"overlays/{overlay.name}"] = build(overlay)
    return found


def composed(k8s: Path, components: Sequence[str]) -> list[Object]:
    """``base`` with ``components``, in that order."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        here = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [os.path.relpath(k8s.resolve() / "base", folder)],
            "components": [os.path.relpath(k8s.resolve() / component, folder) for component in components],
        }
        folder.joinpath("kustomization.yaml").write_text(yaml.safe_dump(here), encoding="utf-8")
        return build(folder)


def build(folder: Path) -> list[Object]:
    """The objects of a kustomization.

    Raises:
        BuildError: kustomize refused it, or warned.
    """
    command = [str(Path(sysconfig.get_path("scripts"), "kubectl")), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        raise BuildError(f"kustomize, {folder}: {done.stderr.strip()}")
    return [found for found in yaml.safe_load_all(done.stdout) if found]


def complaints(objects: Sequence[Object]) -> Iterator[str]:
    """What the schemas say; unknown fields and unknown kinds are complaints too."""
    for found in objects:
        yield from _said_of(json.dumps(found))


@cache
def _said_of(text: str) -> tuple[str, ...]:
    """Of one object. Remembered, because the same objects are in several builds."""
    found = json.loads(text)
    if found["apiVersion"] == "keda.sh/v1alpha1":
        errors = jsonschema.Draft202012Validator(SCALED_OBJECT).iter_errors(found)
        return tuple(f"{name_of(found)}: {error.json_path}: {error.message}" for error in errors)
    try:
        kubernetes_validate.validate(found, KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        return (f"{name_of(found)}: {'.'.join(map(str, error.path))}: {error.message}",)
    except kubernetes_validate.SchemaNotFoundError:
        return (f"{name_of(found)}: no such kind in Kubernetes {KUBERNETES}: {found['apiVersion']}",)
    return ()


def name_of(found: Object) -> str:
    """``Kind/name``."""
    return f"{found['kind']}/{found['metadata']['name']}"
