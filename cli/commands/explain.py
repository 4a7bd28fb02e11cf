"""``kernelevolve explain``: why each node was tried, what it saw, what changed, what was measured."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as RichTree

from cli import conversations, estimates, history, spending
from cli.legible import legible
from cli.progress import ratio
from search_svc import story
from search_svc.tree import Node, Tree
from shared.errors import UserError
from shared.events import CandidateRejected, Entry, Evaluation, Usage
from shared.usage import by_a_model, cost_text, in_words

ID_SHOWN = 8
LINE_CHARS = 160


@click.command("explain")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("node", required=False)
@click.option("--prompt", is_flag=True, help="Print what a model was asked for NODE and what it answered.")
@click.option("--source", is_flag=True, help="Print the node's whole source instead of the difference to its parent.")
def command(run: Path, node: str | None, prompt: bool, source: bool) -> None:
    """Tell the story of RUN, or of one NODE of it (an id, or the beginning of one; with --prompt also of an answer that
    was rejected before it was evaluated).

    \b
    Examples:
      kernelevolve explain runs/latest
      kernelevolve explain runs/latest 3fa9
      kernelevolve explain runs/latest 3fa9 --prompt
    """
    past = asyncio.run(history.open_past(run))
    tree = past.tree
    console = Console()
    if node is None:
        if prompt:
            raise UserError("needs a node", where="--prompt", hint="`kernelevolve explain RUN` lists them")
        console.print(overview(tree, conversations.rejected(past.entries)))
        return
    if prompt:
        show_conversation(console, past, find(tree, node).candidate_id if node == "best" else node)
        return
    _require_evaluated(past, tree, node)
    chosen = find(tree, node)
    for line in story.of_node(tree, chosen.candidate_id):
        console.print(legible(line), highlight=False, markup=False)
    console.print(facts(tree, chosen))
    if chosen.evaluation:
        timed = "evaluation of the search" if chosen.evaluation.estimate else "search measurement"
        console.print(measurements(timed, chosen.evaluation))
    if chosen.final:
        again = "checked again on fresh inputs" if chosen.final.estimate else "re-measured in fresh processes"
        console.print(measurements(again, chosen.final))
    text = past.blobs[chosen.kernel.source_hash].decode()
    if source:
        console.print(Syntax(legible(text), "cpp", word_wrap=True))
    else:
        console.print(Syntax(difference(tree, chosen, past.blobs), "diff", word_wrap=True))


def find(tree: Tree, prefix: str) -> Node:
    """The one node whose id begins with ``prefix``; ``best`` is the winner or the best so far.

    Raises:
        UserError: none, or several.
    """
    wanted = (tree.winner_id or tree.best_id) if prefix == "best" else prefix
    matches = [node for name, node in tree.nodes.items() if wanted and name.startswith(wanted)]
    if len(matches) != 1:
        what = f"{len(matches)} nodes begin with `{prefix}`" if matches else f"no node `{prefix}`"
        raise UserError(what, where="explain", hint="`kernelevolve explain RUN` lists them")
    return matches[0]


def _require_evaluated(past: history.Past, tree: Tree, prefix: str) -> None:
    """Raises ``UserError`` for an answer that was rejected before it was evaluated: it has no measurements to show."""
    if any(name.startswith(prefix) for name in tree.nodes):
        return
    for fact in conversations.facts(past.entries):
        if isinstance(fact, CandidateRejected) and fact.candidate_id.startswith(prefix):
            asked = "--prompt shows what was asked and answered" if fact.context.conversation_hash else ""
            what = f"was rejected before it was evaluated: {fact.code}: {legible(fact.detail)}"
            raise UserError(what, where=f"candidate {fact.candidate_id}", hint=asked)


def show_conversation(console: Console, past: history.Past, node: str) -> None:
    """Print the exchange that led to ``node``.

    Raises:
        UserError: there is no such candidate, or no model was asked for it.
    """
    fact = conversations.find(past.entries, node)
    held = conversations.of(fact, past.blobs)
    if held is None:
        raise UserError("no model was asked for it", where=f"candidate {fact.candidate_id}")
    for line in held.lines:
        said = legible(line.get("text") or line.get("detail") or "")
        console.print(legible(heading(line)), style="bold", highlight=False, markup=False)
        console.print(said, highlight=False, markup=False, soft_wrap=True)
    code = f"rejected: {fact.code}" if isinstance(fact, CandidateRejected) else f"kernel {fact.kernel.kernel_id}"
    console.print(f"== {code}; {in_words(fact.usage)}", style="bold", highlight=False, markup=False)


def heading(line: Mapping[str, Any]) -> str:
    """What one line of a conversation is."""
    facts = {
        "asked for": line.get("asking"),
        "endpoint": line.get("endpoint"),
        "model": line.get("model"),
        "read as": line.get("code") if line["role"] == "outcome" else None,
        "code": line.get("code") if line["role"] == "error" else None,
        "on record as": line.get("request"),
        "truncated": "yes" if line.get("truncated") else None,
        "refused": "yes" if line.get("refused") else None,
        "schema": "yes" if line.get("schema") else None,
    }
    told = ", ".join(f"{name}: {value}" for name, value in facts.items() if value)
    return f"== {line['role']}" + (f" ({told})" if told else "")


def overview(tree: Tree, rejected: Sequence[CandidateRejected] = ()) -> RichTree:
    """The whole tree, a line per node, and the answers of models that were rejected before evaluation."""
    summary = f"{tree.search.operator.name} on {tree.search.chip}, policy {tree.search.policy}: {_standing(tree)}"
    spent = f"\nmodels: {in_words(tree.spent)}" if by_a_model(tree.spent) else ""
    root = RichTree(Text(summary + spent))
    branches: dict[str, RichTree] = {}
    for node in tree.nodes.values():
        above = branches.get(node.parent_ids[0], root) if node.parent_ids else root
        branches[node.candidate_id] = above.add(label(tree, node), highlight=False)
    if rejected:
        aside = root.add(f"{len(rejected)} answers rejected before evaluation", highlight=False)
        for fact in rejected:
            aside.add(Text(legible(f"{fact.candidate_id[:ID_SHOWN]} {fact.code}: {fact.detail}")[:LINE_CHARS]))
    return root


def _standing(tree: Tree) -> str:
    if tree.outcome:
        return f"{tree.outcome} ({tree.reason})"
    return f"paused ({tree.halted[0]}: {tree.halted[1]})" if tree.paused else "unfinished"


def label(tree: Tree, node: Node) -> str:
    """One line: id, what changed, status, speedup, whether it is the winner, and what a model's part in it cost."""
    estimate = node.evaluation.estimate if node.evaluation else None
    basis = f" {estimate.basis.value}" if estimate else ""
    speed = f" {ratio(node.score_ppm)}{basis}" if node.passed else ""
    pruned = f" [dim]pruned: {node.pruned}[/dim]" if node.pruned else ""
    won = " [bold green]winner[/bold green]" if node.candidate_id == tree.winner_id else ""
    colour = "green" if node.passed else "red" if node.failed else "yellow"
    status = f"[{colour}]{node.label}{speed}[/{colour}]"
    return f"{node.candidate_id[:ID_SHOWN]} {escape(node.move.name)} {status}{pruned}{won}{_bill(node.usage)}"


def _bill(usage: Usage) -> str:
    if not by_a_model(usage):
        return ""
    tokens = usage.input_tokens + usage.output_tokens
    return f" [dim]{tokens:,} tokens, cost {cost_text(usage.cost_micro)}[/dim]"


def facts(tree: Tree, node: Node) -> Table:
    """Why it was tried, with the numbers, and what its writer saw."""
    table = Table(box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    context = node.context
    rows = {
        "move": node.move.name,
        "rationale": node.move.rationale,
        "parameters": listed(node.move.parameters),
        "parents": ", ".join(node.parent_ids) or "none: a draft",
        "why its parent was chosen": listed(node.reasons),
        "memory": context.memory.value,
        "diagnosis it acted on": context.diagnosis.value,
        "siblings seen": ", ".join(i[:ID_SHOWN] for i in context.sibling_ids),
        "failures seen": ", ".join(i[:ID_SHOWN] for i in context.negative_ids),
        "documents seen": ", ".join(context.document_ids),
        "skills seen": ", ".join(context.skill_ids),
        "asked": ", ".join(part for part in (context.asking, context.endpoint, context.model) if part),
        "prompt": context.prompt_hash,
        "conversation": f"{context.conversation_hash}; --prompt shows it" if context.conversation_hash else "",
        "writing cost": spending.cell(node.usage),
        "of that": spending.by_endpoint(node.usage),
        "kernel": f"{node.kernel.language} {node.kernel.kernel_id}, flags {' '.join(node.kernel.flags)}",
        "children": f"{len(node.offspring.children)} from {node.offspring.expansions} expansions",
        "pruned": node.pruned,
    }
    for name, value in rows.items():
        if value:
            table.add_row(name, Text(legible(value)))
    assert node.candidate_id in tree.nodes
    return table


def measurements(title: str, evaluation: Evaluation) -> Table:
    """Verdict, times, roofline and diagnosis."""
    table = Table(title=title, title_justify="left", box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("status", f"{evaluation.status.value}, trust {evaluation.trust.value}")
    for entry in evaluation.evidence:
        table.add_row(Text(legible(entry.name)), Text(legible(entry.value)))
    for timing in evaluation.timings:
        cold = f", cold {timing.cold_ns / 1e3:.1f} µs" if timing.cold_ns else ""
        table.add_row(
            f"time {timing.name}", f"{timing.median_ns / 1e3:.1f} µs over {len(timing.block_ns)} blocks{cold}"
        )
    for speedup in evaluation.speedups:
        interval = f"{ratio(speedup.low_ppm)} to {ratio(speedup.high_ppm)}"
        table.add_row(f"speedup over {speedup.baseline}", f"{ratio(speedup.ratio_ppm)}, 99.4 % interval {interval}")
    if evaluation.estimate is not None:
        found = evaluation.estimate
        table.add_row("cost", Text(legible(f"{estimates.cost(found)}: {estimates.MEANING[found.basis]}")))
        if found.counts:
            table.add_row("counts", Text(legible(estimates.counts(found.counts))))
    roofline = evaluation.roofline
    if roofline.floor_ns:
        share = f"{roofline.fraction_ppm / 1e4:.0f} % of the speed of light ({roofline.floor_ns / 1e3:.1f} µs)"
        table.add_row("roofline", share)
    diagnosis = evaluation.diagnosis
    if diagnosis.summary:
        table.add_row("bound by", Text(legible(f"{diagnosis.bound.value}: {diagnosis.summary}")))
    if diagnosis.evidence:
        table.add_row("because", Text(legible(listed(diagnosis.evidence))))
    table.add_row("sandbox", Text(evaluation.sandbox))
    return table


def difference(tree: Tree, node: Node, blobs: Mapping[str, bytes]) -> str:
    """Unified diff of the node's source to its first parent's; the whole source of a draft."""
    mine = blobs[node.kernel.source_hash].decode()
    parent = tree.nodes.get(node.parent_ids[0]) if node.parent_ids else None
    theirs = blobs[parent.kernel.source_hash].decode() if parent else ""
    before = f"parent {parent.candidate_id[:ID_SHOWN]}" if parent else "nothing"
    lines = difflib.unified_diff(theirs.splitlines(), mine.splitlines(), before, f"node {node.candidate_id[:ID_SHOWN]}")
    return "\n".join(legible(line.rstrip("\n")) for line in lines)


def listed(entries: tuple[Entry, ...]) -> str:
    """``a = 1, b = 2``."""
    return ", ".join(f"{entry.name} = {entry.value}" for entry in entries)
