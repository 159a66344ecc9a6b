"""Invariants of the merge tree under random flushes, driven by the simulator: nothing is lost, runs stay disjoint and few."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from benchmarks.compaction_simulator import SETTINGS, Setting, Simulation, picture, simulate

FLUSHES = 250


def check_disjoint(run: Simulation) -> None:
    for level_run in run.levels.runs:
        for one, other in itertools.pairwise(level_run.run.files):
            assert one.max_key < other.min_key


def check_rows(run: Simulation) -> None:
    seen = run.visible()
    np.testing.assert_array_equal(seen.keys, np.flatnonzero(run.alive))
    np.testing.assert_array_equal(seen.sequence, run.newest[run.alive])


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_row_survives_and_sorted_runs_are_disjoint(setting: Setting, seed: int) -> None:
    run = Simulation(setting, key_space=5_000, flush_rows=120, seed=seed)
    for flush in range(FLUSHES):
        run.flush()
        check_disjoint(run)
        if flush % 10 == 0:
            check_rows(run)
    check_rows(run)
    assert run.compactions > 10
    assert {file.file_name for file in run.levels.files} <= set(run.content)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_no_flush_begins_above_the_stop_trigger_however_slow_compaction_is(setting: Setting) -> None:
    run = Simulation(setting, key_space=5_000, bandwidth=1.0, seed=3)
    for _ in range(FLUSHES):
        run.flush()
        assert len(run.levels.runs) <= setting.stop_trigger + 1  # the flush itself adds one
    assert run.waited > 0
    check_rows(run)


def test_a_writer_never_waits_for_a_compaction_that_keeps_up() -> None:
    run = Simulation(SETTINGS[0], key_space=5_000, bandwidth=float("inf"), seed=4)
    for _ in range(FLUSHES):
        run.flush()
    assert run.waited == 0
    assert run.most_runs <= SETTINGS[0].trigger + 1


def test_tombstones_leave_the_deepest_level() -> None:
    run = simulate(SETTINGS[0], FLUSHES)
    deepest = [file for file in run.levels.files if file.level == run.levels.max_level]
    assert deepest
    assert all(file.delete_row_count == 0 for file in deepest)


def test_more_runs_cost_reads_and_spare_writes() -> None:
    default, writes, reads = (simulate(setting, FLUSHES * 2) for setting in SETTINGS)
    assert writes.series["write"][-1] < default.series["write"][-1] < reads.series["write"][-1]
    assert np.mean(writes.series["read"]) > np.mean(default.series["read"]) > np.mean(reads.series["read"])
    assert np.mean(reads.series["space"]) < np.mean(default.series["space"])


def test_a_seed_gives_the_same_run_again() -> None:
    assert simulate(SETTINGS[0], 60, seed=5).series == simulate(SETTINGS[0], 60, seed=5).series


def test_the_picture_has_a_line_per_setting_in_every_panel() -> None:
    root = ET.fromstring(picture([simulate(setting, 30) for setting in SETTINGS]))
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 3 * len(SETTINGS)
