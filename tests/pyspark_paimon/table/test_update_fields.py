"""Updates of single fields of structs."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyspark_paimon import InvalidArgument, OutOfRange, PaimonError, SchemaMismatch, UnknownColumn, time_zone

SCHEMA = "id BIGINT, s STRUCT<a INT, t STRING, n STRUCT<b BOOLEAN, d DECIMAL(6, 2)>, `x y` DATE, l ARRAY<INT>>, k INT"
ROWS = [
    {"id": 1, "s": {"a": 1, "t": "x", "n": {"b": True, "d": Decimal("1.50")}, "x y": dt.date(2024, 1, 1), "l": [1, None]}, "k": 7},
    {"id": 2, "s": None, "k": None},
    {"id": 3, "s": {"a": None, "t": None, "n": None, "x y": None, "l": None}, "k": 9},
]
KINDS = {
    "append": ((), {}),
    "append vectors": ((), {"deletion-vectors.enabled": "true"}),
    "keyed": (("id",), {"bucket": "1"}),
    "partial": (("id",), {"bucket": "1", "merge-engine": "partial-update"}),
}


@pytest.fixture(params=KINDS)
def table(request, create):
    keys, options = KINDS[request.param]
    made = create(SCHEMA, primary_keys=keys, options=options)
    made.write(ROWS)
    return made


def rows(table):
    return table.scan(order_by="id").to_arrow().to_pylist()


def test_fields_are_set_and_the_others_stay(table):
    table.update("TRUE", set={"s.a": "coalesce(s.a, 0) + k", "S.N.b": "NOT s.n.b", "s.`x y`": "DATE '2025-02-03'"}, values={"s.t": "it's"})
    day = dt.date(2025, 2, 3)
    assert rows(table) == [
        {"id": 1, "s": {"a": 8, "t": "it's", "n": {"b": False, "d": Decimal("1.50")}, "x y": day, "l": [1, None]}, "k": 7},
        {"id": 2, "s": {"a": None, "t": "it's", "n": {"b": None, "d": None}, "x y": day, "l": None}, "k": None},
        {"id": 3, "s": {"a": 9, "t": "it's", "n": {"b": None, "d": None}, "x y": day, "l": None}, "k": 9},
    ]


@pytest.mark.parametrize("value", [5, pa.scalar(5), 5.0])
def test_constants_set_fields(table, value):
    table.update("id = 1", set={"s.a": value, "s.n.d": None})
    assert rows(table)[0]["s"] == ROWS[0]["s"] | {"a": 5, "n": {"b": True, "d": None}}
    assert rows(table)[1:] == ROWS[1:]


@pytest.mark.parametrize(
    ("value", "error", "says"),
    [
        (2**31, SchemaMismatch, r"'s\.a': 2147483648"),
        (1.5, SchemaMismatch, r"'s\.a': 1\.5"),
        ({"s.l": [1]}, InvalidArgument, r"'s\.l' is ARRAY<INT>, which takes no constant"),
        ("nope", UnknownColumn, r"columns are: id, s, k; .*values=\{'s\.a': 'nope'\}"),
    ],
)
def test_constants_that_do_not_fit_are_refused(table, value, error, says):
    with pytest.raises(error, match=says):
        table.update("id = 1", set=value if isinstance(value, dict) else {"s.a": value})
    assert rows(table) == ROWS


def test_a_merge_sets_fields(table):
    source = [{"id": 1, "a": 5, "t": "new"}, {"id": 4, "a": 6, "t": None}]
    merge = table.merge(source, on="id").when_matched_update({"S.a": "s.a + t.s.a", "s.n.b": False, "s.t": "s.t"})
    done = merge.when_not_matched_insert({"id": "s.id", "k": "s.a"}).execute()
    assert (done.updated, done.inserted) == (1, 1)
    first = ROWS[0]["s"] | {"a": 6, "t": "new", "n": {"b": False, "d": Decimal("1.50")}}
    assert rows(table) == [ROWS[0] | {"s": first}, *ROWS[1:], {"id": 4, "s": None, "k": 6}]


@pytest.mark.parametrize(
    ("sets", "error", "says"),
    [
        ({"s.a": 1, "s": None}, InvalidArgument, "together with a struct"),
        ({"s.a": 2**31}, SchemaMismatch, "2147483648"),
        ({"s.z": 1}, UnknownColumn, r"s\.z"),
        ({"s.n": "s.id"}, SchemaMismatch, r"field 's\.n' is ROW"),
    ],
)
def test_fields_that_a_merge_cannot_set_are_refused(table, sets, error, says):
    with pytest.raises(error, match=says):
        table.merge([{"id": 1}], on="id").when_matched_update(sets).execute()
    assert rows(table) == ROWS


def test_values_are_those_before_the_update(table):
    table.update("id = 1", set={"s.a": "k", "k": "s.a", "s.n.d": "s.n.d * 2", "s.l": "NULL"})
    assert rows(table)[0] == {
        "id": 1,
        "s": {"a": 7, "t": "x", "n": {"b": True, "d": Decimal("3.00")}, "x y": dt.date(2024, 1, 1), "l": None},
        "k": 1,
    }
    assert rows(table)[1:] == ROWS[1:]


def test_arrow_expressions_and_constants_set_fields(table):
    table.update("id = 1", set={"s.a": pc.field("k") + 1}, values={"s.n.d": Decimal("2.5"), "s.n.b": None})
    assert rows(table)[0]["s"]["a"] == 8
    assert rows(table)[0]["s"]["n"] == {"b": None, "d": Decimal("2.50")}


@pytest.mark.parametrize(
    ("names", "error", "says"),
    [
        ({"s.z": "1"}, UnknownColumn, r"s\.z"),
        ({"z.a": "1"}, UnknownColumn, "'z'"),
        ({"s.a": "'x'"}, SchemaMismatch, r"field 's\.a' is INT"),
        ({"s.n": "1"}, SchemaMismatch, r"field 's\.n' is ROW"),
        ({"s.a": "1", "S.A": "2"}, InvalidArgument, "set twice"),
        ({"s.n.b": "TRUE", "s.n": "NULL"}, InvalidArgument, "together with a struct"),
        ({"s": "NULL", "s.a": "2"}, InvalidArgument, "together with a struct"),
        ({"s.l[0]": "1"}, PaimonError, "only"),
        ({"k.a": "1"}, PaimonError, "'k"),
    ],
)
def test_fields_that_cannot_be_set_are_refused(table, names, error, says):
    with pytest.raises(error, match=says):
        table.update("id = 1", set=names)
    assert rows(table) == ROWS


def test_a_value_out_of_range_changes_nothing(table):
    with pytest.raises((OutOfRange, PaimonError), match=r"2147483648|out of|overflow|range"):
        table.update("id = 1", set={"s.a": "CAST(2147483648 AS BIGINT)"})
    assert rows(table) == ROWS


def test_fields_of_keys_stay(create):
    table = create("id BIGINT, k INT, s STRUCT<a INT NOT NULL, b INT>")
    table.write([{"id": 1, "k": 1, "s": {"a": 1, "b": 2}}, {"id": 2, "k": 1, "s": None}])
    with pytest.raises(SchemaMismatch, match=r"field 's\.a' is INT NOT NULL"):
        table.update("id = 1", set={"s.a": "NULL"})
    table.update("id = 1", set={"s.b": "NULL"})
    assert table.scan("id = 1").to_arrow()["s"].to_pylist() == [{"a": 1, "b": None}]
    with pytest.raises(PaimonError):
        table.update("id = 2", set={"s.b": "1"})
    assert table.scan("id = 2").to_arrow()["s"].to_pylist() == [None]


@pytest.mark.parametrize("key", [(), ("id",)])
def test_fields_take_what_columns_take_and_no_value_changes(create, key):
    schema = "id BIGINT, d DOUBLE, ts TIMESTAMP(6), s STRUCT<f FLOAT, d DECIMAL(6, 2), day DATE, at TIMESTAMP(3)>"
    table = create(schema, primary_keys=key, options={"bucket": "1"} if key else {})
    table.write([{"id": 7, "d": 0.1, "ts": dt.datetime.fromisoformat("2024-01-01 01:00"), "s": None}])
    for name, value in (("s.f", "d"), ("s.f", "1D / 3"), ("s.day", "ts")):
        with pytest.raises(PaimonError, match="would be rounded"):
            table.update("TRUE", set={name: value})
    assert table.scan().to_arrow()["s"].to_pylist() == [None]
    in_gap = dt.datetime.fromisoformat("2024-03-31 02:30")  # no clock of Berlin shows it
    with time_zone("Europe/Berlin"):
        table.update(
            "TRUE",
            set={"s.d": "id + 1", "s.f": "CAST(d * 5 AS FLOAT)"},
            values={"s.at": in_gap, "s.day": dt.datetime.fromisoformat("2024-01-01")},
        )
        assert table.scan().to_arrow()["s"].to_pylist() == [{"f": 0.5, "d": Decimal(8), "day": dt.date(2024, 1, 1), "at": in_gap}]
        table.update("TRUE", values={"s.d": 2})
        table.merge([{"id": 7}], on="id").when_matched_update({"s.f": 3}).execute()
    assert table.scan().to_arrow()["s"].to_pylist() == [{"f": 3.0, "d": Decimal(2), "day": dt.date(2024, 1, 1), "at": in_gap}]


@pytest.mark.parametrize("precision", [3, 6, 9])
def test_the_current_time_is_assigned_to_either_kind_of_timestamp(create, precision):
    kind = f"TIMESTAMP({precision})"
    table = create(
        f"id BIGINT, ts {kind}, z {kind} WITH LOCAL TIME ZONE, s STRUCT<t {kind}>, d DATE", primary_keys=["id"], options={"bucket": "1"}
    )
    table.write([{"id": 1, "ts": None, "z": None, "s": None, "d": None}])
    before = dt.datetime.now(dt.UTC).replace(microsecond=0)
    with time_zone("Asia/Tokyo"):
        table.update("id = 1", set={"ts": "now()", "z": "localtimestamp()", "s.t": "current_timestamp()", "d": "CAST(now() AS DATE)"})
        done = table.scan(columns={"a": "CAST(ts AS TIMESTAMP_LTZ)", "z": "z", "b": "CAST(s.t AS TIMESTAMP_LTZ)", "d": "d"}).to_arrow()
        table.merge([{"id": 1}], on="id").when_matched_update(
            {"ts": "now() - INTERVAL 1 DAY", "z": "TIMESTAMP_NTZ '2024-01-01 09:00:00'"}
        ).execute()
    after = dt.datetime.now(dt.UTC)
    for name in "azb":
        (at,) = done[name].cast(pa.timestamp("us", tz="UTC"), safe=False).to_pylist()
        assert before <= at <= after
    assert done["d"].to_pylist()[0] in {(one + dt.timedelta(hours=9)).date() for one in (before, after)}
    row = table.scan(columns={"z": "z = TIMESTAMP '2024-01-01 00:00:00 UTC'", "ts": "ts < now()"}).to_arrow().to_pylist()
    assert row == [{"z": True, "ts": True}]


def test_a_time_is_no_date(create):
    table = create("id BIGINT, d DATE", primary_keys=["id"], options={"bucket": "1"})
    with pytest.raises(SchemaMismatch, match="column 'd' is DATE, and 'now\\(\\)' is of type TIMESTAMP_LTZ; cast it"):
        table.update("id = 1", set={"d": "now()"})


def test_values_are_computed_by_functions(table):
    table.update(
        "id = 1",
        set={
            "s.l": "array(k, s.a, NULL)",
            "s.t": "concat_ws('-', replace(s.t, 'x', 'yy'), lpad('7', 3, '0'))",
            "k": "greatest(k, CAST(round(7.6) AS INT))",
        },
    )
    table.merge([{"id": 3, "n": 5}], on="id").when_matched_update(
        {"s.n.d": "CAST(n / 3 AS DECIMAL(6, 1))", "k": "least(t.k, s.n)"}
    ).execute()
    assert rows(table)[0] == {"id": 1, "s": ROWS[0]["s"] | {"l": [7, 1, None], "t": "yy-007"}, "k": 8}
    assert rows(table)[2] == {"id": 3, "s": {"a": None, "t": None, "n": {"b": None, "d": Decimal("1.70")}, "x y": None, "l": None}, "k": 5}


def test_a_struct_is_made_by_its_fields(create):
    table = create("id BIGINT, r STRUCT<b STRING, a INT>", primary_keys=["id"], options={"bucket": "1"})
    table.write([{"id": 1, "r": None}])
    table.update("id = 1", set={"r": "named_struct('a', 1, 'b', upper('x'))"})
    assert rows(table) == [{"id": 1, "r": {"b": "X", "a": 1}}]
