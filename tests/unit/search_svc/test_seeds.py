"""An expansion draws by its number in the search, of the same seed, operator and chip; in old logs by its id."""

from __future__ import annotations

from dataclasses import replace

from shared import wire
from shared.events import ExpansionRequested, OperatorRef
from tests.builders import a_search
from tests.fakes.drive import Drive


def seeds(**changes) -> list[int]:
    """Of a search's expansions, in the order in which they were asked for."""
    drive = Drive()
    drive.run(a_search(**changes))
    commands = [wire.unpack(command).event for entry in drive.entries for command in entry.commands]
    return [event.seed for event in commands if isinstance(event, ExpansionRequested)]


def test_searches_of_one_seed_ask_with_the_same_seeds_whatever_they_are_called():
    one = seeds(search_id="search-1", seed=7)
    assert one[:3] == seeds(search_id="search-2", seed=7)[:3]
    assert len(one) == len(set(one)) > 5


def test_another_seed_operator_or_chip_asks_with_other_seeds():
    other_operator = OperatorRef(name="other", source_hash="other")
    first = [
        seeds(seed=7)[0],
        seeds(seed=8)[0],
        seeds(seed=7, operator=other_operator)[0],
        seeds(seed=7, chip="nvidia-sm_90")[0],
    ]
    assert len(set(first)) == 4


def test_searches_of_logic_version_1_go_on_asking_with_seeds_of_their_own_name():
    one, two = (seeds(search_id=name, seed=7, logic_version=1) for name in ("search-1", "search-2"))
    assert not set(one) & set(two)


def test_new_searches_have_the_newest_logic():
    assert a_search() == replace(a_search(), logic_version=2)
