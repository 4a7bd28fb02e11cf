"""Where an event goes and what it is called on the way."""

from __future__ import annotations

from dataclasses import replace

from shared import envelopes, topics
from shared.clock import ManualClock
from shared.events import (
    Bound,
    EvaluationRequested,
    ExpansionRequested,
    Memory,
    OperatorRef,
    Purpose,
    SkillDistilled,
    SkillStatus,
)
from tests.unit.shared.builders import a_kernel, a_measurement, an_envelope, an_event

OPERATOR = OperatorRef(name="softmax", source_hash="h")


def test_facts_go_to_the_topic_of_facts_by_search() -> None:
    assert envelopes.topic_of(a_measurement()) == topics.FACTS
    assert envelopes.key_of(a_measurement()) == "s1"
    assert envelopes.subject_of(a_measurement()) == "search/s1/candidate/c1"


def test_an_expansion_goes_to_the_synthesizers_by_its_own_id() -> None:
    event = ExpansionRequested(
        search_id="s1", expansion_id="x1", operator=OPERATOR, chip="cpu", languages=("cpp",), seed=1, count=1,
        memory=Memory.PARENT,
    )  # fmt: skip
    assert (envelopes.topic_of(event), envelopes.key_of(event)) == (topics.SYNTHESIS_REQUESTS, "x1")
    assert envelopes.subject_of(event) == "search/s1/expansion/x1"


def test_an_evaluation_goes_to_the_queue_of_its_chip_by_candidate() -> None:
    event = EvaluationRequested(
        search_id="s1", evaluation_id="e1", candidate_id="c1", kernel=a_kernel(), operator=OPERATOR, chip="riscv-rvv",
        purpose=Purpose.FINAL,
    )  # fmt: skip
    assert (envelopes.topic_of(event), envelopes.key_of(event)) == ("evaluation.requests.riscv-rvv.v1", "c1")


def test_a_skill_goes_to_the_compacted_topic_and_belongs_to_no_search() -> None:
    event = SkillDistilled(
        skill_id="k1", move="tile", operator_class="pointwise", chip="cpu", language="cpp", bound=Bound.MEMORY,
        status=SkillStatus.SUPPORTED, ratio_ppm=900_000, low_ppm=800_000, high_ppm=950_000,
    )  # fmt: skip
    envelope = an_envelope(event)
    assert (envelopes.topic_of(event), envelope.partition_key) == (topics.SKILLS, "k1")
    assert (envelope.subject, envelope.correlation_id) == ("skill/k1", "k1")


def test_ids_depend_on_the_cause_the_type_and_the_number_and_on_nothing_else() -> None:
    first = an_envelope()
    assert first.id == an_envelope(an_event(reason="other")).id
    assert first.id != an_envelope(n=1).id
    assert first.id != an_envelope(a_measurement()).id
    later = envelopes.envelope(an_event(), cause_id="cause", source="/elsewhere", clock=ManualClock(99))
    assert later == replace(first, source="/elsewhere", time_ns=99)
