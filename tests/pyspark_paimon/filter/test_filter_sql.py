"""Filters in SQL: what is understood, how literals are bound to the column's type, what is refused and how."""

from __future__ import annotations

import pytest

from fileindex.predicate.tree import FALSE, TRUE, And, ColumnRef, Compare, In, IsNull, Op, Or, StartsWith, leaves
from paimon_base.errors import InvalidFilter, UnknownColumn
from pyspark_paimon.filter.parse import bind_filter, parse_filter
from sparkexpr.values.column_type import ColumnType, Kind

STRING = ColumnType(Kind.VARCHAR, length=2**31 - 1)
TYPES = {
    "b": ColumnType(Kind.BOOLEAN),
    "t": ColumnType(Kind.TINYINT),
    "k": ColumnType(Kind.INT),
    "l": ColumnType(Kind.BIGINT),
    "f": ColumnType(Kind.FLOAT),
    "d": ColumnType(Kind.DOUBLE),
    "dec": ColumnType(Kind.DECIMAL, precision=5, scale=2),
    "wide": ColumnType(Kind.DECIMAL, precision=38, scale=10),
    "s": STRING,
    "bin": ColumnType(Kind.VARBINARY, length=10),
    "day": ColumnType(Kind.DATE),
    "clock": ColumnType(Kind.TIME),
    "ms": ColumnType(Kind.TIMESTAMP, precision=3),
    "us": ColumnType(Kind.TIMESTAMP, precision=6),
    "ltz": ColumnType(Kind.TIMESTAMP_LTZ, precision=6),
    "ns": ColumnType(Kind.TIMESTAMP, precision=9),
    "attrs": ColumnType(Kind.MAP, key=STRING, value=ColumnType(Kind.BIGINT)),
    "codes": ColumnType(Kind.MAP, key=ColumnType(Kind.INT), value=STRING),
    "list": ColumnType(Kind.ARRAY),
    "a b": ColumnType(Kind.INT),
    "x.y": ColumnType(Kind.INT),
    "Town": ColumnType(Kind.INT),
    "date": STRING,
}


def compare(name: str, op: str, value: object, key: str | None = None) -> Compare:
    return Compare(ColumnRef(name, key), Op(op), value)


def null(name: str, key: str | None = None) -> IsNull:
    return IsNull(ColumnRef(name, key))


def some(name: str, key: str | None = None) -> IsNull:
    return IsNull(ColumnRef(name, key), negated=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k = 3", compare("k", "=", 3)),
        ("k == 3", compare("k", "=", 3)),
        ("k <> 3", compare("k", "<>", 3)),
        ("k != 3", compare("k", "<>", 3)),
        ("3 < k", compare("k", ">", 3)),
        ("3 >= k", compare("k", "<=", 3)),
        ("k = -3", compare("k", "=", -3)),
        ("k = - -3", compare("k", "=", 3)),
        ("k = 3L", compare("k", "=", 3)),
        ("k IN (1, 2, 1)", In(ColumnRef("k"), (1, 2))),
        ("k IN (7)", compare("k", "=", 7)),
        ("k NOT IN (1, 2)", In(ColumnRef("k"), (1, 2), negated=True)),
        ("k BETWEEN 1 AND 3", And((compare("k", ">=", 1), compare("k", "<=", 3)))),
        ("k NOT BETWEEN 1 AND 3", Or((compare("k", "<", 1), compare("k", ">", 3)))),
        ("s LIKE 'Os%'", StartsWith(ColumnRef("s"), "Os")),
        ("s LIKE 'Os%%'", StartsWith(ColumnRef("s"), "Os")),
        ("s NOT LIKE 'Os%'", StartsWith(ColumnRef("s"), "Os", negated=True)),
        ("s LIKE 'Oslo'", compare("s", "=", "Oslo")),
        (r"s LIKE '100\%%'", StartsWith(ColumnRef("s"), "100%")),
        ("s LIKE '100!%%' ESCAPE '!'", StartsWith(ColumnRef("s"), "100%")),
        ("s LIKE '%'", some("s")),
        ("startswith(s, 'Os')", StartsWith(ColumnRef("s"), "Os")),
        ("k IS NULL", null("k")),
        ("k IS NOT NULL", some("k")),
        ("isnull(k)", null("k")),
        ("NOT isnotnull(k)", null("k")),
        ("b", compare("b", "=", True)),
        ("NOT b", compare("b", "=", False)),
        ("!b", compare("b", "=", False)),
        ("b IS TRUE", compare("b", "=", True)),
        ("b IS NOT TRUE", Or((null("b"), compare("b", "=", False)))),
        ("b < TRUE", compare("b", "=", False)),
        ("b <= TRUE", some("b")),
        ("b < FALSE", FALSE),
        ("k <=> 3", compare("k", "=", 3)),
        ("k <=> NULL", null("k")),
        ("NOT k <=> 3", Or((null("k"), compare("k", "<>", 3)))),
        ("k IS DISTINCT FROM 3", Or((null("k"), compare("k", "<>", 3)))),
        ("TRUE", TRUE),
        ("FALSE OR k = 1", compare("k", "=", 1)),
        ("1 = 1 AND k = 1", compare("k", "=", 1)),
        ("NULL", FALSE),
        ("NOT NULL", FALSE),
        ("k = 1 AND s = 'x' OR b", Or((And((compare("k", "=", 1), compare("s", "=", "x"))), compare("b", "=", True)))),
        ("NOT (k = 1 OR s = 'x')", And((compare("k", "<>", 1), compare("s", "<>", "x")))),
        ("attrs['clicks'] > 3", compare("attrs", ">", 3, "clicks")),
        ("element_at(attrs, 'clicks') > 3", compare("attrs", ">", 3, "clicks")),
        ("attrs['clicks'] IS NULL", null("attrs", "clicks")),
        ("attrs IS NULL", null("attrs")),
        ("list IS NOT NULL", some("list")),
        ("`a b` = 1", compare("a b", "=", 1)),
        ("`x.y` = 1", compare("x.y", "=", 1)),
        ("K = 1 AND tOWN = 2", And((compare("k", "=", 1), compare("Town", "=", 2)))),
        ('s = "double quotes are text"', compare("s", "=", "double quotes are text")),
        ("s = 'it''s'", compare("s", "=", "it's")),
        ("s = 'a' 'b'", compare("s", "=", "ab")),
        (r"s = 'it\'s'", compare("s", "=", "it's")),
        ("date = 'x'", compare("date", "=", "x")),
        ("bin = X'1aFF'", compare("bin", "=", b"\x1a\xff")),
        ("d = CAST('NaN' AS DOUBLE)", None),
    ],
)
def test_a_filter_becomes_a_tree(text: str, expected: object) -> None:
    found = parse_filter(text, TYPES)
    if expected is None:
        assert isinstance(found, Compare)
        assert isinstance(found.value, float)
        assert found.value != found.value
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k > 2.5", compare("k", ">=", 3)),
        ("k >= 2.5", compare("k", ">=", 3)),
        ("k < 2.5", compare("k", "<=", 2)),
        ("k = 2.5", FALSE),
        ("k <> 2.5", some("k")),
        ("NOT k = 2.5", some("k")),
        ("k > 2.0", compare("k", ">", 2)),
        ("k = 2.0", compare("k", "=", 2)),
        ("k = 1e3", compare("k", "=", 1000)),
        ("k = '7'", compare("k", "=", 7)),
        ("k IN (1, 2.5, 3)", In(ColumnRef("k"), (1, 3))),
        ("k IN (2.5)", FALSE),
        ("k NOT IN (2.5)", some("k")),
        ("k NOT IN (1, 2.5)", compare("k", "<>", 1)),
        ("t < 1000", some("t")),
        ("t > 1000", FALSE),
        ("t > 127", FALSE),
        ("t >= 127", compare("t", ">=", 127)),
        ("t <= -128", compare("t", "<=", -128)),
        ("t < -128", FALSE),
        ("t <> 1000", some("t")),
        ("NOT t < 1000", FALSE),
        ("l < 99999999999999999999", some("l")),
        ("l = 1e30", FALSE),
        ("l < CAST('NaN' AS DOUBLE)", some("l")),
        ("l < CAST('Infinity' AS DOUBLE)", some("l")),
        ("l > CAST('-Infinity' AS DOUBLE)", some("l")),
        ("dec = 1.5", compare("dec", "=", 150)),
        ("dec = 1.005", FALSE),
        ("dec > 1.005", compare("dec", ">=", 101)),
        ("dec < 1000", some("dec")),
        ("dec = 0.1D", compare("dec", "=", 10)),
        ("dec = '1.25'", compare("dec", "=", 125)),
        (f"wide = -{'9' * 28}.{'9' * 10}", compare("wide", "=", 1 - 10**38)),
        ("f = 0.5", compare("f", "=", 0.5)),
        ("f = 0.1", FALSE),
        ("NOT f = 0.1", some("f")),
        ("f < 0.1", compare("f", "<=", 0.09999999403953552)),
        ("f < 0.7", compare("f", "<=", 0.699999988079071)),
        ("f > 0.7", compare("f", ">=", 0.7000000476837158)),
        ("f < 1e300", compare("f", "<=", 3.4028234663852886e38)),
        ("f > 1e300", compare("f", ">=", float("inf"))),
        ("f > 1e-300", compare("f", ">=", 1.401298464324817e-45)),
        ("d = 1", compare("d", "=", 1.0)),
        ("d = '2.5'", compare("d", "=", 2.5)),
        ("d = -0.0D", compare("d", "=", 0.0)),
        ("day = DATE '1970-01-02'", compare("day", "=", 1)),
        ("day = '1970-1-2'", compare("day", "=", 1)),
        ("day > TIMESTAMP '1970-01-02 12:00:00'", compare("day", ">=", 2)),
        ("day < DATE '-5877641-06-23'", FALSE),
        ("clock = TIME '00:00:01'", compare("clock", "=", 1000)),
        ("clock >= '23:59:59.9995'", FALSE),
        ("ms = TIMESTAMP '1970-01-01 00:00:01'", compare("ms", "=", 1000)),
        ("ms > '1970-01-01 00:00:00.0005'", compare("ms", ">=", 1)),
        ("us = DATE '1970-01-02'", compare("us", "=", 86_400_000_000)),
        ("us = TIMESTAMP_NTZ '1970-01-01T00:00:01'", compare("us", "=", 1_000_000)),
        ("us = '1970-01-01 00:00:01+05:00'", compare("us", "=", 1_000_000)),
        ("ltz = '1970-01-01 05:00:01+05:00'", compare("ltz", "=", 1_000_000)),
        ("ltz = TIMESTAMP '1970-01-01 01:00:01 Europe/Berlin'", compare("ltz", "=", 1_000_000)),
        ("ns = '1970-01-01 00:00:00.000000001'", compare("ns", "=", 1)),
        ("ns < '2500-01-01'", some("ns")),
        ("attrs['clicks'] = 2.5", FALSE),
        ("attrs['clicks'] <> 2.5", some("attrs", "clicks")),
    ],
)
def test_a_literal_is_bound_to_the_columns_type_exactly(text: str, expected: object) -> None:
    assert parse_filter(text, TYPES) == expected


@pytest.mark.parametrize("text", ["k = NULL", "NOT k = NULL", "k NOT IN (1, NULL)", "k BETWEEN NULL AND 3", "NOT (k IN (NULL))"])
def test_a_comparison_with_null_is_never_true(text: str) -> None:
    assert parse_filter(text, TYPES) == FALSE


def test_a_null_in_a_list_does_not_hide_what_is_found() -> None:
    assert parse_filter("k IN (1, NULL)", TYPES) == compare("k", "=", 1)
    assert parse_filter("k NOT BETWEEN NULL AND 3", TYPES) == compare("k", ">", 3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("k = = 3", "line 1, column 5"),
        ("k = 1 extra", "column 7"),
        ("k = 1; DROP TABLE t", "column 8"),
        ("k = 1 AND\n  s = = 'x'", "line 2"),
        ("k = ", "cannot be read"),
        ("s = 'open", "cannot be read"),
        (r"s LIKE 'a\\b'", "escape"),
        ("s LIKE ANY ('x%', 'y%')", "not supported"),
        ("k IN (SELECT 1)", "not supported in filters"),
        ("k IN ()", "\"k IN :values\" with params={'values': [...]}"),
        ("NOT (k = 1 OR s NOT IN ( ))", "'s IN ()' has no values"),
        ("abs(k) IN ()", "has no values"),
        ("k > ALL (1)", "not supported in filters"),
        ("k BETWEEN SYMMETRIC 3 AND 1", "not supported in filters"),
        ("k = INTERVAL 1 DAY", "not supported"),
        ("k = 'seven'", "'seven'"),
        ("k = TRUE", "INT"),
        ("k = DATE '2020-01-01'", "INT"),
        ("s = 7", "write 'text'"),
        ("b = 7", "TRUE or FALSE"),
        ("day = 7", "DATE"),
        ("day = 'soon'", "2024-01-31"),
        ("day = '2024-02-30'", "2024-02-30"),
        ("us = '2024-01-31 25:00:00'", "25:00:00"),
        ("us = '2024-01-31 10:00:00 Nowhere/Land'", "time zone"),
        ("clock = 'noon'", "10:30:00"),
        ("bin = 'text'", "X'"),
        ("attrs = 3", "attrs['key']"),
        ("attrs[1] = 3", "keys of type VARCHAR"),
        ("codes['a'] = 'x'", "is not a MAP with string keys"),
        ("k['a'] = 1", "is not a MAP with string keys"),
        ("list = 3", "IS NULL"),
        ("s", "not a BOOLEAN"),
        ("k LIKE 'x%'", "only text columns"),
        ("isnan(k)", "NaN"),
        ("dec = '1e99999999'", "outside the range"),
        ("1 = 'x'", "has no column"),
        ("(" * 3000 + "k = 1" + ")" * 3000, "nests too deeply"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_hint(text: str, says: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        parse_filter(text, TYPES)
    assert says in str(caught.value)


def test_the_place_of_a_syntax_error_is_marked() -> None:
    with pytest.raises(InvalidFilter) as caught:
        parse_filter("k = 1 wrong s = 2", TYPES)
    shown = str(caught.value).splitlines()
    assert shown[1].strip() == "k = 1 wrong s = 2"
    assert shown[2].index("^") == shown[1].index("wrong")


def test_an_unknown_column_is_named_with_the_nearest_one() -> None:
    with pytest.raises(UnknownColumn, match="unknown column 'attr', did you mean 'attrs'"):
        parse_filter("attr['x'] = 1", TYPES)


def test_a_name_that_only_case_tells_apart_must_be_exact() -> None:
    types = {"Id": ColumnType(Kind.INT), "id": ColumnType(Kind.INT)}
    assert parse_filter("id = 1", types) == compare("id", "=", 1)
    with pytest.raises(InvalidFilter, match="Id or id"):
        parse_filter("ID = 1", types)


def test_a_long_chain_of_or_is_flat() -> None:
    found = parse_filter(" OR ".join(f"k = {n}" for n in range(2000)), TYPES)
    assert found == In(ColumnRef("k"), tuple(range(2000)))
    mixed = parse_filter(" OR ".join(f"k {'=' if n % 2 else '<'} {n}" for n in range(2000)), TYPES)
    assert isinstance(mixed, Or)
    assert len(mixed.children) == 1001


def test_a_long_chain_of_and_is_flat() -> None:
    found = parse_filter(" AND ".join(f"k <> {n}" for n in range(2000)) + " AND s = 'x'", TYPES)
    assert found == And((In(ColumnRef("k"), tuple(range(2000)), negated=True), compare("s", "=", "x")))


@pytest.mark.parametrize("levels", [13, 50, 300, 1000])
def test_parentheses_and_nots_of_any_depth_are_read(levels: int) -> None:
    assert parse_filter("(" * levels + "k = 1" + ")" * levels, TYPES) == compare("k", "=", 1)
    assert parse_filter("NOT (" * levels + "k = 1" + ")" * levels, TYPES) == compare("k", "=" if levels % 2 == 0 else "<>", 1)
    assert parse_filter("(" * levels + "k + 1" + ")" * levels + " = 2 OR s IN (('x'), 'y')", TYPES) == parse_filter(
        "k + 1 = 2 OR s IN ('x', 'y')", TYPES
    )


def test_and_and_or_in_each_other_are_read_to_a_bound() -> None:
    def nested(levels: int) -> str:
        return "".join(f"k > {n} {'AND' if n % 2 else 'OR'} (" for n in range(levels)) + "s = 'x'" + ")" * levels

    assert len(list(leaves(parse_filter(nested(90), TYPES)))) == 91
    with pytest.raises(InvalidFilter, match="nests too deeply"):
        parse_filter(nested(400), TYPES)


def test_a_long_list_is_the_same_whether_it_is_parsed_or_cut_out() -> None:
    for values in ([str(n) for n in range(-50, 50)], [f"'{n} ,(x)'" for n in range(100)]):
        column = "l" if values[0].startswith("-") else "s"
        whole = parse_filter(f"{column} IN ({', '.join(values)}) AND s <> 'k IN (1, 2)'", TYPES)
        assert whole == parse_filter(f"{column} IN ({', '.join(values)}, {values[0]} ) AND s <> 'k IN (1, 2)'", TYPES)
        assert isinstance(whole, And)
        assert isinstance(whole.children[0], In)
        assert len(whole.children[0].values) == 100
    tricky = "s = ' IN (" + ",".join(map(str, range(100))) + ")'"
    assert parse_filter(tricky, TYPES) == compare("s", "=", tricky[5:-1])
    with_null = parse_filter("l NOT IN (" + ",".join(map(str, range(100))) + ", NULL)", TYPES)
    assert with_null == FALSE


def test_no_filter_and_a_ready_tree_pass_through() -> None:
    tree = compare("k", "=", 1)
    assert bind_filter(None, TYPES) is None
    assert bind_filter(tree, TYPES) is tree
    with pytest.raises(InvalidFilter, match="SQL text"):
        bind_filter(7, TYPES)
