"""Which server a command talks to, and what is refused before it talks to any."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from cli.commands import submit, token
from cli.server import settings_of
from shared.errors import UserError

OPERATOR = "tests/operators/row_softmax.py"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory without a cluster, and no settings of a server."""
    monkeypatch.chdir(tmp_path)
    for name in ("KERNELEVOLVE_SERVER", "KERNELEVOLVE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def a_cluster(folder, text):
    (folder / ".cluster").mkdir()
    (folder / ".cluster" / "cluster.json").write_text(text)


def test_the_option_wins_over_the_environment_and_that_over_the_local_cluster(folder, monkeypatch):
    a_cluster(folder, json.dumps({"server": "127.0.0.1:1"}))
    assert settings_of(None).server == "127.0.0.1:1"
    monkeypatch.setenv("KERNELEVOLVE_SERVER", "127.0.0.1:2")
    monkeypatch.setenv("KERNELEVOLVE_TOKEN", "ke_x")
    assert settings_of(None).server == "127.0.0.1:2"
    assert settings_of("127.0.0.1:3").server == "127.0.0.1:3"
    assert settings_of("127.0.0.1:3").token == "ke_x"


def test_without_any_the_user_is_told_how_to_get_one(folder):
    with pytest.raises(
        UserError, match=r"^no server to talk to \(start a local cluster with `make up`, or give --server"
    ):
        settings_of(None)


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json"])
def test_a_cluster_file_that_cannot_be_read_is_named(folder, text):
    a_cluster(folder, text)
    with pytest.raises(UserError, match=r"^\.cluster/cluster\.json: is not what `make up` wrote"):
        settings_of(None)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((OPERATOR, "--out", "home"), "--out: needs --watch"),
        (("missing.py",), "missing.py"),
        ((OPERATOR, "--policy-parameter", "width"), "`width` is not NAME=VALUE"),
        ((OPERATOR, "--watch", "--out", "tests"), "tests: is not empty"),
        ((OPERATOR, "--server", "nowhere"), "server is `nowhere`, expected host:port"),
    ],
)
def test_a_mistake_is_told_before_anything_is_submitted(arguments, line):
    with pytest.raises(UserError) as refused:
        CliRunner().invoke(submit.command, arguments, catch_exceptions=False)
    assert line in str(refused.value)


def test_a_tokens_name_is_a_key_of_the_file(folder):
    with pytest.raises(UserError, match="--name: `a b` is not 1 to 64 letters"):
        CliRunner().invoke(token.command, ["new", "--role", "read", "--name", "a b"], catch_exceptions=False)
