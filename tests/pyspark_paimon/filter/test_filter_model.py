"""Any filter, as SQL text and as an Arrow expression, selects the rows that a row-by-row evaluation with Spark's logic selects."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.json import from_json, to_json
from pyspark_paimon.filter.parse import bind_filter, parse_filter
from sparkexpr.values.column_type import ColumnType, Kind
from tests.examples import some

TYPES = {
    "t": ColumnType(Kind.TINYINT),
    "k": ColumnType(Kind.INT),
    "dec": ColumnType(Kind.DECIMAL, precision=4, scale=2),
    "f": ColumnType(Kind.FLOAT),
    "d": ColumnType(Kind.DOUBLE),
    "s": ColumnType(Kind.VARCHAR, length=20),
    "day": ColumnType(Kind.DATE),
    "ts": ColumnType(Kind.TIMESTAMP, precision=3),
    "b": ColumnType(Kind.BOOLEAN),
    "m": ColumnType(Kind.MAP, key=ColumnType(Kind.VARCHAR, length=9), value=ColumnType(Kind.INT)),
}
EPOCH = dt.date(1970, 1, 1)
ZERO = dt.datetime.combine(EPOCH, dt.time())
NUMBERS = ("t", "k", "dec", "f", "d")

optional = lambda values: st.none() | values  # noqa: E731
ROWS = st.fixed_dictionaries(
    {
        "t": optional(st.integers(-128, 127) | st.sampled_from([-128, 127])),
        "k": optional(st.integers(-3, 3)),
        "dec": optional(st.integers(-300, 300).map(lambda unscaled: Decimal(unscaled).scaleb(-2))),
        "f": optional(
            st.sampled_from([-1.5, -0.0, 0.0, 0.1, 0.7, 1.0, 2.5, float("nan"), float("inf")]).map(
                lambda v: pa.scalar(v, pa.float32()).as_py()
            )
        ),
        "d": optional(st.sampled_from([-1.5, -0.0, 0.0, 0.1, 1.0, 2.5, float("nan"), float("-inf")])),
        "s": optional(st.sampled_from(["", "\0", "a", "a\0", "a\0b", "ab", "ab%", "b_", "Å", "\U0001f600"])),
        "day": optional(st.integers(-2, 3).map(lambda days: EPOCH + dt.timedelta(days))),
        "ts": optional(st.integers(-2000, 2000).map(lambda ms: ZERO + dt.timedelta(milliseconds=ms))),
        "b": optional(st.booleans()),
        "m": optional(st.dictionaries(st.sampled_from(["x", "y"]), optional(st.integers(-2, 2))).map(lambda d: list(d.items()))),
    }
)


def ordered(value: object) -> object:
    """Spark's order of one type's values: NaN is greatest, zeros are equal, numbers compare exactly."""
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    if isinstance(value, float) and math.isinf(value):
        return (1, 0) if value > 0 else (0, 0)
    if isinstance(value, float):
        return (0.5, Fraction(value))
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return (0.5, Fraction(value))
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.date):
        return dt.datetime.combine(value, dt.time())
    return value


def key_order(value: object) -> tuple[float, object]:
    found = ordered(value)
    return found if isinstance(found, tuple) else (0.0, found)


COMPARE = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
ARROW = {"=": "__eq__", "<>": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}


class Node:
    """One condition, three ways: SQL text, an Arrow expression (or None), and its truth for a row."""

    def __init__(self, sql, arrow, truth):
        self.sql, self.arrow, self.truth = sql, arrow, truth


def compare_truth(get, op, literal):
    def truth(row):
        value = get(row)
        if value is None or literal is None:
            return None
        if isinstance(literal, float) or isinstance(value, float):  # Spark compares as DOUBLE where one side is one
            return COMPARE[op](key_order(float(value)), key_order(float(literal)))
        return COMPARE[op](key_order(value), key_order(literal))

    return truth


def column_of(name):
    return lambda row: row[name]


def sql_literal(value):
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            return f"CAST('{value!r}' AS DOUBLE)" if not math.isfinite(value) else f"{value!r}D"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case dt.datetime():
            return f"TIMESTAMP_NTZ '{value}'"
        case dt.date():
            return f"DATE '{value}'"
    return str(value)


number = (
    st.integers(-130, 130)
    | st.integers(-400, 400).map(lambda n: Decimal(n).scaleb(-2))
    | st.sampled_from([0.1, 0.5, 0.7, -0.7, -0.0, 1e300, 1e-300, -1e300, float("nan"), float("inf"), float("-inf"), 2**40])
)
LITERALS = {
    **dict.fromkeys(NUMBERS, number),
    "s": st.sampled_from(["", "\0", "a", "a\0", "ab", "it's", "b\\_", "Å", "\U0001f600"]),
    "day": st.integers(-3, 4).map(lambda days: EPOCH + dt.timedelta(days))
    | st.integers(-3, 3).map(lambda h: ZERO + dt.timedelta(hours=12 * h)),
    "ts": st.integers(-4000, 4000).map(lambda half: ZERO + dt.timedelta(microseconds=500 * half)) | st.just(EPOCH),
    "b": st.booleans(),
}


@st.composite
def leaf(draw) -> Node:
    name = draw(st.sampled_from([*LITERALS, "m"]))
    field, get, sql, literals = pc.field(name), column_of(name), name, LITERALS.get(name, number)
    if name == "m":
        key = draw(st.sampled_from(["x", "y", "z"]))
        field, sql = pc.map_lookup(pc.field("m"), query_key=key, occurrence="last"), f"m['{key}']"
        get = lambda row: None if row["m"] is None else dict(row["m"]).get(key)  # noqa: E731
    form = draw(st.sampled_from(["compare", "in", "null", "between", "prefix", "nullsafe"]))
    if form == "null":
        return Node(f"{sql} IS NULL", field.is_null(), lambda row: get(row) is None)
    if form == "prefix" and name == "s":
        prefix = draw(st.sampled_from(["", "\0", "a", "a\0", "ab", "Å"]))
        return Node(
            f"s LIKE '{prefix}%'", pc.starts_with(field, prefix), lambda row: None if row["s"] is None else row["s"].startswith(prefix)
        )
    if form == "between":
        low, high = draw(optional(literals)), draw(literals)
        above, below = compare_truth(get, ">=", low), compare_truth(get, "<=", high)
        return Node(f"{sql} BETWEEN {sql_literal(low)} AND {sql_literal(high)}", None, lambda row: conjunction([above(row), below(row)]))
    if form == "in":
        values = draw(st.lists(optional(literals), min_size=1, max_size=4))
        tests = [compare_truth(get, "=", value) for value in values]
        text = ", ".join(map(sql_literal, values))
        return Node(f"{sql} IN ({text})", None, lambda row: disjunction([test(row) for test in tests]))
    value = draw(literals)
    if form == "nullsafe":
        test = compare_truth(get, "=", value)
        return Node(f"{sql} <=> {sql_literal(value)}", None, lambda row: bool(test(row)))
    op = draw(st.sampled_from(list(COMPARE)))
    return Node(f"{sql} {op} {sql_literal(value)}", getattr(field, ARROW[op])(pa.scalar(value)), compare_truth(get, op, value))


def conjunction(values):
    return False if False in values else None if None in values else True


def disjunction(values):
    return True if True in values else None if None in values else False


def negation(node: Node) -> Node:
    def truth(row):
        value = node.truth(row)
        return None if value is None else not value

    return Node(f"NOT ({node.sql})", None if node.arrow is None else ~node.arrow, truth)


def joined(left: Node, right: Node, word: str) -> Node:
    both = left.arrow is not None and right.arrow is not None
    arrow = (left.arrow & right.arrow if word == "AND" else left.arrow | right.arrow) if both else None
    combine = conjunction if word == "AND" else disjunction
    return Node(f"({left.sql}) {word} ({right.sql})", arrow, lambda row: combine([left.truth(row), right.truth(row)]))


CONDITIONS = st.recursive(
    leaf(), lambda inner: inner.map(negation) | st.builds(joined, inner, inner, st.sampled_from(["AND", "OR"])), max_leaves=5
)


def table(rows: list[dict[str, object]]) -> pa.RecordBatch:
    return pa.record_batch([pa.array([row[name] for row in rows], kind.arrow) for name, kind in TYPES.items()], names=list(TYPES))


@settings(max_examples=some(30), deadline=None)
@given(condition=CONDITIONS, rows=st.lists(ROWS, min_size=1, max_size=8))
def test_a_filter_selects_what_the_model_selects(condition: Node, rows: list[dict[str, object]]) -> None:
    batch = table(rows)
    expected = [condition.truth(row) is True for row in rows]
    predicate = parse_filter(condition.sql, TYPES)
    assert mask(predicate, batch, TYPES).to_pylist() == expected
    assert to_json(from_json(to_json(predicate))) == to_json(predicate)
    if condition.arrow is not None:
        bound = bind_filter(condition.arrow, TYPES)
        assert bound is not None
        assert mask(bound, batch, TYPES).to_pylist() == expected


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (pc.field("k").isin([1, 2]), "k IN (1, 2)"),
        (pc.field("k").isin([1, None]), "k = 1 OR k IS NULL"),
        (~pc.field("k").isin([1]), "k IS NULL OR k <> 1"),
        (pc.field("b"), "b"),
        (pc.scalar(value=True), "TRUE"),
        (pc.field("k") == pc.scalar(None), "FALSE"),
        (pc.field("d").is_nan(), "isnan(d)"),
        (pc.field("d").is_null(nan_is_null=True), "d IS NULL OR isnan(d)"),
        (pc.field("k") > 3, "k > 3"),
        (pc.match_like(pc.field("s"), "ab%"), "s LIKE 'ab%'"),
        (pc.field("ts") < pa.scalar(ZERO + dt.timedelta(1), pa.timestamp("ns")), "ts < '1970-01-02'"),
        (pc.field("day") >= dt.date(1970, 1, 2), "day >= DATE '1970-01-02'"),
        (pc.field("dec") == Decimal("1.50"), "dec = 1.5"),
    ],
)
def test_an_arrow_expression_says_what_sql_says(expression: pc.Expression, text: str) -> None:
    batch = table(
        [dict.fromkeys(TYPES), {**dict.fromkeys(TYPES), "k": 1, "b": True, "d": float("nan"), "s": "abc", "dec": Decimal("1.50")}]
    )
    bound = bind_filter(expression, TYPES)
    assert bound is not None
    assert mask(bound, batch, TYPES).equals(mask(parse_filter(text, TYPES), batch, TYPES))
