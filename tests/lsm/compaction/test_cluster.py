"""Sorting append tables anew: keys along curves, the rows that come out, and what it does for pruning."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import ColumnRef, Compare, Op
from lsm.compaction.cluster import Clustering, Quantiles, bits_per_column, hilbert, z_order
from lsm.write.compaction_job import CompactionJob
from manifest.entry.data_file import FileKind
from manifest.io.errors import UnsupportedTable
from manifest.snapshot.snapshot import CommitKind
from manifest.store import FileStore
from tests.lsm.small_tables import scan
from tests.lsm.write_kit import append_rows, commit, compact_bucket, data_files, live_files, make, write

DDL = "a INT, b STRING, c DOUBLE"


@pytest.mark.parametrize(("columns", "bits"), [(2, 4), (3, 3), (5, 2), (2, 1)])
def test_the_hilbert_curve_visits_every_cell_and_steps_to_neighbours_only(columns: int, bits: int) -> None:
    grid = np.indices([1 << bits] * columns).reshape(columns, -1).astype(np.uint64)
    keys = hilbert(list(grid), bits)
    assert sorted(keys.tolist()) == list(range(1 << (bits * columns)))
    visited = grid[:, np.argsort(keys)].astype(np.int64)
    assert set(np.abs(np.diff(visited, axis=1)).sum(axis=0).tolist()) == {1}


@given(cells=st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=1, max_size=20))
@settings(max_examples=30, deadline=None)
def test_z_order_interleaves_bits(cells: list[tuple[int, ...]]) -> None:
    ranks = [np.array(column, np.uint64) for column in zip(*cells, strict=True)]
    expected = [int("".join(f"{axis:08b}"[bit] for bit in range(8) for axis in cell), 2) for cell in cells]
    assert z_order(ranks, 8).tolist() == expected


VALUES = {
    pa.int32(): st.integers(-5, 5),
    pa.string(): st.sampled_from(["", "a", "ab", "common prefix 1", "common prefix 2", "é"]),
    pa.float64(): st.sampled_from([float("-inf"), -1.5, 0.0, 2.5, float("nan")]),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_ranks_keep_the_order_of_values(kind: pa.DataType, data: st.DataObject) -> None:
    some = st.none() | VALUES[kind]
    sample, values = (pa.array(data.draw(st.lists(some, min_size=least, max_size=30)), kind) for least in (0, 1))
    ranks = Quantiles.of(sample, 3).ranks(values).tolist()
    assert all(0 <= rank < 8 for rank in ranks)

    def place(value: object) -> tuple:
        return (0,) if value is None else (1, value != value, 0 if value != value else value.encode() if isinstance(value, str) else value)  # noqa: PLR0124

    pairs = sorted(zip(map(place, values.to_pylist()), ranks, strict=True))
    for (one, low), (other, high) in itertools.pairwise(pairs):
        assert low <= high
        assert one != other or low == high


def test_a_column_gets_fewer_bits_the_more_there_are() -> None:
    assert [bits_per_column(n) for n in (1, 2, 4, 5, 8)] == [16, 16, 16, 12, 8]


def table(path: Path, rows: int = 4000, **options: str) -> FileStore:
    """Rows in no order, in several files."""
    store = make(path, DDL, **{"target_file_size": "16 kb", **options})
    rng = np.random.default_rng(1)
    for seed in range(3):
        write(store, sample(rows, seed + int(rng.integers(100))))
    return store


def sample(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(0, 1000, rows), rng.integers(0, 100, rows), rng.random(rows) * 1e9
    known = rng.random(rows) > 0.02
    return pa.table({"a": pa.array(a, pa.int32(), mask=~known), "b": [f"city-{value:03}" for value in b], "c": c})


def cluster(store: FileStore, *columns: str, strategy: str = "order") -> None:
    message = compact_bucket(store, store.partition.encode(()), 0, clustering=Clustering(columns, strategy), commit_id="c")  # type: ignore[arg-type]
    assert message is not None
    commit(store, [message], 5)


def as_text(rows: list[dict]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("buffer", ["256 mb", "40 kb"], ids=["in memory", "spilled"])
@pytest.mark.parametrize("strategy", ["order", "zorder", "hilbert"])
def test_clustering_keeps_every_row(tmp_path: Path, strategy: str, buffer: str) -> None:
    store = table(tmp_path / "t", write_buffer_size=buffer)
    before = append_rows(store)
    names = {file.file_name for file in live_files(store)}
    cluster(store, "a", "c", strategy=strategy)
    assert as_text(append_rows(store)) == as_text(before)
    snapshot = store.snapshots.latest()
    assert snapshot is not None
    assert snapshot.commit_kind is CommitKind.COMPACT
    assert not names & {file.file_name for file in live_files(store)}
    assert (store.delta_entries(snapshot).kind == FileKind.DELETE).sum() == len(names)


def test_rows_come_in_the_order_of_the_columns_nulls_first(tmp_path: Path) -> None:
    store = table(tmp_path / "t", write_buffer_size="40 kb")
    cluster(store, "b", "a")
    rows = [(row["b"], row["a"] is not None, row["a"] or 0) for row in append_rows(store)]
    assert rows == sorted(rows)


def files_for(store: FileStore, predicate: Compare) -> int:
    return scan(store.root, predicate).plan.file_count


@pytest.mark.sizes
def test_a_curve_prunes_by_each_of_its_columns_and_plain_order_by_the_first(tmp_path: Path) -> None:
    filters = [Compare(ColumnRef("a"), Op.EQ, 500), Compare(ColumnRef("c"), Op.GT, 9.9e8)]
    found = {}
    for strategy in ("order", "zorder", "hilbert"):
        store = table(tmp_path / strategy, metadata__stats_mode="full")
        every = len(live_files(store))
        assert [files_for(store, predicate) for predicate in filters] == [every, every]
        cluster(store, "a", "c", strategy=strategy)
        total = len(live_files(store))
        assert total >= 6
        found[strategy] = [files_for(store, predicate) / total for predicate in filters]
    assert found["order"][0] < 0.4
    assert found["order"][1] == 1.0
    for strategy in ("zorder", "hilbert"):
        assert max(found[strategy]) < 0.7


def test_a_failing_sort_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lsm.compaction import cluster as module

    store = table(tmp_path / "t", write_buffer_size="40 kb")
    before = data_files(store)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "row_writer", broken)
    with pytest.raises(ZeroDivisionError):
        cluster(store, "a")
    assert data_files(store) == before


@pytest.mark.parametrize("option", ["row_tracking__enabled", "data_evolution__enabled"])
def test_rows_with_ids_are_not_sorted_anew(tmp_path: Path, option: str) -> None:
    store = make(tmp_path / "t", DDL, **{"row_tracking__enabled": "true", option: "true"})
    write(store, sample(9, 1))
    before = data_files(store)
    with (
        CompactionJob(store) as job,
        pytest.raises(UnsupportedTable, match=r"(row-tracking|data-evolution)\.enabled"),
    ):
        job.cluster(store.partition.encode(()), 0, Clustering(("a",)))
    assert data_files(store) == before


def test_rows_that_are_appended_meanwhile_stay(tmp_path: Path) -> None:
    store = table(tmp_path / "t", rows=200)
    with CompactionJob(store) as job:
        job.cluster(store.partition.encode(()), 0, Clustering(("a",)))
        messages = job.prepare_commit()
    write(store, sample(50, 99))
    rows = append_rows(store)
    commit(store, messages, 9)
    assert as_text(append_rows(store)) == as_text(rows)


def test_sorted_files_stay_on_the_level_of_those_that_are_appended(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL)
    for seed in range(2):
        write(store, sample(50, seed))
    message = compact_bucket(store, store.partition.encode(()), 0, clustering=Clustering(("a",)))
    assert [len(message.compact_before), {file.level for file in message.compact_after}] == [2, {0}]


def test_an_empty_bucket_needs_no_sorting(tmp_path: Path) -> None:
    store = make(tmp_path / "t", DDL)
    assert compact_bucket(store, store.partition.encode(()), 0, clustering=Clustering(("a",))) is None
