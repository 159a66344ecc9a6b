"""Class ``TableWriter``, and the dry run of an overwrite."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import pyarrow as pa

from lsm.rows_in.arrow import ArrowRows, joined_rows
from lsm.rows_in.policy import CastMode, MissingColumns, RowPolicy, SchemaMode
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument
from paimon_base.public import public
from pyspark_paimon.operations.partitions import DropPartitions
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.inputs import rows_of, rows_to_write
from pyspark_paimon.request.partition_spec import Spec, spec_of
from pyspark_paimon.request.requests import Rows, WriteRequest
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.request.validate import CheckedMethods, commit_identity, write_request
from pyspark_paimon.results.results import WriteResult
from pyspark_paimon.typing import Data


@public
class TableWriter(CheckedMethods):
    """Writer of one process for many commits.

    Use it in one thread at a time. A closed writer cannot be opened again.

    >>> from pyspark_paimon.example import cities
    >>> with cities().writer() as writer:
    ...     writer.write({"id": [9], "city": ["Bergen"], "country": ["NO"], "attrs": [None]})
    ...     writer.commit().rows
    1
    """

    def __init__(
        self,
        engine: Engine,
        *,
        options: Mapping[str, str] | None,
        commit_id: str | None,
        missing: MissingColumns,
        schema_mode: SchemaMode | None,
        cast: CastMode,
    ) -> None:
        self._engine, self._options, self._commit_id, self._missing = engine, options, commit_id, missing
        self._schema_mode, self._cast = schema_mode, cast
        self._parts: list[ArrowRows] = []
        """Rows of the next commit, if it merges them."""
        self._name = commit_identity(commit_id)
        self._schema: TableSchema | None = None
        self._pending: TableSchema | None = None
        self._batch = 0
        self._closed = False
        self._request()
        self._rows = engine.writer(self._name)

    def __repr__(self) -> str:
        """Return the table, the commit id and the state.

        >>> from pyspark_paimon.example import cities
        >>> "open, next commit 0" in repr(cities().writer())
        True
        """
        return f"TableWriter({self._engine.path}: {'closed' if self._closed else 'open'}, next commit {self._batch})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None and (self._rows.is_open or self._parts):
                self.commit()
        finally:
            self.close()

    def write(self, data: Data) -> None:
        """Add rows to the next commit.

        Rows beyond ``write-buffer-size`` are written to files before the commit.

        Args:
            data: As for ``Table.write``.

        Raises:
            SchemaMismatch, NullInKey, InvalidArgument: The rows do not match the table. Uncommitted rows are discarded.

        >>> from pyspark_paimon.example import cities
        >>> with cities().writer() as writer:
        ...     writer.write({"id": [9], "city": ["Bergen"], "country": ["NO"], "attrs": [None]})
        ...     writer.write({"id": [8], "city": ["Turku"], "country": ["FI"], "attrs": [None]})
        ...     writer.commit().rows
        2
        """
        self._check_open()
        try:
            if not (self._rows.is_open or self._parts):
                self._schema = self._pending = None
            request = self._request()
            schema = self._write_schema()
            policy = RowPolicy.of(schema, request.options, missing=self._missing, cast=self._cast)
            if self._missing == "keep":
                rows = rows_of(data, schema, policy)
                self._parts.append(joined_rows([rows if isinstance(rows, ArrowRows) else ArrowRows(rows.reader)]))
                return
            rows, _, request = rows_to_write(data, schema, request, policy)
            if request.pending is not self._pending:
                self._adopt(request.pending)
        except BaseException:
            self.discard()
            raise
        self._rows.take(request, rows)

    def commit(self, batch_id: int | None = None, *, properties: Mapping[str, str] | None = None) -> WriteResult:
        """Make the rows since the last commit visible.

        All rows become visible at once. On an error none does, and they are discarded.

        Args:
            batch_id: Number of the batch in the job ``commit_id``, from 0. Required if the writer has a ``commit_id``, else not
                allowed. A batch that is already in the table, or older than one that is, is not written again; its rows are
                discarded.
            properties: As for ``Table.write``.

        Raises:
            InvalidArgument: ``batch_id`` is missing or not allowed, or the writer is closed.
            CommitReplayed: The batch was started before, and its snapshot, if it made one, has expired. Nothing is written.
            UnmergeableRows, CommitConflict: As ``Table.write``.

        >>> from pyspark_paimon.example import cities
        >>> row = {"id": [9], "city": ["Bergen"], "country": ["NO"], "attrs": [None]}
        >>> with cities().writer(commit_id="0b9d6d0e-5a4f-4f6f-8d3f-0c1b2a3d4e5f") as writer:
        ...     writer.write(row)
        ...     first = writer.commit(batch_id=0)
        ...     writer.write(row)
        ...     repeated = writer.commit(batch_id=0)
        >>> first.snapshot_id == repeated.snapshot_id
        True
        """
        self._check_open()
        if self._commit_id is not None and batch_id is None:
            raise InvalidArgument(f"commit: the writer has commit_id '{self._commit_id}', so each commit needs a number; give batch_id")
        request = self._request(batch_id, properties)
        if self._commit_id is None:
            request = request.model_copy(update={"batch_id": self._batch})
            self._batch += 1
        parts, self._parts = self._parts, []
        result = self._merge(request, joined_rows(parts)) if parts else self._rows.commit(request)
        self._schema = self._pending = None
        return result

    def _merge(self, request: WriteRequest, rows: ArrowRows) -> WriteResult:
        from pyspark_paimon.table.kept_columns import write_kept  # noqa: PLC0415  # rarely needed

        schema = self._write_schema()
        policy = RowPolicy.of(schema, request.options, missing=self._missing)
        checked, schema, request = rows_to_write(rows, schema, request, policy)
        return write_kept(self._engine, schema, request, checked)

    def discard(self) -> None:
        """Discard the rows since the last commit.

        >>> from pyspark_paimon.example import cities
        >>> with cities().writer() as writer:
        ...     writer.write({"id": [9], "city": ["Bergen"], "country": ["NO"], "attrs": [None]})
        ...     writer.discard()
        ...     writer.commit().rows
        0
        """
        self._parts = []
        self._rows.discard()

    def close(self) -> None:
        """Discard uncommitted rows and wait for the running compaction.

        A second call does nothing.

        >>> from pyspark_paimon.example import cities
        >>> writer = cities().writer()
        >>> writer.close()
        """
        self._closed = True
        self._rows.close()

    def _adopt(self, pending: TableSchema | None) -> None:
        """Let the next commit store a schema with the columns of the rows.

        Raises ``InvalidArgument`` if uncommitted rows have other columns.
        """
        if self._rows.is_open:
            raise InvalidArgument(f"{self._engine.path}: rows since the last commit have other columns; call commit() before these rows")
        self._schema = self._pending = pending

    def _write_schema(self) -> TableSchema:
        """Return the schema of the rows since the last commit."""
        if self._schema is None:
            self._schema = self._engine.ask(SchemaOf())
        return self._schema

    def _request(self, batch_id: int | None = None, properties: Mapping[str, str] | None = None) -> WriteRequest:
        request = write_request(
            self._write_schema(),
            None,
            options=self._options,
            commit_id=self._commit_id,
            batch_id=batch_id,
            properties=properties,
            missing=self._missing,
            schema_mode=self._schema_mode,
        )
        changes = {} if self._pending is None else {"pending": self._pending, "schema_id": None}
        return request.model_copy(update={"commit_id": self._name, **changes})

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgument(f"{self._engine.path}: the writer is closed; open a new one with Table.writer()")


def dry_run_overwrite(engine: Engine, schema: TableSchema, request: WriteRequest, data: Data, policy: RowPolicy) -> WriteResult:
    """Report what an overwrite with ``data`` would delete.

    Only partition columns of ``data`` are read, and only if they select the partitions.
    """
    start = time.perf_counter()
    rows = rows_of(data, schema, policy)
    specs: Sequence[Spec] = ({},) if request.partition is None else (request.partition,)
    if request.partition is None and request.dynamic:
        specs = _touched_partitions(schema, rows)
    drop = DropPartitions(commit_id=request.commit_id, partitions=tuple(dict(spec) for spec in specs), dry_run=True)
    removal = engine.run(drop).removal
    return WriteResult(rows=0, files=0, snapshot_id=None, removal=removal, seconds=time.perf_counter() - start)


def _touched_partitions(schema: TableSchema, rows: Rows) -> list[Spec]:
    """Return the partitions of the rows."""
    keys = list(schema.partition_keys)
    partitions = pa.schema([schema.arrow.field(name) for name in keys]).empty_table()
    parts = rows.reader if isinstance(rows, ArrowRows) else rows.frame.select(*keys).distinct().toArrow().to_batches()
    for batch in parts:
        batch_partitions = pa.Table.from_batches([batch]).select(keys).cast(partitions.schema)
        partitions = pa.concat_tables([partitions, batch_partitions]).group_by(keys).aggregate([]).select(keys)
    return [spec_of(row, schema) for row in partitions.to_pylist()]
