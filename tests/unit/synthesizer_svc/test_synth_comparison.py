"""The comparison of synthesizers says what its searches found, with honest intervals, and plays what it recorded."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import httpx
import pytest
from click.testing import CliRunner

from shared.events import Status
from synthesizer_svc.model import configuration
from tests.bench import synth, synth_search, synth_tape
from tests.bench.synth_endpoints import answering, configured, playing
from tests.bench.synth_plan import Cell, Equal, Plan, Way
from tests.bench.synth_report import COLUMNS, Outcome, Source, page, paired, ratio, row
from tests.bench.synth_tape import Tape
from tests.builders import a_failure, a_search, measured
from tests.fakes.drive import Drive
from tests.fakes.landscape import Landscape

PLAN = Plan(operators=("softmax", "row_sum"), seeds=(1, 2), evaluations=12, seconds=45.0)
LIVE = Source(live=True, endpoint="somewhere")


def outcome(way, gain, *, operator="softmax", seed=1, equal=Equal.EVALUATIONS, **more):
    cell = Cell(equal=equal, operator=operator, seed=seed, way=way)
    return Outcome(cell=cell, gain=gain, improved=gain > 1, evaluations=12, seconds=30.0, **more)


def test_a_plan_runs_every_way_beside_the_others_and_survives_being_written_down():
    cells = list(PLAN.cells())

    assert len(cells) == len({cell.name for cell in cells}) == 2 * 2 * 2 * 4
    assert [cell.way for cell in cells[:4]] == list(Way)
    assert Plan.from_plain(json.loads(json.dumps(PLAN.to_plain()))) == PLAN


@pytest.mark.parametrize("left_out", [Equal.EVALUATIONS, Equal.COST])
def test_a_comparison_without_a_limit_is_left_out(left_out):
    none = {"evaluations": 0} if left_out is Equal.EVALUATIONS else {"seconds": 0.0}
    plan = Plan.from_plain(PLAN.to_plain() | none)
    assert left_out not in {cell.equal for cell in plan.cells()}


def test_a_mean_ratio_has_students_interval():
    found = ratio([math.exp(x) for x in (0.1, 0.2, 0.3, 0.4)])
    half = 3.182 * math.sqrt(0.05 / 3) / 2

    assert found.mean == pytest.approx(math.exp(0.25))
    assert (found.low, found.high) == (pytest.approx(math.exp(0.25 - half)), pytest.approx(math.exp(0.25 + half)))


def test_one_search_has_no_interval():
    assert str(ratio([2.0])) == "2.000 (one search: no interval)"
    assert str(ratio([])) == "-"


def test_ways_are_compared_by_pairs_of_the_same_operator_and_seed():
    outcomes = [
        outcome(Way.SCHEDULES, 2.0),
        outcome(Way.MOVES, 3.0),
        outcome(Way.SCHEDULES, 10.0, seed=2),
        outcome(Way.MOVES, 15.0, seed=2),
        outcome(Way.MOVES, 99.0, operator="row_sum"),
    ]
    found = paired(outcomes, Way.MOVES, Way.SCHEDULES)

    assert found.count == 2
    assert found.mean == found.low == found.high == pytest.approx(1.5)


def test_an_unknown_price_makes_the_sum_unknown_not_less():
    line = row([outcome(Way.WHOLE, 1.0, cost=0.5), outcome(Way.WHOLE, 1.0, seed=2, cost=None)], Way.WHOLE)
    assert line.endswith("| unknown |")


def test_a_row_tells_rejections_writers_and_tokens():
    mine = outcome(
        Way.WHOLE,
        1.2,
        winner="schedules, in its place",
        by_writer={"whole": 1, "schedules, in its place": 11},
        rejected={"unparsable": 3, "truncated": 2},
        requests=9,
        input_tokens=900,
        cached_tokens=700,
        output_tokens=90,
        estimated=True,
        cost=None,
    )
    line = row([mine], Way.WHOLE)

    assert "schedules, in its place 11, whole 1" in line
    assert "truncated 2, unparsable 3" in line
    assert "≈ 900 (700), 90 in 9 requests" in line


class OneTooNoisy(Landscape):
    """No attempt measures the kernel that comes first."""

    first: ClassVar[list[str]] = []

    def evaluate(self, request):
        self.first.append(request.kernel.kernel_id)
        noisy = request.kernel.kernel_id == self.first[0]
        return measured(request, a_failure(Status.NOISY)) if noisy else super().evaluate(request)


def test_kernels_that_could_not_be_measured_are_no_evaluations_also_in_the_table():
    tree = Drive(landscape=OneTooNoisy()).run(a_search(evaluations=8))
    evaluated, left = synth_search.evaluated(tree), synth_search.unmeasured(tree)

    assert (evaluated.total(), tree.charged, left) == (8, 8, 1)
    line = row([outcome(Way.SCHEDULES, 1.2, by_writer=evaluated, unmeasured=left)], Way.SCHEDULES)
    assert "| schedule 8; 1 not measured |" in line
    assert "not measured" not in row([outcome(Way.SCHEDULES, 1.2, by_writer=evaluated)], Way.SCHEDULES)


def test_the_page_names_the_models_that_answered_and_what_was_recorded():
    outcomes = [outcome(Way.MOVES, 1.2, models=frozenset({"small-1"}), ended="paused budget")]
    source = Source(
        live=False, endpoint="somewhere (2026-12-02)", note="A note.", settings={"MODEL_X": "1"}, played=10, other=4
    )
    text = page(outcomes, PLAN, source, command="x", machine="m", date="2026-12-02")

    assert "`small-1`; recorded from somewhere (2026-12-02); 6 of 10 questions equal" in text
    assert "- A note." in text
    assert "- Settings: `MODEL_X=1`" in text
    assert "- 1 × moves: paused budget" in text
    assert "none answered" in page([], PLAN, LIVE, command="x", machine="m", date="2026-12-02")


def test_every_row_has_all_columns_also_of_a_way_without_a_search():
    text = page([outcome(Way.MOVES, 1.2)], PLAN, LIVE, command="x", machine="m", date="2026-12-02")
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == {len(COLUMNS) + 1}


def test_searches_that_did_not_end_are_named_and_in_no_table():
    told = ["cost.softmax.1.whole: paused: budget 5.00 EUR are spent"]
    text = page([outcome(Way.MOVES, 1.2)], PLAN, LIVE, command="x", machine="m", date="2026-12-02", unfinished=told)

    assert "1 searches did not end" in text
    assert f"- {told[0]}" in text
    assert "| whole | 0 |" in text


def test_a_comparison_that_was_stopped_says_so_and_has_rows_in_both_tables():
    text = page([outcome(Way.MOVES, 1.2)], PLAN, LIVE, command="x", machine="m", date="2026-12-02", left=31)
    begun = [cell.equal for cell in PLAN.cells()][: 2 * len(Way)]

    assert "Stopped early: 31 searches of the plan were not begun" in text
    assert "Stopped early" not in page([], PLAN, LIVE, command="x", machine="m", date="2026-12-02")
    assert set(begun) == set(Equal)


@pytest.fixture
def comparing(monkeypatch, tmp_path):
    """A whole comparison whose searches are told by a function; the page, read after each of them."""
    pages: list[str] = []
    monkeypatch.setattr(synth, "RESULT", tmp_path / "synth.md")
    monkeypatch.setattr(synth, "_endpoints", lambda: configured({}, packaged_url=lambda: "http://127.0.0.1:1/v1"))

    def compare(search, *arguments):
        def run(cell, *_, within_s):
            assert within_s >= synth.GRACE_S
            pages.append(synth.RESULT.read_text() if synth.RESULT.exists() else "")
            return search(cell)

        monkeypatch.setattr(synth, "run", run)
        done = CliRunner().invoke(synth.main, ["--operators", "softmax", "--seeds", "1", *arguments])
        return done, pages, synth.RESULT.read_text() if synth.RESULT.exists() else ""

    return compare


def test_the_page_is_written_after_each_search_so_that_none_is_lost(comparing):
    def search(cell):
        if cell.way is Way.WHOLE:
            raise synth.SearchFailedError(f"{cell.name}: exit status 70")
        if cell.equal is Equal.COST:
            raise KeyboardInterrupt
        return replace(outcome(cell.way, 1.5), cell=cell)

    done, pages, last = comparing(search)

    assert done.exit_code != 0
    assert [text.count("were not begun") for text in pages] == [0, 1, 1, 1, 1]
    assert "4 searches of the plan were not begun" in last
    assert "| hybrid | 1 | 1 | 1.500" in last
    assert "evaluations.softmax.1.whole: exit status 70" in last


def test_no_search_is_begun_after_the_time_that_there_is(comparing, monkeypatch):
    minutes = iter(range(100))
    monkeypatch.setattr(synth.time, "monotonic", lambda: next(minutes) * 60)

    done, pages, last = comparing(lambda cell: replace(outcome(cell.way, 1.5), cell=cell), "--minutes", "3")

    assert done.exit_code == 0
    assert len(pages) == 3
    assert "5 searches of the plan were not begun" in last


@pytest.mark.parametrize("said", ["Traceback", '{"outcome": "improved"}', '{"outcome": 3, "reason"', "[1]", ""])
def test_a_search_that_leaves_nothing_readable_ends_itself_and_not_the_comparison(said, monkeypatch, tmp_path):
    ended = subprocess.CompletedProcess([], 0, stdout=f"{said}\n", stderr="what it said")
    monkeypatch.setattr(synth_search, "called", lambda *_: ended)
    with pytest.raises(synth_search.SearchFailedError, match=r"cost\.softmax\.1\.moves"):
        synth_search.run(CELL, PLAN, tmp_path, {}, within_s=45.0)


HANGS = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(8)"])
time.sleep(8)
"""


def test_a_search_that_hangs_ends_itself_and_not_the_comparison(monkeypatch, tmp_path):
    called = synth_search.called
    hanging = [sys.executable, "-c", HANGS]
    monkeypatch.setattr(synth_search, "called", lambda _, *given: called(hanging, *given))
    with pytest.raises(synth_search.SearchFailedError, match="moves: no end within 1 s"):
        synth_search.run(CELL, PLAN, tmp_path, {}, within_s=1.0)


def test_what_a_search_said_is_read_whatever_bytes_it_is(tmp_path):
    says = "import sys; sys.stdout.buffer.write(b'{}\\xff'); sys.stderr.write('why'); sys.exit(3)"
    done = synth_search.called([sys.executable, "-c", says], {}, tmp_path / "x.said", 30.0)
    assert (done.returncode, done.stdout, done.stderr) == (3, "{}\ufffd", "why")


def test_what_was_recorded_is_kept_while_the_comparison_goes_on(named, tmp_path):
    path = tmp_path / "r.jsonl"
    with answering(PLAN, named, record=path) as who:
        who.keep()
        assert synth_tape.load(path).answers == []
        who.tape.answers += tape(("a", "q1", "one")).answers
        who.keep()
        assert len(synth_tape.load(path).answers) == 1


# --- recordings -------------------------------------------------------------------------------------------------------


def tape(*answers):
    return Tape(
        answers=[
            synth_tape.Answer(
                cell=cell,
                method="POST",
                path="v1/chat",
                asked=asked,
                status=200,
                content_type="x",
                body=body,
                seconds=0.0,
            )
            for cell, asked, body in answers
        ]
    )


def played(recording, *asked, cell="a"):
    return [recording.play(cell, "POST", "v1/chat", question).body for question in asked]


def test_an_equal_question_gets_its_own_answer():
    recording = tape(("a", "q1", "one"), ("a", "q2", "two"), ("b", "q2", "other search"))

    assert played(recording, "q2", "q1") == ["two", "one"]
    assert recording.other == 0


def test_another_question_gets_the_next_answer_of_its_search_and_is_counted():
    recording = tape(("b", "q0", "other search"), ("a", "q1", "one"), ("a", "q2", "two"))

    assert played(recording, "new", "q2") == ["one", "two"]
    assert (recording.played, recording.other) == (2, 1)


def test_a_search_that_asks_more_than_it_did_hears_the_answers_again():
    assert played(tape(("a", "q1", "one"), ("a", "q2", "two")), "x", "y", "z") == ["one", "two", "one"]


def test_a_count_of_tokens_is_that_of_its_own_text_or_none_and_is_no_answer_of_a_model():
    recording = tape(("a", "q1", "one"), ("a", "q2", "two"))
    recording.answers = [replace(one, path="large/tokenize") for one in recording.answers]
    counts = [recording.play("a", "POST", "large/tokenize", asked) for asked in ("q2", "q2", "q3")]

    assert [one and one.body for one in counts] == ["two", "two", None]
    assert recording.played == 0


def test_nothing_is_made_up_for_a_search_that_was_not_recorded():
    assert tape(("a", "q1", "one")).play("b", "POST", "v1/chat", "q1") is None


def test_what_is_no_recording_is_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"kind": "something else"}\n')
    with pytest.raises(ValueError, match="is not a recording"):
        synth_tape.load(path)


@pytest.fixture
def upstream():
    """An endpoint that answers with what it was asked, recorded beforehand."""
    recording = tape(("up", "unheard", '{"text": "é"}'))
    with synth_tape.running(recording) as address:
        yield f"{address}/up"


def ask(address, cell):
    headers = {"authorization": "Bearer planted-secret"}
    return httpx.post(f"{address}/{cell}/large/chat", json={"q": 1}, headers=headers, timeout=30)


def test_what_was_recorded_is_played_without_the_endpoint_and_holds_no_key(upstream, tmp_path):
    recording = Tape(upstream={"large": f"{upstream}/v1"}, header={"endpoint": "up"})
    with synth_tape.running(recording) as address, ThreadPoolExecutor(4) as pool:
        live = list(pool.map(lambda _: ask(address, "cell").text, range(4)))
    recording.save(tmp_path / "r.jsonl")
    again = synth_tape.load(tmp_path / "r.jsonl")
    with synth_tape.running(again) as address:
        replayed = ask(address, "cell")
        missing = ask(address, "another")

    assert live == ['{"text": "é"}'] * 4
    assert replayed.text == live[0]
    assert replayed.headers["content-type"] == "x"
    assert missing.status_code == 400
    assert "planted-secret" not in (tmp_path / "r.jsonl").read_text()
    assert (again.played, again.other) == (1, 0)


# --- endpoints --------------------------------------------------------------------------------------------------------

CELL = Cell(equal=Equal.COST, operator="softmax", seed=1, way=Way.MOVES)
FILE = """
[endpoints.large]
url = "https://api.anthropic.com/v1"
model = "large \\"2\\""
key_env = "VENDOR_KEY"
prices = { input = 3_000_000, output = 15_000_000, currency = "EUR" }
sampling = {}

[endpoints.local]
url = "http://127.0.0.1:8080/v1"
model = "qwen"
server = "llama.cpp"
allow_plaintext = true
silence_s = 60.5
"""


def read(path):
    return {one.name: one for one in configuration.read(path, {"VENDOR_KEY": "planted-secret"})}


@pytest.fixture
def named(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    return configured({"MODEL_ENDPOINTS": str(path)})


def test_endpoints_are_asked_as_configured(named, tmp_path):
    with answering(PLAN, named) as who:
        settings = who.settings_of(CELL, tmp_path)

    assert read(Path(settings["MODEL_ENDPOINTS"])) == read(tmp_path / "mine.toml")
    assert who.source == Source(
        live=True,
        endpoint='large "2" at api.anthropic.com, qwen at 127.0.0.1',
        unpriced="no price is known of one of these endpoints",
    )


def test_recorded_endpoints_differ_in_their_address_alone(named, tmp_path):
    with answering(PLAN, named, record=tmp_path / "r.jsonl", date="2026-12-02") as who:
        found = read(Path(who.settings_of(CELL, tmp_path)["MODEL_ENDPOINTS"]))
        address = who.address

    assert found["large"].url == f"{address}/{CELL.name}/large/v1"
    assert who.tape.upstream["large"] == "https://api.anthropic.com"
    assert {n: replace(one, url="") for n, one in found.items()} == {
        n: replace(one, url="") for n, one in read(tmp_path / "mine.toml").items()
    }


def test_a_recording_brings_its_plan_and_endpoints_and_needs_no_key(named, tmp_path):
    with answering(PLAN, named, record=tmp_path / "r.jsonl", date="2026-12-02"):
        pass
    tape = synth_tape.load(tmp_path / "r.jsonl")
    with playing(tape) as who:
        path = Path(who.settings_of(CELL, tmp_path)["MODEL_ENDPOINTS"])
        found = configuration.read(path, {})

    assert Plan.from_plain(tape.header["plan"]) == PLAN
    assert [one.key for one in found] == [None, None]
    assert who.source.endpoint == 'large "2" at api.anthropic.com, qwen at 127.0.0.1 (2026-12-02)'
    assert not who.source.live


def test_one_endpoint_may_be_named_by_variables(tmp_path):
    variables = {"MODEL_URL": "https://host/v1", "MODEL_NAME": "m", "MODEL_API_KEY": "planted-secret"}
    with answering(PLAN, configured(variables)) as who:
        path = Path(who.settings_of(CELL, tmp_path)["MODEL_ENDPOINTS"])

    (found,) = configuration.read(path, variables)
    assert (found.url, found.model) == ("https://host/v1", "m")
    assert found.key is not None
    assert "planted-secret" not in path.read_text()


def test_without_an_endpoint_the_packaged_model_answers_and_the_page_says_what_that_means():
    found = configured({}, packaged_url=lambda: "http://127.0.0.1:1/v1")

    assert "SmolLM2-135M" in found.told
    assert "not what a capable model adds" in found.note
