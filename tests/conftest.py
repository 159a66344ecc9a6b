"""What tests of several rooms share: an S3 server, started once a session where a test asks for it; how long properties are tried."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator

import hypothesis
import pytest

from benchmarks.java_project import JavaUnavailable
from tests.stores.azure_server import AzureServer, AzuriteUnavailable
from tests.stores.fault_proxy import FaultProxy
from tests.stores.s3_server import BUCKET, S3Server

hypothesis.settings.register_profile("quick", max_examples=40, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=1000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A server of this session's own."""
    pytest.importorskip("obstore", reason="object stores need the extra 'objectstore'")
    try:
        server = S3Server().__enter__()
    except JavaUnavailable as error:
        pytest.skip(str(error))
    try:
        yield server
    finally:
        server.__exit__()


@pytest.fixture(scope="session")
def azure() -> Iterator[AzureServer]:
    """A server of Azure's protocol, of this session's own."""
    pytest.importorskip("obstore", reason="object stores need the extra 'objectstore'")
    server = AzureServer()
    try:
        server.__enter__()
    except AzuriteUnavailable as error:
        server.__exit__()
        pytest.skip(str(error))
    try:
        yield server
    finally:
        server.__exit__()


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    """A proxy in front of the server that does nothing until its ``rule`` is set."""
    with FaultProxy(s3.port) as proxy:
        yield proxy


@pytest.fixture
def warehouse() -> Callable[[], str]:
    """Makes a new empty place on the server."""
    return lambda: f"s3://{BUCKET}/{uuid.uuid4()}"
