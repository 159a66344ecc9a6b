"""Tables of other engines with options that are not built here: each refuses reads or writes by the option's name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.io.errors import UnsupportedTable
from manifest.options.known_keys import REFUSED, ROWS, ROWS_OF_STREAMS
from manifest.options.secondary_indexes import REFUSED_PREFIXES
from paimon_base.errors import UnsupportedOption
from pyspark_paimon import Table
from tests.build import ids
from tests.manifest.options.paimon_keys import PAIMON_KEYS, REFUSED_KEYS, refused_value

pytestmark = pytest.mark.local_files

READS: dict[str, Callable[[Table], Any]] = {
    "rows": lambda table: table.scan().to_arrow(),
    "filtered": lambda table: table.scan("id = 1", columns=["v"]).to_arrow(),
    "count": lambda table: table.scan().count(),
    "aggregate": lambda table: table.scan().aggregate({"v": ["max"]}),
    "plan": lambda table: table.scan().plan(),
    "lookup": lambda table: table.lookup([{"id": 1}]),
    "system": lambda table: Table.open(table.path + "$audit_log").scan().to_arrow(),
    "changes": lambda table: table.scan(incremental=(0, 1)).to_arrow(),
    "stream": lambda table: next(iter(table.follow()), None),
}
WRITES: dict[str, Callable[[Table], Any]] = {
    "write": lambda table: table.write(ROWS_OF_TABLE),
    "overwrite": lambda table: table.write(ROWS_OF_TABLE, mode="overwrite"),
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update("id = 1", set={"v": 5}),
    "compact": lambda table: table.compact(full=True),
}
ROWS_OF_TABLE = pa.table({"id": pa.array([1, 2], pa.int64()), "v": pa.array([1, 2], pa.int64())})


@pytest.fixture
def written(create) -> Table:
    table = create("id BIGINT, v BIGINT", primary_keys=["id"], options={"bucket": "1", "changelog-producer": "input"})
    table.write(ROWS_OF_TABLE)
    return table


def with_option(table: Table, key: str, value: str) -> Table:
    """The table as another engine left it, with an option that we do not let anybody set."""
    path = Path(table.path) / "schema" / "schema-0"
    schema = json.loads(path.read_text())
    schema["options"][key] = value
    path.write_text(json.dumps(schema))
    return Table.open(table.path)


def refusal_of(key: str) -> str:
    refusal = REFUSED.get(key)
    return "id" if refusal is None and key.startswith(REFUSED_PREFIXES) else refused_value(REFUSED[key])


def assert_refused(table: Table, calls: dict[str, Callable[[Table], Any]], key: str, value: str) -> None:
    for name, call in calls.items():
        with pytest.raises((UnsupportedTable, UnsupportedOption)) as caught:
            call(table)
        assert f"'{key}'" in str(caught.value), name
        assert f"'{value}'" in str(caught.value), name


@pytest.mark.parametrize("key", sorted(ROWS))
def test_what_changes_rows_and_is_not_built_is_refused_when_read(written, key) -> None:
    value = refused_value(ROWS[key])
    assert_refused(with_option(written, key, value), READS, key, value)


@pytest.mark.parametrize("key", REFUSED_KEYS)
def test_what_is_not_built_is_refused_when_written(written, key) -> None:
    value = refusal_of(key)
    assert_refused(with_option(written, key, value), WRITES, key, value)


@pytest.mark.parametrize("key", sorted(ROWS_OF_STREAMS))
def test_what_changes_streams_and_is_not_built_is_refused_by_them_alone(written, key) -> None:
    value = refused_value(ROWS_OF_STREAMS[key])
    table = with_option(written, key, value)
    assert table.scan().count() == 2
    table.write(ROWS_OF_TABLE)
    assert_refused(table, {"stream": READS["stream"]}, key, value)


@pytest.mark.parametrize(("present", "former"), [(key, former) for key in sorted(ROWS) for former in PAIMON_KEYS.get(key, ())])
def test_a_former_key_is_refused_by_its_present_name(written, present, former) -> None:
    value = refused_value(ROWS[present])
    table = with_option(written, former, value)
    for calls in (READS, WRITES):
        assert_refused(table, calls, present, value)


@pytest.mark.parametrize("key", PAIMON_KEYS["ignore-delete"])
def test_a_former_ignore_delete_keeps_rows(written, key) -> None:
    table = with_option(written, key, "true")
    table.write(ROWS_OF_TABLE.slice(0, 1).append_column("_row_kind", pa.array(["-D"])))
    assert ids(table) == [1, 2]
    assert with_option(table, "ignore-delete", "false").options["ignore-delete"] == "false"


@pytest.mark.parametrize("given", [{"log.scan": "from-snapshot", "scan.snapshot-id": "1"}, {"log.scan.timestamp-millis": "9999999999999"}])
def test_a_scan_takes_former_keys(written, given) -> None:
    written.write(pa.table({"id": pa.array([3], pa.int64()), "v": pa.array([3], pa.int64())}))
    assert written.scan(options=given).count() == (2 if "log.scan" in given else 3)


def test_map_layouts_are_refused_by_name(create) -> None:
    table = create("id BIGINT, m MAP<STRING, BIGINT>", options={"fields.m.map.storage-layout": "default"})
    table.write(pa.table({"id": pa.array([1], pa.int64()), "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}))
    read = with_option(table, "fields.m.map.storage-layout", "shared-shredding")
    for call in (lambda: read.scan().to_arrow(), lambda: read.write(table.scan().to_arrow())):
        with pytest.raises(UnsupportedTable, match=r"'fields\.m\.map\.storage-layout'.*'shared-shredding'"):
            call()


def test_a_call_cannot_take_back_that_rights_are_asked(written) -> None:
    table = with_option(written, "query-auth.enabled", "true")
    with pytest.raises(Exception, match=r"query-auth\.enabled"):
        table.scan(options={"query-auth.enabled": "false"}).to_arrow()
