"""Class ``Table``, the public API of tables.

It validates arguments and passes requests to an engine, in this process or on Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lsm.rows_in.arrow import ArrowRows
from lsm.rows_in.policy import CastErrors, CastMode, MissingColumns, RowPolicy, SchemaMode
from manifest.io.errors import SchemaMismatch, TableExists
from manifest.io.paths import MAIN_BRANCH, with_branch
from paimon_base.errors import InvalidArgument, PaimonError
from paimon_base.public import public
from pyspark_paimon.request.inputs import rows_of, rows_to_write
from pyspark_paimon.request.requests import Mode, Progress, SparkRows
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.request.validate import travel_of, write_request
from pyspark_paimon.table.engine_choice import engine_for
from pyspark_paimon.table.evolution import TableEvolution
from pyspark_paimon.table.files import TableFiles
from pyspark_paimon.table.history import TableHistory
from pyspark_paimon.table.inspection import TableInspection
from pyspark_paimon.table.keyed import TableRows
from pyspark_paimon.table.maintenance import TableMaintenance
from pyspark_paimon.table.reading import TableReading
from pyspark_paimon.table.reporting import TableReporting
from pyspark_paimon.typing import Data, Schema, SparkSession, Time

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema
    from pyspark_paimon.request.requests import WriteRequest
    from pyspark_paimon.results.results import WriteResult
    from pyspark_paimon.table.reader import TableReader
    from pyspark_paimon.table.writer import TableWriter

_SCHEMA_RACES = 20
"""Runs of a write that adds columns, while other writers change the schema."""


@public
class Table(TableRows, TableReading, TableInspection, TableEvolution, TableHistory, TableMaintenance, TableFiles, TableReporting):
    """A Paimon table at a path.

    Without a Spark session this process reads and writes the files. With a session, its server does.

    >>> import tempfile, pyarrow as pa
    >>> table = Table.create(f"{tempfile.mkdtemp()}/t", "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "1"})
    >>> table.write(pa.table({"id": [1, 2], "city": ["Oslo", "Lima"]})).rows
    2
    >>> table.write(pa.table({"id": [2], "city": ["Rome"]})).snapshot_id
    2
    >>> table.scan(columns=["city"]).to_arrow().sort_by("city").to_pylist()
    [{'city': 'Oslo'}, {'city': 'Rome'}]
    """

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        spark: SparkSession | None = None,
        *,
        branch: str = MAIN_BRANCH,
        storage_options: Mapping[str, Any] | None = None,
        progress: Progress | bool | None = None,
    ) -> Table:
        """Open the table at ``path``.

        Args:
            path: Directory of the table, or a URI of an object store (``s3://bucket/warehouse/db.db/t``). A branch may be part of the
                path, in Paimon's notation: ``/warehouse/t$branch_trial``.
            spark: Session whose server reads and writes the files. None: this process does.
            branch: Branch to open.
            storage_options: Access to the object store, by Paimon's names (``s3.endpoint``, ``s3.access-key``, ``s3.secret-key``...).
                Missing options come from the environment. Options are never stored or shown.
            progress: Callback that receives a ``ProgressEvent`` during long operations. True shows a progress bar on standard error.

        Raises:
            TableNotFound: There is no table at the path.
            InvalidArgument: The branch is not a valid name.
            UnsupportedOption: The scheme or a storage option is unknown.

        >>> from pyspark_paimon import Table
        >>> from pyspark_paimon.example import cities
        >>> Table.open(cities().path).primary_keys
        ('id',)
        """
        table = cls(engine_for(path if branch == MAIN_BRANCH else with_branch(os.fspath(path), branch), spark, progress, storage_options))
        table._engine.ask(SchemaOf())
        return table

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        schema: Schema | Data,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        *,
        if_not_exists: bool = False,
        comment: str | None = None,
        spark: SparkSession | None = None,
        storage_options: Mapping[str, Any] | None = None,
        progress: Progress | bool | None = None,
    ) -> Table:
        """Create an empty table.

        Its snapshots expire after an hour, except the newest 10: older states can be read for that time. The options
        ``snapshot.time-retained`` and ``snapshot.num-retained.min`` change this, tags and consumers keep single snapshots.

        Args:
            path: Directory or URI of the new table.
            schema: Arrow or polars schema, Spark StructType, or DDL text. Or data as for ``write``, of which only the columns are
                used; ``from_data`` also writes its rows.
            primary_keys: Columns of the primary key. The table then has one row for each key. Empty: an append table.
            partition_keys: Partition columns.
            options: Table options.
            if_not_exists: Return the table that is at the path, if there is one, as it is.
            comment: Comment of the table.
            spark: As for ``open``.
            storage_options: As for ``open``.
            progress: As for ``open``.

        Raises:
            TableExists: There is a table at the path, and ``if_not_exists`` is False.
            InvalidSchema, UnsupportedType, UnsupportedOption: The definition is not valid. Nothing is created.

        >>> import tempfile
        >>> from pyspark_paimon import Table
        >>> table = Table.create(f"{tempfile.mkdtemp()}/t", "id BIGINT, day DATE", partition_keys=["day"])
        >>> table.schema.names, table.partition_keys
        (['id', 'day'], ('day',))
        """
        from pyspark_paimon.operations.create import CreateTable  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.table.new_schema import new_schema  # noqa: PLC0415  # as above

        built = new_schema(schema, primary_keys, partition_keys, options, comment)
        engine = engine_for(path, spark, progress, storage_options)
        try:
            engine.run(CreateTable(table_schema=built))
        except TableExists:
            if not if_not_exists:
                raise
        return cls(engine)

    @classmethod
    def from_data(
        cls,
        path: str | os.PathLike[str],
        data: Data,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        *,
        if_not_exists: bool = False,
        comment: str | None = None,
        spark: SparkSession | None = None,
        storage_options: Mapping[str, Any] | None = None,
        progress: Progress | bool | None = None,
    ) -> Table:
        """Create a table with the columns of ``data``, and write its rows.

        The types are those of the data: texts become STRING, Python integers BIGINT, decimals DECIMAL(38, s). For other types,
        call ``create`` with DDL text, then ``write``.

        Args:
            path: Directory or URI of the new table.
            data: Rows, as for ``write``.
            primary_keys: As for ``create``.
            partition_keys: As for ``create``.
            options: As for ``create``.
            if_not_exists: Write the rows to the table that is at the path, if there is one.
            comment: As for ``create``.
            spark: As for ``open``.
            storage_options: As for ``open``.
            progress: As for ``open``.

        Raises:
            TableExists: As for ``create``.
            UnsupportedType: A column has no type, because all its values are null, or a type that no table has.
            InvalidSchema, UnsupportedOption, InvalidArgument: The definition is not valid. Nothing is created.
            NullInKey: A key is null. The empty table is created.

        >>> import tempfile
        >>> from pyspark_paimon import Table
        >>> table = Table.from_data(f"{tempfile.mkdtemp()}/t", {"id": [1, 2], "city": ["Oslo", "Lima"]}, primary_keys=["id"])
        >>> table.count(), [str(field.type) for field in table.table_schema.fields]
        (2, ['BIGINT NOT NULL', 'STRING'])
        """
        rows = rows_of(data, None)
        table = cls.create(
            path,
            rows.frame.schema if isinstance(rows, SparkRows) else rows.schema.empty_table(),
            primary_keys,
            partition_keys,
            options,
            if_not_exists=if_not_exists,
            comment=comment,
            spark=spark,
            storage_options=storage_options,
            progress=progress,
        )
        try:
            table.write(rows.frame if isinstance(rows, SparkRows) else rows.reader)
        except PaimonError as error:
            error.add_note(
                f"{table.path}: the table exists, and no row was written; correct the rows, then call Table.open(...).write(...)"
            )
            raise
        return table

    def write(
        self,
        data: Data,
        mode: Mode | None = None,
        *,
        partition: Mapping[str, object] | None = None,
        order_by: str | None = None,
        options: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        batch_id: int | None = None,
        properties: Mapping[str, str] | None = None,
        missing: MissingColumns = "refuse",
        schema_mode: SchemaMode | None = None,
        cast: CastMode = False,
        errors: CastErrors = "raise",
        dry_run: bool = False,
    ) -> WriteResult:
        """Write rows and commit them atomically.

        Args:
            data: Arrow table, batch, reader or iterable of batches; pandas, Spark (Connect or classic) or pandas-on-Spark
                DataFrame. Columns are matched by name. A reader is streamed and never held whole. On a primary-key table
                the column ``_row_kind`` may give the kind of each row: ``+I``, ``-U``, ``+U`` or ``-D``. A table with the option
                ``rowkind.field`` has the kinds in another column.
            mode: ``append`` adds the rows; in a primary-key table they are new versions of their keys, as in Spark. ``upsert`` says
                the same and needs a primary key. None: one of these. ``overwrite``: the rows
                replace ``partition``. Without ``partition`` they replace the partitions that they belong to. They replace the whole
                table if it has no partitions or the option ``dynamic-partition-overwrite`` is ``false``.
            partition: Static partition of an overwrite, by column name. A column that is left out matches all its values.
            order_by: Column that decides between rows with equal keys in the input: the greatest value wins. Without it, the last
                row of a local input wins; in a distributed DataFrame the winner is undefined unless the table has a
                ``sequence.field``. A local input is sorted in memory.
            options: Table options for this write only.
            commit_id: UUID that identifies the write, to retry it safely. A repeated write with the same id returns the first
                result and writes nothing. After its snapshot has expired, the retry raises an error for as long as the table
                remembers ids: the option ``commit-id.time-retained``, 30 days by default.
            batch_id: Number of the batch in the job ``commit_id``, as ``foreachBatch`` counts them. A batch that is already in the
                table, or older than one that is, is not written again, even after its snapshot has expired.
            properties: Texts to store with the snapshot, such as a ticket or a job's name. ``history()`` shows them.
            missing: Columns that the rows leave out, where a row without them would clear stored values: with merge engine
                ``deduplicate``, in a sequence group whose sequence column the rows have, and with the function ``last_value``.
                ``refuse``: an error, unless they have a default. ``null``: they become null. ``keep``: they keep their stored
                values, by a merge in one commit. Dicts and batches may have different columns then. With ``deduplicate`` local rows of
                one key are applied in their order, and after a delete missing columns become null. ``keep`` needs a primary key. Values of a sequence group without its sequence column are an error, except with ``null``. So
                are values that the newest version decides, without the ``sequence.field``.
                Deletes need only their key.
            schema_mode: ``merge`` adds columns and nested fields of the rows that the table does not have, with the commit; existing
                rows have null there. With the options ``write.merge-schema.type-widening`` and ``.explicit-cast`` existing columns get
                the type of the rows. None: such rows are refused, unless the table has the option ``write.merge-schema``.
            cast: Convert values to the types of the table: texts to numbers, dates, times and booleans, numbers to other numbers and
                texts, also inside lists, maps and rows. ``True`` changes no value: 0.1 fits DECIMAL(2, 1) and 0.15 does not. A FLOAT
                takes the nearest number. ``"round"`` rounds numbers half away from zero, and cuts off fractions of seconds. For rows of
                this process.
            errors: Treatment of values that cannot be cast. ``raise``: an error, and nothing is written. ``null``: they become null, texts that are too long for their column, too.
                ``collect``: their rows are not written, and are returned in ``rejected`` of the result, with the reason in ``_error``.
            dry_run: For an overwrite, report in ``removal`` what it would delete, and write nothing.

        Raises:
            SchemaMismatch, NullInKey: The rows do not match the table's schema.
            CommitReplayed: The write was started before, and its snapshot, if it made one, has expired. Nothing is written.
            UnmergeableRows: The merge engine cannot merge the rows: it does not accept deletes, or a sum overflows its type.
            InvalidArgument, UnsupportedOption, UnknownColumn: An argument is not valid.
            CommitConflict: Other commits won every retry. Nothing is written.

        >>> import pyarrow as pa
        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> changes = pa.table({"id": [2, 3], "city": ["Cusco", None], "country": ["PE", None], "attrs": [None, None], "_row_kind": ["+U", "-D"]})
        >>> result = table.write(changes)
        >>> result.rows, result.files, result.snapshot_id
        (2, 1, 2)
        >>> table.scan(columns=["city"]).to_arrow().to_pylist()
        [{'city': 'Oslo'}, {'city': 'Cusco'}]
        """
        schema = self.table_schema
        request = write_request(
            schema,
            mode,
            partition=partition,
            order_by=order_by,
            options=self._write_options(options),
            commit_id=commit_id,
            batch_id=batch_id,
            properties=properties,
            missing=missing,
            schema_mode=schema_mode,
        )
        for left in reversed(range(_SCHEMA_RACES)):
            policy = RowPolicy.of(schema, request.options, cast=cast, errors=errors, missing=missing)
            try:
                return self._write(data, schema, request, policy, dry_run=dry_run)
            except SchemaMismatch:
                newest = self.table_schema
                # Another writer changed the schema that this write was about to change.
                if not left or newest.id == schema.id or not policy.merges or isinstance(data, Iterator | pa.RecordBatchReader | ArrowRows):
                    raise
                schema, request = newest, request.model_copy(update={"schema_id": newest.id})
        raise AssertionError

    def _write(self, data: Data, schema: TableSchema, request: WriteRequest, policy: RowPolicy, *, dry_run: bool) -> WriteResult:
        """Check the rows and write them once."""
        if dry_run:
            if request.mode != "overwrite":
                raise InvalidArgument(f"dry_run reports what an overwrite would delete; mode '{request.mode}' deletes nothing")
            from pyspark_paimon.table.writer import dry_run_overwrite  # noqa: PLC0415  # rarely needed

            return dry_run_overwrite(self._engine, schema, request, data, policy)
        rows, schema, request = rows_to_write(data, schema, request, policy)
        if policy.missing == "keep":
            from pyspark_paimon.table.kept_columns import write_kept  # noqa: PLC0415  # rarely needed

            result: WriteResult = write_kept(self._engine, schema, request, rows)
        else:
            result = self._engine.write(request, rows)
        return result.model_copy(update={"rejected": pa.concat_tables(rows.rejected)}) if rows.rejected else result

    def writer(
        self,
        *,
        options: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        missing: MissingColumns = "refuse",
        schema_mode: SchemaMode | None = None,
        cast: CastMode = False,
    ) -> TableWriter:
        """Open a writer for many commits.

        The writer compacts in the background while it takes the next rows. Each ``commit()`` makes the rows since the last
        commit visible and does not wait for a compaction. If a bucket has ``num-sorted-run.stop-trigger`` sorted runs,
        the next commit and the end of the block wait for its compaction (default: 3 more than
        ``num-sorted-run.compaction-trigger``). If other engines or changelog readers need the compaction, it is part of the commit, as in ``write``. Leaving the
        block commits the remaining rows; an error discards them.

        Args:
            options: Table options for these writes only.
            commit_id: Identifies a job that may be repeated. Its commits are numbered by ``commit(batch_id)``.
            missing: As for ``write``. With ``keep`` the rows of a commit are held in memory, and each commit is a merge.
            schema_mode: As for ``write``.
            cast: As for ``write``.

        Raises:
            InvalidArgument: The table was opened with Spark, where this process does not hold the rows.
            UnsupportedOption: An option is unknown.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> with table.writer() as writer:
        ...     for day in range(3):
        ...         writer.write({"id": [day], "city": [f"day {day}"], "country": ["NO"], "attrs": [None]})
        ...         snapshot = writer.commit().snapshot_id
        >>> snapshot, table.count()
        (4, 4)
        """
        from pyspark_paimon.table.writer import TableWriter  # noqa: PLC0415  # rarely needed

        return TableWriter(self._engine, options=options, commit_id=commit_id, missing=missing, schema_mode=schema_mode, cast=cast)

    def reader(
        self, *, snapshot: int | None = None, tag: str | None = None, timestamp: Time | None = None, cache: str = "256 mb"
    ) -> TableReader:
        """Open a reader for many lookups at one snapshot.

        Args:
            snapshot: As for ``scan``. None, with no tag and no timestamp: the newest snapshot.
            tag: As for ``scan``.
            timestamp: As for ``scan``.
            cache: Size of the reader's own cache.

        Raises:
            InvalidArgument: The table was opened with Spark, where this process does not read the files, or it has no primary key.
            SnapshotNotFound, SnapshotExpired, UnsupportedOption: An argument is not valid.

        >>> from pyspark_paimon.example import cities
        >>> reader = cities().reader(cache="64 mb")
        >>> reader.lookup({"id": [2]}, columns=["city"]).to_pylist()
        [{'city': 'Lima'}]
        """
        from pyspark_paimon.local.engine import LocalEngine  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.table.reader import TableReader  # noqa: PLC0415  # rarely needed

        if not isinstance(self._engine, LocalEngine):
            raise InvalidArgument(f"{self.path}: a reader holds files in this process; use lookup(), or open the table without spark")
        if not self.table_schema.is_primary_key_table:
            raise InvalidArgument(f"{self.path}: a reader finds rows by primary key, and the table has none; use scan()")
        return TableReader(self._engine, travel_of(snapshot, tag, timestamp), cache)

    def __repr__(self) -> str:
        schema = self.table_schema
        key = f", primary_keys={list(schema.primary_keys)}" if schema.primary_keys else ""
        partitions = f", partition_keys={list(schema.partition_keys)}" if schema.partition_keys else ""
        return f"Table({self.path}: {', '.join(f'{field.name} {field.type}' for field in schema.fields)}{key}{partitions})"
