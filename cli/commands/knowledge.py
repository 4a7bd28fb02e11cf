"""``kernelevolve knowledge``: search, list and extend what the synthesizer is told."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Table

from knowledge_svc import library, recall, settings
from knowledge_svc.librarian import Librarian
from shared.errors import UserError
from shared.events import Bound
from shared.json_codec import to_plain
from shared.knowledge import KnowledgeQuery


@click.group("knowledge")
def command() -> None:
    """Search, list and add documents.

    \b
    Example:
      kernelevolve knowledge search "online softmax" --bound compute
    """


@command.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--chip", default="cpu-x86_64", show_default=True)
@click.option("--language", default="cpp", show_default=True)
@click.option("--operator-class", default="", help="pointwise, reduction, scan, contraction, gather or window.")
@click.option("--bound", default="unknown", type=click.Choice([b.value for b in Bound]), help="What limits the kernel.")
@click.option("--error", default="", help="Error signature of a failed kernel.")
@click.option("--limit", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per passage.")
def search(
    words: tuple[str, ...],
    chip: str,
    language: str,
    operator_class: str,
    bound: str,
    error: str,
    limit: int,
    as_json: bool,
) -> None:
    """Show the passages a synthesizer would be given for WORDS.

    \b
    Example:
      kernelevolve knowledge search accumulators --operator-class reduction --bound latency
    """
    query = KnowledgeQuery(
        chip=chip,
        language=language,
        operator_class=operator_class,
        bound=Bound(bound),
        error=error,
        words=" ".join(words),
    )
    librarian = Librarian(settings.from_env(os.environ).all_folders)
    try:
        passages = librarian.retrieve(query, limit)
    finally:
        librarian.close()
    if as_json:
        for passage in passages:
            fields = {"document_id": passage.document_id, "title": passage.title, "text": passage.text}
            click.echo(json.dumps(fields | {"score": passage.score}))
        return
    console = Console()
    if not passages:
        console.print("nothing found")
    for passage in passages:
        console.rule(f"{passage.title}  [dim]({passage.document_id})[/dim]")
        console.print(Markdown(passage.text))


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per document.")
def list_(as_json: bool) -> None:
    """List every document: the built-in ones, those on KNOWLEDGE_PATH and your own.

    \b
    Example:
      kernelevolve knowledge list
    """
    documents = library.load(settings.from_env(os.environ).all_folders)
    if as_json:
        for document in documents:
            click.echo(json.dumps({"id": document.id, "title": document.title, "summary": document.summary}))
        return
    table = Table(box=None, header_style="bold")
    for column in ("id", "title", "summary"):
        table.add_column(column)
    for document in documents:
        table.add_row(document.id, document.title, document.summary)
    Console().print(table)


@command.command("add")
@click.argument("file", type=click.Path(path_type=Path))
def add(file: Path) -> None:
    """Add FILE, Markdown with front matter, to your own documents; every later search may quote it.

    \b
    Example:
      kernelevolve knowledge add notes/my-chip.md
    """
    folder = settings.from_env(os.environ).user_folder
    if folder is None:
        raise UserError(
            "documents are kept in the store that STORE_URL names",
            where="knowledge add",
            hint="put them there over gRPC (PutDocument), or in a folder on KNOWLEDGE_PATH",
        )
    click.echo(f"added {library.add(file, folder)}")


@command.command("skills")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per skill.")
def skills(as_json: bool) -> None:
    """List what earlier searches have shown about moves: claims, their evidence and what was retracted.

    \b
    Example:
      kernelevolve knowledge skills
    """
    known = asyncio.run(recall.skills(settings.from_env(os.environ)))
    if as_json:
        for skill in known:
            click.echo(json.dumps(to_plain(skill)))
        return
    console = Console()
    if not known:
        console.print("no search has shown anything yet")
    for skill in known:
        evidence = f"for: {len(skill.evidence_for)}, against: {len(skill.evidence_against)}"
        console.print(
            f"[bold]{skill.skill_id}[/bold] {escape(skill.statement)} [dim]({evidence})[/dim]", highlight=False
        )
