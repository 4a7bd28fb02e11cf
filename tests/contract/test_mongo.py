"""The MongoDB store honours its port, and what it does when its server crashes, refuses or is no replica set."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest
from pymongo import MongoClient

from shared.store.mongo import MongoStore
from tests import servers
from tests.contract.store_contract import StoreContract

PREFIX = f"kernelevolve_test_{os.getpid()}_"
numbers = itertools.count()


@pytest.fixture(autouse=True, scope="module")
def server() -> Iterator[None]:
    """Started before any event loop; on a server that stays, the databases that were made here are dropped."""
    url = servers.mongo_url()
    yield
    if "MONGO_URL" not in os.environ:
        return
    with MongoClient(url) as client:
        for name in client.list_database_names():
            if name.startswith(PREFIX):
                client.drop_database(name)


def a_url() -> str:
    """Of an empty database."""
    return servers.mongo_url(f"{PREFIX}{next(numbers)}")


class TestMongoStore(StoreContract):
    def make(self) -> MongoStore:
        return MongoStore(a_url())
