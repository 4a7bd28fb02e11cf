"""An operator's text that is captured reaches nothing but itself, as whichever user and with whichever layers."""

from __future__ import annotations

import json
import socket
import subprocess
from contextlib import closing

import pytest

from shared import reading_box
from tests.integration.confinement import spy, users
from tests.integration.evaluator.elsewhere import ONE_THREAD

pytestmark = pytest.mark.serial

INNER = "rlimits+privileges+landlock+seccomp"
SEEN = {"others", "own"}
"""Of actions, those that may find something that is nobody's secret."""


def watched(user, condition, place, actions=spy.ALL):
    """What the process says, and how many connections came in."""
    place.chmod(0o777)
    (place / "planted").write_text(spy.SECRET)
    (place / "planted").chmod(0o644)
    listener, abstract = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
    with closing(listener), closing(abstract):
        name = f"ke-test-{listener.getsockname()[1]}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        told = (condition, str(listener.getsockname()[1]), name, str(place), *actions)
        done = subprocess.run(
            [*users.command(user), "-m", "tests.integration.confinement.watched_capture", *told],
            env=users.environment(place, PLANTED=spy.SECRET, **ONE_THREAD),
            cwd=users.ROOT, capture_output=True, text=True, timeout=110, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert not (place / "written").exists()
    assert spy.SECRET not in done.stdout + done.stderr
    return json.loads(done.stdout), done.stderr


def found(said):
    """What the text that tells found; the other one is captured as if nothing had been."""
    told, silent = said["answers"]
    assert silent == {"graph": "aten.relu.default"}
    assert told["refused"].startswith("RuntimeError: {"), told
    return json.loads(told["refused"].removeprefix("RuntimeError: "))


@pytest.mark.parametrize("user", users.USERS)
@pytest.mark.parametrize("condition", ["as-it-is", "no-namespaces", "no-landlock"])
def test_a_text_gets_at_nothing_and_is_refused_or_captured_as_if_it_had_not_tried(user, condition, tmp_path):
    if condition != "no-namespaces" and not reading_box.machine().isolated:
        pytest.skip(f"this machine grants no namespaces: {reading_box.machine().refused}")
    said, log = watched(user, condition, tmp_path)
    got = found(said)
    assert got.pop("leak") is False
    assert {name for name, what in got.items() if what == "GOT"} <= SEEN
    assert got["others"] in {"ESRCH", "EACCES"}
    assert {got[name] for name in ("kill", "program", "connect", "abstract", "trace")} == {"EPERM"}
    level = {"as-it-is": f"namespaces+mounts+{INNER}", "no-namespaces": INNER}
    lacking = f"namespaces+mounts+{INNER}".replace("+landlock", "")
    assert said["level"] == level.get(condition, lacking)
    assert log.count("operators' texts are read in") == 1
    assert ("in less than a whole box" in log) == (condition != "as-it-is")


@pytest.mark.parametrize("user", users.USERS)
def test_with_system_calls_alone_the_parent_stays_out_of_reach_and_the_log_says_what_is_missing(user, tmp_path):
    said, log = watched(user, "no-namespaces+no-landlock", tmp_path, (*spy.PARENT, "kill", "connect", "program"))
    got = found(said)
    assert got == {**dict.fromkeys(spy.PARENT, "EACCES"), "trace": "EPERM", "leak": False} | dict.fromkeys(
        ("kill", "connect", "program"), "EPERM"
    )
    assert said["level"] == "rlimits+privileges+seccomp"
    assert "this machine has no landlock" in log


@pytest.mark.parametrize("user", users.USERS)
def test_where_a_machine_confines_nothing_operators_are_captured_and_secrets_still_kept(user, tmp_path):
    said, log = watched(user, "no-namespaces+no-landlock+no-seccomp", tmp_path, (*spy.PARENT, "own"))
    assert found(said) == {"environ": "EACCES", "memory": "EACCES", "trace": "EPERM", "own": "GOT", "leak": False}
    assert said["level"] == "rlimits+privileges"
    assert "this machine has no landlock, seccomp" in log
