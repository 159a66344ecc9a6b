"""The physical form of data files, as Paimon's own writer makes them."""

from __future__ import annotations

import gc
import io
import math
import weakref
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lsm.parquet.write.column_layout import dictionary_columns
from lsm.parquet.write.writer import ParquetFileWriter
from lsm.schema.parquet_schema import file_schema, key_value_fields, needs_int96
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.schema.validation import build_schema

pytestmark = pytest.mark.sizes

TYPES = {
    "b BOOLEAN": "optional boolean field_id=0 b;",
    "t TINYINT": "optional int32 field_id=0 t (Int(bitWidth=8, isSigned=true));",
    "s SMALLINT": "optional int32 field_id=0 s (Int(bitWidth=16, isSigned=true));",
    "i INT NOT NULL": "required int32 field_id=0 i;",
    "l BIGINT": "optional int64 field_id=0 l;",
    "f FLOAT": "optional float field_id=0 f;",
    "d DOUBLE": "optional double field_id=0 d;",
    "v VARCHAR(5)": "optional binary field_id=0 v (String);",
    "y BYTES": "optional binary field_id=0 y;",
    "a DATE": "optional int32 field_id=0 a (Date);",
    "m TIME(0)": "optional int32 field_id=0 m (Time(isAdjustedToUTC=true, timeUnit=milliseconds));",
    "n DECIMAL(9, 2)": "optional int32 field_id=0 n (Decimal(precision=9, scale=2));",
    "n DECIMAL(18, 2)": "optional int64 field_id=0 n (Decimal(precision=18, scale=2));",
    "n DECIMAL(20, 2)": "optional fixed_len_byte_array(9) field_id=0 n (Decimal(precision=20, scale=2));",
    "n DECIMAL(38, 2)": "optional fixed_len_byte_array(16) field_id=0 n (Decimal(precision=38, scale=2));",
    "p TIMESTAMP(3)": "optional int64 field_id=0 p (Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds",
    "p TIMESTAMP(6)": "optional int64 field_id=0 p (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds",
    "p TIMESTAMP(9)": "optional int96 field_id=0 p;",
    "p TIMESTAMP_LTZ(3)": "optional int64 field_id=0 p (Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds",
    "p TIMESTAMP_LTZ(9)": "optional int96 field_id=0 p;",
}


def written(path: Path, ddl: str, keys: tuple[str, ...] = (), **settings) -> pq.ParquetFile:
    schema = build_schema(ddl, primary_keys=keys, options={"bucket": "1"} if keys else {})
    fields = key_value_fields(schema.fields, keys) if keys else schema.fields
    writer = ParquetFileWriter(LocalFileIO(), str(path), file_schema(fields), int96=needs_int96(fields), **settings)
    footer, size = writer.close()
    assert size == path.stat().st_size
    assert footer.num_rows == 0
    return pq.ParquetFile(path)


@pytest.mark.parametrize(("column", "line"), TYPES.items())
def test_physical_types(tmp_path: Path, column: str, line: str) -> None:
    assert line in str(written(tmp_path / "f", column).metadata.schema)


def test_nested_types_have_paimons_names_and_ids(tmp_path: Path) -> None:
    ddl = "a INT, r ROW<x INT, y ARRAY<INT>>, l ARRAY<INT NOT NULL>, m MAP<STRING, BIGINT>, s MULTISET<INT>, n ARRAY<ARRAY<INT>>"
    text = " ".join(str(written(tmp_path / "f", ddl).metadata.schema).split())
    # ids: a 0, r 1, x 2, y 3, l 4, m 5, s 6, n 7
    assert "optional group field_id=1 r { optional int32 field_id=2 x; optional group field_id=3 y (List)" in text
    assert f"repeated group field_id=-1 list {{ optional int32 field_id={536870911 + 1024 * 3 + 1} element; }}" in text
    assert f"repeated group field_id=-1 list {{ required int32 field_id={536870911 + 1024 * 4 + 1} element; }}" in text
    key, value = 536870911 - 1024 * 5 - 1, 536870911 + 1024 * 5 + 1
    assert f"key_value {{ required binary field_id={key} key (String); optional int64 field_id={value} value; }}" in text
    key, value = 536870911 - 1024 * 6 - 1, 536870911 + 1024 * 6 + 1
    assert f"key_value {{ required int32 field_id={key} key; required int32 field_id={value} value; }}" in text
    outer, inner = 536870911 + 1024 * 7 + 1, 536870911 + 1024 * 7 + 2
    assert (
        f"optional group field_id={outer} element (List) {{ repeated group field_id=-1 list {{ optional int32 field_id={inner} element; }} }}"
        in text
    )


def test_ids_observed_in_files_of_the_java_engine() -> None:
    schema = build_schema("k INT", primary_keys=["k"], options={"bucket": "1"})
    ids = [field.metadata[b"PARQUET:field_id"] for field in file_schema(key_value_fields(schema.fields, ("k",)))]
    assert ids == [b"1073741823", b"2147483646", b"2147483645", b"0"]


def test_key_columns_come_first_in_the_order_of_the_key_unless_files_are_thin() -> None:
    fields = build_schema("a INT, b INT, c INT", primary_keys=["c", "a"], options={"bucket": "1"}).fields
    assert [f.name for f in key_value_fields(fields, ("c", "a"))] == ["_KEY_c", "_KEY_a", "_SEQUENCE_NUMBER", "_VALUE_KIND", "a", "b", "c"]
    assert [f.name for f in key_value_fields(fields, ("c", "a"), thin=True)] == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "a", "b", "c"]


def test_files_hold_no_arrow_schema_are_compressed_and_have_page_indexes(tmp_path: Path, set_thresholds: Callable[..., None]) -> None:
    set_thresholds(group_rows=1000)
    writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / "f"), pa.schema([("a", pa.int64())]))
    for at in range(0, 2500, 500):
        writer.write(pa.table({"a": list(range(at, at + 500))}))
    footer, _ = writer.close()
    chunk = footer.row_group(0).column(0)
    assert (chunk.compression, chunk.has_column_index, chunk.has_offset_index) == ("ZSTD", True, True)
    assert not footer.metadata
    assert [footer.row_group(at).num_rows for at in range(footer.num_row_groups)] == [1000, 1000, 500]


def test_row_groups_are_bounded_by_memory_too(tmp_path: Path) -> None:
    writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / "f"), pa.schema([("a", pa.int64())]), row_group_bytes=8000)
    for _ in range(4):
        writer.write(pa.table({"a": list(range(500))}))
    footer, _ = writer.close()
    assert footer.num_row_groups == 2


@pytest.mark.parametrize(("codec", "stored"), [("none", "UNCOMPRESSED"), ("snappy", "SNAPPY"), ("gzip", "GZIP"), ("zstd", "ZSTD")])
def test_codecs(tmp_path: Path, codec: str, stored: str) -> None:
    writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / "f"), pa.schema([("a", pa.int64())]), compression=codec, level=3)
    writer.write(pa.table({"a": [1, 2, 3]}))
    assert writer.close()[0].row_group(0).column(0).compression == stored


def test_a_file_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"precious")
    writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / "f"), pa.schema([("a", pa.int64())]))
    writer.write(pa.table({"a": [1]}))
    with pytest.raises(FileExistsError):
        writer.close()
    writer.abort()
    assert (tmp_path / "f").read_bytes() == b"precious"


def test_nothing_appears_before_there_is_something_to_write(tmp_path: Path) -> None:
    writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / "f"), pa.schema([("a", pa.int64())]))
    writer.write(pa.table({"a": [1]}))
    writer.abort()
    assert list(tmp_path.iterdir()) == []


class Sink(io.BytesIO):
    """Sink that notes the size of each write."""

    sizes: ClassVar[list[int]] = []

    def write(self, data: Any) -> int:
        self.sizes.append(len(data))
        return super().write(data)


class OneSink(WrappedFileIO):
    """Storage with one sink."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(LocalFileIO())
        self.sink = sink

    def open_output(self, path: str) -> Sink:
        return self.sink

    def sync(self, path: str) -> None:
        pass


@pytest.mark.parametrize("rows", [0, 1, 100_000])
@pytest.mark.parametrize("size", [16, 1 << 16])
def test_small_writes_of_the_encoder_are_joined(set_thresholds: Callable[..., None], size: int, rows: int) -> None:
    set_thresholds(file_write_bytes=size)
    sink = Sink()
    sink.sizes.clear()
    writer = ParquetFileWriter(
        OneSink(sink), "f", pa.schema([(name, pa.int64()) for name in "abcdef"]), compression="none", by_sample=False
    )
    writer.write(pa.table({name: np.random.default_rng(0).integers(0, 1 << 60, rows) for name in "abcdef"}))
    writer.close()
    assert len(sink.sizes) <= 2 + sum(sink.sizes) // size * 2


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "abort"])
def test_a_finished_file_releases_its_sink(tmp_path: Path, end: str) -> None:
    sink = Sink()
    writer = ParquetFileWriter(OneSink(sink), str(tmp_path / "f"), pa.schema([("a", pa.int64())]))
    writer.write(pa.table({"a": [1]}))
    writer.end_row_group()
    getattr(writer, end)()
    ended = weakref.ref(sink)
    del writer, sink
    gc.collect()
    assert ended() is None


def test_the_size_is_estimated_from_what_is_written_and_what_waits(tmp_path: Path, set_thresholds: Callable[..., None]) -> None:
    set_thresholds(group_rows=1000)
    writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / "f"), pa.schema([("a", pa.int64())]), compression="none")
    writer.write(pa.table({"a": list(range(1000))}))
    first = writer.bytes_written
    assert 8000 <= first < 9000
    writer.write(pa.table({"a": list(range(500))}))
    assert first + 4000 <= writer.bytes_written < first + 5000
    writer.close()


def test_dictionaries_are_for_columns_that_repeat() -> None:
    rows = pa.table(
        {
            "id": list(range(10_000)),
            "city": ["Oslo", "Bergen"] * 5000,
            "flag": [True, False] * 5000,
            "m": pa.array([[("k", 1)]] * 10_000, pa.map_(pa.string(), pa.int64())),
            "r": [{"x": 1, "l": [1]}] * 10_000,
        }
    )
    assert dictionary_columns(rows, frozenset()) == ["city", "m.key_value.key", "m.key_value.value", "r.x", "r.l.list.element"]
    assert "city" not in dictionary_columns(rows, frozenset({"city"}))


def test_only_timestamps_finer_than_microseconds_are_int96(tmp_path: Path, set_thresholds: Callable[..., None]) -> None:
    """Paimon pushes filters on the others down as integers, and fails on a file that stores them otherwise."""
    ddl = "a TIMESTAMP(9), b TIMESTAMP(6), c TIMESTAMP_LTZ(3), r ROW<x TIMESTAMP(3), y ARRAY<TIMESTAMP_LTZ(9)>>, m MAP<INT, TIMESTAMP(6)>"
    schema = file_schema(build_schema(ddl).fields)
    moment = 1_767_323_045_678
    row = {"a": moment * 10**6 + 1, "b": moment * 1000, "c": moment, "r": {"x": moment, "y": [moment * 10**6]}, "m": [(1, moment * 1000)]}
    rows = pa.table({field.name: pa.array([row[field.name], None] * 700, field.type) for field in schema}, schema)
    set_thresholds(group_rows=1000)
    writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / "f"), schema, int96=True)
    writer.write(rows.slice(0, 1000))
    writer.write(rows.slice(1000))
    _, size = writer.close()
    assert size == (tmp_path / "f").stat().st_size
    found = pq.ParquetFile(tmp_path / "f", page_checksum_verification=True)
    kinds = {
        leaf.path: (leaf.physical_type, str(leaf.logical_type)) for leaf in map(found.schema.column, range(found.metadata.num_columns))
    }
    assert [path for path, (physical, _) in kinds.items() if physical == "INT96"] == ["a", "r.y.list.element"]
    assert "isAdjustedToUTC=false, timeUnit=microseconds" in kinds["b"][1]
    assert "isAdjustedToUTC=true, timeUnit=milliseconds" in kinds["c"][1]
    assert "isAdjustedToUTC=false, timeUnit=milliseconds" in kinds["r.x"][1]
    assert found.read().cast(schema).equals(rows)
    bounds = found.metadata.row_group(0).column(1).statistics
    assert (bounds.min.timestamp(), bounds.null_count) == (rows["b"][0].as_py().timestamp(), 500)


def test_row_groups_with_nan_have_no_bounds(tmp_path: Path, set_thresholds: Callable[..., None]) -> None:
    """To Paimon NaN is the greatest value, but encoders leave it out of the maximum: a reader would skip what holds it."""
    schema = file_schema(build_schema("a DOUBLE, b FLOAT, n INT").fields)
    rows = pa.table({"a": [1.0, 2.0, math.nan, None], "b": [0.5] * 4, "n": [1, 2, 3, 4]}).cast(schema)
    set_thresholds(group_rows=2)
    writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / "f"), schema)
    for start in (0, 2):
        writer.write(rows.slice(start, 2))
    footer, _ = writer.close()
    assert footer.row_group(1).column(1).statistics.has_min_max
    found = pq.ParquetFile(tmp_path / "f")
    chunks = [[found.metadata.row_group(group).column(at) for at in range(3)] for group in range(2)]
    assert [[chunk.statistics.has_min_max for chunk in group] for group in chunks] == [[True] * 3, [False, True, True]]
    assert [[chunk.has_column_index for chunk in group] for group in chunks] == [[True] * 3, [False, True, True]]
    assert chunks[1][0].statistics.null_count == 1
    assert str(found.read().to_pydict()) == str(rows.to_pydict())


@pytest.mark.parametrize(
    ("distinct", "rows", "pays"),
    [
        (1, 100, True),
        (25, 100, True),
        (26, 100, False),
        (2_500, 12_500, True),
        (10_000, 12_500, False),
        (2_500, 100_000, True),
        (90_000, 100_000, False),
    ],
)
def test_a_dictionary_pays_if_values_repeat_as_often_as_a_sample_tells(distinct: int, rows: int, pays: bool) -> None:
    values = np.random.default_rng(3).permutation(np.arange(rows) % distinct)
    assert dictionary_columns(pa.table({"a": values}), frozenset()) == (["a"] if pays else [])


def test_a_value_that_is_everywhere_does_not_hide_that_the_others_are_unique() -> None:
    values = np.where(np.arange(60_000) % 2 == 0, 0, np.arange(60_000))
    assert dictionary_columns(pa.table({"a": np.random.default_rng(3).permutation(values)}), frozenset()) == []


def test_decimals_of_fixed_length_have_no_dictionary():
    """Paimon's reader searches dictionaries for shorter bytes than they hold, and would find no row."""
    numbers = [Decimal(1)] * 9
    rows = pa.table({"wide": pa.array(numbers, pa.decimal128(19, 0)), "narrow": pa.array(numbers, pa.decimal128(18, 0))})
    assert dictionary_columns(rows, frozenset()) == ["narrow"]
