"""What the deployment files say, compared with what the program does. Every rule yields complaints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deploy.validation import variables
from deploy.validation.manifests import Object, name_of
from deploy.validation.processes import Process
from evaluator_svc import intake
from evaluator_svc.settings import PoolLimits
from shared import chips, settings, topics
from shared.consume import ConsumeLimits
from shared.errors import UserError
from shared.rpc.settings import ServerSettings

PLANNED = "kernelevolve.io/planned"
"""Annotation of a pool whose chip this version does not know yet."""
SLACK_S = 5.0
"""For closing after the drains."""


def of_process(process: Process) -> Iterator[str]:
    """Everything that one process's own description can get wrong."""
    rules: tuple[Callable[[Process], Iterator[str]], ...] = (
        _command, _variables_are_read, _settings_parse, _ports, _guarded, _files, _grace, _chip,
    )  # fmt: skip
    for rule in rules:
        for complaint in rule(process):
            yield f"{process.where}: {complaint}"


def of_calls(processes: Sequence[Process], names: frozenset[str]) -> Iterator[str]:
    """URLs of services must name one of ``names`` (Services, or compose services) and the port it serves on."""
    ports = {process.name: _port(process.settings.get("GRPC_LISTEN", "")) for process in processes}
    for process in processes:
        for variable, value in process.settings.items():
            for named in value.split(","):
                url = urlsplit(named.rpartition("=")[2])
                if url.scheme == "grpc" and (url.hostname not in names or ports.get(str(url.hostname)) != url.port):
                    yield f"{process.where}: {variable}={named} is no service of this installation"


def of_trials(processes: Sequence[Process]) -> Iterator[str]:
    """A synthesizer may ask a worker of each chip to build what a model wrote, with a token."""
    pools = {process.settings.get("EVALUATOR_CHIP", ""): process.name for process in processes if _evaluates(process)}
    for process in processes:
        if process.module != "synthesizer_svc":
            continue
        told = (part.partition("=") for part in process.settings.get("EVALUATOR_URLS", "").split(",") if part)
        asked = {chip: urlsplit(url).hostname for chip, _, url in told}
        for chip, name in sorted(pools.items()):
            if asked.get(chip) != name:
                yield f"{process.where}: EVALUATOR_URLS names {asked.get(chip)} for {chip}, expected {name}"
        yield from (f"{process.where}: EVALUATOR_URLS: nobody evaluates {chip}" for chip in sorted({*asked} - {*pools}))
        if asked and "KERNELEVOLVE_TOKEN" not in process.variables:
            yield f"{process.where}: asks evaluators without a token"


def of_models(processes: Sequence[Process]) -> Iterator[str]:
    """A synthesizer can be given a model and what it may spend; its key is kept elsewhere."""
    budgets = {f"MODEL_BUDGET_{limit}" for limit in ("COST", "TOKENS", "DAY_COST", "DAY_TOKENS")}
    for process in processes:
        if process.settings.get("MODEL_API_KEY"):
            yield f"{process.where}: holds the value of MODEL_API_KEY, which belongs in a secret"
        if process.module == "synthesizer_svc":
            missing = {"MODEL_URL", "MODEL_NAME", "MODEL_API_KEY", *budgets} - set(process.variables)
            yield from (f"{process.where}: {name} cannot be set" for name in sorted(missing))


def of_pools(objects: Sequence[Object], processes: Sequence[Process]) -> Iterator[str]:
    """Each ScaledObject watches the group and the topic of the chip whose workers it scales."""
    workers = {process.name: process for process in processes if _evaluates(process)}
    scaled = set()
    for found in objects:
        if found["kind"] != "ScaledObject":
            continue
        target = found["spec"]["scaleTargetRef"]["name"]
        scaled.add(target)
        if target not in workers:
            yield f"{name_of(found)}: scales {target}, which is no evaluator"
            continue
        chip = workers[target].settings.get("EVALUATOR_CHIP", "")
        expected = {"consumerGroup": intake.group_of(chip), "topic": topics.evaluation_requests(chip)}
        for trigger in found["spec"]["triggers"]:
            for key, value in expected.items():
                if trigger["metadata"][key] != value:
                    yield f"{name_of(found)}: {key} is {trigger['metadata'][key]}, expected {value}"
    yield from (f"{name}: nothing scales it" for name in sorted(set(workers) - scaled))


def of_references(objects: Sequence[Object]) -> Iterator[str]:
    """Selectors find pods, and names of ConfigMaps and ServiceAccounts exist. Secrets are never in the repository."""
    names = {(found["kind"], found["metadata"]["name"]) for found in objects}
    pods = [found["spec"]["template"] for found in objects if found["kind"] == "Deployment"]
    labels = [pod["metadata"]["labels"] for pod in pods]
    for found in objects:
        if found["kind"] == "Secret":
            yield f"{name_of(found)}: secrets are referred to, not kept here"
        for selector in _selectors(found):
            if not any(selector.items() <= label.items() for label in labels):
                yield f"{name_of(found)}: selects no pod: {selector}"
    for pod in pods:
        account = ("ServiceAccount", pod["spec"].get("serviceAccountName", ""))
        sources = [source for container in pod["spec"]["containers"] for source in container.get("envFrom", ())]
        wanted = {account, *(("ConfigMap", source["configMapRef"]["name"]) for source in sources)}
        yield from (f"{pod['metadata']['labels']}: no {kind} {name!r}" for kind, name in sorted(wanted - names))


def of_security(objects: Sequence[Object]) -> Iterator[str]:
    """The restricted Pod Security Standard, a read-only root and no token of the Kubernetes API."""
    for found in objects:
        if found["kind"] != "Deployment":
            continue
        pod = found["spec"]["template"]["spec"]
        whole = pod.get("securityContext", {})
        wanted = {
            "runAsNonRoot": whole.get("runAsNonRoot") is True,
            "a numeric user other than root": whole.get("runAsUser", 0) > 0,
            "a seccomp profile": whole.get("seccompProfile", {}).get("type") in ("RuntimeDefault", "Localhost"),
            "no host namespaces": not any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")),
            "no API token": pod.get("automountServiceAccountToken") is False,
            "no service links": pod.get("enableServiceLinks") is False,
            "no host paths": not any("hostPath" in volume for volume in pod.get("volumes", ())),
        }
        for container in pod["containers"]:
            own = container.get("securityContext", {})
            wanted["no privilege escalation"] = own.get("allowPrivilegeEscalation") is False
            wanted["a read-only root file system"] = own.get("readOnlyRootFilesystem") is True
            wanted["no capabilities"] = own.get("capabilities", {}) == {"drop": ["ALL"]}
            wanted["not privileged"] = not own.get("privileged")
            wanted["limits and requests"] = set(container.get("resources", {})) == {"limits", "requests"}
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                wanted[f"a {probe}"] = bool({"grpc", "exec"} & set(container.get(probe, ())))
        yield from (f"{name_of(found)}: expected {what}" for what, holds in wanted.items() if not holds)


def of_compose(compose: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Pinned images, limits, health where somebody waits for it, mounts that exist, and only loopback published."""
    services = compose["services"]
    for name, service in services.items():
        where = f"compose.yaml, {name}"
        image, _, tag = service["image"].rpartition(":")
        if not image or tag == "latest":
            yield f"{where}: image {service['image']} names no version"
        if "memory" not in service.get("deploy", {}).get("resources", {}).get("limits", {}):
            yield f"{where}: no limit of memory"
        for other, wait in (service.get("depends_on") or {}).items():
            own = services.get(other, {})
            if wait["condition"] == "service_healthy" and "healthcheck" not in own and "build" not in own:
                yield f"{where}: waits for {other} to be healthy, which has no health check"
        for port in service.get("ports", ()):
            if not port.startswith("127.0.0.1:"):
                yield f"{where}: port {port} is published beyond loopback"
        files = [str(volume).split(":", maxsplit=1)[0] for volume in service.get("volumes", ())]
        files += [option.partition("=")[2] for option in service.get("security_opt", ()) if "seccomp=." in option]
        for file in files:
            if file.startswith(".") and not (folder / file).exists():
                yield f"{where}: needs {file}, which does not exist"


def _evaluates(process: Process) -> bool:
    return process.module == "evaluator_svc"


def _command(process: Process) -> Iterator[str]:
    if not process.module or not (variables.ROOT / process.module / "__main__.py").exists():
        yield f"runs {' '.join(process.command)!r}, which is no service"


def _variables_are_read(process: Process) -> Iterator[str]:
    for name in sorted(set(process.variables) - variables.known()):
        yield f"nothing reads the variable {name}"


def _settings_parse(process: Process) -> Iterator[str]:
    for reading in variables.readings():
        given = {name: value for name, value in process.settings.items() if name in reading.names}
        required = any(field.default is MISSING and field.default_factory is MISSING for field in fields(reading.owner))
        if not given or required:
            continue
        try:
            settings.from_env(reading.owner, given, reading.prefix)
        except UserError as error:
            yield str(error)


def _ports(process: Process) -> Iterator[str]:
    """What is listened on is declared, where ports are declared at all; both listen beyond loopback, on two ports."""
    listened = {name: process.settings.get(name, "") for name in ("GRPC_LISTEN", "METRICS_LISTEN")}
    for name, address in listened.items():
        if not address.startswith("0.0.0.0:"):
            yield f"{name}={address} cannot be reached from outside the container"
        elif process.where.startswith("Deployment") and _port(address) not in process.ports:
            yield f"{name}={address} is no containerPort"
    if len(set(listened.values())) < len(listened):
        yield "gRPC and metrics listen on one port"


def _guarded(process: Process) -> Iterator[str]:
    """A server beyond loopback refuses to start without TLS and tokens, unless told that its network does that."""
    given = process.settings
    if not ({"GRPC_TLS_CERT", "GRPC_ALLOW_PLAINTEXT"} & set(given)):
        yield "serves gRPC with neither TLS nor GRPC_ALLOW_PLAINTEXT"
    if not ({"GRPC_TOKENS", "GRPC_ALLOW_ANONYMOUS"} & set(given)):
        yield "serves gRPC with neither tokens nor GRPC_ALLOW_ANONYMOUS"
    if "KERNELEVOLVE_TOKEN" in process.variables and not (
        {"KERNELEVOLVE_CA", "KERNELEVOLVE_TLS", "KERNELEVOLVE_ALLOW_PLAINTEXT"} & set(given)
    ):
        yield "calls with a token, but with neither TLS nor KERNELEVOLVE_ALLOW_PLAINTEXT"


def _files(process: Process) -> Iterator[str]:
    for name, value in process.settings.items():
        if value.startswith("/") and not any(f"{value}/".startswith(f"{mount}/") for mount in process.mounts):
            yield f"{name}={value} lies in no mount"


def _grace(process: Process) -> Iterator[str]:
    """SIGKILL must not come before the drains are over: calls, then records, then evaluations."""
    server = _setting(ServerSettings, process, "GRPC_").drain_s
    work = ConsumeLimits().drain_s
    if process.module == "evaluator_svc":
        pool = _setting(PoolLimits, process, "EVALUATOR_")
        work = max(work, pool.drain_s + pool.grace_s)
    needed = process.notice_s + server + work + SLACK_S
    if process.grace_s < needed:
        yield f"is killed {process.grace_s:g} s after it is told to stop, but may take {needed:g} s"


def _setting(owner: type[Any], process: Process, prefix: str) -> Any:
    try:
        return settings.from_env(owner, process.settings, prefix)
    except UserError:  # a complaint of its own, see _settings_parse
        return owner()


def _chip(process: Process) -> Iterator[str]:
    chip = process.settings.get("EVALUATOR_CHIP")
    if process.module == "evaluator_svc" and chip is None:
        yield "an evaluator without EVALUATOR_CHIP"
    if chip is None:
        return
    known, planned = chip in chips.known(), PLANNED in process.annotations
    if known == planned:
        yield f"chip {chip} is {'known: remove' if known else 'unknown: add'} the annotation {PLANNED}"


def _selectors(found: Object) -> Iterator[dict[str, str]]:
    spec = found.get("spec", {})
    if found["kind"] == "Service":
        yield spec["selector"]
    elif found["kind"] in ("Deployment", "PodDisruptionBudget"):
        yield spec["selector"]["matchLabels"]
    elif found["kind"] == "NetworkPolicy":
        yield spec["podSelector"].get("matchLabels", {})
        ways = [*spec.get("ingress", ()), *spec.get("egress", ())]
        peers = [peer for way in ways for peer in (*way.get("from", ()), *way.get("to", ()))]
        yield from (peer["podSelector"]["matchLabels"] for peer in peers if set(peer) == {"podSelector"})


def _port(address: str) -> int:
    port = address.rpartition(":")[2]
    return int(port) if port.isdigit() else 0
