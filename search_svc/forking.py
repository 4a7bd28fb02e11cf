"""What a fork means for the tree: same history, another policy from here on (pure)."""

from __future__ import annotations

from dataclasses import replace

from search_svc.measuring import tell
from search_svc.tree import Statistics, Tree
from shared.events import Purpose, SearchForked


def forked(tree: Tree, event: SearchForked) -> Tree:
    """Same history, another policy from here on: what the old policy concluded is dropped, what was measured stays."""
    elapsed_ns, verdicts = tree.elapsed_ns, tree.verdicts
    search = replace(
        tree.search,
        search_id=event.search_id,
        policy=event.policy,
        policy_parameters=event.policy_parameters,
        seed=event.seed,
        at_ns=event.at_ns - elapsed_ns,
    )
    blank = {key: replace(node, final=None, statistics=Statistics()) for key, node in tree.nodes.items()}
    searching = {key: request for key, request in tree.in_flight.items() if request.purpose is Purpose.SEARCH}
    tree = replace(
        tree, search=search, nodes=blank, in_flight=searching, verdicts=(), finals=(), limit="", outcome="", reason="",
        winner_id="", synthesis_failure=("", ""), failed_expansions_row=0, infrastructure_row=0, now_ns=event.at_ns,
        down_ns=0,
    )  # fmt: skip
    for candidate_id in verdicts:
        tree = tell(replace(tree, verdicts=(*tree.verdicts, candidate_id)), candidate_id)
    return tree
