"""The deployment files are right, and whoever breaks one is told."""

from __future__ import annotations

import copy
import re
import shutil
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from deploy.validation import checks, images, linters, manifests, variables
from deploy.validation.variables import ROOT
from shared.rpc import methods
from shared.rpc.tokens import ROLES

DEPLOY = ROOT / "deploy"
POOL = "evaluator-cpu-x86-64"


@pytest.fixture(scope="module")
def installation() -> list[dict[str, Any]]:
    return manifests.composed(
        DEPLOY / "k8s", ["components/cpu", "components/nvidia", "components/amd", "components/tls"]
    )


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def find(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    return next(found for found in objects if (found["kind"], found["metadata"]["name"]) == (kind, name))


def pod(objects: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return find(objects, "Deployment", name)["spec"]["template"]["spec"]


def container(objects: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return pod(objects, name)["containers"][0]


def trigger(objects: list[dict[str, Any]]) -> dict[str, str]:
    return find(objects, "ScaledObject", POOL)["spec"]["triggers"][0]["metadata"]


def config(objects: list[dict[str, Any]]) -> dict[str, str]:
    return find(objects, "ConfigMap", "kernelevolve")["data"]


def test_nothing_is_wrong_with_an_installation(installation):
    assert list(checks.of_objects(installation)) == []


def test_nothing_is_wrong_with_the_compose_file(compose):
    assert list(checks.of_compose(compose, DEPLOY)) == []


BROKEN: dict[str, tuple[Callable[[list[dict[str, Any]]], object], str]] = {
    "a field that Kubernetes does not know": (
        lambda o: find(o, "Deployment", "search")["spec"].update(replica=3), "replica"),
    "a number where text belongs": (
        lambda o: config(o).update(LOG_LEVEL=3), "ConfigMap/kernelevolve"),
    "a kind that does not exist": (
        lambda o: find(o, "PodDisruptionBudget", "search").update(apiVersion="policy/v1beta1"), "no such kind"),
    "a field that KEDA does not know": (
        lambda o: trigger(o).update(lagTreshold="4"), "lagTreshold"),
    "idle consumers allowed and forbidden at once": (
        lambda o: trigger(o).update(limitToPartitionsWithLag="true"), "limitToPartitionsWithLag"),
    "a misspelt variable": (
        lambda o: config(o).update(GRPC_LISTN="0.0.0.0:1"), "nothing reads the variable GRPC_LISTN"),
    "a value that does not parse": (
        lambda o: config(o).update(GRPC_DRAIN_S="soon"), "GRPC_DRAIN_S"),
    "another chip's topic": (
        lambda o: trigger(o).update(topic="evaluation.requests.cpu.v1"), "expected evaluation.requests.cpu-x86_64.v1"),
    "another group": (
        lambda o: trigger(o).update(consumerGroup="evaluators"), "expected evaluator.cpu-x86_64"),
    "a pool that scales nothing": (
        lambda o: find(o, "ScaledObject", POOL)["spec"]["scaleTargetRef"].update(name="evaluator"), "no evaluator"),
    "a pool of a chip that nobody announced": (
        lambda o: container(o, POOL)["env"].append({"name": "EVALUATOR_CHIP", "value": "tpu-v9"}), "unknown: add"),
    "a drain that is cut off": (
        lambda o: pod(o, POOL).update(terminationGracePeriodSeconds=30), "is killed 30 s after"),
    "a longer drain than the grace": (
        lambda o: config(o).update(GRPC_DRAIN_S="600"), "may take"),
    "a module that does not exist": (
        lambda o: container(o, "search").update(args=["python", "-m", "serch_svc"]), "no service"),
    "a port that is not declared": (
        lambda o: config(o).update(METRICS_LISTEN="0.0.0.0:9999"), "is no containerPort"),
    "a service's URL with another port": (
        lambda o: config(o).update(KNOWLEDGE_URL="grpc://knowledge:1"), "no service of this installation"),
    "a chip whose pool builds nothing for the synthesizer": (
        lambda o: config(o).update(EVALUATOR_URLS=""), "EVALUATOR_URLS names None for cpu-x86_64"),
    "a pool asked for another chip": (
        lambda o: config(o).update(EVALUATOR_URLS=config(o)["EVALUATOR_URLS"].replace("cpu-x86-64:", "nvidia-sm-90:")),
        "expected evaluator-cpu-x86-64"),
    "a pool that is not there": (
        lambda o: config(o).update(EVALUATOR_URLS="cpu-x86_64=grpc://evaluator:50051"), "no service of this"),
    "a chip that nobody evaluates": (
        lambda o: config(o).update(EVALUATOR_URLS=f"{config(o)['EVALUATOR_URLS']},tpu=grpc://search:50051"),
        "nobody evaluates tpu"),
    "a synthesizer without a token": (
        lambda o: container(o, "synthesizer").update(
            env=[e for e in container(o, "synthesizer")["env"] if e["name"] != "KERNELEVOLVE_TOKEN"]),
        "asks evaluators without a token"),
    "a model's key in a ConfigMap": (
        lambda o: config(o).update(MODEL_API_KEY="sk-1") or container(o, "synthesizer").update(
            env=[e for e in container(o, "synthesizer")["env"] if e["name"] != "MODEL_API_KEY"]),
        "belongs in a secret"),
    "a model that cannot be limited": (
        lambda o: config(o).pop("MODEL_BUDGET_DAY_COST"), "MODEL_BUDGET_DAY_COST cannot be set"),
    "a file that is not mounted": (
        lambda o: config(o).update(GRPC_TOKENS="/etc/tokens.toml"), "lies in no mount"),
    "gRPC for everybody": (
        lambda o: config(o).pop("GRPC_TOKENS"), "neither tokens"),
    "gRPC in the clear": (
        lambda o: config(o).pop("GRPC_TLS_CERT"), "neither TLS"),
    "a selector that finds nothing": (
        lambda o: find(o, "Service", "search")["spec"].update(selector={"app": "search"}), "selects no pod"),
    "a ConfigMap that is not there": (
        lambda o: o.remove(find(o, "ConfigMap", "kernelevolve")), "no ConfigMap"),
    "a secret in the repository": (
        lambda o: o.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tokens"}}), "Secret/tokens"),
    "root": (
        lambda o: pod(o, POOL)["securityContext"].update(runAsUser=0), "user other than root"),
    "a writable root": (
        lambda o: container(o, "search")["securityContext"].pop("readOnlyRootFilesystem"), "read-only root"),
    "no limits": (
        lambda o: container(o, "search").pop("resources"), "limits and requests"),
    "no probe": (
        lambda o: container(o, "search").pop("livenessProbe"), "a livenessProbe"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_an_installation_is_refused_for(what, installation):
    breaking, said = BROKEN[what]
    objects = copy.deepcopy(installation)
    breaking(objects)
    complaints = list(checks.of_objects(objects))
    assert any(said in complaint for complaint in complaints), complaints


BROKEN_COMPOSE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a misspelt variable": (
        lambda s: s["search"]["environment"].update(BUS_ULR="kafka://kafka"), "nothing reads the variable BUS_ULR"),
    "an image without version": (lambda s: s["kafka"].update(image="apache/kafka"), "names no version"),
    "the latest image": (lambda s: s["kafka"].update(image="apache/kafka:latest"), "names no version"),
    "a wait for the health of what has none": (lambda s: s["kafka"].pop("healthcheck"), "has no health check"),
    "a port for the world": (lambda s: s["search"].update(ports=["50051:50051"]), "beyond loopback"),
    "no limit of memory": (lambda s: s["redis"].pop("deploy"), "no limit of memory"),
    "a file that is not there": (lambda s: s["grafana"].update(volumes=["./x.yml:/x.yml"]), "does not exist"),
    "a drain that is cut off": (lambda s: s["search"].update(stop_grace_period="10s"), "is killed 10 s after"),
    "an unknown chip": (
        lambda s: s["evaluator-cpu"]["environment"].update(EVALUATOR_CHIP="cpu-z80"), "unknown: add"),
    "a neighbour that is not there": (
        lambda s: s["synthesizer"]["environment"].update(KNOWLEDGE_URL="grpc://knowhow:50051"), "no service of this"),
    "a model's key in the file": (
        lambda s: s["synthesizer"]["environment"].update(MODEL_API_KEY="sk-1"), "belongs in a secret"),
    "a model that cannot be named": (
        lambda s: s["synthesizer"]["environment"].pop("MODEL_URL"), "MODEL_URL cannot be set"),
    "trial builds by nobody": (
        lambda s: s["synthesizer"]["environment"].pop("EVALUATOR_URLS"), "EVALUATOR_URLS names None for cpu-x86_64"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN_COMPOSE)
def test_a_compose_file_is_refused_for(what, compose):
    breaking, said = BROKEN_COMPOSE[what]
    broken = copy.deepcopy(compose)
    breaking(broken["services"])
    complaints = list(checks.of_compose(broken, DEPLOY))
    assert any(said in complaint for complaint in complaints), complaints


@pytest.mark.parametrize("page", ["secrets/README.md", "k8s/README.md"])
def test_the_synthesizers_token_that_is_asked_for_may_call_what_it_calls(page):
    (word,) = re.findall(r"token new --role (\w+) --name synthesizer", (DEPLOY / page).read_text())
    called = [
        methods.of("/protos.evaluator.v1.EvaluatorService/Build"),
        methods.of("/protos.knowledge.v1.KnowledgeService/Retrieve"),
        methods.of("/protos.knowledge.v1.KnowledgeService/ListSkills"),
    ]
    assert ROLES.index(word) >= max(ROLES.index(method.role.word) for method in called)


def test_pools_that_are_left_out_are_not_asked():
    objects = manifests.composed(DEPLOY / "k8s", ["components/nvidia", "components/mesh"])
    assert config(objects)["EVALUATOR_URLS"] == ",nvidia-sm_90=grpc://evaluator-nvidia-sm-90:50051"
    assert list(checks.of_objects(objects)) == []


def test_a_patch_of_nothing_is_refused_by_kustomize(tmp_path):
    k8s = shutil.copytree(DEPLOY / "k8s", tmp_path / "k8s")
    scaling = k8s / "components" / "cpu" / "pool" / "scaling.yaml"
    scaling.write_text(scaling.read_text().replace("/spec/triggers/0", "/spec/triggers/1"))
    with pytest.raises(manifests.BuildError, match="triggers/1"):
        manifests.build(k8s / "overlays" / "example")


def test_linters_see_a_bad_dockerfile_and_bad_yaml(tmp_path):
    shutil.copy(DEPLOY / "compose.yaml", tmp_path)
    (tmp_path / "Dockerfile").write_text("FROM python\nRUN cd /tmp && pip install torch\n")
    (tmp_path / "bad.yaml").write_text("---\na: 1\na: 2\n")
    said = "\n".join(linters.complaints(tmp_path))
    assert "DL3006" in said
    assert "duplication of key" in said
    assert "check-jsonschema" not in said


def test_the_compose_schema_refuses_an_unknown_key(tmp_path):
    compose = tmp_path / "compose.yaml"
    compose.write_text((DEPLOY / "compose.yaml").read_text().replace("    read_only: true", "    readonly: true"))
    text = re.sub("restart: unless-stopped", "restarts: unless-stopped", compose.read_text(), count=1)
    compose.write_text(text)
    said = list(linters.run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(compose)))
    assert len(said) == 1
    assert "restarts" in said[0]


@pytest.mark.parametrize(
    ("path", "sent"),
    [("shared", True), ("shared/rpc/probe.py", True), ("tests", False), (".git", False), ("deploy/k8s", False),
     ("deploy/secrets/tokens.toml", False), ("deploy/constraints.txt", True), ("shared/__pycache__", False)],
)  # fmt: skip
def test_the_build_context_is_what_the_images_install(path, sent):
    assert images.in_context(path, (ROOT / ".dockerignore").read_text()) is sent


def test_a_source_that_the_context_leaves_out_is_told(tmp_path):
    root = tmp_path
    (root / "deploy").mkdir()
    for name in ("pyproject.toml", ".dockerignore", "deploy/Dockerfile", "deploy/constraints.txt"):
        shutil.copy(ROOT / name, root / name)
    (root / "shared").mkdir()
    ignored = root / ".dockerignore"
    ignored.write_text(ignored.read_text().replace("!shared\n", ""))
    said = list(images.complaints(root))
    assert any(".dockerignore: leaves out shared" in complaint for complaint in said)
    assert any("copies cli, which does not exist" in complaint for complaint in said)


def test_a_package_without_a_pin_is_told():
    constraints = (DEPLOY / "constraints.txt").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert list(images.unpinned(constraints, project)) == []
    without = re.sub(r"^numpy==.*\n", "", constraints, flags=re.MULTILINE)
    assert list(images.unpinned(without, project)) == ["constraints.txt: numpy is not pinned"]
    old = re.sub(r"^numpy==.*", "numpy==1.0", constraints, flags=re.MULTILINE)
    assert any("numpy==1.0, but numpy>=" in said for said in images.unpinned(old, project))


def test_an_image_that_cannot_reach_an_endpoint_is_told(tmp_path):
    for name in ("deploy/Dockerfile", "deploy/constraints.txt", "pyproject.toml", ".dockerignore"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    dockerfile = tmp_path / "deploy" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("[cluster,llm]", "[cluster]"))
    assert "Dockerfile: no image installs the extras cluster, llm" in list(images.complaints(tmp_path))


def test_variables_are_found_where_they_are_read():
    known = variables.known()
    assert {"BUS_URL", "GRPC_LISTEN", "EVALUATOR_CHIP", "EVALUATOR_DRAIN_S", "SEARCH_MEMBERS", "LOG_FORMAT"} <= known
    assert "PATH" not in known or "HOME" not in known


def test_prometheus_scrapes_the_services_of_the_compose_file(compose):
    scraped = yaml.safe_load((DEPLOY / "observability" / "prometheus.yml").read_text())["scrape_configs"]
    targets = next(job for job in scraped if job["job_name"] == "kernelevolve")["dns_sd_configs"][0]
    ours = {name for name, service in compose["services"].items() if service["image"].startswith("kernelevolve")}
    assert set(targets["names"]) == ours
    assert compose["services"]["search"]["environment"]["METRICS_LISTEN"].endswith(f":{targets['port']}")


def test_each_folder_of_manifests_is_explained():
    text = (DEPLOY / "k8s" / "README.md").read_text()
    folders = [path.parent.relative_to(DEPLOY / "k8s") for path in (DEPLOY / "k8s").rglob("kustomization.yaml")]
    assert [str(folder) for folder in folders if folder.name != "pool" and f"`{folder}`" not in text] == []


def test_every_secret_that_pods_ask_for_is_explained(installation):
    asked = set()
    for found in installation:
        if found["kind"] == "Deployment":
            spec = found["spec"]["template"]["spec"]
            asked |= {volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
            for entry in spec["containers"][0]["env"]:
                asked |= {entry["valueFrom"]["secretKeyRef"]["name"]} if "valueFrom" in entry else set()
    text = (DEPLOY / "k8s" / "README.md").read_text()
    assert [name for name in asked if f"`{name}`" not in text] == []
