"""Rows of data files as writers need them: in file order, all columns of the current schema, sequence numbers and kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from fileindex.plain import to_scalar
from lsm.evolution import SchemaMapping
from lsm.evolution import conform as evolved
from lsm.parquet_read import ParquetDataFile
from lsm.sort_key import SEQUENCE_NUMBER, VALUE_KIND
from manifest.data_file import DataFileMeta
from manifest.errors import UnsupportedTable
from manifest.store import FileStore


def file_rows(store: FileStore, partition: bytes, bucket: int, file: DataFileMeta) -> Iterator[Any]:
    """Tables of the file's rows, a bounded batch at a time.

    Columns: ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND`` if the table has a primary key, then the table's columns as the current
    schema has them: found by field id, cast, null where the file is older than the column.

    Raises:
        CorruptFile: naming the file.
        UnsupportedTable: the file is no Parquet file, or a column's old type cannot be read as its new one.
    """
    values = store.partition.decode(partition)
    path = store.paths.data_file(values, bucket, file.file_name, file.external_path)
    if file.format != "parquet":
        raise UnsupportedTable(f"{path}: data files in '{file.format}' cannot be read")
    schema = store.schema
    mapping = SchemaMapping.of(schema.fields, store.schemas.get(file.schema_id).fields, file.schema_id)
    mapping.check(schema.names)
    system = (SEQUENCE_NUMBER, VALUE_KIND) if schema.is_primary_key_table else ()
    constants = dict(zip(schema.partition_keys, values, strict=True))
    with ParquetDataFile(store.file_io, path, file.row_count) as parquet:
        stored = set(parquet.schema.names)
        sources = {name: source for name, source in mapping.sources.items() if source is not None and source.name in stored}
        wanted = [*system, *(source.name for source in sources.values())]
        for batch in parquet.batches(wanted, parquet.row_groups, threads=False):
            columns = [batch.column(name) for name in system]
            for field in schema.fields:
                source = sources.get(field.name)
                if source is not None:
                    columns.append(evolved(batch.column(source.name), source.type, field.type))
                elif field.name in constants:
                    columns.append(pa.repeat(to_scalar(constants[field.name], field.type.column_type), batch.num_rows))
                else:
                    columns.append(pa.nulls(batch.num_rows, field.type.arrow))
            yield pa.Table.from_arrays(columns, names=[*system, *schema.names])


__all__ = ["file_rows"]
