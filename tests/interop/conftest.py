"""The Paimon engine for all tests of this directory: one process for each pytest process, started when it is first needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.engine import Engine
from tests.interop.engine_build import EngineUnavailable


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """Paimon's Java engine; skips where there is none."""
    try:
        running = Engine.start()
    except EngineUnavailable as missing:
        pytest.skip(str(missing))
    yield running
    running.stop()
