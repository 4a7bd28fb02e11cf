"""Which endpoint is asked: by gain per cost, the same for the same question, never one that is down."""

from __future__ import annotations

from collections import Counter

import pytest

from shared.events import EndpointRecord, Spend, Usage
from shared.usage import UNKNOWN, shares, taken_by
from synthesizer_svc.model import Completion, CompletionRequest, Message, ModelError, Role
from synthesizer_svc.model.bandit import ranked
from synthesizer_svc.model.routed import Arm, RoutedModel
from tests.fakes.metered_model import a_question
from tests.sim.loop import run
from tests.sim.processes import LoopClock

EVEN = {"large": 1, "small": 1}


def first_choices(weights, records, questions: int = 400) -> Counter:
    return Counter(ranked(weights, records, seed=n, question="q")[0] for n in range(questions))


def a_record(endpoint: str, **changes) -> EndpointRecord:
    return EndpointRecord(endpoint=endpoint, **{"asked": 40, "tokens": 40_000, "cost_micro": 40_000} | changes)


def test_unknown_endpoints_share_by_weight():
    chosen = first_choices({"large": 3, "small": 1}, ())
    assert chosen["large"] > 2 * chosen["small"] > 0
    assert abs(first_choices(EVEN, ())["large"] - 200) < 50


def test_who_gains_more_for_the_same_money_is_asked_more():
    records = (a_record("large", gains=16, gain_micro=1_600_000), a_record("small", gains=2, gain_micro=100_000))
    assert first_choices(EVEN, records)["large"] > 350


def test_who_gains_the_same_for_less_money_is_asked_more():
    gains = {"gains": 10, "gain_micro": 1_000_000}
    records = (a_record("large", cost_micro=4_000_000, **gains), a_record("small", **gains))
    assert first_choices(EVEN, records)["small"] > 380


def test_where_a_price_is_unknown_tokens_are_compared():
    gains = {"gains": 10, "gain_micro": 1_000_000}
    records = (a_record("large", cost_micro=UNKNOWN, **gains), a_record("small", tokens=400_000, **gains))
    assert first_choices(EVEN, records)["large"] > 300


def test_an_endpoint_without_luck_so_far_is_still_asked_now_and_then():
    records = (a_record("large", asked=4, gains=2, gain_micro=200_000), a_record("small", asked=4))
    assert 0 < first_choices(EVEN, records)["small"] < 200


def test_the_same_history_and_question_choose_the_same():
    records = (a_record("small", gains=2, gain_micro=1), a_record("large", gains=2, gain_micro=1))
    orders = {tuple(ranked(dict(w), r, seed=7, question="q")) for w in (EVEN, dict(reversed(EVEN.items())))
              for r in (records, records[::-1])}  # fmt: skip
    assert len(orders) == 1


class Told:
    """An endpoint that does as it is told."""

    def __init__(self, name: str, error: ModelError | None = None) -> None:
        self.name, self.error = name, error
        self.asked: list[CompletionRequest] = []

    async def complete(self, request: CompletionRequest) -> Completion:
        self.asked.append(request)
        if self.error:
            raise self.error
        return Completion(text=self.name, usage=Usage(output_tokens=5, requests=1, cost_micro=10), endpoint=self.name)


def routed(*models: Told) -> RoutedModel:
    return RoutedModel({model.name: Arm(model) for model in models}, LoopClock())


def down(code: str = "endpoint", *, pauses: bool = True) -> ModelError:
    return ModelError(code, "does not answer", usage=Usage(requests=3, cost_micro=1), pauses=pauses)


@pytest.mark.parametrize("code", ["endpoint", "credentials", "spend_limit", "budget", "context"])
def test_an_endpoint_that_cannot_answer_is_passed_over_and_what_it_cost_is_counted(code):
    model = routed(Told("a", down(code)), Told("b"))
    answers = [run(1, model.complete(a_question(seed=n))) for n in range(8)]
    assert {answer.text for answer in answers} == {"b"}
    assert {answer.usage.requests for answer in answers} == {1, 4}


def test_when_none_can_answer_the_search_pauses_and_is_told_of_each():
    model = routed(Told("a", ModelError("endpoint", "a: is down", pauses=True)), Told("b", down("credentials")))
    with pytest.raises(ModelError) as caught:
        run(1, model.complete(a_question()))
    assert caught.value.pauses
    assert "a: is down" in caught.value.detail
    assert "does not answer" in caught.value.detail
    assert caught.value.usage.requests == 3


@pytest.mark.parametrize(
    ("tokens", "requests", "named"),
    [((5, 9, 7), (1, 1, 1), "b"), ((0, 0, 4), (1, 0, 1), "c"), ((0, 0, 0), (0, 1, 0), "b")],
)
def test_when_nobody_answers_the_one_that_took_most_is_named(tokens, requests, named):
    failed = [
        ModelError("endpoint", name, usage=Usage(output_tokens=took, requests=sent), endpoint=name if sent else "")
        for name, took, sent in zip("abc", tokens, requests, strict=True)
    ]
    for seed in range(6):
        with pytest.raises(ModelError) as caught:
            run(1, routed(*(Told(error.detail, error) for error in failed)).complete(a_question(seed=seed)))
        assert caught.value.endpoint == named


def test_when_one_may_answer_the_next_time_nothing_pauses():
    model = routed(Told("a", down()), Told("b", down("answer", pauses=False)))
    with pytest.raises(ModelError) as caught:
        run(1, model.complete(a_question()))
    assert not caught.value.pauses


def test_a_refusal_is_not_taken_elsewhere():
    refusing, other = Told("a", down("refused", pauses=False)), Told("b", down("refused", pauses=False))
    with pytest.raises(ModelError):
        run(1, routed(refusing, other).complete(a_question()))
    assert len(refusing.asked) + len(other.asked) == 1


def test_all_turns_of_a_conversation_go_to_one_endpoint():
    models = [Told(name) for name in "abcd"]
    question = a_question()
    longer = CompletionRequest(
        system=question.system,
        messages=(
            *question.messages,
            Message(role=Role.ASSISTANT, text="no code"),
            Message(role=Role.USER, text="code, please"),
        ),
        seed=question.seed,
        output_tokens_max=200,
        deadline_s=60.0,
    )
    for each in (question, longer):
        run(1, routed(*models).complete(each))
    assert sorted(len(model.asked) for model in models) == [0, 0, 0, 2]


def test_what_a_failed_arm_took_stays_its_own_though_another_answered():
    took = taken_by(Usage(input_tokens=900, output_tokens=100, cost_micro=5_000, requests=2), "a")
    error = ModelError("answer", "cut off twice", usage=took, endpoint="a")
    answers = [run(1, routed(Told("a", error), Told("b")).complete(a_question(seed=n))) for n in range(8)]
    after_failing = next(answer for answer in answers if answer.usage.requests == 3)
    assert after_failing.endpoint == "b"
    assert shares(after_failing.usage, "b") == (
        Spend(endpoint="a", tokens=1_000, cost_micro=5_000, requests=2),
        Spend(endpoint="b", tokens=5, cost_micro=10, requests=1),
    )
