"""Which files are read together, and which need no merge."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.deletion_vectors.reader import DeletionFile
from lsm.levels.sorted_runs import interval_partition, key_decoder
from lsm.scan.bucket_pruner import key_ranks, sections
from lsm.scan.split_generator import file_groups
from lsm.scan.splits import DataSplit, append_groups, pack
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileKind, FileSource, ManifestEntry
from manifest.row.binary_row import encode_row
from manifest.types.data_type import DataType
from sparkexpr.values.column_type import Kind
from tests.odd_bytes import odd_texts

KEY = (DataType(Kind.INT, nullable=False),)
KEY_OF = key_decoder(KEY)


def file(name, level, low, high, deletes=0, *, source=FileSource.COMPACT):
    keys = {"min_key": encode_row((low,), KEY), "max_key": encode_row((high,), KEY)}
    return DataFileMeta(
        file_name=str(name),
        file_size=high - low + 1,
        row_count=high - low + 1,
        level=level,
        delete_row_count=deletes,
        file_source=source,
        creation_time=0,
        **keys,
    )


def groups(files, *, cost=2, one_version=False, target=100):
    found = file_groups(entries(files), partial(key_ranks, types=KEY), target, cost, one_version=one_version)
    return [([int(files[row].file_name) for row in group.rows], "raw" if group.raw_convertible else "merge") for group in found]


def entries(files, bucket=lambda _: 0):
    """Columns of files, all in one bucket unless ``bucket`` tells."""
    made = [
        ManifestEntry(kind=FileKind.ADD, partition=bytes(12), bucket=bucket(at), total_buckets=9, file=file)
        for at, file in enumerate(files)
    ]
    return EntryColumns.of(made)


def test_buckets_of_all_partitions_are_numbered_by_first_appearance():
    parts = [encode_row((value,), KEY) for value in (1, 2)]
    places = [(part, bucket) for part in parts for bucket in (1, -2, 0)]  # -2: postponed
    places = [*places, *places[::-1]]
    made = [
        ManifestEntry(kind=FileKind.ADD, partition=part, bucket=bucket, total_buckets=2, file=file(at, 0, 0, 1))
        for at, (part, bucket) in enumerate(places)
    ]
    assert EntryColumns.of(made).bucket_numbers.tolist() == [0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0]


SIX = [(0, 10), (0, 12), (15, 60), (18, 40), (82, 85), (100, 200)]


def on_level_0(ranges):
    return [file(number, 0, *span) for number, span in enumerate(ranges, 1)]


@pytest.mark.parametrize(("cost", "expected"), [(2, [[1, 2, 4, 3, 5], [6]]), (30, [[1, 2, 4, 3], [5], [6]])])
def test_sections_are_packed_by_size_and_at_least_the_open_cost(cost, expected):
    files = [file(name, 0, *SIX[name - 1]) for name in (1, 2, 3, 4, 5, 6)]
    assert [sorted(members) for members, _ in groups(files, cost=cost)] == [sorted(members) for members in expected]


@pytest.mark.parametrize(
    ("files", "one_version", "expected"),
    [
        ([file(1, 0, 0, 10), file(2, 0, 10, 20)], False, [([1, 2], "merge")]),
        ([file(1, 1, 0, 10, 1), file(2, 1, 10, 20)], False, [([1, 2], "merge")]),
        ([file(1, 1, 0, 10), file(2, 1, 10, 20)], False, [([1, 2], "raw")]),
        ([file(1, 1, 0, 10), file(2, 2, 10, 20)], False, [([1, 2], "merge")]),
        ([file(1, 1, 0, 10), file(2, 2, 10, 20)], True, [([1, 2], "raw")]),
        ([file(1, 1, 0, 10, None), file(2, 1, 10, 20, None)], False, [([1, 2], "raw")]),
        ([file(1, 0, 0, 10)], False, [([1], "raw")]),
        ([file(1, 0, 0, 10, 3)], False, [([1], "merge")]),
    ],
    ids=["level 0 overlap", "deletes", "one level", "two levels", "deletion vectors", "unknown deletes", "lone clean", "lone with deletes"],
)
def test_a_bucket_is_raw_only_where_no_key_has_two_versions(files, one_version, expected):
    assert groups(files, one_version=one_version) == expected


def test_levels_one_to_six_merge_but_for_a_section_of_one_file():
    files = [file(number, number, *span) for number, span in enumerate(SIX, 1)]
    found = groups(files)
    assert [(sorted(members), kind) for members, kind in found] == [([1, 2, 3, 4, 5], "merge"), ([6], "raw")]


def test_a_clean_level_0_file_that_overlaps_none_is_raw_if_it_fills_a_split():
    files = on_level_0([(0, 10), (0, 12), (13, 20), (21, 200), (201, 210), (211, 220)])
    assert groups(files) == [([1, 2, 3], "merge"), ([4], "raw"), ([5, 6], "merge")]


@pytest.mark.parametrize(
    ("target", "cost", "expected"),
    [
        (40, 2, [[1, 2], [3], [4, 5], [6]]),
        (70, 2, [[1, 2, 3], [4, 5], [6]]),
        (40, 20, [[1, 2], [3], [4], [5], [6]]),
    ],
)
def test_append_files_are_packed_in_order(target, cost, expected):
    files = [file(name, 0, 0, size - 1) for name, size in enumerate((11, 13, 46, 23, 4, 101), 1)]
    found = append_groups(files, target, cost)
    assert [[int(f.file_name) for f in group.files] for group in found] == expected
    assert all(group.raw_convertible for group in found)


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 60))
def test_packing_keeps_order_and_exceeds_the_target_only_for_single_items(sizes, target):
    bins = pack(sizes, lambda size: size, target)
    assert [size for packed in bins for size in packed] == sizes
    assert all(sum(packed) <= target or len(packed) == 1 for packed in bins)
    assert all(sum(one) + other[0] > target for one, other in pairwise(bins))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=12))
def test_two_ranges_share_a_section_exactly_if_overlaps_connect_them(spans):
    low, high = [start for start, _ in spans], [start + width for start, width in spans]
    numbers = sections(np.zeros(len(spans), np.int64), np.array(low, np.int64), np.array(high, np.int64)).tolist()
    covered = [any(a <= point <= b for a, b in zip(low, high, strict=True)) for point in range(48)]
    joined = [any(a <= point and point + 1 <= b for a, b in zip(low, high, strict=True)) for point in range(48)]
    for one in range(len(spans)):
        for other in range(len(spans)):
            a, b = sorted((high[one], low[other]))
            apart = high[one] < low[other] and not all(joined[a:b])
            if apart:
                assert numbers[one] < numbers[other]
            elif high[one] >= low[other] and high[other] >= low[one]:
                assert numbers[one] == numbers[other]
    assert all(covered[start] for start in low)


RUNS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 9), st.integers(0, 3), st.sampled_from([0, 0, 0, 1, None])), max_size=14
)


@given(RUNS, st.integers(1, 40), st.integers(1, 12), st.booleans())
def test_all_buckets_at_once_are_what_each_is_by_itself(spans, target, cost, one_version):
    """The model takes one bucket after the other, cuts it into sections and packs them."""
    files = [file(at, level, low, low + width, deletes) for at, (_, low, width, level, deletes) in enumerate(spans)]
    homes = [home for home, *_ in spans]
    found = file_groups(entries(files, homes.__getitem__), partial(key_ranks, types=KEY), target, cost, one_version=one_version)
    expected = []
    for home in dict.fromkeys(homes):
        members = [at for at, other in enumerate(homes) if other == home]
        settled = all(files[at].level > 0 and not files[at].delete_row_count for at in members)
        if settled and (one_version or len({files[at].level for at in members}) == 1):
            units = [[at] for at in members]
        else:
            runs = interval_partition([files[at] for at in members], KEY_OF)
            units = [sorted(int(one.file_name) for run in section for one in run.files) for section in runs]
            settled = False
        for packed in pack(units, lambda unit: max(sum(files[at].file_size for at in unit), cost), target):
            together = sorted(at for unit in packed for at in unit)
            lone = len(together) == 1 and not files[together[0]].delete_row_count
            expected.append((together, settled or lone))
    assert [(sorted(group.rows.tolist()), group.raw_convertible) for group in found] == expected


@given(st.lists(st.tuples(st.none() | st.floats(), st.none() | odd_texts), max_size=20))
def test_ranks_of_keys_are_in_key_order(keys):
    types = (DataType(Kind.DOUBLE), DataType(Kind.VARCHAR))
    rows = [encode_row(key, types) for key in keys]
    files = [DataFileMeta(file_name="f", file_size=1, row_count=1, min_key=row, max_key=row, creation_time=0) for row in rows]
    low, high = key_ranks(entries(files), types)
    assert low.tolist() == high.tolist()
    order = key_decoder(types)
    decoded = [order(row) for row in rows]
    assert low.tolist() == [sorted(set(decoded)).index(key) for key in decoded]


def test_a_split_travels_as_text():
    vector = DeletionFile("/t/index/index-1", 1, 26, 3)
    files = (file(1, 0, 0, 10), file(2, 5, -7, 3, None))
    split = DataSplit(
        partition=encode_row(("ä\0",), (DataType(Kind.VARCHAR, length=9),)),
        bucket=3,
        total_buckets=4,
        files=files,
        raw_convertible=True,
        deletion_files=(vector, None),
        snapshot_id=7,
    )
    assert DataSplit.from_json(split.to_json()) == split


def test_rows_of_a_split_are_known_only_if_deletes_and_dead_rows_are():
    def split(raw=True, deletes=0, vectors=None, source=FileSource.COMPACT):
        files = (file(1, 1, 0, 9, deletes, source=source), file(2, 1, 10, 29))
        return DataSplit(partition=bytes(12), bucket=0, total_buckets=1, files=files, raw_convertible=raw, deletion_files=vectors)

    known, unknown = DeletionFile("i", 1, 9, 4), DeletionFile("i", 1, 9)
    assert split().merged_row_count == split().row_count == 30
    assert split(vectors=(None, known)).merged_row_count == 26
    assert split(vectors=(None, unknown)).merged_row_count is None
    assert split(deletes=None).merged_row_count is None
    assert split(raw=False).merged_row_count is None
    assert split(source=FileSource.APPEND).merged_row_count is None
