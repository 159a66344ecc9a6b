# Wall clocks have no zone.
# ruff: noqa: DTZ001
"""Casts of texts and numbers to the types of a table."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lsm.rows_in import requested_cast
from lsm.rows_in.requested_cast import cast_column
from manifest.types.ddl import parse_ddl
from paimon_base.thresholds import use_thresholds
from pyspark_paimon import InvalidArgument, NullInKey, SchemaMismatch, Table
from tests.build import keyed, tuples

UTC = dt.UTC


def cast(ddl: str, values: object, *, rounds: bool = False) -> list[object]:
    """The values, and "unfit" for each that does not fit."""
    column = values if isinstance(values, pa.Array) else pa.array(values)
    done, unfit = cast_column(column, parse_ddl(f"v {ddl}")[0].type, rounds=rounds)
    return ["unfit" if bad else value for value, bad in zip(done.to_pylist(), unfit, strict=True)]


@pytest.mark.parametrize(
    ("ddl", "fits", "unfit"),
    [
        ("TINYINT", {"127": 127, " -128 ": -128, "+5": 5, "007": 7, "1.0": 1}, ["128", "1.5", "x", "", ".", "1e2", "0x1"]),
        ("BIGINT", {"9223372036854775807": 2**63 - 1, "-9223372036854775808": -(2**63)}, ["9223372036854775808", "9" * 40]),
        (
            "DECIMAL(5, 2)",
            {"1.5": Decimal("1.50"), ".5": Decimal("0.50"), "5.": Decimal("5.00"), "000999.9900": Decimal("999.99")},
            ["1000", "0.005", "1.2.3", "1e1"],
        ),
        ("DECIMAL(38, 0)", {"9" * 38: Decimal("9" * 38)}, ["9" * 39]),
        ("DECIMAL(38, 38)", {"0.5": Decimal("0.5")}, ["1"]),
        ("DOUBLE", {"1e5": 1e5, "-Infinity": float("-inf"), ".5": 0.5}, ["1e400", "x", "1.5.5", "", "1e"]),
        ("FLOAT", {"0.5": 0.5}, ["1e39"]),
        ("BOOLEAN", {"TRUE": True, "f": False, "yes": True, "N": False, "1": True, "0": False}, ["2", "", "maybe"]),
        (
            "DATE",
            {"2024-02-29": dt.date(2024, 2, 29), "0001-01-01": dt.date(1, 1, 1)},
            ["2023-02-29", "2024-13-01", "x", "2024-01-01 00:00:00"],
        ),
        ("TIME(3)", {"10:00": dt.time(10), "10:00:00.123000": dt.time(10, 0, 0, 123000)}, ["25:00:00", "10:00:00.1234", "10"]),
        (
            "TIMESTAMP(3)",
            {
                "2024-01-31": dt.datetime(2024, 1, 31),
                "2024-01-31T10:05": dt.datetime(2024, 1, 31, 10, 5),
                "1969-12-31 23:59:59.999": dt.datetime(1969, 12, 31, 23, 59, 59, 999000),
            },
            ["2024-01-31 10:00:00.1234", "2024-01-31 10:00:00Z", "2024-02-30 10:00:00"],
        ),
        (
            "TIMESTAMP(6) WITH LOCAL TIME ZONE",
            {
                "2024-01-31T10:00:00Z": dt.datetime(2024, 1, 31, 10, tzinfo=UTC),
                "2024-01-31 10:00 +0130": dt.datetime(2024, 1, 31, 8, 30, tzinfo=UTC),
            },
            ["2024-01-31 10:00:00", "2024-01-31"],
        ),
    ],
)
def test_texts(ddl, fits, unfit):
    assert cast(ddl, list(fits)) == list(fits.values())
    assert cast(ddl, [*unfit, None]) == [*["unfit"] * len(unfit), None]
    coded = pa.array(list(fits)).dictionary_encode()
    assert cast(ddl, coded) == list(fits.values())
    assert cast(ddl, pa.array(list(fits), pa.large_string())) == list(fits.values())


def test_numbers_to_other_types():
    assert cast("DECIMAL(5, 2)", pa.array([0.1, 0.125, 999.99, 1000.0, float("nan"), None])) == [
        Decimal("0.10"),
        "unfit",
        Decimal("999.99"),
        "unfit",
        "unfit",
        None,
    ]
    assert cast("DECIMAL(5, 2)", pa.array([0.125, -0.125, 999.999, 1e300]), rounds=True) == [
        Decimal("0.13"),
        Decimal("-0.13"),
        "unfit",
        "unfit",
    ]
    assert cast("INT", pa.array([1.0, 1.5, 2.5, -0.5, 3e9, float("inf")]), rounds=True) == [1, 2, 3, -1, "unfit", "unfit"]
    assert cast("INT", pa.array([1.0, 1.5])) == [1, "unfit"]
    assert cast("SMALLINT", pa.array([1, 70000, None])) == [1, "unfit", None]
    assert cast("BOOLEAN", pa.array([0, 1, 2])) == [False, True, "unfit"]
    assert cast("DECIMAL(4, 1)", pa.array([Decimal("1.10"), Decimal("1.11")])) == [Decimal("1.1"), "unfit"]
    assert cast("STRING", pa.array([1, None])) == ["1", None]
    assert cast("STRING", pa.array([dt.date(2024, 1, 31)])) == ["2024-01-31"]
    assert cast("BYTES", pa.array([b"a"])) == [b"a"]


_TEXTS = st.one_of(
    st.from_regex(r"[+-]?[0-9]{0,12}(\.[0-9]{0,6})?", fullmatch=True),
    st.from_regex(r" ?[+-]?0*[0-9]{1,3}\.?[0-9]{0,3} ?", fullmatch=True),
    st.text(alphabet="0123456789.+- eExX\u0663", max_size=6),
)


def expected_decimal(text: str, precision: int, scale: int, *, rounds: bool) -> object:
    text = text.strip()
    if not text.isascii() or "e" in text.lower() or not any(letter.isdigit() for letter in text) or " " in text:
        return "unfit"
    try:
        value = Decimal(text)
    except InvalidOperation:
        return "unfit"
    done = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=100))
    return done if (rounds or done == value) and abs(done) < 10 ** (precision - scale) else "unfit"


@settings(deadline=None, max_examples=150)
@given(st.lists(_TEXTS, min_size=1, max_size=5), st.booleans(), st.sampled_from([(5, 2), (3, 3), (9, 0), (38, 10)]))
@example(["-0.005", "999.995", "00.5", "5.", ".", "-"], True, (5, 2))
def test_decimals_are_those_of_python(texts, rounds, shape):
    wanted = [expected_decimal(text, *shape, rounds=rounds) for text in texts]
    assert cast(f"DECIMAL{shape}", texts, rounds=rounds) == wanted


@settings(deadline=None, max_examples=150)
@given(st.lists(st.floats(width=64), min_size=1, max_size=5), st.booleans())
@example([0.7, 0.1, 0.29], False)
@example([2.5, 0.285, 1.005, -0.015, 99999.995], True)
def test_floats_to_decimals_are_exact_or_the_nearest(values, rounds):
    found = cast("DECIMAL(7, 2)", pa.array(values), rounds=rounds)
    for value, number in zip(values, found, strict=True):
        if number == "unfit":
            if value == value and abs(value) < 99999:  # noqa: PLR0124  # NaN
                assert not rounds
                assert float(Decimal(repr(value)).quantize(Decimal("0.01"), ROUND_HALF_UP, Context(prec=400))) != value
        elif rounds:
            assert abs(Fraction(number) - Fraction(value)) <= Fraction(1, 200)
        else:
            assert float(number) == value


@pytest.mark.parametrize("arrow_type", [pa.float16(), pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("rounds", [False, True])
def test_floats_of_every_width_become_numbers(arrow_type, rounds):
    column = pa.array(np.array([0.1, 2, 2.25, 70, np.nan, np.inf], np.float16), pa.float16()).cast(arrow_type)
    fits_short = arrow_type == pa.float16() or rounds  # 0.1 of 16 bits is another number in more bits
    values, unfit = cast_column(column, parse_ddl("d DECIMAL(3, 2)")[0].type, rounds=rounds)
    assert values.to_pylist() == [Decimal("0.10") if fits_short else None, Decimal("2.00"), Decimal("2.25"), None, None, None]
    assert unfit.tolist() == [not fits_short, False, False, True, True, True]
    values, unfit = cast_column(column, parse_ddl("n INT")[0].type, rounds=rounds)
    assert values.to_pylist() == ([0, 2, 2, 70, None, None] if rounds else [None, 2, None, 70, None, None])
    assert unfit.tolist() == [not rounds, False, not rounds, False, True, True]


@pytest.fixture
def table(table_root) -> Table:
    made = keyed(f"{table_root}/t", "id BIGINT, n INT, d DATE, price DECIMAL(6, 2)")
    made.write({"id": [1], "n": [1], "d": [None], "price": [None]})
    return made


FIRST = (1, 1, None, None)
GOOD = {"id": ["2", "3"], "n": ["7", " 8"], "d": ["2024-01-31", None], "price": ["1.5", "2"]}
AS_CAST = [(2, 7, dt.date(2024, 1, 31), Decimal("1.50")), (3, 8, None, Decimal("2.00"))]
BAD = {"id": ["2", "3", "4"], "n": ["7", "x", "8"], "d": ["2024-01-31", "2024-02-31", None], "price": ["1.5", "2.555", "2"]}


@pytest.mark.parametrize(
    "make", [dict, pa.table, pd.DataFrame, lambda data: [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]]
)
def test_rows_of_any_kind_are_cast(table, make):
    with pytest.raises(SchemaMismatch):
        table.write(make(GOOD))
    table.write(make(GOOD), cast=True)
    assert tuples(table) == [FIRST, *AS_CAST]


def test_a_value_that_does_not_fit_is_an_error_with_its_row(table):
    with pytest.raises(SchemaMismatch, match=r"row 1: column 'n': 'x' is not a valid INT; nothing was committed. errors='null'"):
        table.write(BAD, cast=True)
    batches = [
        pa.record_batch({"id": ["5"], "n": ["1"], "d": ["2024-01-01"], "price": ["1"]}),
        pa.record_batch({"id": ["6"], "n": ["1"], "d": ["2024-01-01"], "price": ["1.555"]}),
    ]
    with pytest.raises(SchemaMismatch, match=r"row 1: column 'price': '1.555' is not a valid DECIMAL\(6, 2\).*cast='round'"):
        table.write(batches, cast=True)
    assert tuples(table) == [FIRST]


def test_values_that_do_not_fit_become_null(table):
    done = table.write(BAD, cast=True, errors="null")
    assert (done.rows, done.rejected) == (3, None)
    assert tuples(table)[1:] == [AS_CAST[0], (3, None, None, None), (4, 8, None, Decimal("2.00"))]
    with pytest.raises(NullInKey):
        table.write({"id": ["x"], "n": ["1"], "d": [None], "price": [None]}, cast=True, errors="null")


def test_rows_that_do_not_fit_are_collected(table):
    done = table.write(BAD, cast="round", errors="collect")
    assert tuples(table)[1:] == [AS_CAST[0], (4, 8, None, Decimal("2.00"))]
    assert done.rejected.to_pylist() == [
        {
            "id": "3",
            "n": "x",
            "d": "2024-02-31",
            "price": "2.555",
            "_error": "column 'n': 'x' is not a valid INT; column 'd': '2024-02-31' is not a valid DATE",
        }
    ]
    assert str(done).endswith("1 row rejected")
    assert "rejected" not in done.model_dump(mode="json")
    assert table.write(GOOD, cast=True, errors="collect").rejected is None


def test_rows_of_polars_are_collected(table_root):
    made = Table.create(f"{table_root}/t", "id INT, s VARCHAR(3)")
    done = made.write(pl.DataFrame({"id": ["1", "2", "x"], "s": ["abc", "abcd", "ab"]}), cast=True, errors="collect")
    assert done.rejected["_error"].to_pylist() == ["column 's': 'abcd' is not a valid VARCHAR(3)", "column 'id': 'x' is not a valid INT"]
    assert tuples(made) == [(1, "abc")]


def test_rows_with_a_bad_value_inside_are_collected(table_root):
    made = Table.create(f"{table_root}/t", "id INT, a ARRAY<VARCHAR(2)>, r ROW<n TINYINT NOT NULL, m MAP<STRING, BINARY(1)>>")
    nested = pa.schema(
        {"id": pa.string(), "a": pa.list_(pa.string()), "r": pa.struct({"n": pa.int64(), "m": pa.map_(pa.string(), pa.binary())})}
    )
    good = [
        {"id": "1", "a": ["ab", None], "r": {"n": 127, "m": {"k": b"1"}}},
        {"id": "2", "a": None, "r": None},
        {"id": "3", "a": [], "r": {"n": 0, "m": None}},
    ]
    bad = [
        {"id": "4", "a": ["a", "abc"], "r": None},
        {"id": "5", "a": [], "r": {"n": None, "m": {}}},
        {"id": "6", "a": [], "r": {"n": 128, "m": {}}},
        {"id": "7", "a": [], "r": {"n": 1, "m": {"k": b"1", "l": b"12"}}},
    ]
    mixed = [row for pair in itertools.zip_longest(good, bad) for row in pair if row]
    done = made.write(pa.Table.from_pylist(mixed, nested), cast=True, errors="collect")
    assert sorted(made.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert done.rejected.drop_columns(["_error"]).to_pylist() == pa.Table.from_pylist(bad, nested).to_pylist()
    assert done.rejected["_error"][0].as_py() == "column 'a': ['a', 'abc'] is not a valid ARRAY<VARCHAR(2)>"
    with pytest.raises(SchemaMismatch, match="Arrow list"):
        made.write(pa.table({"id": ["1"], "a": [[{"x": 1}]]}), cast=True, errors="collect")


@pytest.mark.parametrize("count", [50, 500])
def test_reasons_of_many_rows_show_the_first_values(table_root, monkeypatch, count):
    made, texts = Table.create(f"{table_root}/t", "id INT NOT NULL, a ARRAY<VARCHAR(2)>"), []
    reason = requested_cast._reason
    monkeypatch.setattr(requested_cast, "_reason", lambda *arguments: texts.append(arguments) or reason(*arguments))
    ids = ["x" if row % 2 else None for row in range(count)]
    with use_thresholds(shown_values=3):
        done = made.write(pa.table({"id": ids, "a": [["abc"]] * count}), cast=True, errors="collect")
    reasons = done.rejected["_error"].to_pylist()
    null, text = "column 'id' has a null, but is INT NOT NULL; column 'a': ", "column 'id': {} is not a valid INT; column 'a': "
    assert reasons[:2] == [
        f"{null}['abc'] is not a valid ARRAY<VARCHAR(2)>",
        f"{text.format(repr('x'))}['abc'] is not a valid ARRAY<VARCHAR(2)>",
    ]
    assert reasons[-2:] == [
        f"{null}the value is not a valid ARRAY<VARCHAR(2)>",
        f"{text.format('the value')}the value is not a valid ARRAY<VARCHAR(2)>",
    ]
    assert len(reasons) == count
    assert len(texts) <= 10
    assert made.count() == 0


def test_casts_combine_with_kept_and_new_columns(table):
    table.write({"id": ["1"], "n": ["9"], "note": ["x"]}, cast=True, missing="keep", schema_mode="merge")
    assert table.lookup([1]).to_pylist() == [{"id": 1, "n": 9, "d": None, "price": None, "note": "x"}]
    table.write({"id": ["1"], "_row_kind": ["-D"]}, cast=True)
    assert tuples(table) == []


SINGLE = [0.1, 1 / 3, -0.0, float("inf"), None, 3.4e38]
"""Doubles that a FLOAT takes by its nearest number."""


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("wrap", ["{}", "ARRAY<{}>", "ROW<f {}>", "MAP<STRING, {}>", "ARRAY<ROW<f ARRAY<{}>>>"])
def test_floats_take_doubles_also_inside(wrap, rounds):
    shapes = {
        "{}": lambda value: value,
        "ARRAY<{}>": lambda value: None if value is None else [value, 0.5],
        "ROW<f {}>": lambda value: None if value is None else {"f": value},
        "MAP<STRING, {}>": lambda value: None if value is None else [("k", value)],
        "ARRAY<ROW<f ARRAY<{}>>>": lambda value: None if value is None else [{"f": [value]}, {"f": None}, None],
    }
    wanted = parse_ddl(f"c {wrap.format('FLOAT')}")[0].type
    given = parse_ddl(f"c {wrap.format('DOUBLE')}")[0].type.arrow
    values = [shapes[wrap](value) for value in [*SINGLE, 1e300]]
    column = pa.array([*values, *values], given).slice(3, 7)
    made, unfit = cast_column(column, wanted, rounds=rounds)
    nearest = [shapes[wrap](None if value is None else float(np.float32(value))) for value in SINGLE]
    kept = [value for value, wrong in zip(made.to_pylist(), unfit, strict=True) if not wrong]
    assert repr(kept) == repr([*nearest[3:], *nearest[:3]])
    assert np.flatnonzero(unfit).tolist() == [3], "1e300 is no FLOAT"


@pytest.mark.parametrize("errors", ["null", "collect"])
@pytest.mark.parametrize("given", ["dicts", "arrow", "views"])
def test_values_that_are_too_long_do_not_refuse_the_whole_write(tmp_path, errors, given):
    made = Table.create(tmp_path / "t", "id INT, s VARCHAR(3), b VARBINARY(2), l ARRAY<VARCHAR(3)>, d INT")
    good = {"id": 1, "s": "abc", "b": b"ab", "l": ["abc"], "d": 1}
    bad = [
        {**good, "id": 2, "s": "abcd"},
        {**good, "id": 3, "b": b"abc"},
        {**good, "id": 4, "l": ["a", "abcd"]},
        {**good, "id": 5, "d": "x"},
    ]
    data: Any = [{**row, "d": str(row["d"])} for row in [good, *bad]]
    if given != "dicts":
        data = pa.Table.from_pylist(data)
    if given == "views":
        data = data.cast(pa.schema([one.with_type(pa.string_view()) if pa.types.is_string(one.type) else one for one in data.schema]))
    done = made.write(data, cast=True, errors=errors)
    stored = sorted(made.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    if errors == "collect":
        assert stored == [good]
        assert done.rejected["id"].to_pylist() == [2, 3, 4, 5]
        assert all("is no" in reason for reason in done.rejected["_error"].to_pylist())
    else:
        assert stored == [good, *({**row, name: None} for row, name in zip(bad, "sbl", strict=False)), {**bad[3], "d": None}]
    with pytest.raises(SchemaMismatch, match="is not a valid INT"):
        made.write(data, cast=True)


def test_arguments(table):
    with pytest.raises(InvalidArgument, match="errors must be one of raise, null, collect"):
        table.write(GOOD, cast=True, errors="ignore")
    with pytest.raises(InvalidArgument, match="give cast=True"):
        table.write(GOOD, errors="null")
    with pytest.raises(InvalidArgument, match="True, False or 'round'"):
        table.write(GOOD, cast="floor")
    with pytest.raises(SchemaMismatch, match="'n'"):
        table.write({"id": [1], "n": [b"x"], "d": [None], "price": [None]}, cast=True)


@pytest.mark.parametrize("errors", ["null", "collect"])
def test_a_value_without_an_own_cast_is_treated_like_those_inside_lists(tmp_path, errors):
    made = Table.create(f"{tmp_path}/t", "id INT, t TIMESTAMP(3), l ARRAY<TIMESTAMP(3)>")
    good, fine = dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)  # wall clocks
    rows = pa.table({"id": [1, 2, 3], "t": [good, fine, good], "l": [[good], [good], [fine]]})
    result = made.write(rows, cast=True, errors=errors)
    if errors == "collect":
        assert (tuples(made), result.rejected["id"].to_pylist()) == ([(1, good, [good])], [2, 3])
    else:
        assert tuples(made) == [(1, good, [good]), (2, None, [good]), (3, good, None)]
