"""Rows that one Arrow array cannot hold come in pieces, and every row comes once."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.arrow import pieces
from lsm.arrow.pieces import in_pieces
from lsm.write import table_write
from paimon_base.thresholds import Thresholds, use_thresholds
from pyspark_paimon import Table

_TEXTS = st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "b" * 50, "c" * 400])), max_size=40)


def _forms(texts: list[str | None]) -> dict[str, pa.Array]:
    return {
        "plain": pa.array(texts, pa.string()),
        "large": pa.array(texts, pa.large_string()),
        "repeated": pa.array(texts, pa.string()).dictionary_encode(),
        "bytes": pa.array([None if text is None else text.encode() for text in texts], pa.large_binary()).dictionary_encode(),
        "numbers": pa.array([None if text is None else len(text) for text in texts], pa.int64()).dictionary_encode(),
    }


@settings(deadline=None)
@given(texts=_TEXTS, most=st.sampled_from([100, 1000, 10**6]), chunked=st.booleans())
def test_pieces_add_up_and_none_is_larger_than_asked(texts: list[str | None], most: int, chunked: bool) -> None:
    table = pa.table(_forms(texts))
    whole = pa.concat_tables([table.slice(0, 3), table.slice(3)]) if chunked else table
    kinds = np.arange(len(texts))
    with use_thresholds(piece_bytes=0):
        found = list(in_pieces(whole, kinds, most))
    plain = pa.schema(
        [
            (name, kind.value_type if pa.types.is_dictionary(kind) else kind)
            for name, kind in zip(table.schema.names, table.schema.types, strict=True)
        ]
    )
    assert pa.concat_tables([piece.cast(plain) for piece, _ in found]).combine_chunks().equals(table.cast(plain).combine_chunks())
    assert np.concatenate([given for _, given in found]).tolist() == kinds.tolist()
    for piece, _ in found:
        assert piece.num_rows <= 1 or len(found) == 1 or piece.cast(plain).nbytes <= 1.5 * most + 200


def test_what_fits_is_handed_on_as_it_is() -> None:
    table = pa.table({"n": [1, 2]})
    [(piece, kinds)] = in_pieces(table)
    assert piece is table
    assert kinds is None


def test_a_few_rows_of_a_longer_array_are_copied_out_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_FARTHEST", 5000)
    whole = pa.table({"t": pa.array(["x" * 100] * 100, pa.large_string())})
    ((piece, _),) = in_pieces(whole.slice(90))
    assert piece.equals(whole.slice(90))
    assert piece.get_total_buffer_size() < 5000


def _views(form: str, texts: list[str | None]) -> pa.Array:
    views = pa.array(texts).cast(pa.string_view())
    match form:
        case "rows":
            return pa.StructArray.from_arrays([views], ["a"])
        case "lists":
            return pa.ListArray.from_arrays(pa.array(range(len(texts) + 1), pa.int32()), views)
        case "maps":
            return pa.MapArray.from_arrays(pa.array(range(len(texts) + 1), pa.int32()), pa.array(range(len(texts))), views)
        case _:
            return views.cast(pa.binary_view()) if form == "bytes" else views


@pytest.mark.parametrize("form", ["texts", "bytes", "rows", "lists", "maps"])
def test_views_are_cut_into_pieces_of_the_size_asked(form: str) -> None:
    column = _views(form, ["x" * 200, None, "abc", "y" * 300] * 40)
    found = [piece for piece, _ in in_pieces(pa.table({"c": column}), max_bytes=2000)]
    assert [value for piece in found for value in piece["c"].to_pylist()] == column.to_pylist()
    assert 8 <= len(found) <= 32
    part = pa.table({"c": column.slice(4, 8)})
    assert sum(piece.num_rows for piece, _ in in_pieces(part, max_bytes=2000)) == 8


def _longer_than_an_array(rows: int, size: int) -> pa.Table:
    text = np.frombuffer(b"abcdefgh" * (rows * size // 8), np.uint8)
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int64) * size)
    columns = [pa.Array.from_buffers(kind, rows, [None, offsets, pa.py_buffer(text)]) for kind in (pa.large_string(), pa.large_binary())]
    return pa.table({"id": np.arange(rows), "t": columns[0], "b": columns[1]})


@pytest.mark.parametrize(("size", "most"), [(800, 2000), pytest.param(20_000_000, Thresholds().piece_bytes, marks=pytest.mark.long)])
def test_a_table_takes_input_that_no_array_of_its_own_types_can_hold(tmp_path: Path, size: int, most: int) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, t STRING, b BYTES", ["id"], options={"bucket": "2"})
    given_ = _longer_than_an_array(120, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_write, "in_pieces", partial(in_pieces, max_bytes=most))
        table.write(given_)
        table.write(given_.slice(100))
        table.compact(full=True)
    kept = given_["t"][0].as_py()
    seen = []
    for batch in table.scan().to_batches():
        seen += batch["id"].to_pylist()
        assert pc.all(pc.and_(pc.equal(batch["t"], kept), pc.equal(batch["b"], kept.encode()))).as_py()
    assert sorted(seen) == list(range(120))
