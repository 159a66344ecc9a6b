"""Tables made from data: columns of a frame, and its rows, in one call."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from pyspark_paimon import Catalog, InvalidArgument, InvalidSchema, NullInKey, Table, TableExists, UnsupportedType

DATA = {"id": [1, 2], "city": ["Oslo", None], "day": [dt.date(2024, 1, 31), None], "price": [Decimal("1.50"), Decimal("2.00")]}
TYPES = ["BIGINT NOT NULL", "STRING", "DATE"]
ARROW = pa.table(DATA)
RAGGED = [{"id": 1, "city": "Oslo"}, {"id": 2, "day": dt.date(2024, 1, 31)}]


def rows(table: Table) -> list[dict]:
    return table.scan(order_by="id").to_arrow().to_pylist()


@pytest.mark.parametrize(
    "data",
    [
        lambda: DATA,
        lambda: ARROW,
        ARROW.to_reader,
        lambda: iter(ARROW.to_batches()),
        lambda: ds.dataset(ARROW),
        lambda: pd.DataFrame(DATA),
        lambda: pl.DataFrame(DATA),
        lambda: pl.DataFrame(DATA).lazy(),
        ARROW.to_pylist,
        lambda: (row for row in ARROW.to_pylist()),
    ],
)
def test_data_become_a_table_with_their_rows(table_root, data):
    table = Table.from_data(f"{table_root}/t", data(), primary_keys=["id"], options={"bucket": "1"})
    assert rows(table) == ARROW.to_pylist()
    assert [str(field.type) for field in table.table_schema.fields][:3] == TYPES
    assert table.primary_keys == ("id",)
    assert table.options["bucket"] == "1"


def test_partitions_comment_and_kinds(tmp_path):
    data = {"id": [1, 2], "day": ["a", "b"], "_row_kind": ["+I", "-D"]}
    table = Table.from_data(tmp_path / "t", data, ["day", "id"], ["day"], comment="places")
    assert (table.partition_keys, table.table_schema.comment, table.schema.names) == (("day",), "places", ["id", "day"])
    assert rows(table) == [{"id": 1, "day": "a"}]
    assert rows(Table.from_data(tmp_path / "ragged", RAGGED)) == [
        {"id": 1, "city": "Oslo", "day": None},
        {"id": 2, "city": None, "day": dt.date(2024, 1, 31)},
    ]


def test_an_existing_table_is_kept_or_an_error(tmp_path):
    table = Table.from_data(tmp_path / "t", DATA, ["id"])
    with pytest.raises(TableExists):
        Table.from_data(tmp_path / "t", DATA, ["id"])
    with pytest.raises(TableExists):
        Table.create(tmp_path / "t", "id BIGINT")
    assert Table.create(tmp_path / "t", "other INT", if_not_exists=True).schema == table.schema
    again = Table.from_data(tmp_path / "t", {**DATA, "id": [2, 3]}, ["id"], if_not_exists=True)
    assert [row["id"] for row in rows(again)] == [1, 2, 3]
    assert Table.create(tmp_path / "new", "id INT", if_not_exists=True).schema.names == ["id"]


def test_nothing_is_created_for_data_without_types_or_keys(tmp_path):
    for call, error in (
        (lambda: Table.from_data(tmp_path / "t", {"id": [None]}), UnsupportedType),
        (lambda: Table.from_data(tmp_path / "t", DATA, ["nothing"]), InvalidSchema),
        (lambda: Table.from_data(tmp_path / "t", 7), InvalidArgument),
        (lambda: Table.from_data(tmp_path / "t", []), InvalidSchema),
        (lambda: Table.create(tmp_path / "t", 7), InvalidArgument),
    ):
        with pytest.raises(error):
            call()
        assert not (tmp_path / "t").exists()


def test_a_failed_write_says_that_the_table_exists(tmp_path):
    with pytest.raises(NullInKey) as failed:
        Table.from_data(tmp_path / "t", {"id": [1, None]}, ["id"])
    assert "the table exists, and no row was written" in failed.value.__notes__[0]
    assert Table.open(tmp_path / "t").count() == 0


@pytest.mark.parametrize(
    "schema",
    [ARROW, pd.DataFrame(DATA), pl.DataFrame(DATA), pl.DataFrame(DATA).schema, ARROW.schema, DATA, ARROW.to_pylist()],
    ids=["table", "pandas", "polars", "polars schema", "schema", "dict", "dicts"],
)
def test_create_takes_the_columns_of_anything_that_has_some(tmp_path, schema):
    table = Table.create(tmp_path / "t", schema, primary_keys=["id"])
    assert [str(field.type) for field in table.table_schema.fields][:3] == TYPES
    assert table.count() == 0
    catalog = Catalog(str(tmp_path / "warehouse"))
    made = catalog.create_table("orders", schema)
    assert made.schema.names == ["id", "city", "day", "price"]
    assert catalog.create_table("orders", "x INT", if_not_exists=True).schema == made.schema
    with pytest.raises(TableExists):
        catalog.create_table("orders", "x INT")
