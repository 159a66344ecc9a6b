"""Null rows with parts that cannot be null: written, merged, compacted and read in every format of data files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_paimon import Table

COLUMN = "ROW<a ROW<b INT NOT NULL, c STRING NOT NULL> NOT NULL, l ARRAY<ROW<x INT NOT NULL> NOT NULL>, m MAP<STRING, ROW<y INT NOT NULL>>>"
WHOLE = {"a": {"b": 1, "c": "x"}, "l": [{"x": 1}], "m": [("k", {"y": 1}), ("n", None)]}
ROWS = [{"id": 1, "v": None}, {"id": 2, "v": WHOLE}, {"id": 3, "v": None}]
LOOSE = pa.struct(
    {
        "a": pa.struct({"b": pa.int32(), "c": pa.string()}),
        "l": pa.list_(pa.struct({"x": pa.int32()})),
        "m": pa.map_(pa.string(), pa.struct({"y": pa.int32()})),
    }
)


def rows_of(table: Table) -> list[dict]:
    return table.scan(order_by="id").to_arrow().to_pylist()


@pytest.mark.parametrize("keys", [("id",), ()], ids=["keys", "append"])
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_null_rows_with_parts_that_cannot_be_null(create, file_format, keys) -> None:
    table = create(f"id BIGINT, v {COLUMN}", primary_keys=keys, options={"file.format": file_format, "bucket": "1" if keys else "-1"})
    table.write(pa.table({"id": pa.array([1, 2], pa.int64()), "v": pa.array([None, WHOLE], LOOSE)}))
    table.write(pa.table({"id": pa.array([3], pa.int64())}), missing="null")
    assert rows_of(table) == ROWS
    table.compact(full=True)
    assert rows_of(table) == ROWS
    assert not table.fsck(depth="deep").problems


@pytest.mark.slow
def test_rows_older_than_a_column_are_compacted(create) -> None:
    table = create("id BIGINT", options={"compaction.min.file-num": "2"})
    table.write(pa.table({"id": pa.array([1], pa.int64())}))
    table.add_column("v", COLUMN)
    table.write(pa.table({"id": pa.array([2], pa.int64()), "v": pa.array([WHOLE], LOOSE)}))
    table.write(pa.table({"id": pa.array([3], pa.int64())}), missing="null")
    table.compact(full=True)
    assert rows_of(table) == ROWS


def test_null_variants_are_written(create) -> None:
    table = create("id BIGINT, v VARIANT")
    loose = pa.struct({"value": pa.binary(), "metadata": pa.binary()})
    variant = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
    table.write(pa.table({"id": pa.array([1, 2], pa.int64()), "v": pa.array([None, variant], loose)}))
    table.write(pa.table({"id": pa.array([3], pa.int64()), "v": pa.nulls(1)}))
    assert rows_of(table) == [{"id": 1, "v": None}, {"id": 2, "v": variant}, {"id": 3, "v": None}]
