"""Checks of ``df.write.format("paimon")`` and SQL's INSERT before a task runs.

Spark resolves the columns of an INSERT against the catalog. Columns of ``df.write`` are matched by name.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from lsm.arrow.row_kind import ROW_KIND
from lsm.rows_in.conform import refuse_columns
from lsm.rows_in.new_columns import merged_schema
from lsm.rows_in.policy import RowPolicy
from manifest.io.errors import TableExists, TableNotFound
from manifest.schema.table_schema import TableSchema
from manifest.schema.validation import build_schema
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon.frames.spark_types import arrow_for_spark, fields_from_spark
from pyspark_paimon.operations.create import CreateTable
from pyspark_paimon.request.inputs import has_row_kinds
from pyspark_paimon.request.partition_spec import Spec, spec_of
from pyspark_paimon.request.requests import WriteRequest
from pyspark_paimon.spark.driver.catalog_tables import explain_stale_columns
from pyspark_paimon.spark.driver.options import (
    DYNAMIC_OVERWRITE,
    OVERWRITE_PARTITION,
    PARTITION,
    PRIMARY_KEY,
    REPLACE_WHERE,
    SPARK_OVERWRITE_MODE,
    flag,
    key_columns,
    missing_columns,
    own_options,
    properties_of_commit,
    write_options,
)
from pyspark_paimon.spark.wire.jobs import RowsJob, SparkPlanned
from pyspark_paimon.spark.write.task import open_store
from pyspark_paimon.system.opened import local_engine

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def plain_write(path: str, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> tuple[RowsJob, FileStore]:
    """Return job and table of a write planned without our client.

    Raises:
        TableNotFound: The path has no table.
        SchemaMismatch: The rows' columns do not fit the table.
        InvalidArgument, UnsupportedOption, UnknownColumn: The options do not.
    """
    options = create_if_named(path, options, schema)
    request = WriteRequest(
        commit_id=str(uuid.uuid4()),
        mode="overwrite" if overwrite else "append",
        missing=missing_columns(options),
        properties=properties_of_commit(options),
        options=write_options(_without_mode(options)),
    )
    try:
        request, store = open_merged(path, request, schema)
    except TableNotFound as error:
        raise TableNotFound(f"{error}, or give its keys: .option('primary-key', 'id'), .option('partition', 'day')") from error
    with explain_stale_columns(schema):
        kinds = check_columns(schema, store.schema, request)
    partition = _partition(options, store.schema, overwrite=overwrite)
    mode = "overwrite" if overwrite else store.schema.kind.write_mode
    changes = {"mode": mode, "row_kinds": kinds, "dynamic": _is_dynamic(options), "partition": partition}
    has_mode = partition is not None or not {SPARK_OVERWRITE_MODE, DYNAMIC_OVERWRITE}.isdisjoint(options)
    asks = overwrite and bool(store.schema.partition_keys) and not has_mode
    return RowsJob(request=request.model_copy(update=changes), route=SparkPlanned(asks_mode=asks)), store


def _without_mode(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options without those that say what an overwrite replaces."""
    return {key: value for key, value in options.items() if key not in {OVERWRITE_PARTITION, SPARK_OVERWRITE_MODE, REPLACE_WHERE}}


def create_if_named(path: str, options: Mapping[str, str], schema: StructType) -> Mapping[str, str]:
    """Create the table if the write names its keys and the path has none.

    Returns the options of the write: without the keys, and without options that the table has.

    Raises:
        InvalidArgument: The table has other keys.
        InvalidSchema, UnsupportedType, UnsupportedOption: The definition is not valid. Nothing is created.
    """
    if {PRIMARY_KEY, PARTITION}.isdisjoint(options):
        return options
    keys = {name: key_columns(options, name) for name in (PRIMARY_KEY, PARTITION) if name in options}
    engine = local_engine(path)
    if not engine.exists():
        columns = fields_from_spark(type(schema)([field for field in schema.fields if field.name != ROW_KIND]))
        built = build_schema(
            columns,
            primary_keys=keys.get(PRIMARY_KEY, ()),
            partition_keys=keys.get(PARTITION, ()),
            options=own_options(_without_mode(options)),
        )
        with suppress(TableExists):  # another writer was first: its keys are checked below
            engine.run(CreateTable(table_schema=built))
    stored = engine.schema()
    for name, stored_keys in ((PRIMARY_KEY, stored.primary_keys), (PARTITION, stored.partition_keys)):
        if name in keys and sorted(keys[name]) != sorted(stored_keys):
            raise InvalidArgument(
                f"{path}: the table exists with {name} '{','.join(stored_keys)}', not '{options[name]}'; leave out the option '{name}'"
            )
    return {key: value for key, value in options.items() if key not in keys and stored.options.get(key) != value}


def open_merged(path: str, request: WriteRequest, schema: StructType) -> tuple[WriteRequest, FileStore]:
    """Open the table, with the columns of the rows if ``write.merge-schema`` is set.

    The commit of the returned request stores them.
    """
    store = open_store(path, request)
    pending = merged_schema(store.schema, arrow_for_spark(schema), RowPolicy.of(store.schema))
    if pending is None:
        return request, store
    request = request.model_copy(update={"pending": pending})
    return request, open_store(path, request)


def check_columns(schema: StructType, table: TableSchema, request: WriteRequest) -> bool:
    """Return whether ``schema`` has a column of row kinds.

    Raises ``SchemaMismatch`` and other errors if its columns do not fit the table.
    """
    rows = arrow_for_spark(schema)
    kinds = has_row_kinds(rows, table)
    refuse_columns(rows, table, request.policy, kinds=kinds)
    return kinds


def _is_dynamic(options: Mapping[str, str]) -> bool:
    """Return whether the options ask for a dynamic partition overwrite."""
    if SPARK_OVERWRITE_MODE not in options:
        return flag(options, DYNAMIC_OVERWRITE)
    mode = options[SPARK_OVERWRITE_MODE].lower()
    if mode not in {"static", "dynamic"}:
        raise InvalidArgument(f"option 'partitionOverwriteMode' must be static or dynamic, not '{mode}'")
    if DYNAMIC_OVERWRITE in options and flag(options, DYNAMIC_OVERWRITE) is not (mode == "dynamic"):
        raise InvalidArgument(f"options 'partitionOverwriteMode' ({mode}) and '{DYNAMIC_OVERWRITE}' contradict each other: remove one")
    return mode == "dynamic"


def _partition(options: Mapping[str, str], schema: TableSchema, *, overwrite: bool) -> dict[str, str | None] | None:
    """Return the partition in the options that an overwrite replaces."""
    if REPLACE_WHERE in options:
        raise UnsupportedOption("replaceWhere", f"is Delta's; use '{OVERWRITE_PARTITION}' with a partition like 'day=2026-01-31'")
    if OVERWRITE_PARTITION not in options:
        return None
    if not overwrite:
        raise InvalidArgument(f"option '{OVERWRITE_PARTITION}' needs mode 'overwrite' or INSERT OVERWRITE")
    if _is_dynamic(options):
        raise InvalidArgument(f"option '{OVERWRITE_PARTITION}' contradicts a dynamic overwrite, which replaces the partitions of its rows")
    return spec_of(parse_partition(options[OVERWRITE_PARTITION]), schema)


def parse_partition(text: str) -> Spec:
    """Return the partition in a text. Raises ``InvalidArgument``.

    >>> parse_partition("day=2026-01-31, hour=7")
    {'day': '2026-01-31', 'hour': '7'}
    """
    pairs = [part.partition("=") for part in text.replace("/", ",").split(",")]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise InvalidArgument(f"option '{OVERWRITE_PARTITION}' is '{text}': give a partition like 'day=2026-01-31'")
    return {name.strip(): value.strip() for name, _, value in pairs}
