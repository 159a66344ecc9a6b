"""Merging by masks gives the rows of the merge that sorts, and files give plain texts however they hold them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import ColumnRef, Compare, In, Op
from lsm.arrow.text_form import plain_texts
from lsm.keys.sort import SortKey
from lsm.merge.function import Deduplicate, FirstRow
from lsm.merge.merge_iterator import merge_runs
from lsm.merge.selection import pack_keys, selection_vectors
from lsm.parquet.reader import ParquetDataFile
from lsm.read.split import read_split
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import use_thresholds
from tests.lsm.small_tables import create, scan, write

ADDS, ALL = [0, 2], [0, 1, 2, 3]
TEXTS = ["red", "red\0", "green", "", None, "blue" * 9]


def run_of(rows: dict[int, tuple[int, int | None]], first_sequence: int, *, numbered: bool = False) -> pa.Table:
    keys = sorted(rows)
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()) if numbered else pa.array([f"key {key:02d}" for key in keys], pa.string()),
            "_SEQUENCE_NUMBER": pa.array([first_sequence + key for key in keys], pa.int64()),
            "_VALUE_KIND": pa.array([rows[key][0] for key in keys], pa.int8()),
            "version": pa.array([rows[key][1] for key in keys], pa.int32()),
            "text": pa.array([TEXTS[(key + first_sequence) % len(TEXTS)] for key in keys], pa.string()),
        }
    )


def batches(run: pa.Table, size: int, encoded: bool) -> Iterator[pa.Table]:
    """Every second batch has dictionaries, as files of different writers have."""
    for number, at in enumerate(range(0, run.num_rows, size)):
        part = run.slice(at, size)
        for name in ("k", "text") if encoded and number % 2 == 0 else ():
            if not pa.types.is_string(part[name].type):
                continue
            part = part.set_column(part.schema.get_field_index(name), name, part[name].dictionary_encode())
        yield part


def in_order(tables: list[pa.Table], schema: pa.Schema) -> list[dict]:
    whole = pa.concat_tables([plain_texts(table) for table in tables]) if tables else schema.empty_table()
    assert whole.schema.equals(schema)
    return sorted(whole.to_pylist(), key=lambda row: row["k"])


@settings(deadline=None)
@given(
    runs=st.lists(
        st.dictionaries(st.integers(0, 9) | st.integers(0, 40), st.tuples(st.sampled_from(ALL), st.none() | st.integers(0, 4))), max_size=6
    ),
    engine=st.sampled_from([Deduplicate(), Deduplicate(ignore_delete=True), FirstRow(ignore_delete=True)]),
    size=st.integers(1, 9) | st.just(99),
    rule=st.sampled_from(["arrival", "ascending", "descending"]),
    encoded=st.booleans(),
    numbered=st.booleans(),
    joined=st.tuples(st.sampled_from([0, 1, 8]), st.sampled_from([2, 1 << 14, 1 << 14]), st.sampled_from([1, 200, 500, 1 << 20])),
)
def test_the_rows_that_survive_are_those_of_the_merge_that_sorts(
    *, runs: list, engine, size: int, rule: str, encoded: bool, numbered: bool, joined: tuple[int, int, int]
) -> None:
    key = SortKey(("k",), () if rule == "arrival" else ("version",), rule == "descending")
    tables = [run_of(run, 100 * number, numbered=numbered) for number, run in enumerate(runs)]
    schema = run_of({}, 0, numbered=numbered).schema
    sorted_rows = list(merge_runs([batches(table, size, encoded=False) for table in tables], key, engine, drop_delete=True))
    with use_thresholds(**dict(zip(("many_runs", "small_run_rows", "gathered_bytes"), joined, strict=True))):
        masked = list(selection_vectors([batches(table, size, encoded) for table in tables], key, engine))
    assert all(table.num_rows for table in masked)
    assert in_order(masked, schema) == in_order(sorted_rows, schema)


@settings(deadline=None)
@given(
    runs=st.lists(st.dictionaries(st.integers(0, 6), st.tuples(st.sampled_from(ALL), st.none()), min_size=1), min_size=3, max_size=8),
    numbered=st.booleans(),
    room=st.integers(1, 300),
)
def test_runs_that_are_joined_give_each_key_once(*, runs: list, numbered: bool, room: int) -> None:
    tables = [run_of(run, 100 * number, numbered=numbered) for number, run in enumerate(runs)]
    newest = {key: kind for run in runs for key, (kind, _) in run.items()}
    with use_thresholds(many_runs=2, gathered_bytes=room):
        found = list(selection_vectors([iter([table]) for table in tables], SortKey(("k",)), Deduplicate()))
    keys = [key for table in found for key in table["k"].to_pylist()]
    alive = [key for key, kind in newest.items() if kind in ADDS]
    assert sorted(keys) == sorted(alive if numbered else [f"key {key:02d}" for key in alive])


def test_rows_that_nothing_overwrites_are_not_copied() -> None:
    older, newer = run_of({1: (0, 1), 5: (0, 1)}, 0), run_of({2: (0, 1)}, 100)
    largest = next(selection_vectors([iter([older]), iter([newer])], SortKey(("k",)), Deduplicate()))
    assert largest["version"].chunk(0).buffers()[1].address == older["version"].chunk(0).buffers()[1].address


@pytest.fixture(params=[0, 1 << 16], ids=["codes", "texts"])
def overwritten(tmp_path, request, set_thresholds):
    """A primary-key table with two runs, whose texts have few distinct values in one file and many in the other."""
    set_thresholds(plain_text_rows=request.param)
    path = create(tmp_path / "t", "id INT NOT NULL, color STRING, note STRING", keys=["id"], bucket="1")
    ids = list(range(3000))
    write(path, {"id": ids, "color": [TEXTS[i % 4] for i in ids], "note": [f"note {i}" for i in ids]})
    newer = list(range(0, 4000, 2))
    kinds = [3 if i % 10 == 0 else 0 for i in newer]
    write(path, {"id": newer, "color": [f"color {i}" for i in newer], "note": ["same"] * len(newer)}, kinds=kinds)
    expected = {i: (TEXTS[i % 4], f"note {i}") for i in ids}
    for i, kind in zip(newer, kinds, strict=True):
        expected.pop(i, None)
        if kind == 0:
            expected[i] = (f"color {i}", "same")
    return path, expected


def test_a_merged_read_gives_plain_texts_of_files_that_encode_them_differently(overwritten):
    path, expected = overwritten
    rows = scan(path).table
    assert rows.schema.types == [pa.int32(), pa.string(), pa.string()]
    got = {row["id"]: (row["color"], row["note"]) for row in rows.to_pylist()}
    assert len(got) == rows.num_rows
    assert got == expected


def test_a_filter_of_a_merged_read_sees_the_texts_behind_the_codes(overwritten):
    path, expected = overwritten
    found = scan(path, In(ColumnRef("color"), ("red", "color 2"))).table
    assert sorted(found["id"].to_pylist()) == sorted(i for i, (color, _) in expected.items() if color in {"red", "color 2"})
    assert scan(path, Compare(ColumnRef("note"), Op.EQ, "same"), columns=[]).rows == sum(note == "same" for _, note in expected.values())


def test_the_same_rows_win_where_sequence_numbers_must_be_decoded(overwritten):
    path, expected = overwritten
    plan = scan(path).plan
    (split,) = plan.splits
    overlapping = tuple(file.model_copy(update={"min_sequence_number": 0}) for file in split.files)
    rows = list(read_split(FileStore.open(path), split.model_copy(update={"files": overlapping}), columns=("id", "note")))
    got = {row["id"]: row["note"] for batch in rows for row in batch.to_pylist()}
    assert got == {i: note for i, (_, note) in expected.items()}


def test_texts_that_files_hold_as_codes_come_out_plain(tmp_path):
    path = create(tmp_path / "t", "a STRING, b VARBINARY(9)")
    values = [TEXTS[i % 4] for i in range(5000)]
    write(path, {"a": values, "b": [None if text is None else text[:9].encode() for text in values]})
    (file,) = tmp_path.rglob("data-*.parquet")
    assert pq.read_metadata(file).row_group(0).column(0).has_dictionary_page
    got = scan(path).table
    assert got["a"].to_pylist() == values
    assert got.schema.types == [pa.string(), pa.binary()]


def test_codes_beyond_their_dictionary_are_a_corrupt_file(tmp_path, monkeypatch):
    path = create(tmp_path / "t", "a STRING", bucket="-1")
    write(path, {"a": ["x", "y"] * 50})
    (file,) = tmp_path.rglob("data-*.parquet")
    damaged = pa.DictionaryArray.from_arrays(pa.array([0, 2] * 50, pa.int32()), pa.array(["x", "y"]), safe=False)
    monkeypatch.setattr(ParquetDataFile, "batches", lambda *_, **__: iter([pa.record_batch([damaged], names=["a"])]))
    with pytest.raises(CorruptFile, match=f"{file.name}: column 'a' holds codes that are missing in its dictionary"):
        scan(path)


INTS = pa.schema([("a", pa.int64()), ("b", pa.int32()), ("_SEQUENCE_NUMBER", pa.int64()), ("_VALUE_KIND", pa.int8())])


def numbered(rows: dict[tuple[int, int], int], first_sequence: int) -> pa.Table:
    keys = sorted(rows)
    columns = [[a for a, _ in keys], [b for _, b in keys], [first_sequence + at for at in range(len(keys))], [rows[key] for key in keys]]
    return pa.table(columns, schema=INTS)


NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1]))


@settings(deadline=None)
@given(
    runs=st.lists(st.dictionaries(st.tuples(NUMBERS, st.integers(-2, 2)), st.sampled_from(ALL), max_size=25), min_size=2, max_size=4),
    overlap=st.booleans(),
    engine=st.sampled_from([Deduplicate(), Deduplicate(ignore_delete=True), FirstRow(ignore_delete=True)]),
    size=st.integers(1, 30),
)
def test_keys_of_newer_runs_are_looked_up_in_the_oldest_and_the_same_rows_survive(*, runs: list, overlap: bool, engine, size: int) -> None:
    key = SortKey(("a", "b"))
    tables = [numbered(run, number if overlap else 100 * number) for number, run in enumerate(runs)]

    def pieces() -> list[Iterator[pa.Table]]:
        return [iter([table.slice(at, size) for at in range(0, table.num_rows, size)]) for table in tables]

    def rows(found: Iterator[pa.Table]) -> list[dict]:
        return sorted((row for table in found for row in table.to_pylist()), key=lambda row: (row["a"], row["b"]))

    assert rows(selection_vectors(pieces(), key, engine)) == rows(merge_runs(pieces(), key, engine, drop_delete=True))


@given(
    st.lists(
        st.lists(st.tuples(NUMBERS, st.floats(allow_nan=False, width=32), st.booleans()), min_size=1, max_size=9), min_size=1, max_size=3
    )
)
def test_codes_of_keys_compare_as_the_keys(tables: list) -> None:
    types = [pa.int64(), pa.float32(), pa.bool_()]
    codes = pack_keys([[pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)] for rows in tables])
    if codes is None:  # more than 64 bits
        return
    keys = [(a, (x, math.copysign(1, x)), b) for rows in tables for a, x, b in rows]
    flat = [int(code) for part in codes for code in part]
    for key, code in zip(keys, flat, strict=True):
        for other, its in zip(keys, flat, strict=True):
            assert (key < other, key == other) == (code < its, code == its)


def test_keys_of_other_types_have_no_codes() -> None:
    assert pack_keys([[pa.array(["a"])], [pa.array(["b"])]]) is None
    assert pack_keys([[pa.array([1, None])], [pa.array([1])]]) is None
    assert pack_keys([[pa.array([-(2**63), 0]), pa.array([1, 2])], [pa.array([2**63 - 1]), pa.array([1])]]) is None


@pytest.mark.parametrize("order", ["older first", "newer first"])
def test_a_large_run_is_no_base_where_another_run_is_older(order: str) -> None:
    tables = (run_of({key: (0, key) for key in range(8)}, 100), run_of({3: (0, 77), 6: (0, 77)}, 1), run_of({1: (0, 88), 5: (0, 88)}, 1000))
    base, *others = (table.set_column(0, "k", pa.array([int(key[4:]) for key in table["k"].to_pylist()])) for table in tables)
    runs = [base, *(others if order == "older first" else others[::-1])]
    found = in_order(list(selection_vectors([iter([run]) for run in runs], SortKey(("k",)), Deduplicate())), base.schema)
    assert [row["version"] for row in found] == [0, 88, 2, 3, 4, 88, 6, 7]


def test_many_small_runs_of_more_bytes_than_are_joined_give_each_key_once(tmp_path, set_thresholds) -> None:
    """The joined runs of a merge have several versions of a key: the oldest of them is not a base."""
    set_thresholds(gathered_bytes=1 << 10)
    path = create(tmp_path / "t", "id INT NOT NULL, v INT", keys=["id"], bucket="1", **{"write-only": "true"})
    for number in range(12):
        write(path, {"id": list(range(40)), "v": [number] * 40})
    assert sorted(scan(path).table.to_pylist(), key=lambda row: row["id"]) == [{"id": key, "v": 11} for key in range(40)]
