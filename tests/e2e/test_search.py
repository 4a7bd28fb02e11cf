"""A whole search through the command line: what it prints, what it leaves, how it replays."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest
from command_line import kernelevolve, last_object

pytestmark = [pytest.mark.serial, pytest.mark.timeout(600)]


def test_the_final_object_has_every_promised_field(finished):
    run, result = finished

    assert result["operator"] == "row_softmax"
    assert result["chip"] == "cpu-x86_64"
    assert result["outcome"] in ("improved", "no_improvement")
    assert result["evaluations"] == 6
    assert sum(result["statuses"].values()) >= 6
    assert set(result["seconds"]) >= {"total", "build", "correctness", "timing", "framework"}
    assert result["run_dir"] == str(run)
    if result["outcome"] == "improved":
        best = result["best"]
        assert set(best) >= {"candidate_id", "language", "trust", "speedup", "sol_fraction", "artefact"}
        assert set(best["speedup"]) == {"eager", "compiled", "ci_low", "ci_high"}
        assert best["speedup"]["ci_low"] > 1
        assert best["trust"] in ("L3", "L4")


def test_a_run_directory_holds_log_report_and_result(finished):
    run, result = finished

    assert json.loads((run / "result.json").read_text()) == result
    assert (run / "search.kelog").is_file()
    assert "row_softmax" in (run / "report.html").read_text()


def test_a_run_replays_identically(finished, home):
    run, _ = finished
    done = kernelevolve("replay", run, home=home)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("identical")


def test_an_exported_log_replays_identically(finished, home):
    run, _ = finished
    done = kernelevolve("replay", run / "search.kelog", home=home)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("identical")


def altered(lines, position, change):
    """The log's lines with the event of entry ``position`` changed."""
    body = json.loads(lines[position + 1])
    change(body)
    return [*lines[: position + 1], json.dumps(body), *lines[position + 2 :]]


def measured_entry(lines):
    """Position of the first entry whose event is a verdict with times."""
    for number, line in enumerate(lines[1:]):
        if json.loads(line).get("kind") == "entry" and '"median_ns"' in line:
            return number
    raise AssertionError("no measurement in the log")


def test_an_altered_measurement_is_named_with_its_position(finished, home, tmp_path):
    run, _ = finished
    lines = (run / "search.kelog").read_text().splitlines()
    position = measured_entry(lines)
    text = lines[position + 1]
    digits = text.split('"median_ns":')[1].split(",")[0].split("}")[0]
    lines[position + 1] = text.replace(f'"median_ns":{digits}', f'"median_ns":{int(digits.strip(chr(34))) + 1}', 1)
    copy = tmp_path / "altered.kelog"
    copy.write_text("\n".join(lines) + "\n")
    done = kernelevolve("replay", copy, home=home)

    assert done.returncode != 0
    assert f"entry {position}" in done.stderr


def test_an_altered_decision_is_named_with_its_position(finished, home, tmp_path):
    run, _ = finished
    lines = (run / "search.kelog").read_text().splitlines()
    position = next(n for n, line in enumerate(lines[1:]) if json.loads(line).get("commands"))
    lines = altered(lines, position, lambda body: body["commands"].pop())
    copy = tmp_path / "altered.kelog"
    copy.write_text("\n".join(lines) + "\n")
    done = kernelevolve("replay", copy, home=home)

    assert done.returncode != 0
    assert f"entry {position}" in done.stderr


def test_a_measurement_altered_in_the_database_is_named_with_its_position(finished, home, tmp_path):
    run, _ = finished
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    with sqlite3.connect(copy / "search.db") as database:
        tables = [row[0] for row in database.execute("select name from sqlite_master where type = 'table'")]
        journal = next(name for name in tables if "journal" in name)
        seq, event = database.execute(f"select seq, event from {journal} order by seq desc limit 1").fetchone()
        database.execute(f"update {journal} set event = ? where seq = ?", (event[:-1] + bytes([event[-1] ^ 1]), seq))
    done = kernelevolve("replay", copy, home=home)

    assert done.returncode != 0
    assert f"entry {seq}" in done.stderr


def test_a_truncated_log_is_one_clear_line(finished, home, tmp_path):
    run, _ = finished
    copy = tmp_path / "cut.kelog"
    copy.write_bytes((run / "search.kelog").read_bytes()[:5000])
    done = kernelevolve("replay", copy, home=home)

    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "cut.kelog" in done.stderr


def test_a_corrupt_database_is_one_clear_line(finished, home, tmp_path):
    run, _ = finished
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    for suffix in ("-wal", "-shm"):
        (copy / f"search.db{suffix}").unlink(missing_ok=True)
    (copy / "search.db").write_bytes(b"this is no database" * 100)
    done = kernelevolve("replay", copy, home=home)

    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_fork_goes_on_under_another_policy_and_replays(finished, home, tmp_path):
    run, result = finished
    out = tmp_path / "fork"
    done = kernelevolve("replay", run, "--fork-at", 4, "--policy", "beam", "--out", out, "--json", home=home)
    assert done.returncode == 0, done.stderr
    forked = last_object(done)

    assert forked["search_id"] != ""
    assert forked["evaluations"] == result["evaluations"]
    again = kernelevolve("replay", out, home=home)
    assert again.returncode == 0, again.stderr


def test_explain_tells_of_the_run_and_of_a_node(finished, home):
    run, _ = finished
    overview = kernelevolve("explain", run, home=home)
    assert overview.returncode == 0, overview.stderr
    best = kernelevolve("explain", run, "best", home=home)

    assert best.returncode == 0, best.stderr
    for told in ("move", "memory", "why its parent", "status", "bound by", "sandbox"):
        assert told in best.stdout


def test_a_run_directory_in_use_is_refused(finished, home):
    run, _ = finished
    done = kernelevolve(
        "optimize", __file__.replace("e2e/test_search", "operators/row_softmax"), "--out", run, home=home
    )

    assert done.returncode == 2
    assert "not empty" in done.stderr
