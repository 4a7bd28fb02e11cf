"""What a vendor's commands answer: every breach of the contract has a line of its own, with how to mend it."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest
from referencing import Registry, Resource

from evaluator_svc.external import contract
from evaluator_svc.external.contract import Breach
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType

SPECS = (TensorSpec(shape=(2, 3), dtype=DType.F32),)
OK = {"status": "ok", "return_code": 0, "outputs": [{"dtype": "float32", "shape": [2, 3]}]}
PROFILED = OK | {"metrics": {"cycles": 12, "share": 0.5}}


def schema(name: str) -> jsonschema.Draft202012Validator:
    texts = {path.name: json.loads(path.read_text()) for path in files("shared.chips.external").iterdir()
             if path.name.endswith(".schema.json")}  # fmt: skip
    registry = Registry().with_resources((key, Resource.from_contents(text)) for key, text in texts.items())
    return jsonschema.Draft202012Validator(texts[f"{name}.schema.json"], registry=registry)


def breach(read, said) -> str:
    with pytest.raises(Breach) as told:
        read(said if isinstance(said, bytes) else json.dumps(said).encode())
    assert told.value.mend
    assert "\n" not in str(told.value)
    return str(told.value)


def run(text: bytes):
    return contract.read_run(text, SPECS)


def profile(text: bytes):
    return contract.read_profile(text, SPECS)


BROKEN = [
    (run, b"no json", "is no JSON"),
    (run, b"\xff\xfe", "is no JSON"),
    (run, b'{"status": "ok", "status": "ok"}', "a key is there twice"),
    (run, b"[" * 100_000, "is no JSON"),
    (run, [], "is no JSON object"),
    (run, {}, "lacks `status`"),
    (run, {"status": "fine"}, "status is 'fine' (one of ok, crashed"),
    (run, {"status": "crashed"}, "lacks `message`"),
    (run, {"status": "crashed", "message": " "}, "message is empty"),
    (run, {"status": "crashed", "message": "x" * 5000}, "no text of at most 4000"),
    (run, OK | {"speed": 1}, "unknown key `'speed'`"),
    (run, OK | {"return_code": True}, "return_code is True"),
    (run, OK | {"return_code": 1 << 40}, "return_code is"),
    (run, OK | {"outputs": []}, "outputs are 0, expected 1"),
    (run, OK | {"outputs": ["x"]}, "outputs[0] is 'x'"),
    (run, OK | {"outputs": [{"dtype": "float64", "shape": [2, 3]}]}, "output 0 is 'float64', asked for was float32"),
    (run, OK | {"outputs": [{"dtype": "float32", "shape": [6]}]}, "output 0 has shape [6], asked for was [2, 3]"),
    (profile, OK, "lacks `metrics`"),
    (profile, OK | {"metrics": {}}, "metrics is no object of 1 to 64 numbers"),
    (profile, OK | {"metrics": {"A b": 1}}, "is no name"),
    (profile, OK | {"metrics": {"cycles": "12"}}, "metric `cycles` is '12' (expected a number)"),
    (profile, OK | {"metrics": {"cycles": True}}, "metric `cycles` is True"),
    (profile, b'{"status":"ok","return_code":0,"outputs":[{"dtype":"float32","shape":[2,3]}],"metrics":{"cycles":NaN}}',
     "metric `cycles` is nan (expected a finite number"),
    (profile, OK | {"metrics": {"cycles": 10**400}}, "metric `cycles` is 1000"),
    (profile, OK | {"metrics": {"cycles": -1}}, "metric `cycles` is -1"),
    (profile, PROFILED | {"bound": "hope"}, "bound is 'hope'"),
    (profile, PROFILED | {"summary": "x" * 500}, "summary is no text of at most 400"),
    (contract.read_build, {"status": "error"}, "lacks `message`"),
    (contract.read_build, {"status": "crashed"}, "status is 'crashed' (one of ok, error)"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "said", "expected"), BROKEN)
def test_a_breach_is_named(read, said, expected):
    assert expected in breach(read, said)


@pytest.mark.parametrize(("read", "said"), [(read, said) for read, said, _ in BROKEN if isinstance(said, dict)])
def test_the_schema_refuses_what_the_reader_refuses(read, said):
    name = {run: "run", profile: "profile", contract.read_build: "build"}[read]
    of_the_request = ("asked for was", "expected 1", "message is empty", "return_code is 1")
    if any(part in breach(read, said) for part in of_the_request):
        return  # what only the request, or no schema, can tell
    assert not schema(name).is_valid(said)


@pytest.mark.parametrize(
    ("name", "read", "said"),
    [
        ("run", run, OK),
        ("run", run, {"status": "crashed", "message": "SIGSEGV"}),
        ("profile", profile, PROFILED),
        ("profile", profile, PROFILED | {"bound": "memory", "summary": "much is loaded"}),
        ("build", contract.read_build, {"status": "ok"}),
        ("build", contract.read_build, {"status": "error", "message": "k.c:1: no"}),
    ],
)
def test_what_the_schema_allows_is_read(name, read, said):
    schema(name).validate(said)
    read(json.dumps(said).encode())


def test_requests_are_of_their_schema():
    tensors = {"inputs": SPECS, "outputs": SPECS}
    for back in (False, True):
        call = contract.call_request("run", chip="c", language="toy", inputs_back=back, **tensors)
        schema("request").validate(call)
        assert ("after" in call["inputs"][0]) == back
        assert call["outputs"][0]["strides"] == [3, 1]
        assert call["outputs"][0]["bytes"] == 24
    schema("request").validate(contract.build_request(chip="c", language="toy", flags=["-O3"], suffix=".toy"))


def test_the_cost_is_the_sheets_metric():
    assert contract.cost({"cycles": 12, "loads": 3}, "cycles", counted=True) == 12
    assert contract.cost({"ns": 12.6}, "ns", counted=False) == 13


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"loads": 1}, "told no metric `cycles`, only loads"),
        ({"cycles": 1.5}, "metric `cycles` is 1.5"),
        ({"cycles": 0}, "metric `cycles` is 0 (the cost of a call is above 0)"),
        ({"cycles": 1e300}, "metric `cycles` is 1e+300"),
    ],
)
def test_a_metric_that_is_no_cost_is_named(metrics, said):
    with pytest.raises(Breach) as told:
        contract.cost(metrics, "cycles", counted=True)
    assert said in str(told.value)


def test_whole_numbers_are_counts():
    assert [one.name for one in contract.counts({"b": 2, "a": 1.0, "share": 0.5})] == ["a", "b"]
