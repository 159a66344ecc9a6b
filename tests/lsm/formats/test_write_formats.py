"""Tables whose files are ORC or Avro, or change from one format to another, written and read again; what the formats cannot hold."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from manifest.io.errors import CastFailed, InvalidSchema, UnsupportedTable
from manifest.stats.column_stats import decode_bounds
from manifest.store import FileStore
from manifest.types.data_type import DataField, DataType
from pyspark_paimon import CorruptFile, Table, UnsupportedOption
from pyspark_paimon.plugins.file_formats.avro.reader import decode_blocks
from pyspark_paimon.plugins.file_formats.avro.shapes import shape_of
from pyspark_paimon.plugins.file_formats.avro.writer import avro_schema, encode, interleave

DDL = (
    "id BIGINT, d DECIMAL(20, 4), s STRING, f DOUBLE, t TIMESTAMP(6), z TIMESTAMP_LTZ(3), m MAP<STRING, INT>, r ROW<x INT, y ARRAY<STRING>>"
)


def rows(start: int, count: int = 300) -> list[dict[str, Any]]:
    return [
        {
            "id": n,
            "d": Decimal(n * 7919 - 10**6).scaleb(-4) if n % 7 else None,
            "s": None if n % 5 == 0 else f"text {n % 13}",
            "f": float("nan") if n % 50 == 3 else n / 8,
            "t": dt.datetime(2024, 1, 1) + dt.timedelta(microseconds=n),  # noqa: DTZ001  # TIMESTAMP has no zone
            "z": dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=n),
            "m": None if n % 11 == 0 else [("a", n), ("b", None)][: n % 3],
            "r": None if n % 6 == 0 else {"x": n, "y": ["p", None][: n % 3]},
        }
        for n in range(start, start + count)
    ]


def table_of(path: Path, keys: tuple[str, ...] = ("id",), **options: str) -> Table:
    return Table.create(path, DDL, primary_keys=list(keys), options=options)


def arrow(table: Table, values: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(values, table.schema if isinstance(table.schema, pa.Schema) else table.scan().to_arrow().schema)


def read(table: Table) -> list[str]:
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


def formats(path: Path) -> Counter[str]:
    store = FileStore.open(path)
    return Counter(entry.file.format for entry in store.live_entries(store.snapshots.latest()).entries())


@pytest.mark.parametrize("file_format", ["orc", "avro"])
@pytest.mark.parametrize("compression", ["zstd", "snappy", "none", "lz4"])
def test_rows_come_back_and_hold_their_metadata(tmp_path: Path, file_format: str, compression: str) -> None:
    options = {"bucket": "1", "file.format": file_format, "file.compression": compression}
    if (file_format, compression) == ("avro", "lz4"):
        with pytest.raises(UnsupportedOption, match=r"file\.compression.*not a codec of Avro"):
            table_of(tmp_path / "t", **options)
        return
    table = table_of(tmp_path / "t", **options)
    for start in (0, 200, 400):
        table.write(arrow(table, rows(start)))
    expected = sorted(map(repr, arrow(table, rows(0, 700)).to_pylist()))
    assert read(table) == expected
    table.compact(full=True)
    assert (read(table), formats(tmp_path / "t")) == (expected, Counter({file_format: 1}))
    checked = table.fsck(depth="deep")
    assert (checked.problems, checked.unchecked) == ((), {})
    assert table.scan(filter="f = double('NaN')").to_arrow().num_rows == 14


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_bounds_in_the_manifest_are_those_of_the_rows(tmp_path: Path, file_format: str) -> None:
    table = table_of(tmp_path / "t", bucket="1", **{"file.format": file_format})
    table.write(arrow(table, rows(1, 40)))
    store = FileStore.open(tmp_path / "t")
    (entry,) = store.live_entries(store.snapshots.latest()).entries()
    names = entry.file.value_stats_cols
    assert names == ("id", "d", "s", "f", "t", "z")
    known = decode_bounds(entry.file.value_stats, names, store.schema.types_of(names), 40)
    assert (known["id"].min, known["id"].max, known["id"].null_count) == (1, 40, 0)
    assert (known["d"].min, known["d"].max, known["d"].null_count) == (7919 - 10**6, 40 * 7919 - 10**6, 5)
    assert (known["s"].min, known["s"].max, known["s"].null_count) == ("text 0", "text 9", 8)
    assert known["f"].min == 1 / 8
    assert np.isnan(known["f"].max)


def test_levels_and_changelogs_have_formats_of_their_own(tmp_path: Path) -> None:
    options = {"file.format.per.level": "0:avro,5:orc", "changelog-file.format": "avro", "changelog-producer": "input", "bucket": "1"}
    table = table_of(tmp_path / "t", **options)
    table.write(arrow(table, rows(0)))
    table.write(arrow(table, rows(0, 100)))
    table.compact(full=True)
    table.write(arrow(table, rows(100)))
    assert formats(tmp_path / "t") == Counter({"avro": 1, "orc": 1})
    assert read(table) == sorted(map(repr, arrow(table, rows(0, 400)).to_pylist()))
    assert {path.suffix for path in (tmp_path / "t/bucket-0").glob("changelog-*")} == {".avro"}
    assert table.fsck(depth="deep").problems == ()


def test_files_keep_their_format_when_the_option_changes(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = table_of(path, (), bucket="-1")
    for start, file_format in enumerate(["parquet", "orc", "avro"]):
        table = table.alter_options({"file.format": file_format})
        table.write(arrow(table, rows(300 * start)))
    assert formats(path) == Counter({"parquet": 1, "orc": 1, "avro": 1})
    assert read(table) == sorted(map(repr, arrow(table, rows(0, 900)).to_pylist()))
    table.compact(full=True)
    assert read(table) == sorted(map(repr, arrow(table, rows(0, 900)).to_pylist()))


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_files_roll_at_the_target_size(tmp_path: Path, file_format: str) -> None:
    table = table_of(
        tmp_path / "t", (), bucket="-1", **{"file.format": file_format, "target-file-size": "20 kb", "file.compression": "none"}
    )
    table.write(arrow(table, rows(0, 3000)))
    sizes = [path.stat().st_size for path in (tmp_path / "t/bucket-0").iterdir()]
    assert len(sizes) > 2
    assert max(sizes) < 80_000
    assert table.scan().to_arrow().num_rows == 3000


def test_fractions_of_seconds_before_1970_are_not_written_to_orc(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, t TIMESTAMP(6)", options={"bucket": "-1", "file.format": "orc"})
    whole = pa.table({"id": [1, 2], "t": pa.array([-(10**6), 0], pa.timestamp("us"))})
    table.write(whole)
    with pytest.raises(CastFailed, match="column 't' has a fraction of a second before 1970"):
        table.write(pa.table({"id": [3], "t": pa.array([-1], pa.timestamp("us"))}))
    with pytest.raises(CastFailed, match="column 't' has a value that ORC cannot store"):
        table.write(pa.table({"id": [3], "t": pa.array([dt.datetime(9999, 1, 1)], pa.timestamp("us"))}))  # noqa: DTZ001
    assert table.scan().to_arrow().equals(whole.cast(table.scan().to_arrow().schema))


def test_times_that_avro_has_not_are_refused_by_column(tmp_path: Path) -> None:
    with pytest.raises(InvalidSchema, match=r"column 't': TIMESTAMP\(9\) cannot be stored in Avro files.*file\.format"):
        Table.create(tmp_path / "t", "id BIGINT, t TIMESTAMP(9)", options={"bucket": "-1", "file.format": "avro"})
    table = Table.create(tmp_path / "t", "id BIGINT, t TIMESTAMP(9)", options={"bucket": "-1"})
    schema = tmp_path / "t" / "schema" / "schema-0"  # of a table that another engine made
    schema.write_text(json.dumps({**json.loads(schema.read_text()), "options": {"bucket": "-1", "file.format": "avro"}}))
    with pytest.raises(UnsupportedTable, match=r"column 't': TIMESTAMP\(9\) cannot be stored in Avro files.*file\.format"):
        Table.open(table.path).write(pa.table({"id": [1], "t": pa.array([1], pa.timestamp("ns"))}))


TYPES = {
    "l": (DataType.from_json("BIGINT NOT NULL"), [0, -1, 2**63 - 1, -(2**63), 63, 64, -64, -65]),
    "i": (DataType.from_json("INT"), [None, 1, -(2**31), 2**31 - 1, 0, None, 8191, 8192]),
    "b": (DataType.from_json("BOOLEAN"), [True, None, False, True, None, None, False, True]),
    "f": (DataType.from_json("FLOAT"), [0.5, None, -0.0, 2.0**30, 2.0, None, 3.5, 4.0]),
    "s": (DataType.from_json("STRING"), ["", None, "a", "é" * 100, "x" * 9000, None, "", "z"]),
    "e": (DataType.from_json("STRING NOT NULL"), [""] * 8),
    "n": (DataType.from_json("BYTES"), [None] * 8),
    "p": (DataType.from_json("DECIMAL(38, 0)"), [Decimal(n) for n in (0, -1, 127, 128, -128, -129, 10**38 - 1)] + [None]),
    "a": (DataType.from_json({"type": "ARRAY", "element": "INT"}), [[], None, [1], [None, 2], list(range(200)), None, [], [3]]),
    "m": (
        DataType.from_json({"type": "MAP", "key": "INT NOT NULL", "value": {"type": "ARRAY", "element": "STRING"}}),
        [[], None, [(1, ["a", None])], [(2, None), (3, [])], None, [], [(4, ["b"])], None],
    ),
}


def test_what_is_encoded_in_columns_is_what_avros_own_reader_reads() -> None:
    """Every length of a varint, nulls and empty lists at the ends, a slice of the whole."""
    fields = [DataField(n, name, type_) for n, (name, (type_, _)) in enumerate(TYPES.items())]
    schema = avro_schema(fields)
    shape, _ = shape_of(schema)
    whole = [pa.array(values, type_.arrow) for type_, values in TYPES.values()]
    for start, end in ((0, 8), (1, 7), (3, 4)):
        arrays = [array.slice(start, end - start).cast(child.arrow) for array, child in zip(whole, shape.children, strict=True)]
        encoded = interleave([encode(array, child) for array, child in zip(arrays, shape.children, strict=True)])
        data = encoded.data.tobytes()
        found = decode_blocks(shape, [(end - start, data)], shape.names, branch=False)
        assert [column.to_pylist() for column in found.columns] == [values[start:end] for _, values in TYPES.values()]
        import io

        source, parsed = io.BytesIO(data), fastavro.parse_schema(schema)
        records = [fastavro.schemaless_reader(source, parsed) for _ in range(start, end)]
        assert source.tell() == len(data)
        assert [record["s"] for record in records] == TYPES["s"][1][start:end]
        assert [record["p"] for record in records] == TYPES["p"][1][start:end]


def test_a_row_that_is_null_is_no_row() -> None:
    shape, _ = shape_of(avro_schema([DataField(0, "i", DataType.from_json("INT NOT NULL"))]))
    assert decode_blocks(shape, [(2, b"\2\4\2\6")], ["i"], branch=True).column(0).to_pylist() == [2, 3]
    with pytest.raises(ValueError, match="null"):
        decode_blocks(shape, [(2, b"\2\4\0\6")], ["i"], branch=True)


def test_a_broken_block_of_ours_is_told(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", bucket="1", **{"file.format": "avro"})
    table.write(arrow(table, rows(0)))
    (file,) = (tmp_path / "t/bucket-0").iterdir()
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with pytest.raises(CorruptFile, match=f"{file.name}.*sync marker"):
        table.scan().to_arrow()
