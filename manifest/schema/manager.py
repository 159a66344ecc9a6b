"""The schema files of a table: found by listing, created exclusively, altered by a new version (``SchemaManager``)."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from fileindex.base.errors import CorruptFile
from fileindex.base.log import logger_of
from fileindex.build.advice import unwise
from manifest.io.errors import FileReplaced, SchemaMismatch, TableExists, TableNotFound
from manifest.io.file_cache import SHARED, FileCache
from manifest.io.file_io import FileIO, FileStatus
from manifest.io.paths import MAIN_BRANCH, SCHEMA, TablePaths, numbered
from manifest.io.seal import sealed
from manifest.schema.change import SchemaChange
from manifest.schema.evolution import evolve
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.manager import SnapshotManager

_LOG = logger_of(__name__)
_ATTEMPTS = 10
_BYTES_A_COLUMN = 4096


class SchemaManager:
    """The schema files of one table, or of one of its branches.

    >>> import tempfile
    >>> from manifest.io.file_io import LocalFileIO
    >>> SchemaManager(LocalFileIO(), tempfile.mkdtemp()).latest() is None
    True
    """

    def __init__(
        self,
        file_io: FileIO,
        table_path: str,
        branch: str = MAIN_BRANCH,
        files: FileCache = SHARED,
        seen: dict[int, TableSchema] | None = None,
    ) -> None:
        self._file_io = file_io
        self._table_path = table_path
        self._paths = TablePaths(table_path, branch=branch)
        self._files = files
        self._cache: dict[int, TableSchema] = {} if seen is None else seen

    def ids(self) -> list[int]:
        """Ids of all schema versions, ascending; names that are no number are not ours."""
        stored = self._stored()
        return sorted(self._seen(stored, self._under_way())) if stored else []

    def stored_ids(self) -> list[int]:
        """Return the ids of all schema files, ascending, whatever a fast-forward under way makes of them."""
        return sorted(self._stored())

    def _seen(self, stored: dict[int, FileStatus], coming: Mapping[int, str]) -> dict[int, FileStatus]:
        """Return the versions that readers see, ``coming`` ones included."""
        if not coming:
            return stored
        kept = {schema_id: status for schema_id, status in stored.items() if schema_id < max(coming)}
        return kept | {i: FileStatus(self._paths.schema_file(i).rpartition("/")[2], 0, 0, is_dir=False) for i in coming}

    def _stored(self) -> dict[int, FileStatus]:
        found: dict[int, FileStatus] = {}
        for status in self._file_io.list(self._paths.schemas):
            schema_id = numbered(status.name, SCHEMA)
            if schema_id is not None:
                found[schema_id] = status
        return found

    def _under_way(self) -> Mapping[int, str]:
        """Return the schema files that a fast-forward under way writes: with its note they count."""
        if not self._file_io.cancels_creates or self._paths.branch != MAIN_BRANCH:
            return {}
        pending = SnapshotManager(self._file_io, self._paths).pending_history()
        return {} if pending is None else pending.schemas

    def get(self, schema_id: int) -> TableSchema:
        """The schema of that id; ``CorruptFile`` names the file if it is missing or damaged."""
        if schema_id not in self._cache:
            path = self._paths.schema_file(schema_id)
            try:
                self._cache[schema_id] = self._files.load(self._file_io, path, "schema", lambda: self._read(schema_id), _weight)
            except FileNotFoundError as error:
                raise CorruptFile(path, "is missing, but data files refer to it") from error
        return self._cache[schema_id]

    def _newest(self, status: FileStatus, schema_id: int, coming: Mapping[int, str]) -> TableSchema:
        """The schema of a file that was just listed; another one of that id makes all that was seen before another table's."""
        path, before = self._paths.schema_file(schema_id), self._cache.get(schema_id)
        try:
            found = self._files.load(self._file_io, path, "schema", lambda: self._read(schema_id, coming), _weight, listed=status.identity)
        except FileNotFoundError as error:
            raise CorruptFile(path, "is missing, but data files refer to it") from error
        if before is not None and before is not found and before != found:
            self._cache.clear()
        self._cache[schema_id] = found
        return found

    def _read(self, schema_id: int, coming: Mapping[int, str] | None = None) -> TableSchema:
        path = self._paths.schema_file(schema_id)
        if coming is None:
            coming = self._under_way()
        text = coming[schema_id].encode() if schema_id in coming else self._file_io.read(path)
        # A young file may change within the clock's tick, so it is read again; the same bytes are not parsed again.
        key = "schema text", text
        held: TableSchema | None = self._files.get(key)
        if held is not None and held.id == schema_id:
            return held
        schema = TableSchema.from_json(text, path)
        if schema.id != schema_id:
            raise CorruptFile(path, f"holds schema {schema.id}")
        self._files.put(key, schema, len(text) + _weight(schema))
        return schema

    def latest(self) -> TableSchema | None:
        """The newest schema; None if the path holds no table."""
        stored = self._stored()
        if not stored:
            return None
        coming = self._under_way()
        seen = self._seen(stored, coming)
        newest = max(seen)
        return self._newest(seen[newest], newest, coming)

    def require(self) -> TableSchema:
        """The newest schema; ``TableNotFound`` if the path holds no table."""
        found = self.latest()
        if found is None:
            raise TableNotFound(f"{self._table_path}: no Paimon table is here (no schema file); create one with Table.create")
        return found

    def newest_of(self, schema: TableSchema) -> TableSchema:
        """Return the newest schema of the table that ``schema`` is a version of. Raises ``TableNotFound`` if the table is gone."""
        newest = self.latest()
        where = (
            f"{self._table_path}: the table" if self._paths.branch == MAIN_BRANCH else f"{self._table_path}: branch '{self._paths.branch}'"
        )
        if newest is None:
            raise TableNotFound(f"{where} was dropped meanwhile; nothing was committed")
        if not (_is_same(newest, schema) if newest.id == schema.id else self.holds(schema)):
            raise TableNotFound(f"{where} was dropped and created again, or got another history; nothing was committed. Open it again")
        return newest

    def create(self, schema: TableSchema) -> TableSchema:
        """Write the first schema; ``TableExists`` if there is one already."""
        try:
            taken = self.latest() is not None
            if not taken:
                self._refuse_remains()
                taken = not self._put(schema)
        except OSError as error:
            if error.errno != errno.ENOTDIR:
                raise
            raise TableExists(f"{self._table_path}: a file is in the way of the table's directory; choose another path") from error
        if taken:
            raise TableExists(f"{self._table_path}: a table is here already; open it with Table.open")
        self._advise(schema)
        return schema

    def _refuse_remains(self) -> None:
        """Raise ``TableExists`` if snapshots of a dropped table are there: a new schema would bring them back."""
        if ids := SnapshotManager(self._file_io, self._paths).stored_ids():
            raise TableExists(
                f"{self._table_path}: a dropped table has left snapshots here (snapshot {ids[0]} and later); delete the directory, or choose "
                "another path"
            )

    def _advise(self, schema: TableSchema) -> None:
        """Log which indexes of a new schema cost more than they give."""
        unique = set(schema.trimmed_primary_keys if len(schema.trimmed_primary_keys) == 1 else ())
        for line in unwise(schema.file_index.specs, unique):
            _LOG.warning("%s: %s", self._table_path, line)

    def _put(self, schema: TableSchema, guard: Callable[[], bool] | None = None) -> bool:
        path = self._paths.schema_file(schema.id)
        with suppress(FileReplaced):  # a lost race: nobody has seen the first one
            return self._file_io.create_exclusive(path, sealed(path, schema.to_json()), guard=guard)
        return False

    def holds(self, schema: TableSchema) -> bool:
        """Whether the stored schema of that id is this one, but for options; not so if the table was dropped and created again."""
        path = self._paths.schema_file(schema.id)
        try:
            found = self._files.load(self._file_io, path, "schema", lambda: self._read(schema.id), _weight)
        except FileNotFoundError:
            return False
        return _is_same(found, schema)

    def alter(self, changes: Sequence[SchemaChange]) -> TableSchema:
        """Write a new version with ``changes``, all or none; a lost race is tried again on the newer schema.

        Returns the newest schema if they change nothing. Raises what ``evolve`` raises.
        """
        for _ in range(_ATTEMPTS):
            current = self.require()
            altered = evolve(current, changes)
            if altered is current:
                return current
            if self._put(altered, lambda: self.holds(current)):  # noqa: B023  # called before the next one
                if altered.options != current.options:
                    self._advise(altered)
                return altered
        raise SchemaMismatch(f"{self._table_path}: the schema changed {_ATTEMPTS} times while it was altered; try again")


def _is_same(one: TableSchema, other: TableSchema) -> bool:
    """Whether two schemas of one id are the same version, whatever options a job has set."""
    return one is other or (one.time_millis, one.fields) == (other.time_millis, other.fields)


def _weight(schema: TableSchema) -> int:
    return _BYTES_A_COLUMN * (len(schema.fields) + len(schema.options) + 1)


__all__ = ["SchemaManager"]
