"""The example of another system's search, against the simulated chip: it gets verdicts and picks a kernel."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

from evaluator_svc import service
from evaluator_svc.settings import from_env
from shared.ports import open_ports
from tests.aio import on_loop
from tests.integration.evaluator.test_evaluate_api import ENVIRONMENT, MEMORY
from tests.loopback import served

EXAMPLE = Path(__file__).parents[3] / "examples" / "foreign_search.py"
DOCUMENT = EXAMPLE.parents[1] / "docs" / "grpc.md"


@on_loop
async def test_the_example_of_a_foreign_search_finds_its_best_kernel(capsys):
    spec = importlib.util.spec_from_file_location("foreign_search", EXAMPLE)
    assert spec is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    async with open_ports(MEMORY) as ports:
        built = service.build(ports, from_env(ENVIRONMENT))
        async with served([built], ports) as address:
            accumulators, speedup = await example.search(address)
    told = capsys.readouterr().out
    assert told.count("accumulators\n") == example.TRIES
    assert told.count("  admission: ok") == example.TRIES
    assert (accumulators, speedup) == (0, 0.0) or (accumulators in example.ACCUMULATORS and speedup > 0)


@on_loop
async def test_the_example_in_the_documents_gets_a_verdict(capsys, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (text,) = (block for block in blocks if "EvaluatorServiceStub" in block)
    monkeypatch.chdir(EXAMPLE.parents[1])
    async with open_ports(MEMORY) as ports:
        built = service.build(ports, from_env(ENVIRONMENT))
        async with served([built], ports) as address:
            there = text.replace("127.0.0.1:50051", address).replace("asyncio.run(main())", "")
            names: dict[str, Any] = {}
            exec(compile(there, str(DOCUMENT), "exec"), names)
            await names["main"]()
    told = capsys.readouterr().out
    assert told.index("understood {") < told.index('stage: "queued"') < told.index("evaluation {")
