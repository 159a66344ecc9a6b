"""Schema files of a table (``SchemaManager``).

Found by listing, created exclusively, and altered by writing a new version.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from manifest.io.checksum import with_checksum
from manifest.io.errors import FileReplaced, SchemaMismatch, TableExists, TableNotFound
from manifest.io.file_cache import SHARED, FileCache, StatIdentity
from manifest.io.file_io import FileIO, FileStatus
from manifest.io.paths import MAIN_BRANCH, SCHEMA, TablePaths, parse_number
from manifest.schema.change import SchemaChange
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.manager import SnapshotManager
from paimon_base.errors import CorruptFile
from paimon_base.log import logger_of

_LOG = logger_of(__name__)
_ATTEMPTS = 10
_BYTES_A_COLUMN = 4096


class SchemaManager:
    """Schema files of a table or of a branch.

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
        schemas: dict[int, TableSchema] | None = None,
    ) -> None:
        self._file_io = file_io
        self._table_path = table_path
        self._paths = TablePaths(table_path, branch=branch)
        self._files = files
        self._cache: dict[int, TableSchema] = {} if schemas is None else schemas

    def ids(self) -> list[int]:
        """Return the ids of all schema versions, ascending.

        Ignores other file names.
        """
        stored = self._list_files()
        return sorted(self._visible_files(stored, self._pending_schemas())) if stored else []

    def stored_ids(self) -> list[int]:
        """Return the ids of all schema files, ascending.

        Ignores a pending fast-forward.
        """
        return sorted(self._list_files())

    def _visible_files(self, stored: dict[int, FileStatus], coming: Mapping[int, str]) -> dict[int, FileStatus]:
        """Return the versions for readers, with ``coming`` ones."""
        if not coming:
            return stored
        unchanged = {schema_id: status for schema_id, status in stored.items() if schema_id < max(coming)}
        return unchanged | {i: FileStatus(self._paths.schema_file(i).rpartition("/")[2], 0, 0, is_dir=False) for i in coming}

    def _list_files(self) -> dict[int, FileStatus]:
        status_by_id: dict[int, FileStatus] = {}
        for status in self._file_io.list(self._paths.schemas):
            schema_id = parse_number(status.name, SCHEMA)
            if schema_id is not None:
                status_by_id[schema_id] = status
        return status_by_id

    def _pending_schemas(self) -> Mapping[int, str]:
        """Return the schema files of a pending fast-forward.

        They are valid once the pending file exists.
        """
        if not self._file_io.cancels_creates or self._paths.branch != MAIN_BRANCH:
            return {}
        pending = SnapshotManager(self._file_io, self._paths).pending_history()
        return {} if pending is None else pending.schemas

    def get(self, schema_id: int) -> TableSchema:
        """Return the schema of an id.

        Raises ``CorruptFile`` if the file is missing or corrupt.
        """
        if schema_id not in self._cache:
            path = self._paths.schema_file(schema_id)
            try:
                self._cache[schema_id] = self._load(schema_id)
            except FileNotFoundError as error:
                raise CorruptFile(path, "is missing, but data files refer to it") from error
        return self._cache[schema_id]

    def _load(self, schema_id: int, coming: Mapping[int, str] | None = None, listed: StatIdentity = None) -> TableSchema:
        """Return a cached schema, or read it.

        ``coming``: schema files of a pending fast-forward. None: look for one. Raises ``FileNotFoundError``, ``CorruptFile``.
        """
        path = self._paths.schema_file(schema_id)
        identity, cached = self._files.recall(self._file_io, path, "schema", listed)
        if cached is not None:
            schema: TableSchema = cached
            return schema
        if coming is None:
            coming = self._pending_schemas()
        text = coming[schema_id].encode() if schema_id in coming else self._file_io.read(path)
        # A young file may change within the clock's tick, so it is read again. Equal bytes are not parsed again.
        key = "schema text", text
        parsed: TableSchema | None = self._files.get(key)
        if parsed is None or parsed.id != schema_id:
            parsed = TableSchema.from_json(text, path)
            if parsed.id != schema_id:
                raise CorruptFile(path, f"holds schema {parsed.id}")
            self._files.put(key, parsed, len(text) + _weight(parsed))
        self._files.keep(path, "schema", identity, parsed, _weight(parsed))
        return parsed

    def latest(self) -> TableSchema | None:
        """Return the newest schema, None for a path without table."""
        stored = self._list_files()
        if not stored:
            return None
        coming = self._pending_schemas()
        visible = self._visible_files(stored, coming)
        schema_id = max(visible)
        path, before = self._paths.schema_file(schema_id), self._cache.get(schema_id)
        try:
            schema = self._load(schema_id, coming, visible[schema_id].identity)
        except FileNotFoundError as error:
            raise CorruptFile(path, "is missing, but data files refer to it") from error
        # Another schema of the same id belongs to another table: nothing cached is valid.
        if before is not None and before is not schema and before != schema:
            self._cache.clear()
        self._cache[schema_id] = schema
        return schema

    def require(self) -> TableSchema:
        """Return the newest schema. Raises ``TableNotFound``."""
        schema = self.latest()
        if schema is None:
            raise TableNotFound(f"{self._table_path}: no Paimon table is here (no schema file); create one with Table.create")
        return schema

    def newest_of(self, schema: TableSchema) -> TableSchema:
        """Return the newest schema of the table of ``schema``.

        Raises ``TableNotFound`` if that table was dropped or replaced.
        """
        newest = self.latest()
        where = (
            f"{self._table_path}: the table" if self._paths.branch == MAIN_BRANCH else f"{self._table_path}: branch '{self._paths.branch}'"
        )
        if newest is None:
            raise TableNotFound(f"{where} was dropped meanwhile; nothing was committed")
        if not (_is_same(newest, schema) if newest.id == schema.id else self.holds(schema)):
            raise TableNotFound(f"{where} was dropped and created again, or its history was replaced; nothing was committed. Open it again")
        return newest

    def create(self, schema: TableSchema) -> TableSchema:
        """Write the first schema. Raises ``TableExists``."""
        try:
            exists = self.latest() is not None
            if not exists:
                self._refuse_remains()
                exists = not self._put(schema)
        except OSError as error:
            if error.errno != errno.ENOTDIR:
                raise
            raise TableExists(f"{self._table_path}: a file exists at the path of the table's directory; choose another path") from error
        if exists:
            raise TableExists(f"{self._table_path}: a table exists already; open it with Table.open")
        self._advise(schema)
        return schema

    def _refuse_remains(self) -> None:
        """Raise ``TableExists`` if snapshots of a dropped table remain."""
        # A new schema would make them visible again.
        if ids := SnapshotManager(self._file_io, self._paths).stored_ids():
            raise TableExists(
                f"{self._table_path}: a dropped table left snapshots here (snapshot {ids[0]} and later); delete the directory, or choose "
                "another path"
            )

    def _advise(self, schema: TableSchema, before: TableSchema | None = None) -> None:
        """Log indexes of a new schema that are not worthwhile, and what readers of Iceberg will not see.

        ``before``: schema that it replaces.
        """
        unique = set(schema.trimmed_primary_keys if len(schema.trimmed_primary_keys) == 1 else ())
        from fileindex.build.advice import unique_column_advice  # noqa: PLC0415  # readers of schemas need no index

        for line in unique_column_advice(schema.file_index.specs, unique):
            _LOG.warning("%s: %s", self._table_path, line)
        from manifest.schema.iceberg_schema import shows_compacted_rows_only  # noqa: PLC0415  # few tables have such readers

        if shows_compacted_rows_only(schema) and not (before is not None and shows_compacted_rows_only(before)):
            _LOG.warning(
                "%s: Iceberg readers will see only fully compacted rows; call compact(full=True), or set 'full-compaction.delta-commits'. "
                "maintenance() says how old their view is",
                self._table_path,
            )

    def _put(self, schema: TableSchema, guard: Callable[[], bool] | None = None) -> bool:
        path = self._paths.schema_file(schema.id)
        with suppress(FileReplaced):  # a lost race: no reader has used our file
            return self._file_io.create_exclusive(path, with_checksum(path, schema.to_json()), guard=guard)
        return False

    def holds(self, schema: TableSchema) -> bool:
        """Return whether the stored schema of that id equals ``schema``.

        Ignores options. False if the table was dropped and created again.
        """
        try:
            return _is_same(self._load(schema.id), schema)
        except FileNotFoundError:
            return False

    def alter(self, changes: Sequence[SchemaChange]) -> TableSchema:
        """Write a new version with all ``changes``.

        Retries on the newer schema after a lost race. Returns the newest schema if nothing changes. Raises the errors of ``evolve``.
        """
        from manifest.schema.evolution import evolve  # noqa: PLC0415  # readers of schemas change none

        for _ in range(_ATTEMPTS):
            current = self.require()
            altered = evolve(current, changes)
            if altered is current:
                return current
            if self._put(altered, lambda: self.holds(current)):  # noqa: B023  # called within this iteration
                if altered.options != current.options:
                    self._advise(altered, current)
                return altered
        raise SchemaMismatch(f"{self._table_path}: the schema changed {_ATTEMPTS} times while this call altered it; try again")


def _is_same(left: TableSchema, right: TableSchema) -> bool:
    """Return whether schemas of one id are the same version.

    Ignores options, which a job may override.
    """
    return left is right or (left.time_millis, left.fields) == (right.time_millis, right.fields)


def _weight(schema: TableSchema) -> int:
    return _BYTES_A_COLUMN * (len(schema.fields) + len(schema.options) + 1)
