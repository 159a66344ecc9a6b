"""Rows are equal if all of their columns are."""

from __future__ import annotations

import pyarrow as pa

from lsm.merge.row_diff import equal_rows


def test_every_column_counts_also_after_one_that_differs_in_another_row() -> None:
    one = pa.table({"a": [1, 2, 3, None], "b": ["x", "y", "z", None]})
    other = pa.table({"a": [0, 2, 3, None], "b": ["x", "?", "z", ""]})
    assert equal_rows(one, other, ["a", "b"]).tolist() == [False, False, True, False]
    assert equal_rows(one, other, ["b", "a"]).tolist() == [False, False, True, False]
    assert equal_rows(one, other, []).tolist() == [True] * 4
