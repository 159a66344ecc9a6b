"""Values below the nulls of nested columns, which Arrow arrays may hold, are not written to ORC files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

from lsm.schema.parquet_schema import file_schema
from manifest.io.file_io import LocalFileIO
from manifest.schema.validation import build_schema
from pyspark_paimon.plugins.file_formats.orc.writer import OrcFileWriter

ROWS = 40
TYPES = {
    "ROW<a ROW<x INT>>": lambda leaf: row(row(leaf, 3, "x"), 0, "a"),
    "ROW<a ROW<x INT>>, nulls outside": lambda leaf: row(row(leaf, 3, "x"), 5, "a"),
    "ROW<a ROW<x ROW<y INT>>>": lambda leaf: row(row(row(leaf, 3, "y"), 0, "x"), 0, "a"),
    "ROW<a ARRAY<ROW<x INT>>>": lambda leaf: row(array(row(leaf, 3, "x"), 0), 0, "a"),
    "ROW<a ARRAY<INT>>": lambda leaf: row(array(leaf, 3), 5, "a"),
    "ARRAY<ROW<x ROW<y INT>>>": lambda leaf: array(row(row(leaf, 3, "y"), 0, "x"), 4),
    "MAP<INT, ROW<x ROW<y INT>>>": lambda leaf: entries(row(row(leaf, 3, "y"), 0, "x"), 4),
    "ROW<a MAP<INT, ROW<x INT>>>": lambda leaf: row(entries(row(leaf, 3, "x"), 0), 0, "a"),
}


def nulls(each: int) -> pa.Array | None:
    return pa.array(np.arange(ROWS) % each == 0) if each else None


def row(inner: pa.Array, each: int, name: str) -> pa.Array:
    return pa.StructArray.from_arrays([inner], fields=[pa.field(name, inner.type)], mask=nulls(each))


def array(inner: pa.Array, each: int) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), inner, mask=nulls(each))


def entries(inner: pa.Array, each: int) -> pa.Array:
    return pa.MapArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), pa.array(range(ROWS), pa.int32()), inner, mask=nulls(each))


@pytest.mark.parametrize("text", TYPES)
@pytest.mark.parametrize("first", [0, 1, 7])
def test_rows_come_back(tmp_path, text, first):
    column = TYPES[text](pa.array(range(ROWS), pa.int32())).slice(first)
    (field,) = build_schema(f"c {text.partition(',')[0] if 'outside' in text else text}").fields
    writer = OrcFileWriter(LocalFileIO(), str(tmp_path / "f.orc"), [field], file_schema([field]), compression="zstd")
    writer.write(pa.table({"c": column}))
    writer.close()
    assert orc.read_table(tmp_path / "f.orc")["c"].to_pylist() == column.to_pylist()
