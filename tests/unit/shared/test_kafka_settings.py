"""Addresses of Kafka clusters, and limits that do not fit together."""

from __future__ import annotations

import pytest

from shared.bus.kafka_settings import KafkaSettings, parse
from shared.errors import UserError
from shared.settings import from_env


def test_an_address_names_brokers_and_who_we_are() -> None:
    plain = parse("kafka://one:9092,two:9093")
    assert (plain.servers, plain.protocol) == (("one:9092", "two:9093"), "PLAINTEXT")
    assert parse("kafka://one").servers == ("one:9092",)
    assert parse("kafka://[::1],[::1]:7").servers == ("[::1]:9092", "[::1]:7")
    user = parse("kafka://me:p%40ss@one:9092?sasl=plain")
    assert (user.user, user.password, user.mechanism, user.protocol) == ("me", "p@ss", "PLAIN", "SASL_PLAINTEXT")
    assert parse("kafkas://one:9092").protocol == "SSL"
    assert parse("kafkas://me:pw@one:9092").protocol == "SASL_SSL"


@pytest.mark.parametrize(
    "url",
    [
        "kafka://",
        "kafka://me:secret@",
        "kafka://me:secret@one:port",
        "kafka://me:secret@one:1?what=1",
        "kafka://me:secret@one:1/topic",
        "kafka://me:secret@one:1?sasl=magic",
        "kafkas://me:secret@one:1?ca=/no/such/file",
    ],
)
def test_a_bad_address_is_one_line_without_the_password(url: str) -> None:
    with pytest.raises(UserError, match="BUS_URL") as caught:
        parse(url)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_password_is_never_shown() -> None:
    assert "secret" not in repr(parse("kafka://me:secret@one:1"))


@pytest.mark.parametrize(
    "environment",
    [
        {"KAFKA_SESSION_TIMEOUT_MS": "3000"},
        {"KAFKA_REBALANCE_TIMEOUT_MS": "60000"},
        {"KAFKA_FETCH_MAX_WAIT_MS": "0"},
        {"KAFKA_REPLICATION": "0"},
    ],
)
def test_limits_that_do_not_fit_together_name_the_variable(environment: dict[str, str]) -> None:
    with pytest.raises(UserError, match=next(iter(environment))):
        from_env(KafkaSettings, environment, "KAFKA_")
