"""Arrow arrays from outside are checked before a byte is written: a damaged one is refused by row and column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.rows_in.arrow import ArrowRows
from lsm.rows_in.check import check_rows, validate_rows
from manifest.io.errors import SchemaMismatch
from pyspark_paimon import Table

Damaged = Callable[[int, int], pa.Array]
"""An array of so many values of which one, by its place, is damaged."""


def of_buffers(kind: pa.DataType, values: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values.tobytes())])


def texts(kind: pa.DataType, as_bytes: pa.DataType) -> Damaged:
    def made(length: int, place: int) -> pa.Array:
        held = pa.array([b"\xff long enough for a buffer" if at == place else b"x" for at in range(length)], as_bytes)
        return pa.Array.from_buffers(kind, length, held.buffers())

    return made


def numbers(kind: pa.DataType, dtype: str, good: int, bad: int) -> Damaged:
    return lambda length, place: of_buffers(kind, np.array([bad if at == place else good for at in range(length)], dtype))


def decimals(kind: pa.DataType, wide: pa.DataType) -> Damaged:
    def made(length: int, place: int) -> pa.Array:
        held = pa.array([10**6 if at == place else 1 for at in range(length)]).cast(wide)
        return pa.Array.from_buffers(kind, length, held.buffers())

    return made


def indices(length: int, place: int, bad: int = 7) -> pa.Array:
    codes = pa.array([bad if at == place else 0 for at in range(length)], pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False)


def entries(length: int, place: int) -> pa.Array:
    held = pa.Array.from_buffers(pa.string(), 2, pa.array([b"x", b"y" if place < 0 else b"\xff"]).buffers())
    return pa.DictionaryArray.from_arrays(pa.array([int(at == place) for at in range(length)], pa.int32()), held)


KINDS: dict[str, Damaged] = {
    "text": texts(pa.string(), pa.binary()),
    "large text": texts(pa.large_string(), pa.large_binary()),
    "text view": texts(pa.string_view(), pa.binary_view()),
    "time in ms": numbers(pa.time32("ms"), "int32", 0, 25 * 3_600_000),
    "time in us": numbers(pa.time64("us"), "int64", 0, -1),
    "decimal": decimals(pa.decimal128(3, 1), pa.decimal128(20, 0)),
    "wide decimal": decimals(pa.decimal256(3, 1), pa.decimal256(20, 0)),
    "short decimal": numbers(pa.decimal64(3, 1), "int64", 1, 10**6),
    "dictionary index": indices,
    "negative dictionary index": lambda length, place: indices(length, place, -1),
    "dictionary entry": entries,
}


def in_lists(array: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array)


WRAPS: dict[str, tuple[Callable[[pa.Array], pa.Array], str]] = {
    "plain": (lambda array: array, ""),
    "list": (in_lists, "[]"),
    "large list": (lambda array: pa.LargeListArray.from_arrays(pa.array(range(len(array) + 1)), array), "[]"),
    "fixed list": (lambda array: pa.FixedSizeListArray.from_arrays(array, 1), "[]"),
    "row": (lambda array: pa.StructArray.from_arrays([pa.nulls(len(array), pa.int8()), array], ["a", "b"]), ".b"),
    "map": (
        lambda array: pa.MapArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), pa.array(["k"] * len(array)), array),
        "[value]",
    ),
    "rows in lists": (lambda array: in_lists(pa.StructArray.from_arrays([array], ["b"])), "[].b"),
}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_value_is_refused_by_row_and_path(kind: str, wrap: str) -> None:
    wrapped, path = WRAPS[wrap]
    whole = wrapped(KINDS[kind](9, 5))
    with pytest.raises(SchemaMismatch) as caught:
        validate_rows(pa.table({"v": pa.chunked_array([wrapped(KINDS[kind](4, -1)), whole])}), 100)
    assert f"column 'v{path}', row 109: the Arrow array is damaged" in str(caught.value)


@given(st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(WRAPS)), st.integers(1, 20), st.data())
def test_a_slice_is_refused_if_it_holds_the_damage(kind: str, wrap: str, length: int, data: st.DataObject) -> None:
    place = data.draw(st.integers(-1, length - 1))
    start = data.draw(st.integers(0, length - 1))
    stop = data.draw(st.integers(start + 1, length))
    array = WRAPS[wrap][0](KINDS[kind](length, place)).slice(start, stop - start)
    rows = pa.record_batch({"v": array})
    if place < 0:
        validate_rows(rows)
    elif start <= place < stop:
        with pytest.raises(SchemaMismatch, match=f"row {place - start}:"):
            validate_rows(rows)
    elif wrap == "plain" and kind != "dictionary entry":
        validate_rows(rows)


def test_offsets_that_go_back_are_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 5, 2, 6], np.int32))
    array = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abcdef")])
    with pytest.raises(SchemaMismatch, match="column 'v', row 1"):
        validate_rows(pa.table({"v": array}))


def test_rows_are_counted_over_the_batches_of_a_reader() -> None:
    batches = [pa.record_batch({"v": KINDS["text"](3, place)}) for place in (-1, -1, 2)]
    with pytest.raises(SchemaMismatch, match="column 'v', row 8"):
        check_rows(ArrowRows(pa.RecordBatchReader.from_batches(batches[0].schema, batches))).reader.read_all()


DDL = "k BIGINT, s STRING, d DECIMAL(3, 1), t TIME, l ARRAY<STRING>"


@pytest.mark.parametrize(
    ("column", "kind", "wrap"), [("s", "text", "plain"), ("s", "dictionary index", "plain"), ("d", "decimal", "plain"),
                                 ("t", "time in ms", "plain"), ("l", "text", "list")],
)  # fmt: skip
def test_a_table_takes_no_damaged_rows(tmp_path: Any, column: str, kind: str, wrap: str) -> None:
    table = Table.create(tmp_path / "t", DDL, primary_keys=["k"], options={"bucket": "1"})
    rows = pa.table({"k": range(4), column: WRAPS[wrap][0](KINDS[kind](4, 2))})
    for change in (
        lambda: table.write(rows),
        lambda: table.write(rows.to_batches()),
        lambda: table.write({name: rows[name] for name in rows.column_names}),
        lambda: table.merge(rows, on="k").when_not_matched_insert_all().execute(),
    ):
        with pytest.raises(SchemaMismatch, match=f"column '{column}.*, row 2"):
            change()
    with table.writer() as writer, pytest.raises(SchemaMismatch, match="damaged"):
        writer.write(rows)
    assert table.count() == 0


def test_keys_and_new_values_are_checked(tmp_path: Any) -> None:
    table = Table.create(tmp_path / "t", "k STRING, s STRING, b BYTES", primary_keys=["k"], options={"bucket": "1"})
    table.write([{"k": "a", "s": "x", "b": b"\xff"}])
    damaged = KINDS["text"](2, 1)
    for change in (
        lambda: table.delete(keys=pa.table({"k": damaged})),
        lambda: table.lookup({"k": damaged}),
        lambda: table.update("TRUE", set={"s": damaged[1]}),
        lambda: table.update("TRUE", set={"s": pc.field("b").cast(pa.string(), safe=False)}),
        lambda: table.write([{"k": "b", "s": damaged[1]}]),
    ):
        with pytest.raises(SchemaMismatch):
            change()
    assert table.scan().to_arrow()["s"].to_pylist() == ["x"]
