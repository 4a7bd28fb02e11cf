"""An endpoint's record holds what it took itself, whoever answered in the end, and replays to the same."""

from __future__ import annotations

from dataclasses import replace

from search_svc import replay
from shared import wire
from shared.events import Context, EndpointRecord, ExpansionRequested, Memory, Usage
from shared.usage import UNKNOWN, taken_by, total
from tests.builders import a_search, enveloped, expansion_failed, rejected
from tests.fakes.drive import Drive
from tests.fakes.landscape import Landscape

DEAR = taken_by(Usage(input_tokens=900, output_tokens=100, cost_micro=5_000, requests=2), "dear")
CHEAP = taken_by(Usage(input_tokens=90, output_tokens=10, cost_micro=7, requests=1), "cheap")
FREE = taken_by(Usage(requests=3), "down")
CONTEXT = Context(memory=Memory.PARENT, asking="whole", endpoint="cheap")


class Billed(Landscape):
    """Answers each index with no kernel, or fails as a whole; ``usage`` is what it took."""

    def __init__(self, usage: Usage, *, fails: bool = False, context: Context = CONTEXT) -> None:
        super().__init__()
        self.usage, self.fails, self.context = usage, fails, context

    def synthesize(self, request):
        if self.fails:
            return [expansion_failed(request, "endpoint", "down", pauses=True, usage=self.usage)]
        return [
            replace(rejected(request, n, "no_block"), usage=self.usage, context=self.context)
            for n in range(request.count)
        ]


def after(landscape: Landscape) -> tuple[Drive, dict[str, EndpointRecord]]:
    """A search after the answers to its first expansion."""
    drive = Drive(landscape=landscape)
    drive.take(enveloped(a_search(evaluations=4)))
    answers = sum(
        1 if landscape.fails else event.count
        for entry in drive.entries
        for command in entry.commands
        if isinstance(event := wire.unpack(command).event, ExpansionRequested)
    )
    for _ in range(answers):
        drive.take(drive.waiting.pop(0))
    assert replay.verify(drive.entries).tree == drive.tree
    return drive, dict(drive.tree.endpoints)


def test_the_cost_of_an_arm_that_failed_is_not_the_cost_of_the_one_that_answered():
    drive, records = after(Billed(total(DEAR, CHEAP)))
    times = drive.tree.rejected
    assert times
    assert records == {
        "cheap": EndpointRecord(endpoint="cheap", asked=times, tokens=100 * times, cost_micro=7 * times),
        "dear": EndpointRecord(endpoint="dear", asked=times, tokens=1_000 * times, cost_micro=5_000 * times),
    }
    assert drive.tree.spent.cost_micro == 5_007 * times


def test_an_arm_that_was_down_and_took_nothing_is_not_held_to_have_tried():
    _, records = after(Billed(total(FREE, CHEAP)))
    assert set(records) == {"cheap"}


def test_what_a_failed_expansion_took_is_its_endpoints():
    _, records = after(Billed(total(DEAR, FREE), fails=True))
    assert {name: record.gains for name, record in records.items()} == {"dear": 0}
    assert records["dear"].cost_micro == 5_000 * records["dear"].asked > 0


def test_a_bill_without_shares_is_the_named_endpoints_as_in_older_logs():
    drive, records = after(Billed(replace(total(DEAR, CHEAP), spends=(), cost_micro=UNKNOWN)))
    times = drive.tree.rejected
    assert records == {
        "cheap": EndpointRecord(endpoint="cheap", asked=times, tokens=1_100 * times, cost_micro=UNKNOWN),
    }
