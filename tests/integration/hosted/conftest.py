"""One fork server for all tests here: starting it takes as long as importing torch."""

from __future__ import annotations

import pytest

from tests.integration.hosted import softmax_module


@pytest.fixture(scope="session")
def lab():
    with softmax_module.lab() as bench:
        yield bench
