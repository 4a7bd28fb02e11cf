"""URLs choose adapters; what cannot be chosen is one clear line without secrets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shared import adapters
from shared.bus.memory import MemoryBus
from shared.cache.memory import MemoryCacheBackend
from shared.clock import ManualClock, SystemClock
from shared.errors import UserError
from shared.ports import open_ports
from shared.settings import PortSettings
from shared.store.memory import MemoryStore
from shared.store.sqlite import SqliteStore
from tests.aio import on_loop


def test_schemes_choose_adapters() -> None:
    assert isinstance(adapters.open_bus("memory:"), MemoryBus)
    assert isinstance(adapters.open_store("MEMORY:"), MemoryStore)
    assert isinstance(adapters.open_store("sqlite:some/path.db"), SqliteStore)
    assert isinstance(adapters.open_cache("memory:", ManualClock()), MemoryCacheBackend)


@pytest.mark.parametrize(
    ("open_it", "where", "what"),
    [
        (
            lambda: adapters.open_store("pigeon:"),
            "STORE_URL=pigeon:",
            "no adapter for scheme 'pigeon' (use memory: or sqlite:PATH or mongodb://…)",
        ),
        (
            lambda: adapters.open_cache("pigeon://:pw@host/0", ManualClock()),
            "CACHE_URL=pigeon://…@host/0",
            "no adapter for scheme 'pigeon' (use memory: or redis://…)",
        ),
        (
            lambda: adapters.open_bus("pigeon"),
            "BUS_URL=pigeon",
            "no adapter for scheme 'pigeon' (use memory: or kafka://…)",
        ),
        (lambda: adapters.open_store("sqlite:"), "STORE_URL=sqlite:", "names no file (write sqlite:PATH)"),
    ],
)
def test_a_url_that_cannot_be_opened_is_one_line_with_the_way_out(open_it: object, where: str, what: str) -> None:
    with pytest.raises(UserError) as caught:
        open_it()
    assert str(caught.value) == f"{where}: {what}"


def test_a_driver_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "motor.motor_asyncio", None)
    monkeypatch.delitem(sys.modules, "shared.store.mongo", raising=False)
    with pytest.raises(UserError, match=r"its driver motor.* is not installed \(pip install 'kernelevolve\[mongo\]'\)"):
        adapters.open_store("mongodb://db/ke")


@on_loop
async def test_ports_open_together(tmp_path: Path) -> None:
    settings = PortSettings(store_url=f"sqlite://{tmp_path}/store.db")
    async with open_ports(settings) as ports:
        assert await ports.store.blobs.get(await ports.store.blobs.put(b"x")) == b"x"
        assert isinstance(ports.clock, SystemClock)
    assert (tmp_path / "store.db").exists()


def test_the_runtime_needs_no_driver_and_no_torch() -> None:
    """Services import all of this; a driver is imported when its adapter is opened."""
    program = (
        "import sys, shared.runtime, shared.kelog, shared.envelopes\n"
        "heavy = {'aiokafka', 'motor', 'pymongo', 'redis', 'httpx', 'torch', 'numpy', 'sqlite3'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=Path.cwd(), check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
