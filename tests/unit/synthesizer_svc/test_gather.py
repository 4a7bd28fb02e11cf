"""What an expansion may see of what came before, and what documents it asks for."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from shared.events import Bound, Entry, Memory, Status
from tests.fakes.talker import Talker
from tests.unit.synthesizer_svc.desk import KERNEL, OneDocument, desk
from tests.unit.synthesizer_svc.situations import DRAFT, FAILED, MEMORY, OFF, PARENT, SLOWER, timed
from tests.unit.synthesizer_svc.spaces import failed

OUTCOMES = (PARENT, DRAFT, FAILED, SLOWER, OFF)


def seen(knowledge=None, **changes):
    """The question that a model was asked, and its knowledge's queries."""

    async def scenario():
        model, known = Talker(lambda _: f"Less.\n```cpp\n{KERNEL}\n```"), knowledge or OneDocument()
        async with desk(model=model, share=100, knowledge=known) as at:
            parent = await at.kernel(None, source=KERNEL)
            given = {"count": 1, "parent_ids": ("c4",), "parents": (parent,), "parent_evaluations": (MEMORY,)}
            await at.facts(await at.request(**(given | {"outcomes": OUTCOMES} | changes)))
        return model.asked[0].messages[0].text, [query for query, _ in known.queries]

    return asyncio.run(scenario())


def test_a_parents_ancestors_are_told_in_order_and_what_did_not_pay_beside_them():
    question, _ = seen()
    history = question[question.index("# How it came to be") :]
    assert history.index("c4 by rewrite") < history.index("c1 by draft:default")
    setbacks = question[question.index("# Tried, and failed") : question.index("# Kernel to improve")]
    assert "pointwise:unroll=8" in setbacks
    assert "COMPILE_ERROR" in setbacks
    assert "draft:default" not in setbacks


def test_a_clean_mind_sees_no_parent_and_no_history():
    question, _ = seen(memory=Memory.CLEAN, outcomes=())
    assert "# Kernel to improve" not in question
    assert "# How it came to be" not in question


def test_a_hidden_parents_history_stays_hidden():
    question, _ = seen(memory=Memory.SIBLINGS)
    assert "# How it came to be" not in question
    assert "One pass instead of two." not in question


def test_what_paid_or_was_not_the_kernels_fault_is_no_setback():
    noisy = replace(OFF, candidate_id="n", status=Status.NOISY, signature="NOISY")
    paid = replace(SLOWER, candidate_id="p", gain_ppm=1_200_000)
    question, _ = seen(outcomes=(PARENT, noisy, paid))
    assert "# Tried, and failed" not in question


def test_outcomes_that_run_in_circles_end():
    circle = (replace(PARENT, parent_ids=("c1",)), replace(DRAFT, parent_ids=("c4",)))
    question, _ = seen(outcomes=circle)
    assert question.count("c4 by rewrite") == 1


def test_documents_are_asked_for_by_what_limits_the_parent_before_the_operators_name():
    evaluation = timed(1.2, Bound.COMPUTE, "compute-bound: inline it", ("calls", "expf"), ("spills", "3"))
    evaluation = replace(evaluation, environment=(Entry(name="processor", value="AMD EPYC"),))
    _, (query, *_) = seen(parent_evaluations=(evaluation,))
    assert query.bound is Bound.COMPUTE
    assert query.words == "compute-bound: inline it expf register spills twice AMD"


def test_a_failure_is_asked_about_by_its_error():
    _, (query, *_) = seen(parent_evaluations=(failed(),))
    assert (query.error, query.bound) == ("COMPILE_ERROR expected ;", Bound.UNKNOWN)


def test_calls_of_nothing_and_no_spills_are_no_words():
    evaluation = timed(1.2, Bound.COMPUTE, "all is well", ("calls", "none"), ("spills", "0"))
    _, (query, *_) = seen(parent_evaluations=(evaluation,))
    assert query.words == "all is well twice"


def test_documents_are_asked_for_in_the_language_of_the_kernel_to_come():
    _, (query, *_) = seen(languages=("triton", "cpp"))
    assert query.language == "cpp"
