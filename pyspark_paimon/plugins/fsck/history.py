"""Checks of a branch's small files.

Schemas, snapshots, hints, tags, consumers, kept changelogs and statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from manifest.io.errors import SnapshotNotFound
from manifest.io.numbers import MAX_LONG
from manifest.io.paths import CHANGELOG, CONSUMER, TAG, parse_number
from manifest.lost_snapshots import refuse_lost_snapshots
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.pending_history import UNREADABLE
from manifest.snapshot.snapshot import Snapshot, Tag
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, PaimonError
from paimon_base.lazy import cached_property
from pyspark_paimon.plugins.fsck.manifests import BROKEN
from pyspark_paimon.results.fsck_problem import Findings, Origin, ProblemKind

_HINT_TRIES = 3
_LONG_DIGITS = 19
_SYSTEM_IDS = 1_073_741_823
"""Smallest field id of system columns."""


@dataclass
class CheckedHistory:
    """Checks files in a branch's own directories, each read once."""

    store: FileStore
    findings: Findings
    schema_ids: set[int] = field(default_factory=set)
    _statistics: set[str] = field(default_factory=set)

    @property
    def _branch(self) -> str:
        return self.store.branch

    def check_schemas(self) -> None:
        """Check that all schema versions exist and are valid."""
        manager, paths = self.store.schemas, self.store.paths
        ids = manager.ids()
        self.schema_ids = set(ids)
        origin = Origin(branch=self._branch)
        for missing in sorted(set(range((ids or [0])[-1] + 1)).difference(ids)):
            self.findings.add(ProblemKind.SCHEMA, paths.schema_file(missing), "is missing, but newer versions exist", origin)
        highest = -1
        for schema_id in ids:
            self.findings.counts["schemas"] += 1
            path = paths.schema_file(schema_id)
            try:
                schema = manager.get(schema_id)
            except BROKEN as error:
                self.findings.add(ProblemKind.SCHEMA, path, _reason(error), origin)
                continue
            for message in _schema_problems(schema, schema_id, highest):
                self.findings.add(ProblemKind.SCHEMA, path, message, origin)
            highest = max(highest, schema.highest_field_id)

    def check_hints(self) -> None:
        """Check the hints of snapshots."""
        paths, manager = self.store.paths, self.store.snapshots
        try:
            if manager.pending_history() is not None:  # readers use the pending file, and finishing it writes the hints
                return
        except BROKEN as error:
            self.findings.add(ProblemKind.HINT, paths.pending_history, _reason(error), Origin(branch=self._branch))
            return
        try:
            refuse_lost_snapshots(self.store)
        except BROKEN as error:
            self.findings.add(ProblemKind.SNAPSHOT, paths.snapshots, _reason(error), Origin(branch=self._branch))
        # Hints may be old or missing. Wrong are hints that are not a number, or that lead readers to missing snapshots.
        for path, ahead in ((paths.latest_hint, True), (paths.earliest_hint, False)):
            for last_try in (*[False] * (_HINT_TRIES - 1), True):  # commits and expiry may run at the same time
                message = self._hint(path, manager, ahead=ahead)
                if message is None:
                    break
                if last_try:
                    self.findings.add(ProblemKind.HINT, path, message, Origin(branch=self._branch))

    def _hint(self, path: str, manager: SnapshotManager, *, ahead: bool) -> str | None:
        try:
            text = self.store.file_io.read(path).strip()
        except OSError:
            return None
        ids = manager.ids()
        if not text.isdigit() or len(text) > _LONG_DIGITS or not 0 < int(text) <= MAX_LONG:
            return f"has {text[:40]!r} instead of a snapshot id"
        hint = int(text)
        if ahead and hint not in ids and hint + 1 not in ids:
            return f"names snapshot {hint}, which does not exist; {_ids(ids)}"
        if not ahead and hint in ids and hint > ids[0]:
            return f"names snapshot {hint}, so that readers do not find the older ones; {_ids(ids)}"
        return None

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield all readable snapshots, oldest first.

        Gaps and unreadable snapshots are problems.
        """
        manager = self.store.snapshots
        ids = manager.ids()
        previous: int | None = None
        for snapshot_id in ids:
            path = self.store.paths.snapshot_file(snapshot_id)
            for missing in range(snapshot_id if previous is None else previous + 1, snapshot_id):
                if previous is not None and manager.exists(previous):  # otherwise it expired meanwhile, with those after it
                    absent = self.store.paths.snapshot_file(missing)
                    self.findings.add(ProblemKind.SNAPSHOT_GAP, absent, f"is missing between snapshots {previous} and {snapshot_id}")
            previous = snapshot_id
            try:
                snapshot = manager.get(snapshot_id)
            except SnapshotNotFound:
                continue
            except BROKEN as error:
                self.findings.add(ProblemKind.SNAPSHOT, path, _reason(error), Origin(branch=self._branch, snapshot=snapshot_id))
                continue
            self.findings.counts["snapshots"] += 1
            self._check_references(snapshot, path, Origin(branch=self._branch, snapshot=snapshot_id), ProblemKind.SNAPSHOT)
            yield snapshot

    def tags(self) -> Iterator[tuple[str, Tag]]:
        """Yield all readable tags with their names."""
        for status in self.store.file_io.list(self.store.paths.tags):
            if not status.name.startswith(TAG) or status.is_dir:
                continue
            name = status.name.removeprefix(TAG)
            origin = Origin(branch=self._branch, tag=name)
            path = self.store.paths.tag(name)
            try:
                tag = Tag.from_json(self.store.file_io.read(path), path)
            except FileNotFoundError:
                continue
            except BROKEN as error:
                self.findings.add(ProblemKind.TAG, path, _reason(error), origin)
                continue
            self.findings.counts["tags"] += 1
            self._check_references(tag, path, origin, ProblemKind.TAG)
            self._check_snapshot_of(name, tag, origin)
            yield name, tag

    def _check_snapshot_of(self, name: str, tag: Tag, origin: Origin) -> None:
        """Check that the snapshot of a tag was not lost, and its id not used again."""
        manager = self.store.snapshots
        if not self._is_settled:
            return
        path, delta = manager.paths.snapshot_file(tag.id), manager.stored_delta(tag.id)
        if delta is None and tag.id > max(manager.stored_ids(), default=tag.id):
            self.findings.add(ProblemKind.SNAPSHOT, path, f"is missing and newer than all others, but tag '{name}' is of it", origin)
        elif delta not in {None, UNREADABLE, tag.delta_manifest_list}:
            self.findings.add(
                ProblemKind.TAG, manager.paths.tag(name), f"is of another commit than snapshot {tag.id}, whose id it has", origin
            )

    @cached_property
    def _is_settled(self) -> bool:
        """Whether no rollback or fast-forward is pending."""
        try:
            return self.store.snapshots.pending_history() is None
        except BROKEN:
            return False

    def changelogs(self) -> Iterator[Snapshot]:
        """Yield expired snapshots with a kept changelog, oldest first."""
        manager = self.store.snapshots
        names = (status.name for status in self.store.file_io.list(self.store.paths.changelogs))
        for changelog_id in sorted(i for i in (parse_number(name, CHANGELOG) for name in names) if i):
            path = manager.paths.changelog_file(changelog_id)
            origin = Origin(branch=self._branch, changelog=changelog_id)
            try:
                snapshot = Snapshot.from_json(self.store.file_io.read(path), path)
            except FileNotFoundError:
                continue
            except BROKEN as error:
                self.findings.add(ProblemKind.CHANGELOG, path, _reason(error), origin)
                continue
            if snapshot.id != changelog_id:
                self.findings.add(ProblemKind.CHANGELOG, path, f"holds snapshot {snapshot.id}", origin)
            self.findings.counts["kept changelogs"] += 1
            yield snapshot

    def check_consumers(self) -> None:
        """Check that every consumer's next snapshot exists.

        Valid are also a kept changelog and the id after the newest snapshot.
        """
        manager = self.store.snapshots
        for status in self.store.file_io.list(self.store.paths.consumers):
            if not status.name.startswith(CONSUMER) or status.is_dir:
                continue
            name = status.name.removeprefix(CONSUMER)
            path = self.store.paths.consumer(name)
            self.findings.counts["consumers"] += 1
            try:
                consumer = manager.consumer(name)
            except BROKEN as error:
                self.findings.add(ProblemKind.CONSUMER, path, _reason(error), Origin(branch=self._branch))
                continue
            if consumer is None:
                continue
            following = consumer["nextSnapshot"]
            ids = manager.ids()
            allowed_ids = ids[:1] if not ids else [*ids, ids[-1] + 1]
            if (
                following in allowed_ids
                or (not ids and following == 1)
                or self.store.file_io.exists(self.store.paths.changelog_file(following))
            ):
                continue
            message = f"reads snapshot {following} next, which does not exist; {_ids(ids)}"
            self.findings.add(ProblemKind.CONSUMER, path, message, Origin(branch=self._branch))

    def _check_references(self, snapshot: Snapshot, path: str, origin: Origin, kind: ProblemKind) -> None:
        """Check the schema and statistics that a snapshot names."""
        if snapshot.schema_id not in self.schema_ids and snapshot.schema_id not in self.store.schemas.ids():
            self.findings.add(kind, path, f"names schema {snapshot.schema_id}, which does not exist", origin)
        if snapshot.statistics is None or snapshot.statistics in self._statistics:
            return
        self._statistics.add(snapshot.statistics)
        self.findings.counts["statistics files"] += 1
        file = self.store.paths.statistics(snapshot.statistics)
        try:
            statistics = self.store.statistics_files.read(snapshot.statistics)
            columns = {column.id for column in self.store.schemas.get(statistics.schema_id).fields}
        except FileNotFoundError:
            self.findings.add(ProblemKind.STATISTICS_FILE, file, "is missing", origin)
        except BROKEN as error:
            self.findings.add(ProblemKind.STATISTICS_FILE, file, _reason(error), origin)
        else:
            unknown = sorted(name for name, column in statistics.col_stats.items() if column.col_id not in columns)
            if unknown:
                self.findings.add(
                    ProblemKind.STATISTICS_FILE, file, f"has statistics of columns that its schema lacks: {', '.join(unknown)}", origin
                )
            if statistics.snapshot_id > snapshot.id:
                self.findings.add(
                    ProblemKind.STATISTICS_FILE,
                    file,
                    f"is of snapshot {statistics.snapshot_id}, newer than snapshot {snapshot.id} that names it",
                    origin,
                )


def _schema_problems(schema: TableSchema, schema_id: int, highest_before: int) -> Iterator[str]:
    if schema.id != schema_id:
        yield f"holds schema {schema.id}"
    ids = [field.id for field in schema.fields]
    highest = max((i for i in ids if i < _SYSTEM_IDS), default=-1)
    if schema.highest_field_id < highest:
        yield f"records {schema.highest_field_id} as its highest field id, but has field {highest}"
    if schema.highest_field_id < highest_before:
        yield f"records {schema.highest_field_id} as its highest field id, but an older version has {highest_before}"
    with suppress(KeyError, UnicodeError):
        yield from _unusable(schema)


def _unusable(schema: TableSchema) -> Iterator[str]:
    uses: tuple[Callable[[], object], ...] = (lambda: schema.core, lambda: schema.arrow, lambda: schema.key_types)
    for use in uses:
        try:
            use()
        except PaimonError as error:
            yield str(error)
            return


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, CorruptFile) else f"cannot be read ({type(error).__name__}: {error})"


def _ids(ids: list[int]) -> str:
    return f"snapshots run from {ids[0]} to {ids[-1]}" if ids else "there are no snapshots"
