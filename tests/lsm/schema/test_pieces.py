"""Rows that one Arrow array cannot hold come in pieces, and every row comes once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.schema import pieces
from lsm.schema.pieces import in_pieces

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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "MOST_BYTES", 0)
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
