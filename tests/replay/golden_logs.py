"""Golden logs: small searches recorded once per policy and logic version, and never edited after a release.

``python -m tests.replay.golden_logs`` records those that are missing. To change decision logic on purpose, raise
``logic_version`` of new searches and record logs of the new version beside the old ones, which must go on replaying.
Version 1 is that of the first release; until then a change replaces its log.
"""

from __future__ import annotations

from pathlib import Path

from shared import kelog
from tests.builders import a_search
from tests.fakes.drive import Drive

FOLDER = Path(__file__).parent / "golden"
POLICIES = ("greedy", "beam", "mcts", "evolve")
LOGIC_VERSION = 1
EVALUATIONS = 24


def path_of(policy: str, logic_version: int = LOGIC_VERSION) -> Path:
    return FOLDER / f"{policy}_{logic_version}.kelog"


def recorded(policy: str) -> Drive:
    """The search that the golden log of ``policy`` is a recording of."""
    drive = Drive(order_seed=7)
    drive.run(a_search(search_id=f"golden-{policy}", policy=policy, seed=11, evaluations=EVALUATIONS))
    return drive


def main() -> None:
    for policy in POLICIES:
        if path_of(policy).exists():
            continue
        drive = recorded(policy)
        kelog.write(path_of(policy), drive.entries, {}, stream=drive.tree.search.search_id)
        print(f"recorded {path_of(policy).name}: {len(drive.entries)} entries")


if __name__ == "__main__":
    main()
