"""Parquet files that other writers made, as data files of a table: read, filtered, indexed, compacted and checked as ours."""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lsm.parquet.fields import ColumnChunk, ColumnMetaData, FileMetaData, RowGroupMetaData, list_of, value
from lsm.parquet.footer_structure import chunk_extent
from lsm.parquet.reader import ParquetDataFile
from lsm.parquet.thrift import I64, decode_struct, encode_struct
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.io.file_io import LocalFileIO
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from pyspark_paimon import Table
from tests.foreign_parquet.rows import COUNT, TYPES, columns, held

HERE = Path(__file__).parent
FILES = sorted(path.stem for path in HERE.glob("*.parquet"))
Row = dict[str, Any]
FILTERS: list[tuple[str, str, Callable[[Row], bool]]] = [
    ("id", "id = 200", lambda row: row["id"] == 200),
    ("id", "id BETWEEN 120 AND 140", lambda row: 120 <= row["id"] <= 140),
    ("id", "id > 5000", lambda row: False),
    ("s", "s = 's1'", lambda row: row["s"] == "s1"),
    ("s", "s = 'none'", lambda row: False),
    ("s", "s IS NULL", lambda row: row["s"] is None),
    ("t", "t = 'text-07919'", lambda row: row["t"] == "text-07919"),
    ("t", "t IN ('text-07919', 'text-99999')", lambda row: row["t"] == "text-07919"),
    ("t", "t LIKE 'text-001%'", lambda row: row["t"].startswith("text-001")),
    ("n", "n < -450", lambda row: row["n"] is not None and row["n"] < -450),
    ("n", "n IS NULL AND id > 300", lambda row: row["n"] is None and row["id"] > 300),
    ("d", "d >= 88.5", lambda row: row["d"] >= 88.5),
    ("f", "f = true AND id < 10", lambda row: row["f"] and row["id"] < 10),
    ("day", "day = DATE '2024-01-05'", lambda row: row["day"] == dt.date(2024, 1, 5)),
    ("ts", "ts < TIMESTAMP '2024-01-01 00:00:09'", lambda row: row["ts"] < dt.datetime.fromisoformat("2024-01-01T00:00:09")),
    ("dec", "dec > 360.00", lambda row: row["dec"] > Decimal(360)),
    ("m", "m['k1'] = 100", lambda row: row["m"].get("k1") == 100),
]


def rows_of(name: str) -> list[Row]:
    made = columns(held(name))
    return [dict(zip(made, values, strict=True)) for values in zip(*made.values(), strict=True)]


def content(name: str) -> bytes:
    return (HERE / f"{name}.parquet").read_bytes()


def add_file(path: str, name: str, data: bytes) -> None:
    """Commit a file of other bytes with the metadata of one that we would have written."""
    store = FileStore.open(path)
    made = rows_of(name)
    arrays = [pa.array([_stored(row[field.name]) for row in made], field.type) for field in store.schema.arrow]
    with TableWrite(store) as write:
        write.write(pa.table(arrays, schema=store.schema.arrow))
        (message,) = write.prepare_commit()
    (file,) = message.new_files
    Path(path, "bucket-0", file.file_name).write_bytes(data)
    message = message.model_copy(update={"new_files": (file.model_copy(update={"file_size": len(data)}),)})
    FileStoreCommit(store, "foreign", fresh=True).commit([message])


def _stored(one: Any) -> Any:
    return list(one.items()) if isinstance(one, dict) and "a" not in one else one


def table_of(path: Path, name: str, data: bytes | None = None, **options: str) -> Table:
    ddl = ", ".join(f"{column} {TYPES[column]}" for column in held(name))
    table = Table.create(path / "t", ddl, options={"bucket": "-1", **options})
    add_file(table.path, name, content(name) if data is None else data)
    return Table.open(table.path)


def found(scan: Any) -> list[Row]:
    rows = scan.to_arrow().to_pylist()
    return [{key: dict(one) if key == "m" else one for key, one in row.items()} for row in sorted(rows, key=lambda row: row["id"])]


def check_filters(table: Table, name: str, times: int = 1) -> None:
    expected = [row for row in rows_of(name) for _ in range(times)]
    for column, text, matches in FILTERS:
        if column in held(name):
            wanted = [row for row in expected if matches(row)]
            assert found(table.scan(text)) == wanted, text
            assert table.scan(text).count() == len(wanted), text
            assert found(table.scan(text, columns=["id"])) == [{"id": row["id"]} for row in wanted], text


@pytest.mark.parametrize("pages", [False, True], ids=["chunks", "pages"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.sampled(3)
def test_every_row_is_read_and_every_filter_answered(tmp_path, set_thresholds, name, pages):
    """Of small row groups whole chunks are read; ``pages``: as of large ones, by their page indexes, and with every decoder."""
    if pages:
        set_thresholds(paged_rows=1)
        set_thresholds(masked_chunk_bytes=0)
    table = table_of(tmp_path, name)
    assert found(table.scan()) == rows_of(name)
    check_filters(table, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@pytest.mark.sampled(4)
def test_indexes_are_built_compactions_read_and_checks_pass(tmp_path, name):
    table = table_of(tmp_path, name)
    assert table.fsck("deep").problems == ()
    table = table.alter_options(
        {"file-index.bloom-filter.columns": "t", "file-index.bitmap.columns": "s", "file-index.range-bitmap.columns": "id"}
    )
    assert table.rewrite_file_index().rewritten == 1
    check_filters(Table.open(table.path), name)
    add_file(table.path, name, content(name))
    table = Table.open(table.path)
    check_filters(table, name, times=2)
    assert table.compact(full=True).rows == 2 * COUNT
    table = Table.open(table.path)
    assert found(table.scan()) == [row for row in rows_of(name) for _ in range(2)]
    check_filters(table, name, times=2)
    assert table.fsck("deep").problems == ()


INDEXED = {
    "bloom-filter": ("id", "s", "t", "n", "d", "day", "ts", "m[k1]"),
    "bitmap": ("s", "n", "f", "day", "m[k0]"),
    "range-bitmap": ("id", "t", "d", "day", "ts", "dec"),
    "bsi": ("n", "day", "ts", "dec"),
}
"""Columns that take an index of each type, and keys of the map."""


def check_rows(table: Table, expected: list[Row]) -> None:
    """Compare rows and the answers of filters with those expected."""
    assert found(table.scan()) == expected
    for column, text, matches in FILTERS:
        if column in table.schema.names:
            assert found(table.scan(text)) == [row for row in expected if matches(row)], text


@pytest.mark.slow
@pytest.mark.parametrize("vectors", [False, True], ids=["rewritten", "vectors"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.sampled(5)
def test_files_are_indexed_changed_compacted_and_evolved_as_ours(tmp_path: Path, name: str, vectors: bool) -> None:
    table = table_of(tmp_path, name, **{"deletion-vectors.enabled": str(vectors).lower(), "compaction.min.file-num": "2"})
    indexed = {kind: [column for column in columns if column.partition("[")[0] in held(name)] for kind, columns in INDEXED.items()}
    table = table.alter_options({f"file-index.{kind}.columns": ",".join(columns) for kind, columns in indexed.items()})
    assert table.rewrite_file_index().rewritten == 1
    expected = rows_of(name)
    check_rows(table, expected)
    assert table.fsck("deep").problems == ()
    table.delete("s = 's1' OR id BETWEEN 120 AND 140")
    expected = [row for row in expected if row["s"] != "s1" and not 120 <= row["id"] <= 140]
    check_rows(table, expected)
    table.update("t LIKE 'text-001%' OR n IS NULL", values={"n": 7, "s": "new"})
    expected = [row | {"n": 7, "s": "new"} if row["t"].startswith("text-001") or row["n"] is None else row for row in expected]
    check_rows(table, expected)
    if vectors:
        table.compact()
        check_rows(table, expected)
    table.rename_column("d", "double")
    table.change_type("n", "BIGINT").add_column("more", "STRING")
    table = Table.open(table.path)
    expected = [{"double" if key == "d" else key: value for key, value in row.items()} | {"more": None} for row in expected]
    check_rows(table, expected)
    more = [row | {"id": row["id"] + 1000, "more": "x"} for row in expected[:9]]
    table.write(pa.Table.from_pylist([{key: _stored(value) for key, value in row.items()} for row in more], table.schema))
    for _ in range(2):
        check_rows(table, [*expected, *more])
        assert table.fsck("deep").problems == ()
        table.compact(full=True)
    table.rewrite_file_index()
    check_rows(table, [*expected, *more])
    assert table.fsck("deep").problems == ()


def changed(data: bytes, change: Callable[[Any], None]) -> bytes:
    """A file with another footer."""
    length = struct.unpack("<I", data[-8:-4])[0]
    fields, _ = decode_struct(data[-8 - length : -8])
    change(fields)
    encoded = encode_struct(fields)
    return data[: -8 - length] + encoded + struct.pack("<I", len(encoded)) + b"PAR1"


def chunk_of(fields: Any, group: int, column: int) -> Any:
    return list_of(list_of(fields, FileMetaData.ROW_GROUPS)[group], RowGroupMetaData.COLUMNS)[column]


def move(fields: Any, column: int, by: int) -> None:
    meta = value(chunk_of(fields, 0, column), ColumnChunk.META_DATA)
    for number in (ColumnMetaData.DATA_PAGE_OFFSET, ColumnMetaData.DICTIONARY_PAGE_OFFSET):
        if number in meta:
            meta[number] = (I64, value(meta, number) + by)


def lengthen(fields: Any, column: int, by: int) -> None:
    meta = value(chunk_of(fields, 0, column), ColumnChunk.META_DATA)
    for number in (ColumnMetaData.TOTAL_COMPRESSED_SIZE, ColumnMetaData.TOTAL_UNCOMPRESSED_SIZE):
        meta[number] = (I64, value(meta, number) + by)


def gap_after(fields: Any, column: int) -> int:
    """Bytes between a chunk and the next."""
    metas = [value(chunk_of(fields, 0, at), ColumnChunk.META_DATA) for at in (column, column + 1)]
    return chunk_extent(metas[1])[0] - chunk_extent(metas[0])[1]


DAMAGE: dict[str, Callable[[Any], None]] = {
    "chunks overlap": lambda fields: lengthen(fields, 1, gap_after(fields, 1) + 1),
    "two chunks are one": lambda fields: chunk_of(fields, 0, 0).update(
        {
            ColumnChunk.META_DATA: (
                chunk_of(fields, 0, 0)[ColumnChunk.META_DATA][0],
                dict(value(chunk_of(fields, 1, 0), ColumnChunk.META_DATA)),
            )
        }
    ),
    "a chunk begins before the file": lambda fields: move(fields, 0, -5),
    "a chunk begins in the magic bytes": lambda fields: move(fields, 0, -1),
    "a chunk ends after the file": lambda fields: lengthen(fields, 0, 1 << 30),
    "a chunk is behind the file": lambda fields: move(fields, 0, 1 << 40),
    "a chunk has less than no bytes": lambda fields: lengthen(fields, 0, -(1 << 30)),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_chunks_that_overlap_or_lie_outside_are_corrupt(tmp_path, name, damage):
    if name.startswith("duckdb") and damage == "two chunks are one":
        pytest.skip("a file of one row group")
    data = changed(content(name), DAMAGE[damage])
    path = tmp_path / "damaged.parquet"
    path.write_bytes(data)
    with pytest.raises(CorruptFile, match=re.escape(str(path))):
        ParquetDataFile(LocalFileIO(), str(path))


@pytest.mark.parametrize("name", ["parquet-rs-arro3-0.9", "pyarrow-17"])
def test_a_scan_and_a_check_report_overlapping_chunks(tmp_path, name):
    table = table_of(tmp_path, name, changed(content(name), DAMAGE["chunks overlap"]))
    with pytest.raises(CorruptFile):
        table.scan().to_arrow()
    assert table.fsck("deep").problems


@pytest.mark.parametrize("name", FILES)
def test_footers_of_a_newer_format_are_read(tmp_path, name):
    """Formats append fields to their structs: a reader passes over those that it does not know."""

    def newer(fields: Any) -> None:
        fields[40] = (I64, 1)
        for group in list_of(fields, FileMetaData.ROW_GROUPS):
            group[41] = (I64, 2)
            for chunk in list_of(group, RowGroupMetaData.COLUMNS):
                chunk[42] = (I64, 3)
                value(chunk, ColumnChunk.META_DATA)[43] = (I64, 4)

    path = tmp_path / "newer.parquet"
    path.write_bytes(changed(content(name), newer))
    with ParquetDataFile(LocalFileIO(), str(path)) as file:
        assert file.num_rows == COUNT
