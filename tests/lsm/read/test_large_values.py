"""Batches are bounded in bytes, however large a value is, and however often a dictionary repeats it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paimon_base.thresholds import Thresholds
from pyspark_paimon import Table
from tests.build import keyed

VALUE = "v" * (1 << 20)
ROWS = 60


def _texts(first: int, *, repeated: bool) -> Any:
    if repeated:
        return pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), pa.array([VALUE]))
    return pa.array([f"{number}{VALUE}" for number in range(first, first + ROWS)])


@pytest.mark.slow
@pytest.mark.parametrize("repeated", [False, True], ids=["distinct", "repeated"])
def test_a_merged_read_of_large_values_comes_in_bounded_batches(tmp_path: Path, repeated: bool) -> None:
    table = keyed(tmp_path / "t", "id BIGINT NOT NULL, s STRING", {"write-only": "true"})
    for first in (0, ROWS // 2):
        table.write(pa.table({"id": pa.array(range(first, first + ROWS), pa.int64()), "s": _texts(first, repeated=repeated)}))
    for compacted in (False, True):
        if compacted:
            table.compact(full=True)
        batches = list(table.scan().to_reader())
        assert sum(batch.num_rows for batch in batches) == ROWS * 3 // 2
        assert max(batch.nbytes for batch in batches) <= 2 * Thresholds().batch_bytes


@pytest.mark.sizes
@pytest.mark.parametrize(("columns", "bytes_"), [(10, 8_000), (100, 40_000), (400, 64_000)])
def test_batches_of_many_columns_have_more_bytes_up_to_a_bound(tmp_path: Path, set_thresholds: Any, columns: int, bytes_: int) -> None:
    set_thresholds(batch_bytes=8_000, batch_column_bytes=400, batch_growth=8)
    names = [f"c{at}" for at in range(columns)]
    table = Table.create(tmp_path / "t", pa.schema([(name, pa.int64()) for name in names]), options={"bucket": "-1"})
    table.write(pa.table({name: pa.array(range(at, at + 1000), pa.int64()) for at, name in enumerate(names)}))
    sizes = [8 * columns * batch.num_rows for batch in Table.open(table.path).scan().to_reader()]
    assert sum(sizes) == columns * 8000
    assert 0.8 * bytes_ <= max(sizes) <= bytes_
