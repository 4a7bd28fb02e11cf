"""Log lines say what they are about, are read by people or programs, and tell no secret."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Mapping

import pytest
from opentelemetry.sdk.trace import TracerProvider

from shared import logs
from shared.errors import UserError
from shared.logs import LogSettings
from shared.settings import from_env
from tests.aio import on_loop

log = logging.getLogger("tests.logs")


def written(capsys: pytest.CaptureFixture[str], settings: Mapping[str, str], *calls: object) -> list[str]:
    with logs.written(from_env(LogSettings, settings)):
        for call in calls:
            call()
    return capsys.readouterr().err.splitlines()


def test_a_json_line_parses_and_carries_what_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    tracer = TracerProvider().get_tracer("test")

    def warn() -> None:
        with logs.about(search_id="s-1"), logs.about(candidate_id="c-7"), tracer.start_as_current_span("span"):
            log.warning("try %d of %s", 3, "ünïcode\nand a second line")

    (text,) = written(capsys, {"LOG_FORMAT": "json"}, warn)
    line = json.loads(text)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert re.fullmatch(r"[0-9a-f]{32}", line["trace_id"])
    assert re.fullmatch(r"[0-9a-f]{16}", line["span_id"])
    assert line["message"] == "try 3 of ünïcode\nand a second line"
    assert (line["level"], line["logger"]) == ("WARNING", "tests.logs")
    assert (line["search_id"], line["candidate_id"]) == ("s-1", "c-7")


def test_a_line_for_people_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    def warn() -> None:
        with logs.about(search_id="s-1"):
            log.warning("slow")
        log.warning("later")

    first, second = written(capsys, {}, warn)
    assert first.endswith("WARNING tests.logs: slow [search_id=s-1]")
    assert second.endswith("WARNING tests.logs: later")


def test_an_exception_is_one_field_of_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        try:
            int("broken")
        except ValueError:
            log.exception("it failed")

    (text,) = written(capsys, {"LOG_FORMAT": "json"}, fail)
    assert json.loads(text)["exception"].endswith("with base 10: 'broken'")


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_is_written(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv("KERNELEVOLVE_TOKEN", "s3cr3t-token")

    def tell() -> None:
        log.error("cannot reach mongodb://admin:hunter2@db:27017/ke: %s", "authorization: Bearer abc.def.ghi")
        try:
            int("bad token s3cr3t-token at redis://:hunter2@cache:6379/0")
        except ValueError:
            log.exception("refused s3cr3t-token")

    text = "\n".join(written(capsys, {"LOG_FORMAT": form}, tell))
    assert "mongodb://…@db:27017/ke" in text
    assert "redis://…@cache:6379/0" in text
    assert not [secret for secret in ("hunter2", "abc.def.ghi", "s3cr3t-token", "admin") if secret in text]


def test_drivers_tell_only_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    def tell() -> None:
        logging.getLogger("aiokafka.consumer").info("joined")
        logging.getLogger("aiokafka.consumer").warning("left")

    assert len(written(capsys, {}, tell)) == 1
    assert len(written(capsys, {"LOG_LEVEL": "DEBUG"}, tell)) == 2
    assert len(written(capsys, {"LOG_LEVEL": "ERROR"}, tell)) == 0


def test_afterwards_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    written(capsys, {})
    log.info("unheard")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("settings", [{"LOG_FORMAT": "xml"}, {"LOG_LEVEL": "loud"}])
def test_a_setting_that_is_none_is_refused_by_name(settings: dict[str, str]) -> None:
    (name,) = settings
    with pytest.raises(UserError, match=name):
        from_env(LogSettings, settings)


@on_loop
async def test_tasks_inherit_what_they_are_about() -> None:
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(logs.TextLines(logs.Redaction({})).format(record))

    async def work() -> None:
        log.warning("inside")

    handler = Kept()
    log.addHandler(handler)
    try:
        with logs.about(search_id="s-1"):
            task = asyncio.create_task(work())
        await task
    finally:
        log.removeHandler(handler)
    assert lines[0].endswith("inside [search_id=s-1]")


@pytest.mark.parametrize("who", ["the command line", "a service"])
def test_the_traceback_of_a_crash_tells_no_secret(who: str) -> None:
    """Of an error that nobody foresaw, whatever it and its causes quote."""
    begin = {
        "the command line": "from cli import main; main.cli.main = crash; main.main()",
        "a service": "from shared import process; process.main(crash)",
    }
    crash = """
def crash(*_, **__):
    from shared.redaction import never_show
    never_show("ke/planted-in-a-crash")
    try:
        {}["ke/planted-in-a-crash"]
    except KeyError as error:
        raise RuntimeError("refused ke\\u002fplanted-in-a-crash, hunter22") from error
"""
    done = subprocess.run(
        [sys.executable, "-c", f"{crash}\n{begin[who]}"],
        env=os.environ | {"MY_PASSWORD": "hunter22", "STORE_URL": "memory:"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "RuntimeError: refused …, …" in done.stderr
    assert "KeyError: '…'" in done.stderr
    assert "planted" not in done.stderr.replace('never_show("ke/planted-in-a-crash")', "")
