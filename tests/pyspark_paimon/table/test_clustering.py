"""Clustered append tables: what a compaction sorts, on which level it lies then, and what is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon import Table

CLUSTERED = {"clustering.columns": "a", "clustering.incremental": "true", "num-sorted-run.compaction-trigger": "3"}


def rows(seed: int, count: int = 60) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table({"a": pa.array(draw.integers(0, 1000, count), pa.int32()), "b": [f"s{n}" for n in draw.integers(0, 99, count)]})


def made(path: Path, **options: str) -> Table:
    return Table.create(path, "a INT, b STRING", options={**CLUSTERED, **options})


def levels(table: Table) -> list[int]:
    return sorted(table.files()["level"].to_pylist())


def test_runs_are_sorted_as_they_come_and_everything_if_asked(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for seed in range(2):
        table.write(rows(seed))
    assert table.compact().files_before == 0
    table.write(rows(2))
    assert table.compact().files_before == 3
    assert levels(table) == [3]
    assert table.compact(full=True).files_before == 0
    (info,) = table.clustering_information().to_pylist()
    assert (info["file_count"], info["average_overlaps"], info["average_depth"], info["max_depth"]) == (1, 0.0, 1.0, 1)
    table.write(rows(3))
    assert levels(table) == [0, 3]
    (info,) = table.clustering_information().to_pylist()
    assert (info["average_overlaps"], info["max_depth"]) == (1.0, 2)
    table.compact(full=True)
    found = table.scan().to_arrow()
    assert sorted(found["a"].to_pylist()) == sorted(value for seed in range(4) for value in rows(seed)["a"].to_pylist())
    assert found["a"].to_pylist() == sorted(found["a"].to_pylist())
    assert table.fsck(depth="deep").problems == ()


def test_other_columns_are_a_reason_to_sort_anew(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.write(rows(0))
    table.compact(full=True)
    table.alter_options({"clustering.columns": "b"})
    assert table.compact(full=True).files_before == 1
    assert table.scan().to_arrow()["b"].to_pylist() == sorted(rows(0)["b"].to_pylist())


def test_dead_rows_are_left_behind(tmp_path: Path) -> None:
    table = made(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    for seed in range(3):
        table.write(rows(seed))
    table.delete("a < 500")
    table.compact(full=True)
    assert table.scan("a < 500").count() == 0
    assert table.files()["row_count"].to_pylist() == [table.scan().count()]
    assert table.fsck(depth="deep").problems == ()


def test_depths_and_overlaps_are_those_of_the_ranges(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "p STRING, a DOUBLE, s STRING", partition_keys=["p"])
    for first, last in ((0, 10), (5, 6), (6, 20), (30, 40)):
        table.write(pa.table({"p": ["x", "x"], "a": [float(first), float(last)], "s": [None, None]}, schema=table.schema))
    table.write(pa.table({"p": ["y"], "a": [1.5], "s": ["q"]}, schema=table.schema))
    found = {(row["partition"], row["column"]): row for row in table.clustering_information(["a", "s"]).to_pylist()}
    one = found["p=x", "a"]
    assert (one["file_count"], one["average_overlaps"], one["average_depth"], one["max_depth"]) == (4, 1.5, 2.5, 3)
    assert found["p=y", "a"]["constant_file_count"] == 1
    assert (found["p=x", "s"]["unknown_file_count"], found["p=x", "s"]["average_depth"]) == (4, None)
    with pytest.raises(InvalidArgument, match=r"clustering\.columns"):
        table.clustering_information()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"clustering.columns": "x"}, "clustering.columns': 'x' is not a column"),
        ({"clustering.strategy": "snake"}, "clustering.strategy': 'snake' is not a strategy"),
        ({"clustering.columns": ""}, "clustering.incremental': needs 'clustering.columns'"),
        ({"bucket": "2", "bucket-key": "a"}, "clustering.incremental': needs a table without"),
    ],
)
def test_what_cannot_be_sorted_is_refused(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UnsupportedOption, match=said):
        made(tmp_path / "t", **options)
