"""Asking for moves: what is on offer, in which schema, and what a choice becomes."""

from __future__ import annotations

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.events import Bound
from synthesizer_svc.answer_text import Unparsable
from synthesizer_svc.asking.moves import Moves
from synthesizer_svc.asking.ways import Draft
from synthesizer_svc.model import Completion
from synthesizer_svc.schedule.lowering import Target
from synthesizer_svc.schedule.offer import Offer, offer
from synthesizer_svc.schedule.synthesize import Prepared
from tests.unit.synthesizer_svc.spaces import (
    KINDS,
    SPACE,
    TextLowered,
    a_parent,
    a_situation,
    a_skill,
    failed,
    measured,
)

DEFAULT = SPACE.default()


def prepared() -> Prepared:
    target = Target(language="cpp", machine=None, threads=1)
    return Prepared(lowered=TextLowered(target=target), target=target)


def offered(known=(), most=40, **changes) -> Offer:
    operator, kernels = prepared(), frozenset(known)
    given = {"parents": (a_parent(),)} | changes
    return offer(a_situation(**given), lambda schedule: operator.kernel_id(schedule) in kernels, most)


def way(known=(), **changes) -> Moves:
    return Moves(offered(known, **changes), prepared(), frozenset(known))


def choice(*changes, because="memory-bound"):
    return json.dumps({"because": because, "changes": [{"decision": key, "value": value} for key, value in changes]})


def read(text, known=(), **changes):
    return way(known, **changes).read(Completion(text=text))


def alternatives(given: Offer) -> dict:
    return {decision.key: values for decision, _, values in given.by_decision()}


def test_every_other_legal_value_is_on_offer_in_the_order_of_its_decision():
    parents = prepared().kernel_id(DEFAULT)
    assert alternatives(offered([parents])) == {
        "g0.stores": ("streaming",),
        "g0.unroll": (1, 4, 8),
        "g1.accumulators": (2, 4),
    }  # g1.layout makes the parent's kernel while there is one accumulator


def test_what_is_known_or_was_tried_is_not_on_offer():
    known = [prepared().kernel_id(DEFAULT.with_choice("g0.unroll", 8))]
    tried = (DEFAULT.with_choice("g0.stores", "streaming"),)
    broken = (DEFAULT.with_choice("g0.unroll", 4),)
    given = offered([*known, prepared().kernel_id(DEFAULT)], siblings=tried, negative=broken)
    assert alternatives(given) == {"g0.unroll": (1,), "g1.accumulators": (2, 4)}


def test_a_draft_starts_from_the_default_schedule_and_a_repair_from_what_failed():
    assert offered(parents=()).base == DEFAULT
    broken = DEFAULT.with_choice("g0.unroll", 8)
    assert offered(parents=(a_parent(broken, failed()),)).base == broken
    better = a_parent(DEFAULT.with_choice("g0.unroll", 4), measured(ratio=2.0), "c2")
    assert offered(parents=(a_parent(), better)).base == better.schedule


def test_only_so_many_are_offered_the_most_promising_first():
    skills = (a_skill("pointwise:stores=streaming", 0.3),)
    assert alternatives(offered(most=1, skills=skills)) == {"g0.stores": ("streaming",)}


def test_the_prompt_names_every_choice_with_what_it_trades_and_the_form_of_an_answer():
    asked = way()
    assert "- g0.unroll: now 2, may be 1, 4, 8 (pointwise; more independent chains" in asked.choices
    assert 'g0.stores: now "cached", may be "streaming" (pointwise; skips the read' in asked.choices
    assert "pays when memory-bound" in asked.choices
    form = (
        asked.choices.splitlines()[-1].replace("<one of its values>", "4").replace("<name from the list>", "g0.unroll")
    )
    assert isinstance(asked.read(Completion(text=form)), Draft)


def test_what_is_believed_to_pay_most_is_listed_first():
    for move, first in (("pointwise:stores=streaming", "g0.stores"), ("reduction:accumulators=4", "g1.accumulators")):
        asked = way(skills=(a_skill(move, 0.3),))
        assert asked.choices.splitlines()[2].startswith(f"- {first}:")


def test_the_schema_admits_exactly_what_is_on_offer():
    asked = way()
    validator = jsonschema.Draft202012Validator(json.loads(asked.schema))
    legal = [choice(("g0.unroll", 4)), choice(("g0.unroll", 4), ("g0.stores", "streaming"), ("g1.accumulators", 2))]
    wrong = [
        choice(),
        choice(("g0.unroll", 2)),
        choice(("g0.unroll", "streaming")),
        choice(("g9.unroll", 4)),
        choice(*[("g0.unroll", 4)] * 4),
        choice(("g0.unroll", 4), because="x" * 500),
        json.dumps({"changes": [{"decision": "g0.unroll", "value": 4}]}),
    ]
    assert [validator.is_valid(json.loads(text)) for text in legal] == [True] * 2
    assert [validator.is_valid(json.loads(text)) for text in wrong] == [False] * len(wrong)


def test_the_schema_is_canonical_and_puts_the_reason_first():
    asked = way().schema
    assert asked == json.dumps(json.loads(asked), sort_keys=True, separators=(",", ":"))
    assert list(json.loads(asked)["properties"]) == ["because", "changes"]


def test_one_change_is_the_schedule_writers_move_with_the_models_reason():
    found = read(choice(("g0.stores", "streaming")), skills=(a_skill("pointwise:stores=streaming", 0.5),))
    assert found.move.name == "pointwise:stores=streaming"
    assert {entry.name: entry.value for entry in found.move.parameters} == {
        "operator_class": "pointwise",
        "group": "g0",
        "decision": "stores",
        "from": "cached",
        "to": "streaming",
    }
    assert found.move.rationale == "memory-bound"
    assert found.schedule == DEFAULT.with_choice("g0.stores", "streaming")
    assert found.skill_ids == ("skill-pointwise:stores=streaming",)
    assert found.kernel_id == prepared().kernel_id(found.schedule)


def test_several_changes_are_joined_in_the_models_order():
    found = read(choice(("g1.accumulators", 4), ("g0.unroll", 8)))
    assert found.move.name == "reduction:accumulators=4 + pointwise:unroll=8"
    assert {entry.name: entry.value for entry in found.move.parameters}["to_2"] == "8"
    assert found.schedule == DEFAULT.with_choice("g1.accumulators", 4).with_choice("g0.unroll", 8)


ILLEGAL = {
    "none": choice(),
    "too many": choice(("g0.unroll", 4), ("g0.stores", "streaming"), ("g1.accumulators", 2), ("g1.layout", "packed")),
    "an unknown decision": choice(("g0.tile", 4)),
    "an illegal value": choice(("g0.unroll", 3)),
    "the value it has": choice(("g0.unroll", 2)),
    "true for one": choice(("g0.unroll", True)),
    "a list": choice(("g0.unroll", [4])),
    "nothing": choice(("g0.unroll", None)),
    "one decision twice": choice(("g0.unroll", 4), ("g0.unroll", 8)),
    "no list": json.dumps({"because": "", "changes": {"decision": "g0.unroll", "value": 4}}),
    "more than was asked": json.dumps({"changes": [{"decision": "g0.unroll", "value": 4, "flags": "-Ofast"}]}),
    "words": json.dumps({"changes": ["g0.unroll=4"]}),
}


@pytest.mark.parametrize("text", ILLEGAL.values(), ids=ILLEGAL)
def test_what_is_not_on_offer_is_an_illegal_choice(text):
    found = read(text)
    assert isinstance(found, Unparsable)
    assert found.code == "illegal_choice"
    assert found.mendable


def test_numbers_may_come_in_quotes_and_a_reason_may_be_missing():
    found = read(json.dumps({"changes": [{"decision": "g0.unroll", "value": "4"}]}))
    assert found.schedule.get("g0.unroll") == 4
    assert found.move.rationale.startswith("g0.unroll 2 -> 4")


def test_changes_that_make_a_known_kernel_together_are_a_duplicate():
    both = DEFAULT.with_choice("g0.unroll", 4).with_choice("g1.accumulators", 2)
    found = read(choice(("g0.unroll", 4), ("g1.accumulators", 2)), [prepared().kernel_id(both)])
    assert isinstance(found, Unparsable)
    assert found.code == "duplicate"


VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.sampled_from(["4", 4, "streaming"]))
CHANGES = st.lists(
    st.dictionaries(st.sampled_from(["decision", "value", "x"]), VALUES | st.sampled_from(["g0.unroll", "g0.stores"]))
)


@given(CHANGES, VALUES)
def test_whatever_is_chosen_is_a_legal_schedule_or_a_reason(changes, because):
    found = read(json.dumps({"because": because, "changes": changes}))
    assert isinstance(found, Draft | Unparsable)
    if isinstance(found, Draft):
        assert found.schedule == SPACE.complete(found.schedule)


def test_operator_classes_come_from_the_plan():
    assert set(KINDS.values()) == {"pointwise", "reduction"}
    assert "reduction; pays when latency-bound" in way().choices
    assert Bound.LATENCY.value == "latency"
