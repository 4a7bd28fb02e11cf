"""What reports read off a tree."""

from __future__ import annotations

from dataclasses import replace

from search_svc import chain, projection, story
from shared.events import StageTimes
from tests.builders import SECOND_NS, a_pass, a_search
from tests.fakes.drive import Drive
from tests.unit.search_svc.trees import grown


def test_counts_add_up():
    tree = grown(a_search(), {"a": ("", 1.5), "b": ("a", 0), "c": ("a", None), "d": ("a", 1.7)}, pruned=("b",))
    summary = projection.summarize(tree)
    assert summary.statuses == (("PASSED", 2), ("WRONG_RESULT", 1), ("PENDING", 1))
    assert (summary.nodes, summary.verdicts, summary.evaluating, summary.pruned) == (4, 3, 1, 1)
    assert (summary.best_id, summary.best_score_ppm, summary.phase) == ("d", 1_700_000, "searching")


def test_the_progress_curve_holds_only_new_bests():
    tree = grown(a_search(), {"a": ("", 1.5), "b": ("", 0), "c": ("", 1.2), "d": ("", 2.0)})
    steps = [(point.evaluations, point.candidate_id, point.score_ppm) for point in projection.progress(tree)]
    assert steps == [(1, "a", 1_500_000), (4, "d", 2_000_000)]


def test_the_time_left_is_the_nearer_of_budget_and_wall_clock():
    tree = grown(a_search(), {"a": ("", 1.5), "b": ("", 1.6)})
    assert projection.summarize(tree).eta_ns == -1
    tree = replace(tree, now_ns=4 * SECOND_NS, search=a_search(evaluations=10))
    assert projection.summarize(tree).eta_ns == 16 * SECOND_NS
    tree = replace(tree, search=a_search(evaluations=10, wall_ns=9 * SECOND_NS))
    assert projection.summarize(tree).eta_ns == 5 * SECOND_NS


def test_a_finished_search_names_its_winner():
    tree = Drive().run(a_search(evaluations=10))
    summary = projection.summarize(tree)
    assert (summary.phase, summary.outcome, summary.eta_ns) == ("finished", "improved", 0)
    assert projection.winner(tree).candidate_id == summary.winner_id


def test_stage_times_leave_out_what_was_remembered():
    spent = replace(a_pass(), stages=StageTimes(build_ns=5, timing_ns=7))
    tree = grown(a_search(), {"a": ("", 1.5), "b": ("", 1.6)})
    nodes = {
        "a": replace(tree.nodes["a"], evaluation=spent, final=spent),
        "b": replace(tree.nodes["b"], evaluation=replace(spent, memoised=True)),
    }
    totals = projection.stage_totals(replace(tree, nodes=nodes))
    assert (totals.build_ns, totals.timing_ns) == (10, 14)


def test_a_story_runs_from_the_draft_to_the_node():
    tree = grown(a_search(), {"a": ("", 1.5), "b": ("a", 0)})
    assert story.of_node(tree, "b") == ("a move PASSED 1.500x", "b move WRONG_RESULT")


def test_a_digest_covers_position_of_every_byte():
    whole = chain.digest("", b"ab", (b"c", b"d"))
    others = [("", b"a", (b"bc", b"d")), ("", b"ab", (b"cd",)), ("", b"ab", (b"d", b"c")), ("x", b"ab", (b"c", b"d"))]
    assert len({whole, *(chain.digest(*parts) for parts in others)}) == 5
