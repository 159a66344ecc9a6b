"""End of an in-memory Parquet file.

The file has copied pages or chunks of a data file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsm.parquet.fields import ColumnChunk, ColumnMetaData, FileMetaData, RowGroupMetaData, SchemaElement
from lsm.parquet.page_index import PageFooter
from lsm.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, Struct, encode_struct

PARQUET_MAGIC = b"PAR1"


def file_end(source: PageFooter, columns: int, elements: Sequence[Any], groups: Sequence[Any], rows: int) -> bytes:
    """Return footer, footer length and magic bytes.

    Args:
        source: Footer of the data file.
        columns: Number of top-level columns.
        elements: Schema elements after the root, as structs or bytes.
        groups: Row groups.
        rows: Number of rows in all row groups.
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
    """Return the value count and size fields of ``ColumnMetaData``."""
    return {
        ColumnMetaData.NUM_VALUES: (I64, values),
        ColumnMetaData.TOTAL_UNCOMPRESSED_SIZE: (I64, size),
        ColumnMetaData.TOTAL_COMPRESSED_SIZE: (I64, size),
    }


def row_group(chunks: Sequence[bytes], end: int, rows: int) -> Struct:
    """Return a ``RowGroup`` of chunks.

    ``chunks`` are encoded ``ColumnMetaData``. ``end`` is the current size of the file.
    """
    columns = [{ColumnChunk.FILE_OFFSET: (I64, 0), ColumnChunk.META_DATA: (STRUCT, chunk)} for chunk in chunks]
    return {
        RowGroupMetaData.COLUMNS: (LIST, (STRUCT, columns)),
        RowGroupMetaData.TOTAL_BYTE_SIZE: (I64, end),
        RowGroupMetaData.NUM_ROWS: (I64, rows),
    }


__all__ = ["PARQUET_MAGIC", "extent", "file_end", "row_group"]
