"""Compaction strategy on runs that are nothing but sizes; the expected picks are those of Paimon's own tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.levels.sorted_runs import LevelRun, SortedRun
from lsm.levels.universal import (
    CompactUnit,
    EarlyFullCompaction,
    ForceUpLevel0,
    OffPeakHours,
    UniversalCompaction,
    drops_deletes,
    pick_full,
    unit_of_prefix,
)
from manifest.entry.data_file import DataFileMeta

Runs = list[tuple[int, int]]


def runs(*pairs: tuple[int, int]) -> list[LevelRun]:
    return [
        LevelRun(level, SortedRun((DataFileMeta(file_name=f"f{at}", file_size=size, row_count=1, level=level),)))
        for at, (level, size) in enumerate(pairs)
    ]


def level0(*sizes: int) -> Runs:
    return [(0, size) for size in sizes]


def result(unit: CompactUnit | None) -> tuple[list[int], int] | None:
    return None if unit is None else ([file.file_size for file in unit.files], unit.output_level)


@pytest.mark.parametrize(("count", "level"), [(1, 1), (2, 1), (3, 2), (4, 3), (5, 5)])
def test_the_output_level_is_above_the_first_run_left_out(count: int, level: int) -> None:
    assert unit_of_prefix(runs((0, 1), (0, 1), (1, 1), (3, 1), (4, 1)), 5, count).output_level == level


@pytest.mark.parametrize(
    ("settings", "levels", "given_runs", "expected"),
    [
        ((25, 1, 3), 3, level0(1, 2, 3, 3), ([1, 2, 3, 3], 2)),
        ((25, 1, 3), 4, [(0, 1), (1, 1), (2, 1), (3, 50)], ([1, 1, 1], 2)),
        ((25, 1, 3), 4, [(0, 1), (1, 2), (2, 3), (3, 50)], ([1, 2, 3], 2)),
        ((25, 1, 3), 3, [(0, 1), (0, 1), (1, 1), (2, 50)], ([1, 1, 1], 1)),
        ((25, 1, 3), 3, [(0, 1), (0, 2), (1, 3), (2, 50)], ([1, 2, 3], 1)),
        ((200, 1, 3), 3, [(0, 10), (0, 20), (1, 97), (2, 100)], ([10, 20, 97, 100], 2)),
        ((200, 1, 5), 6, level0(1, 1, 1, 1024, 1048576), ([1, 1, 1, 1024, 1048576], 5)),
        ((200, 1, 5), 6, level0(1, 1, 1), None),
        ((200, 1, 5), 6, [], None),
    ],
)
def test_universal_picks(settings: tuple[int, int, int], levels: int, given_runs: Runs, expected: tuple | None) -> None:
    assert result(UniversalCompaction(*settings).pick(runs(*given_runs), levels - 1)) == expected


@pytest.mark.parametrize(
    ("settings", "given_runs", "expected"),
    [
        ((25, 1, 3), level0(1, 2, 2, 2), ([1, 2, 2, 2], 2)),
        ((25, 1, 3), [(0, 1), (1, 2), (2, 2)], ([1, 2, 2], 2)),
        ((25, 1, 3), [(0, 1), (2, 2)], ([1], 1)),
        ((200, 1, 5), level0(1, 1), ([1, 1], 2)),
        ((200, 1, 5), [(0, 1), (1, 10)], ([1, 10], 2)),
        ((200, 1, 5), [(0, 1), (0, 5), (2, 10)], ([1, 5], 1)),
        ((200, 1, 5), [(2, 10)], None),
        ((200, 1, 5), level0(1, 5, 10, 20), ([1, 5, 10, 20], 2)),
        ((200, 1, 5), [(0, 1), (1, 99), (2, 100)], ([1, 99, 100], 2)),
        ((200, 1, 5), [(0, 1), (1, 99), (2, 102)], ([1, 99], 1)),
    ],
)
def test_forcing_level_0_up(settings: tuple[int, int, int], given_runs: Runs, expected: tuple | None) -> None:
    assert result(ForceUpLevel0(UniversalCompaction(*settings)).pick(runs(*given_runs), 2)) == expected


@pytest.mark.parametrize(
    ("given_runs", "expected"),
    [
        (level0(1, 2), None),
        (level0(1, 2, 2), ([1, 2, 2], 2)),
        ([*level0(2, 2), (1, 2), (2, 2)], None),
        ([*level0(2, 2, 2), (1, 2), (2, 2)], ([2, 2, 2, 2, 2], 2)),
        ([*level0(1, 1, 1), (2, 9)], ([1, 1, 1], 1)),
    ],
)
def test_gentle_forcing_goes_by_the_files_that_wait_and_remembers_nothing(given_runs: list, expected: tuple | None) -> None:
    gentle = ForceUpLevel0(UniversalCompaction(25, 1, 9), interval=3)
    assert [result(gentle.pick(runs(*given_runs), 2)) for _ in range(5)] == [expected] * 5


def prepending(pick: Callable[[list[LevelRun], int], CompactUnit | None], sizes: list[int], rounds: int) -> str:
    """Prepend a run of size 1 in each round, and replace what is picked by its sum; each run lies on its own level."""
    seen = []
    for _ in range(rounds):
        sizes = [1, *sizes]
        unit = pick(runs(*((at + 2, size) for at, size in enumerate(sizes))), len(sizes) + 1)
        if unit is not None:
            sizes = [sum(file.file_size for file in unit.files), *sizes[len(unit.files) :]]
        seen.append(",".join(map(str, sizes)))
    return "; ".join(seen)


def test_amplification_series() -> None:
    expected = "2; 3; 4; 1,4; 6; 1,6; 8; 1,8; 1,1,8; 11; 1,11; 1,1,11; 14; 1,14; 1,1,14; 1,1,1,14; 18"
    assert prepending(UniversalCompaction(25, 0, 1).pick_for_size_amplification, [1], 17) == expected


def test_ratio_series() -> None:
    expected = (
        "5; 1,5; 1,1,5; 1,1,1,5; 4,5; 1,4,5; 1,1,4,5; 3,4,5; 1,3,4,5; 2,3,4,5; 1,2,3,4,5; 16; 1,16; 1,1,16; 1,1,1,16; "
        "4,16; 1,4,16; 1,1,4,16; 3,4,16; 1,3,4,16; 2,3,4,16; 1,2,3,4,16; 11,16"
    )
    assert prepending(UniversalCompaction(25, 1, 5).pick_for_size_ratio, [1, 1, 1, 1], 23) == expected


@pytest.mark.parametrize(("ratio", "expected"), [(10, None), (20, ([8, 9, 10], 4))])
def test_the_ratio_decides_whether_a_larger_run_is_taken(ratio: int, expected: tuple | None) -> None:
    assert result(UniversalCompaction(25, ratio, 2).pick_for_size_ratio(runs((2, 8), (3, 9), (4, 10)), 4)) == expected


A: Runs = [(0, 1), (1, 3), (2, 5)]
B: Runs = [(0, 3), (1, 3), (2, 5)]


def test_a_full_compaction_is_due_when_the_interval_has_passed() -> None:
    universal = UniversalCompaction(100, 1, 3, early=EarlyFullCompaction(interval_ms=1000))
    last: int | None = None
    outcomes = []
    for now, given_runs in [(0, A), (1001, A), (1001, A), (1500, B), (2001, A)]:
        unit = universal.pick(runs(*given_runs), 2, now_ms=now, last_full_ms=last)
        outcomes.append(None if unit is None else unit.full)
        last = now if unit is not None and unit.full else last
    assert outcomes == [True, True, None, True, None]


@pytest.mark.parametrize(
    ("early", "levels", "given_runs", "full"),
    [
        (EarlyFullCompaction(total_size_threshold=10), 3, A, True),
        (EarlyFullCompaction(total_size_threshold=10), 3, [(0, 2), (1, 6), (2, 10)], False),
        (EarlyFullCompaction(total_size_threshold=10), 3, [(0, 1)], False),
        (EarlyFullCompaction(total_size_threshold=9), 3, A, False),
        (EarlyFullCompaction(incremental_size_threshold=500), 5, level0(400, 200), True),
        (EarlyFullCompaction(incremental_size_threshold=500), 5, level0(100, 200), False),
        (EarlyFullCompaction(incremental_size_threshold=500), 5, [(0, 100), (0, 300), (4, 500)], False),
        (EarlyFullCompaction(incremental_size_threshold=500), 5, [(0, 100), (0, 300), (0, 300), (4, 500)], True),
    ],
)
def test_size_thresholds_of_early_full_compaction(early: EarlyFullCompaction, levels: int, given_runs: Runs, full: bool) -> None:
    assert early.wants(runs(*given_runs), levels - 1, 0, 0) is full


@pytest.mark.parametrize(("now", "due"), [(10000, False), (10501, True)])
def test_the_clock_can_start_in_the_past(now: int, due: bool) -> None:
    assert EarlyFullCompaction(interval_ms=1000).wants(runs(*A), 2, now, 9500) is due


@pytest.mark.parametrize(
    ("hours", "ratios"),
    [
        ((2, 8), {1: 0, 2: 10, 7: 10, 8: 0}),
        ((22, 6), {21: 0, 22: 10, 0: 10, 5: 10, 6: 0}),
        ((-1, 5), {3: 0}),
        ((5, -1), {3: 0, 7: 0}),
        ((4, 4), {4: 0}),
    ],
)
def test_off_peak_hours(hours: tuple[int, int], ratios: dict[int, int]) -> None:
    assert {hour: OffPeakHours(*hours, 10).ratio_at(hour) for hour in ratios} == ratios


def test_off_peak_ratio_merges_runs_that_the_day_leaves_alone() -> None:
    universal = UniversalCompaction(10**9, 1, 2, off_peak=OffPeakHours(0, 6, 50))
    given_runs = runs((2, 10), (3, 14))
    assert universal.pick(given_runs, 3, hour=12) is None
    assert result(universal.pick(given_runs, 3, hour=5)) == ([10, 14], 3)


def test_a_full_pick_leaves_a_single_run_on_the_deepest_level_alone() -> None:
    assert pick_full([], 5) is None
    assert pick_full(runs((5, 10)), 5) is None
    assert result(pick_full(runs((5, 10)), 5, force_rewrite=True)) == ([10], 5)
    assert result(pick_full(runs((0, 10)), 5)) == ([10], 5)
    assert result(pick_full(runs((0, 1), (5, 10)), 5)) == ([1, 10], 5)


@pytest.mark.parametrize(("output", "highest", "drop"), [(0, 0, False), (1, 2, False), (2, 2, True), (5, 0, True)])
def test_deletes_vanish_only_where_nothing_older_remains(output: int, highest: int, drop: bool) -> None:
    assert drops_deletes(output, highest) is drop


@given(st.lists(st.integers(1, 1000), max_size=12), st.integers(1, 6), st.integers(0, 300), st.integers(0, 50))
def test_a_pick_is_a_prefix_that_never_goes_to_level_0_or_onto_what_it_left(
    sizes: list[int], trigger: int, amplification: int, ratio: int
) -> None:
    split = len(sizes) // 2
    given_runs = runs(*((0, size) if at < split else (at - split + 1, size) for at, size in enumerate(sizes)))
    max_level = max(len(sizes), 5)
    unit = UniversalCompaction(amplification, ratio, trigger).pick(given_runs, max_level)
    if unit is None:
        assert len(sizes) <= trigger
        return
    taken = len(unit.files)
    assert unit.files == tuple(run.run.files[0] for run in given_runs[:taken])
    assert unit.output_level > 0
    left = given_runs[taken:]
    assert (unit.full and unit.output_level == max_level) if not left else unit.output_level < left[0].level
