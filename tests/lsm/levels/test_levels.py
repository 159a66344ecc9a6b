"""Levels of a bucket, and the cut of files into sections; expected outcomes are those of Paimon's own tests."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.levels.sorted_runs import Levels, interval_partition, key_decoder
from manifest.entry.data_file import DataFileMeta
from manifest.row.binary_row import encode_row
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from sparkexpr.values.column_type import Kind

INT = (DataType(Kind.INT, nullable=False),)
KEY_OF = key_decoder(INT)


def file(low: int, high: int, *, level: int = 0, name: str = "", sequences: tuple[int, int] = (0, 0), size: int = 1) -> DataFileMeta:
    return DataFileMeta(
        file_name=name or f"{level}[{low},{high}]",
        file_size=size,
        row_count=1,
        min_key=encode_row((low,), INT),
        max_key=encode_row((high,), INT),
        level=level,
        min_sequence_number=sequences[0],
        max_sequence_number=sequences[1],
    )


def sections(*ranges: tuple[int, int]) -> list[list[list[tuple[int, int]]]]:
    cut = interval_partition([file(low, high, name=f"{at}") for at, (low, high) in enumerate(ranges)], KEY_OF)
    return [[[(KEY_OF(f.min_key)[0][1], KEY_OF(f.max_key)[0][1]) for f in run.files] for run in section] for section in cut]


@pytest.mark.parametrize("ranges", [[(100, 200), (100, 400), (100, 300), (100, 500)], [(100, 500), (300, 500), (200, 500), (400, 500)]])
def test_files_that_all_overlap_are_a_section_of_single_file_runs(ranges: list[tuple[int, int]]) -> None:
    (section,) = sections(*ranges)
    assert sorted(section) == sorted([one] for one in ranges)


def test_sections_are_disjoint_and_their_runs_few() -> None:
    cut = sections((0, 9), (5, 7), (9, 15), (16, 22), (16, 28), (24, 32))
    assert [sorted(section) for section in cut] == [
        [[(0, 9)], [(5, 7), (9, 15)]],
        [[(16, 22), (24, 32)], [(16, 28)]],
    ]


@given(st.lists(st.lists(st.integers(0, 200), unique=True, max_size=8).map(sorted), max_size=10))
def test_no_section_has_more_runs_than_the_disjoint_runs_it_was_made_of(borders: list[list[int]]) -> None:
    runs = [list(zip(run[::2], run[1::2], strict=False)) for run in borders]
    everything = [one for run in runs for one in run]
    cut = sections(*everything)
    assert sorted(one for section in cut for run in section for one in run) == sorted(everything)
    assert all(len(section) <= sum(bool(run) for run in runs) for section in cut)
    for run in itertools.chain.from_iterable(cut):
        assert all(one[1] < other[0] for one, other in itertools.pairwise(run))
    for one, other in itertools.pairwise(cut):
        assert max(high for run in one for _, high in run) < min(low for run in other for low, _ in run)


@pytest.mark.parametrize(("levels", "highest"), [([], -1), ([0, 0], 0), ([0, 1], 1), ([0, 1, 2], 2)])
def test_the_highest_non_empty_level(levels: list[int], highest: int) -> None:
    files = [file(at, at, level=level, name=f"{at}") for at, level in enumerate(levels)]
    assert Levels(KEY_OF, files, 3).highest_non_empty == highest


def test_level_0_is_newest_first_and_loses_no_file_on_ties() -> None:
    one, other = file(0, 9, name="z", sequences=(98, 100)), file(0, 9, name="a", sequences=(99, 100))
    same = file(0, 9, name="b", sequences=(99, 100))
    for files in itertools.permutations([one, other, same]):
        runs = Levels(KEY_OF, list(files), 3).runs
        assert [run.run.files[0].file_name for run in runs] == ["z", "a", "b"]


def test_a_deeper_level_is_one_run_in_key_order() -> None:
    levels = Levels(KEY_OF, [file(5, 9, level=2), file(0, 3, level=2), file(0, 9)], 6)
    assert [(run.level, len(run.run.files), run.size) for run in levels.runs] == [(0, 1, 1), (2, 2, 2)]
    assert [f.file_name for f in levels.runs[1].run.files] == ["2[0,3]", "2[5,9]"]
    assert levels.max_level == 5


def test_files_that_overlap_on_a_deeper_level_are_corruption() -> None:
    with pytest.raises(CorruptFile, match="overlaps"):
        Levels(KEY_OF, [file(0, 5, level=1), file(5, 9, level=1)], 3)


def test_a_restored_file_can_lie_deeper_than_the_options_say() -> None:
    assert Levels(KEY_OF, [file(0, 1, level=7)], 3).max_level == 7
    assert Levels(KEY_OF, [], 1).max_level == 1


def test_an_update_replaces_files_and_an_upgrade_moves_one() -> None:
    old, kept = file(0, 3, name="x"), file(0, 9, name="y")
    levels = Levels(KEY_OF, [old, kept], 3)
    levels.update([old], [old.upgrade(2)])
    assert [(run.level, run.run.files[0].file_name) for run in levels.runs] == [(0, "y"), (2, "x")]


def test_keys_compare_in_paimons_order() -> None:
    types = (DataType(Kind.VARCHAR, length=10), DataType(Kind.DOUBLE))
    order = key_decoder(types)
    rows = [
        (None, 1.0),
        ("", -math.inf),
        ("a", None),
        ("a", -0.0),
        ("a", 0.0),
        ("a", math.nan),
        ("ab", -1.0),
        ("é", 0.0),
        ("\U0001f600", 0.0),
    ]
    keys = [order(encode_row(row, types)) for row in rows]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(rows)
