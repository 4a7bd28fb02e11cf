"""``kernelevolve models``: what is configured, and what an endpoint is found to do."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys

import pytest

from shared.adapters import open_store
from shared.clock import SystemClock
from synthesizer_svc.model import probes
from synthesizer_svc.model.capabilities import Caching, Capabilities, Protocol, SchemaOutput, Support
from synthesizer_svc.model.configuration import read
from synthesizer_svc.model.endpoints_file import written
from synthesizer_svc.model.faults import DETAIL_CHARS
from synthesizer_svc.model.ledger import ENTRIES, Ledger
from synthesizer_svc.model.opening import open_transport
from synthesizer_svc.model.probing import probe
from synthesizer_svc.model.secret import Secret
from tests import model_server
from tests.aio import on_loop
from tests.fakes import endpoint_answers as endpoint
from tests.fakes.capable_endpoint import CapableEndpoint
from tests.fakes.dialect_scripts import stream_of
from tests.fakes.fault_server import Script, Wire, fault_server
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


def cut_every_other_time(inner: Script) -> Script:
    """Before any byte; the list of models does not count."""
    asked = itertools.count()

    async def script(wire: Wire) -> None:
        if wire.request.method == "POST" and next(asked) % 2 == 0:
            return wire.close()
        return await inner(wire)

    return script


@on_loop
async def test_the_questions_cost_no_more_than_is_told_before():
    for server in (
        CapableEndpoint(),
        CapableEndpoint(counts=False, schemas=""),
        cut_every_other_time(CapableEndpoint(counts=False, schemas="", context={})),
        stream_of(endpoint.delta("x")),
    ):
        report, asked = await probed(server)
        bound, usage = probes.at_most(settings_for(asked)), report.usage
        assert usage.input_tokens <= bound.input_tokens
        assert usage.output_tokens <= bound.output_tokens
        assert 0 < usage.cost_micro <= bound.cost_micro
        assert len(asked.received) - 1 <= bound.requests * probes.ATTEMPTS_MAX


@on_loop
async def test_a_list_of_models_that_redirects_is_not_followed_with_the_key():
    async with fault_server(endpoint.answered(200, {"data": []})) as elsewhere:
        away = endpoint.answered(302, b"", f"location: {elsewhere.url}/models")
        report, server = await probed(away, key=Secret(KEY))
        assert elsewhere.connections == 0
    assert "a redirect (302), which is not followed" in found(report)["models listed"]
    assert any(KEY in value for value in server.received[0].headers.values())
    assert not report.well


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


@pytest.mark.parametrize("before", range(DETAIL_CHARS - len(KEY) - 8, DETAIL_CHARS, 3))
@on_loop
async def test_a_key_within_which_what_is_shown_ends_is_not_shown_in_part(before):
    report, _ = await probed(endpoint.answered(401, f"{'x' * before}{KEY}".encode()), key=Secret(KEY))
    assert not report.well
    assert not any(KEY[:8] in finding.found for finding in report.findings)


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
        (
            ["check"],
            {"MODEL_URL": "localhost:8080/v1", "MODEL_NAME": "m"},
            "MODEL_URL: unknown model scheme `localhost`",
        ),
    ],
)
@on_loop
async def test_what_cannot_be_listed_or_checked_is_one_line(words, variables, says):
    code, out, err = await run(*words, **variables)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1
    assert KEY not in err


@on_loop
async def test_a_script_is_told_to_be_no_endpoint(tmp_path):
    (tmp_path / "answers.json").write_text('{"answers": []}')
    code, out, err = await run("list", MODEL_URL=f"scripted:{tmp_path}/answers.json")
    assert (code, out) == (2, "")
    assert "MODEL_URL: is a script, which is no endpoint" in err


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"MODEL_URL": "http://xn--/v1"}, "model endpoint 'http://xn--/v1': is no address"),
        ({"HTTP_PROXY": "socks5://127.0.0.1:1"}, "names a SOCKS proxy (pip install 'httpx[socks]')"),
        ({"HTTP_PROXY": f"gopher://me:{KEY}@127.0.0.1"}, "names no proxy that can be used"),
        ({"SSL_CERT_FILE": "/nowhere.pem"}, "SSL_CERT_FILE or SSL_CERT_DIR: cannot be read as certificates"),
    ],
)
@on_loop
async def test_what_cannot_be_connected_to_at_all_is_one_line_that_names_what_is_wrong(variables, says):
    code, _, err = await run("check", **{"MODEL_URL": "http://nowhere.invalid/v1", "MODEL_NAME": "m"} | variables)
    assert code == 2
    assert says in err
    assert len(err.splitlines()) == 1
    assert KEY not in err


# --- who pays ---------------------------------------------------------------------------------------------------------


def questions(server) -> int:
    return sum(request.method == "POST" for request in server.received)


async def of_the_day(url: str) -> int:
    """Tokens of all accounts of days."""
    async with open_store(url) as store:
        names = {key.rpartition("/")[0] async for key, _ in store.documents.scan(ENTRIES)}
        ledger = Ledger(store.documents)
        accounts = [ledger.account(name) for name in names]
        for account in accounts:
            await ledger.catch_up(account)
    assert all(name.startswith("day/") for name in names)
    assert not any(account.open for account in accounts)
    return sum(account.spent.tokens for account in accounts)


@on_loop
async def test_a_check_is_paid_by_the_days_budget_and_not_begun_where_that_is_spent(tmp_path):
    days = f"sqlite:{tmp_path / 'budgets.db'}"
    async with fault_server(CapableEndpoint()) as server:
        variables = {"MODEL_URL": server.url, "MODEL_NAME": "m", "MODEL_BUDGET_DAYS_URL": days}
        code, out, _ = await run("check", "--json", **variables, MODEL_BUDGET_DAY_TOKENS="1000000")
        assert code == 0, out
        spent, asked = await of_the_day(days), questions(server)
        assert spent > 1000
        code, out, _ = await run("check", "--json", **variables, MODEL_BUDGET_DAY_TOKENS=str(spent))
        refused = [json.loads(line) for line in out.splitlines()][-1]
        assert (code, questions(server)) == (1, asked)
    assert (refused["what"], refused["well"]) == ("answers", False)
    assert refused["found"].startswith("budget: the budget of ")
    assert f"{spent:,} are spent" in refused["found"]
    assert "MODEL_BUDGET_DAY_" in refused["found"]
    assert await of_the_day(days) == spent


@on_loop
async def test_a_check_ends_before_it_exceeds_the_days_budget_and_writes_nothing_half_found(tmp_path):
    days, path = f"sqlite:{tmp_path / 'budgets.db'}", tmp_path / "checked.toml"
    bound = 5_000  # the short questions fit, and the long prefix does not
    async with fault_server(CapableEndpoint(context={})) as server:
        variables = {"MODEL_URL": server.url, "MODEL_NAME": "m", "MODEL_BUDGET_DAYS_URL": days}
        code, out, _ = await run(
            "check", "--json", "--write", str(path), **variables, MODEL_BUDGET_DAY_TOKENS=str(bound)
        )
        asked = questions(server)
    last = [json.loads(line) for line in out.splitlines()][-1]
    assert (code, last["what"]) == (1, "caches a prefix")
    assert last["found"].startswith("budget: ")
    assert asked == 5
    assert 0 < await of_the_day(days) <= bound
    assert read(path, {})[0].capabilities.seed is Support.UNKNOWN


@on_loop
async def test_a_budget_of_money_is_no_leave_to_ask_what_has_no_price(tmp_path):
    async with fault_server(CapableEndpoint()) as server:
        variables = {"MODEL_URL": server.url, "MODEL_NAME": "m", "XDG_DATA_HOME": str(tmp_path)}
        code, out, _ = await run("check", "--json", **variables, MODEL_BUDGET_DAY_COST="100")
        assert (code, questions(server)) == (1, 0)
    assert "configure prices, or limit tokens instead" in out
    assert (tmp_path / "kernelevolve" / "budgets.db").exists(), "the days' accounts are where searches have them"


@on_loop
async def test_a_check_on_a_day_without_a_budget_keeps_no_account(tmp_path):
    async with fault_server(CapableEndpoint()) as server:
        variables = {"MODEL_URL": server.url, "MODEL_NAME": "m", "XDG_DATA_HOME": str(tmp_path)}
        code, _, _ = await run("check", **variables)
    assert code == 0
    assert not list(tmp_path.iterdir())


@on_loop
async def test_an_account_that_cannot_be_opened_is_one_line_and_nothing_is_asked(tmp_path):
    (tmp_path / "budgets.db").write_text("no database, and longer than the head of one " * 10)
    async with fault_server(CapableEndpoint()) as server:
        variables = {"MODEL_URL": server.url, "MODEL_NAME": "m", "MODEL_BUDGET_DAY_TOKENS": "1000000"}
        code, _, err = await run("check", **variables, MODEL_BUDGET_DAYS_URL=f"sqlite:{tmp_path / 'budgets.db'}")
        assert questions(server) == 0
    assert code == 2
    assert "budgets.db" in err
    assert len(err.splitlines()) == 1
