"""Append tables: rows stay in order of arrival, and small files are joined."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.bucket.router import route
from lsm.compaction.small_files import SmallFilePolicy
from lsm.write.table_write import TableWrite
from manifest.entry.data_file import DataFileMeta
from manifest.options.core_options import CoreOptions
from manifest.schema.table_kind import AppendTable
from manifest.schema.validation import build_schema
from tests.lsm.write_kit import append_rows, commit, compact_all, live, live_files, make, write

DDL = "id BIGINT, name STRING, p STRING"


def some(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": list(ids), "name": [f"n{i % 7}" for i in ids], "p": [f"p{i % 3}" if i % 5 else None for i in ids]})


def test_rows_stay_in_order_of_arrival(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL)
    write(store, *(some(at, 100) for at in range(0, 1000, 100)))
    assert [row["id"] for row in append_rows(store)] == list(range(1000))
    (entry,) = live(store)
    assert (entry.bucket, entry.total_buckets, entry.file.level, entry.file.delete_row_count) == (0, -1, 0, 0)
    assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (0, 999)
    assert entry.file.min_key == entry.file.max_key == bytes(12)


def test_without_buckets_every_commit_numbers_from_zero_and_nothing_is_joined_inline(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL)
    for at in range(6):
        (message,) = write(store, some(at, 10))
        assert not message.has_compaction
    assert {(f.min_sequence_number, f.max_sequence_number) for f in live_files(store)} == {(0, 9)}


def test_with_buckets_numbers_go_on_and_small_files_are_joined_in_order(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, bucket="1", bucket_key="name")
    for at in range(4):
        write(store, some(at * 10, 10))
    assert [(f.min_sequence_number, f.max_sequence_number) for f in live_files(store)] == [(0, 9), (10, 19), (20, 29), (30, 39)]
    (message,) = write(store, some(40, 10))
    assert (len(message.compact_before), len(message.compact_after)) == (5, 1)
    (file,) = live_files(store)
    assert (file.min_sequence_number, file.max_sequence_number, file.row_count, file.file_source) == (0, 49, 50, 1)
    assert [row["id"] for row in append_rows(store)] == list(range(50))


def test_compaction_on_demand_joins_each_partitions_files(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL, (), ("p",))
    for at in range(3):
        write(store, some(at * 100, 100))
    before = sorted(append_rows(store), key=lambda row: row["id"])
    assert len(live(store)) == 12
    messages = compact_all(store)
    assert {(len(m.compact_before), len(m.compact_after)) for m in messages} == {(3, 1)}
    assert {store.partition.decode(e.partition) for e in live(store)} == {(None,), ("p0",), ("p1",), ("p2",)}
    assert sorted(append_rows(store), key=lambda row: row["id"]) == before
    assert compact_all(store) == []


@pytest.mark.parametrize("partitions", [1, 40])
@pytest.mark.sizes
def test_little_memory_makes_row_groups_not_files(tmp_path: Path, set_thresholds: Callable[..., None], partitions: int) -> None:
    set_thresholds(route_rows=200)
    store = make(tmp_path / "t", DDL, (), ("p",), write_buffer_size="16 kb")
    with TableWrite(store) as job:
        for at in range(0, 4000, 100):
            table = some(at, 100)
            job.write(table.set_column(2, "p", pa.array([f"p{i % partitions}" for i in range(at, at + 100)])))
        commit(store, job.prepare_commit())
    assert len(live(store)) == partitions
    rows = append_rows(store)
    assert sorted(row["id"] for row in rows) == list(range(4000))
    for p in {row["p"] for row in rows}:
        ids = [row["id"] for row in rows if row["p"] == p]
        assert ids == sorted(ids)


def test_too_many_open_files_are_closed_early(tmp_path: Path, set_thresholds: Callable[..., None]) -> None:
    set_thresholds(route_rows=200)
    set_thresholds(open_files=2)
    store = make(tmp_path / "t", DDL, (), ("p",), write_buffer_size="8 kb")
    with TableWrite(store) as job:
        for at in range(0, 2000, 100):
            job.write(some(at, 100))
        commit(store, job.prepare_commit())
    assert len(live(store)) > 4
    assert sorted(row["id"] for row in append_rows(store)) == list(range(2000))


def files(*sizes: int) -> list[DataFileMeta]:
    return [DataFileMeta(file_name=f"f{at}", file_size=size, row_count=1, min_sequence_number=at) for at, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "ordered", "full", "groups"),
    [
        ([10, 10, 10], True, False, []),
        ([10, 10, 10], True, True, [[10, 10, 10]]),
        ([10] * 5, True, False, [[10] * 5]),
        ([10, 80, 10], True, True, []),
        ([10, 80, 10], False, True, [[10, 10]]),
        ([60, 60, 10], True, False, [[60, 60]]),
        ([60, 60, 10, 10], True, True, [[60, 60], [10, 10]]),
        ([60], True, True, []),
        ([100, 100], True, True, []),
        ([], True, True, []),
    ],
)
def test_which_small_files_are_joined(sizes: list[int], ordered: bool, full: bool, groups: list[list[int]]) -> None:
    picked = SmallFilePolicy(target=100, small=70, min_files=5).pick(files(*sizes), ordered=ordered, full=full)
    assert [[f.file_size for f in group] for group in picked] == groups


def test_the_policy_follows_the_tables_options() -> None:
    options = CoreOptions.of({"target-file-size": "100 b", "compaction.min.file-num": "3", "compaction.small-file-ratio": "0.5"})
    assert SmallFilePolicy.of(AppendTable(options)) == SmallFilePolicy(100, 50, 3)
    assert SmallFilePolicy.of(AppendTable(CoreOptions.of({}))).target == 256 * 2**20


@given(st.lists(st.integers(1, 200), max_size=30), st.booleans(), st.booleans())
def test_no_file_is_joined_twice_and_order_is_kept(sizes: list[int], ordered: bool, full: bool) -> None:
    given = files(*sizes)
    groups = SmallFilePolicy(target=100, small=70, min_files=4).pick(given, ordered=ordered, full=full)
    names = [f.file_name for group in groups for f in group]
    assert len(set(names)) == len(names)
    for group in groups:
        at = [given.index(f) for f in group]
        assert len(group) >= 2
        assert at == sorted(at)
        assert not ordered or at == list(range(at[0], at[-1] + 1))


@given(
    st.lists(st.tuples(st.integers(0, 50), st.none() | st.sampled_from(["a", "b"]), st.none() | st.integers(0, 2)), max_size=50),
    st.sampled_from([-1, 1, 4]),
)
def test_routing_shares_out_every_row_once_by_partition_and_bucket(rows: list[tuple], buckets: int) -> None:
    more = {"bucket": str(buckets)} | ({"bucket-key": "id"} if buckets > 0 else {})
    schema = build_schema("id BIGINT, p STRING, q INT", partition_keys=["p", "q"], options=more)
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema.arrow, strict=True)], schema=schema.arrow)
    shares = route(table, schema)
    seen = []
    for share in shares:
        at = list(range(len(rows))) if share.rows is None else share.rows.tolist()
        assert at == sorted(at)
        assert {rows[i][1:] for i in at} == {share.partition}
        seen += [(i, share.bucket) for i in at]
    assert sorted(i for i, _ in seen) == list(range(len(rows)))
    of_id: dict[int, set[int]] = {}
    for i, bucket in seen:
        assert 0 <= bucket < max(1, buckets)
        of_id.setdefault(rows[i][0], set()).add(bucket)
    assert all(len(found) == 1 for found in of_id.values())
    assert len({(share.partition, share.bucket) for share in shares}) == len(shares)


def test_routing_many_partitions_and_buckets_needs_more_than_16_bits() -> None:
    schema = build_schema("id BIGINT, p INT", partition_keys=["p"], options={"bucket": "100", "bucket-key": "id"})
    count = 3000
    table = pa.table({"id": np.arange(count), "p": pa.array(np.arange(count) % 1000, pa.int32())})
    shares = route(table, schema)
    assert sum(len(share.rows) for share in shares) == count
    assert {share.partition for share in shares} == {(p,) for p in range(1000)}


def test_an_index_that_cannot_hold_the_values_is_left_out_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = make(tmp_path, "a BIGINT", file_index__bsi__columns="a", file_index__bloom_filter__columns="a")
    write(store, pa.table({"a": pa.array([-(2**63), 1], pa.int64())}))
    (file,) = live_files(store)
    assert file.file_name in caplog.text
    assert "has no index bsi of 'a'" in caplog.text
    assert "bloom" not in caplog.text
