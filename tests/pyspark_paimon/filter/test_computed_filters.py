"""Filters that are computed from rows: alone, in tables that merge, prune and change, and against models row by row."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.json import from_json, to_json
from fileindex.predicate.tree import TRUE, And, ColumnRef, Compare, ComputedPredicate, In, Op, StartsWith
from manifest.schema.validation import build_schema
from paimon_base.errors import FilterFailed, InvalidFilter, UnknownColumn
from pyspark_paimon import Table
from pyspark_paimon.filter.parse import bind_filter, parse_filter
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.time_zone import time_zone
from tests.computed_filters import FAILING, REFUSED, SAFE, TABLE, TYPES, pairs_of_columns

BATCH = TABLE.combine_chunks().to_batches()[0]
LETTERS = st.text(st.sampled_from("ab%_\\.\n\0é\U0001f600"), max_size=6)


def selected(filter_, batch=BATCH, types=TYPES):
    return batch.column("id").filter(mask(bind_filter(filter_, types), batch, types)).to_pylist()


@pytest.mark.parametrize("text", [*SAFE, *pairs_of_columns()[::5]])
def test_a_condition_and_its_negation_part_the_rows_and_survive_the_trip_as_json(text):
    predicate = parse_filter(text, TYPES)
    assert from_json(to_json(predicate)) == predicate
    true, false = set(selected(text)), set(selected(f"NOT ({text})"))
    assert not true & false
    assert true | false | set(selected(f"({text}) IS NULL")) == set(range(len(BATCH)))
    coded = pa.record_batch([c.dictionary_encode() if pa.types.is_string(c.type) else c for c in BATCH.columns], names=BATCH.schema.names)
    assert set(selected(text, coded)) == true


@pytest.mark.parametrize("text", [text for text in SAFE if "(s" in text or "(u" in text])
def test_slices_of_a_batch_are_answered_as_the_whole(text):
    parts = [BATCH.slice(start, 50) for start in range(0, len(BATCH), 50)]
    assert [row for part in parts for row in selected(text, part)] == selected(text)


@pytest.mark.parametrize("text", FAILING)
def test_what_has_no_value_is_a_typed_error_unless_another_condition_excludes_the_row(text):
    with pytest.raises(FilterFailed, match="'"):
        selected(text)
    assert selected(f"id < 0 AND ({text})") == []
    assert selected(f"id >= 0 OR ({text})") == list(range(len(BATCH)))


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_is_not_computed_exactly_is_refused_by_its_name(text, said):
    with pytest.raises(InvalidFilter, match=re.escape(said)):
        parse_filter(text, TYPES)


@given(st.lists(st.none() | st.integers(-128, 127), min_size=1, max_size=8), st.sampled_from("+-*%"), st.integers(-128, 127))
def test_arithmetic_agrees_with_python_and_overflows_with_an_error(values, op, literal):
    types = {"id": ColumnType(Kind.INT), "t": ColumnType(Kind.TINYINT)}
    batch = pa.record_batch({"id": pa.array(range(len(values)), pa.int32()), "t": pa.array(values, pa.int8())})
    text = f"t {op} CAST({literal} AS TINYINT) > 3"

    def model(value):
        if value is None:
            return None
        if op == "%":
            return abs(value) % abs(literal) * (1 if value >= 0 else -1) if literal else "fails"
        found = {"+": value + literal, "-": value - literal, "*": value * literal}[op]
        return found if -128 <= found <= 127 else "fails"

    wanted = [model(value) for value in values]
    if "fails" in wanted:
        with pytest.raises(FilterFailed):
            selected(text, batch, types)
    else:
        assert selected(text, batch, types) == [at for at, value in enumerate(wanted) if value is not None and value > 3]


@given(st.lists(LETTERS, min_size=1, max_size=8), LETTERS.filter(lambda t: not re.search(r"\\([^%_\\]|$)", re.sub(r"\\\\", "", t))))
def test_like_agrees_with_a_model_letter_by_letter(values, pattern):
    def matches(text, rest):
        if not rest:
            return not text
        if rest[0] == "\\":
            return text[:1] == rest[1] and matches(text[1:], rest[2:])
        if rest[0] == "%":
            return any(matches(text[at:], rest[1:]) for at in range(len(text) + 1))
        return bool(text) and rest[0] in {"_", text[0]} and matches(text[1:], rest[1:])

    types = {"id": ColumnType(Kind.INT), "s": ColumnType(Kind.VARCHAR, length=99)}
    batch = pa.record_batch({"id": pa.array(range(len(values)), pa.int32()), "s": pa.array(values)})
    found = mask(bind_filter("s LIKE :p", types, {"p": pattern}), batch, types).to_pylist()
    assert found == [matches(value, pattern) for value in values]


def test_conditions_that_are_ranges_of_a_column_prune_as_ranges():
    assert parse_filter("year(day) = 1971", TYPES) == And((Compare(ColumnRef("day"), Op.GE, 365), Compare(ColumnRef("day"), Op.LT, 730)))
    assert parse_filter("CAST(ntz AS DATE) > DATE '1970-01-01'", TYPES) == Compare(ColumnRef("ntz"), Op.GE, 86_400_000_000)
    prefix, computed = parse_filter("s LIKE 'ab%c'", TYPES).children
    assert prefix == StartsWith(ColumnRef("s"), "ab")
    assert isinstance(computed, ComputedPredicate)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (pc.field("k") + pc.field("t") > 3, "k + t > 3"),
        (pc.field("k") == pc.field("t"), "k = t"),
        (pc.field("k") / 2 == 1, "k DIV 2 = 1"),
        (pc.utf8_lower(pc.field("s")) == "oslo", "lower(s) = 'oslo'"),
        (pc.match_substring(pc.field("s"), "o"), "contains(s, 'o')"),
        (~pc.ends_with(pc.field("s"), "o"), "NOT endswith(s, 'o')"),
        (pc.match_like(pc.field("s"), "%o%"), "s LIKE '%o%'"),
        (pc.utf8_slice_codeunits(pc.field("s"), 1, 3) == "sl", "substring(s, 2, 2) = 'sl'"),
        (pc.utf8_length(pc.field("s")) > 4, "length(s) > 4"),
        (pc.year(pc.field("day")) == 2024, "year(day) = 2024"),
        (pc.coalesce(pc.field("k"), pc.field("t")) == 3, "coalesce(k, t) = 3"),
        (pc.if_else(pc.field("b"), pc.field("k"), pc.field("t")) > 1, "if(b, k, t) > 1"),
        (pc.field("k").cast(pa.int64()) * 10 == 30, "CAST(k AS BIGINT) * 10 = 30"),
        ((pc.field("k") + pc.field("t")).is_null(), "(k + t) IS NULL"),
        (pc.abs(pc.field("k")).isin([7, 10]), "abs(k) IN (7, 10)"),
        (pc.field("st", "a") == 1, "st.a = 1"),
        (pc.field("st", "n", "x") == 0.0, "st.n.x = 0.0D"),
        (~(pc.field("st", "a") > 1), "NOT st.a > 1"),
        (pc.field("st", "a").isin([1, 10]), "st.a IN (1, 10)"),
        (pc.field("st", "a").isin([1, None]), "st.a IN (1) OR st.a IS NULL"),
        (~pc.field("st", "a").isin([1, 10]), "st.a IS NULL OR st.a NOT IN (1, 10)"),
        (pc.field("st", "t").is_null(), "st.t IS NULL"),
        (pc.struct_field(pc.field("st"), ["n", "ok"]), "st.n.ok"),
        (pc.list_value_length(pc.field("ar")) > 1, "size(ar) > 1"),
        (pc.starts_with(pc.field("st", "t"), "O"), "st.t LIKE 'O%'"),
        (pc.struct_field(pc.field("st"), [0]) == 1, None),
    ],
)
def test_expressions_of_arrow_are_computed_as_text_is(expression, text):
    if text is None:
        with pytest.raises(InvalidFilter, match="struct_field"):
            bind_filter(expression, TYPES)
    else:
        assert selected(expression) == selected(text)


@pytest.mark.parametrize(
    "values",
    [
        [3, 10],
        (3, 10),
        {3, 10},
        np.array([3, 10]),
        pd.Series([3, 10]),
        pl.Series([3, 10]),
        pa.array([3, 10, None]),
        pa.chunked_array([[3], [10]]),
    ],
    ids=lambda values: type(values).__name__,
)
def test_a_parameter_may_be_any_list(values):
    assert set(selected_with("k IN :ks", ks=values)) == set(selected("k IN (3, 10)"))


def selected_with(text, **params):
    return BATCH.column("id").filter(mask(bind_filter(text, TYPES, params), BATCH, TYPES)).to_pylist()


def test_a_field_that_is_not_there_is_named_with_those_that_are():
    for text, known in (("st.z = 1", "st.a, st.t"), ("st.n.z = 1", "st.n.x, st.n.ok"), ("get(ls, 0).z IS NULL", "get(ls, 0).a")):
        with pytest.raises(UnknownColumn, match=re.escape(known)):
            parse_filter(text, TYPES)
    with pytest.raises(UnknownColumn, match="stt"):
        parse_filter("stt.a = 1", TYPES)
    with pytest.raises(InvalidFilter, match=r"write `a\.b`"):
        parse_filter("a.b = 1", {"a.b": TYPES["k"]})
    with pytest.raises(InvalidFilter, match="ambiguous"):
        parse_filter("st.AB = 1", {"st": ColumnType(Kind.ROW, fields=(("ab", TYPES["k"]), ("aB", TYPES["k"])))})


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (pl.col("st").struct.field("a") == 1, "st.a = 1"),
        (pl.col("st").struct.field("n").struct.field("ok"), "st.n.ok"),
        (pl.lit("") == pl.col("st").struct.field("t"), "st.t = ''"),
        (pl.col("st").struct.field("a").is_null(), "st.a IS NULL"),
        (pl.col("st").struct.field("a").is_in([1, 10]), "st.a IN (1, 10)"),
        (pl.col("st").struct.field("a").is_between(0, 9), "st.a BETWEEN 0 AND 9"),
        (pl.col("st").struct.field("t").str.starts_with("O"), "st.t LIKE 'O%'"),
        (pl.col("st").struct.field("a").eq_missing(1), "st.a <=> 1"),
    ],
)
def test_fields_in_expressions_of_polars_are_read_as_text_is(expression, text):
    assert selected(expression) == selected(text)


def test_parameters_are_values_and_never_text():
    assert selected_with("s = :s AND k > :k", s="Oslo", k=1) == selected("s = 'Oslo' AND k > 1")
    assert selected_with("s = :s", s="' OR TRUE OR s = '") == []
    assert selected_with("length(s) > :n OR day = :d", n=4, d=TABLE["day"][0].as_py()) == selected(
        "length(s) > 4 OR day = DATE '2024-02-29'"
    )
    for text, params, said in (
        ("k = :k", {}, "':k' has no value"),
        ("k = :k", {"k": 1, "more": 2}, "'more', but the filter does not use :more"),
        ("k = :k", {"k": [1]}, "can only be used as IN :k"),
        ("k IN :k", {"k": 1}, "must be a list"),
        ("k = :k", {"k": object()}, "cannot be used as a literal"),
        ("k = :k", {1: 2}, "keys of params must be str"),
        (pc.field("k") > 1, {"k": 1}, "SQL text"),
    ):
        with pytest.raises(InvalidFilter, match=said):
            bind_filter(text, TYPES, params)


@pytest.mark.parametrize("listed", ["'2024-02-29'", "DATE '2024-02-29'", "TIMESTAMP_NTZ '2024-02-29 00:00:00', NULL"])
@pytest.mark.parametrize("kind", [Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ])
def test_days_are_found_in_lists_of_times_of_another_unit(kind, listed):
    types = {"at": ColumnType(kind, precision=9)}
    rows = pa.record_batch([pa.array([1_709_164_800_000_000_007, 7]).cast(types["at"].arrow)], names=["at"])
    with time_zone("UTC"):
        found = parse_filter(f"date_trunc('day', at) IN ({listed})", types)
    assert from_json(to_json(found)) == found
    assert mask(found, rows, types).to_pylist() == [True, False]
    with time_zone("UTC"), pytest.raises(InvalidFilter, match=r"takes literals|write = and OR"):
        parse_filter("date_trunc('day', at) IN (DATE '3000-01-01')", types)


def test_a_null_count_of_months_is_null():
    assert selected("add_months(day, nullif(k, 3)) IS NULL") == selected("day IS NULL OR k IS NULL OR k = 3")


def test_decimals_are_rounded_to_more_places_than_they_have():
    assert selected("round(dec, -9) = 0") == selected("round(dec, -38) = 0") == selected("dec IS NOT NULL")


def test_texts_alone_are_joined_with_their_separator():
    assert selected("s = concat_ws('s', 'O', 'lo')") == selected("s = 'Oslo'")
    assert selected("s = concat_ws('Oslo')") == selected("s = ''")


def test_a_million_keys_are_one_set():
    keys = pa.array(np.arange(1_000_000, dtype=np.int64))
    for found in (bind_filter("l IN :ids", TYPES, {"ids": keys}), bind_filter(pc.field("l").isin(keys), TYPES)):
        leaf = found if isinstance(found, In) else next(child for child in found.children if isinstance(child, In))
        assert len(leaf.values) == 1_000_000


@pytest.fixture
def table(tmp_path):
    made = Table.create(
        str(tmp_path / "t"),
        "id BIGINT NOT NULL, part INT NOT NULL, city STRING, a INT, b INT",
        primary_keys=["part", "id"],
        partition_keys=["part"],
        options={"bucket": "2", "file-index.bloom-filter.columns": "city", "file-index.bitmap.columns": "a"},
    )
    for turn in range(3):
        ids = list(range(turn * 20, turn * 20 + 60))
        made.write(
            pa.table(
                {
                    "id": ids,
                    "part": pa.array([i % 4 for i in ids], pa.int32()),
                    "city": [["Oslo", "Lima", "Rome", None][i % 4 if turn else (i + 1) % 4] for i in ids],
                    "a": pa.array([i % 7 - turn for i in ids], pa.int32()),
                    "b": pa.array([None if i % 5 == 0 else i % 3 for i in ids], pa.int32()),
                }
            )
        )
    return made


FILTERS = [
    "city LIKE '%o%'",
    "a + b > 4",
    "a = b",
    "part % 2 = 0",
    "part <> 0 AND 6 / part > 2",
    "part = id % 4 AND lower(city) = 'oslo'",
    "upper(city) LIKE '%M%' OR a * part > 9",
    "coalesce(city, 'none') = 'none'",
    "NOT (city LIKE '%o' AND a > 2)",
    "id IN (1, 5, 9, 13) AND a % 2 = 1",
]


@pytest.mark.parametrize("text", FILTERS)
@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.sampled(3)
def test_tables_answer_with_the_rows_that_are_true(table, text, compacted):
    if compacted:
        table.compact(full=True)
    rows = table.scan().to_arrow().sort_by([("part", "ascending"), ("id", "ascending")])
    types = table.table_schema.column_types
    wanted = rows.filter(mask(parse_filter(text, types), rows, types))
    assert 0 < wanted.num_rows < rows.num_rows
    found = table.scan(text).to_arrow().sort_by([("part", "ascending"), ("id", "ascending")])
    assert found.equals(wanted)
    assert table.scan(text).count() == wanted.num_rows
    assert table.scan(text, columns=["id"], order_by="id", limit=3).to_arrow()["id"].to_pylist() == sorted(wanted["id"].to_pylist())[:3]


def test_updates_and_deletes_take_computed_filters_and_parameters(table):
    before = table.count()
    found = table.scan("a + b > :n", params={"n": 3}).count()
    assert table.update("a + b > :n", values={"city": "Bonn"}, params={"n": 3}).rows == found
    assert table.scan("city = 'Bonn'").count() == found
    assert table.delete("city LIKE '%nn' AND part % 2 = :p", params={"p": 1}).rows > 0
    assert table.scan("endswith(city, 'nn') AND part % 2 = 1").count() == 0
    assert table.count() < before


def test_columns_that_were_added_later_are_null_in_old_files(table):
    table.add_column("c", "INT")
    assert table.scan("coalesce(c, 7) = 7").count() == table.count()
    assert table.scan("a + c > 0").count() == 0
    assert bind_filter("c + 1 IS NULL OR TRUE", table.table_schema.column_types) == TRUE


@pytest.mark.parametrize(("kind", "name"), [("TIMESTAMP", "TIMESTAMP_NTZ"), ("TIMESTAMP_LTZ", "TIMESTAMP")])
@pytest.mark.parametrize("precision", [0, 3, 6, 9])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_a_computed_timestamp_is_the_time_that_its_text_says(kind: str, name: str, precision: int, zone: str) -> None:
    types = build_schema(f"at {kind}({precision})").column_types
    with time_zone(zone):
        for text in ("2024-01-01 00:00:03", "1969-12-31 23:59:59"):
            written = bind_filter(f"at >= {name} '{text}'", types)
            for computed in (f"CAST('{text}' AS {name})", f"coalesce(NULL, {name} '{text}')"):
                assert bind_filter(f"at >= {computed}", types) == written
                assert bind_filter(f"at IN ({computed})", types) == bind_filter(f"at IN ({name} '{text}')", types)
