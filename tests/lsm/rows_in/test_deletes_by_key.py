"""A delete needs its key alone: columns that are NOT NULL get their default or zero, other rows stay as they are."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from lsm.rows_in.conform import complete_deletes
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from manifest.schema.validation import build_schema
from manifest.types.data_type import DataField, DataType

INSERT, DELETE = 0, 3


def schema_of(columns: str, **options: str) -> TableSchema:
    return build_schema(f"id INT, {columns}", primary_keys=["id"], options={"bucket": "1", **options})


@pytest.mark.parametrize(
    ("column_type", "zero"),
    [
        ("BOOLEAN", False),
        ("TINYINT", 0),
        ("BIGINT", 0),
        ("DOUBLE", 0.0),
        ("DECIMAL(10, 2)", Decimal("0.00")),
        ("STRING", ""),
        ("CHAR(3)", ""),
        ("BYTES", b""),
        ("VARBINARY(3)", b""),
        ("DATE", date(1970, 1, 1)),
        ("TIME(3)", time(0)),
        ("TIMESTAMP(6)", datetime(1970, 1, 1)),  # noqa: DTZ001  # a wall clock
        ("TIMESTAMP_LTZ(3)", datetime(1970, 1, 1, tzinfo=UTC)),
        ("ARRAY<INT NOT NULL>", []),
        ("MAP<STRING, INT>", []),
        ("ROW<a INT NOT NULL, b ROW<c STRING NOT NULL>>", {"a": 0, "b": {"c": ""}}),
    ],
)
def test_a_column_that_must_have_a_value_gets_the_zero_of_its_type(column_type: str, zero: object) -> None:
    done = complete_deletes(pa.table({"id": [1, 2]}), schema_of(f"v {column_type} NOT NULL"), [DELETE, DELETE])
    assert done["v"].to_pylist() == [zero, zero]


def test_a_vector_gets_as_many_zeros_as_it_has_elements() -> None:
    vector = DataField(1, "v", DataType.from_json({"type": "VECTOR NOT NULL", "element": "FLOAT", "length": 3}))
    schema = schema_of("v INT NOT NULL")
    schema = schema.model_copy(update={"fields": (schema.fields[0], vector)})
    assert complete_deletes(pa.table({"id": [1]}), schema, [DELETE])["v"].to_pylist() == [[0.0, 0.0, 0.0]]


def test_a_default_comes_before_zero_and_what_may_be_null_is_left_out() -> None:
    schema = schema_of("n INT NOT NULL, may INT")
    number = replace(schema.field("n"), default_value="7")
    schema = schema.model_copy(update={"fields": (schema.field("id"), number, schema.field("may"))})
    assert complete_deletes(pa.table({"id": [1]}), schema, [DELETE]).to_pylist() == [{"id": 1, "n": 7}]


@pytest.mark.parametrize("form", ["plain", "chunks", "dictionary", "large", "view", "dictionary of large"])
def test_only_nulls_of_deletes_are_filled(form: str) -> None:
    values = pa.array(["a", None, None, "d", None])
    column = {
        "plain": values,
        "chunks": pa.chunked_array([values[:2], values[2:2], values[2:4], values[4:]]),
        "dictionary": values.dictionary_encode(),
        "large": values.cast(pa.large_string()),
        "view": values.cast(pa.string_view()),
        "dictionary of large": values.cast(pa.large_string()).dictionary_encode(),
    }[form]
    rows = pa.table({"id": [1, 2, 3, 4, 5], "s": column})
    done = complete_deletes(rows, schema_of("s STRING NOT NULL"), [INSERT, DELETE, INSERT, DELETE, DELETE])
    assert done["s"].to_pylist() == ["a", "", None, "d", ""]


@pytest.mark.parametrize(
    ("column_type", "arrow_type", "value", "zero"),
    [
        ("BYTES", pa.binary_view(), b"a", b""),
        ("ARRAY<STRING>", pa.list_(pa.string_view()), ["a", None], []),
        ("ARRAY<STRING>", pa.list_view(pa.string_view()), ["a", None], []),
        ("ARRAY<BIGINT>", pa.large_list_view(pa.int64()), [1, None], []),
        ("ROW<s STRING>", pa.struct([("s", pa.string_view())]), {"s": "a"}, {"s": ""}),
        ("MAP<STRING, BYTES>", pa.map_(pa.string_view(), pa.binary_view()), [("a", b"b")], []),
    ],
    ids=str,
)
def test_nulls_of_deletes_are_filled_in_types_that_arrow_cannot_take(
    column_type: str, arrow_type: pa.DataType, value: object, zero: object
) -> None:
    rows = pa.table({"id": [1, 2], "v": pa.array([value, None], arrow_type)})
    done = complete_deletes(rows, schema_of(f"v {column_type} NOT NULL"), [INSERT, DELETE])
    assert done["v"].to_pylist() == [value, zero]


def test_a_column_of_nulls_alone_is_filled() -> None:
    rows = pa.table({"id": [1, 2], "n": pa.nulls(2)})
    assert complete_deletes(rows, schema_of("n INT NOT NULL"), [DELETE, INSERT])["n"].to_pylist() == [0, None]


def test_a_missing_column_stays_missing_where_a_row_is_no_delete() -> None:
    rows = pa.table({"id": [1, 2]})
    assert complete_deletes(rows, schema_of("n INT NOT NULL"), [DELETE, INSERT]) == rows


@pytest.mark.parametrize(
    ("engine", "filled"),
    [
        ({}, True),
        ({"ignore-delete": "true"}, True),
        ({"changelog-producer": "input"}, False),
        ({"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}, True),
        ({"merge-engine": "aggregation"}, False),
    ],
)
def test_rows_are_filled_where_nothing_depends_on_what_a_delete_holds(engine: dict[str, str], *, filled: bool) -> None:
    done = complete_deletes(pa.table({"id": [1], "n": pa.array([None], pa.int32())}), schema_of("n INT NOT NULL", **engine), [DELETE])
    assert done["n"].to_pylist() == [0 if filled else None]


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_the_kinds_may_be_a_column_of_text(text: pa.DataType) -> None:
    schema = schema_of("op STRING, n INT NOT NULL", **{"rowkind.field": "op"})
    rows = pa.table({"id": [1, 2, 3], "op": pa.array(["+I", "-D", None], text), "n": pa.array([None, None, None], pa.int32())})
    assert complete_deletes(rows, schema)["n"].to_pylist() == [None, 0, None]
    assert complete_deletes(rows.drop_columns("op"), schema)["n"].to_pylist() == [None] * 3


def test_a_delete_needs_what_says_whether_it_is_newer() -> None:
    schema = schema_of("at BIGINT NOT NULL, n INT NOT NULL", **{"sequence.field": "at"})
    with pytest.raises(SchemaMismatch, match="'at' is missing"):
        complete_deletes(pa.table({"id": [1]}), schema, [DELETE])
    done = complete_deletes(pa.table({"id": [1], "at": [5]}), schema, [DELETE])
    assert done.to_pylist() == [{"id": 1, "at": 5, "n": 0}]


def test_rows_without_a_primary_key_are_left_as_they_are() -> None:
    rows = pa.table({"n": pa.array([None], pa.int32())})
    assert complete_deletes(rows, build_schema("n INT NOT NULL"), [DELETE]) == rows
