"""What tests of several rooms share: an S3 server, started once a session where a test asks for it; how long properties are tried."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from paimon_base.thresholds import Thresholds, use_thresholds
from tests.sampling import sample
from tests.stores.azure_server import AzureServer
from tests.stores.fault_proxy import FaultProxy
from tests.stores.hdfs_server import HdfsServer
from tests.stores.local_server import held
from tests.stores.s3_server import BUCKET, S3Server
from tests.tiers.rotation import cases_by_function

pytest_plugins = ["tests.tiers.plugin", "tests.table_fixtures", "tests.without_plugins"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--tiny``: run all tests with thresholds that few rows cross; those marked ``sizes`` keep the usual ones."""
    parser.addoption("--tiny", action="store_true", help="run with thresholds that a table of 100 rows crosses")


@pytest.hookimpl(tryfirst=True)  # before those of ``-m`` look at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is ``sampled(n)`` one case in n is quick; its other cases are long. Quick tests over Spark are in ``tests/spark``."""
    sampled: list[pytest.Item] = []
    for item in items:
        if item.get_closest_marker("long"):
            continue
        if item.get_closest_marker("spark") and "tests/spark/" not in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid} is marked spark: quick tests over Spark live in tests/spark, where they are looked for")
        if item.get_closest_marker("sampled"):
            sampled.append(item)
    for positions in cases_by_function([item.nodeid for item in sampled]).values():
        function = [sampled[position] for position in positions]
        marked = function[0].get_closest_marker("sampled")
        assert marked is not None
        # Values are those of the parametrization itself: their identities tell them apart, and not all can be compared.
        values = [{(name, id(value)) for name, value in getattr(case, "callspec").params.items()} for case in function]  # noqa: B009
        for number in set(range(len(function))) - set(sample(values, marked.args[0])):
            function[number].add_marker(pytest.mark.long)


@pytest.fixture
def set_thresholds() -> Iterator[Callable[..., None]]:
    """Set thresholds by name for the rest of the test."""
    with ExitStack() as changes:
        yield lambda **values: changes.enter_context(use_thresholds(**values)) and None


@pytest.fixture(autouse=True)
def _tiny_by_option(request: pytest.FixtureRequest) -> Iterator[None]:
    """Use tiny thresholds where the command line wants them and the test does not depend on sizes."""
    if not request.config.getoption("--tiny") or request.node.get_closest_marker("sizes"):
        yield
        return
    with use_thresholds(Thresholds.tiny()):
        yield


@pytest.fixture
def tiny() -> Iterator[Thresholds]:
    """Run the test with thresholds that a table of 100 rows crosses."""
    with use_thresholds(Thresholds.tiny()) as thresholds:
        yield thresholds


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A server of this session's own."""
    pytest.importorskip("obstore", reason="object stores need the extra 'objectstore'")
    yield from held(S3Server())


@pytest.fixture(scope="session")
def azure() -> Iterator[AzureServer]:
    """A server of Azure's protocol, of this session's own."""
    pytest.importorskip("obstore", reason="object stores need the extra 'objectstore'")
    yield from held(AzureServer())


@pytest.fixture(scope="session")
def hdfs() -> Iterator[HdfsServer]:
    """A cluster of this session's own."""
    pytest.importorskip("hdfs_native", reason="HDFS needs the extra 'hdfs'")
    yield from held(HdfsServer())


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    """A proxy in front of the server that does nothing until its ``rule`` is set."""
    with FaultProxy(s3.port) as proxy:
        yield proxy


@pytest.fixture
def warehouse() -> Callable[[], str]:
    """Makes a new empty place on the server."""
    return lambda: f"s3://{BUCKET}/{uuid.uuid4()}"
