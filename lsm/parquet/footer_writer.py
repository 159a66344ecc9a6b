"""The end of a Parquet file in memory, made of pages or column chunks of a data file as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsm.parquet.fields import ColumnChunk, ColumnMetaData, FileMetaData, RowGroupMetaData, SchemaElement
from lsm.parquet.page_index import PageFooter
from lsm.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, Struct, encode_struct

PARQUET_MAGIC = b"PAR1"


def file_end(source: PageFooter, columns: int, elements: Sequence[Any], groups: Sequence[Any], rows: int) -> bytes:
    """Footer, its length, and the magic bytes.

    Args:
        source: of the data file.
        columns: at the top level.
        elements: those of the schema after its root, structs or their bytes.
        groups: the row groups.
        rows: in all of them.
    """
    root = {**source.schema[0], SchemaElement.NUM_CHILDREN: (I32, columns)}
    footer = encode_struct(
        {
            FileMetaData.VERSION: (I32, source.version),
            FileMetaData.SCHEMA: (LIST, (STRUCT, [root, *elements])),
            FileMetaData.NUM_ROWS: (I64, rows),
            FileMetaData.ROW_GROUPS: (LIST, (STRUCT, list(groups))),
            FileMetaData.CREATED_BY: (BINARY, b"pyspark-paimon"),
        }
    )
    return b"".join([footer, len(footer).to_bytes(4, "little"), PARQUET_MAGIC])


def extent(values: int, size: int) -> Struct:
    """What a ``ColumnMetaData`` says of a chunk's values and bytes."""
    return {
        ColumnMetaData.NUM_VALUES: (I64, values),
        ColumnMetaData.TOTAL_UNCOMPRESSED_SIZE: (I64, size),
        ColumnMetaData.TOTAL_COMPRESSED_SIZE: (I64, size),
    }


def row_group(chunks: Sequence[bytes], end: int, rows: int) -> Struct:
    """A ``RowGroup`` of chunks (their encoded ``ColumnMetaData``) of a file that has ``end`` bytes so far."""
    columns = [{ColumnChunk.FILE_OFFSET: (I64, 0), ColumnChunk.META_DATA: (STRUCT, chunk)} for chunk in chunks]
    return {
        RowGroupMetaData.COLUMNS: (LIST, (STRUCT, columns)),
        RowGroupMetaData.TOTAL_BYTE_SIZE: (I64, end),
        RowGroupMetaData.NUM_ROWS: (I64, rows),
    }


__all__ = ["PARQUET_MAGIC", "extent", "file_end", "row_group"]
