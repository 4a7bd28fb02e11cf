"""What a prompt may take, what is left out first, and that counts are never too low."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthesizer_svc.counting import CountingComposer
from synthesizer_svc.prompts import ByteBound, Counted, DoesNotFit, Fate, Quoted, TokenBudget, compose
from synthesizer_svc.prompts.budget import (
    CUTTING_ORDER,
    DROPPING_ORDER,
    MARGIN_TOKENS,
    NEVER_DROPPED,
    SHARES,
    PartName,
)
from synthesizer_svc.prompts.pieces import middle_cut
from tests.unit.synthesizer_svc.situations import IMPROVE, SITUATIONS, STREAMS

LONG = "".join(f"  y[{n}] = 2 * x[{n}];\n" for n in range(4000))
FULL = replace(
    IMPROVE,
    siblings=tuple(replace(IMPROVE.siblings[0], candidate_id=f"s{n}", source="int a;") for n in range(3)),
    negative=tuple(replace(IMPROVE.negative[0], candidate_id=f"f{n}", source="int b;") for n in range(3)),
)
ALL = compose(FULL, TokenBudget(tokens=1_000_000))
LEAST = sum(part.tokens for part in ALL.parts if part.name in NEVER_DROPPED)


def fates(tokens, given=FULL):
    return {part.name: part.fate for part in compose(given, TokenBudget(tokens=tokens)).parts}


@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.parametrize("tokens", [6_000, 8_000, 12_000, 64_000])
def test_every_situation_stays_within_its_budget(name, tokens):
    prompt = compose(SITUATIONS[name], TokenBudget(tokens=tokens))
    assert prompt.tokens <= tokens
    assert len(f"{prompt.system}{prompt.user}".encode()) <= tokens


@given(tokens=st.integers(LEAST, ALL.tokens))
def test_whatever_the_budget_is_it_is_kept_and_what_goes_goes_in_the_stated_order(tokens):
    prompt = compose(FULL, TokenBudget(tokens=tokens))
    assert prompt.tokens <= tokens
    by_name = {part.name: part for part in prompt.parts}
    assert all(by_name[name].fate is not Fate.DROPPED for name in NEVER_DROPPED if name in by_name)


def test_parts_are_dropped_in_the_stated_order_as_the_budget_shrinks():
    """Shares aside, which most parts of this prompt keep anyway."""
    gone: list[PartName] = []
    for tokens in range(ALL.tokens, LEAST - 1, -10):
        dropped = [name for name, fate in fates(tokens).items() if fate is Fate.DROPPED and name not in gone]
        gone += sorted(dropped, key=DROPPING_ORDER.index)
    order = [name for name in DROPPING_ORDER if name in gone]
    assert gone[:3] == order[:3] == [PartName.SIBLINGS, PartName.FAILURES, PartName.DOCUMENTS]
    assert set(gone) == set(DROPPING_ORDER)


def test_under_a_slightly_tight_budget_the_worst_sibling_goes_first():
    prompt = compose(FULL, TokenBudget(tokens=ALL.tokens - 1))
    assert {part.name for part in prompt.parts if part.fate is not Fate.KEPT} == {PartName.SIBLINGS}
    assert "Tried beside it: s1" in prompt.user
    assert "Tried beside it: s2" not in prompt.user


def test_a_part_takes_no_more_than_its_share_however_much_there_is_of_it():
    given_much = replace(
        IMPROVE, passages=tuple(replace(STREAMS, document_id=f"d{n}", text="word " * 400) for n in range(20))
    )
    prompt = compose(given_much, TokenBudget(tokens=20_000))
    documents = next(part for part in prompt.parts if part.name == PartName.DOCUMENTS)
    assert documents.fate is Fate.CUT
    assert 0 < documents.tokens <= 20_000 * SHARES[PartName.DOCUMENTS]
    assert "[d0]" in prompt.user
    assert "[d19]" not in prompt.user


def test_a_long_parent_is_cut_in_the_middle_with_a_mark_and_never_dropped():
    parent = Quoted(candidate_id="c", source=f"// begin\n{LONG}// end\n")
    prompt = compose(replace(FULL, parents=(parent,)), TokenBudget(tokens=20_000))
    used = next(part for part in prompt.parts if part.name == PartName.PARENTS)
    assert (used.fate, used.tokens <= 10_000) == (Fate.CUT, True)
    assert "// begin" in prompt.user
    assert "// end" in prompt.user
    assert "lines left out ...]" in prompt.user
    assert used.tokens > 7_000  # and it uses what it has


def test_two_long_parents_share_what_there_is():
    parents = tuple(Quoted(candidate_id=name, source=f"// {name}\n{LONG}") for name in ("one", "two"))
    prompt = compose(replace(FULL, parents=parents), TokenBudget(tokens=20_000))
    assert prompt.tokens <= 20_000
    assert "// one" in prompt.user
    assert "// two" in prompt.user
    assert prompt.user.count("lines left out ...]") == 2


def test_a_long_operator_is_cut_last_of_all():
    assert CUTTING_ORDER[-1] is PartName.OPERATOR
    prompt = compose(replace(IMPROVE, operator_source=LONG), TokenBudget(tokens=12_000))
    used = next(part for part in prompt.parts if part.name == PartName.OPERATOR)
    assert (used.fate, used.tokens <= 12_000 * SHARES[PartName.OPERATOR]) == (Fate.CUT, True)


def test_what_cannot_be_made_to_fit_is_an_error_with_numbers():
    with pytest.raises(DoesNotFit, match="1000 are left for it") as caught:
        compose(FULL, TokenBudget(tokens=1_000))
    assert caught.value.tokens > caught.value.budget == 1_000


def test_the_budget_is_what_the_context_leaves_beside_answers_and_a_margin():
    budget = TokenBudget.of(context_tokens=8192, output_tokens=2048, prompt_tokens_max=64_000)
    assert budget.tokens == 8192 - 2048 - MARGIN_TOKENS
    assert TokenBudget.of(context_tokens=0, output_tokens=2048, prompt_tokens_max=64_000).tokens == 64_000
    assert TokenBudget.of(context_tokens=10**6, output_tokens=2048, prompt_tokens_max=64_000).tokens == 64_000
    with pytest.raises(ValueError, match="left for the prompt"):
        TokenBudget.of(context_tokens=1024, output_tokens=1024, prompt_tokens_max=64_000)


@given(text=st.text(), chars=st.integers(0, 400))
def test_a_cut_text_is_its_beginning_and_its_end(text, chars):
    cut = middle_cut(text, chars)
    if len(text) <= chars:
        assert cut == text
    else:
        head, mark, tail = cut.partition("[... ")
        assert mark
        assert text.startswith(head.removesuffix(" ").removesuffix("\n")) or not head.strip()
        assert text.endswith(tail.partition(" ...]")[2][1:])
        assert len(cut) <= chars + 60


@given(one=st.text(), other=st.text())
def test_a_bound_of_a_whole_is_no_more_than_those_of_its_parts(one, other):
    bound = ByteBound()
    assert bound.count(one + other) <= bound.count(one) + bound.count(other)


# --- counted by a tokenizer ---------------------------------------------------------------------------------------


class WordTokenizer:
    """Four bytes a token, and what it was asked."""

    def __init__(self, *, dumb: bool = False) -> None:
        self.asked: list[str] = []
        self._dumb = dumb

    async def count(self, texts):
        self.asked += texts
        return None if self._dumb else {text: len(text.encode()) // 4 + 1 for text in texts}


def counted(given, tokens, tokenizer):
    return asyncio.run(CountingComposer(tokenizer).compose(given, TokenBudget(tokens=tokens)))


def test_a_prompt_is_counted_by_the_endpoints_tokenizer():
    prompt = counted(FULL, 64_000, WordTokenizer())
    assert prompt.exact
    assert (prompt.system, prompt.user) == (ALL.system, ALL.user)
    assert prompt.tokens < ALL.tokens / 3


def test_what_a_bound_would_have_dropped_is_kept_where_the_count_allows_it():
    assert fates(6_000)[PartName.SIBLINGS] is Fate.DROPPED
    prompt = counted(FULL, 6_000, WordTokenizer())
    assert prompt.exact
    assert {part.fate for part in prompt.parts} == {Fate.KEPT}


def test_a_cut_is_counted_too_and_uses_its_room():
    prompt = counted(replace(FULL, parents=(Quoted(candidate_id="c", source=LONG),)), 8_000, WordTokenizer())
    used = next(part for part in prompt.parts if part.name == PartName.PARENTS)
    assert used.fate is Fate.CUT
    assert 3_000 < used.tokens <= 4_000
    assert prompt.exact


def test_an_endpoint_that_counts_nothing_leaves_the_bounds():
    prompt = counted(FULL, 64_000, WordTokenizer(dumb=True))
    assert not prompt.exact
    assert prompt == ALL


def test_what_a_search_shares_is_counted_once():
    tokenizer = WordTokenizer()
    composer = CountingComposer(tokenizer)
    for given_now in (FULL, FULL, replace(FULL, siblings=())):
        asyncio.run(composer.compose(given_now, TokenBudget(tokens=64_000)))
    assert len(tokenizer.asked) == len(set(tokenizer.asked))


def test_a_count_that_is_not_known_is_bounded_and_remembered():
    counter = Counted({"abc": 1})
    assert (counter.count("abc"), counter.count("abcd"), counter.count("")) == (1, ByteBound().count("abcd"), 0)
    assert list(counter.missed) == ["abcd"]
    assert not counter.exact


# --- what is recorded as shown ------------------------------------------------------------------------------------


def test_a_prompt_tells_which_documents_skills_and_kernels_it_shows():
    assert ALL.shown(PartName.DOCUMENTS) == ("guidance/streaming-stores", "guidance/cache-blocking")
    assert ALL.shown(PartName.SKILLS) == ("skill-1",)
    assert ALL.shown(PartName.SIBLINGS) == ("s0", "s1", "s2")
    assert ALL.shown(PartName.CHOICES) == ()


def test_what_the_budget_left_out_is_not_told_as_shown():
    prompt = compose(FULL, TokenBudget(tokens=ALL.tokens - 1))
    assert prompt.shown(PartName.SIBLINGS) == ("s0", "s1")
    least = compose(FULL, TokenBudget(tokens=LEAST))
    assert least.shown(PartName.DOCUMENTS) == least.shown(PartName.SIBLINGS) == ()
    assert least.shown(PartName.PARENTS) == ("c4",)
