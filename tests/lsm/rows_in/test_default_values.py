"""Default values: text in the schema, a value where a row has null; what cannot be read as other engines do is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lsm.rows_in.conform import conform
from manifest.io.errors import InvalidSchema, NullInKey, UnsupportedTable
from manifest.schema.table_schema import TableSchema
from manifest.schema.validation import build_schema
from manifest.types.data_type import DataField, DataType, default_scalar

WHEN = dt.datetime.fromisoformat("2024-01-31T10:11:12.500")
ENGINE_READS: list[tuple[Any, str, object]] = [
    ("STRING", " ab c ", " ab c "),
    ("CHAR(3)", "abc", "abc"),
    ("BYTES", "xyz", b"xyz"),
    ("BOOLEAN", "true", True),
    ("INT", "42", 42),
    ("BIGINT", " -7 ", -7),
    ("FLOAT", "1e3", 1000.0),
    ("DECIMAL(10, 2)", "1.5", Decimal("1.50")),
    ("DATE", "2024-01-31", dt.date(2024, 1, 31)),
    ("TIMESTAMP(6)", "2024-01-31 10:11:12.5", WHEN),
]
REFUSED: list[tuple[Any, str]] = [
    ("INT", "4x"),
    ("TINYINT", "300"),
    ("DECIMAL(10, 2)", "1.555"),
    ("BOOLEAN", "perhaps"),
    ("VARCHAR(2)", "abc"),
    ("DATE", "31.01.2024"),
    ("TIMESTAMP(6)", "2024-01-31 10:11:12Z"),
    ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "2024-01-31 10:11:12"),
    ({"type": "ARRAY", "element": "INT"}, "[1, 2]"),
]


def field(json: object, text: str | None) -> DataField:
    return DataField(1, "c", DataType.from_json(json), default_value=text)


def schema(column: DataField) -> TableSchema:
    return TableSchema(id=0, fields=(DataField(0, "id", DataType.from_json("INT")), column))


@pytest.mark.parametrize(("json", "text", "value"), ENGINE_READS, ids=str)
def test_a_null_becomes_the_default_value(json: object, text: str, value: object) -> None:
    column = field(json, text)
    rows = pa.table({"id": [1, 2, 3], "c": pa.array([None, value, None], column.type.arrow)})
    assert conform(rows, schema(column)).column("c").to_pylist() == [value] * 3


def test_columns_without_default_keep_their_nulls() -> None:
    assert default_scalar(field("INT", None)) is None
    rows = pa.table({"id": [1], "c": pa.array([None], pa.int32())})
    assert conform(rows, schema(field("INT", None))).column("c").null_count == 1


@pytest.mark.parametrize(("json", "text"), REFUSED, ids=str)
def test_text_that_is_no_value_is_refused_where_a_null_needs_it(json: object, text: str) -> None:
    column = field(json, text)
    with pytest.raises(InvalidSchema, match="'c'"):
        build_schema([column])
    nulls = pa.table({"id": [1], "c": pa.array([None], column.type.arrow)})
    with pytest.raises(UnsupportedTable, match="'c'"):
        conform(nulls, schema(column))
    assert conform(nulls.slice(0, 0), schema(column)).num_rows == 0


def test_a_null_in_a_not_null_column_stays_an_error() -> None:
    with pytest.raises(NullInKey, match="'c'"):
        conform(pa.table({"id": [1], "c": pa.array([None], pa.int32())}), schema(field("INT NOT NULL", "7")))
