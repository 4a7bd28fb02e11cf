"""Yesterday's searches still decide the same, and a log that was touched says where."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_svc import chain, replay
from shared import kelog, wire
from shared.errors import LogError, ReplayDivergence
from shared.events import (
    PPM,
    Basis,
    EvaluationCompleted,
    EvaluationRequested,
    ExpansionRequested,
    SearchForked,
    SearchPaused,
    SearchResumed,
    Status,
)
from shared.store import JournalEntry
from tests.builders import a_search
from tests.fakes.drive import Drive
from tests.fakes.landscape import Clockless
from tests.replay.golden_logs import FOLDER, PAUSED, POLICIES, path_of

ALL = sorted(path.name for path in FOLDER.glob("*.kelog"))


@pytest.fixture(scope="module")
def entries():
    return kelog.read(path_of("greedy")).entries


def damaged(log):
    """Positions of entries whose line no longer matches its checksum, as the command line maps them."""
    return {line - 2: f"line {line} was altered" for line in log.altered}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_has_a_golden_log(policy):
    assert path_of(policy).name in ALL


def test_a_golden_log_pauses_and_goes_on():
    events = [
        wire.unpack(packed).event
        for entry in kelog.read(path_of(PAUSED)).entries
        for packed in (entry.event, *entry.commands)
    ]
    assert sum(isinstance(event, SearchPaused) for event in events) > 1
    assert sum(isinstance(event, SearchResumed) for event in events) > 1


@pytest.mark.parametrize(("basis", "outcome"), [(Basis.COUNTED, "improved"), (Basis.MODELLED, "estimated")])
def test_a_golden_log_has_costs_instead_of_times(basis, outcome):
    tree = replay.verify(kelog.read(path_of(basis.value)).entries).tree
    assert (tree.outcome, tree.reference.basis) == (outcome, basis)
    assert tree.best.score_ppm > tree.nodes[tree.reference.candidate_id].score_ppm == PPM


def test_a_fork_goes_on_comparing_with_the_first_draft_of_its_past():
    entries = kelog.read(path_of("counted")).entries
    whole = replay.rebuild(entries)
    prefix, forked = replay.fork(entries, at_seq=len(entries) // 2, search_id="fork", policy="mcts", seed=5)
    drive = Drive(landscape=Clockless())
    drive.entries, drive.tree = list(prefix), replay.rebuild(prefix)
    drive.take(forked)
    ended = drive.finish()
    assert ended.reference == whole.reference
    assert ended.outcome == "improved"
    assert replay.verify(drive.entries).tree == ended


@pytest.mark.parametrize("name", ALL)
def test_a_golden_log_replays_to_identical_decisions(name):
    log = kelog.read(FOLDER / name)
    report = replay.verify(log.entries, damaged(log))
    assert report.entries == len(log.entries)
    assert report.tree.finished
    assert replay.rebuild(log.entries) == report.tree


def rechained(entries):
    """The same contents with a valid chain: what somebody who knows the format would forge."""
    out: list[JournalEntry] = []
    for entry in entries:
        previous = out[-1].digest if out else ""
        out.append(replace(entry, digest=chain.digest(previous, entry.event, entry.commands)))
    return out


def with_measurement(entries, seq, ratio_ppm):
    envelope = wire.unpack(entries[seq].event)
    speedups = tuple(replace(s, ratio_ppm=ratio_ppm) for s in envelope.event.evaluation.speedups)
    evaluation = replace(envelope.event.evaluation, speedups=speedups)
    event = wire.pack(replace(envelope, event=replace(envelope.event, evaluation=evaluation)))
    return [*entries[:seq], replace(entries[seq], event=event), *entries[seq + 1 :]]


def passed_positions(entries):
    events = [(entry.seq, wire.unpack(entry.event).event) for entry in entries]
    return [
        seq
        for seq, event in events
        if isinstance(event, EvaluationCompleted) and event.evaluation.status is Status.PASSED
    ]


def test_any_altered_measurement_is_found_at_its_position(entries):
    """Also one that changes no decision, such as a loser's time or the last."""
    for seq in passed_positions(entries):
        with pytest.raises(ReplayDivergence, match=f"at entry {seq}: .*altered after it was written") as caught:
            replay.verify(with_measurement(entries, seq, 1_234_567))
        assert caught.value.seq == seq


def flipped(data, position, bit):
    return data[:position] + bytes([data[position] ^ (1 << bit)]) + data[position + 1 :]


@given(data=st.data())
@settings(max_examples=60)
def test_any_altered_byte_of_an_entry_is_found_at_its_position(entries, data):
    entries = list(entries)
    seq = data.draw(st.integers(0, len(entries) - 1))
    entry, bit = entries[seq], data.draw(st.integers(0, 7))
    part = data.draw(st.sampled_from(["event", "event_id", "digest", *(["commands"] if entry.commands else [])]))
    if part == "commands":
        n = data.draw(st.integers(0, len(entry.commands) - 1))
        command = flipped(entry.commands[n], data.draw(st.integers(0, len(entry.commands[n]) - 1)), bit)
        entries[seq] = replace(entry, commands=(*entry.commands[:n], command, *entry.commands[n + 1 :]))
    else:
        value = getattr(entry, part)
        raw = value.encode() if isinstance(value, str) else value
        altered = flipped(raw, data.draw(st.integers(0, len(raw) - 1)), bit)
        entries[seq] = replace(entry, **{part: altered.decode("latin-1") if isinstance(value, str) else altered})
    for check in (replay.verify, replay.rebuild):
        with pytest.raises(ReplayDivergence) as caught:
            check(entries)
        assert caught.value.seq == seq


def test_a_forged_measurement_with_a_forged_chain_is_found_by_the_decisions(entries):
    seq = passed_positions(entries)[2]
    with pytest.raises(ReplayDivergence, match="replay diverges at entry") as caught:
        replay.verify(rechained(with_measurement(entries, seq, 900_000_000)))
    assert caught.value.seq >= seq


def test_a_decision_that_todays_code_would_not_make_is_found_with_its_story(entries):
    """The deliberately divergent log."""
    seq, position, envelope = next(
        (entry.seq, n, command)
        for entry in entries[10:]
        for n, command in enumerate(wire.unpack(each) for each in entry.commands)
        if isinstance(command.event, ExpansionRequested)
    )
    commands = list(entries[seq].commands)
    commands[position] = wire.pack(replace(envelope, event=replace(envelope.event, seed=1)))
    with pytest.raises(ReplayDivergence) as caught:
        replay.verify(rechained([*entries[:seq], replace(entries[seq], commands=tuple(commands)), *entries[seq + 1 :]]))
    assert (caught.value.seq, caught.value.recorded.seed) == (seq, 1)
    assert caught.value.computed == envelope.event
    assert caught.value.story[-1].split()[0] in str(caught.value)


def test_a_dropped_decision_is_found(entries):
    seq = next(entry.seq for entry in entries if entry.commands)
    forged = rechained(
        [*entries[:seq], replace(entries[seq], commands=entries[seq].commands[:-1]), *entries[seq + 1 :]]
    )
    with pytest.raises(ReplayDivergence) as caught:
        replay.verify(forged)
    assert (caught.value.seq, caught.value.recorded) == (seq, None)


def test_an_entry_that_is_missing_or_out_of_order_is_found(entries):
    with pytest.raises(ReplayDivergence) as missing:
        replay.verify([*entries[:5], *entries[6:]])
    with pytest.raises(ReplayDivergence) as swapped:
        replay.verify([*entries[:5], entries[6], entries[5], *entries[7:]])
    assert (missing.value.seq, swapped.value.seq) == (5, 5)


def test_unreadable_bytes_are_found_at_their_position(entries):
    with pytest.raises(ReplayDivergence) as caught:
        replay.verify(rechained([*entries[:7], replace(entries[7], event=b"\xff\xff"), *entries[8:]]))
    assert caught.value.seq == 7


def test_an_empty_log_is_a_user_error():
    with pytest.raises(LogError, match="holds no entries"):
        replay.verify([])


@pytest.mark.parametrize("field", ["median", "decision"])
def test_an_edited_line_of_an_exported_log_is_found(tmp_path, field):
    lines = path_of("beam").read_text().splitlines()
    position = max(n for n, line in enumerate(lines) if '"ratio_ppm"' in line and '"FINAL"' in line)
    entry = json.loads(lines[position])
    if field == "median":
        entry["event"]["event"]["evaluation"]["speedups"][0]["high_ppm"] += 1
    else:
        entry["commands"][0]["event"]["evaluations"] += 1
    lines[position] = json.dumps(entry)
    copy = tmp_path / "edited.kelog"
    copy.write_text("\n".join(lines) + "\n")
    log = kelog.read(copy)
    with pytest.raises(ReplayDivergence, match=f"at entry {position - 1}"):
        replay.verify(log.entries, damaged(log))
    with pytest.raises(ReplayDivergence, match=f"at entry {position - 1}"):
        replay.verify(log.entries)


# --- forks ---------------------------------------------------------------------------------------------------------


def forked(entries, at_seq, policy="mcts", **options):
    prefix, event = replay.fork(entries, at_seq=at_seq, search_id="fork-1", policy=policy, seed=5, **options)
    drive = Drive(tree=replay.rebuild(prefix), entries=list(prefix))
    return drive, drive.take(event)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("at_seq", [1, 2, 9, 20, -1])
def test_a_fork_goes_on_under_another_policy_to_its_own_end(entries, at_seq, policy):
    at_seq = len(entries) if at_seq == -1 else at_seq
    drive, _ = forked(entries, at_seq, policy)
    tree = drive.finish()
    assert (tree.search.search_id, tree.search.policy) == ("fork-1", policy)
    assert (tree.outcome, tree.charged) == ("improved", 24)
    assert replay.verify(drive.entries).tree == tree


def test_a_fork_keeps_the_measured_past(entries):
    before = replay.rebuild(entries[:30])
    drive, _ = forked(entries, 30)
    for name, node in before.nodes.items():
        assert (drive.tree.nodes[name].evaluation, drive.tree.nodes[name].kernel) == (node.evaluation, node.kernel)


def test_a_fork_asks_again_for_what_was_outstanding_under_the_same_ids(entries):
    before = replay.rebuild(entries[:9])
    _, commands = forked(entries, 9)
    asked = [command.event for command in commands]
    assert {e.evaluation_id for e in asked if isinstance(e, EvaluationRequested)} >= set(before.in_flight)
    reopened = {key for key, expansion in before.expansions.items() if expansion.open}
    assert {e.expansion_id for e in asked if isinstance(e, ExpansionRequested)} >= reopened
    assert {e.search_id for e in asked} == {"fork-1"}


def test_a_fork_of_a_fork_names_its_own_parent(entries):
    drive, _ = forked(entries, 20)
    drive.finish()
    prefix, event = replay.fork(drive.entries, at_seq=25, search_id="fork-2", policy="beam", seed=1)
    assert isinstance(event.event, SearchForked)
    assert event.event.parent_search_id == "fork-1"
    assert len(prefix) == 25


@pytest.mark.parametrize("at_seq", [0, -3, 10_000])
def test_a_fork_at_no_position_of_the_log_is_a_user_error(entries, at_seq):
    with pytest.raises(LogError, match="^the log: has no position"):
        replay.fork(entries, at_seq=at_seq, search_id="fork-1", policy="mcts", seed=1)


def test_recorded_measurements_can_be_listed_for_reuse(entries):
    assert len(replay.measurements(entries)) == sum(
        isinstance(wire.unpack(entry.event).event, EvaluationCompleted) for entry in entries
    )


def test_time_spent_before_a_fork_counts_and_time_between_does_not():
    drive = Drive()
    drive.run(a_search(evaluations=10, wall_ns=10**15))
    elapsed_ns = drive.tree.now_ns - drive.tree.search.at_ns
    _, event = replay.fork(drive.entries, at_seq=len(drive.entries), search_id="f", policy="beam", seed=1, at_ns=10**18)
    after = replay.advance(drive.tree, event, ())
    assert after.now_ns - after.search.at_ns == elapsed_ns
