"""Whole tables to damage, and surgery on them: metadata are written anew around a change, so that only one thing is wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from manifest.entry.data_file import ManifestEntry
from manifest.entry.index_manifest import IndexManifestEntry
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from pyspark_paimon import Table
from pyspark_paimon.results.fsck_problem import ProblemKind

INDEXES = {
    "file-index.bitmap.columns": "city",
    "file-index.bsi.columns": "n",
    "file-index.range-bitmap.columns": "n",
    "file-index.bloom-filter.columns": "city,m[k]",
    "file-index.bloom-filter.city.items": "100",
    "file-index.bloom-filter.m.items": "100",
    "file-index.in-manifest-threshold": "1 b",
}
COLUMNS = "id BIGINT, part STRING, city STRING, n INT, m MAP<STRING, INT>"


def rows_of(table: Table, ids: Sequence[int], part: str = "a") -> pa.Table:
    maps = [[("k", i % 5), ("j", i)] if i % 4 else None for i in ids]
    columns: dict[str, Any] = {
        "id": ids,
        "part": [part] * len(ids),
        "city": [f"city {i % 11}" if i % 6 else None for i in ids],
        "n": [i * 3 % 50 if i % 7 else None for i in ids],
        "m": maps,
    }
    return pa.table({name: pa.array(columns[name], table.schema.field(name).type) for name in table.schema.names})


def written(path: Path) -> str:
    """Partitions, two buckets, two levels, sidecar indexes, changelog files; rows in level 0 on top."""
    options = {"bucket": "2", "write-only": "true", "changelog-producer": "input", **INDEXES}
    table = Table.create(path, COLUMNS, ["id", "part"], ["part"], options)
    table.write(rows_of(table, range(60)))
    table.write(rows_of(table, range(20)))
    table.write(rows_of(table, range(40), "b"))
    table.compact(full=True)
    table.write(rows_of(table, range(30, 95)))
    return table.path


def keyed(path: Path) -> str:
    """The same with a tag, an older schema, deleted rows, statistics, a consumer."""
    table = Table.open(written(path))
    table.create_tag("kept", 3)
    table.alter_options({"snapshot.num-retained.min": "3"})
    table.delete("id < 10 AND part = 'a'")
    table.analyze(["id"])
    consumers = path / "consumer"
    consumers.mkdir()
    (consumers / "consumer-me").write_text('{"nextSnapshot": 2}')
    return table.path


def plain(path: Path) -> str:
    """Rows of a partition in two buckets, without indexes and statistics."""
    options = {"bucket": "2", "write-only": "true", "metadata.stats-mode": "none"}
    table = Table.create(path, COLUMNS, ["id", "part"], ["part"], options)
    table.write(rows_of(table, range(60)))
    return table.path


def vectored(path: Path) -> str:
    """Deletion vectors in two buckets."""
    table = Table.create(path, "id BIGINT, n INT", ["id"], [], {"bucket": "2", "deletion-vectors.enabled": "true"})
    table.write(pa.table({"id": range(100), "n": pa.array(range(100), pa.int32())}))
    table.compact(full=True)
    table.write(pa.table({"id": range(0, 100, 9), "n": pa.array(range(12), pa.int32())}))
    return table.path


def marked(path: Path) -> str:
    """An append table whose deleted rows are marked in deletion vectors."""
    table = Table.create(path, "id BIGINT, n INT", [], [], {"bucket": "-1", "deletion-vectors.enabled": "true"})
    table.write(pa.table({"id": range(50), "n": pa.array(range(50), pa.int32())}))
    table.delete("id < 5")
    return table.path


def dynamic(path: Path) -> str:
    """Dynamic buckets with hash indexes."""
    table = Table.create(path, "id BIGINT, n INT", ["id"], [], {"dynamic-bucket.target-row-num": "20"})
    table.write(pa.table({"id": range(50), "n": pa.array(range(50), pa.int32())}))
    table.write(pa.table({"id": range(40, 60), "n": pa.array(range(20), pa.int32())}))
    return table.path


def changelogs(path: Path) -> str:
    """Changelogs that stay when their snapshots have expired."""
    options = {
        "bucket": "1",
        "changelog-producer": "input",
        "changelog.num-retained.min": "9",
        "changelog.num-retained.max": "9",
        "snapshot.num-retained.min": "1",
    }
    table = Table.create(path, "id BIGINT, n INT", ["id"], [], options)
    for n in range(3):
        table.write([{"id": 1, "n": n}])
    table.expire_snapshots(retain_min=1, retain_max=1)
    return table.path


def branched(path: Path) -> str:
    """An append table with a branch that went its own way."""
    table = Table.create(path, "id BIGINT, n INT", [], [], {"file-index.bitmap.columns": "n"})
    table.write(pa.table({"id": range(20), "n": pa.array([i % 3 for i in range(20)], pa.int32())}))
    table.create_tag("fork")
    table.create_branch("side", "fork")
    side = Table.open(path, branch="side")
    side.write(pa.table({"id": [77], "n": pa.array([7], pa.int32())}))
    table.write(pa.table({"id": [88], "n": pa.array([8], pa.int32())}))
    return table.path


class Surgeon:
    """Changes the newest snapshot of a table (or ``snapshot_id``) and what it names, all the rest stays consistent."""

    def __init__(self, path: str, snapshot_id: int | None = None) -> None:
        self.store = FileStore.open(path)
        self.root = Path(self.store.root)
        latest = self.store.snapshots.latest() if snapshot_id is None else self.store.snapshots.get(snapshot_id)
        assert latest is not None
        self.snapshot: Snapshot = latest

    def file(self, *parts: str) -> Path:
        return self.root.joinpath(*parts)

    def name(self, name: str) -> Path:
        """A file in the directory of manifests."""
        return self.root / "manifest" / name

    def publish(self, **fields: Any) -> Path:
        """The snapshot with other fields."""
        path = self.root / "snapshot" / f"snapshot-{self.snapshot.id}"
        self.snapshot = self.snapshot.model_copy(update=fields)
        path.write_text(self.snapshot.to_json())
        return path

    def metas(self, side: str = "delta") -> list[ManifestFileMeta]:
        name = getattr(self.snapshot, f"{side}_manifest_list")
        return self.store.manifest_lists.read(name)

    def relist(self, metas: Sequence[ManifestFileMeta], side: str = "delta") -> Path:
        """A new base or delta list."""
        name, size = self.store.manifest_lists.write(metas)
        self.publish(**{f"{side}_manifest_list": name, f"{side}_manifest_list_size": size})
        return self.name(name)

    def entries(self, side: str = "delta") -> list[ManifestEntry]:
        return [entry for meta in self.metas(side) for entry in self.store.manifests.read_meta(meta).entries()]

    def reentry(self, entries: Sequence[ManifestEntry], side: str = "delta", *, counters: bool = True) -> Path:
        """Other entries in the base or delta; the counters of the snapshot follow."""
        before = _rows(self.entries(side))
        metas = self.store.manifests.write(entries)
        change = _rows(entries) - before
        self.relist(metas, side)
        if counters:
            delta = {"delta_record_count": self.snapshot.delta_record_count + change} if side == "delta" else {}
            self.publish(total_record_count=self.snapshot.total_record_count + change, **delta)
        return self.name(metas[0].file_name)

    def change(self, pick: Callable[[ManifestEntry], bool], **fields: Any) -> Path:
        """Other fields for the first entry of the delta that ``pick`` takes; answers its data file."""
        entries = self.entries()
        at = next(at for at, entry in enumerate(entries) if entry.kind == 0 and pick(entry))
        entry = entries[at]
        outer = {name: fields.pop(name) for name in ("bucket", "total_buckets", "partition") if name in fields}
        entries[at] = entry.model_copy(update={**outer, "file": entry.file.model_copy(update=fields)})
        self.reentry(entries)
        return Path(self.store.physical_files(entry.partition, entry.bucket, entries[at].file)[0])

    def live(self) -> list[ManifestEntry]:
        return self.store.live_entries(self.snapshot).entries()

    def path_of(self, entry: ManifestEntry) -> Path:
        return Path(self.store.physical_files(entry.partition, entry.bucket, entry.file)[0])

    def rewrite(self, edit: Callable[[pa.Table], pa.Table], **fields: Any) -> Path:
        """The rows of a file that the newest snapshot adds to bucket 0, changed; its size in the manifest follows."""
        entry = next(entry for entry in self.entries() if entry.kind == 0 and entry.bucket == 0)
        path = self.path_of(entry)
        table = edit(pq.ParquetFile(path).read())
        pq.write_table(table, path, store_decimal_as_integer=True)
        return self.change(lambda other: other.file.file_name == entry.file.file_name, file_size=path.stat().st_size, **fields)

    def index_entries(self) -> list[IndexManifestEntry]:
        return self.store.index_manifests.read(self.snapshot.index_manifest)

    def reindex(self, entries: Sequence[IndexManifestEntry]) -> Path:
        """Another index manifest."""
        name = self.store.index_manifests.write(entries)
        self.publish(index_manifest=name)
        return self.name(name or "")

    def index_path(self, entry: IndexManifestEntry) -> Path:
        return Path(self.store.paths.index(entry.file_name, self.store.partition.decode(entry.partition), entry.bucket))

    def schema(self, schema_id: int, **fields: Any) -> Path:
        path = self.file("schema", f"schema-{schema_id}")
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
        return path


def _rows(entries: Sequence[ManifestEntry]) -> int:
    return sum(entry.file.row_count * (1 if entry.kind == 0 else -1) for entry in entries)


def flip(path: Path, at: int, bit: int = 1) -> Path:
    """One bit of a file; a negative ``at`` counts from its end."""
    data = bytearray(path.read_bytes())
    data[at] ^= bit
    path.write_bytes(data)
    return path


def cut(path: Path, count: int = 5) -> Path:
    """A file without its last bytes."""
    path.write_bytes(path.read_bytes()[:-count])
    return path


def gone(path: Path) -> Path:
    path.unlink()
    return path


MAKERS = {
    "written": written,
    "keyed": keyed,
    "plain": plain,
    "vectored": vectored,
    "marked": marked,
    "dynamic": dynamic,
    "branched": branched,
    "changelogs": changelogs,
}
Damage = Callable[[Surgeon], Path]


class Copies:
    """Whole tables, each made once, copied for every test."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def of(self, name: str) -> Path:
        path = self._home / name
        return path if path.exists() else Path(MAKERS[name](path))

    def copy(self, name: str, to: Path) -> str:
        return shutil.copytree(self.of(name), to / name).as_posix()


def named(path: str, depth: str) -> set[tuple[str, str]]:
    """(kind, name of the file) of all problems."""
    return {(problem.kind.value, Path(problem.path).name) for problem in Table.open(path).fsck(depth).problems}


class Case(NamedTuple):
    """Damage to a table of some shape, which is found from some depth on."""

    kind: ProblemKind
    shape: str
    depth: str
    damage: Damage


def check(copies: Copies, home: Path, case: Case) -> None:
    """The damage, and nothing else, is found, and nothing where the check does not go so deep, unless no scan takes the file either."""
    path = copies.copy(case.shape, home)
    where = case.damage(Surgeon(path))
    found = named(path, case.depth)
    assert {kind for kind, _ in found} == {case.kind}, found
    assert where.name in {name for _, name in found}, (where, found)
    shallower = {"footers": "quick", "deep": "footers"}.get(case.depth)
    assert shallower is None or named(path, shallower) <= _refused(path, where)


def _refused(path: str, file: Path) -> set[tuple[str, str]]:
    """What a check that stops at footers says of a file whose footer a scan refuses."""
    try:
        Table.open(path).scan().to_arrow()
    except CorruptFile as error:
        return {(ProblemKind.DATA_FILE.value, file.name)} if file.name in str(error) else set()
    return set()
