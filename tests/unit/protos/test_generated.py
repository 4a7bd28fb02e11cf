"""The generated code that is checked in is what the proto files say."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "protos").rglob("*.proto"))


ENDINGS = ("_pb2.py", "_pb2.pyi")


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("protos")
    compiler = [sys.executable, "-m", "grpc_tools.protoc", "-I", "."]
    subprocess.run([*compiler, f"--python_out={folder}", f"--pyi_out={folder}", *SOURCES], cwd=ROOT, check=True)
    return folder


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_checked_in_code_is_not_stale(regenerated: Path, source: str, ending: str) -> None:
    generated = source.removesuffix(".proto") + ending
    assert (ROOT / generated).read_text() == (regenerated / generated).read_text(), (
        f"{generated} is stale for grpcio-tools {version('grpcio-tools')}; run `make protos`"
    )


def test_no_generated_code_outlives_its_source() -> None:
    found = {str(path.relative_to(ROOT)) for ending in ENDINGS for path in (ROOT / "protos").rglob(f"*{ending}")}
    assert found == {source.removesuffix(".proto") + ending for source in SOURCES for ending in ENDINGS}
