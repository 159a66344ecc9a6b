"""One embedded Spark Connect server, and one standalone cluster, for all tests of this directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paimon_base.thresholds import use_thresholds
from pyspark_paimon.spark.client.session import java_version, spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    _need_spark()
    os.environ["SPARK_TESTING"] = "1"  # a free port, so that test runs can share a machine
    home = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("server"))  # the server leaves an artifact directory where it starts
    try:
        session = spark_session(
            app_name="pyspark-paimon tests",
            master="local[2]",
            conf={
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # a test run is over before the optimising compiler pays
                "spark.sql.shuffle.partitions": "2",
                "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
                "spark.sql.pyspark.jvmStacktrace.enabled": "false",  # as servers have it; SPARK_TESTING changes this and the next
                "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
            },
        )
    finally:
        os.chdir(home)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A standalone cluster of two workers with a Connect server, and thin clients of it; see ``cluster.py``.

    It allows tables in the directories of the tests, and nowhere else.
    """
    _need_spark()
    pytest.importorskip("psutil", reason="the cluster's processes are found by psutil")
    from cluster import running_cluster
    from thin_client import NoThinClient, thin_python

    try:
        thin_python()
    except NoThinClient as error:
        pytest.skip(str(error))
    allowed = {"PYSPARK_PAIMON_ROOTS": str(tmp_path_factory.getbasetemp())}
    with running_cluster(tmp_path_factory.mktemp("cluster"), allowed) as running:
        yield running


@pytest.fixture(scope="session")
def told(cluster, tmp_path_factory):
    """What the program of ``cluster_client.py`` found out: one client does it all, for Spark's first steps are slow."""
    from cluster_client import found_out

    return found_out(cluster, tmp_path_factory)


def _need_spark():
    pytest.importorskip("pyspark.sql.connect.session", reason="pyspark[connect] is not installed")
    found = java_version()
    if found is None or found < 17:
        pytest.skip(f"Spark tests need Java 17 or newer (found {found})")


@pytest.fixture(autouse=True)
def _jobs(request):
    """Have clients start Spark jobs for small work, too, unless a test has the marker ``small``.

    With ``PAIMON_TEST_SMALL`` set, no test changes that; the few that look at jobs then fail.
    """
    if request.node.get_closest_marker("small") is not None or os.environ.get("PAIMON_TEST_SMALL"):
        yield
        return
    with use_thresholds(driver_bytes=0):
        yield
