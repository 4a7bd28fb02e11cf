"""Endpoints from a file or from variables; what is wrong with them is one clear line."""

from __future__ import annotations

import pytest

from shared.errors import UserError
from synthesizer_svc.model.capabilities import Caching, Protocol, Reasoning, SchemaOutput, Support
from synthesizer_svc.model.configuration import Authentication, read
from synthesizer_svc.model.prices import Prices
from synthesizer_svc.model.secret import Secret
from synthesizer_svc.settings import from_env

KEY = "sk-planted-0123456789"
ENVIRONMENT = {"VENDOR_API_KEY": f" {KEY}\n"}
FULL = """
[endpoints.large]
url = "https://api.example.com/v1/"
protocol = "anthropic"
model = "vendor-large-2"
key_env = "VENDOR_API_KEY"
authentication = "bearer"
weight = 3
concurrency = 2
connect_s = 5
silence_s = 60.5
sampling = { temperature = 1, top_p = 0.9 }
prices = { input = 3_000_000, output = 15_000_000, cached = 300_000, currency = "EUR" }

[endpoints.large.capabilities]
sampling = ["temperature", "top_p"]
seed = "no"
schema = "none"
caching = "automatic"
streaming = false
context_tokens = 200_000

[endpoints.local]
url = "http://127.0.0.1:8080/v1"
model = "qwen"
server = "llama.cpp"
prices = { input = 0, output = 0 , currency = "EUR" }
"""


@pytest.fixture
def parsed(tmp_path):
    def parse(text, environment=ENVIRONMENT):
        path = tmp_path / "models.toml"
        path.write_text(text)
        return read(path, environment)

    return parse


def endpoint(**lines):
    table = {"url": '"http://127.0.0.1:1/v1"', "model": '"m"'} | lines
    return "[endpoints.e]\n" + "\n".join(f"{name} = {value}" for name, value in table.items() if value)


def test_a_file_says_all_there_is_to_say(parsed):
    large, local = parsed(FULL)
    assert (large.name, large.url, large.model) == ("large", "https://api.example.com/v1", "vendor-large-2")
    assert (large.key, large.key_env, large.authentication) == (Secret(KEY), "VENDOR_API_KEY", Authentication.BEARER)
    assert (large.weight, large.concurrency, large.connect_s, large.silence_s) == (3, 2, 5.0, 60.5)
    assert large.sampling == {"temperature": 1, "top_p": 0.9}
    assert large.prices == Prices(input=3_000_000, output=15_000_000, cached=300_000, currency="EUR")
    can = large.capabilities
    assert (can.protocol, can.seed, can.schema) == (Protocol.ANTHROPIC, Support.NO, SchemaOutput.NONE)
    assert (can.caching, can.streaming, can.context_tokens) == (Caching.AUTOMATIC, False, 200_000)
    assert (local.key, local.server, local.prices.input) == (None, "llama.cpp", 0)
    assert (local.capabilities.seed, local.capabilities.reasoning) == (Support.YES, Reasoning.SHOWN)


@pytest.mark.parametrize(
    ("url", "server", "protocol", "authentication"),
    [
        ("https://api.openai.com/v1", "openai", Protocol.OPENAI, Authentication.BEARER),
        ("https://api.anthropic.com/v1", "anthropic", Protocol.ANTHROPIC, Authentication.X_API_KEY),
        ("https://models.example.com/v1", "compatible", Protocol.OPENAI, Authentication.BEARER),
    ],
)
def test_a_known_host_is_asked_as_its_documentation_says(parsed, url, server, protocol, authentication):
    (found,) = parsed(endpoint(url=f'"{url}"'))
    assert (found.server, found.capabilities.protocol, found.authentication) == (server, protocol, authentication)


def test_a_price_that_nobody_told_is_unknown(parsed):
    (found,) = parsed(endpoint())
    assert not found.prices.known


def test_a_key_may_be_in_a_file(parsed, tmp_path):
    (tmp_path / "key").write_text(f"{KEY}\n")
    (found,) = parsed(endpoint(key_file=f'"{tmp_path}/key"'))
    assert found.key == Secret(KEY)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names no endpoint"),
        ("x = [", "is not TOML"),
        ("[models.e]", "has `models`"),
        ("[endpoints.UPPER]", "name of a-z"),
        ("[endpoints]\ne = 1", "is not a table"),
        (endpoint(url=""), "endpoints.e: has no url"),
        (endpoint(model=""), "endpoints.e: has no model"),
        (endpoint(colour='"red"'), "unknown option `colour`"),
        (endpoint(weight='"3"'), "weight: is '3', expected an integer"),
        (endpoint(weight="true"), "weight: is True, expected an integer"),
        (endpoint(weight="0"), "limits must be positive"),
        (endpoint(protocol='"soap"'), "protocol: unknown value `soap`"),
        (endpoint(server='"abacus"'), "unknown server `abacus`"),
        (endpoint(authentication='"basic"'), "authentication: unknown value `basic`"),
        (endpoint(capabilities="{ seeds = 1 }"), "capabilities: unknown option `seeds`"),
        (endpoint(capabilities='{ seed = "maybe" }'), "seed: unknown value `maybe`"),
        (endpoint(capabilities='{ sampling = ["heat"] }'), "sampling names heat"),
        (endpoint(capabilities="{ context_tokens = -1 }"), "context_tokens is -1"),
        (endpoint(capabilities='{ limit_field = "max" }'), "limit_field is max"),
        (endpoint(prices="{ input = 1.5 }"), "input: is 1.5, expected an integer"),
        (endpoint(prices="{ input = -1 }"), "input is -1"),
        (endpoint(prices=f"{{ output = 1{'0' * 19} }}"), "expected 0 to 1000000000000"),
        (endpoint(sampling="{ top_k = 5 }"), "sampling sets top_k, which capabilities.sampling says is not accepted"),
        (endpoint(sampling='{ temperature = "hot" }'), "temperature: is 'hot', expected a number"),
        (endpoint(url='"ftp://h/v1"'), "is no http:// or https:// address"),
        (endpoint(url='"https://h:port/v1"'), "is no address"),
        (endpoint(url='"https://[::1/v1"'), "is no address"),
        (endpoint(url='"https://exa mple.com/v1"'), "url: is no address: it holds blanks or line ends"),
        (endpoint(url='"https://h/v1\\n"'), "url: is no address: it holds blanks or line ends"),
        (endpoint(silence_s="nan"), "silence_s: is nan, expected a number"),
        (endpoint(connect_s=f"1{'0' * 400}"), "connect_s: is inf, expected a number"),
        (endpoint(sampling="{ temperature = inf }"), "temperature: is inf, expected a number"),
        (endpoint(url=f'"https://me:{KEY}@h/v1"'), "carries a user or password"),
        (endpoint(url=f'"https://h/v1?key={KEY}"'), "carries a query"),
        (endpoint(url='"https://h/v1/chat/completions"'), "names a method"),
        (endpoint(key=f'"{KEY}"'), "holds a key: files get copied"),
        (endpoint(api_key=f'"{KEY}"'), "holds a api_key"),
        (endpoint(key_env='"NO_SUCH"'), "key_env: NO_SUCH: is not set"),
        (endpoint(key_file='"/no/such"'), "key_file: /no/such: cannot be read"),
        (endpoint(key_env=f'"{KEY}"'), "key_env: is no name of a variable"),
        (endpoint(key_file=f'"{KEY}"'), "key_file: cannot be read"),
        (endpoint(sampling="{ temperature = true }"), "temperature: is True, expected a number"),
        (endpoint(key_env='"A"', key_file='"b"'), "has both key_env and key_file"),
        (endpoint(key_env='"BROKEN_KEY"'), "holds what no key has"),
        (endpoint(url='"http://models.example.com/v1"', key_env='"VENDOR_API_KEY"'), "without TLS"),
        (FULL.replace('0 , currency = "EUR"', "0"), "prices are in EUR and USD"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_that_says_where(parsed, text, says):
    environment = ENVIRONMENT | {"BROKEN_KEY": f"{KEY} {KEY}"}
    with pytest.raises(UserError) as caught:
        parsed(text, environment)
    line = str(caught.value)
    assert says in line
    assert "models.toml" in line
    assert "\n" not in line
    assert KEY not in line


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read(tmp_path / "none.toml", {})


def test_a_key_may_travel_in_the_open_where_that_is_allowed_or_stays_at_home(parsed):
    plain = '"http://models.example.com/v1"'
    assert parsed(endpoint(url=plain, key_env='"VENDOR_API_KEY"', allow_plaintext="true"))
    assert parsed(endpoint(url=plain))
    assert parsed(endpoint(key_env='"VENDOR_API_KEY"'))


# --- one endpoint from variables --------------------------------------------------------------------------------------

SHORT = {"MODEL_URL": "https://api.example.com/v1", "MODEL_NAME": "m", "MODEL_API_KEY": KEY}


def test_three_variables_are_an_endpoint():
    (found,) = from_env(SHORT).endpoints
    assert (found.name, found.url, found.model, found.key) == ("default", SHORT["MODEL_URL"], "m", Secret(KEY))


def test_a_local_server_needs_no_key():
    (found,) = from_env({"MODEL_URL": "http://127.0.0.1:8080/v1", "MODEL_NAME": "m"}).endpoints
    assert found.key is None


def test_the_protocol_may_be_told():
    (found,) = from_env(SHORT | {"MODEL_PROTOCOL": "anthropic"}).endpoints
    assert found.capabilities.protocol is Protocol.ANTHROPIC


@pytest.mark.parametrize("url", ["", "none:", "scripted:x.json"])
def test_no_url_or_a_script_is_no_endpoint(url):
    assert from_env({"MODEL_URL": url}).endpoints == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"MODEL_NAME": ""}, "MODEL_NAME: is not set"),
        ({"MODEL_PROTOCOL": "soap"}, "MODEL_PROTOCOL: unknown value `soap`"),
        ({"MODEL_URL": f"https://me:{KEY}@h/v1"}, "MODEL_URL: carries a user or password"),
        (
            {"MODEL_URL": "http://models.example.com/v1"},
            "MODEL_URL: the key would go to models.example.com without TLS",
        ),
        ({"MODEL_URL": "https://exa mple.com/v1"}, "MODEL_URL: is no address: it holds blanks or line ends"),
        ({"MODEL_API_KEY": f"{KEY}\n{KEY}"}, "MODEL_API_KEY: holds what no key has"),
        ({"MODEL_ENDPOINTS": "models.toml"}, "MODEL_URL: is set, and MODEL_ENDPOINTS too"),
        ({"MODEL_BREAKER_OPEN_S": "0"}, "MODEL_BREAKER_OPEN_S: limits must be positive"),
        ({"MODEL_URL": f"https://[{KEY}/v1"}, "is no address"),
        ({"MODEL_BUDGET_COST": "1e-7"}, "MODEL_BUDGET_COST: a limit of money is below 0.000001"),
        ({"MODEL_BUDGET_DAY_COST": "-1e-9"}, "MODEL_BUDGET_DAY_COST: a limit is negative"),
        ({"MODEL_DEADLINE_S": "-1", "MODEL_SHARE_PERCENT": "10"}, "MODEL_DEADLINE_S: limits must be positive"),
        ({"MODEL_BUDGET_COST": "nan"}, "MODEL_BUDGET_COST: is 'nan', expected a number"),
        ({"MODEL_DEADLINE_S": "inf"}, "MODEL_DEADLINE_S: is 'inf', expected a number"),
    ],
)
def test_variables_that_make_no_endpoint_are_one_line(changes, says):
    with pytest.raises(UserError) as caught:
        from_env(SHORT | changes)
    assert says in str(caught.value)
    assert KEY not in str(caught.value)


def test_settings_can_be_written_without_their_key():
    assert KEY not in repr(from_env(SHORT))


NAMED = {"MODEL_URL": "http://127.0.0.1:1/v1", "MODEL_NAME": "m"}


def test_the_endpoint_of_variables_has_the_prices_of_variables():
    def prices(**told):
        (endpoint,) = from_env(NAMED | {f"MODEL_PRICES_{name}": value for name, value in told.items()}).endpoints
        return endpoint.prices

    assert prices() == Prices()
    assert not prices(INPUT="3000000").known
    assert prices(INPUT="0", OUTPUT="0").known
    assert prices(INPUT="3000000", OUTPUT="15000000", CACHED="300000", CURRENCY="EUR") == Prices(
        input=3_000_000, output=15_000_000, cached=300_000, currency="EUR"
    )


@pytest.mark.parametrize("price", ["-2", "cheap", "0.5"])
def test_a_price_that_is_none_names_its_variables(price):
    with pytest.raises(UserError, match="MODEL_PRICES_"):
        from_env(NAMED | {"MODEL_PRICES_INPUT": price})
