"""Fixtures of the interop tests: the Paimon engine, the peers, and the recording of what each test proves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.engine import Engine
from tests.interop.engine_build import EngineUnavailable
from tests.interop.peers import pypaimon, pypaimon_rust  # noqa: F401  # fixtures
from tests.interop.recording import *  # noqa: F403  # hooks


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """Paimon's Java engine, one process for each pytest process; skips where there is none."""
    try:
        running = Engine.start()
    except EngineUnavailable as missing:
        pytest.skip(str(missing))
    yield running
    running.stop()
