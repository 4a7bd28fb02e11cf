"""``kernelevolve models``: which models are configured, and what their endpoints really do."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shared.clock import SystemClock
from shared.errors import UserError
from shared.settings import PortSettings
from shared.settings import from_env as ports_from_env
from shared.usage import cost_text, in_words
from synthesizer_svc import settings
from synthesizer_svc.model import probes
from synthesizer_svc.model.configuration import EndpointSettings
from synthesizer_svc.model.endpoints_file import written
from synthesizer_svc.model.opening import open_transport, paid_by_the_day, scripted
from synthesizer_svc.model.prices import Prices
from synthesizer_svc.model.probing import Report, probe


@click.group("models")
def command() -> None:
    """List the models that MODEL_URL or MODEL_ENDPOINTS name, and check what their endpoints do.

    \b
    Example:
      MODEL_URL=http://127.0.0.1:8080/v1 MODEL_NAME=local kernelevolve models check
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per endpoint.")
def list_(as_json: bool) -> None:
    """List the configured endpoints. Nothing is asked, and no key is shown.

    \b
    Example:
      MODEL_ENDPOINTS=models.toml kernelevolve models list
    """
    endpoints = _configured()
    if as_json:
        for endpoint in endpoints:
            click.echo(json.dumps(_plain(endpoint)))
        return
    table = Table(box=None, header_style="bold")
    for column in ("name", "model", "url", "server", "key", "weight", "context", "price in / out"):
        table.add_column(column)
    for endpoint in endpoints:
        table.add_row(
            endpoint.name,
            escape(endpoint.model),
            escape(endpoint.url),
            f"{endpoint.server} ({endpoint.capabilities.protocol})",
            escape(endpoint.key_env or endpoint.key_file) or "none",
            str(endpoint.weight),
            f"{endpoint.capabilities.context_tokens:,}" if endpoint.capabilities.context_tokens else "unknown",
            _price(endpoint.prices),
        )
    Console().print(table)


@command.command("check")
@click.argument("name", required=False)
@click.option("--write", "file", type=click.Path(path_type=Path), help="Write all endpoints with what was found: TOML.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per finding.")
def check(name: str | None, file: Path | None, as_json: bool) -> None:
    """Ask the endpoint NAME, or every one, a few short questions that show what it does.

    They find out whether it can be reached and takes the key, knows the model, streams, counts tokens, repeats an
    answer by its seed, follows a JSON schema, and caches a prefix. The most that they can cost is told before, and the
    day's budget (MODEL_BUDGET_DAY_COST, MODEL_BUDGET_DAY_TOKENS) pays: what would exceed it is not asked.

    \b
    Example:
      MODEL_ENDPOINTS=models.toml kernelevolve models check large --write checked.toml
    """
    endpoints = _configured()
    chosen = [endpoint for endpoint in endpoints if name in (None, endpoint.name)]
    if not chosen:
        known = ", ".join(endpoint.name for endpoint in endpoints)
        raise UserError(f"no endpoint of the name {name}", where="models check", hint=f"known: {known}")
    if file is not None:
        _require_fresh(file)
    found = {endpoint.name: endpoint for endpoint in endpoints}
    well = True
    for endpoint in chosen:
        report = asyncio.run(_probe(endpoint, quiet=as_json))
        found[endpoint.name] = report.settings
        well = well and report.well
        _show(report, as_json)
    if file is not None:
        try:
            file.write_text(written(tuple(found.values())), encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot be written: {error.strerror}", where=str(file)) from error
        click.echo(f"wrote {file}", err=as_json)
    sys.exit(0 if well else 1)


def _require_fresh(file: Path) -> None:
    """Before questions are paid for."""
    if file.exists():
        raise UserError("exists already", where=str(file), hint="its comments would be lost; name another file")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise UserError("cannot be written: its folder is missing or read-only", where=str(file))


async def _probe(endpoint: EndpointSettings, *, quiet: bool) -> Report:
    bound = probes.at_most(endpoint)
    if not quiet:
        click.echo(
            f"{endpoint.name}: {endpoint.model} at {endpoint.url}: {bound.requests} questions, at most "
            f"{bound.input_tokens:,} tokens read and {bound.output_tokens:,} written, "
            f"cost at most {cost_text(bound.cost_micro)} {endpoint.prices.currency}"
        )
    budget, clock = settings.budget(os.environ), SystemClock()
    store_url = ports_from_env(PortSettings, os.environ).store_url
    transport = open_transport(endpoint)
    try:
        async with paid_by_the_day(budget, store_url, clock) as payer:
            return await probe(endpoint, transport, clock, payer)
    finally:
        await transport.close()


def _show(report: Report, as_json: bool) -> None:
    if as_json:
        for finding in report.findings:
            click.echo(json.dumps({"endpoint": report.settings.name} | asdict(finding)))
        return
    table = Table(box=None, header_style="bold")
    for column in ("", "configured", "found"):
        table.add_column(column, overflow="fold")
    for finding in report.findings:
        style = "" if finding.well else "red"
        table.add_row(finding.what, escape(finding.claimed), escape(finding.found), style=style)
    console = Console()
    console.print(table)
    console.print(f"used: {in_words(report.usage)}", highlight=False)


def _configured() -> Sequence[EndpointSettings]:
    told = settings.from_env(os.environ)
    endpoints = told.endpoints
    if not endpoints:
        if scripted(told.model.url) is not None:  # which says so itself where the URL is none that is known
            raise UserError("is a script, which is no endpoint", where="MODEL_URL", hint="nothing needs to be checked")
        hint = "set MODEL_URL and MODEL_NAME, or MODEL_ENDPOINTS to a file; see docs/models.md"
        raise UserError("no endpoint is configured", where="models", hint=hint)
    return endpoints


def _plain(endpoint: EndpointSettings) -> dict[str, object]:
    return {
        "name": endpoint.name,
        "url": endpoint.url,
        "model": endpoint.model,
        "server": endpoint.server,
        "key_env": endpoint.key_env,
        "key_file": endpoint.key_file,
        "weight": endpoint.weight,
        "concurrency": endpoint.concurrency,
        "capabilities": asdict(endpoint.capabilities),
        "prices": asdict(endpoint.prices),
    }


def _price(prices: Prices) -> str:
    if prices.input is None or prices.output is None:
        return "unknown"
    return f"{cost_text(prices.input)} / {cost_text(prices.output)} {prices.currency} per million"
