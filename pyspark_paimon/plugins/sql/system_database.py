"""Paimon's database ``sys`` of a catalog: a row for each table, partition or option of all databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa

from paimon_base.errors import InvalidArgument
from pyspark_paimon.catalog.catalog_base import AnyCatalog
from pyspark_paimon.plugins.sql.answers import frame_of_rows
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.text.words import NameParts
from pyspark_paimon.table.table import Table

DATABASE = "sys"
_TABLE = {"database_name": pa.string(), "table_name": pa.string()}
_SIZES = {"record_count": pa.int64(), "file_size_in_bytes": pa.int64(), "file_count": pa.int64(), "last_file_creation_time": pa.int64()}
_ALL_TABLES = _TABLE | {"table_type": pa.string(), "partitioned": pa.bool_(), "primary_key": pa.bool_()} | _SIZES
_ALL_PARTITIONS = _TABLE | {"partition_name": pa.string()} | _SIZES
_ALL_OPTIONS = _TABLE | {"key": pa.string(), "value": pa.string()}
Rows = Iterator[tuple[object, ...]]


def system_frame(names: KnownTables, name: NameParts) -> Any:
    """Return the frame of a table of the database ``sys``; None for other names.

    Raises ``InvalidArgument`` without a catalog, and for ``sys.catalog_options``.
    """
    if len(name) < 2 or name[-2].lower() != DATABASE or name[-1].lower() not in {*_TABLES, "catalog_options"}:
        return None
    shown = f"{DATABASE}.{name[-1].lower()}"
    if names.catalog is None:
        raise InvalidArgument(f"{shown} has the tables of a catalog: sql(spark, text, catalog=Catalog('/warehouse'))")
    if name[-1].lower() not in _TABLES:
        raise InvalidArgument(f"{shown} is not supported: print the Catalog, which shows no key and no token")
    types, rows_of = _TABLES[name[-1].lower()]
    columns = list(zip(*_rows(names.catalog, rows_of), strict=True)) or [()] * len(types)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types.values(), strict=True)]
    return frame_of_rows(names.spark, pa.table(arrays, list(types)))


def _rows(catalog: AnyCatalog, rows_of: Callable[[Table], Rows]) -> Rows:
    for database in catalog.list_databases():
        for table_name in catalog.list_tables(database):
            # In process: a question to Spark for each table would take a second for twenty tables.
            yield from ((database, table_name, *row) for row in rows_of(catalog.table(f"{database}.{table_name}")))


def _sizes(table: Table) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
    for row in table.partitions().to_pylist():
        newest: datetime = row["last_update_time"]
        yield row["partition"], (row["row_count"], row["file_size"], row["file_count"], int(newest.timestamp() * 1000))


def _table_row(table: Table) -> Rows:
    schema = table.table_schema
    sizes = [sizes for _, sizes in _sizes(table)]
    totals = [sum(column) for column in zip(*(each[:3] for each in sizes), strict=True)] if sizes else [0, 0, 0]
    yield "table", bool(schema.partition_keys), bool(schema.primary_keys), *totals, max((each[3] for each in sizes), default=None)


def _partition_rows(table: Table) -> Rows:
    yield from ((partition, *sizes) for partition, sizes in _sizes(table) if partition)


def _option_rows(table: Table) -> Rows:
    yield from sorted(table.options.items())


_TABLES: dict[str, tuple[dict[str, pa.DataType], Callable[[Table], Rows]]] = {
    "all_tables": (_ALL_TABLES, _table_row),
    "all_partitions": (_ALL_PARTITIONS, _partition_rows),
    "all_table_options": (_ALL_OPTIONS, _option_rows),
}
