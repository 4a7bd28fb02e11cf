"""The example of another system's search, against a worker of the simulated chip: it gets verdicts and picks a kernel."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from evaluator_svc import service
from evaluator_svc.settings import from_env
from shared.ports import open_ports
from tests.aio import on_loop
from tests.integration.evaluator.test_evaluate_api import ENVIRONMENT, MEMORY
from tests.loopback import served

EXAMPLE = Path(__file__).parents[3] / "examples" / "foreign_search.py"


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
