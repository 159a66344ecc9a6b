"""Which bucket a dynamic-bucket table puts a key in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.bucket.dynamic import BucketOwnership, BucketRoom, BucketWriters, PartitionIndex
from paimon_base.errors import InvalidArgument

_HASHES = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40)


def _array(values: list[int]) -> np.ndarray:
    return np.array(values, np.int32)


def test_the_first_keys_go_to_bucket_zero() -> None:
    index = PartitionIndex.of({}, target_rows=10)
    assert index.assign(_array([5, -5, 5])).tolist() == [0, 0, 0]
    assert index.changed == {0}


def test_known_keys_stay_where_they_are_even_if_their_bucket_is_full() -> None:
    index = PartitionIndex.of({0: _array([1, 2]), 3: _array([4])}, target_rows=1)
    assert index.assign(_array([4, 1, 2])).tolist() == [3, 0, 0]
    assert not index.changed


def test_room_in_open_buckets_comes_before_new_buckets() -> None:
    index = PartitionIndex.of({0: _array([1, 2]), 2: _array([4])}, target_rows=2)
    assert sorted(index.assign(_array([10, 11, 12, 13])).tolist()) == [1, 1, 2, 3]
    assert index.changed == {1, 2, 3}


def test_when_no_bucket_may_be_opened_all_fill_evenly() -> None:
    index = PartitionIndex.of({}, target_rows=2, max_buckets=2)
    counts = np.bincount(index.assign(np.arange(10, dtype=np.int32)))
    assert counts.tolist() == [5, 5]


def test_an_empty_batch_changes_nothing() -> None:
    index = PartitionIndex.of({}, target_rows=2)
    assert index.assign(_array([])).tolist() == []
    assert index.known_hashes.of_bucket(0).tolist() == []


@pytest.mark.parametrize("extreme", [-(2**31), 2**31 - 1])
def test_extreme_hashes_are_found_again(extreme: int) -> None:
    index = PartitionIndex.of({1: _array([extreme])}, target_rows=1)
    assert index.assign(_array([extreme])).tolist() == [1]


@given(batches=st.lists(_HASHES, max_size=6), target=st.integers(1, 8), limit=st.sampled_from([-1, 1, 3]))
def test_a_key_never_moves_and_buckets_keep_their_size(batches: list[list[int]], target: int, limit: int) -> None:
    index = PartitionIndex.of({}, target_rows=target, max_buckets=limit)
    home: dict[int, int] = {}
    for batch in batches:
        for value, bucket in zip(batch, index.assign(_array(batch)).tolist(), strict=True):
            assert home.setdefault(value, bucket) == bucket
    sizes = np.bincount(list(home.values())) if home else np.empty(0, np.int64)
    if limit == -1:
        assert all(size <= target for size in sizes)
        assert len(sizes) <= -(-len(home) // target)
    else:
        assert len(sizes) <= limit
    for bucket in set(home.values()):
        assert index.known_hashes.of_bucket(bucket).tolist() == sorted(value for value, where in home.items() if where == bucket)
        assert bucket in index.changed


@pytest.mark.parametrize(("tasks", "writers"), [(1, 1), (8, 1), (8, 3), (5, 5)])
@pytest.mark.parametrize("partition", [0, 7, -(2**31), 2**31 - 1])
def test_of_the_tasks_of_a_partition_each_has_a_remainder_of_its_own_and_the_others_none(tasks: int, writers: int, partition: int) -> None:
    found = []
    for task in range(tasks):
        try:
            found.append(BucketWriters(task, tasks, writers).of(partition))
        except InvalidArgument:
            continue
    assert sorted(owned.index for owned in found) == list(range(writers))
    assert {owned.writers for owned in found} == {writers}


def test_a_single_writer_fills_the_buckets_one_after_another() -> None:
    assert BucketRoom({}, target_rows=2).place(5).tolist() == [0, 0, 1, 1, 2]
    assert BucketRoom({}, target_rows=2, owned=BucketOwnership(1, 3)).place(5).tolist() == [1, 1, 4, 4, 7]


def test_keys_that_leave_make_room_in_their_bucket_alone() -> None:
    room = BucketRoom({0: 5, 1: 2, 2: 2}, target_rows=2)
    room.leave(1, 1)
    assert room.used == {0: 5, 1: 1, 2: 2}
    assert room.place(2).tolist() == [1, 3]
    room.leave(2, 9)
    assert room.used == {0: 5, 1: 2, 2: 0, 3: 1}


def test_a_writer_without_a_bucket_that_may_be_open_takes_its_first() -> None:
    room = BucketRoom({0: 5}, target_rows=2, max_buckets=2, owned=BucketOwnership(3, 4))
    assert room.place(3).tolist() == [3, 3, 3]
    assert room.used == {0: 5, 3: 3}
