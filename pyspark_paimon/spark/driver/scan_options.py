"""Scans from read options or from a client, and their Spark schemas.

A scan from options is pinned to a snapshot. A client of this package sends a complete scan.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING

from paimon_base.errors import UnknownColumn
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.frames.spark_types import spark_schema
from pyspark_paimon.jobs.excluded_files import check_excluded
from pyspark_paimon.jobs.incremental import change_columns, range_of, scan_fields
from pyspark_paimon.request.engine import LocalTable
from pyspark_paimon.request.requests import IncrementalRange, ScanRequest
from pyspark_paimon.spark.driver.catalog_tables import check_properties, explain_missing_table
from pyspark_paimon.spark.driver.options import FILTER, between, columns, read_options, table_options, table_path, travel, with_options
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.arrow_stream import BLOB
from pyspark_paimon.system.opened import local_engine

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def scan_request(engine: LocalTable, options: Mapping[str, str], columns_wanted: tuple[str, ...] | None = None) -> ScanRequest:
    """Return the scan of a client or of read options.

    A scan from options is pinned to a snapshot. ``columns_wanted`` are the columns of a schema from Spark or the user.
    None: use the columns of the scan or the options.
    """
    if rpc.SCAN in options:
        request = rpc.parse_scan(options[rpc.SCAN])
        return request if columns_wanted is None else request.model_copy(update={"columns": columns_wanted})
    changes = between(options)
    if changes is not None:
        return _changes_request(engine, options, range_of(engine, engine.schema(), *changes[0], changes[1]), columns_wanted)
    snapshot, table = engine.start(travel(options))
    names = columns_wanted or columns(options) or table.names
    for name in names:
        if name not in table.names:
            raise UnknownColumn(name, tuple(table.names))
    tree = bind_filter(options.get(FILTER), table.column_types)
    request = ScanRequest.of(tree, columns=names, snapshot=snapshot)
    return request.model_copy(update={"schema_id": table.id, "options": table_options(options)})


def _changes_request(
    engine: LocalTable, options: Mapping[str, str], snapshot_range: IncrementalRange, columns_wanted: tuple[str, ...] | None
) -> ScanRequest:
    table = engine.schema()
    tree = bind_filter(options.get(FILTER), table.column_types)
    names = change_columns(columns_wanted or columns(options), table)
    request = ScanRequest(predicate=tree, columns=tuple(names), snapshot_id=snapshot_range.end_id)
    return request.model_copy(update={"schema_id": table.id, "incremental": snapshot_range, "options": table_options(options)})


def scan_schema(options: MutableMapping[str, str]) -> StructType:
    """Return the Spark schema of the scan in ``options``.

    Adds the option ``rpc.SCAN``, the parsed scan with a pinned snapshot, for the reader.
    """
    reader_options = dict(options) if rpc.SCAN in options else read_options(options)
    engine = local_engine(table_path(reader_options))
    with explain_missing_table(options):
        request = scan_request(engine, reader_options)
    if request.excluded_files:
        check_excluded(engine.store(), request)
    options[rpc.SCAN] = request.model_dump_json()
    if rpc.form_of(options) != "rows":
        return _schema_of_form(options[rpc.FORM])
    table = engine.schema(request.schema_id)
    check_properties(options, table)
    return with_options(spark_schema(scan_fields(table, request.columns)), options)


def _schema_of_form(form: str) -> StructType:
    """Return the schema of a scan with another output than rows."""
    if form != "blobs":
        return rpc.parts_schema()
    from pyspark.sql import types as st  # noqa: PLC0415  # Spark is imported when it is used

    return st.StructType([st.StructField(BLOB, st.BinaryType(), nullable=False)])
