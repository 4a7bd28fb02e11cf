"""``docs/grpc.md`` names what there is, and nothing else."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from shared.rpc.methods import METHODS
from shared.rpc.settings import ClientSettings, ServerSettings

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "grpc.md").read_text(encoding="utf-8")


def test_every_setting_that_is_documented_exists_and_every_one_of_a_server_is_documented():
    server = {f"GRPC_{field.name.upper()}" for field in fields(ServerSettings)}
    client = {f"KERNELEVOLVE_{field.name.upper()}" for field in fields(ClientSettings)}
    named = set(re.findall(r"\b(?:GRPC|KERNELEVOLVE)_[A-Z_]+", TEXT))
    assert named <= server | client
    assert server <= named


def test_the_table_gives_every_method_its_role():
    table: dict[str, dict[str, str]] = {}
    service = ""
    for line in TEXT.splitlines():
        row = re.match(r"\| (?:`(protos\.\S+)`)? ?\| `([\w ]+)` \| (\w+) \|", line)
        if row:
            service = row[1] or service
            table.setdefault(service, {}).update(dict.fromkeys(row[2].split(), row[3]))
    assert table == {
        name: {method: known.role.word for method, known in methods.items()} for name, methods in METHODS.items()
    }
