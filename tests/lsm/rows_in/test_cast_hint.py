"""What an error says about rows that do not fit is code that makes them fit."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lsm.rows_in.conform import conform
from manifest.io.errors import SchemaMismatch
from manifest.schema.validation import build_schema
from sparkexpr.values.column_type import Kind

SCHEMA = build_schema(
    "i INT, l BIGINT, s STRING, dec DECIMAL(10, 2), f FLOAT, d DOUBLE, b BOOLEAN, day DATE, ts TIMESTAMP(3), at TIMESTAMP_LTZ(6), bin BYTES"
)
UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("i", pa.array(["7"])),
        ("i", pa.array([1.5])),
        ("i", pa.array([Decimal("7.5")])),
        ("l", pa.array(["7"])),
        ("s", pa.array([7])),
        ("s", pa.array([1.5])),
        ("dec", pa.array(["1.25"])),
        ("dec", pa.array([1.255])),
        ("dec", pa.array([Decimal("1.255")])),
        ("f", pa.array([0.1])),
        ("d", pa.array(["0.1"])),
        ("b", pa.array([1])),
        ("b", pa.array(["true"])),
        ("day", pa.array(["2024-01-31"])),
        ("day", pa.array([19000])),
        ("day", pa.array([1_706_659_200_000_001], pa.timestamp("us"))),
        ("ts", pa.array(["2024-01-31 10:00:00"])),
        ("ts", pa.array([1_706_659_200_000])),
        ("ts", pa.array([1000], UTC)),
        ("at", pa.array([1], pa.timestamp("us"))),
        ("bin", pa.array(["x"])),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.type),
)
def test_the_cast_in_the_error_makes_the_rows_fit(name: str, values: pa.Array) -> None:
    rows = pa.table({name: values})
    with pytest.raises(SchemaMismatch, match="cast like this") as caught:
        conform(rows, SCHEMA)
    said = re.search(r"cast like this: (.*)$", str(caught.value))
    assert said is not None
    cast = eval(said[1], {"rows": rows, "pa": pa, "pc": pc})
    assert conform(pa.table({name: cast}), SCHEMA).num_rows == 1


def test_a_number_that_is_too_large_needs_a_wider_column() -> None:
    with pytest.raises(SchemaMismatch, match="wider type"):
        conform(pa.table({"i": [2**40]}), SCHEMA)
    assert Kind.INT is SCHEMA.field("i").type.kind
