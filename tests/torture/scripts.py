"""What the fault plan carries out: short scripts that meet every kind of commit, and the tables they start on."""

from __future__ import annotations

from dataclasses import dataclass

from tests.torture.model import Operation, Row
from tests.torture.tables import DYNAMIC, EMBEDDED, FIRST, SIDECAR, SUM, VECTORS, Configuration


@dataclass(frozen=True)
class Script:
    """``before`` makes the table; each of ``steps`` may meet the fault."""

    configuration: Configuration
    before: tuple[Operation, ...]
    steps: tuple[Operation, ...]


def _rows(keys: range, n: int) -> list[Row]:
    return [{"id": key, "p": key % 3, "n": n, "s": f"s{n}"} for key in keys]


def _write(keys: range, n: int, op: str = "write") -> Operation:
    return {"op": op, "id": f"{op}-{n}", "rows": _rows(keys, n)}


def _delete(low: int, high: int) -> Operation:
    return {"op": "delete", "id": f"delete-{low}-{high}", "between": [low, high]}


def _update(low: int, high: int) -> Operation:
    return {"op": "update", "id": f"update-{low}-{high}", "between": [low, high], "set": {"n": 77, "s": "updated"}}


_FIRST = (_write(range(12), 1), _write(range(6, 18), 2))
_EXPIRING = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}

SCRIPTS = {
    "write and compact": Script(
        Configuration("", options={"bucket": "1"}),
        _FIRST,
        (_write(range(4), 3), {"op": "compact"}, _write(range(3), 4), {"op": "compact-full"}),
    ),
    "vectors": Script(Configuration("", options={**VECTORS, "bucket": "1"}), _FIRST, (_write(range(4), 3), _delete(2, 8), _update(8, 10))),
    "append": Script(
        Configuration("", "append", SIDECAR), _FIRST, (_write(range(3), 3), _update(1, 3), _delete(7, 9), {"op": "compact-full"})
    ),
    "append, vectors": Script(Configuration("", "append", VECTORS), _FIRST, (_update(1, 3), _delete(7, 9), {"op": "compact-full"})),
    "overwrite, partitioned": Script(
        Configuration("", options={"bucket": "1"}, partitioned=True), _FIRST, (_write(range(0, 6, 3), 3, "overwrite"), _write(range(3), 4))
    ),
    "overwrite, vectors": Script(Configuration("", options=VECTORS), _FIRST, (_write(range(5), 3, "overwrite"), _write(range(3), 4))),
    "tags and rollback": Script(
        Configuration("", options={"bucket": "1"}),
        _FIRST,
        (
            {"op": "tag", "name": "t1"},
            _write(range(3), 3),
            {"op": "expire", "keep": 1},
            {"op": "tag", "name": "t2"},
            {"op": "rollback", "name": "t1"},
            {"op": "untag", "name": "t1"},
        ),
    ),
    "expiring": Script(
        Configuration("", options={**_EXPIRING, "changelog-producer": "lookup"}), _FIRST, (_write(range(3), 3), _write(range(4), 4))
    ),
    "branches": Script(
        Configuration("", options={"bucket": "1"}),
        _FIRST,
        ({"op": "branch", "name": "b", "tag": "t"}, {"op": "fast-forward", "name": "b"}, {"op": "unbranch", "name": "b"}),
    ),
    "indexes and columns": Script(
        Configuration("", options={**EMBEDDED, "bucket": "1"}),
        _FIRST,
        (
            {"op": "index", "indexes": {"bitmap": "n", "bloom-filter": "s"}},
            {"op": "add-column", "name": "x"},
            {"op": "analyze"},
            {"op": "orphans"},
        ),
    ),
    "dynamic buckets": Script(Configuration("", options={**DYNAMIC, **VECTORS}), _FIRST, (_write(range(10, 30), 3), _delete(3, 5))),
    "first-row": Script(
        Configuration("", "first-row", {**FIRST, "bucket": "1"}), _FIRST, (_write(range(10, 22), 3), {"op": "compact-full"})
    ),
    "aggregation, changelog": Script(
        Configuration("", "aggregation", {**SUM, "bucket": "1", "changelog-producer": "full-compaction"}),
        _FIRST,
        (_write(range(4), 3), _write(range(4), 4)),
    ),
}
