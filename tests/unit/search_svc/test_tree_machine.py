"""Any order of facts a search could ever see, drawn by hypothesis, keeps every invariant of the tree."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from search_svc.decide import decide
from search_svc.invariants import validate
from shared.events import EvaluationRequested, ExpansionRequested, SearchCancelled, SearchFinished, Status
from tests.builders import (
    SEARCH_ID,
    SECOND_NS,
    a_failure,
    a_pass,
    a_search,
    enveloped,
    expansion_failed,
    measured,
    produced,
    rejected,
)

UNMEASURED = ("NOISY", "INFRASTRUCTURE", "CANCELLED")
FAILURES = [status for status in Status if status is not Status.PASSED]


class SearchMachine(RuleBasedStateMachine):
    """Workers that answer in any order, late, twice, wrongly or never; a user who cancels."""

    @initialize(
        policy=st.sampled_from(["greedy", "beam", "mcts", "evolve", "uniform"]),
        evaluations=st.integers(1, 12),
        count=st.integers(1, 3),
        flight=st.integers(1, 3),
        stall=st.sampled_from([0, 4]),
        wall_s=st.sampled_from([0, 40]),
    )
    def submit(self, policy, evaluations, count, flight, stall, wall_s):
        self.tree, self.facts, self.kernels = None, 0, 0
        self.expansions, self.evaluations, self.finishes, self.best = [], [], 0, 0
        self.search = a_search(
            policy=policy,
            evaluations=evaluations,
            candidates_per_expansion=count,
            expansions_in_flight=flight,
            stall=stall,
            wall_ns=wall_s * SECOND_NS,
        )
        self.tell(self.search)

    def tell(self, event):
        self.facts += 1
        envelope = enveloped(event, cause_id=f"fact-{self.facts}")
        before = self.tree
        self.tree, commands = decide(before, envelope)
        assert decide(before, envelope) == (self.tree, commands)
        for command in commands:
            match command.event:
                case ExpansionRequested() as request:
                    assert request.count > 0
                    self.expansions.append(request)
                case EvaluationRequested() as request:
                    self.evaluations.append(request)
                case SearchFinished():
                    self.finishes += 1

    def now_ns(self):
        return self.facts * SECOND_NS

    @precondition(lambda self: self.expansions)
    @rule(data=st.data(), repeat=st.booleans())
    def produce(self, data, repeat):
        request = data.draw(st.sampled_from(self.expansions))
        self.kernels += 0 if repeat else 1
        index = data.draw(st.integers(0, request.count - 1))
        self.tell(produced(request, index, f"kernel-{self.kernels}", self.now_ns()))

    @precondition(lambda self: self.expansions)
    @rule(data=st.data(), code=st.sampled_from(["exhausted", "duplicate", "unparsable"]))
    def reject(self, data, code):
        request = data.draw(st.sampled_from(self.expansions))
        self.tell(rejected(request, data.draw(st.integers(0, request.count - 1)), code, self.now_ns()))

    @precondition(lambda self: self.expansions)
    @rule(data=st.data(), code=st.sampled_from(["endpoint", "budget", "unsupported_operator"]))
    def fail_expansion(self, data, code):
        self.tell(expansion_failed(data.draw(st.sampled_from(self.expansions)), code))

    @precondition(lambda self: self.evaluations)
    @rule(data=st.data(), ratio_ppm=st.integers(500_000, 4_000_000))
    def measure(self, data, ratio_ppm):
        """Any request ever made, so that late and repeated verdicts come up too."""
        self.tell(measured(data.draw(st.sampled_from(self.evaluations)), a_pass(ratio_ppm), self.now_ns()))

    @precondition(lambda self: self.evaluations)
    @rule(data=st.data(), status=st.sampled_from(FAILURES))
    def fail(self, data, status):
        self.tell(measured(data.draw(st.sampled_from(self.evaluations)), a_failure(status), self.now_ns()))

    @precondition(lambda self: self.facts > 8)
    @rule()
    def cancel(self):
        self.tell(SearchCancelled(search_id=SEARCH_ID, reason="user", at_ns=self.now_ns()))

    @invariant()
    def every_invariant_of_the_tree_holds(self):
        validate(self.tree)

    @invariant()
    def the_budget_is_never_overdrawn(self):
        assert self.tree.charged <= self.search.budget.evaluations
        firsts = [r for r in self.evaluations if r.attempt == 1 and r.purpose == "SEARCH"]
        given_up = [node for node in self.tree.nodes.values() if node.label in UNMEASURED]
        assert len(firsts) == self.tree.charged + len(given_up)

    @invariant()
    def the_best_never_gets_worse(self):
        score = self.tree.best.score_ppm if self.tree.best else 0
        assert score >= self.best
        self.best = score

    @invariant()
    def the_search_goes_on_or_has_finished_once(self):
        """Something is always outstanding until the end: a search cannot hang."""
        assert self.finishes == self.tree.finished
        assert self.tree.finished or self.tree.in_flight or self.tree.open_slots


TestSearchMachine = SearchMachine.TestCase
TestSearchMachine.settings = settings(max_examples=40, stateful_step_count=40)
