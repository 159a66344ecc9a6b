"""Where a scan reads by Paimon's option names: every mode, the options that each needs, and those that are refused by name."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_base.errors import InvalidArgument, PaimonError, UnsupportedOption
from pyspark_paimon import Table
from tests.build import keyed


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Snapshots 1 to 3 append a row each, 4 compacts, 5 appends again."""
    made = keyed(Path(tmp_path_factory.mktemp("modes")) / "t", "id INT", {"write-only": "true"})
    for turn in range(1, 5):
        if turn == 4:
            made.compact(full=True)
        made.write(pa.table({"id": pa.array([turn], pa.int32())}))
    made.create_tag("two", snapshot=2)
    assert made.snapshots()["commit_kind"].to_pylist() == ["APPEND"] * 3 + ["COMPACT", "APPEND"]
    return made


def ids(table: Table, options: dict[str, str]) -> list[int]:
    return sorted(table.scan(options=options).to_arrow()["id"].to_pylist())


def millis(table: Table, snapshot: int) -> int:
    moment: datetime = table.snapshots()["commit_time"][snapshot - 1].as_py()
    return round(moment.timestamp() * 1000)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"scan.mode": "latest"}, [1, 2, 3, 4]),
        ({"scan.mode": "full"}, [1, 2, 3, 4]),
        ({"scan.mode": "compacted-full"}, [1, 2, 3]),
        ({"scan.mode": "from-snapshot", "scan.snapshot-id": "2"}, [1, 2]),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "1"}, [1]),
        ({"scan.tag-name": "two"}, [1, 2]),
        ({"scan.version": "two"}, [1, 2]),
        ({"scan.version": "3"}, [1, 2, 3]),
        ({"incremental-between": "1,3"}, [2, 3]),
        ({"scan.mode": "incremental", "incremental-between": "two,5", "incremental-between-scan-mode": "diff"}, [3, 4]),
    ],
    ids=str,
)
def test_modes(table: Table, options: dict[str, str], wanted: list[int]) -> None:
    assert ids(table, options) == wanted


def test_modes_by_time(table: Table) -> None:
    second = millis(table, 2)
    assert ids(table, {"scan.timestamp-millis": str(second)}) == [1, 2]
    local = datetime.fromtimestamp(second / 1000).isoformat(sep=" ", timespec="milliseconds")  # noqa: DTZ006  # the wall's clock
    assert ids(table, {"scan.mode": "from-timestamp", "scan.timestamp": local}) == [1, 2]
    assert ids(table, {"incremental-between-timestamp": f"{second},{millis(table, 3)}"}) == [3]
    assert ids(table, {"incremental-between-timestamp": f"0,{second}"}) == [1, 2]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"scan.mode": "sideways"}, UnsupportedOption, "'sideways' is not a scan mode"),
        ({"scan.mode": "from-file-creation-time"}, UnsupportedOption, "by creation time"),
        ({"scan.creation-time-millis": "1"}, UnsupportedOption, "scan.creation-time-millis"),
        ({"incremental-to-auto-tag": "t"}, UnsupportedOption, "incremental-to-auto-tag"),
        ({"scan.mode": "from-snapshot"}, InvalidArgument, "needs one of"),
        ({"scan.mode": "latest", "scan.snapshot-id": "1"}, InvalidArgument, "takes no position options"),
        ({"scan.snapshot-id": "1", "scan.tag-name": "two"}, InvalidArgument, "needs one of"),
        ({"scan.snapshot-id": "one"}, InvalidArgument, "'one' is not a number"),
        ({"incremental-between": "3"}, InvalidArgument, "give two points"),
        ({"incremental-between": "1,3", "incremental-between-scan-mode": "x"}, InvalidArgument, "one of auto"),
        ({"scan.tag-name": "three"}, PaimonError, "no tag 'three'"),
    ],
    ids=str,
)
def test_what_names_no_place(table: Table, options: dict[str, str], error: type[PaimonError], said: str) -> None:
    with pytest.raises(error, match=said):
        ids(table, options)


def test_a_place_is_named_once(table: Table) -> None:
    with pytest.raises(InvalidArgument, match="twice"):
        table.scan(snapshot=1, options={"scan.snapshot-id": "1"})
