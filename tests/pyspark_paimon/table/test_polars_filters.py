"""What polars, DuckDB and Arrow filter of a table is what they filter of the same rows, nulls too."""

from __future__ import annotations

import datetime as dt
import math
import operator
from functools import reduce
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_paimon import InvalidFilter, Table, UnknownColumn
from pyspark_paimon.filter.from_polars import polars_condition
from tests.build import keyed

DDL = "id BIGINT, n INT, b BIGINT, d DOUBLE, f FLOAT, s STRING, ok BOOLEAN, day DATE, t TIMESTAMP(3), z TIMESTAMP_LTZ(6), x BYTES, m DECIMAL(9, 2)"
START = dt.datetime(2024, 1, 1)  # noqa: DTZ001  # a wall clock


def rows() -> list[dict[str, Any]]:
    def some(at: int, every: int, value: Any) -> Any:
        return None if at % every == 0 else value

    return [
        {
            "id": at,
            "n": some(at, 3, at % 5),
            "b": some(at, 4, [1, 2**60, -(2**60), 2**53 + 1][at % 4]),
            "d": some(at, 5, [0.5, math.nan, -0.0, 1e300, 3.0][at % 5]),
            "f": some(at, 7, [0.5, 2.0, math.inf][at % 3]),
            "s": some(at, 2, ["", "Oslo", "Os", "Lima"][at // 2 % 4]),
            "ok": some(at, 3, at % 2 == 0),
            "day": some(at, 6, START.date() + dt.timedelta(at % 4)),
            "t": some(at, 4, START + dt.timedelta(milliseconds=at % 4)),
            "z": some(at, 5, START.replace(tzinfo=dt.UTC) + dt.timedelta(microseconds=at % 4)),
            "x": some(at, 3, bytes([at % 4])),
            "m": None,
        }
        for at in range(60)
    ]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    made = Table.create(tmp_path_factory.mktemp("polars") / "t", DDL, primary_keys=["id"], options={"bucket": "2"})
    for part in (rows()[:30], rows()[30:]):
        made.write(part)
    return made


@pytest.fixture(scope="module")
def held(table: Table) -> pl.DataFrame:
    return pl.DataFrame(table.scan().to_arrow())


def c(name: str) -> pl.Expr:
    return pl.col(name)


LITERALS: dict[str, list[Any]] = {
    "n": [0, 3, 4, 2**40, None],
    "b": [1, 2**60, 2**53 + 1, None],
    "d": [0.5, 0.0, 3.0, math.nan, 1e300, None],
    "f": [0.5, 0.1, 2.0, math.inf, None],
    "s": ["", "Os", "Oslo", "z", None],
    "ok": [True, False, None],
    "day": [START.date(), dt.date(2024, 1, 3), None],
    "t": [START, START + dt.timedelta(milliseconds=2), START + dt.timedelta(microseconds=500), None],
    "z": [START.replace(tzinfo=dt.UTC), None],
    "x": [b"\x01", b"", None],
}
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, pl.Expr.eq_missing, pl.Expr.ne_missing]
LEAVES: list[pl.Expr] = [
    *(compare(c(name), value) for name, values in LITERALS.items() for value in values if value is not None for compare in COMPARE),
    *(c(name).eq_missing(None) for name in LITERALS),
    *(c(name).ne_missing(None) for name in LITERALS),
    *(c(name).is_in(values) for name, values in LITERALS.items() if name not in {"t", "z"}),
    *(c(name).is_in([value for value in values if value is not None]) for name, values in LITERALS.items() if name != "t"),
    *(c(name).is_in(values, nulls_equal=True) for name, values in LITERALS.items() if name in {"n", "s"}),
    *(c("n").is_between(1, 3, closed=closed) for closed in ("both", "left", "right", "none")),
    *(c(name).is_null() for name in LITERALS),
    *(c(name).is_not_null() for name in LITERALS),
    c("s").str.starts_with("Os"), c("s").str.starts_with(""), c("s").str.ends_with("o"), c("s").str.contains("i"), c("ok"), pl.lit(True),
    c("n") == c("id") % 5, c("n") + 1 == 3, pl.lit(3) > c("n"), pl.lit(False), c("d").is_nan(), c("d").is_finite(), c("day").dt.year() == 2024,
    c("t").dt.date() == START.date(), c("n").is_in(pl.Series([1, 2])), c("n") == pl.lit(None), c("m") == 1, c("m").is_null(), ~c("ok"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("negated", "first", "step"),
    [
        *((False, first, 6) for first in range(6)),
        *((True, first, 18) for first in range(0, 18, 3)),
        pytest.param(True, 0, 1, marks=pytest.mark.long),
    ],
)
def test_every_condition_keeps_the_rows_that_polars_keeps(table: Table, held: pl.DataFrame, negated: bool, first: int, step: int) -> None:
    wrong = []
    for leaf in LEAVES[first::step]:
        condition = ~leaf if negated else leaf
        if table.scan_polars().filter(condition).collect().sort("id")["id"].to_list() != held.filter(condition).sort("id")["id"].to_list():
            wrong.append(str(condition))
    assert not wrong


TREES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        inner.map(operator.invert)
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: reduce(operator.and_, parts))
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: reduce(operator.or_, parts))
    ),
    max_leaves=6,
)


@given(TREES, st.booleans(), st.none() | st.integers(0, 5))
@settings(deadline=None)
def test_conditions_of_conditions_keep_them_too(
    table: Table, held: pl.DataFrame, condition: pl.Expr, narrow: bool, limit: int | None
) -> None:
    lazy, expected = table.scan_polars().filter(condition), held.filter(condition)
    if limit is not None:
        found = lazy.head(limit).collect()
        assert found.height == min(limit, expected.height)
        assert set(found["id"]) <= set(expected["id"])
        return
    names = ["id"] if narrow else held.columns
    assert lazy.select(names).collect().sort("id").equals(expected.select(names).sort("id"))


@given(TREES)
@settings(deadline=None)
def test_an_expression_as_filter_keeps_the_rows_of_polars_or_is_refused(table: Table, held: pl.DataFrame, condition: pl.Expr) -> None:
    try:
        found = table.scan(condition, columns=["id"]).to_arrow()["id"].to_pylist()
    except InvalidFilter as error:
        assert "SQL text" in str(error)  # noqa: PT017  # most expressions are accepted
        return
    assert sorted(found) == sorted(held.filter(condition)["id"].to_list())


def test_expressions_as_filters_of_every_method(tmp_path) -> None:
    made = keyed(tmp_path / "t", "id BIGINT, n INT, s STRING")
    made.write({"id": [1, 2, 3], "n": [1, 2, None], "s": ["a", "b", "c"]})
    assert made.scan(c("n") > 1).count() == 1
    assert made.update(c("s").is_in(["a", "c"]), values={"s": "x"}).rows == 2
    assert made.delete(c("n").is_null() | (c("n") == 1)).rows == 2
    assert made.scan(~(c("n") == 1)).to_arrow().to_pylist() == [{"id": 2, "n": 2, "s": "b"}]
    with pytest.raises(UnknownColumn, match="'m'"):
        made.scan((c("m") > 1) & (c("n") > 1))
    for refused in (c("n").sin() > 0, (c("n") > 1) & (c("n") + 1 > 2), c("s").map_elements(len, return_dtype=pl.Int64) > 1, c("n") == 1.5):
        with pytest.raises(InvalidFilter, match="SQL text"):
            made.scan(refused)


def test_what_both_answer_alike_reaches_the_plan(table: Table) -> None:
    types = table.table_schema.column_types
    exact = [~c("n").is_in([1]), c("s").str.starts_with("O"), (c("n") == 1) | ~(c("b") < 5)]
    for condition in (c("n") == 3, *exact, c("day") == START.date()):
        assert polars_condition(condition, types) is not None
    assert polars_condition(c("f") == 0.1, types) is None
    assert polars_condition((c("n").sin() > 0) | (c("n") == 1), types) is None
    assert polars_condition((c("n").sin() > 0) & (c("n") == 1), types) == polars_condition(c("n") == 1, types)


SQL = [
    "n NOT IN (1, 2)", "n IN (1, 2)", "NOT (n IN (1, 2))", "n <> 3", "NOT (n = 3)", "s NOT IN ('Oslo', '')", "s <> 'Oslo'", "d > 1", "d = 'nan'",
    "NOT (d > 1)", "n IS DISTINCT FROM 1", "n IS NOT DISTINCT FROM NULL", "s LIKE 'Os%'", "NOT s LIKE 'Os%'", "ok", "NOT ok", "n BETWEEN 1 AND 3",
    "NOT n BETWEEN 1 AND 3", "n = 1 OR s = 'Oslo'", "NOT (n = 1 OR s = 'Oslo')", "day <> DATE '2024-01-01'", "b NOT IN (1)", "n IN (1, NULL)",
    "n NOT IN (1, NULL)", "f <> 0.5", "d <> 0", "t > TIMESTAMP '2024-01-01 00:00:00.001'",
]  # fmt: skip


@pytest.mark.parametrize("condition", SQL)
def test_duckdb_keeps_the_rows_that_it_keeps_of_arrow(table: Table, condition: str) -> None:
    with duckdb.connect() as connection:
        held = table.scan().to_arrow()  # noqa: F841  # DuckDB finds it by its name
        expected = connection.sql(f"SELECT id FROM held WHERE {condition} ORDER BY id").fetchall()
        assert table.to_duckdb(connection).filter(condition).project("id").order("id").fetchall() == expected


ARROW = [
    ~pc.field("n").isin([1]), pc.field("n").isin([1, None]), ~pc.field("n").isin([1, None]), pc.field("n") != 1, ~(pc.field("n") == 1),
    pc.field("s").isin(["Oslo"]) | (pc.field("n") == 1), ~(pc.field("s").isin(["Oslo"]) | (pc.field("n") == 1)), pc.field("n").is_null(),
    ~pc.field("ok"), pc.field("ok") & (pc.field("n") > 1), ~(pc.field("ok") & (pc.field("n") > 1)), ~pc.starts_with(pc.field("s"), "Os"),
    pc.is_in(pc.field("n"), pa.array([1, None]), skip_nulls=True), ~pc.is_in(pc.field("n"), pa.array([1, None]), skip_nulls=True),
    pc.field("d") > 1, ~(pc.field("d") > 1), pc.is_nan(pc.field("d")), ~pc.is_nan(pc.field("d")), pc.field("d").is_null(nan_is_null=True),
]  # fmt: skip


@pytest.mark.parametrize("condition", ARROW, ids=str)
def test_a_dataset_keeps_the_rows_that_arrow_keeps(table: Table, condition: pc.Expression) -> None:
    held = table.scan().to_arrow().filter(pc.field("d").is_null() | ~pc.is_nan(pc.field("d")))  # NaN is Spark's, the greatest number
    expected = pa.dataset.dataset(held).to_table(filter=condition, columns=["id"])["id"].to_pylist()
    found = table.scan("d IS NULL OR NOT isnan(d)").to_dataset().to_table(filter=condition, columns=["id"])["id"].to_pylist()
    assert sorted(found) == sorted(expected)
