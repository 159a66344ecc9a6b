"""Times around the start of 1970 in ORC files that Java wrote in three zones; each file has the same 60 wall clocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from manifest.io.file_io import LocalFileIO
from pyspark_paimon.plugins.file_formats.orc.reader import OrcDataFile, with_java_seconds

SECOND = 1_000_000_000
ZONES = {"utc": ("", 0), "shanghai": ("Asia/Shanghai", 8 * 3600), "new_york": ("America/New_York", -5 * 3600)}
DAYS = [
    "1969-12-31T07:00:00",
    "1969-12-31T18:59:59",
    "1969-12-31T19:00:00",
    "1969-12-31T18:59:58",
    "1969-12-31T23:59:58",
    "1969-12-31T23:59:59",
]
DAYS += [
    "1970-01-01T00:00:00",
    "1970-01-01T00:00:01",
    "1970-01-01T07:59:59",
    "1970-01-01T08:00:00",
    "1969-01-01T00:00:00",
    "2000-01-01T00:00:00",
]
FRACTIONS = [0, 999_999, 1_000_000, 123_456_789, 999_999_999]
WRITTEN = np.array([np.datetime64(day, "ns").astype(np.int64) + fraction for day in DAYS for fraction in FRACTIONS])


def as_java_reads(ahead: int) -> np.ndarray:
    """Java's writer loses the last second before 1970 as a moment; all else is as it was written."""
    moments = WRITTEN - ahead * SECOND
    return WRITTEN + SECOND * ((moments >= -SECOND) & (moments < 0) & (WRITTEN % SECOND > 999_999))


@pytest.mark.parametrize("name", sorted(ZONES))
def test_times_are_those_that_java_reads(name: str) -> None:
    path = str(Path(__file__).parent / "zones" / f"{name}.orc")
    zone, ahead = ZONES[name]
    with OrcDataFile(LocalFileIO(), path) as data:
        assert data._tail.writer_zone(data.read_range, 0) == zone
        found = data.decode_group(["t"], data.row_groups[0]).column(0)
    assert found.cast(pa.int64()).to_numpy().tolist() == as_java_reads(ahead).tolist()


def test_times_inside_of_other_types_are_mended_and_nulls_stay() -> None:
    times = pa.array([None, 1_000_000, SECOND // 2, 40 * 3600 * SECOND], pa.timestamp("ns"))
    rows = pa.StructArray.from_arrays([times, pa.array([1, 2, 3, 4])], names=["t", "n"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 4], pa.int32()), rows)
    maps = pa.MapArray.from_arrays(pa.array([0, 2, 4], pa.int32()), pa.array(list("abcd")), lists.values)
    wanted = [None, 1_000_000 - SECOND, SECOND // 2 - SECOND, 40 * 3600 * SECOND]
    for array, inner in ((lists, lambda found: found.values.field("t")), (maps, lambda found: found.items.field("t"))):
        found = with_java_seconds(array, lambda: "Asia/Shanghai")
        assert found.type == array.type
        assert inner(found).cast(pa.int64()).to_pylist() == wanted


def test_the_zone_is_asked_where_it_matters_alone() -> None:
    def never() -> str:
        raise AssertionError("asked")

    for array in (
        pa.array([0, 999_999, 40 * 3600 * SECOND + 5_000_000, None], pa.timestamp("ns")),
        pa.array([5_000_000], pa.timestamp("ns", "UTC")),
    ):
        assert with_java_seconds(array, never).equals(array)
    assert with_java_seconds(pa.array([5_000_000], pa.timestamp("ns")), lambda: "No/Where").cast(pa.int64()).to_pylist() == [5_000_000]
