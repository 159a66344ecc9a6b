"""Which Arrow rows a table takes: those whose every value arrives unchanged."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.rows_in import refused_rows as refused_rows_module
from lsm.rows_in.conform import conform, conform_column
from lsm.rows_in.lossless_cast import lossless_cast
from lsm.rows_in.refused_rows import refused_rows
from manifest.io.errors import NullInKey, SchemaMismatch
from manifest.schema.table_schema import TableSchema
from manifest.schema.validation import build_schema
from manifest.types.ddl import parse_ddl


def schema(ddl: str):
    return build_schema(ddl)


def one(values: pa.Array, column_type: str) -> pa.ChunkedArray:
    return conform(pa.table({"a": values}), schema(f"a {column_type}"))["a"]


UTC = dt.UTC
DAY = dt.datetime.fromisoformat("2020-01-02")


@pytest.mark.parametrize(
    ("given", "column_type", "expected"),
    [
        (pa.array([1, None], pa.int64()), "TINYINT", [1, None]),
        (pa.array([1.0, None]), "INT", [1, None]),
        (pa.array([7], pa.uint64()), "BIGINT", [7]),
        (pa.array([3], pa.int32()), "DOUBLE", [3.0]),
        (pa.array([0.5, float("inf"), None]), "FLOAT", [0.5, float("inf"), None]),
        (pa.array([Decimal("1.50")]), "DECIMAL(10, 1)", [Decimal("1.5")]),
        (pa.array([12], pa.int64()), "DECIMAL(20, 2)", [Decimal("12.00")]),
        (pa.array(["x", None]).dictionary_encode(), "STRING", ["x", None]),
        (pa.array(["x"], pa.large_string()), "VARCHAR(3)", ["x"]),
        (pa.array(["x"], pa.string_view()), "CHAR(1)", ["x"]),
        (pa.array([b"ab"], pa.binary(2)), "BYTES", [b"ab"]),
        (pa.array([DAY], pa.timestamp("ns")), "TIMESTAMP(3)", [DAY]),
        (pa.array([DAY], pa.timestamp("s")), "TIMESTAMP(6)", [DAY]),
        (pa.array([DAY], pa.timestamp("us")), "DATE", [DAY.date()]),
        (pa.array([DAY.date()]), "TIMESTAMP(3)", [DAY]),
        (pa.array([DAY.replace(tzinfo=UTC)], pa.timestamp("us", "Europe/Oslo")), "TIMESTAMP_LTZ(6)", [DAY.replace(tzinfo=UTC)]),
        (pa.array([dt.time(1, 2, 3)], pa.time64("us")), "TIME(3)", [dt.time(1, 2, 3)]),
        (pa.nulls(2), "STRING", [None, None]),
        (pa.array([[1, None]], pa.list_(pa.int64())), "ARRAY<INT>", [[1, None]]),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), "MAP<STRING, BIGINT>", [[("k", 1)]]),
        (pa.array([{"x": 1, "y": "z"}]), "ROW<x INT, y STRING>", [{"x": 1, "y": "z"}]),
        (pa.array([{"x": "éé"}, None]), "ROW<x VARCHAR(2)>", [{"x": "éé"}, None]),
    ],
)
def test_a_value_that_survives_is_taken(given: pa.Array, column_type: str, expected: list) -> None:
    column = one(given, column_type)
    assert column.type == schema(f"a {column_type}").arrow.field("a").type
    assert column.to_pylist() == expected


@pytest.mark.parametrize(
    ("given", "column_type", "problem"),
    [
        (pa.array([300]), "TINYINT", "does not fit"),
        (pa.array([2**40]), "INT", "does not fit"),
        (pa.array([1.5]), "BIGINT", "does not fit"),
        (pa.array([2**53 + 1]), "DOUBLE", "does not fit"),
        (pa.array([0.1]), "FLOAT", "rounded"),
        (pa.array([1.5]), "DECIMAL(10, 2)", "cannot become"),
        (pa.array([Decimal("1.55")]), "DECIMAL(10, 1)", "does not fit"),
        (pa.array([Decimal(100)]), "DECIMAL(3, 1)", "does not fit"),
        (pa.array(["1"]), "INT", "cannot become"),
        (pa.array([1]), "STRING", "cannot become"),
        (pa.array([True]), "INT", "cannot become"),
        (pa.array([b"x"]), "STRING", "cannot become"),
        (pa.array(["toolong"]), "VARCHAR(3)", "length 7"),
        (pa.array([b"toolong"]), "BINARY(3)", "length 7"),
        (pa.array([{"x": None}, {"x": "toolong"}]), "ROW<x VARCHAR(3)>", r"length 7.*VARCHAR\(3\), a part of ROW"),
        (pa.array([[], ["é" * 3, "éééé"]]), "ARRAY<CHAR(3)>", "length 4"),
        (pa.array([[{"x": [b"1234"]}]]), "ARRAY<ROW<x ARRAY<VARBINARY(3)>>>", "length 4"),
        (pa.array([[("long", 1)]], pa.map_(pa.string(), pa.int32())), "MAP<VARCHAR(3), INT>", "length 4"),
        (pa.array([[("k", "long")]], pa.map_(pa.string(), pa.string())), "MAP<VARCHAR(3), VARCHAR(3)>", "length 4"),
        (pa.array([[("long", 1)]], pa.map_(pa.string(), pa.int32())), "MULTISET<VARCHAR(3)>", "length 4"),
        (pa.array([DAY.replace(hour=5)]), "DATE", "rounded"),
        (pa.array([DAY.replace(microsecond=5)]), "TIMESTAMP(3)", "does not fit"),
        (pa.array([DAY], pa.timestamp("us", "UTC")), "TIMESTAMP(6)", "cannot become"),
        (pa.array([DAY], pa.timestamp("us")), "TIMESTAMP_LTZ(6)", "cannot become"),
        (pa.array([["x"]]), "ARRAY<INT>", "cannot become"),
        (pa.array([{"x": 1}]), "ROW<x INT, y INT>", "cannot become"),
        (pa.array([{"x": 1}]), "MAP<STRING, INT>", "cannot become"),
        (pa.array([[1]]), "INT", "cannot become"),
    ],
)
def test_a_value_that_would_change_is_refused_by_the_name_of_its_column(given: pa.Array, column_type: str, problem: str) -> None:
    with pytest.raises(SchemaMismatch, match=f"column 'a'.*{problem}"):
        one(given, column_type)


@pytest.mark.parametrize(
    ("given", "column_type"),
    [
        (pa.array([1, None], pa.int32()), "INT NOT NULL"),
        (pa.array([[1, None]], pa.list_(pa.int32())), "ARRAY<INT NOT NULL>"),
        (pa.array([[("k", None)]], pa.map_(pa.string(), pa.int32())), "MAP<STRING, INT NOT NULL>"),
        (pa.array([{"x": None}], pa.struct([("x", pa.int32())])), "ROW<x INT NOT NULL>"),
        (pa.array([[{"x": None}]], pa.list_(pa.struct([("x", pa.int32())]))), "ARRAY<ROW<x INT NOT NULL>>"),
    ],
)
def test_a_null_where_none_may_be_is_refused(given: pa.Array, column_type: str) -> None:
    with pytest.raises(NullInKey, match="column 'a'"):
        one(given, column_type)


@pytest.mark.parametrize(
    ("given", "column_type"),
    [
        (pa.array([None, {"x": 1}], pa.struct([("x", pa.int32())])), "ROW<x INT NOT NULL>"),
        (pa.array([None, [1]], pa.list_(pa.int32())), "ARRAY<INT NOT NULL>"),
        (pa.array([None, [("k", 1)]], pa.map_(pa.string(), pa.int32())), "MAP<STRING, INT NOT NULL>"),
    ],
)
def test_a_null_value_has_no_null_parts(given: pa.Array, column_type: str) -> None:
    assert one(given, column_type).null_count == 1


def test_columns_are_found_by_name_and_put_in_the_tables_order() -> None:
    rows = conform(pa.table({"b": ["x"], "a": [1]}), schema("a BIGINT, b STRING"))
    assert rows.schema.names == ["a", "b"]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (["b"], "'a' is missing, and is BIGINT NOT NULL"),
        (["a", "b", "c"], "'c' is unknown"),
        (["a", "a", "b"], "'a' is given 2 times"),
        (["A", "b"], "'A' is unknown"),
    ],
)
def test_missing_unknown_and_duplicate_columns_are_named(columns: list[str], problem: str) -> None:
    rows = pa.Table.from_arrays([pa.array([1])] * len(columns), names=columns)
    with pytest.raises(SchemaMismatch, match=problem):
        conform(rows, schema("a BIGINT NOT NULL, b BIGINT"))


def test_a_column_that_fits_is_not_copied() -> None:
    given = pa.table({"a": pa.array(np.arange(10))})
    taken = conform(given.to_batches()[0], schema("a BIGINT"))
    assert taken["a"].chunk(0).buffers()[1].address == given["a"].chunk(0).buffers()[1].address


def test_pandas_integers_with_gaps_are_taken() -> None:
    frame = pd.DataFrame({"a": [1.0, None, 3.0]})
    assert conform(pa.Table.from_pandas(frame, preserve_index=False), schema("a INT"))["a"].to_pylist() == [1, None, 3]


def test_columns_that_are_left_out_get_their_default_or_null() -> None:
    table = build_schema(
        "id BIGINT NOT NULL, p STRING, n INT NOT NULL, s STRING, m MAP<STRING, INT>", primary_keys=["id"], options={"bucket": "1"}
    )
    fields = tuple(replace(field, default_value="7") if field.name == "n" else field for field in table.fields)
    table = table.model_copy(update={"fields": fields})
    rows = conform(pa.table({"id": [1, 2]}), table)
    assert rows.to_pylist() == [{"id": 1, "p": None, "n": 7, "s": None, "m": None}, {"id": 2, "p": None, "n": 7, "s": None, "m": None}]
    with pytest.raises(SchemaMismatch, match="'id' is missing, and it places rows"):
        conform(pa.table({"s": ["a"]}), table)


@pytest.mark.parametrize(("keys", "options"), [((), {"bucket": "2", "bucket-key": "s"}), (("s",), {})])
def test_columns_that_place_rows_are_not_left_out(keys: tuple[str, ...], options: dict[str, str]) -> None:
    table = build_schema("a BIGINT, s STRING", partition_keys=keys, options=options)
    with pytest.raises(SchemaMismatch, match="'s' is missing, and it places rows"):
        conform(pa.table({"a": [1]}), table)


@pytest.mark.parametrize("empty", [(0,), (0, 1), (1, 0), (1, 0, 0, 2), (0, 0)])
@pytest.mark.parametrize(
    "wanted", [pa.list_(pa.float32()), pa.struct([("x", pa.float32())]), pa.map_(pa.string(), pa.float32()), pa.float32()]
)
def test_chunks_without_rows_are_cast_too(empty, wanted):
    """Arrow's own cast drops them."""
    source = {
        pa.list_(pa.float32()): (pa.list_(pa.float64()), [0.5]),
        pa.struct([("x", pa.float32())]): (pa.struct([("x", pa.float64())]), {"x": 0.5}),
        pa.map_(pa.string(), pa.float32()): (pa.map_(pa.string(), pa.float64()), [("a", 0.5)]),
        pa.float32(): (pa.float64(), 0.5),
    }
    kind, value = source[wanted]
    chunks = pa.chunked_array([pa.array([value] * rows, kind) for rows in empty])
    assert lossless_cast(chunks, wanted).to_pylist() == [value] * sum(empty)


@pytest.mark.parametrize(
    ("ddl", "kind", "good", "bad"),
    [
        ("ARRAY<INT>", pa.list_(pa.int64()), [1], [2**40]),
        ("ARRAY<INT>", pa.large_list(pa.int64()), [1], [2**40]),
        ("MAP<STRING, INT>", pa.map_(pa.string(), pa.int64()), [("k", 1)], [("k", 2**40)]),
        ("STRUCT<a ARRAY<INT>>", pa.struct([("a", pa.list_(pa.int64()))]), {"a": [1]}, {"a": [2**40]}),
    ],
)
def test_a_bad_value_beside_a_slice_is_not_its_own(ddl, kind, good, bad):
    made = build_schema(f"id INT, v {ddl}")
    rows = pa.table({"id": pa.array(range(4), pa.int32()), "v": pa.array([good, bad, None, good], kind)})
    assert conform(rows.slice(2), made)["v"].to_pylist() == [None, good]
    assert conform(rows.slice(0, 1), made)["v"].to_pylist() == [good]
    assert refused_rows(rows["v"].combine_chunks(), made.field("v")).tolist() == [False, True, False, False]
    with pytest.raises(SchemaMismatch, match="row 1 of its batch"):
        conform(rows, made)


NESTED = "ROW<a INT NOT NULL, b VARCHAR(2), c ARRAY<ROW<d INT NOT NULL, e INT>>, f MAP<STRING, ROW<g INT, h INT NOT NULL>>>"
_INTS = st.one_of(st.none(), st.integers(0, 9))
_VALUES = st.fixed_dictionaries(
    {
        "a": _INTS,
        "b": st.sampled_from([None, "x", "xy", "xyz"]),
        "c": st.none() | st.lists(st.none() | st.fixed_dictionaries({"d": _INTS, "e": _INTS}), max_size=2),
        "f": st.none() | st.lists(st.tuples(st.just("k"), st.fixed_dictionaries({"g": _INTS, "h": _INTS})), max_size=1),
    }
)


def permuted(kind: pa.DataType, draw) -> pa.DataType:
    """Return the type with the fields of its rows in another order."""
    if pa.types.is_struct(kind):
        return pa.struct(draw(st.permutations([(field.name, permuted(field.type, draw)) for field in kind])))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, permuted(kind.item_type, draw))
    return pa.list_(permuted(kind.value_type, draw)) if pa.types.is_list(kind) else kind


def refusal_of(value: dict) -> str | None:
    """Return what is wrong with a value of ``NESTED``."""
    inner = [one["d"] for one in value["c"] or [] if one is not None] + [one["h"] for _, one in value["f"] or []]
    if value["a"] is None or None in inner:
        return "has a null inside"
    return "does not fit VARCHAR" if len(value["b"] or "") > 2 else None


@settings(deadline=None, max_examples=150)
@given(data=st.data(), values=st.lists(st.none() | _VALUES, min_size=1, max_size=4))
def test_fields_are_checked_by_name_in_any_order(data, values):
    (field,) = parse_ddl(f"r {NESTED}")
    schema = TableSchema(id=0, fields=(field,))
    rows = pa.table({"r": pa.array(values, permuted(field.type.arrow, data.draw))})
    refused = {refusal_of(value) for value in values if value is not None} - {None}
    if refused:
        with pytest.raises((SchemaMismatch, NullInKey)) as error:
            conform(rows, schema)
        assert any(text in str(error.value) for text in refused)
    else:
        assert conform(rows, schema)["r"].to_pylist() == pa.array(values, field.type.arrow).to_pylist()


CASTS = "ROW<a INT NOT NULL, b VARCHAR(2), c ARRAY<ROW<d SMALLINT NOT NULL, e TIMESTAMP(3)>>, f MAP<STRING, ROW<g REAL, h DECIMAL(3, 1) NOT NULL>>>"
_SOURCE = pa.struct(
    {
        "a": pa.int64(),
        "b": pa.large_string(),
        "c": pa.large_list(pa.struct({"d": pa.int64(), "e": pa.timestamp("ns")})),
        "f": pa.map_(pa.string(), pa.struct({"g": pa.float64(), "h": pa.decimal128(6, 2)})),
    }
)
_SOURCE_VALUES = st.fixed_dictionaries(
    {
        "a": st.sampled_from([None, 0, 1, 2**40]),
        "b": st.sampled_from([None, "x", "xyz"]),
        "c": st.none()
        | st.lists(
            st.none() | st.fixed_dictionaries({"d": st.sampled_from([None, 3, 3, 1 << 20]), "e": st.sampled_from([None, 0, 10**6, 1])}),
            max_size=2,
        ),
        "f": st.none()
        | st.lists(
            st.tuples(
                st.just("k"),
                st.fixed_dictionaries(
                    {
                        "g": st.sampled_from([None, 0.5, math.nan, math.inf, 0.1]),
                        "h": st.sampled_from([None, Decimal("1.50"), Decimal("1.50"), Decimal("1.25"), Decimal("999.00")]),
                    }
                ),
            ),
            max_size=1,
        ),
    }
)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(data=st.data(), values=st.lists(st.none() | _SOURCE_VALUES, min_size=1, max_size=6))
def test_refused_rows_are_those_that_are_refused_alone(data, values):
    (field,) = parse_ddl(f"r {CASTS}")
    column = pa.array(values, permuted(_SOURCE, data.draw))
    start = data.draw(st.integers(0, len(values) - 1))
    column = column.slice(start)

    def is_refused(row: int) -> bool:
        try:
            conform_column(column.slice(row, 1), field)
        except (SchemaMismatch, NullInKey):
            return True
        return False

    assert refused_rows(column, field).tolist() == [is_refused(row) for row in range(len(column))]


@pytest.mark.parametrize("rows", [10, 1000])
@pytest.mark.parametrize(
    ("ddl", "kind", "bad"),
    [
        ("ARRAY<VARCHAR(2)>", pa.list_(pa.string()), ["abc"]),
        ("ARRAY<INT>", pa.list_(pa.int64()), [2**40]),
        ("MAP<STRING, INT NOT NULL>", pa.map_(pa.string(), pa.int32()), [("k", None)]),
        ("STRUCT<a ARRAY<TIMESTAMP(3)>>", pa.struct([("a", pa.list_(pa.timestamp("ns")))]), {"a": [1]}),
    ],
)
def test_many_bad_rows_cost_no_call_each(monkeypatch, rows, ddl, kind, bad):
    (field,) = parse_ddl(f"v {ddl}")
    calls = []

    def counted(column, field):
        calls.append(len(column))
        return conform_column(column, field)

    monkeypatch.setattr(refused_rows_module, "conform_column", counted)
    assert refused_rows(pa.array([bad] * rows, kind), field).all()
    assert len(calls) == 3


@pytest.mark.parametrize("view", [pa.string_view(), pa.binary_view()], ids=str)
def test_values_of_maps_may_be_in_views(view):
    text = pa.string() if view == pa.string_view() else pa.binary()
    value = "a" if text == pa.string() else b"a"
    schema = build_schema(f"m MAP<STRING, ARRAY<{'STRING' if text == pa.string() else 'BYTES'}>>")
    rows = [[("k", [value, None])], None, []]
    given = pa.table({"m": pa.array(rows, pa.map_(pa.string(), pa.list_(view)))})
    assert conform(given.slice(0, 2), schema)["m"].to_pylist() == rows[:2]
