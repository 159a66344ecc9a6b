"""What the tests of the front room share: small tables in temporary directories."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyspark_paimon import Table
from pyspark_paimon.jobs import fsck
from tests.pyspark_paimon.fsck_kit import Copies
from tests.stores.azure_server import CONTAINER


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """Whole tables to damage copies of."""
    return Copies(tmp_path_factory.mktemp("whole"))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check looks again for what expired meanwhile at once: nobody expires anything beside most tests."""
    monkeypatch.setattr(fsck, "_EXPIRY_SECONDS", 0.01)


@pytest.fixture
def create(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Table]:
    """Creates ``tmp_path/<name>``, or with ``PAIMON_TEST_STORE`` (``s3``, ``azure``) one on an object store; a primary-key table with one bucket unless told otherwise."""
    root = str(tmp_path)
    if os.environ.get("PAIMON_TEST_STORE"):
        azure = os.environ["PAIMON_TEST_STORE"] == "azure"
        server, monkeypatch = request.getfixturevalue("azure" if azure else "s3"), request.getfixturevalue("monkeypatch")
        root = f"az://{CONTAINER}/{uuid.uuid4()}" if azure else request.getfixturevalue("warehouse")()
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)

    def make(
        schema: Any = "id BIGINT, city STRING, n INT", *, name: str = "t", primary_keys: Any = ("id",), options: Any = None, **rest: Any
    ) -> Table:
        settings = {"bucket": "1"} if primary_keys else {}
        return Table.create(f"{root}/{name}", schema, primary_keys=primary_keys, options={**settings, **(options or {})}, **rest)

    return make
