"""Avro files as other writers make them: blocks, codecs, unions, decimals, layouts of older versions."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from manifest.avro.wire import encode_long
from manifest.io.errors import UnsupportedTable
from manifest.io.file_io import LocalFileIO
from paimon_base.errors import CorruptFile
from pyspark_paimon.plugins.file_formats.avro.reader import AvroDataFile


def written(path: Path, fields: list[dict[str, Any]], rows: list[dict[str, Any]], **options: Any) -> str:
    schema = {"type": "record", "name": "record", "fields": fields}
    content = io.BytesIO()
    fastavro.writer(content, options.pop("schema", schema), rows, **options)
    path.write_bytes(content.getvalue())
    return str(path)


def read(path: str, *columns: str) -> pa.Table:
    with AvroDataFile(LocalFileIO(), path) as data:
        return pa.Table.from_batches(data.batches(columns or data.schema.names, data.row_groups))


NUMBER = [{"name": "n", "type": "long"}]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_blocks_of_every_codec_are_read_in_order(tmp_path: Path, set_thresholds: Callable[..., None], codec: str) -> None:
    set_thresholds(avro_group_bytes=20_000)
    path = written(tmp_path / "f.avro", NUMBER, [{"n": n * 7919} for n in range(20_000)], codec=codec, sync_interval=4000)
    with AvroDataFile(LocalFileIO(), path) as data:
        assert data.num_rows == 20_000
        assert len(data.row_groups) > 1 or codec in {"bzip2", "xz"}
        last = data.row_groups[-1]
        found = [n for batch in data.batches(["n"], [last]) for n in batch.column("n").to_pylist()]
    assert found == [n * 7919 for n in range(last.first_row, 20_000)]
    assert read(path).column("n").to_pylist() == [n * 7919 for n in range(20_000)]


def test_decimals_of_any_length_are_read(tmp_path: Path) -> None:
    values = [None, *(Decimal(f"{sign}{'9' * digits}E-3") for digits in range(3, 39) for sign in ("", "-")), Decimal(0)]
    type_ = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 3}
    path = written(tmp_path / "f.avro", [{"name": "p", "type": ["null", type_]}], [{"p": value} for value in values])
    assert read(path).column("p").to_pylist() == values


def test_a_decimal_that_is_longer_than_any_is_none(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "f.avro", [{"name": "p", "type": "bytes"}], [{"p": b"\x01" * 17}]))
    decimal = b'{"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 3}'
    content = path.read_bytes()
    start = content.index(b"{")
    _, length = json.JSONDecoder().raw_decode(content[start:].decode("latin-1"))  # the marker behind it may hold any byte
    schema = content[start : start + length]
    said = schema.replace(b'"type": "bytes"', b'"type": ' + decimal)
    path.write_bytes(content.replace(encode_long(len(schema)) + schema, encode_long(len(said)) + said))
    with pytest.raises(CorruptFile, match=r"f\.avro.*longer than 16 bytes"):
        read(str(path))


def test_nested_values_and_nulls_on_either_side_are_read(tmp_path: Path) -> None:
    inner = {"type": "record", "name": "inner", "fields": [{"name": "x y", "type": ["int", "null"]}, {"name": "z", "type": "string"}]}
    entry = {"type": "record", "name": "entry", "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}]}
    fields = [
        {"name": "rows", "type": ["null", {"type": "array", "items": ["null", inner]}]},
        {"name": "by_text", "type": ["null", {"type": "map", "values": ["null", "double"]}]},
        {"name": "by_number", "type": {"type": "array", "logicalType": "map", "items": entry}},
    ]
    rows = [
        {"rows": [{"x y": 1, "z": "a"}, None, {"x y": None, "z": ""}], "by_text": {"a": 0.5, "b": None}, "by_number": []},
        {"rows": None, "by_text": None, "by_number": [{"key": 1, "value": None}, {"key": 2, "value": "two"}]},
        {"rows": [], "by_text": {}, "by_number": []},
    ]
    found = read(written(tmp_path / "f.avro", fields, rows)).to_pylist()
    assert [row["rows"] for row in found] == [row["rows"] for row in rows]
    assert [row["by_text"] if row["by_text"] is None else dict(row["by_text"]) for row in found] == [row["by_text"] for row in rows]
    assert [row["by_number"] for row in found] == [[], [(1, None), (2, "two")], []]


def test_a_row_in_a_union_with_null_is_a_row_as_older_versions_wrote_it(tmp_path: Path) -> None:
    union = ["null", {"type": "record", "name": "record", "fields": NUMBER}]
    path = written(tmp_path / "f.avro", [], [{"n": 5}, {"n": 6}], schema=union)
    assert read(path).to_pylist() == [{"n": 5}, {"n": 6}]
    nulls = written(tmp_path / "nulls.avro", [], [{"n": 5}, None, {"n": 6}], schema=union)
    with pytest.raises(CorruptFile, match=r"nulls\.avro.*"):
        read(nulls)


@pytest.mark.parametrize("type_", [{"type": "enum", "name": "e", "symbols": ["a"]}, {"type": "fixed", "name": "f", "size": 2}])
def test_types_that_no_table_has_are_refused(tmp_path: Path, type_: dict[str, Any]) -> None:
    path = written(tmp_path / "f.avro", [{"name": "e", "type": type_}], [])
    with pytest.raises(UnsupportedTable, match=r"f\.avro: column 'e': Avro type .* is not supported; write the column as"):
        read(path)
