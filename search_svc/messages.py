"""Between the API's messages and what search_svc works with (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from protos.events.v1 import envelope_pb2
from protos.search.v1 import search_service_pb2 as pb
from search_svc.tree import Node
from shared import json_codec, proto_codec
from shared.errors import Poison, UserError
from shared.events import Budget, Entry, ModelBudget, SearchFinished, SearchStarted, Usage
from shared.store import JournalEntry

NS_PER_S = 1_000_000_000
WHERE = "search.index"


def budget(request: pb.SubmitRequest) -> Budget:
    """Raises ``UserError`` when a part is missing."""
    try:
        read = proto_codec.from_message(Budget, request.budget)
    except Poison as error:
        raise UserError(f"{error}", where="budget") from error
    assert isinstance(read, Budget)
    return read


def model_budget(request: pb.ResumeRequest) -> ModelBudget:
    """What a resumed search may spend. Raises ``UserError`` for a negative limit."""
    asked = request.model_budget
    if min(asked.tokens, asked.cost_micro) < 0:
        raise UserError("a limit is negative", where="model_budget", hint="0 leaves it as it is")
    return ModelBudget(tokens=asked.tokens, cost_micro=asked.cost_micro)


def parameters(request: pb.SubmitRequest) -> tuple[Entry, ...]:
    """The policy's parameters as asked."""
    return tuple(Entry(name=entry.name, value=entry.value) for entry in request.policy_parameters)


def search(row: Mapping[str, Any]) -> pb.Search:
    """A row of the index."""
    started = started_of(row)
    best_ppm = row.get("best_ppm", 0)
    return pb.Search(
        search_id=started.search_id,
        operator_name=started.operator.name,
        chip=started.chip,
        policy=started.policy,
        phase=row["phase"],
        outcome=row.get("outcome", ""),
        reason=row.get("reason", ""),
        detail=row.get("detail", ""),
        charged=row.get("charged", 0),
        budget_evaluations=started.budget.evaluations,
        nodes=row.get("nodes", 0),
        evaluating=row.get("evaluating", 0),
        synthesizing=row.get("synthesizing", 0),
        best_candidate_id=row.get("best_id", ""),
        best_speedup_ppm=best_ppm,
        winner_id=row.get("winner_id", ""),
        winner_speedup_ppm=row.get("winner_ppm", 0),
        winner_low_ppm=row.get("winner_low_ppm", 0),
        winner_high_ppm=row.get("winner_high_ppm", 0),
        elapsed_ns=row.get("elapsed_ns", 0),
        eta_ns=row.get("eta_ns", -1),
        submitted_at=timestamp(started.at_ns),
        priority=started.priority,
        journal_length=row["journal_length"],
        spent=_spent(row),
        model_budget=proto_codec.to_message(started.budget.model),  # type: ignore[arg-type]
        basis=row.get("basis", ""),
        cost_unit=row.get("cost_unit", ""),
        reference_cost=row.get("reference_cost", 0),
        best_cost=row.get("best_cost", 0),
    )


def _spent(row: Mapping[str, Any]) -> Any:
    """Of a row; one that an older program wrote tells of nothing."""
    return proto_codec.to_message(json_codec.from_plain(Usage, row["spent"], WHERE)) if "spent" in row else None


def started_of(row: Mapping[str, Any]) -> SearchStarted:
    """What was submitted, from a row of the index."""
    started = json_codec.from_plain(SearchStarted, row["search"], WHERE)
    assert isinstance(started, SearchStarted)
    return started


def timestamp(at_ns: int) -> Timestamp:
    """Nanoseconds since the epoch as the well-known type."""
    return Timestamp(seconds=at_ns // NS_PER_S, nanos=at_ns % NS_PER_S)


def watched(entry: JournalEntry) -> pb.WatchResponse:
    """A journal entry: the stored bytes are envelopes of the same form."""
    return pb.WatchResponse(
        seq=entry.seq,
        fact=envelope_pb2.Envelope.FromString(entry.event),
        decisions=[envelope_pb2.Envelope.FromString(command) for command in entry.commands],
    )


def ends(entry: JournalEntry) -> bool:
    """Whether the search decided on this entry that it has finished."""
    finished = f"{proto_codec.PACKAGE}.{SearchFinished.__name__}"
    return any(envelope_pb2.Envelope.FromString(command).type == finished for command in entry.commands)


def node(found: Node) -> pb.Node:
    """One candidate."""
    diagnosed = found.evaluation.diagnosis.bound.value if found.evaluation else ""
    estimate = found.evaluation.estimate if found.evaluation else None
    return pb.Node(
        candidate_id=found.candidate_id,
        parent_ids=found.parent_ids,
        kernel_id=found.kernel.kernel_id,
        language=found.kernel.language,
        move=found.move.name,
        label=found.label,
        speedup_ppm=found.score_ppm,
        bound=diagnosed,
        source_hash=found.kernel.source_hash,
        pruned=found.pruned,
        usage=proto_codec.to_message(found.usage),  # type: ignore[arg-type]
        endpoint=found.context.endpoint,
        model=found.context.model,
        asking=found.context.asking,
        estimate=proto_codec.to_message(estimate) if estimate else None,  # type: ignore[arg-type]
    )
