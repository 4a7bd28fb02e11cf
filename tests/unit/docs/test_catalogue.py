"""``protos/README.md`` lists every service, event, topic and header there is, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from shared import dead_letters, topics
from shared.bus import Delivery, Record
from shared.events import EVENT_TYPES
from shared.rpc.methods import METHODS

TEXT = (Path(__file__).resolve().parents[3] / "protos" / "README.md").read_text(encoding="utf-8")
CHIP = "<chip>"


def rows(title: str) -> list[list[str]]:
    """Cells of the table whose header begins with ``title``."""
    table = TEXT.split(f"\n| {title} |", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_method_has_its_role() -> None:
    told: dict[str, dict[str, str]] = {}
    service = ""
    for first, methods, role, _ in rows("service"):
        service = next(iter(quoted(first)), service)
        told.setdefault(service, {}).update(dict.fromkeys(quoted(methods), role))
    assert told == {
        name: {method: known.role.word for method, known in methods.items()} for name, methods in METHODS.items()
    }


def test_every_event_has_a_row_with_its_topic_and_key() -> None:
    listed = {quoted(row[0])[0]: row for row in rows("type")}
    assert listed.keys() == {owner.__name__ for owner in EVENT_TYPES}
    for _, topic, key, *_ in listed.values():
        if quoted(topic):
            row = topics.describe(quoted(topic)[0])
            assert quoted(key) == [row.key]
            assert row.compacted == ("compacted" in topic)


def test_topics_have_their_partitions_and_retention() -> None:
    kept = {topics.WEEK_MS: "a week", -1: "for ever"}
    families = {topics.evaluation_requests(CHIP), topics.dead_letters("<topic>")}
    assert {quoted(row[0])[0] for row in rows("topic")} == {row.name for row in topics.TABLE} | families
    for name, partitions, told in rows("topic"):
        row = topics.describe(quoted(name)[0])
        assert int(partitions) == row.partitions
        assert told == ("the latest of each key" if row.compacted else kept[row.retention_ms])


def test_every_header_of_a_dead_letter_is_explained() -> None:
    delivery = Delivery(topic=topics.FACTS, partition=0, offset=0, record=Record(key="", value=b"", headers={}))
    letter = dead_letters.record(delivery, "", group="", attempts=1, at_ns=0)
    assert {header for row in rows("header") for header in quoted(row[0])} == letter.headers.keys()
