"""Rows of many small files travel to Spark in few batches, in their order, whatever their columns are."""

from __future__ import annotations

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from paimon_base.thresholds import use_thresholds  # as the next
from pyspark_paimon.spark.read.reader import join_small  # needs pyspark


def numbers(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(values, pa.int64())})


@pytest.mark.parametrize(
    ("rows", "size", "lengths"), [(100, 1 << 20, [10]), (4, 1 << 20, [4, 4, 2]), (100, 40, [4, 4, 2]), (1, 1, [2, 2, 2, 2, 2])]
)
def test_batches_are_joined_up_to_the_limits_and_keep_their_order(rows, size, lengths):
    with use_thresholds(block_rows=rows, block_bytes=size):
        joined = list(join_small(numbers(at, at + 1) for at in range(0, 10, 2)))
    assert [batch.num_rows for batch in joined] == lengths
    assert pa.Table.from_batches(joined)["id"].to_pylist() == list(range(10))


def test_dictionaries_of_different_files_are_unified():
    texts = [pa.record_batch({"s": pa.array(values).dictionary_encode()}) for values in (["a", "b"], ["b", None], ["c", "a"])]
    [joined] = join_small(texts)
    assert joined.column(0).to_pylist() == ["a", "b", "b", None, "c", "a"]
    assert joined.schema == texts[0].schema


def test_batches_without_columns_or_rows_and_of_other_schemas_stay():
    bare = pa.RecordBatch.from_struct_array(pa.array([{}, {}, {}], pa.struct([])))
    assert [batch.num_rows for batch in join_small([bare, bare])] == [3, 3]
    assert [batch.num_rows for batch in join_small([numbers(), numbers()])] == [0]
    other = pa.record_batch({"id": ["x"]})
    assert [batch.to_pylist() for batch in join_small([numbers(1), other, other, numbers(2)])] == [
        [{"id": 1}],
        [{"id": "x"}, {"id": "x"}],
        [{"id": 2}],
    ]
    assert list(join_small([])) == []
