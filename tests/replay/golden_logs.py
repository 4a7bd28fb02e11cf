"""Golden logs: small searches recorded once per policy and logic version, and never edited after a release.

``python -m tests.replay.golden_logs`` records those that are missing. To change decision logic on purpose, raise
``logic_version`` of new searches and record logs of the new version beside the old ones, which must go on replaying.
Until the first release a change may replace the logs of the newest version instead.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from shared import kelog
from shared.events import Basis, ModelBudget, SearchResumed
from tests.builders import a_search, enveloped
from tests.fakes.drive import Drive
from tests.fakes.landscape import Clockless, Moody

FOLDER = Path(__file__).parent / "golden"
POLICIES = ("greedy", "beam", "mcts", "evolve")
PAUSED = "paused"
"""A log of a search that paused, and was resumed."""
CLOCKLESS = (Basis.COUNTED, Basis.MODELLED)
"""There is a log of a search on a chip without a clock for each."""
LOGIC_VERSION = 2
EVALUATIONS = 24


def path_of(policy: str, logic_version: int = LOGIC_VERSION) -> Path:
    return FOLDER / f"{policy}_{logic_version}.kelog"


def recorded(policy: str) -> Drive:
    """The search that the golden log of ``policy`` is a recording of."""
    drive = Drive(order_seed=7)
    drive.run(a_search(search_id=f"golden-{policy}", policy=policy, seed=11, evaluations=EVALUATIONS))
    return drive


def paused() -> Drive:
    """A search for which nobody could write now and then, resumed with a larger budget each time."""
    drive = Drive(landscape=Moody(share=0.6), order_seed=7)
    drive.run(a_search(search_id="golden-paused", seed=11, evaluations=EVALUATIONS))
    pauses = 0
    while not drive.tree.finished:
        pauses += 1
        model = ModelBudget(tokens=1000 * pauses)
        event = SearchResumed(search_id="golden-paused", model=model)
        drive.take(enveloped(event, cause_id=f"pause-{pauses}"))
        drive.finish()
    return drive


def estimated(basis: Basis) -> Drive:
    """A search whose kernels have costs instead of times."""
    drive = Drive(landscape=Clockless(basis=basis), order_seed=7)
    drive.run(a_search(search_id=f"golden-{basis}", chip="no-clock", seed=11, evaluations=EVALUATIONS))
    return drive


def main() -> None:
    searches = {policy: partial(recorded, policy) for policy in POLICIES}
    searches |= {basis.value: partial(estimated, basis) for basis in CLOCKLESS}
    for name, record in {**searches, PAUSED: paused}.items():
        if path_of(name).exists():
            continue
        drive = record()
        kelog.write(path_of(name), drive.entries, {}, stream=drive.tree.search.search_id)
        print(f"recorded {path_of(name).name}: {len(drive.entries)} entries")


if __name__ == "__main__":
    main()
