"""A trigger that grows with the logarithm of the bucket: amplification, runs, and options that turn it off."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.compaction.policy import CompactionPolicy
from lsm.levels.sorted_runs import LevelRun, SortedRun
from lsm.levels.universal import ForceUpLevel0, GrowingTrigger, UniversalCompaction
from manifest.entry.data_file import DataFileMeta
from manifest.options.core_options import CoreOptions
from manifest.schema.table_kind import KeyValueTable

FLUSH = 1_000
LEVEL0_SIZE = 200 * FLUSH
MAX_LEVEL = 5


class Bucket:
    """A bucket of runs without data; the rows of a merge are all retained."""

    def __init__(self, strategy: UniversalCompaction, base: int = 0) -> None:
        self.strategy = strategy
        self.runs: list[LevelRun] = []
        self.written = self.flushed = self.names = 0
        if base:
            self.runs.append(self._run(MAX_LEVEL, base))

    def _run(self, level: int, size: int) -> LevelRun:
        self.names += 1
        return LevelRun(level, SortedRun((DataFileMeta(file_name=f"f{self.names}", file_size=size, row_count=1, level=level),)))

    def flush(self, size: int = FLUSH) -> None:
        """Add a run to level 0, and compact once."""
        self.runs.insert(0, self._run(0, size))
        self.flushed += size
        unit = self.strategy.pick(self.runs, MAX_LEVEL)
        if unit is None or unit.changes_nothing:
            return
        merged = sum(file.file_size for file in unit.files)
        self.written += merged
        self.runs[: len(unit.files)] = [self._run(unit.output_level, merged)]
        levels = [run.level for run in self.runs]
        assert levels == sorted(levels)
        assert all(level == 0 or levels.count(level) == 1 for level in levels), "a deeper level is one run"
        assert unit.output_level > 0 or merged <= LEVEL0_SIZE

    @property
    def amplification(self) -> float:
        """Bytes written, by bytes flushed."""
        return 1 + self.written / self.flushed


@pytest.mark.parametrize("base", [0, 1_000 * FLUSH])
def test_amplification_stays_near_the_logarithm_of_the_flushes(base: int) -> None:
    fixed, growing = Bucket(UniversalCompaction(), base), Bucket(UniversalCompaction(growth=GrowingTrigger(24, LEVEL0_SIZE)), base)
    for flush in range(1, 1_201):
        fixed.flush()
        growing.flush()
        runs = math.log2((base + flush * FLUSH) / FLUSH)
        assert len(growing.runs) <= max(5, runs + 1)
    assert growing.amplification < 0.6 * math.log2(1_200) < 10 < fixed.amplification


@given(
    sizes=st.lists(st.integers(1, 50 * FLUSH), min_size=1, max_size=60),
    most=st.integers(5, 24),
    base=st.sampled_from([0, 10, 5_000]),
)
def test_runs_return_to_the_trigger_for_flushes_of_any_size(sizes: list[int], most: int, base: int) -> None:
    bucket = Bucket(UniversalCompaction(growth=GrowingTrigger(most, LEVEL0_SIZE)), base * FLUSH)
    for size in sizes:
        before = len(bucket.runs)
        bucket.flush(size)
        assert len(bucket.runs) <= max(most, before)
        assert 5 <= bucket.strategy.trigger_of(bucket.runs) <= most


def test_a_small_result_stays_on_level_0_and_a_large_one_takes_the_runs_up_to_level_1() -> None:
    strategy = UniversalCompaction(trigger=3, growth=GrowingTrigger(3, 100))
    sizes = [(0, 10), (0, 10), (0, 80), (1, 1_000), (5, 100_000)]
    runs = [
        LevelRun(level, SortedRun((DataFileMeta(file_name=f"f{size}-{level}", file_size=size, row_count=1, level=level),)))
        for level, size in sizes
    ]
    unit = strategy.pick(runs, MAX_LEVEL)
    assert unit is not None
    assert ([file.file_size for file in unit.files], unit.output_level) == ([10, 10], 0)
    unit = UniversalCompaction(trigger=3, growth=GrowingTrigger(3, 19)).pick(runs, MAX_LEVEL)
    assert unit is not None
    assert ([file.file_size for file in unit.files], unit.output_level) == ([10, 10, 80, 1_000], 4)


def policy(**options: str) -> CompactionPolicy:
    return CompactionPolicy.of(KeyValueTable(CoreOptions.of({key.replace("_", "-"): value for key, value in options.items()})))


def growth(**options: str) -> GrowingTrigger | None:
    strategy = policy(**options).strategy
    return strategy.universal.growth if isinstance(strategy, ForceUpLevel0) else strategy.growth


def test_only_tables_without_an_explicit_trigger_grow() -> None:
    assert growth() == GrowingTrigger(24, int(128 * 2**20 * 0.7))
    assert growth(**{"num-sorted-run.compaction-trigger": "5"}) is None
    assert growth(**{"compaction.force-up-level-0": "true"}) is None, "nothing may stay on level 0"
    assert growth(changelog_producer="lookup") is None, "nothing may stay on level 0"
    assert growth(merge_engine="first-row") is None


def test_writers_wait_three_runs_after_the_trigger_or_at_the_explicit_stop() -> None:
    small = [LevelRun(0, SortedRun((DataFileMeta(file_name=f"f{number}", file_size=1, row_count=1),))) for number in range(7)]
    base = LevelRun(MAX_LEVEL, SortedRun((DataFileMeta(file_name="base", file_size=1 << 12, row_count=1, level=MAX_LEVEL),)))
    assert not policy().is_crowded(small)
    assert policy().is_crowded([*small, small[0]])
    assert not policy().is_crowded([*small, base]), "a large base allows more runs"
    stop = CompactionPolicy.of(KeyValueTable(CoreOptions.of({"num-sorted-run.stop-trigger": "8"})))
    assert stop.is_crowded([*small, base])
    assert isinstance(stop.strategy, UniversalCompaction)
    assert stop.strategy.trigger_of([*small, base]) == 8
