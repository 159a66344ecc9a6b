"""Checks of index manifests, snapshot by snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from manifest.entry.index_manifest import DELETION_VECTORS, HASH, IndexManifestEntry
from manifest.fsck.live_files import LiveBucket, LiveFiles
from manifest.fsck.manifests import BROKEN, CheckedManifests
from manifest.fsck.problem import Findings, Origin, ProblemKind
from manifest.fsck.unit import IndexUnit, Unit
from manifest.schema.bucket_mode import BucketMode
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore

LEFT_BEHIND = "deletion vectors of files that are gone"


@dataclass
class CheckedIndexes:
    """Index files of a branch's states.

    Each is yielded once, with the newest state that uses it.

    Args:
        store: The branch.
        manifests: Checked manifests of the branch.
        found: Collects the problems.
        hashes: Hash index files of the current state.
        since_beginning: Whether all states from the first on are known, and with them every data file that ever existed.
        were_live: Names of data files that were live before. Complete only with ``since_beginning``.
    """

    store: FileStore
    manifests: CheckedManifests
    found: Findings
    hashes: dict[LiveBucket, IndexUnit] = field(default_factory=dict)
    since_beginning: bool = False
    were_live: set[str] = field(default_factory=set)
    _units: dict[str, IndexUnit] = field(default_factory=dict)
    _given: set[tuple[object, ...]] = field(default_factory=set)
    _name: str | None = None
    _entries: Sequence[IndexManifestEntry] | None = ()
    _noted: set[tuple[str, str]] = field(default_factory=set)
    _marked: int = 0

    def advance(self, snapshot: Snapshot, live: LiveFiles, before: Origin | None, origin: Origin) -> Iterator[Unit]:
        """Advance to a state and yield removed index files.

        These are yielded with ``before``, the last state that had them. None: it has expired.
        """
        if snapshot.index_manifest != self._name:
            self._name = snapshot.index_manifest
            self.found.counts["index manifests"] += 1 if self._name else 0
            path = self.store.paths.manifest(self._name or "")
            read = self.store.index_manifests.read
            self._entries = self.manifests.read_or_report(ProblemKind.INDEX_MANIFEST, path, origin, lambda: read(self._name))
            if self._entries is not None:
                self._check_shape(self._entries, path, origin)
        if self._entries is None:
            return
        units = {entry.file_name: self._unit(entry, live, origin) for entry in self._entries}
        gone = [unit for name, unit in self._units.items() if name not in units or _unit_key(units[name]) != _unit_key(unit)]
        self._units = units
        self.hashes = {(unit.entry.partition, unit.entry.bucket): unit for unit in units.values() if unit.entry.index_type == HASH}
        self._check_live(live, origin)
        if snapshot.schema_id != self.store.schema.id:
            with suppress(*BROKEN):  # the check of schemas reports it
                self.check_enabled(self.store.schemas.get(snapshot.schema_id), origin)
        for unit in gone if before is not None else ():
            yield from self._yield_once(unit.model_copy(update={"origin": before}))

    def check_enabled(self, schema: TableSchema, origin: Origin) -> None:
        """Check that readers apply the table's deletion vectors."""
        # Readers ignore the vectors of a table without the option, and deleted rows come back.
        path = self.store.paths.schema_file(schema.id)
        if not self._marked or schema.core.deletion_vectors_enabled or (path, "") in self._noted:
            return
        self._noted.add((path, ""))
        message = (
            f"does not set deletion-vectors.enabled, but deletion vectors of {self._marked:,} live data files are in {self._name}: "
            "rows that they mark as deleted are read again"
        )
        self.found.add(ProblemKind.SCHEMA, path, message, origin)

    def rest(self, origin: Origin) -> Iterator[Unit]:
        """Yield the index files of the current state."""
        for unit in self._units.values():
            yield from self._yield_once(unit.model_copy(update={"origin": origin}))

    def _yield_once(self, unit: IndexUnit) -> Iterator[Unit]:
        if _unit_key(unit) not in self._given:
            self._given.add(_unit_key(unit))
            yield unit

    def _unit(self, entry: IndexManifestEntry, live: LiveFiles, origin: Origin) -> IndexUnit:
        known = self._units.get(entry.file_name)
        if known is not None and known.entry == entry and len(known.rows) == len(entry.vectors or ()):
            return known
        wanted = {vector.data_file for vector in entry.vectors or ()}
        rows = {file.name: file.rows for file in live.bucket((entry.partition, entry.bucket)) if file.name in wanted} if wanted else {}
        return IndexUnit(origin=origin, entry=entry, manifest=self._name, rows=rows)

    def _check_shape(self, entries: Sequence[IndexManifestEntry], path: str, origin: Origin) -> None:
        """Check for duplicate hash indexes, deletion vectors and names."""
        hashes = Counter((entry.partition, entry.bucket) for entry in entries if entry.index_type == HASH)
        for (_, bucket), count in hashes.items():
            if count > 1:
                self.found.add(ProblemKind.INDEX_MANIFEST, path, f"has {count} hash indexes for bucket {bucket}", origin)
        vectors = Counter(vector.data_file for entry in entries if entry.index_type == DELETION_VECTORS for vector in entry.vectors or ())
        for name, count in vectors.items():
            if count > 1:
                self.found.add(ProblemKind.INDEX_MANIFEST, path, f"has {count} deletion vectors for {name}", origin)
        for name, count in Counter(entry.file_name for entry in entries).items():
            if count > 1:
                self.found.add(ProblemKind.INDEX_MANIFEST, path, f"names {name} {count} times", origin)

    def _check_live(self, live: LiveFiles, origin: Origin) -> None:
        """Check deletion vectors and hash indexes against live files.

        Vectors must be of live files. Every bucket of a table with dynamic buckets must have a hash index.
        """
        assert self._entries is not None
        path = self.store.paths.manifest(self._name or "")
        self._marked = 0
        for entry in self._entries:
            if entry.index_type != DELETION_VECTORS or not entry.vectors:
                continue
            names = {file.name for file in live.bucket((entry.partition, entry.bucket))}
            self._marked += sum(vector.data_file in names for vector in entry.vectors)
            for vector in entry.vectors:
                if vector.data_file in names or (entry.file_name, vector.data_file) in self._noted:
                    continue
                self._noted.add((entry.file_name, vector.data_file))
                if not self.since_beginning or vector.data_file in self.were_live:  # Paimon leaves vectors of rewritten files behind
                    self.found.counts[LEFT_BEHIND] += 1
                else:
                    message = (
                        f"has a deletion vector ({entry.file_name}) for {vector.data_file}, which is not a file of bucket {entry.bucket}"
                    )
                    self.found.add(ProblemKind.DELETION_VECTOR, path, message, origin)
        if self.store.schema.bucket_mode is not BucketMode.HASH_DYNAMIC:
            return
        for bucket_id in live.by_bucket:
            if bucket_id[1] >= 0 and bucket_id not in self.hashes and (str(bucket_id), "") not in self._noted:
                self._noted.add((str(bucket_id), ""))
                self.found.add(ProblemKind.HASH_INDEX, path, f"has no hash index for bucket {bucket_id[1]}, which has files", origin)


def _unit_key(unit: IndexUnit) -> tuple[object, ...]:
    """Return the identity and metadata of an index file."""
    entry = unit.entry
    return entry.file_name, entry.external_path, entry.file_size, entry.row_count, entry.vectors


__all__ = ["LEFT_BEHIND", "CheckedIndexes"]
