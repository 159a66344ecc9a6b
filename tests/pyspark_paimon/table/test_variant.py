"""VARIANT columns: in memory the two parts that lie in Parquet; what Java's engine wrote, what we write, and what is refused."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manifest.io.errors import InvalidSchema, SchemaMismatch
from paimon_base.errors import CorruptFile, PaimonError
from pyspark_paimon import Table, Variant
from tests.build import keyed

GOLDEN = Path(__file__).parents[2] / "golden_variant"
VARIANT = pa.struct([pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False)])
ONE, TRUE = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}, {"value": b"\x04", "metadata": b"\x01\x00\x00"}


def test_a_table_of_the_engine_is_read_written_and_checked(tmp_path: Path) -> None:
    table = Table.open(shutil.copytree(GOLDEN / "table", tmp_path / "t"))
    assert table.schema.field("v").type == VARIANT
    assert table.schema.field("w") == pa.field("w", VARIANT, nullable=False)
    found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert (found[2]["v"], found[3]["v"]["value"]) == (None, b"\x00")
    assert found[1]["w"]["value"] == bytes.fromhex("020000")
    assert table.scan("v IS NULL", columns=["id"]).to_arrow()["id"].to_pylist() == [2]
    table.write(pa.table({"id": pa.array([9], pa.int32()), "v": pa.array([ONE], VARIANT), "w": pa.array([TRUE], VARIANT)}))
    table.compact(full=True)
    assert table.scan("id = 9").to_arrow().to_pylist() == [{"id": 9, "v": ONE, "w": TRUE}]
    assert table.fsck(depth="deep").problems == ()


def test_variants_in_arrays_and_rows(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id INT, a ARRAY<VARIANT>, r ROW<x VARIANT, y INT>")
    rows = [{"id": 1, "a": [ONE, None], "r": {"x": TRUE, "y": 2}}, {"id": 2, "a": None, "r": {"x": None, "y": 3}}]
    table.write(pa.Table.from_pylist(rows, table.schema))
    table.add_column("z", "VARIANT")
    assert table.scan(order_by="id").to_arrow().to_pylist() == [row | {"z": None} for row in rows]


def test_variants_beside_each_other_in_a_row(tmp_path: Path) -> None:
    inner = "ROW<x VARIANT, `y.z` VARIANT, i INT, w VARIANT>"
    table = Table.create(tmp_path / "t", f"id INT, r {inner}, a ARRAY<{inner}>, m MAP<STRING, {inner}>")
    row = {"x": TRUE, "y.z": ONE, "i": 2, "w": None}
    rows = [{"id": 1, "r": row, "a": [row, None], "m": [("k", row)]}, {"id": 2, "r": None, "a": [], "m": None}]
    table.write(pa.Table.from_pylist(rows, table.schema))
    assert table.scan(order_by="id").to_arrow().to_pylist() == rows
    assert table.fsck(depth="deep").problems == ()


def test_half_a_variant_is_refused(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id INT, v VARIANT")
    open_struct = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    rows = pa.table({"id": pa.array([1], pa.int32()), "v": pa.array([{"value": b"\x00", "metadata": None}], open_struct)})
    with pytest.raises(PaimonError, match="'v'"):
        table.write(rows)
    assert table.snapshots().num_rows == 0


@pytest.mark.parametrize("options", [{"file.format": "orc"}, {"file.format.per.level": "0:avro"}])
def test_other_formats_have_no_variant(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(InvalidSchema, match="VARIANT needs Parquet files"):
        keyed(tmp_path / "t", "id INT, v VARIANT", options)


@pytest.mark.parametrize(("keys", "column"), [({"primary_keys": ["v"]}, "v"), ({"partition_keys": ["v"]}, "v")])
def test_a_variant_is_no_key(tmp_path: Path, keys: dict[str, Any], column: str) -> None:
    with pytest.raises(InvalidSchema, match=f"'{column}'"):
        Table.create(tmp_path / "t", "id INT, v VARIANT", **keys)


@pytest.mark.parametrize("name", ["typed", "inferred"])
def test_shredded_variants_are_read_and_compacted(tmp_path: Path, name: str) -> None:
    table = Table.open(shutil.copytree(GOLDEN / name, tmp_path / "t"))
    expected = {row["id"]: (row["v"], row["w"]) for row in json.loads((GOLDEN / f"{name}.json").read_text())}
    assert any("typed_value" in str(pq.read_metadata(path).schema) for path in (tmp_path / "t").rglob("*.parquet"))

    def found(rows: pa.Table) -> dict[int, Any]:
        texts = [Variant.json_array(rows[column]).to_pylist() for column in ("v", "w")]
        return dict(zip(rows["id"].to_pylist(), zip(*texts, strict=True), strict=True))

    assert found(table.scan().to_arrow()) == expected
    fives = {"typed": {100}, "inferred": {6, 100, 106}}[name]
    assert found(table.scan("try_variant_get(v, '$.i', 'bigint') = 5").to_arrow()) == {id_: expected[id_] for id_ in fives}
    assert found(table.scan("id = 100").to_arrow()) == {100: expected[100]}
    assert table.fsck(depth="deep").problems == ()
    assert table.compact(full=True).snapshot_id is not None
    assert found(table.scan().to_arrow()) == expected
    assert (
        found(table.scan("try_variant_get(v, '$.t', 'string') = '1'").to_arrow()).keys() == {"typed": {1, 101}, "inferred": {2, 102}}[name]
    )


def test_a_damaged_shredded_variant_names_its_file(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id INT, v VARIANT")
    table.write([{"id": 1, "v": {"a": 1}}])
    (path,) = (tmp_path / "t").rglob("*.parquet")
    wrong = pa.StructArray.from_arrays(
        [pa.array([b"\x01\x00\x00"]), pa.array([b"\x00"]), pa.array([{"a": {"value": b"\x00"}}])],
        names=["metadata", "value", "typed_value"],
    )
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "v": wrong}), path)
    with pytest.raises(CorruptFile, match=path.name):
        table.scan().to_arrow()


def test_python_values_are_written_and_decoded(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "id INT, v VARIANT, a ARRAY<VARIANT>")
    values = [
        {"b": [1, None, {"": "é"}]},
        "text",
        None,
        Variant.of(None),
        Variant.from_json("1.50"),
        [1 << 63],
        {"value": 1, "metadata": 2},
    ]
    table.write([{"id": at, "v": value, "a": [value, None]} for at, value in enumerate(values)])
    found = table.scan(order_by="id").to_arrow()
    decoded = [{"b": [1, None, {"": "é"}]}, "text", None, None, Decimal("1.50"), [Decimal(1 << 63)], {"value": 1, "metadata": 2}]
    assert Variant.decode_array(found["v"]) == decoded
    assert found["v"].is_null().to_pylist() == [False, False, True, False, False, False, False]
    assert [Variant(**row[0]).to_python() if row[0] else None for row in found["a"].to_pylist()] == decoded
    table.update("id = 1", values={"v": {"new": True}})
    table.update("id = 4", set={"v": "parse_json('[2]')"})
    table.delete("is_variant_null(v)")
    assert Variant.decode_array(table.scan("id IN (1, 4)", order_by="id").to_arrow()["v"]) == [{"new": True}, [2]]
    assert table.scan().count() == 6
    before = table.scan(order_by="id").to_arrow()
    table.write(before.to_pandas())
    assert table.scan(order_by="id").to_arrow().equals(before)
    with pytest.raises(SchemaMismatch, match=r"column 'v', row 1: \{1\} of type set cannot be stored in a VARIANT"):
        table.write([{"id": 1, "v": 1, "a": None}, {"id": 2, "v": {1}, "a": None}])
    with pytest.raises(SchemaMismatch, match=r"column 'v'.*parse_array"):
        table.write(pa.table({"id": pa.array([1], pa.int32()), "v": ["{}"], "a": pa.nulls(1)}))
