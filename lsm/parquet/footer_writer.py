"""The end of a Parquet file in memory, made of pages or column chunks of a data file as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    root = {**source.schema[0], 5: (I32, columns)}
    footer = encode_struct(
        {
            1: (I32, source.version),
            2: (LIST, (STRUCT, [root, *elements])),
            3: (I64, rows),
            4: (LIST, (STRUCT, list(groups))),
            6: (BINARY, b"pyspark-paimon"),
        }
    )
    return b"".join([footer, len(footer).to_bytes(4, "little"), PARQUET_MAGIC])


def extent(values: int, size: int) -> Struct:
    """What a ``ColumnMetaData`` says of a chunk's values and bytes."""
    return {5: (I64, values), 6: (I64, size), 7: (I64, size)}


__all__ = ["PARQUET_MAGIC", "extent", "file_end"]
