"""The tables whose files rot: each engine and layout, with tags, branches, statistics, consumers, notes and every kind of index."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_paimon import Table
from tests.torture.operations import opened
from tests.torture.settled import settled

GOLDEN = Path(__file__).parents[1] / "golden"
REPEATED = "5f1dd6d2-6f37-4a29-9d5b-0a4d2c5d9e11"
"""The id of a write that may be asked for again."""
DDL = (
    "id BIGINT NOT NULL, s STRING, n INT, d DOUBLE, p DECIMAL(20,2), ts TIMESTAMP(6), day DATE, b BOOLEAN, "
    "a ARRAY<INT>, m MAP<STRING, INT>, r ROW<x SMALLINT, y BYTES>"
)
INDEXES = {
    "file-index.bitmap.columns": "s",
    "file-index.bloom-filter.columns": "n,id",
    "file-index.bloom-filter.n.items": "100",
    "file-index.bloom-filter.id.items": "100",
    "file-index.bsi.columns": "id",
    "file-index.range-bitmap.columns": "n,day",
}


def rows(first: int, last: int, version: int, schema: pa.Schema | None = None) -> pa.Table:
    """Rows of keys from ``first`` up to ``last``; nulls, NaN and texts that begin alike are among them."""
    made = [
        {
            "id": i,
            "s": None if i % 7 == 0 else f"text {i % 11}{'x' * (i % 20)}",
            "n": None if i % 5 == 0 else i * version,
            "d": float("nan") if i % 9 == 0 else i / 4,
            "p": Decimal(i * version).scaleb(-2),
            "ts": dt.datetime(2024, 1, 1) + dt.timedelta(seconds=i),  # noqa: DTZ001 -- a zoneless type
            "day": dt.date(2024, 1, 1) + dt.timedelta(i % 100),
            "b": i % 2 == 0,
            "a": [i, None] if i % 3 else None,
            "m": [(str(i), i)],
            "r": {"x": i % 1000, "y": bytes([i % 256])} if i % 4 else None,
        }
        for i in range(first, last)
    ]
    return pa.Table.from_pylist(made, schema=schema)


@dataclass(frozen=True)
class Rotting:
    """How a table is made: options, primary key, partitions, and what happens to it after three writes."""

    keys: Sequence[str] = ()
    options: Mapping[str, str] = None  # type: ignore[assignment]
    partitions: Sequence[str] = ()
    after: Callable[[Table, Path], None] | None = None
    ddl: str = DDL
    count: int = 30
    writes: int = 3

    def make(self, path: Path) -> None:
        Table.create(path, self.ddl, primary_keys=self.keys, partition_keys=self.partitions, options=self.options or {})
        table = opened(str(path))
        step = self.count // 3
        for version, first in enumerate((0, 2 * step, 4 * step)[: self.writes], 1):
            some = rows(first, first + self.count, version, table.schema)
            table.write(some, commit_id=REPEATED if version == 2 else None)
        if self.after is not None:
            self.after(table, path)


def _tagged(table: Table, path: Path) -> None:
    table.create_tag("first", snapshot=1)
    table.create_tag("now")
    table.analyze()


def _branched(table: Table, path: Path) -> None:
    table.create_tag("first", snapshot=1)
    table.create_branch("trial", from_tag="first")
    branch = opened(str(path), branch="trial")
    branch.write(rows(200, 220, 1, branch.schema))
    list(table.follow(consumer="reader", max_rows=20))


def _deleted(table: Table, path: Path) -> None:
    table.delete("id IN (1, 5, 9, 33, 47)")
    table.create_tag("deleted")


def _deleted_some(table: Table, path: Path) -> None:
    table.delete("id IN (3, 17, 25, 44)")


def _evolved(table: Table, path: Path) -> None:
    table.change_type("n", "BIGINT").rename_column("s", "t").drop_column("b").add_column("extra", "INT")
    old = {"t": "s"}
    made = rows(70, 90, 4, pa.schema([field.with_name(old.get(field.name, field.name)) for field in table.schema if field.name != "extra"]))
    made = made.append_column("extra", pa.array(range(20), pa.int32())).rename_columns(table.schema.names)
    table.write(made)


def _noted(table: Table, path: Path) -> None:
    for batch in range(2):
        table.write(rows(100 + batch, 101 + batch, 5, table.schema), commit_id="job", batch_id=batch)


OWN: dict[str, Rotting] = {
    "append, sidecar indexes": Rotting(
        options=INDEXES | {"file-index.in-manifest-threshold": "10 b", "file.compression": "snappy"}, after=_tagged
    ),
    "append, embedded indexes": Rotting(
        options=INDEXES | {"file-index.in-manifest-threshold": "1 mb", "file.compression": "gzip", "manifest.compression": "null"}
    ),
    "append, vectors": Rotting(
        options=INDEXES | {"deletion-vectors.enabled": "true", "bucket": "2", "bucket-key": "id"}, after=_deleted_some
    ),
    "partitioned": Rotting(partitions=("b",), options={"file.compression": "none"}, ddl=DDL, after=_tagged),
    "merged on read": Rotting(("id",), {"bucket": "1", "write-only": "true", "file.compression": "lz4"}, after=_branched),
    "compacted": Rotting(("id", "day"), {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}, after=_tagged),
    "deletion vectors": Rotting(
        ("id",), INDEXES | {"bucket": "1", "deletion-vectors.enabled": "true", "file-index.in-manifest-threshold": "10 b"}, after=_deleted
    ),
    "dynamic buckets": Rotting(("id",), {"bucket": "-1", "dynamic-bucket.target-row-num": "20"}, after=_noted),
    "partial update": Rotting(
        ("id",), {"bucket": "2", "changelog-producer": "input", "merge-engine": "partial-update", "manifest.compression": "deflate"}
    ),
    "aggregation": Rotting(
        ("id",),
        {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "changelog-producer": "lookup"},
        after=_branched,
    ),
    "first row": Rotting(("id",), {"bucket": "1", "merge-engine": "first-row", "data-file.thin-mode": "true"}),
    "evolved": Rotting(("id",), {"bucket": "1", "write-only": "true"}, after=_evolved),
    "paged": Rotting(ddl="id BIGINT, s STRING, n INT, d DOUBLE, day DATE", count=36_000, writes=1),
    "large": Rotting(
        options={"file-index.bitmap.columns": "n", "file.block-size": "200kb"}, ddl="id BIGINT, s STRING, n INT, d DOUBLE", count=24_000
    ),
}
JAVAS = (
    "all_types_pk", "append_idx", "append_embedded", "append_range_bitmap", "append_bsi", "codecs", "evolved", "pk_agg", "pk_changelog_lookup",
    "pk_dv", "pk_dynamic", "pk_first", "pk_partial_group", "pk_seq", "tagged",
)  # fmt: skip


def names() -> list[str]:
    """All configurations; those of the engine in Java come last."""
    return [*OWN, *(f"java {name}" for name in JAVAS)]


def make(name: str, path: Path) -> None:
    """The table of that name at ``path``, byte by byte the same each time."""
    if name in OWN:
        with settled(name):
            OWN[name].make(path)
    else:
        shutil.copytree(GOLDEN / name.removeprefix("java ") / "table", path)


def kind_of(relative: str, table: str) -> str:
    """What a file of a table is: the kinds of which figures are given."""
    path = Path(relative)
    if path.parts[0] == "branch":
        return f"branch: {kind_of(str(Path(*path.parts[2:])), table)}"
    for beginning, kind in _KINDS.items():
        if path.name.startswith(beginning):
            return kind
    if path.suffix == ".parquet":
        return "changelog file" if path.name.startswith("changelog") else "data file"
    if path.suffix == ".index":
        return "index"
    if path.parts[0] == "index":
        return "hash index" if "dynamic" in table else "deletion vectors"
    return {"statistics": "statistics", "writer": "note"}.get(path.parts[0], "other")


_KINDS: dict[str, Any] = {
    "schema-": "schema", "snapshot-": "snapshot", "LATEST": "hint", "EARLIEST": "hint", "tag-": "tag", "manifest-list-": "manifest list",
    "index-manifest-": "index manifest", "manifest-": "manifest", "consumer-": "consumer", "stat-": "statistics",
}  # fmt: skip
