"""ORC files as other writers make them: stripes and their statistics, codecs, times, columns of odd names."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from manifest.io.errors import UnsupportedTable
from manifest.io.file_io import LocalFileIO
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from pyspark_paimon.plugins.file_formats.orc.chars import without_padding
from pyspark_paimon.plugins.file_formats.orc.reader import OrcDataFile
from pyspark_paimon.plugins.file_formats.orc.tail import OrcKind, OrcTail
from sparkexpr.values.column_type import Kind

ROWS = 40_000


def written(path: Path, columns: Mapping[str, Any], **options: Any) -> str:
    orc.write_table(pa.table(dict(columns)), str(path), **options)
    return str(path)


def opened(path: str) -> OrcDataFile:
    return OrcDataFile(LocalFileIO(), path)


@pytest.fixture
def many(tmp_path: Path) -> str:
    """A file of several stripes, ascending."""
    numbers = pa.array(range(ROWS))
    texts = pa.array([None if n % 5 == 0 else f"{n:08}" * 4 for n in range(ROWS)])
    prices = pa.array([Decimal(n).scaleb(-2) for n in range(ROWS)], pa.decimal128(38, 2))
    columns = {
        "n": numbers,
        "s": texts,
        "p": prices,
        "f": pa.array([0.5] * ROWS),
        "d": pa.array(numbers.cast(pa.int32())).cast(pa.date32()),
    }
    return written(tmp_path / "many.orc", columns, stripe_size=1 << 16, batch_size=1024, compression="uncompressed")


def test_stripes_are_row_groups_with_the_bounds_of_their_rows(many: str) -> None:
    with opened(many) as data:
        assert len(data.row_groups) > 3
        assert data.num_rows == ROWS == data.row_groups[-1].end_row
        for group in data.row_groups:
            rows = range(group.first_row, group.end_row)
            nulls = sum(n % 5 == 0 for n in rows)
            filled = [n for n in rows if n % 5]
            assert data.bounds(group, "n", DataType(Kind.BIGINT)) == ColumnBounds(rows[0], rows[-1], 0, len(rows))
            assert data.bounds(group, "d", DataType(Kind.DATE)) == ColumnBounds(rows[0], rows[-1], 0, len(rows))
            decimals = DataType(Kind.DECIMAL, precision=38, scale=2)
            assert data.bounds(group, "p", decimals) == ColumnBounds(rows[0], rows[-1], 0, len(rows))
            text = DataType(Kind.VARCHAR, length=2**31 - 1)
            assert data.bounds(group, "s", text) == ColumnBounds(f"{filled[0]:08}" * 4, f"{filled[-1]:08}" * 4, nulls, len(rows))
            assert data.bounds(group, "f", DataType(Kind.DOUBLE)) == ColumnBounds(None, None, 0, len(rows))
            assert data.bounds(group, "n", DataType(Kind.INT)) == ColumnBounds(None, None, 0, len(rows))


def test_some_columns_of_some_stripes_come_in_batches_of_the_size_asked(many: str) -> None:
    with opened(many) as data:
        some = data.row_groups[1:3]
        batches = list(data.batches(["s", "n"], some, batch_bytes=1 << 14))
        assert max(batch.nbytes for batch in batches) < 1 << 15
        assert [batch.schema.names for batch in batches] == [["s", "n"]] * len(batches)
        numbers = [n for batch in batches for n in batch.column("n").to_pylist()]
        assert numbers == list(range(some[0].first_row, some[-1].end_row))
        assert 0 < data.compressed_size(["n"], some) < data.compressed_size(["n", "s"], some) < sum(group.size for group in some)


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_a_tail_of_every_codec_is_read(tmp_path: Path, codec: str) -> None:
    columns = {f"column_{number}": pa.array(range(1000)) for number in range(60)}
    with opened(written(tmp_path / "f.orc", columns, compression=codec)) as data:
        assert data.schema.names == list(columns)
        assert data.bounds(data.row_groups[0], "column_59", DataType(Kind.BIGINT)) == ColumnBounds(0, 999, 0, 1000)


def test_columns_with_points_in_their_names_are_found(tmp_path: Path) -> None:
    columns = {"a": pa.array([{"b": 1}]), "a.b": pa.array([2]), "c": pa.array([3])}
    with opened(written(tmp_path / "f.orc", columns)) as data:
        assert [batch.to_pylist() for batch in data.batches(["a.b"], data.row_groups)] == [[{"a.b": 2}]]


def test_times_that_nanoseconds_cannot_hold_are_refused_by_name(tmp_path: Path) -> None:
    far = pa.array([dt.datetime(9999, 12, 31), None], pa.timestamp("us"))  # noqa: DTZ001  # TIMESTAMP has no zone
    near = pa.array([dt.datetime(2024, 12, 31), None], pa.timestamp("us"))  # noqa: DTZ001
    path = tmp_path / "f.orc"
    orc.write_table(pa.table({"near": near, "far": far}), str(path))
    with opened(str(path)) as data:
        assert sum(batch.num_rows for batch in data.batches(["near"], data.row_groups)) == 2
        with pytest.raises(UnsupportedTable, match=r"f\.orc: column 'far' has a timestamp outside of the range of nanoseconds"):
            list(data.batches(["far"], data.row_groups))


def test_a_precision_that_no_decimal_has_does_not_reach_the_decoder(tmp_path: Path) -> None:
    """Arrow ends the process there."""
    path = Path(written(tmp_path / "f.orc", {"p": pa.array([Decimal(1)], pa.decimal128(16, 2))}, compression="uncompressed"))
    content = path.read_bytes()
    precision = bytes([0x28, 16, 0x30, 2])
    assert content.count(precision) == 1
    path.write_bytes(content.replace(precision, bytes([0x28, 80, 0x30, 2])))
    with pytest.raises(CorruptFile, match=r"f\.orc.*DECIMAL\(80, 2\) is not a valid type"):
        opened(str(path))


def test_columns_are_numbered_with_what_is_inside_them(tmp_path: Path) -> None:
    nested = pa.array([[{"x": 1, "y": {"a": 2}}]], pa.list_(pa.struct({"x": pa.int32(), "y": pa.map_(pa.string(), pa.int32())})))
    path = Path(written(tmp_path / "f.orc", {"a": pa.array([1]), "nested": nested, "z": pa.array([2])}))
    content = path.read_bytes()
    tail = OrcTail.read(lambda offset, length: content[offset : offset + length], len(content))
    assert {name: list(tail.below(number)) for name, number in tail.columns.items()} == {"a": [1], "nested": [2, 3, 4, 5, 6, 7], "z": [8]}


def test_char_is_read_without_its_padding_wherever_it_is(tmp_path: Path) -> None:
    """Arrow writes STRING; by its number the kind becomes CHAR, which the decoder reads alike."""
    row = pa.struct({"c": pa.string(), "s": pa.string()})
    columns = {
        "c": pa.array(["a  ", "", None]),
        "s": pa.array(["a  ", "", None]),
        "r": pa.array([{"c": "x ", "s": "x "}, None, {"c": None, "s": None}], row),
        "l": pa.array([["b ", None], [], None]),
        "m": pa.array([[("k ", "v ")], None, []], pa.map_(pa.string(), pa.string())),
    }
    path = written(tmp_path / "f.orc", columns)
    with opened(path) as data:
        kinds = {1: OrcKind.CHAR, 4: OrcKind.CHAR, 7: OrcKind.CHAR, 9: OrcKind.CHAR}
        types = tuple(replace(type_, kind=kinds.get(number, type_.kind)) for number, type_ in enumerate(data._tail.types))
        tail = replace(data._tail, types=types)
        rows = pa.table(columns).combine_chunks().to_batches()[0]
        found = {name: without_padding(rows.column(name), tail, number).to_pylist() for name, number in tail.columns.items()}
    assert found == {
        "c": ["a", "", None],
        "s": ["a  ", "", None],
        "r": [{"c": "x", "s": "x "}, None, {"c": None, "s": None}],
        "l": [["b", None], [], None],
        "m": [[("k", "v ")], None, []],
    }
