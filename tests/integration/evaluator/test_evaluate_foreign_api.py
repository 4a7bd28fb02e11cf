"""Other systems' operators and kernels over gRPC: what was understood, how each stage ended, the ledger, refusals."""

from __future__ import annotations

import json

import grpc
import pytest

from evaluator_svc import ledger
from protos.evaluator.v1 import evaluator_service_pb2 as pb
from protos.events.v1 import evaluation_pb2
from shared import ids
from tests.aio import on_loop
from tests.integration.evaluator.test_evaluate_api import asking, worker
from tests.loopback import refusal
from tests.unit.submissions.samples import DEFINITION, REFERENCE, WORKLOAD, solved

DEFINED = pb.Definition(definition=json.dumps(DEFINITION), workload=json.dumps(WORKLOAD))


def foreign(**changes) -> pb.EvaluateRequest:
    return pb.EvaluateRequest(**{"definition": DEFINED, "language": "cpp", "kernel_source": "int x;", **changes})


@on_loop
async def test_a_definition_is_understood_and_judged_and_every_stage_says_how_it_ended():
    async with worker() as (stub, _, ports):
        updates = [update async for update in stub.Evaluate(foreign())]
        understood = updates[0].understood
        assert understood.operator_name == "rmsnorm_h64 (batch=32)"
        assert (understood.language, understood.form) == ("cpp", "cpp source")
        assert understood.kernel_hash == ids.content_hash(b"int x;")
        module = (await ports.store.blobs.get(understood.operator_hash)).decode()
        assert REFERENCE in module
        results = [update.result for update in updates if update.WhichOneof("update") == "result"]
        assert [result.stage for result in results] == ["admission", "timing"]
        status = evaluation_pb2.Status.Name(updates[-1].evaluation.status).removeprefix("STATUS_")
        assert [result.outcome for result in results] == ["ok", "ok" if status == "PASSED" else status]
        assert all(result.elapsed_ns > 0 for result in results)


@on_loop
async def test_a_definition_without_its_reference_inline_takes_it_beside():
    bare = {name: value for name, value in DEFINITION.items() if name != "reference"}
    beside = pb.Definition(definition=json.dumps(bare), workload=json.dumps(WORKLOAD), reference=REFERENCE)
    async with worker() as (stub, _, _):
        updates = [update async for update in stub.Evaluate(foreign(definition=beside))]
        assert updates[-1].WhichOneof("update") == "evaluation"


def defined(**changes) -> pb.Definition:
    return pb.Definition(**{"definition": DEFINED.definition, "workload": DEFINED.workload, **changes})


TENSORS = WORKLOAD | {"inputs": {"x": {"type": "safetensors", "path": "a.safetensors", "tensor_key": "x"},
                                 "eps": {"type": "scalar", "value": 1}}}  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (foreign(definition=defined(definition="{")), "definition:1:2: is not JSON"),
        (foreign(definition=defined(workload="{}")), "definition.workload: has no `uuid`"),
        (foreign(definition=defined(workload="")), "definition.workload:1:1: is not JSON"),
        (
            foreign(definition=defined(workload=json.dumps(TENSORS))),
            "the file `a.safetensors`, and files cannot be sent",
        ),
        (foreign(operator_source="class Model: ..."), "operator_source and definition: are both given"),
        (foreign(solution=solved()), "kernel_source and solution: are both given"),
        (foreign(kernel_source="", language="", solution="[1]"), "solution: is [1], not an object"),
        (foreign(kernel_source="", solution=solved()), "solution: says its language and entry itself"),
        (
            foreign(kernel_source="", language="", solution=solved(definition="other")),
            "solution: is of definition `other`, OPERATOR is `rmsnorm_h64`",
        ),
        (
            foreign(kernel_source="", language="", solution=solved({"main.py": "def run(x): ..."})),
            "`run` takes (x), expected (x, weight, eps)",
        ),
        (
            foreign(kernel_source="", language="", solution=solved()),
            "solution: spec: is in language `python` (chip `simulated` takes cpp)",
        ),
        (asking(kernel_source="", language="", solution=solved()), "OPERATOR is no definition"),
    ],
)
def test_what_is_wrong_with_a_foreign_request_is_one_line(request_, line):
    @on_loop
    async def check():
        async with worker() as (stub, _, _):
            code, message = await refusal(stub.Evaluate(request_).read())
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert line in message
        assert "\n" not in message

    check()


@on_loop
async def test_a_ledger_is_given_by_its_hash_and_nothing_else_of_the_store_is():
    kept = ledger.Ledger()
    kept.check("judge", "case", "passed")
    async with worker() as (stub, _, ports):
        digest = await ports.store.blobs.put(kept.encoded())
        answer = await stub.GetLedger(pb.GetLedgerRequest(ledger_hash=digest))
        assert json.loads(answer.ledger) == kept.plain()
        others = [
            await ports.store.blobs.put(blob)
            for blob in (b"int x;", b"[]", b'{"format": "kernelevolve-log/1"}', b"\xff")
        ]
        for absent in [*others, "0" * 64]:
            code, line = await refusal(stub.GetLedger(pb.GetLedgerRequest(ledger_hash=absent)))
            assert code is grpc.StatusCode.NOT_FOUND
            assert "there is no ledger" in line
        code, line = await refusal(stub.GetLedger(pb.GetLedgerRequest(ledger_hash="../x")))
        assert (code, line) == (grpc.StatusCode.INVALID_ARGUMENT, "ledger_hash: is no SHA-256 in lower-case hex")
