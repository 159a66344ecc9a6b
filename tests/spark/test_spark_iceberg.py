"""Commits of Spark's jobs write Iceberg metadata, as those of this process do."""

from __future__ import annotations

import pytest

from pyspark_paimon import Table
from tests.iceberg_files import check_files

pytestmark = pytest.mark.spark


def test_jobs_write_iceberg_metadata(spark, tmp_path) -> None:
    table = Table.create(
        tmp_path / "t", "id BIGINT, p STRING", partition_keys=["p"], options={"metadata.iceberg.storage": "table-location"}, spark=spark
    )
    local = Table.open(table.path)
    spark.sql("SELECT id, CAST(id % 3 AS STRING) AS p FROM range(30)").write.format("paimon").mode("append").save(table.path)
    check_files(local)
    table.delete("id < 5")
    check_files(local)
    table.compact(full=True)
    check_files(local)
    assert local.count() == 25
