"""The columns of a scan that a DataFrame is made of; its snapshot is pinned for the reader."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark_paimon.frames.spark_types import spark_schema
from pyspark_paimon.jobs.excluded_files import check_excluded
from pyspark_paimon.jobs.incremental import scan_fields
from pyspark_paimon.spark.driver.catalog_tables import check_properties, missing_table_named
from pyspark_paimon.spark.driver.options import read_options, table_path, with_options
from pyspark_paimon.spark.driver.scan_options import scan_request
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.arrow_stream import BLOB
from pyspark_paimon.system.opened import local_backend

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def scan_schema(options: MutableMapping[str, str]) -> StructType:
    """The Spark schema of the scan that ``options`` describe, which are given the scan as it was understood."""
    given = dict(options) if rpc.SCAN in options else read_options(options)
    backend = local_backend(table_path(given))
    with missing_table_named(options):
        request = scan_request(backend, given)
    if request.excluded_files:
        check_excluded(backend.store(), request)
    options[rpc.SCAN] = request.model_dump_json()
    if rpc.form_of(options) != "rows":
        return _carrier(options[rpc.FORM])
    table = backend.schema(request.schema_id)
    check_properties(options, table)
    return with_options(spark_schema(scan_fields(table, request.columns)), options)


def _carrier(form: str) -> StructType:
    """The schema of a scan that gives something else than rows of the table."""
    from pyspark.sql import types as st  # noqa: PLC0415  # Spark is imported when it is used

    if form == "blobs":
        return st.StructType([st.StructField(BLOB, st.BinaryType(), nullable=False)])
    return st.StructType([st.StructField(rpc.ANSWER, st.StringType(), nullable=False)])


__all__ = ["scan_schema"]
