"""Every event survives every form it travels in, and nothing malformed gets through."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protos.events.v1 import envelope_pb2, evaluation_pb2, search_pb2, values_pb2
from shared import json_codec, wire
from shared.bus import Record
from shared.errors import Poison
from shared.events import (
    EVENT_TYPES,
    Basis,
    Count,
    Estimate,
    Evaluation,
    KernelRef,
    NodePruned,
    OperatorRef,
    Status,
    Trust,
)
from shared.proto_codec import from_message, message_class, to_message
from tests.strategies import envelopes, instances
from tests.unit.shared.builders import a_measurement, an_envelope, an_event


@pytest.mark.parametrize("owner", EVENT_TYPES, ids=lambda owner: owner.__name__)
def test_every_event_type_survives_the_bus_the_journal_and_json(owner: type) -> None:
    @settings(max_examples=40)
    @given(instances(owner))
    def survives(event: object) -> None:
        envelope = replace(an_envelope(), event=event)
        assert wire.decode(wire.encode(envelope)) == envelope
        assert wire.unpack(wire.pack(envelope)) == envelope
        assert wire.from_json(json.loads(json.dumps(wire.to_json(envelope)))) == envelope

    survives()


@settings(max_examples=50)
@given(envelopes())
def test_every_attribute_survives_and_packing_is_deterministic(envelope: object) -> None:
    assert wire.decode(wire.encode(envelope)) == envelope
    assert wire.pack(wire.unpack(wire.pack(envelope))) == wire.pack(envelope)


def test_the_headers_are_cloudevents_in_binary_mode() -> None:
    record = wire.encode(replace(an_envelope(), lease="12", traceparent="00-ab-cd-01"))
    assert record.key == "s1"
    assert dict(record.headers) == {
        "ce_specversion": b"1.0",
        "ce_id": an_envelope().id.encode(),
        "ce_type": b"protos.events.v1.SearchCancelled",
        "ce_source": b"/test",
        "ce_subject": b"search/s1",
        "ce_time": b"1970-01-01T00:00:00.000000007Z",
        "ce_partitionkey": b"s1",
        "ce_causationid": b"cause",
        "ce_correlationid": b"s1",
        "ce_attempt": b"1",
        "ce_lease": b"12",
        "content-type": b"application/protobuf",
        "traceparent": b"00-ab-cd-01",
    }


def _with(**headers: bytes | None) -> Record:
    record = wire.encode(an_envelope())
    changed = {**record.headers, **{name.replace("__", "-"): value for name, value in headers.items()}}
    return replace(record, headers={name: value for name, value in changed.items() if value is not None})


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (_with(ce_id=None), "ce_id is missing"),
        (_with(ce_source=b""), "ce_source is missing"),
        (_with(ce_subject=b"\xff"), "ce_subject is not UTF-8"),
        (_with(ce_specversion=b"0.3"), "ce_specversion"),
        (_with(content__type=b"application/json"), "content-type"),
        (_with(ce_time=b"yesterday"), "ce_time"),
        (_with(ce_time=b"2026-13-01T00:00:00Z"), "ce_time"),
        (_with(ce_time=b"1969-12-31T23:59:59Z"), "before 1970"),
        (_with(ce_attempt=b"0"), "ce_attempt"),
        (_with(ce_attempt="٣".encode()), "ce_attempt"),
        (_with(ce_type=b"protos.events.v1.Entry"), "unknown event type"),
        (_with(ce_type=b"protos.events.v2.SearchCancelled"), "unknown event type"),
        (_with(ce_partitionkey=b"other"), "ce_partitionkey"),
        (replace(wire.encode(an_envelope()), value=b""), "without a value"),
        (replace(wire.encode(an_envelope()), value=b"\xff\xff"), "bytes are not"),
        (replace(wire.encode(an_envelope()), value=b"\x0a\x01\xff"), "bytes are not"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_malformed_record_is_poison_with_its_reason(record: Record, reason: str) -> None:
    with pytest.raises(Poison, match=reason):
        wire.decode(record)


@settings(max_examples=400)
@given(st.binary(max_size=60), st.sampled_from(EVENT_TYPES))
def test_arbitrary_bytes_are_an_event_or_poison_and_nothing_else(data: bytes, owner: type) -> None:
    headers = {**wire.encode(an_envelope()).headers, "ce_type": f"protos.events.v1.{owner.__name__}".encode()}
    for read in (lambda: wire.decode(Record(key="s1", value=data, headers=headers)), lambda: wire.unpack(data)):
        with contextlib.suppress(Poison):
            read()


def test_a_required_part_that_is_absent_is_poison() -> None:
    message = to_message(a_measurement())
    message.ClearField("evaluation")
    with pytest.raises(Poison, match="EvaluationCompleted.evaluation is absent"):
        from_message(type(a_measurement()), message)


def test_an_unspecified_status_is_poison() -> None:
    message = to_message(a_measurement())
    message.evaluation.status = evaluation_pb2.STATUS_UNSPECIFIED
    with pytest.raises(Poison, match="EvaluationCompleted.evaluation.status is absent"):
        from_message(type(a_measurement()), message)


def test_a_status_from_the_future_is_poison() -> None:
    message = to_message(a_measurement())
    message.evaluation.status = 99
    with pytest.raises(Poison, match="Status has no value 99"):
        from_message(type(a_measurement()), message)


def test_a_verdict_that_breaks_its_own_rule_is_poison() -> None:
    message = to_message(a_measurement())
    message.evaluation.status = evaluation_pb2.STATUS_TIMEOUT
    with pytest.raises(Poison, match="TIMEOUT cannot carry a speedup"):
        from_message(type(a_measurement()), message)


def test_an_estimate_travels_and_a_verdict_without_one_has_the_bytes_it_always_had() -> None:
    counts = (Count(name="instructions", value=2_826), Count(name="branches", value=0))
    estimate = Estimate(basis=Basis.COUNTED, cost=4_711, unit="model cycles", counts=counts)
    plain = Evaluation(status=Status.PASSED, trust=Trust.L3)
    counted = replace(plain, estimate=estimate)
    assert from_message(Evaluation, to_message(counted)) == counted
    assert json_codec.from_plain(Evaluation, json_codec.to_plain(counted), "verdict") == counted
    assert not to_message(plain).HasField("estimate")
    before = {name: value for name, value in json_codec.to_plain(plain).items() if name != "estimate"}
    assert json_codec.from_plain(Evaluation, before, "verdict") == plain


def test_what_was_not_estimated_cannot_be_said_to_be() -> None:
    estimate = Estimate(basis=Basis.MODELLED, cost=1, unit="ns")
    with pytest.raises(ValueError, match="TIMEOUT cannot carry an estimate"):
        Evaluation(status=Status.TIMEOUT, estimate=estimate)
    with pytest.raises(ValueError, match="what was measured is not estimated"):
        replace(a_measurement().evaluation, estimate=estimate)
    with pytest.raises(ValueError, match="never measured"):
        replace(estimate, basis=Basis.MEASURED)
    for nothing in ({"cost": 0}, {"unit": ""}):
        with pytest.raises(ValueError, match="an estimate"):
            replace(estimate, **nothing)


def test_an_empty_identifier_is_poison_to_read_and_an_error_to_write() -> None:
    with pytest.raises(Poison, match="NodePruned.candidate_id is empty"):
        from_message(NodePruned, search_pb2.NodePruned(search_id="s1", rule="r"))
    with pytest.raises(ValueError, match="SearchCancelled.search_id is empty"):
        wire.encode(replace(an_envelope(), event=an_event(search_id="")))


def test_bytes_from_before_a_field_existed_read_as_its_default() -> None:
    assert from_message(KernelRef, values_pb2.KernelRef(kernel_id="k", source_hash="h")).entry == "ke_launch"
    assert from_message(OperatorRef, values_pb2.OperatorRef(source_hash="h")).kind == "kernelbench"
    assert from_message(Evaluation, evaluation_pb2.Evaluation(status=evaluation_pb2.STATUS_NOISY)) == Evaluation(
        status=Status.NOISY
    )


def test_a_field_that_a_newer_writer_added_is_ignored() -> None:
    unknown = b"\xfa\x3e\x01x"  # field 1007, one byte of text
    record = wire.encode(an_envelope())
    assert wire.decode(replace(record, value=record.value + unknown)) == an_envelope()


def test_a_journal_entry_that_lost_an_attribute_is_poison() -> None:
    message = envelope_pb2.Envelope.FromString(wire.pack(an_envelope()))
    message.ClearField("correlation_id")
    with pytest.raises(Poison, match="envelope.correlation_id is empty"):
        wire.unpack(message.SerializeToString())


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda plain: plain.pop("source"), "envelope.source is missing"),
        (lambda plain: plain.update(extra=1), "'extra' is not a known field"),
        (lambda plain: plain.update(type="protos.events.v1.Entry"), "unknown event type"),
        (lambda plain: plain.update(attempt=True), "envelope.attempt: expected an integer"),
        (lambda plain: plain.update(time_ns=-1), "envelope.time_ns is -1"),
        (lambda plain: plain.update(id=""), "envelope.id is empty"),
        (lambda plain: plain["event"].update(index=1), "EvaluationCompleted: 'index'"),
        (lambda plain: plain["event"].pop("chip"), "EvaluationCompleted.chip is missing"),
        (lambda plain: plain["event"].update(chip=None), "EvaluationCompleted.chip: expected text"),
        (lambda plain: plain["event"].update(chip="\ud800"), "EvaluationCompleted.chip: contains half"),
        (lambda plain: plain["event"].update(at_ns=1 << 63), "EvaluationCompleted.at_ns: does not fit"),
        (lambda plain: plain["event"].update(at_ns=1.0), "EvaluationCompleted.at_ns: expected an integer"),
        (lambda plain: plain["event"].update(evaluation=[]), "EvaluationCompleted.evaluation: expected an object"),
        (
            lambda plain: plain["event"]["evaluation"].update(status="FASTER"),
            "evaluation.status: 'FASTER' is not one of",
        ),
        (lambda plain: plain["event"]["evaluation"].update(status="NOISY"), "NOISY cannot carry a speedup"),
        (lambda plain: plain["event"]["evaluation"].update(memoised=0), "evaluation.memoised: expected true or false"),
        (lambda plain: plain["event"]["evaluation"].update(timings={}), "evaluation.timings: expected a list"),
        (
            lambda plain: plain["event"]["evaluation"]["timings"][1].update(median_ns="9"),
            r"evaluation.timings\[1\].median_ns: expected an integer",
        ),
    ],
)
def test_json_is_read_strictly_and_the_reason_names_the_path(change: object, path: str) -> None:
    plain = wire.to_json(an_envelope(a_measurement()))
    change(plain)
    with pytest.raises(Poison, match=path):
        wire.from_json(plain)


def test_every_event_has_a_message_with_exactly_its_fields() -> None:
    for owner in EVENT_TYPES:
        assert [field.name for field in message_class(owner).DESCRIPTOR.fields] == list(owner.__dataclass_fields__)
