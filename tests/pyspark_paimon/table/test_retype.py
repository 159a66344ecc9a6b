"""Changes of a column's type: every value survives, or the call is refused and says how many would not."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest

from manifest.types.cast_rules import Cast, cast_of, keeps_values
from manifest.types.ddl import parse_ddl
from pyspark_paimon import CastFailed, InvalidArgument, InvalidSchema, PaimonError, Table
from tests.build import keyed

YEAR_1, YEAR_9999 = dt.datetime.fromisoformat("0001-01-01T00:00:00.001"), dt.datetime.fromisoformat("9999-12-31T23:59:59.999")
BEFORE_1970 = dt.datetime.fromisoformat("1969-12-31T23:59:59.999")
EXTREMES = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 127],
    "SMALLINT": [-(2**15), 2**15 - 1],
    "INT": [-(2**31), 2**31 - 1, 2**24 + 1],
    "BIGINT": [-(2**63), 2**63 - 1, 2**53 + 1],
    "FLOAT": [-0.0, 3.4028234663852886e38, 1.401298464324817e-45, float("nan"), float("inf")],
    "DOUBLE": [0.1, -1.7976931348623157e308, 5e-324, -2.2250738585072014e-308, float("nan"), float("-inf")],
    "DECIMAL(2, 2)": [Decimal("-0.99")],
    "DECIMAL(5, 0)": [Decimal(-99999)],
    "DECIMAL(5, 2)": [Decimal("-999.99"), Decimal("0.01")],
    "DECIMAL(18, 0)": [Decimal(10**18 - 1)],
    "DECIMAL(19, 0)": [Decimal(10**19 - 1)],
    "DECIMAL(38, 0)": [Decimal(10**38 - 1)],
    "DECIMAL(38, 38)": [Decimal("-0." + "9" * 38)],
    "CHAR(3)": ["abc", "\u00e9\u00e4\u00fc"],
    "CHAR(5)": ["abcde"],
    "VARCHAR(3)": ["", "a ", "\U0001f600" * 3],
    "VARCHAR(12)": ["x" * 12],
    "VARCHAR(40)": ["x" * 40],
    "STRING": ["y" * 50, "12", "12.5"],
    "BINARY(3)": [b"abc"],
    "BINARY(5)": [b"abcde"],
    "VARBINARY(3)": [b"", b"a\0", b"\xff"],
    "VARBINARY(12)": [b"x" * 12],
    "BYTES": [b"x" * 50, b"\xff"],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31)],
    "TIME(0)": [dt.time(23, 59, 59)],
    "TIME(3)": [dt.time(23, 59, 59, 999000)],
    "TIMESTAMP(0)": [moment.replace(microsecond=0) for moment in (YEAR_1, YEAR_9999, BEFORE_1970)],
    "TIMESTAMP(3)": [YEAR_1, YEAR_9999, BEFORE_1970],
    "TIMESTAMP(6)": [moment.replace(microsecond=1) for moment in (YEAR_1, YEAR_9999, BEFORE_1970)],
    "TIMESTAMP(9)": [dt.datetime.fromisoformat("2000-01-01T00:00:00.000001")],
    "TIMESTAMP_LTZ(3)": [YEAR_1, YEAR_9999],
    "TIMESTAMP_LTZ(6)": [YEAR_1.replace(microsecond=1)],
}
"""The values of each type that are the first to be lost."""
SHAPES = {
    "column": ("{}", lambda value: value),
    "list": ("ARRAY<{}>", lambda value: [value]),
    "field": ("ROW<f {}>", lambda value: {"f": value}),
    "map": ("MAP<STRING, {}>", lambda value: [("k", value)]),
}


def type_of(text: str):
    return parse_ddl(f"c {text}")[0].type


def shown(values) -> list[str]:
    return [repr(value) for value in values]


def read(table: Table, options=None) -> list[str]:
    return shown(table.scan(columns=["v"], order_by="id").to_arrow()["v"].to_pylist())


@pytest.mark.slow("STRING", "CHAR(5)", "CHAR(3)", "VARCHAR(40)", "VARCHAR(12)", "VARCHAR(3)", "BIGINT", "INT")  # widths cross all values
@pytest.mark.parametrize("old", EXTREMES)
def test_every_value_survives_a_change_of_type_or_it_is_refused(old, tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    values = EXTREMES[old]
    shape = list(SHAPES)[list(EXTREMES).index(old) % len(SHAPES)]
    ddl, wrap = SHAPES[shape]
    for number, new in enumerate(EXTREMES):
        before, after = type_of(old), type_of(new)
        if cast_of(before, after) is Cast.NONE or old == new:
            continue
        rows = pa.table({"id": pa.array(range(len(values)), pa.int32()), "v": pa.array(map(wrap, values), type_of(ddl.format(old)).arrow)})
        table = Table.create(tmp_path / f"t{number}", f"id INT, v {ddl.format(old)}")
        table.write(rows)
        stored, schema = read(table), table.table_schema
        counted = table.change_type("v", ddl.format(new), dry_run=True)
        assert (counted.values, table.table_schema) == (len(values), schema)
        try:
            table.change_type("v", ddl.format(new))
        except InvalidSchema as refused:
            text = str(refused)
        else:
            assert (counted.changed, counted.unreadable) == (0, 0), (old, new)
            read(table)
            table.change_type("v", ddl.format(old), force=True)
            assert read(table) == stored, (old, new)
            continue
        assert "'v'" in text
        assert "force=True" in text
        assert table.table_schema == schema
        assert read(table) == stored
        table.change_type("v", ddl.format(new), force=True)
        if counted.unreadable:
            with pytest.raises(CastFailed, match=r"column 'v'.*call change_type\('v', '.*', force=True\)"):
                read(table)
        else:
            read(table)
        if cast_of(after, before) is not Cast.NONE:
            table.change_type("v", ddl.format(old), force=True)
            assert read(table) == stored, "the files still have the values"


def test_the_types_of_all_pairs_are_compared_with_a_model():
    for old, new in product(EXTREMES, EXTREMES):
        if keeps_values(type_of(old), type_of(new)):
            assert old == new or cast_of(type_of(old), type_of(new)) is not Cast.NONE


@pytest.fixture
def table(tmp_path) -> Table:
    made = keyed(tmp_path / "t", "id BIGINT, big BIGINT, city STRING, l ARRAY<STRING>")
    made.write({"id": [1, 2, 3], "big": [5, 5_000_000_000, None], "city": ["7", "7.5", "Oslo"], "l": [["1", "x"], [], None]})
    return made


def test_a_dry_run_counts_what_would_change_or_break(table):
    assert table.change_type("big", "INT", dry_run=True).model_dump() == {"values": 2, "changed": 1, "unreadable": 0}
    assert table.change_type("city", "INT", dry_run=True).model_dump() == {"values": 3, "changed": 1, "unreadable": 1}
    assert table.change_type("l", "ARRAY<INT>", dry_run=True).model_dump() == {"values": 2, "changed": 0, "unreadable": 1}
    assert table.change_type(["l", "element"], "INT", dry_run=True).unreadable == 1
    assert table.schemas().num_rows == 1
    with pytest.raises(InvalidArgument, match="dry_run"):
        table.alter(lambda t: t.change_type("city", "INT", dry_run=True))


def test_a_text_that_became_a_date_goes_back_to_a_text(tmp_path):
    table = Table.create(tmp_path / "t", "id INT, v VARCHAR(3)")
    table.write({"id": [1], "v": ["abc"]})
    table.change_type("v", "DATE", force=True)
    with pytest.raises(CastFailed, match=r"change_type\('v', 'STRING', force=True\)"):
        table.scan().to_arrow()
    assert table.change_type("v", "STRING").scan().to_arrow()["v"].to_pylist() == ["abc"]


def test_an_empty_table_takes_any_type(tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, n BIGINT")
    assert str(table.change_type("n", "INT").table_schema.field("n").type) == "INT"


def test_a_type_is_compared_with_all_that_its_column_has_had(table):
    table.change_type("big", "STRING")
    with pytest.raises(InvalidSchema, match="of BIGINT"):
        table.alter(lambda t: t.change_type("big", "BYTES"))
    table.change_type("big", "BIGINT", force=True)
    assert table.scan("id = 2").to_arrow()["big"].to_pylist() == [5_000_000_000]


def test_an_unreadable_table_says_so_everywhere(table):
    table.change_type("city", "INT", force=True)
    import polars as pl

    way = r"change_type\('city', 'STRING', force=True\)"
    for ask in (lambda: table.scan().to_arrow(), lambda: pa.table(table), lambda: pl.DataFrame(table), lambda: table.head(1)):
        with pytest.raises(PaimonError, match=way):
            ask()
    problems = table.fsck("deep").problems
    assert [str(problem.kind) for problem in problems] == ["data-file"]
    assert "change_type('city', 'STRING', force=True)" in str(problems[0])
    table.change_type("city", "STRING", force=True)
    assert pa.table(table)["city"].to_pylist() == ["7", "7.5", "Oslo"]
    assert not table.fsck("deep").problems


def test_a_forced_change_speaks_for_no_other_column(tmp_path):
    table = Table.create(tmp_path / "t", "id INT, a BIGINT, b BIGINT, r ROW<x BIGINT, y BIGINT>")
    table.write({"id": [1], "a": [5], "b": [5_000_000_000], "r": [{"x": 5, "y": 5_000_000_000}]})
    for other in ("b", ["r", "y"]):
        with pytest.raises(InvalidSchema, match="Nothing was changed"):
            table.alter(lambda t, other=other: t.change_type(["r", "x"], "INT", force=True).change_type(other, "INT"))
    assert table.schemas().num_rows == 1
    table.change_type(["r", "x"], "INT", force=True)
    table.add_column(["r", "z"], "INT")  # changes no stored value
    assert table.scan().to_arrow()["r"].to_pylist() == [{"x": 5, "y": 5_000_000_000, "z": None}]


def test_a_dropped_column_comes_back_with_no_narrower_type(tmp_path):
    table = Table.create(tmp_path / "t", "id INT, n INT")
    narrow = table.table_schema
    wide = table.change_type("n", "BIGINT").table_schema
    table.write({"id": [1], "n": [5_000_000_000]})
    table.drop_column("n")
    with pytest.raises(InvalidSchema, match="Bring it back as BIGINT"):
        table.replace_columns(narrow)
    assert table.replace_columns(wide).scan().to_arrow()["n"].to_pylist() == [5_000_000_000]
