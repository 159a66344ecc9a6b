"""A process killed while it marks rows as deleted: every other one sees the change whole or not at all, and loses nothing."""

from __future__ import annotations

import signal

import pyarrow as pa
import pytest

from manifest.snapshot.snapshot import CommitKind
from manifest.store import FileStore
from pyspark_paimon import Table
from tests.pyspark_paimon.table_worker import finish, start

BEFORE = dict.fromkeys(range(1, 20), "old")
ACTIONS = {
    "write": (
        ["write", [["+I", 1, "new"], ["-D", 2, ""], ["+I", 50, "new"]]],
        {**{k: v for k, v in BEFORE.items() if k != 2}, 1: "new", 50: "new"},
    ),
    "delete": (["delete", "id < 10"], dict.fromkeys(range(10, 20), "old")),
    "update": (["update", ["id < 10", "new"]], {key: "new" if key < 10 else "old" for key in range(1, 20)}),
    "compact": (["compact", True], BEFORE),
}
KEYED = [
    *(
        ("write", f"{point}:{visit}")
        for visit in (1, 2)
        for point in ("after-data-files", "after-manifest", "after-temp-snapshot", "after-link")
    ),
    ("write", "between-append-and-compact"),
    ("compact", "after-data-files"),
    ("compact", "after-manifest-list"),
    ("compact", "after-link"),
    ("update", "after-manifest"),
    ("delete", "after-link"),
]
APPENDED = [
    *(("update", point) for point in ("after-data-files", "after-manifest-list", "after-temp-snapshot", "after-link")),
    ("delete", "after-data-files"),
    ("compact", "after-data-files"),
    ("compact", "after-link"),
]
QUICK = {("keyed", "write", "after-link:1"), ("keyed", "write", "after-manifest:2"), ("append", "update", "after-data-files")}
CASES = [*(("keyed", *case) for case in KEYED), *(("append", *case) for case in APPENDED)]


def state(table: Table) -> dict[int, str]:
    rows = [(row["id"], row["city"]) for row in table.scan().to_arrow().to_pylist()]
    assert len(dict(rows)) == len(rows) == table.scan().count()
    return dict(rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "what", "point"),
    [pytest.param(*case, id="-".join(case), marks=() if case in QUICK else pytest.mark.long) for case in CASES],
)
@pytest.mark.sampled(2)
def test_a_killed_change_is_there_whole_or_not_at_all(tmp_path, kind, what, point) -> None:
    keys = {"primary_keys": ["id"], "options": {"bucket": "1", "deletion-vectors.enabled": "true"}}
    plain = {"options": {"deletion-vectors.enabled": "true"}}
    table = Table.create(tmp_path / "t", "id BIGINT, city STRING", **(keys if kind == "keyed" else plain))
    table.write(pa.table({"id": list(range(1, 20)), "city": ["old"] * 19}))
    table.write(pa.table({"id": [100], "city": ["marked"]}))
    table.delete("id = 100")
    if (kind, what) == ("keyed", "compact"):  # something to compact
        table.write(pa.table({"id": [1], "city": ["old"]}), options={"write-only": "true"})
    action, after = ACTIONS[what]
    count = table.snapshots().num_rows
    code, acknowledged, err = finish(start(table.path, [action], fault=point))
    assert (code, acknowledged) == (-signal.SIGKILL, []), err

    newer = [snapshot for snapshot in FileStore.open(table.path).snapshots.backwards() if snapshot.id > count]
    committed = any(snapshot.commit_kind is not CommitKind.COMPACT for snapshot in newer)
    assert state(table) == (after if committed else BEFORE)
    assert table.fsck("deep").problems == ()
    restarted = Table.open(table.path)
    restarted.write(pa.table({"id": [200], "city": ["later"]}))
    expected = {**(after if committed else BEFORE), 200: "later"}
    assert state(restarted) == expected
    restarted.compact(full=True)
    restarted.compact(full=True)
    assert state(restarted) == expected
    assert FileStore.open(table.path).index_entries(FileStore.open(table.path).snapshots.latest()) == []
    restarted.expire_snapshots(retain_min=1, retain_max=1)
    restarted.remove_orphan_files(older_than=2**61)
    assert restarted.list_orphan_files(older_than=2**61) == []
    assert state(restarted) == expected
    assert restarted.fsck("deep").problems == ()
