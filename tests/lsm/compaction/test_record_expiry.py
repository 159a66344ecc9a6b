"""Rows whose time has passed: which a compaction leaves behind, which files it looks at for that, and what stays as it was."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lsm.compaction.record_expiry import RecordExpiry
from manifest.io.errors import UnsupportedTable
from manifest.schema.validation import build_schema
from manifest.store import FileStore
from paimon_base.errors import UnsupportedOption
from pyspark_paimon import Table

DAY = 86_400
NOW = int(time.time())
OLD, NEW = NOW - 20 * DAY, NOW - DAY
EXPIRES = {"bucket": "1", "record-level.expire-time": "10 d", "record-level.time-field": "t"}


def made(path: Path, kind: str = "INT", **options: str) -> Table:
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    return Table.create(path, f"id INT, t {kind}, v INT", primary_keys=["id"], options={**EXPIRES, **named})


def rows(*values: tuple[int, Any, int]) -> pa.Table:
    ids, times, numbers = zip(*values, strict=True)
    return pa.table({"id": pa.array(ids, pa.int32()), "t": pa.array(times, pa.int32()), "v": pa.array(numbers, pa.int32())})


def seen(table: Table) -> dict[int, int | None]:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


TIMES = {
    "INT": (pa.int32(), 1),
    "BIGINT": (pa.int64(), 1),
    "TIMESTAMP(0)": (pa.timestamp("ms"), 1_000),
    "TIMESTAMP(3)": (pa.timestamp("ms"), 1_000),
    "TIMESTAMP(6)": (pa.timestamp("us"), 1_000_000),
    "TIMESTAMP(9)": (pa.timestamp("ns"), 1_000_000_000),
    "TIMESTAMP_LTZ(6)": (pa.timestamp("us", "UTC"), 1_000_000),
}


@pytest.mark.parametrize("kind", TIMES)
def test_each_kind_of_time_is_a_number_of_seconds(tmp_path: Path, kind: str) -> None:
    store = FileStore.open(str(made(tmp_path / "t", kind).path))
    expiry = replace(RecordExpiry.of(store), clock=lambda: 1_700_000_000.9)  # type: ignore[type-var]
    arrow, unit = TIMES[kind]
    edge = 1_700_000_000 - 10 * DAY
    values = [(edge - 1) * unit, edge * unit, None, 0]
    if kind == "BIGINT":
        values += [(edge - 1) * 1000 + 999, edge * 1000, 999_999_999_999]
    found = expiry.alive(pa.table({"t": pa.array(values, pa.int64()).cast(arrow) if unit > 1 else pa.array(values, arrow)}))
    kept = found["t"].cast(pa.int64()).to_pylist()
    assert kept == [edge * unit, None, *([edge * 1000, 999_999_999_999] if kind == "BIGINT" else [])]


def test_a_full_compaction_leaves_expired_rows_behind_and_reads_show_them_until_then(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.write(rows((1, OLD, 1), (2, NEW, 2), (3, None, 3)))
    assert seen(table) == {1: 1, 2: 2, 3: 3}
    table.compact(full=True)
    assert seen(table) == {2: 2, 3: 3}
    assert table.scan().count() == 2
    assert table.fsck(depth="deep").problems == ()


def test_a_file_on_the_deepest_level_is_written_anew_once_its_rows_expire(tmp_path: Path) -> None:
    table = made(tmp_path / "t", record_level__expire_time="90 d")
    table.write(rows((1, OLD, 1), (2, NEW, 2)))
    table.compact(full=True)
    before = table.snapshots()
    table.compact(full=True)
    assert len(table.snapshots()) == len(before)
    table.alter_options({"record-level.expire-time": "10 d"})
    table.compact(full=True)
    assert seen(table) == {2: 2}
    table.alter_options({"record-level.expire-time": "1 h"})
    table.compact(full=True)
    assert seen(table) == {}


def test_the_version_that_is_left_is_the_newest_that_has_not_expired(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.write(rows((1, NEW, 1)))
    table.write(rows((1, OLD, 2)))
    assert seen(table) == {1: 2}
    table.compact(full=True)
    assert seen(table) == {1: 1}


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "first-row"])
def test_an_expired_version_below_dies_with_the_one_that_replaces_it(tmp_path: Path, engine: str) -> None:
    vectors = {} if engine == "first-row" else {"deletion_vectors__enabled": "true"}
    table = made(tmp_path / "t", merge_engine=engine, record_level__expire_time="90 d", **vectors)
    table.write(rows((1, OLD, 1), *((i, NEW, i) for i in range(2, 50))))
    table.compact(full=True)
    table.alter_options({"record-level.expire-time": "10 d"})
    update = rows((1, NEW, 9)).set_column(2, "v", pa.array([None], pa.int32())) if engine == "partial-update" else rows((1, NEW, 9))
    table.write(update)
    wanted = {"deduplicate": 9, "partial-update": None, "first-row": 1}[engine]
    assert seen(table)[1] == wanted
    assert table.scan().count() == 49
    assert table.fsck(depth="deep").problems == ()


def test_mending_statistics_keeps_expired_rows(tmp_path: Path) -> None:
    table = made(tmp_path / "t", file_index__bitmap__columns="v")
    table.write(rows((1, OLD, 1), (2, NEW, 2)))
    table.rewrite_file_index()
    assert seen(table) == {1: 1, 2: 2}


@pytest.mark.parametrize(
    ("ddl", "keys", "options", "said"),
    [
        ("id INT, t DATE", ["id"], {}, "record-level.time-field': 't' is DATE"),
        ("id INT, s INT", ["id"], {}, "record-level.time-field': 't' is not a column"),
        ("id INT, t INT", [], {}, "record-level.expire-time': needs a primary key"),
        ("id INT, t INT", ["id"], {"record-level.time-field": None}, "record-level.expire-time': needs 'record-level.time-field'"),
        ("id INT, t INT", ["id"], {"record-level.expire-time": "soon"}, "record-level.expire-time': 'soon' is not a duration"),
    ],
)
def test_options_by_which_no_row_can_expire(ddl: str, keys: list[str], options: dict[str, Any], said: str) -> None:
    given = {key: value for key, value in {**EXPIRES, **options}.items() if value is not None and (keys or key != "bucket")}
    with pytest.raises(UnsupportedOption, match=said):
        build_schema(ddl, primary_keys=keys, options=given)


def test_a_table_of_another_engine_whose_rows_cannot_expire_is_read_and_not_written(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.write(rows((1, OLD, 1)))
    schema = tmp_path / "t" / "schema" / "schema-0"
    definition = json.loads(schema.read_text())
    del definition["crc32"], definition["options"]["record-level.time-field"]
    schema.write_text(json.dumps(definition))
    other = Table.open(tmp_path / "t")
    assert seen(other) == {1: 1}
    with pytest.raises(UnsupportedTable, match="record-level"):
        other.write(rows((2, OLD, 1)))
