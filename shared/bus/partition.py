"""One partition of the memory bus: a log of bytes with offsets, bounded by a retention rule."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from shared.bus import Record, key_bytes, key_text


@dataclass(frozen=True, slots=True)
class _Stored:
    """A record as bytes, so that no reader shares an object with the writer."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    published_ns: int


class Partition:
    """An append-only log. Offsets only grow; the front of the log is dropped by ``make_room``.

    A compacted log keeps the newest record of every key instead, at the offset it had.
    """

    def __init__(self, *, records_max: int, compacted: bool) -> None:
        self._records_max, self._compacted = records_max, compacted
        self._offsets: list[int] = []
        self._stored: list[_Stored] = []
        self.end = 0
        """The offset the next record will get."""

    def append(self, record: Record, published_ns: int) -> None:
        headers = tuple((name, bytes(value)) for name, value in record.headers.items())
        self._stored.append(_Stored(key_bytes(record.key), bytes(record.value), headers, published_ns))
        self._offsets.append(self.end)
        self.end += 1

    def read(self, position: int) -> tuple[int, int, Record] | None:
        """Offset and time of publication of the first record at or after ``position``, and the record; None at the end
        of the log.
        """
        index = bisect_left(self._offsets, position)
        if index == len(self._offsets):
            return None
        stored = self._stored[index]
        record = Record(key=key_text(stored.key), value=stored.value, headers=dict(stored.headers))
        return self._offsets[index], stored.published_ns, record

    def make_room(self, consumed: int) -> bool:
        """Drop what retention allows once the log is full; False when it stays full.

        ``consumed`` is the lowest offset that somebody who reads still has to commit: nothing from there on is dropped.
        """
        if len(self._offsets) < self._records_max:
            return True
        keep = self._survivors(consumed)
        self._offsets = [self._offsets[index] for index in keep]
        self._stored = [self._stored[index] for index in keep]
        return len(self._offsets) < self._records_max

    def _survivors(self, consumed: int) -> list[int]:
        first_kept = bisect_left(self._offsets, consumed)
        if not self._compacted:
            # Half of the log at once: dropping one record at a time would move the whole list for each.
            return list(range(min(first_kept, len(self._offsets) // 2), len(self._offsets)))
        newest = {stored.key: index for index, stored in enumerate(self._stored)}
        return [
            index for index, stored in enumerate(self._stored) if index >= first_kept or newest[stored.key] == index
        ]
