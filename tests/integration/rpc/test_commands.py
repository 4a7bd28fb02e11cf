"""The commands that talk to a server, each in a process of its own, as a person types them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from shared.rpc import tokens
from shared.rpc.tokens import Role
from tests.aio import on_loop
from tests.fakes.lab import TOKENS
from tests.integration.rpc.cluster import served_cluster
from tests.integration.rpc.toys import Toy, toy_server

ROOT = Path(__file__).resolve().parents[3]
OPERATOR = ROOT / "tests" / "operators" / "row_softmax.py"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def last(self) -> dict:
        return json.loads(self.out.splitlines()[-1])


async def start(cwd: Path, *arguments: object, **environment: str) -> asyncio.subprocess.Process:
    """A command in ``cwd``, with no settings but ``environment`` of a server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KERNELEVOLVE_")}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cli.main"),
        *map(str, arguments),
        cwd=cwd,
        env=kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "140"} | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def ended(process: asyncio.subprocess.Process) -> Done:
    out, err = await process.communicate()
    return Done(process.returncode or 0, out.decode(), err.decode())


async def kernelevolve(cwd: Path, *arguments: object, **environment: str) -> Done:
    return await ended(await start(cwd, *arguments, **environment))


@on_loop
async def test_a_search_is_submitted_followed_brought_home_and_replayed(tmp_path):
    async with served_cluster() as cluster:
        here = {"KERNELEVOLVE_SERVER": cluster.address}
        wish = ("submit", OPERATOR, "--evaluations", 6, "--request-id", "nightly")
        submitted = await kernelevolve(tmp_path, *wish, "--watch", "--out", "home", **here)
        assert submitted.code == 0, submitted.err
        assert re.search(r"^outcome +improved", submitted.out, re.MULTILINE)
        assert re.search(r"^speedup .*99.4 % interval", submitted.out, re.MULTILINE)
        assert re.search(r"^trust +L3", submitted.out, re.MULTILINE)
        assert "[6/6]" in submitted.err
        home = tmp_path / "home"
        assert {file.name for file in home.iterdir()} == {"search.kelog", "report.html", "result.json", "kernel"}
        search_id = json.loads((home / "result.json").read_text())["search_id"]

        again, got, listed, replayed, at_home = await asyncio.gather(
            kernelevolve(tmp_path, *wish, "--json", **here),
            kernelevolve(tmp_path, "get", search_id, "--json", **here),
            kernelevolve(tmp_path, "list", **here),
            kernelevolve(tmp_path, "replay", search_id, "--from", "bus", "--json", **here),
            kernelevolve(tmp_path, "replay", "home", "--json"),
        )
        assert again.last == {"search_id": search_id, "created": False}
        assert (got.last["outcome"], got.last["evaluations"]) == ("improved", {"charged": 6, "budget": 6})
        assert search_id in listed.out
        assert (replayed.code, replayed.last["identical"], replayed.last["source"]) == (0, True, "bus")
        assert at_home.last["entries"] == replayed.last["entries"]


@on_loop
async def test_watching_ends_when_a_search_pauses_and_resume_goes_on_with_it(tmp_path):
    async with served_cluster() as cluster:
        here = {"KERNELEVOLVE_SERVER": cluster.address}
        wish = ("submit", OPERATOR, "--evaluations", 6, "--model-tokens", 2 * TOKENS, "--watch")
        paused = await kernelevolve(tmp_path, *wish, "--json", **here)
        assert paused.code == 75, paused.err
        assert (paused.last["outcome"], paused.last["reason"]) == ("paused", "budget")
        search_id = paused.last["search_id"]

        got = await kernelevolve(tmp_path, "get", search_id, **here)
        assert "state     paused (budget): the search's budget of 200 tokens is spent" in got.out
        assert f"go on     kernelevolve resume {search_id}" in got.out
        home = await kernelevolve(tmp_path, "watch", search_id, "--out", "home", **here)
        assert home.code == 75
        assert f"go on     kernelevolve resume {search_id} --model-budget" in home.out
        assert "is paused: the search" in (tmp_path / "home" / "report.html").read_text().replace("&#39;", "'")

        resumed = await kernelevolve(tmp_path, "resume", search_id, "--model-tokens", 50 * TOKENS, **here)
        assert (resumed.code, resumed.out) == (
            0,
            f"search {search_id} goes on; `kernelevolve watch {search_id}` follows it\n",
        )
        watched = await kernelevolve(tmp_path, "watch", search_id, "--json", **here)
        assert (watched.code, watched.last["reason"], watched.last["evaluations"]) == (0, "evaluations", 6)
        again = await kernelevolve(tmp_path, "resume", search_id, **here)
        assert again.code == 2
        assert "is not paused" in again.err


@on_loop
async def test_ctrl_c_stops_the_watching_and_cancel_stops_the_search(tmp_path):
    async with served_cluster() as cluster:
        cluster.lab.deaf_after = 1
        here = {"KERNELEVOLVE_SERVER": cluster.address}
        submitted = await kernelevolve(tmp_path, "submit", OPERATOR, "--evaluations", 50, **here)
        search_id = submitted.out.strip()
        watching = await start(tmp_path, "watch", search_id, **here)
        assert watching.stderr is not None
        assert b"row_softmax" in await watching.stderr.readline()
        watching.send_signal(signal.SIGINT)
        left = await ended(watching)
        assert left.code == 130
        assert f"`kernelevolve cancel {search_id}` ends it" in left.err

        cancelled = await kernelevolve(tmp_path, "cancel", search_id, "--reason", "wrong shapes", **here)
        assert (cancelled.code, cancelled.out) == (0, f"asked search {search_id} to end\n")
        watched = await kernelevolve(tmp_path, "watch", search_id, "--json", **here)
        assert (watched.code, watched.last["outcome"], watched.last["run_dir"]) == (1, "cancelled", None)


@on_loop
async def test_mistakes_are_one_line_and_exit_code_2(tmp_path):
    async with served_cluster() as cluster:
        at = ("--server", cluster.address)
        mistakes = {
            ("get", "0123456789abcdef", *at): "search 0123456789abcdef: is not known",
            ("replay", "0123456789abcdef", *at): "search 0123456789abcdef: has no log",
            ("submit", OPERATOR, "--evaluations", "0", "--watch", "--out", "home", *at): "must be at least 1",
        }
        for arguments, done in zip(
            mistakes, await asyncio.gather(*(kernelevolve(tmp_path, *each) for each in mistakes)), strict=True
        ):
            assert (done.code, done.out) == (2, ""), arguments
            assert mistakes[arguments] in done.err
            assert done.err.count("\n") == 1, done.err
    assert not (tmp_path / "home").exists()


@on_loop
async def test_a_server_that_is_not_there_is_one_line_and_exit_code_1(tmp_path):
    async with toy_server(Toy()) as address:
        pass
    done = await kernelevolve(tmp_path, "list", "--server", address, KERNELEVOLVE_TRIES_MAX="1")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert address in done.err


@on_loop
async def test_the_local_cluster_of_the_directory_is_found(tmp_path):
    (tmp_path / ".cluster").mkdir()
    async with served_cluster() as cluster:
        (tmp_path / ".cluster" / "cluster.json").write_text(json.dumps({"server": cluster.address}))
        done = await kernelevolve(tmp_path, "list")
        assert (done.code, done.out) == (0, "no searches\n")


@on_loop
async def test_a_new_token_is_shown_once_and_its_line_lets_its_owner_in(tmp_path):
    made = await kernelevolve(tmp_path, "token", "new", "--role", "read", "--name", "ci")
    token, file = made.err.split()[-1], tmp_path / "tokens.toml"
    file.write_text(made.out)
    assert token not in made.out
    known = tokens.load(file)
    assert [(one.name, one.role) for one in known] == [("ci", Role.READ)]
    async with toy_server(Toy(), tokens=str(file)) as address:
        at = ("--server", address)
        let_in, refused, too_low = await asyncio.gather(
            kernelevolve(tmp_path, "get", "s", *at, KERNELEVOLVE_TOKEN=token),
            kernelevolve(tmp_path, "get", "s", *at),
            kernelevolve(tmp_path, "cancel", "s", *at, KERNELEVOLVE_TOKEN=token),
        )
    assert let_in.code == 0, let_in.err
    assert (refused.code, too_low.code) == (2, 2)
    assert "KERNELEVOLVE_TOKEN" in refused.err
    assert "needs role submit, token `ci` has role read" in too_low.err
