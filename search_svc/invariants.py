"""What must hold of every tree, at any point of any search (pure)."""

from __future__ import annotations

from collections.abc import Iterator

from search_svc.finale import ESTIMATED
from search_svc.tree import Node, Offspring, Stage, Tree
from shared.errors import Fatal
from shared.events import PPM, Basis, Purpose


def validate(tree: Tree) -> None:
    """Raises ``Fatal`` with every violation found."""
    if found := list(violations(tree)):
        raise Fatal(f"tree of search {tree.search.search_id} is broken: " + "; ".join(found))


def violations(tree: Tree) -> Iterator[str]:
    """One sentence per broken invariant."""
    yield from _budget(tree)
    yield from _pause(tree)
    yield from _best(tree)
    yield from _reference(tree)
    yield from _requests(tree)
    yield from _family(tree, "root", tree.root, [n.candidate_id for n in tree.nodes.values() if not n.parent_ids])
    children: dict[str, list[str]] = {}
    for node in tree.nodes.values():
        if node.parent_ids:
            children.setdefault(node.parent_ids[0], []).append(node.candidate_id)
    for key, node in tree.nodes.items():
        yield from _node(tree, key, node)
        yield from _family(tree, key, node.offspring, children.get(key, []))


def _budget(tree: Tree) -> Iterator[str]:
    search = tree.search
    if tree.charged > search.budget.evaluations:
        yield f"{tree.charged} evaluations charged of {search.budget.evaluations}"
    if not tree.limit and tree.remaining < 0:
        yield f"{tree.open_slots} candidates asked for beyond the budget"
    if (
        not tree.limit
        and tree.open_slots + tree.pending > search.expansions_in_flight * search.candidates_per_expansion
    ):
        yield f"{tree.open_slots} open and {tree.pending} pending exceed what may be in flight"


def _pause(tree: Tree) -> Iterator[str]:
    if tree.paused and not tree.halted[0]:
        yield "paused by nothing"
    if tree.paused and tree.running:
        yield f"paused with {tree.open_slots} open and {tree.pending} pending"


def _best(tree: Tree) -> Iterator[str]:
    top = max((node.score_ppm for node in tree.passed()), default=0)
    best = tree.best.score_ppm if tree.best else 0
    if best != top:
        yield f"best is {best}, but a node has {top}"
    announced = ("improved", ESTIMATED)
    if tree.winner_id and (tree.outcome not in announced or tree.nodes[tree.winner_id].final is None):
        yield f"winner {tree.winner_id} without a final verdict"


def _reference(tree: Tree) -> Iterator[str]:
    reference = tree.reference
    if reference is None:
        return
    first = tree.nodes[reference.candidate_id]
    if not first.passed or first.score_ppm != PPM:
        yield f"the reference {reference.candidate_id} is {first.label} and scores {first.score_ppm}"
    if tree.outcome == "improved" and reference.basis is Basis.MODELLED:
        yield "improved by a model"


def _requests(tree: Tree) -> Iterator[str]:
    measured: dict[str, str] = {}
    for evaluation_id, request in tree.in_flight.items():
        node = tree.nodes.get(request.candidate_id)
        if node is None or request.evaluation_id != evaluation_id:
            yield f"evaluation {evaluation_id} measures nothing known"
        elif request.purpose is Purpose.SEARCH and node.stage is not Stage.PENDING:
            yield f"evaluation {evaluation_id} is in flight for {node.label} {node.candidate_id}"
        if request.candidate_id in measured:
            yield f"{request.candidate_id} is measured twice at once"
        measured[request.candidate_id] = evaluation_id


def _node(tree: Tree, key: str, node: Node) -> Iterator[str]:
    if key != node.candidate_id:
        yield f"{node.candidate_id} is filed under {key}"
    if any(parent not in tree.nodes for parent in node.parent_ids):
        yield f"{key} has an unknown parent"
    if (node.stage is Stage.DONE) != (node.evaluation is not None):
        yield f"{key} is {node.stage} with evaluation {node.evaluation is not None}"
    if node.score_ppm and not node.passed:
        yield f"{key} did not pass and scores {node.score_ppm}"
    if tree.kernels.get(node.kernel.kernel_id) != key:
        yield f"{key} holds a kernel of another candidate"


def _family(tree: Tree, name: str, offspring: Offspring, children: list[str]) -> Iterator[str]:
    if list(offspring.children) != children:
        yield f"{name} lists children {offspring.children}, has {children}"
    parent = "" if name == "root" else name
    waiting = sum(
        bool(e.open) and (e.request.parent_ids[0] if e.request.parent_ids else "") == parent
        for e in tree.expansions.values()
    )
    if offspring.open != waiting:
        yield f"{name} counts {offspring.open} open expansions, has {waiting}"
