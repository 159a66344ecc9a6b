"""Where rows go whose key lives in another partition: every engine, many rows at once."""

import numpy as np
import pyarrow as pa

from lsm.cross_partition.assigner import ArrivedRows, buckets_of
from lsm.cross_partition.key_locations import NOT_FOUND, KeyLocations
from lsm.keys.key_set import KeySet
from manifest.schema.validation import build_schema

PARTITIONS = [("A",), ("B",), (None,)]


def placed(engine, values):
    """Keys 0, which lives in (A, bucket 7), and 1, which is new; ``values`` are (key, partition) pairs."""
    options = {"merge-engine": engine}
    schema = build_schema("id INT, p STRING, v INT", primary_keys=["id"], partition_keys=["p"], options=options)
    ids, names = zip(*values, strict=True)
    table = pa.table({"id": pa.array(ids, pa.int32()), "p": pa.array(names), "v": pa.array(range(len(ids)), pa.int32())})
    keys = KeySet(table.select(["id"])).numbers
    named = np.array([PARTITIONS.index((name,)) for name in names])
    locations = KeyLocations([], np.array([0, NOT_FOUND]), np.array([7, 0], np.int32))
    found = ArrivedRows(table, None, keys, named, locations, PARTITIONS).place(schema)
    buckets = buckets_of(found.slot, locations.bucket, 100 + np.arange(len(found.new), dtype=np.int32))
    kinds = np.zeros(found.table.num_rows, np.int8) if found.kinds is None else found.kinds
    rows = found.table.to_pylist()
    told = zip(rows, kinds.tolist(), found.partition.tolist(), buckets.tolist(), strict=True)
    assert all((row["p"],) == PARTITIONS[partition] for row, _, partition, _ in told)
    return [(row["id"], row["p"], row["v"], kind, bucket) for row, kind, bucket in zip(rows, kinds.tolist(), buckets.tolist(), strict=True)]


def test_deduplicate_deletes_where_a_key_was_with_the_values_of_the_new_row():
    moves = [(0, "A"), (1, "B"), (0, "B"), (0, None), (1, "B"), (0, "A")]
    assert placed("deduplicate", moves) == [
        (0, "A", 0, 0, 7),
        (1, "B", 1, 0, 103),
        (0, "A", 2, 3, 7),
        (0, "B", 2, 0, 100),
        (0, "B", 3, 3, 100),
        (0, None, 3, 0, 101),
        (1, "B", 4, 0, 103),
        (0, None, 5, 3, 101),
        (0, "A", 5, 0, 102),
    ]


def test_engines_that_fold_keep_a_key_where_it_is():
    moves = [(0, "B"), (1, "B"), (1, "A"), (0, None)]
    assert placed("partial-update", moves) == [(0, "A", 0, 0, 7), (1, "B", 1, 0, 100), (1, "B", 2, 0, 100), (0, "A", 3, 0, 7)]


def test_first_row_drops_what_names_another_partition():
    moves = [(0, "B"), (1, "B"), (1, "A"), (0, "A"), (1, "B")]
    assert placed("first-row", moves) == [(1, "B", 1, 0, 100), (0, "A", 3, 0, 7), (1, "B", 4, 0, 100)]
