"""Fixtures of the interop tests: the peers, and the recording of what each test proves."""

from __future__ import annotations

from tests.interop.peers import pypaimon, pypaimon_rust  # noqa: F401  # fixtures
from tests.interop.recording import *  # noqa: F403  # hooks
