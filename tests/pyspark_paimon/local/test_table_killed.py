"""A process killed with SIGKILL at a named point leaves a readable table that equals what was acknowledged.

The commit that was under way may be there whole or not at all, never in part; the next process writes, compacts and
expires as if nothing had happened, and what the dead one left behind is found as orphans.
"""

from __future__ import annotations

import signal

import pyarrow as pa
import pytest

from manifest.io.failpoints import POINTS
from pyspark_paimon import Table
from tests.pyspark_paimon.table_worker import finish, start

KEYS = 20


def generation(name: str) -> list[object]:
    return ["write", [["+I", key, name] for key in range(KEYS)]]


HISTORY = [generation("a"), generation("b"), ["write", [["-D", 0, "b"], ["+I", 99, "b"]]]]
STATE_BEFORE = {**dict.fromkeys(range(1, KEYS), "b"), 99: "b"}
STATES_AFTER = {
    "write": {**STATE_BEFORE, 1: "c", 50: "c"},
    "delete": {99: "b"},
    "compact": STATE_BEFORE,
    "expire": STATE_BEFORE,
}
LAST = {
    "write": ["write", [["+I", 1, "c"], ["+I", 50, "c"]]],
    "delete": ["delete", "id < 50"],
    "compact": ["compact", True],
    "expire": ["expire", 1],
}
VISIBLE = {"after-link", "after-hint", "between-append-and-compact", "inside-expiry"}
QUICK = {
    ("write", "after-temp-snapshot"),
    ("write", "after-link"),
    ("compact", "after-link"),
}
CASES = [
    *(("write", point, {"num-sorted-run.compaction-trigger": "3"}) for point in POINTS if point != "inside-expiry"),
    ("write", "after-link:2", {"num-sorted-run.compaction-trigger": "3"}),
    ("write", "inside-expiry", {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}),
    ("delete", "after-manifest", {}),
    ("delete", "after-link", {}),
    *(("compact", point, {}) for point in ("after-data-files", "after-manifest-list", "after-temp-snapshot", "after-link", "after-hint")),
    ("expire", "inside-expiry", {}),
]


def marks(what: str, point: str) -> list[pytest.MarkDecorator]:
    """A store has no temporary file."""
    local = [pytest.mark.local_files] if point == "after-temp-snapshot" else []
    return local if (what, point) in QUICK else [*local, pytest.mark.long]


def state(table: Table) -> dict[int, str]:
    return {row["id"]: row["city"] for row in table.scan().to_arrow().to_pylist()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "point", "options"),
    [pytest.param(*case, id=f"{case[0]}-{case[1]}", marks=marks(*case[:2])) for case in CASES],
)
def test_a_killed_process_leaves_what_was_acknowledged(create, what, point, options) -> None:
    table = create("id BIGINT, city STRING")
    for _, rows in HISTORY:
        kinds, ids, cities = zip(*rows, strict=True)
        table.write(pa.table({"id": ids, "city": cities, "_row_kind": kinds}))
    table.alter_options(options)
    worker = start(table.path, [LAST[what]], fault=point)
    code, acknowledged, err = finish(worker)
    assert code == -signal.SIGKILL, err
    assert acknowledged == []
    expected = STATES_AFTER[what] if point.partition(":")[0] in VISIBLE else STATE_BEFORE
    assert state(table) == expected
    assert table.scan().count() == len(expected)

    assert table.fsck("deep").problems == ()
    restarted = Table.open(table.path)
    restarted.write(pa.table({"id": [200], "city": ["after"]}))
    expected = {**expected, 200: "after"}
    assert state(restarted) == expected
    restarted.compact(full=True)
    restarted.expire_snapshots(retain_min=1, retain_max=1)
    restarted.remove_orphan_files(older_than=2**61)
    assert restarted.list_orphan_files(older_than=2**61) == []
    assert state(restarted) == expected
    ids = restarted.snapshots()["snapshot_id"].to_pylist()
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    assert restarted.fsck("deep").problems == ()
