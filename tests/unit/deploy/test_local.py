"""What a local cluster is made of, before anything runs."""

from __future__ import annotations

import os
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import psutil
import pytest

from deploy.local import layout, ports, remains, state, supervision
from deploy.local.layout import Group, Layout
from shared.errors import UserError

TWO_CHIPS = Layout(chips=("cpu-x86_64", "simulated"), workers=2)


def planned(folder=Path("/somewhere/.cluster"), wanted=TWO_CHIPS):
    return layout.processes(wanted, folder, range(20_000, 20_000 + wanted.port_count))


def test_every_chip_gets_its_workers_and_no_two_processes_share_a_port():
    processes = planned()
    evaluators = [p for p in processes if p.name.startswith("evaluator-")]
    assert [(p.name, p.environment["EVALUATOR_CHIP"]) for p in evaluators] == [
        ("evaluator-cpu-x86_64-1", "cpu-x86_64"),
        ("evaluator-cpu-x86_64-2", "cpu-x86_64"),
        ("evaluator-simulated-1", "simulated"),
        ("evaluator-simulated-2", "simulated"),
    ]
    used = [port for process in processes for port in process.ports.values()]
    assert len(used) == len(set(used)) == TWO_CHIPS.port_count


def test_the_search_service_may_have_replicas_with_ports_of_their_own():
    wanted = Layout(chips=("simulated",), workers=1, searches=3)
    searches = [process for process in planned(wanted=wanted) if process.argv[-1] == "search_svc"]
    assert [process.name for process in searches] == ["search", "search-2", "search-3"]
    assert len({port for process in searches for port in process.ports.values()}) == 6


def test_services_are_told_where_the_servers_and_knowledge_are():
    by_name = {process.name: process for process in planned()}
    told = by_name["synthesizer"].environment
    assert told["BUS_URL"] == f"kafka://127.0.0.1:{by_name['kafka'].ports['kafka']}"
    assert told["STORE_URL"].startswith(f"mongodb://127.0.0.1:{by_name['mongo'].ports['mongo']}/")
    assert told["CACHE_URL"] == f"redis://127.0.0.1:{by_name['redis'].ports['redis']}/0"
    assert told["KNOWLEDGE_URL"] == f"grpc://{by_name['knowledge'].environment['GRPC_LISTEN']}"


def test_ports_are_out_of_reach_of_outgoing_connections():
    lowest_of_clients = int(ports.EPHEMERAL.read_text().split()[0])
    found = ports.free_ports(50)
    assert len(set(found)) == 50
    assert max(found) < lowest_of_clients


def test_a_percent_sign_in_a_path_reaches_the_process_unharmed(tmp_path):
    folder = tmp_path / "50% off"
    parsed = RawConfigParser()
    parsed.read_string(supervision.config(planned(folder), folder, folder / "logs", folder / "s.sock"))
    command = parsed["program:mongo"]["command"]
    assert "50%% off/mongo" in command
    assert command % {} == command.replace("%%", "%")


def test_a_path_that_the_configuration_cannot_hold_is_refused_in_one_line(tmp_path):
    folder = tmp_path / "mine #1"
    with pytest.raises(UserError, match="use another folder"):
        supervision.config(planned(folder), folder, folder / "logs", folder / "s.sock")


def test_a_socket_whose_path_would_be_too_long_goes_to_a_temporary_folder(tmp_path):
    deep = tmp_path / ("x" * 100)
    path = supervision.socket_path(deep)
    assert deep not in path.parents
    assert len(str(path)) <= supervision.SOCKET_PATH_MAX
    path.parent.rmdir()


def test_the_state_file_reads_back_as_written_and_one_of_another_kind_counts_as_none(tmp_path):
    members = tuple(state.Member(name=p.name, group=p.group, ports=p.ports, log="a.log") for p in planned())
    written = state.State(
        server="127.0.0.1:1",
        chips=("simulated",),
        workers=3,
        bus_url="b",
        store_url="s",
        cache_url="c",
        socket="/x",
        members=members,
    )
    state.write(tmp_path, written)
    assert state.read(tmp_path) == written
    assert written.groups["mongo"] == Group.SERVERS
    for broken in ("", "[]", '{"server": "127.0.0.1:1"}'):
        (tmp_path / state.FILE).write_text(broken)
        assert state.read(tmp_path) is None


def test_restarts_are_counted_from_the_supervisors_log(tmp_path):
    spawned = "2026-01-01 00:00:00,000 INFO spawned: '{}' with pid 7\n"
    (tmp_path / supervision.LOG).write_text(spawned.format("search") * 3 + spawned.format("redis"))
    assert supervision.starts(tmp_path) == {"search": 3, "redis": 1}


def test_only_processes_of_this_cluster_count_as_its_remains(tmp_path):
    ours, others = tmp_path / "ours", tmp_path / "others"
    started = [
        subprocess.Popen(["sleep", "60"], env={**os.environ, supervision.MARK: str(folder)})
        for folder in (ours, others)
    ]
    try:
        found = remains.marked(ours)
        assert {process.pid for process in found} == {started[0].pid}
        assert remains.end(found) == set()
        assert remains.alive({psutil.Process(started[1].pid)})
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_the_synthesizer_is_told_a_worker_of_every_chip_that_builds_for_it():
    by_name = {process.name: process for process in planned(wanted=TWO_CHIPS)}
    told = dict(part.split("=") for part in by_name["synthesizer"].environment["EVALUATOR_URLS"].split(","))
    first = by_name["evaluator-simulated-1"].environment["GRPC_LISTEN"]
    assert told["simulated"] == f"grpc://{first}"
    assert set(told) == set(TWO_CHIPS.chips)
