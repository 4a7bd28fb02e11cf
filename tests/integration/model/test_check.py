"""``kernelevolve models``: what is configured, and what an endpoint is found to do."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import pytest

from shared.clock import SystemClock
from synthesizer_svc.model import probes
from synthesizer_svc.model.capabilities import Caching, Capabilities, Protocol, SchemaOutput, Support
from synthesizer_svc.model.configuration import read
from synthesizer_svc.model.endpoints_file import written
from synthesizer_svc.model.opening import open_transport
from synthesizer_svc.model.probing import probe
from tests import model_server
from tests.aio import on_loop
from tests.fakes import endpoint_answers as endpoint
from tests.fakes.capable_endpoint import CapableEndpoint
from tests.fakes.fault_server import fault_server
from tests.integration.model.asking import settings_for

KEY = "sk-planted-0123456789"


async def probed(script, **changes):
    async with fault_server(script) as server:
        settings = settings_for(server, **changes)
        transport = open_transport(settings)
        try:
            report = await probe(settings, transport, SystemClock())
        finally:
            await transport.close()
    return report, server


def found(report) -> dict[str, str]:
    return {finding.what: finding.found for finding in report.findings}


@on_loop
async def test_a_good_server_is_found_to_be_one():
    report, _ = await probed(CapableEndpoint())
    can = report.settings.capabilities
    assert report.well
    assert (can.streaming, can.seed, can.schema, can.caching) == (
        True,
        Support.YES,
        SchemaOutput.SCHEMA,
        Caching.AUTOMATIC,
    )
    assert can.context_tokens == 4096
    assert found(report)["models listed"] == "m"


@on_loop
async def test_a_server_that_ignores_every_wish_is_found_out():
    claimed = Capabilities(seed=Support.YES, schema=SchemaOutput.SCHEMA, caching=Caching.AUTOMATIC)
    server = CapableEndpoint(streams=False, counts=False, seeded=False, schemas="", caches=False, context={})
    report, _ = await probed(server, capabilities=claimed)
    can = report.settings.capabilities
    assert (can.streaming, can.schema, can.caching) == (False, SchemaOutput.NONE, Caching.NONE)
    assert can.context_tokens == 0
    assert found(report)["repeats by seed"] == "no"
    assert found(report)["counts tokens (read / written)"] == "estimated here"
    assert report.usage.estimated


@on_loop
async def test_fields_that_are_refused_are_told_and_left_out():
    report, _ = await probed(CapableEndpoint(refuses=("seed", "stream_options"), schemas="json_object"))
    can = report.settings.capabilities
    assert (can.seed, can.stream_usage, can.schema) == (Support.NO, False, SchemaOutput.OBJECT)
    assert {"refuses seed", "refuses stream_usage"} <= set(found(report))
    assert report.well


@on_loop
async def test_a_server_that_cuts_prompts_without_a_word_is_found_out():
    report, _ = await probed(CapableEndpoint(context={}, caches=False, reads_words=512))
    assert not report.well
    assert "it read 512" in found(report)["reads whole prompts"]


@on_loop
async def test_a_key_that_is_refused_ends_the_questions():
    report, server = await probed(endpoint.answered(401, {"error": "Unauthorized"}))
    assert not report.well
    assert found(report)["answers"].startswith("credentials")
    assert len(server.received) == 2


@on_loop
async def test_the_questions_cost_no_more_than_is_told_before():
    for server in (
        CapableEndpoint(),
        CapableEndpoint(counts=False, schemas=""),
        endpoint.stream_of(endpoint.delta("x")),
    ):
        report, asked = await probed(server)
        bound, usage = probes.at_most(settings_for(asked)), report.usage
        assert usage.input_tokens <= bound.input_tokens
        assert usage.output_tokens <= bound.output_tokens
        assert 0 < usage.cost_micro <= bound.cost_micro
        assert len(asked.received) - 1 <= bound.requests


@on_loop
async def test_what_was_found_is_a_file_that_says_it_all(tmp_path):
    report, _ = await probed(CapableEndpoint(), sampling={"temperature": 0.5})
    path = tmp_path / "checked.toml"
    path.write_text(written((report.settings,)))
    assert read(path, {}) == (report.settings,)


@pytest.mark.timeout(300)
@on_loop
async def test_a_real_server_is_found_to_stream_to_repeat_to_follow_schemas_and_to_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(probes, "PREFIX_WORDS", dict.fromkeys(Protocol, 100))  # this model reads slowly
    path = tmp_path / "models.toml"
    path.write_text(f'[endpoints.local]\nurl = "{model_server.url()}"\nmodel = "{model_server.MODEL}"\nsilence_s = 200')
    (settings,) = read(path, {})
    transport = open_transport(settings)
    try:
        report = await probe(settings, transport, SystemClock())
    finally:
        await transport.close()
    can = report.settings.capabilities
    assert report.well, report.findings
    assert (can.streaming, can.seed, can.schema) == (True, Support.YES, SchemaOutput.SCHEMA)
    assert (can.caching, can.context_tokens) == (Caching.AUTOMATIC, model_server.CONTEXT_TOKENS)


# --- the command ------------------------------------------------------------------------------------------------------


async def run(*words, **variables):
    """Exit code, output and errors of ``kernelevolve models``."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MODEL_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cli.main", "models", *words,
        env=environment | {"COLUMNS": "200"} | variables,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@on_loop
async def test_the_command_shows_what_was_found_and_writes_it(tmp_path):
    path = tmp_path / "checked.toml"
    async with fault_server(CapableEndpoint()) as server:
        variables = {"MODEL_URL": server.url, "MODEL_NAME": "m", "MODEL_API_KEY": KEY}
        code, out, err = await run("check", "--write", str(path), **variables)
    assert (code, err) == (0, "")
    assert "at most" in out
    assert "cost at most unknown" in out
    assert "repeats by seed" in out
    text = path.read_text()
    assert 'key_env = "MODEL_API_KEY"' in text
    assert 'seed = "yes"' in text
    assert KEY not in out + text
    (again,) = read(path, {"MODEL_API_KEY": KEY})
    assert again.capabilities.context_tokens == 4096


@on_loop
async def test_the_command_fails_where_an_endpoint_does_and_names_no_key():
    echo = endpoint.answered(401, {"error": {"message": f"Incorrect API key: {KEY}", "code": "invalid_api_key"}})
    async with fault_server(echo) as server:
        variables = {"MODEL_URL": server.url, "MODEL_NAME": "m", "MODEL_API_KEY": KEY}
        code, out, err = await run("check", "--json", **variables)
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [line["well"] for line in lines if line["what"] == "answers"] == [False]
    assert "Incorrect API key" in out
    assert KEY not in out + err


@on_loop
async def test_a_key_among_the_names_of_models_is_not_shown():
    listed = endpoint.answered(200, {"data": [{"id": f"m {KEY}"}, {"id": KEY}]})
    async with fault_server(listed) as server:
        variables = {"MODEL_URL": server.url, "MODEL_NAME": "m", "MODEL_API_KEY": KEY}
        _, out, err = await run("check", "--json", **variables)
    assert "models listed" in out
    assert KEY not in out + err


@on_loop
async def test_the_command_lists_without_asking_anybody_or_showing_a_key(tmp_path):
    (tmp_path / "models.toml").write_text(
        '[endpoints.large]\nurl = "https://api.example.com/v1"\nmodel = "l-2"\nkey_env = "VENDOR_API_KEY"\nweight = 3\n'
        "prices = { input = 1_250_000, output = 10_000_000 }"
    )
    variables = {"MODEL_ENDPOINTS": str(tmp_path / "models.toml"), "VENDOR_API_KEY": KEY}
    code, out, _ = await run("list", **variables)
    assert code == 0
    assert "VENDOR_API_KEY" in out
    assert "1.250000 / 10.000000 USD per million" in out
    _, as_json, _ = await run("list", "--json", **variables)
    assert json.loads(as_json)["weight"] == 3
    assert KEY not in out + as_json


@pytest.mark.parametrize(
    ("words", "variables", "says"),
    [
        (["list"], {}, "no endpoint is configured"),
        (
            ["check", "other"],
            {"MODEL_URL": "http://127.0.0.1:1/v1", "MODEL_NAME": "m"},
            "no endpoint of the name other",
        ),
        (
            ["check", "--write", "/nowhere/checked.toml"],
            {"MODEL_URL": "http://127.0.0.1:1/v1", "MODEL_NAME": "m"},
            "/nowhere/checked.toml: cannot be written",
        ),
        (["check"], {"MODEL_URL": "http://127.0.0.1:1/v1"}, "MODEL_NAME: is not set"),
        (["check"], {"MODEL_URL": f"https://me:{KEY}@h/v1", "MODEL_NAME": "m"}, "carries a user or password"),
    ],
)
@on_loop
async def test_what_cannot_be_listed_or_checked_is_one_line(words, variables, says):
    code, out, err = await run(*words, **variables)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1
    assert KEY not in err
