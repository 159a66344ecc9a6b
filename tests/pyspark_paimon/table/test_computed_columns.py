"""``columns=`` of a scan: parts of columns and expressions by name."""

from __future__ import annotations

import math
import pickle

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_base.errors import FilterFailed, InvalidArgument, InvalidFilter, UnknownColumn
from pyspark_paimon import Table
from tests.pyspark_paimon.table.test_nested_filters import KINDS, ROWS, SCHEMA, field, table

__all__ = ["table"]


def rows_of(scan) -> list[dict]:
    return sorted(scan.to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("table", ["append", "keyed", "vectors", "orc"], indirect=True)
def test_parts_of_columns_are_columns_of_a_scan(table: Table) -> None:
    assert set(KINDS) >= {"append", "keyed", "vectors", "orc"}
    names = ["id", "s.a", "S.n", "s.n.b", "m[9]", "try_element_at(ar, 1)", "m"]
    scan = table.scan("id < 60", columns=names)
    assert scan.schema == pa.schema(
        [
            ("id", table.schema.field("id").type),
            ("s.a", pa.int64()),
            ("S.n", pa.struct([("b", pa.bool_()), ("d", pa.float64())])),
            ("s.n.b", pa.bool_()),
            ("m[9]", pa.string()),
            ("try_element_at(ar, 1)", pa.int64()),
            ("m", table.schema.field("m").type),
        ]
    )
    for row, found in zip(ROWS, rows_of(scan), strict=False):
        assert found["s.a"] == field(row, "s", "a")
        assert repr(found["S.n"]) == repr(field(row, "s", "n")), "NaN as it is"
        assert found["s.n.b"] == field(row, "s", "n", "b")
        assert found["m[9]"] is None
        assert found["try_element_at(ar, 1)"] == (row["ar"] or [None])[0]
        assert found["m"] == row["m"]
    assert scan.count() == 60
    assert sum(batch.num_rows for batch in scan) == 60
    assert scan.projected(["s.a", "id"]).schema.names == ["s.a", "id"]
    split = scan.plan().splits[0]
    assert next(scan.read(split)).schema.names == names


@pytest.mark.parametrize("table", ["append", "keyed"], indirect=True)
def test_expressions_have_names_and_keep_filter_order_and_limit(table: Table) -> None:
    scan = table.scan(
        "s.a > 10",
        {"id": "id", "twice": "id * 2", "word": "upper(s.t)", "size": "size(ar)", "one": "1", "nan": "s.n.d", "c": pc.field("s", "a") + 1},
        order_by="id DESC",
        limit=5,
    )
    wanted = sorted((row for row in ROWS if (field(row, "s", "a") or 0) > 10), key=lambda row: -row["id"])[:5]
    found = scan.to_arrow().to_pylist()
    assert [row["id"] for row in found] == [row["id"] for row in wanted]
    for row, made in zip(wanted, found, strict=True):
        assert made["twice"] == 2 * row["id"]
        assert made["word"] == row["s"]["t"].upper()
        assert made["size"] == (None if row["ar"] is None else len(row["ar"]))
        assert made["one"] == 1
        assert made["c"] == row["s"]["a"] + 1
        assert repr(made["nan"]) == repr(field(row, "s", "n", "d")) or math.isnan(made["nan"])
    assert scan.to_arrow().schema == scan.schema
    assert [str(kind) for kind in scan.schema.types] == ["int64", "int64", "string", "int32", "int32", "double", "int64"]
    assert table.scan(columns={"one": "1"}).to_arrow().num_rows == 300
    assert pa.types.is_dictionary(table.scan(columns={"w": "upper(s.t)"}).to_arrow(dictionaries=True).schema.field("w").type)


def test_only_columns_that_the_expressions_use_are_read(create) -> None:
    table = create(SCHEMA, primary_keys=())
    table.write(ROWS)
    assert table.scan(columns={"x": "id + 1", "y": "s.a"})._request.columns == ("id", "s")
    assert table.scan(columns=["m[1]"])._request.columns == ("m",)


def test_names_may_be_in_backticks_and_scans_be_pickled(create) -> None:
    table = create("id BIGINT, `x.y` STRUCT<`a b` INT>", primary_keys=())
    table.write([{"id": 1, "x.y": {"a b": 7}}])
    scan = table.scan(columns=["`x.y`.`a b`", "`id`", "x.y"])
    assert pickle.loads(pickle.dumps(scan)).to_arrow().to_pylist() == [{"`x.y`.`a b`": 7, "id": 1, "x.y": {"a b": 7}}]


def test_other_engines_see_the_computed_columns(create) -> None:
    table = create(SCHEMA, primary_keys=())
    table.write(ROWS[:20])
    scan = table.scan(columns={"id": "id % 3", "t": "s.t"})
    assert scan.scan_polars().filter(pl.col("id") == 1).select("t").collect().height == 7
    assert scan.to_dataset().to_table(columns=["t"], filter=pc.field("id") == 1).num_rows == 7
    assert scan.to_dataset().count_rows(filter=pc.field("id") == 1) == 7
    assert scan.to_pandas()["id"].tolist() == [at % 3 for at in range(20)]
    with pytest.raises(InvalidArgument, match="give the whole filter"):
        scan.narrowed("id = 1")


def test_what_columns_cannot_be_is_refused_with_the_way(create) -> None:
    table = create(SCHEMA, primary_keys=())
    table.write(ROWS[:20])
    for columns, error, says in (
        (["s.z"], UnknownColumn, r"s\.z"),
        (["x.z"], UnknownColumn, "'x'"),
        (["upper(s.t)"], InvalidArgument, "give it a name"),
        (["id + 1"], UnknownColumn, "id"),
        (["s.a", "s.a"], InvalidArgument, "twice"),
        (["s.a", "id", "ID"], InvalidArgument, "twice"),
        ({}, InvalidArgument, "empty"),
        ({"x": "sum(id)"}, InvalidFilter, "columns: 'x'"),
        ({"x": 1}, InvalidFilter, "an expression is SQL text"),
        ({1: "id"}, InvalidArgument, "texts"),
        ({"x": "rand()"}, InvalidFilter, "rand"),
    ):
        with pytest.raises(error, match=says):
            table.scan(columns=columns)
    with pytest.raises(FilterFailed, match="no such element"):
        table.scan(columns=["ar[0]"]).to_arrow()
    with pytest.raises(InvalidArgument, match="scan of changes"):
        table.scan(columns={"x": "id"}, incremental=(0, 1))


def test_arrays_and_structs_are_computed(create) -> None:
    made = create("id INT, t STRING, s STRUCT<a INT NOT NULL, t STRING>", options={})
    made.write([{"id": 1, "t": "x", "s": {"a": 3, "t": None}}, {"id": 2, "t": None, "s": None}])
    scan = made.scan(
        columns={
            "id": "id",
            "ar": "array(id, 2L, NULL)",
            "st": "named_struct('x', array(t, 'y'), 's', s, 'n', named_struct('d', id / 2))",
            "one": "array(t, 'y')[1]",
            "part": "named_struct('x', array(id)).x[0]",
            "all": "array(s)",
        }
    )
    found = rows_of(scan)
    assert found[0] == {
        "id": 1,
        "ar": [1, 2, None],
        "st": {"x": ["x", "y"], "s": {"a": 3, "t": None}, "n": {"d": 0.5}},
        "one": "y",
        "part": 1,
        "all": [{"a": 3, "t": None}],
    }
    assert (found[1]["st"], found[1]["all"]) == ({"x": [None, "y"], "s": None, "n": {"d": 1.0}}, [None])
    assert [scan.schema.field(name).type for name in ("ar", "one")] == [pa.list_(pa.int64()), pa.string()]
    for text in ("if(id = 1, s, NULL)", "coalesce(s, NULL)", "array(id) = NULL"):
        with pytest.raises(InvalidFilter, match="does not take a value of type"):
            made.scan(columns={"x": text})
