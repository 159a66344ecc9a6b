"""Versions and times in options of a read select the snapshot of ``Table.scan`` with the same options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the server side needs pyspark")

from pyspark_paimon import InvalidArgument, Table
from pyspark_paimon.spark.server import schema
from pyspark_paimon.spark.wire import rpc


def pinned(table: Table, options: dict[str, str]) -> int:
    given = {"path": table.path, **options}
    schema(given)
    return int(json.loads(given[rpc.SCAN])["snapshot_id"])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table.create(tmp_path / "t", "id BIGINT")
    for number in range(3):
        made.write({"id": [number]})
    made.create_tag("v1", 2)
    return made


def test_a_version_or_a_time_selects_a_snapshot(table: Table) -> None:
    for options, expected in (
        ({"versionAsOf": "1"}, 1),
        ({"versionasof": "v1"}, 2),
        ({"scan.version": "1"}, 1),
        ({"timestampAsOf": "2999-01-01"}, 3),
        ({"scan.timestamp": "2999-01-01 00:00:00"}, 3),
    ):
        assert pinned(table, options) == expected, options
    first = table.scan(options={"scan.snapshot-id": "1"}).to_arrow()
    assert table.scan(options={"scan.version": "1"}).to_arrow() == first


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"versionAsOf": "1", "scan.snapshot-id": "2"}, "give only one of"),
        ({"versionAsOf": "1", "scan.version": "2"}, "give only one of versionAsOf, scan.version"),
        ({"versionAsOf": "1", "timestampAsOf": "2999-01-01"}, "give only one of"),
        ({"timestampAsOf": "soon"}, "'soon' is not a time"),
    ],
)
def test_one_of_them_is_given(table: Table, options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        pinned(table, options)
