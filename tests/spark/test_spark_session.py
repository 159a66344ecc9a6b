from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pyspark_paimon.spark.client.session import RUNTIME_CONF, java_version, package_root, require_java, spark_session
from pyspark_paimon.spark.wire.errors import SparkUnavailable


@pytest.mark.slow
def test_a_missing_or_old_java_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_version() is None
    with pytest.raises(SparkUnavailable, match="found no Java"):
        require_java()
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    assert java_version() == 11
    with pytest.raises(SparkUnavailable, match="found Java 11"):
        require_java()


@pytest.mark.spark
def test_a_session_has_the_settings_that_exact_rows_need_and_is_made_once(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark_session(conf={"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}) is spark
    assert {key: spark.conf.get(key) for key in RUNTIME_CONF} == RUNTIME_CONF


@pytest.mark.spark
def test_progress_of_a_job_is_told(spark):
    seen = []
    spark_session(progress=lambda stages, inflight_tasks, operation_id, done: seen.append((operation_id, done)))
    try:
        spark.range(0, 2_000_000, 1, 4).selectExpr("sum(sqrt(id))").collect()
    finally:
        spark.clearProgressHandlers()
    assert seen
    assert seen[-1][1] is True


def test_spark_is_found_by_its_discovery_without_importing_arrow():
    code = (
        "import sys, pyspark_paimon, pyspark_paimon_short\n"
        "from pyspark.sql.datasource import DataSource\n"
        "before = set(sys.modules)\n"
        "assert hasattr(pyspark_paimon, 'DefaultSource') and issubclass(pyspark_paimon.DefaultSource, DataSource)\n"
        "assert issubclass(pyspark_paimon_short.DefaultSource, DataSource)\n"
        "print(pyspark_paimon.DefaultSource.name(), pyspark_paimon_short.DefaultSource.name(), *sorted(name for name in set(sys.modules) - before if name.split('.')[0] in {'pyarrow', 'pydantic', 'lsm', 'manifest'}))\n"
    )
    environment = {**os.environ, "PYTHONPATH": package_root()}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    asked_for_stores = ["manifest", "manifest.storage", "manifest.storage.session_options"]  # which import nothing themselves
    assert done.stdout.split() == ["pyspark_paimon", "paimon", *asked_for_stores]
