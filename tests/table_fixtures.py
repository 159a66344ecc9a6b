"""What tests of tables share: small tables in temporary directories."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pyspark_paimon import Table
from tests.damaged_tables import Copies
from tests.iceberg_reader import IcebergReader, Unavailable
from tests.stores.azure_server import CONTAINER

STORE = "PAIMON_TEST_STORE"
"""Of the environment: the store (``s3``, ``azure``, ``hdfs``) that tables of ``create`` and ``table_root`` lie on."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With a store, those tests run whose tables lie there, and that look at their files by the table alone."""
    if not os.environ.get(STORE):
        return
    wanted = [
        item for item in items if "table_root" in getattr(item, "fixturenames", ()) and item.get_closest_marker("local_files") is None
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
    items[:] = wanted


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """Whole tables to damage copies of."""
    return Copies(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="session")
def iceberg() -> Iterator[IcebergReader]:
    """PyIceberg in a process of its own; skips where its environment cannot be made."""
    try:
        reader = IcebergReader()
    except Unavailable as error:
        pytest.skip(f"PyIceberg {error}")
    yield reader
    reader.stop()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check looks again for what expired meanwhile at once: nobody expires anything beside most tests."""
    with suppress(ImportError):  # the tests of the core run without plugins, too
        monkeypatch.setattr("pyspark_paimon.plugins.fsck.jobs._EXPIRY_SECONDS", 0.01)


@pytest.fixture
def table_root(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A new empty directory, or with ``STORE`` a new empty place on an object store."""
    if not os.environ.get(STORE):
        return str(tmp_path)
    store = os.environ[STORE]
    server, monkeypatch = request.getfixturevalue(store), request.getfixturevalue("monkeypatch")
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    if store == "hdfs":
        return f"{server.uri()}/{uuid.uuid4()}"
    return f"az://{CONTAINER}/{uuid.uuid4()}" if store == "azure" else str(request.getfixturevalue("warehouse")())


@pytest.fixture
def create(table_root: str) -> Callable[..., Table]:
    """Creates ``table_root/<name>``; a primary-key table with one bucket unless told otherwise."""

    def make(
        schema: Any = "id BIGINT, city STRING, n INT", *, name: str = "t", primary_keys: Any = ("id",), options: Any = None, **rest: Any
    ) -> Table:
        settings = {"bucket": "1"} if primary_keys else {}
        return Table.create(f"{table_root}/{name}", schema, primary_keys=primary_keys, options={**settings, **(options or {})}, **rest)

    return make
