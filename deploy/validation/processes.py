"""Containers of the compose file and of Kubernetes' workloads, read into one form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deploy.validation.manifests import Object, name_of

SECRET = object()
"""Stands for a value that is kept elsewhere."""
OWN_IMAGES = ("kernelevolve", "kernelevolve-gpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One of our processes. ``variables`` without secrets' values; ``grace_s``: between SIGTERM and SIGKILL."""

    where: str
    name: str
    image: str
    command: tuple[str, ...]
    variables: Mapping[str, object]
    ports: frozenset[int]
    mounts: tuple[str, ...]
    grace_s: float
    notice_s: float = 0.0
    """Of ``grace_s``, what passes before SIGTERM."""
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def module(self) -> str:
        """The service, e.g. ``search_svc``; empty when the command is not ``python -m``."""
        return self.command[2] if self.command[:2] == ("python", "-m") and len(self.command) == 3 else ""

    @property
    def settings(self) -> dict[str, str]:
        """The variables whose values are known here."""
        return {name: value for name, value in self.variables.items() if isinstance(value, str)}


def of_compose(compose: Mapping[str, Any]) -> Iterator[Process]:
    """The services that run one of our images."""
    for name, service in compose["services"].items():
        image = service.get("image", "").split(":")[0]
        if image not in OWN_IMAGES:
            continue
        variables = {key: _interpolated(str(value)) for key, value in (service.get("environment") or {}).items()}
        yield Process(
            where=f"compose.yaml, {name}",
            name=name,
            image=image,
            command=tuple(service.get("command", ())),
            variables=variables,
            ports=frozenset(int(port.rsplit(":", 1)[1]) for port in service.get("ports", ())),
            mounts=tuple(f"/run/secrets/{secret}" for secret in service.get("secrets", ())),
            grace_s=float(service.get("stop_grace_period", "10s").removesuffix("s")),
            annotations=service.get("labels", {}),
        )


def of_kubernetes(objects: Sequence[Object]) -> Iterator[Process]:
    """The containers of the Deployments, their variables looked up in the ConfigMaps that they name."""
    configs = {found["metadata"]["name"]: found.get("data", {}) for found in objects if found["kind"] == "ConfigMap"}
    for found in objects:
        if found["kind"] != "Deployment":
            continue
        pod = found["spec"]["template"]["spec"]
        for container in pod["containers"]:
            hook = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {})
            yield Process(
                where=name_of(found),
                name=found["metadata"]["name"],
                image=container["image"].rsplit("/", 1)[-1].split(":")[0],
                command=tuple(container.get("args", ())),
                variables=_variables(container, configs),
                ports=frozenset(port["containerPort"] for port in container.get("ports", ())),
                mounts=tuple(mount["mountPath"] for mount in container.get("volumeMounts", ())),
                grace_s=float(pod.get("terminationGracePeriodSeconds", 30)),
                notice_s=float(hook.get("seconds", 0)),
                annotations=found["metadata"].get("annotations", {}),
            )


def _variables(container: Mapping[str, Any], configs: Mapping[str, Mapping[str, str]]) -> dict[str, object]:
    variables: dict[str, object] = {}
    for source in container.get("envFrom", ()):
        variables |= configs.get(source.get("configMapRef", {}).get("name", ""), {})
    for entry in container.get("env", ()):
        variables[entry["name"]] = entry.get("value", SECRET)
    return variables


def _interpolated(text: str) -> object:
    """``${NAME:-default}`` → the default, wherever it is; ``${NAME:?why}`` is a secret."""
    if ":?" in text:
        return SECRET
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
