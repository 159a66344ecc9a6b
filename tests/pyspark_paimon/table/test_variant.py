"""VARIANT columns: in memory the two parts that lie in Parquet; what Java's engine wrote, what we write, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fileindex.base.errors import PaimonError
from manifest.io.errors import InvalidSchema, UnsupportedTable
from pyspark_paimon import Table

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
        Table.create(tmp_path / "t", "id INT, v VARIANT", primary_keys=["id"], options={"bucket": "1", **options})


@pytest.mark.parametrize(("keys", "column"), [({"primary_keys": ["v"]}, "v"), ({"partition_keys": ["v"]}, "v")])
def test_a_variant_is_no_key(tmp_path: Path, keys: dict[str, Any], column: str) -> None:
    with pytest.raises(InvalidSchema, match=f"'{column}'"):
        Table.create(tmp_path / "t", "id INT, v VARIANT", **keys)


def test_a_shredded_variant_is_refused_by_its_name() -> None:
    with pytest.raises(UnsupportedTable, match="shredded"):
        Table.open(GOLDEN / "shredded").scan().to_arrow()
