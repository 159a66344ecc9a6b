"""Spark schema of a scan."""

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
    """Return the Spark schema of the scan in ``options``.

    Adds the option ``rpc.SCAN``, the parsed scan with a pinned snapshot, for the reader.
    """
    given = dict(options) if rpc.SCAN in options else read_options(options)
    backend = local_backend(table_path(given))
    with missing_table_named(options):
        request = scan_request(backend, given)
    if request.excluded_files:
        check_excluded(backend.store(), request)
    options[rpc.SCAN] = request.model_dump_json()
    if rpc.form_of(options) != "rows":
        return _schema_of_form(options[rpc.FORM])
    table = backend.schema(request.schema_id)
    check_properties(options, table)
    return with_options(spark_schema(scan_fields(table, request.columns)), options)


def _schema_of_form(form: str) -> StructType:
    """Return the schema of a scan with another output than rows."""
    from pyspark.sql import types as st  # noqa: PLC0415  # Spark is imported when it is used

    if form == "blobs":
        return st.StructType([st.StructField(BLOB, st.BinaryType(), nullable=False)])
    return st.StructType([st.StructField(rpc.ANSWER, st.StringType(), nullable=False)])


__all__ = ["scan_schema"]
