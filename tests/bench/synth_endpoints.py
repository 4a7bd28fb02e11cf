"""Who answers in the comparison of synthesizers: configured endpoints, the packaged model, or a recording.

Every search is given a ``MODEL_ENDPOINTS`` file of its own. When answers are recorded or played, its URLs lead to the
tape, one path for each search and endpoint; all else stays as configured.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shared.settings import from_env
from synthesizer_svc.model.capabilities import Protocol
from synthesizer_svc.model.presets import preset_for
from synthesizer_svc.model.prices import Prices, PriceSettings
from tests import model_server
from tests.bench import synth_tape
from tests.bench.synth_plan import Cell, Plan
from tests.bench.synth_report import Source
from tests.bench.synth_tape import Tape

Tables = Mapping[str, Mapping[str, Any]]
"""Endpoints by name, as in a ``MODEL_ENDPOINTS`` file."""

SHORT_FORM = "default"
USD = Prices().currency
PACKAGED = "SmolLM2-135M-Instruct (Q4_1) from its package behind llama.cpp's server, one thread of this machine"
PACKAGED_NOTE = (
    "135 million parameters are too few to write a kernel, and hardly better than chance at choosing moves: with this "
    "model the page shows that the loop works with real answers, and what bad ones cost; not what a capable model adds."
)
PACKAGED_SETTINGS = {
    "MODEL_OUTPUT_TOKENS_MAX": "200",
    "MODEL_REPAIR_TURNS": "1",
    "MODEL_QUOTED_KERNELS_MAX": "0",
    "MODEL_MOVES_OFFERED_MAX": "12",
    "SYNTHESIZER_DOCUMENTS_MAX": "0",
}
"""A prompt costs this model milliseconds a token; a search by whole kernels ends when two dozen answers were none."""
OF_ONE_ENDPOINT = ("MODEL_URL", "MODEL_NAME", "MODEL_PROTOCOL", "MODEL_CA", "MODEL_ALLOW_PLAINTEXT")
KEYS = ("key_env", "key_file", "authentication", "ca")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """``settings`` go with the endpoints; the environment's own come before them."""

    tables: Tables
    told: str
    settings: Mapping[str, str]
    note: str = ""

    @property
    def unpriced(self) -> str:
        """Why what they answer has no cost in money; empty where it has."""
        prices = [table.get("prices", {}) for table in self.tables.values()]
        if any("input" not in price or "output" not in price for price in prices):
            return "no price is known of " + ("this endpoint" if len(prices) == 1 else "one of these endpoints")
        if not any(price["input"] or price["output"] for price in prices):
            return "this endpoint takes no money (its prices are 0)"
        return ""

    @property
    def currency(self) -> str:
        """Of the prices; files that have several are refused."""
        return next(
            (str(table["prices"].get("currency", USD)) for table in self.tables.values() if "prices" in table), USD
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Who answers, for the length of a comparison. ``tape`` None: the endpoints are asked directly."""

    configured: Configured
    address: str = ""
    tape: Tape | None = None
    played: bool = False
    record: Path | None = None
    """Where ``tape`` is kept."""

    def keep(self) -> None:
        """Write down what was recorded so far."""
        if self.tape is not None and self.record is not None:
            self.tape.save(self.record)

    def settings_of(self, cell: Cell, folder: Path) -> dict[str, str]:
        """The environment that makes a search ask; writes its file of endpoints."""
        tables: Tables = self.configured.tables
        if self.tape is not None:
            tables = {name: _elsewhere(table, f"{self.address}/{cell.name}/{name}") for name, table in tables.items()}
        path = folder / f"{cell.name}.toml"
        path.write_text(to_toml(tables), encoding="utf-8")
        return {**self.configured.settings, "MODEL_ENDPOINTS": str(path)}

    @property
    def source(self) -> Source:
        mine = self.configured
        source = Source(live=True, endpoint=mine.told, note=mine.note, settings=mine.settings, unpriced=mine.unpriced)
        if self.tape is None or not self.played:
            return source
        return replace(source, live=False, played=self.tape.played, other=self.tape.other)


def configured(environment: Mapping[str, str], packaged_url: Callable[[], str] = model_server.url) -> Configured:
    """The endpoints that ``environment`` names and has been checked for, or the packaged model, which is started."""
    if path := environment.get("MODEL_ENDPOINTS"):
        tables: Tables = tomllib.loads(Path(path).read_text(encoding="utf-8")).get("endpoints", {})
        return Configured(tables=tables, told=_told(tables), settings={})
    if url := environment.get("MODEL_URL"):
        table: dict[str, Any] = {"url": url, "model": environment.get("MODEL_NAME", "")}
        for name in ("protocol", "ca"):
            table |= {name: value} if (value := environment.get(f"MODEL_{name.upper()}")) else {}
        table |= {"key_env": "MODEL_API_KEY"} if environment.get("MODEL_API_KEY") else {}
        prices = from_env(PriceSettings, environment, "MODEL_PRICES_").table
        table |= {"prices": prices} if prices else {}
        return Configured(tables={SHORT_FORM: table}, told=_told({SHORT_FORM: table}), settings={})
    packaged = {
        "url": packaged_url(),
        "model": model_server.MODEL,
        "server": "llama.cpp",
        "concurrency": 1,
        "silence_s": 600.0,
        "capabilities": {"context_tokens": model_server.CONTEXT_TOKENS},
        "prices": {"input": 0, "output": 0},
    }
    return Configured(tables={"packaged": packaged}, told=PACKAGED, settings=PACKAGED_SETTINGS, note=PACKAGED_NOTE)


@contextmanager
def answering(plan: Plan, configured: Configured, *, record: Path | None = None, date: str = "") -> Iterator[Answering]:
    """Ask the endpoints; what is to be kept is written when the searches are done, or were interrupted."""
    if record is None:
        yield Answering(configured=configured)
        return
    header = {
        "date": date,
        "plan": plan.to_plain(),
        "endpoint": configured.told,
        "note": configured.note,
        "settings": dict(configured.settings),
        "tables": {name: _without_keys(table) for name, table in configured.tables.items()},
    }
    upstream = {name: _origin(table["url"]) for name, table in configured.tables.items()}
    tape = Tape(upstream=upstream, header=header)
    with ExitStack() as stack:
        stack.callback(tape.save, record)
        address = stack.enter_context(synth_tape.running(tape))
        yield Answering(configured=configured, address=address, tape=tape, record=record)


@contextmanager
def playing(tape: Tape) -> Iterator[Answering]:
    """Play what was recorded."""
    header = tape.header
    recorded = Configured(
        tables=header["tables"],
        told=f"{header['endpoint']} ({header['date']})",
        settings=header["settings"],
        note=header["note"],
    )
    with synth_tape.running(tape) as address:
        yield Answering(configured=recorded, address=address, tape=tape, played=True)


def to_toml(tables: Tables) -> str:
    """A ``MODEL_ENDPOINTS`` file."""
    lines = []
    for name, table in tables.items():
        lines += [f"[endpoints.{json.dumps(name)}]", *(f"{key} = {_value(value)}" for key, value in table.items()), ""]
    return "\n".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # texts, numbers, true and false are written alike in both


def _elsewhere(table: Mapping[str, Any], address: str) -> dict[str, Any]:
    """``table`` at another address. What its host is known for is told, because the other one's is not; its path stays,
    because some methods, as llama.cpp's tokenizer, are beside the version.
    """
    protocol = Protocol(table["protocol"]) if "protocol" in table else None
    url = address + urlsplit(table["url"]).path.rstrip("/")
    return {"server": preset_for(table["url"], protocol), **table, "url": url}


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _without_keys(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in KEYS}


def _told(tables: Tables) -> str:
    return ", ".join(f"{table.get('model')} at {urlsplit(table.get('url', '')).hostname}" for table in tables.values())
