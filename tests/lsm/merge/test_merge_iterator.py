"""The bounded merge against a dictionary of versions."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.keys.sort import SortKey
from lsm.merge.function import Deduplicate
from lsm.merge.merge_iterator import merge_runs
from paimon_base.thresholds import use_thresholds

KEYS = {
    "bigint": (("k",), lambda k: {"k": pa.array(k, pa.int64())}),
    "string": (("k",), lambda k: {"k": pa.array([f"key {v:03d}" * (1 + v % 3) for v in k], pa.string())}),
    "two columns": (("b", "a"), lambda k: {"a": pa.array([v % 3 for v in k], pa.int32()), "b": pa.array([str(v // 3) for v in k])}),
}


def table(rows: list[tuple], columns) -> pa.Table:
    keys, sequences, kinds, versions = zip(*rows, strict=True) if rows else ((), (), (), ())
    made = columns(list(keys))
    made["_SEQUENCE_NUMBER"] = pa.array(sequences, pa.int64())
    made["_VALUE_KIND"] = pa.array(kinds, pa.int8())
    made["version"] = pa.array(versions, pa.int32())
    return pa.table(made)


def sorted_by_key(one: pa.Table, names: tuple[str, ...]) -> list[int]:
    columns = [one[name].to_pylist() for name in names]
    return sorted(range(one.num_rows), key=lambda row: tuple(column[row] for column in columns))


@settings(deadline=None)
@given(
    runs=st.lists(st.dictionaries(st.integers(0, 60), st.tuples(st.sampled_from([0, 2, 1, 3]), st.none() | st.integers(0, 4))), max_size=6),
    batch=st.integers(1, 7),
    kind=st.sampled_from(sorted(KEYS)),
    rule=st.sampled_from(["arrival", "ascending", "descending"]),
    drop=st.booleans(),
    many_small_bytes=st.sampled_from([(8, 1 << 14, 1 << 25), (0, 1 << 14, 1 << 25), (0, 3, 1 << 25), (0, 1 << 14, 1), (1, 4, 200)]),
)
def test_the_newest_version_of_every_key_survives_in_key_order(
    *, runs: list, batch: int, kind: str, rule: str, drop: bool, many_small_bytes: tuple[int, int, int]
) -> None:
    names, columns = KEYS[kind]
    sequence, models, inputs = 0, {}, []
    for run in runs:
        rows = []
        for key, (row_kind, version) in run.items():
            rows.append((key, sequence, row_kind, version))
            rank = (0, 0) if version is None else (1, -version if rule == "descending" else version)
            models.setdefault(key, []).append(((rank if rule != "arrival" else 0), sequence, row_kind, version))
            sequence += 1
        whole = table(rows, columns)
        inputs.append(whole.take(pa.array(sorted_by_key(whole, names), pa.int64())))

    def batches(whole: pa.Table) -> Iterator[pa.Table]:
        return (whole.slice(at, batch) for at in range(0, whole.num_rows, batch))

    key = SortKey(names, () if rule == "arrival" else ("version",), rule == "descending")
    with use_thresholds(**dict(zip(("many_runs", "small_run_rows", "gathered_bytes"), many_small_bytes, strict=True))):
        merged = list(merge_runs([batches(one) for one in inputs], key, Deduplicate(), drop_delete=drop))
    assert all(piece.num_rows for piece in merged)
    got = pa.concat_tables(merged) if merged else table([], columns)
    assert sorted_by_key(got, names) == list(range(got.num_rows))
    winners = {max(versions)[1]: max(versions) for versions in models.values()}
    expected = {s: (k, v) for s, (_, _, k, v) in winners.items() if not (drop and k in {1, 3})}
    columns_out = (got["_SEQUENCE_NUMBER"].to_pylist(), got["_VALUE_KIND"].to_pylist(), got["version"].to_pylist())
    assert {s: (k, v) for s, k, v in zip(*columns_out, strict=True)} == expected


def run(*rows: tuple[int, int, int, int]) -> Iterator[pa.Table]:
    yield table(list(rows), KEYS["bigint"][1])


@pytest.mark.parametrize("flip", [False, True])
def test_of_equal_sequences_the_add_is_newer_than_the_retract(flip: bool) -> None:
    runs = [run((1, 5, 3, 10)), run((1, 5, 0, 20))]
    merged = list(merge_runs(runs[::-1] if flip else runs, SortKey(("k",)), Deduplicate()))
    assert merged[0]["version"].to_pylist() == [20]


@pytest.mark.parametrize(("sequences", "winner"), [((5, 6), 6), ((100, 50), 100)])
def test_the_larger_sequence_wins_whatever_the_order_of_the_runs(sequences: tuple[int, int], winner: int) -> None:
    merged = list(merge_runs([run((1, s, 0, s)) for s in sequences], SortKey(("k",)), Deduplicate()))
    assert merged[0]["version"].to_pylist() == [winner]


def test_ignore_delete_skips_retracts_but_keeps_a_lone_one() -> None:
    runs = [run((1, 1, 0, 1), (2, 2, 3, 2), (3, 3, 1, 3)), run((1, 4, 3, 4), (3, 5, 3, 5))]
    merged = pa.concat_tables(merge_runs(runs, SortKey(("k",)), Deduplicate(ignore_delete=True)))
    assert list(zip(merged["k"].to_pylist(), merged["version"].to_pylist(), strict=True)) == [(1, 1), (2, 2)]


def test_a_stretch_of_a_single_run_is_passed_through_without_a_copy() -> None:
    one = table([(k, k, 0, k) for k in range(10)], KEYS["bigint"][1])
    other = table([(k, k, 0, k) for k in range(20, 30)], KEYS["bigint"][1])
    merged = list(merge_runs([iter([one]), iter([other])], SortKey(("k",)), Deduplicate()))
    buffers = [piece["version"].chunk(0).buffers()[1].address for piece in merged]
    assert buffers == [t["version"].chunk(0).buffers()[1].address for t in (one, other)]


@pytest.mark.sizes
def test_many_small_runs_take_one_round_and_a_long_one_a_round_for_each_of_its_batches() -> None:
    many = [run((at, at, 0, at), (at + 1000, at, 0, at)) for at in range(60)]
    long = (table([(k, 1000 + k, 0, k) for k in range(at, at + 300)], KEYS["bigint"][1]) for at in range(0, 1200, 300))
    assert len(list(merge_runs(many, SortKey(("k",)), Deduplicate()))) == 1
    many = [run((at, at, 0, at), (at + 1000, at, 0, at)) for at in range(60)]
    assert len(list(merge_runs([*many, long], SortKey(("k",)), Deduplicate()))) == 5  # the last one has what comes behind the long run


def test_no_more_than_a_batch_of_each_run_is_held() -> None:
    pulled = []

    def source(name: str, shift: int) -> Iterator[pa.Table]:
        for at in range(20):
            pulled.append((name, at))
            yield table([(2 * k + shift, k, 0, k) for k in range(at * 10, at * 10 + 10)], KEYS["bigint"][1])

    ahead = 0
    for piece in merge_runs([source("a", 0), source("b", 1)], SortKey(("k",)), Deduplicate()):
        ahead += piece.num_rows
        assert len(pulled) * 10 - ahead <= 2 * 10
    assert ahead == 400


def test_who_has_a_result_finds_no_copy_of_its_versions_beside_it_and_the_next_round_not_the_result() -> None:
    results: list[weakref.ref] = []

    def source(shift: int) -> Iterator[pa.Table]:
        for at in range(4):
            assert all(result() is None for result in results)
            rows = table([(2 * k + shift, k, 0, k) for k in range(at * 100, at * 100 + 100)], KEYS["bigint"][1])
            yield rows.append_column("text", [pa.array(["x" * 10_000] * 100)])
            del rows

    before = pa.total_allocated_bytes()
    merged = merge_runs([source(0), source(1)], SortKey(("k",)), Deduplicate())
    while (rows := next(merged, None)) is not None:
        assert pa.total_allocated_bytes() - before < 4_500_000  # two batches and the result: a third copy would make 6 MB
        results.append(weakref.ref(rows))
        del rows
    assert len(results) == 8
