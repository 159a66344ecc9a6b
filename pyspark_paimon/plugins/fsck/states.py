"""Checks of a branch's states, snapshot by snapshot.

Verifies that manifests are consistent, and finds the files that must exist. Paimon reads a state as a set, so inconsistencies may stay
unnoticed for long: an identity added after its deletion stays deleted, counters become wrong, a merged manifest that lost an entry loses
its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind
from manifest.entry.index_manifest import DELETION_VECTORS, HASH, IndexManifestEntry
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.paths import POSTPONE_BUCKET
from manifest.schema.table_schema import BucketMode, TableSchema
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from pyspark_paimon.plugins.fsck.live_files import LiveBucket, LiveFiles, digest
from pyspark_paimon.plugins.fsck.manifests import BROKEN, CheckedManifests
from pyspark_paimon.plugins.fsck.row_ranges import broken_ranges
from pyspark_paimon.plugins.fsck.unit import DataUnit, IndexUnit, Unit, place_of
from pyspark_paimon.results.fsck_problem import Findings, Origin, ProblemKind

LEFT_BEHIND = "deletion vectors of files that are gone"


@dataclass
class CheckedIndexes:
    """Index files of a branch's states.

    Each is yielded once, with the newest state that uses it.

    Args:
        store: The branch.
        manifests: Checked manifests of the branch.
        findings: Collects the problems.
        hashes: Hash index files of the current state.
        since_beginning: Whether all states from the first on are known, and with them every data file that ever existed.
        were_live: Names of data files that were live before. Complete only with ``since_beginning``.
    """

    store: FileStore
    manifests: CheckedManifests
    findings: Findings
    hashes: dict[LiveBucket, IndexUnit] = field(default_factory=dict)
    since_beginning: bool = False
    were_live: set[str] = field(default_factory=set)
    _units: dict[str, IndexUnit] = field(default_factory=dict)
    _yielded: set[tuple[object, ...]] = field(default_factory=set)
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
            self.findings.counts["index manifests"] += 1 if self._name else 0
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
        self.findings.add(ProblemKind.SCHEMA, path, message, origin)

    def rest(self, origin: Origin) -> Iterator[Unit]:
        """Yield the index files of the current state."""
        for unit in self._units.values():
            yield from self._yield_once(unit.model_copy(update={"origin": origin}))

    def _yield_once(self, unit: IndexUnit) -> Iterator[Unit]:
        if _unit_key(unit) not in self._yielded:
            self._yielded.add(_unit_key(unit))
            yield unit

    def _unit(self, entry: IndexManifestEntry, live: LiveFiles, origin: Origin) -> IndexUnit:
        earlier_unit = self._units.get(entry.file_name)
        if earlier_unit is not None and earlier_unit.entry == entry and len(earlier_unit.rows) == len(entry.vectors or ()):
            return earlier_unit
        vector_files = {vector.data_file for vector in entry.vectors or ()}
        rows = (
            {file.name: file.rows for file in live.bucket((entry.partition, entry.bucket)) if file.name in vector_files}
            if vector_files
            else {}
        )
        return IndexUnit(origin=origin, entry=entry, manifest=self._name, rows=rows)

    def _check_shape(self, entries: Sequence[IndexManifestEntry], path: str, origin: Origin) -> None:
        """Check for duplicate hash indexes, deletion vectors and names."""
        hashes = Counter((entry.partition, entry.bucket) for entry in entries if entry.index_type == HASH)
        for (_, bucket), count in hashes.items():
            if count > 1:
                self.findings.add(ProblemKind.INDEX_MANIFEST, path, f"has {count} hash indexes for bucket {bucket}", origin)
        vectors = Counter(vector.data_file for entry in entries if entry.index_type == DELETION_VECTORS for vector in entry.vectors or ())
        for name, count in vectors.items():
            if count > 1:
                self.findings.add(ProblemKind.INDEX_MANIFEST, path, f"has {count} deletion vectors for {name}", origin)
        for name, count in Counter(entry.file_name for entry in entries).items():
            if count > 1:
                self.findings.add(ProblemKind.INDEX_MANIFEST, path, f"names {name} {count} times", origin)

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
                    self.findings.counts[LEFT_BEHIND] += 1
                else:
                    message = (
                        f"has a deletion vector ({entry.file_name}) for {vector.data_file}, which is not a file of bucket {entry.bucket}"
                    )
                    self.findings.add(ProblemKind.DELETION_VECTOR, path, message, origin)
        if self.store.schema.bucket_mode is not BucketMode.HASH_DYNAMIC:
            return
        for bucket_id in live.by_bucket:
            if bucket_id[1] >= 0 and bucket_id not in self.hashes and (str(bucket_id), "") not in self._noted:
                self._noted.add((str(bucket_id), ""))
                self.findings.add(ProblemKind.HASH_INDEX, path, f"has no hash index for bucket {bucket_id[1]}, which has files", origin)


def _unit_key(unit: IndexUnit) -> tuple[object, ...]:
    """Return the identity and metadata of an index file."""
    entry = unit.entry
    return entry.file_name, entry.external_path, entry.file_size, entry.row_count, entry.vectors


WAITING, WAITING_BUCKETS = "files that wait for compaction", "buckets with files that wait for compaction"


@dataclass
class CheckedStates:
    """Checks the states of one branch.

    Args:
        store: The branch.
        findings: Collects the problems.
        seen_digests: Digests of files yielded before, of any branch.
        schema_ids: Existing schemas.
    """

    store: FileStore
    findings: Findings
    seen_digests: set[bytes]
    schema_ids: set[int]
    _manifests: CheckedManifests = field(init=False)
    _indexes: CheckedIndexes = field(init=False)
    _overlaps: set[tuple[str, str]] = field(default_factory=set)
    _lists: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._manifests = CheckedManifests(self.store, self.findings)
        self._indexes = CheckedIndexes(self.store, self._manifests, self.findings)

    def chain(self, snapshots: Iterator[Snapshot]) -> Iterator[Unit]:
        """Yield the files of all snapshots, oldest first.

        Each comes with the newest snapshot that uses it.
        """
        live: LiveFiles | None = None
        previous: Snapshot | None = None
        origin: Origin | None = None
        for snapshot in snapshots:
            self._indexes.since_beginning |= previous is None and snapshot.id == 1
            if previous is None or previous.id + 1 != snapshot.id:
                if live is not None and origin is not None:
                    yield from self._remaining(live, origin)
                live = origin = None
            before, origin = origin, Origin(branch=self.store.branch, snapshot=snapshot.id)
            self._lists.add((snapshot.base_manifest_list, snapshot.delta_manifest_list))
            base = self._manifests.read_list(snapshot.base_manifest_list, snapshot.base_manifest_list_size, origin)
            delta = self._manifests.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size, origin)
            live = None if base is None else self._state_before(live, base, snapshot, origin)
            entries = None if delta is None else self._manifests.entries(delta, origin)
            if live is not None and delta is not None and entries is not None:
                yield from self._advance(live, (*live.manifests, *(meta.file_name for meta in delta)), entries, snapshot, before)
            else:
                live = None
            yield from self._changelog(snapshot, origin)
            previous = snapshot
        if live is not None and origin is not None:
            self._indexes.check_enabled(self.store.schema, origin)
            self._count_waiting(live)
            if previous is not None:
                self._check_row_ranges(previous, origin)
            yield from self._remaining(live, origin)

    def _count_waiting(self, live: LiveFiles) -> None:
        """Count level-0 files that other engines do not show yet.

        Information only: the next compaction makes them visible.
        """
        waiting = [file.bucket_id for file in live.files.values() if self.store.schema.kind.has_single_version and file.level == 0]
        if waiting:
            self.findings.counts[WAITING] += len(waiting)
            self.findings.counts[WAITING_BUCKETS] += len(set(waiting))

    def check_tag(self, name: str, tag: Snapshot) -> Iterator[Unit]:
        """Yield the files of a tag.

        Nothing if a snapshot has the same state.
        """
        if (tag.base_manifest_list, tag.delta_manifest_list) in self._lists:
            return
        origin = Origin(branch=self.store.branch, tag=name)
        lists = [self._manifests.read_list(list_name, size, origin) for list_name, size in tag.manifest_lists]
        metas = [meta for part in lists if part is not None for meta in part]
        live = self._fresh(metas, tag, origin) if None not in lists else None
        if live is not None:
            self._check_total(live, tag, self.store.paths.tag(name), origin)
            self._check_buckets(live, set(live.by_bucket), origin)
            self._check_row_ranges(tag, origin)
            yield from self._indexes.advance(tag, live, None, origin)
            yield from self._remaining(live, origin)

    def kept_changelog(self, snapshot: Snapshot) -> Iterator[Unit]:
        """Yield the changelog files of an expired snapshot.

        Without a changelog, the files that it appended, if these are kept.
        """
        origin = Origin(branch=self.store.branch, changelog=snapshot.id)
        yield from self._changelog(snapshot, origin)
        name = snapshot.delta_manifest_list
        if snapshot.changelog_manifest_list is not None or not self.store.file_io.exists(self.store.paths.manifest(name)):
            return
        metas = self._manifests.read_list(name, snapshot.delta_manifest_list_size, origin)
        entries = None if metas is None else self._manifests.entries(metas, origin)
        if entries is not None:
            yield from self._units(entries.select((entries.kind == FileKind.ADD) & entries.is_appended), origin, "data", {})

    def _state_before(
        self, live: LiveFiles | None, base: Sequence[ManifestFileMeta], snapshot: Snapshot, origin: Origin
    ) -> LiveFiles | None:
        """Return the state before a snapshot's own changes.

        Its base list must agree with the state of the previous snapshot.
        """
        names = tuple(meta.file_name for meta in base)
        if live is None or snapshot.first_replaced is not None:
            return self._fresh(base, snapshot, origin)
        if names == live.manifests:
            return live
        live_manifests = set(live.manifests)
        fresh = self._manifests.entries([meta for meta in base if meta.file_name not in live_manifests], origin)
        gone = [name for name in live.manifests if name not in names]
        old = self._reread(gone)
        if fresh is None:
            return None
        if old is None:
            return self._fresh(base, snapshot, origin)
        different = live.apply_merge(old, fresh)
        live.manifests = names
        if not different:
            return live
        path = self.store.paths.manifest(snapshot.base_manifest_list)
        shown = ", ".join(different[:3]) + (f" and {len(different) - 3} more" if len(different) > 3 else "")
        self.findings.add(
            ProblemKind.BASE_STATE, path, f"does not have the state of snapshot {snapshot.id - 1}; they differ in {shown}", origin
        )
        return self._fresh(base, snapshot, origin)

    def _reread(self, names: Sequence[str]) -> EntryColumns | None:
        """Return entries of manifests that were checked before."""
        try:
            parts = [self.store.cache.get(name) or self.store.manifests.read(name) for name in names]
        except BROKEN:
            return None
        return EntryColumns.concat(parts)

    def _fresh(self, metas: Sequence[ManifestFileMeta], snapshot: Snapshot, origin: Origin) -> LiveFiles | None:
        """Return a state from its manifests alone."""
        entries = self._manifests.entries(metas, origin)
        if entries is None:
            return None
        live = LiveFiles(tuple(meta.file_name for meta in metas))
        change = live.apply(entries)
        self._note(entries, change.twice, ProblemKind.DOUBLE_ADD, f"is added twice in the base of snapshot {snapshot.id}", origin)
        self._note(entries, change.absent, ProblemKind.DELETE_OF_ABSENT, "is deleted, but no manifest of the base adds it", origin)
        self._check_entries(entries, origin)
        self._check_buckets(live, change.buckets, origin)
        return live

    def _advance(
        self, live: LiveFiles, manifests: tuple[str, ...], entries: EntryColumns, snapshot: Snapshot, before: Origin | None
    ) -> Iterator[Unit]:
        """Apply a snapshot's own changes and yield the removed files.

        These are yielded with ``before``, the last state that had them. None: it has expired, and they with it.
        """
        hashes, origin = self._indexes.hashes, Origin(branch=self.store.branch, snapshot=snapshot.id)
        change = live.apply(entries)
        live.manifests = manifests
        self._note(entries, change.twice, ProblemKind.DOUBLE_ADD, "is added, but it exists already or was deleted before", origin)
        self._note(entries, change.absent, ProblemKind.DELETE_OF_ABSENT, "is deleted, but it does not exist", origin)
        path = self.store.paths.snapshot_file(snapshot.id)
        if snapshot.delta_record_count != change.rows:
            message = f"records a change of {snapshot.delta_record_count:+,} rows, but its manifests contain {change.rows:+,}"
            self.findings.add(ProblemKind.RECORD_COUNT, path, message, origin)
        self._check_total(live, snapshot, path, origin)
        self._check_entries(entries, origin)
        self._check_buckets(live, change.buckets, origin)
        gone = entries.select(np.array(change.gone, np.intp))
        if self._indexes.since_beginning:
            self._indexes.were_live.update(gone.file_name)
        if before is not None:
            yield from self._units(gone, before, "data", hashes)
        yield from self._indexes.advance(snapshot, live, before, origin)

    def _remaining(self, live: LiveFiles, origin: Origin) -> Iterator[Unit]:
        """Yield all files of the newest state."""
        yield from self._indexes.rest(origin)
        entries = self._reread(live.manifests)
        if entries is None:
            return
        live_digests = set(live.files)
        rows = [position for position, identity in enumerate(entries.identities()) if digest(identity) in live_digests]
        added = entries.select(np.array(rows, np.intp))
        yield from self._units(added.select(added.kind == 0), origin, "data", self._indexes.hashes)

    def _changelog(self, snapshot: Snapshot, origin: Origin) -> Iterator[Unit]:
        """Yield the changelog files of a snapshot."""
        name = snapshot.changelog_manifest_list
        if name is None:
            return
        metas = self._manifests.read_list(name, snapshot.changelog_manifest_list_size, origin)
        entries = None if metas is None else self._manifests.entries(metas, origin)
        if entries is None:
            return
        rows = int(entries.row_count.sum())
        if snapshot.changelog_record_count is not None and snapshot.changelog_record_count != rows:
            path = self.store.paths.manifest(name)
            message = f"has {rows:,} changelog rows, but its snapshot records {snapshot.changelog_record_count:,}"
            self.findings.add(ProblemKind.RECORD_COUNT, path, message, origin)
        yield from self._units(entries, origin, "changelog", {})

    def _units(
        self, entries: EntryColumns, origin: Origin, unit: Literal["data", "changelog"], hashes: dict[LiveBucket, IndexUnit]
    ) -> Iterator[Unit]:
        """Yield files to check that were not yielded before."""
        contents = zip(*(entries.content(f"_FILE.{name}") for name in ("_FILE_NAME", "_EXTRA_FILES", "_EMBEDDED_FILE_INDEX")), strict=True)
        for position, content in enumerate(contents):
            content_digest = digest(content)
            if content_digest in self.seen_digests:
                continue
            self.seen_digests.add(content_digest)
            single_entry = entries.select(np.array([position], np.intp))
            manifest = single_entry.path_of(0).rpartition("/")[2]
            try:
                entry = single_entry.entries()[0]
            except BROKEN as error:
                self.findings.add(ProblemKind.MANIFEST, single_entry.path_of(0), f"has an entry that cannot be read ({error})", origin)
                continue
            index = hashes.get((entry.partition, entry.bucket))
            yield DataUnit(unit=unit, origin=origin, entry=entry, manifest=manifest, hashes=None if index is None else index.entry)

    def _note(self, entries: EntryColumns, rows: Sequence[int], kind: ProblemKind, message: str, origin: Origin) -> None:
        for row in rows:
            path = entries.path_of(row)
            self.findings.add(kind, path, f"{entries.file_name[row]} {message}", origin, manifest=path.rpartition("/")[2])

    def _check_total(self, live: LiveFiles, snapshot: Snapshot, path: str, origin: Origin) -> None:
        if snapshot.total_record_count != live.rows:
            message = f"records a total of {snapshot.total_record_count:,} rows, but its files have {live.rows:,}"
            self.findings.add(ProblemKind.RECORD_COUNT, path, message, origin)

    def _check_entries(self, entries: EntryColumns, origin: Origin) -> None:
        """Check that the metadata of each file is possible."""
        buckets, totals, levels = entries.bucket, entries.total_buckets, entries.level
        schemas = np.isin(entries.schema_id, list(self.schema_ids))
        unnumbered = (buckets < 0) & (buckets != POSTPONE_BUCKET)
        sequences = entries.numbers("_FILE._MIN_SEQUENCE_NUMBER") > entries.max_sequence_number
        deletes = entries.delete_row_count > entries.row_count
        for wrong, message in (
            (unnumbered | ((totals > 0) & (buckets >= totals)), "is in a bucket that the bucket count does not have"),
            (levels < 0, "has a level below 0"),
            (~schemas, "was written with a schema that does not exist"),
            (sequences, "has a smallest sequence number above the greatest"),
            (deletes, "has more deleted rows than rows"),
        ):
            self._note(entries, np.flatnonzero(wrong).tolist(), ProblemKind.ENTRY, message, origin)

    def _check_buckets(self, live: LiveFiles, buckets: set[LiveBucket], origin: Origin) -> None:
        """Check levels and bucket counts.

        Levels above 0 must be sorted runs in each bucket. The files of a partition must have one bucket count.
        """
        totals: dict[bytes, set[int]] = {}
        for bucket_id in sorted(buckets):
            files = live.bucket(bucket_id)
            totals.setdefault(bucket_id[0], set()).update(file.total_buckets for file in files if file.total_buckets > 0)
            if self.store.key is None:
                continue
            try:
                overlaps = list(live.overlaps(bucket_id, self.store.key))
                partition_and_bucket = place_of(self.store, *bucket_id)
            except BROKEN as error:
                names = ", ".join(sorted(file.name for file in files)[:3])
                message = f"has keys that cannot be decoded ({error}); files of bucket {bucket_id[1]}: {names}"
                self.findings.add(ProblemKind.ENTRY, self.store.paths.manifests, message, origin)
                continue
            for first_file, other in overlaps:
                if (first_file.name, other.name) not in self._overlaps:
                    self._overlaps.add((first_file.name, other.name))
                    message = f"its keys overlap those of {first_file.name} on level {first_file.level}"
                    path = f"{self.store.paths.bucket_dir(self.store.partition.decode(bucket_id[0]), bucket_id[1])}/{other.name}"
                    self.findings.add(ProblemKind.LEVEL_OVERLAP, path, message, origin, partition_and_bucket=partition_and_bucket)
        for partition, counts in totals.items():
            if len(counts) > 1:
                partition_and_bucket = place_of(self.store, partition, -1)
                message = f"partition '{partition_and_bucket[0]}' has files of different bucket counts: {sorted(counts)}"
                self.findings.add(ProblemKind.ENTRY, self.store.paths.manifests, message, origin)

    def _check_row_ranges(self, snapshot: Snapshot, origin: Origin) -> None:
        """Check that the files of each range of rows have all its rows."""
        if not self.store.schema.core.data_evolution_enabled:
            return
        with suppress(*BROKEN):  # other checks report it
            schema = self.store.schema if origin.tag is None else self.store.schemas.get(snapshot.schema_id)
            for (partition, bucket), name, message in broken_ranges(self.store, snapshot, schema):
                path = f"{self.store.paths.bucket_dir(self.store.partition.decode(partition), bucket)}/{name}"
                self.findings.add(
                    ProblemKind.ROW_RANGE, path, message, origin, partition_and_bucket=place_of(self.store, partition, bucket)
                )
