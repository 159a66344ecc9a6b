"""``Table``: the public face. It checks and binds what people say and hands it to an engine, in process or on Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fileindex.base.errors import InvalidArgument
from fileindex.base.public import public
from manifest.io.paths import MAIN_BRANCH, with_branch
from pyspark_paimon.request.backend import (
    Mode,
    Progress,
)
from pyspark_paimon.request.inputs import has_row_kinds, rows_of
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.request.validate import write_request
from pyspark_paimon.table.engine_choice import backend_for
from pyspark_paimon.table.evolution import TableEvolution
from pyspark_paimon.table.history import TableHistory
from pyspark_paimon.table.inspection import TableInspection
from pyspark_paimon.table.keyed import TableRows
from pyspark_paimon.table.maintenance import TableMaintenance
from pyspark_paimon.table.reading import TableReading
from pyspark_paimon.table.reporting import TableReporting
from pyspark_paimon.typing import Data, Schema, SparkSession

if TYPE_CHECKING:
    from pyspark_paimon.request.results import WriteResult
    from pyspark_paimon.table.writer import TableWriter


@public
class Table(TableRows, TableReading, TableInspection, TableEvolution, TableHistory, TableMaintenance, TableReporting):
    """A Paimon table at a path, in process or, with a Spark session, where that session's server runs.

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
        """The table at ``path`` or one of its branches; with ``spark`` its files are read and written by that session's server.

        A branch may also stand in the path, as Paimon spells it: ``/warehouse/t$branch_trial``. ``progress`` is called with a
        ``ProgressEvent`` now and then while something long runs; True shows a bar on standard error.

        A path may be a URI of an object store (``s3://bucket/warehouse/db.db/t``); ``storage_options`` say how that is reached, as Paimon
        spells it (``s3.endpoint``, ``s3.access-key``, ``s3.secret-key``...). What they do not say comes from the environment. They are
        never written anywhere, nor shown.

        Raises ``TableNotFound``, ``InvalidArgument`` for what is no name of a branch, ``UnsupportedOption`` for a scheme or an option of a
        store that is none.
        """
        table = cls(backend_for(path if branch == MAIN_BRANCH else with_branch(os.fspath(path), branch), spark, progress, storage_options))
        table._backend.ask(SchemaOf())
        return table

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        schema: Schema,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        *,
        comment: str | None = None,
        spark: SparkSession | None = None,
        storage_options: Mapping[str, Any] | None = None,
        progress: Progress | bool | None = None,
    ) -> Table:
        """Create an empty table from an Arrow schema, a Spark StructType or DDL text; with primary keys it holds one row a key.

        ``storage_options`` are as for ``open``.

        Raises ``TableExists``, ``InvalidSchema``, ``UnsupportedType``, ``UnsupportedOption``; nothing is created then.
        """
        from pyspark_paimon.operations.create import CreateTable  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.table.new_schema import new_schema  # noqa: PLC0415  # as above

        built = new_schema(schema, primary_keys, partition_keys, options, comment)
        backend = backend_for(path, spark, progress, storage_options)
        backend.run(CreateTable(table_schema=built))
        return cls(backend)

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
        dry_run: bool = False,
    ) -> WriteResult:
        """Write rows and commit them: all become visible at once, or none.

        Args:
            data: Arrow table, batch, reader or iterable of batches; pandas, Spark (Connect or classic) or pandas-on-Spark
                DataFrame. Columns are matched by name. A reader is streamed and never held whole. On a primary-key table
                the column ``_row_kind`` may give each row a kind: ``+I``, ``-U``, ``+U`` or ``-D``; a table with the option
                ``rowkind.field`` has the kinds in a column of its own.
            mode: ``upsert`` (primary-key tables, their default), ``append`` (tables without key, their default), or
                ``overwrite``: the rows replace ``partition``; without it the partitions that they touch or, if the option
                ``dynamic-partition-overwrite`` is ``false`` or the table has no partitions, the whole table.
            partition: the static partition of an overwrite, by name; columns left out mean all their values.
            order_by: of equal keys in the input, the row with the greatest value of this column wins. Otherwise the last row
                of a local input wins; in a distributed DataFrame the winner is undefined unless the table has a
                ``sequence.field``. A local input is held in memory to be ordered.
            options: table options for this write only.
            commit_id: a UUID that names the write, for whoever may have to repeat it. A repeated write with the same id is answered, not
                done again, whoever runs it and wherever. Once its snapshot has expired it is an error, for as long as the table
                remembers ids: the option ``commit-id.time-retained``, 30 days unless set.
            batch_id: which batch it is of a job that ``commit_id`` names, as ``foreachBatch`` numbers them: a batch that is in the
                table, or older than one that is, is answered, also after its snapshot has expired.
            dry_run: of an overwrite, tell in ``removal`` what would go, and write nothing.

        Raises:
            SchemaMismatch, NullInKey: the rows do not fit the table.
            CommitReplayed: the write was begun before, and its snapshot, if there was one, has expired; nothing is written.
            UnmergeableRows: the table's merge engine cannot fold them: it takes no deletes, or a sum leaves its type's range.
            InvalidArgument, UnsupportedOption, UnknownColumn: the arguments do not.
            CommitConflict: other commits were faster, again and again; nothing is written.

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
        )
        rows = rows_of(data, schema.arrow)
        if dry_run:
            if request.mode != "overwrite":
                raise InvalidArgument(f"dry_run tells what an overwrite would take away; mode '{request.mode}' takes nothing away")
            from pyspark_paimon.table.would_overwrite import would_overwrite  # noqa: PLC0415  # few ask

            return would_overwrite(self._backend, schema, request, rows)
        kinds = has_row_kinds(rows, schema)
        return self._backend.write(request.model_copy(update={"row_kinds": kinds}), rows)

    def writer(self, *, options: Mapping[str, str] | None = None, commit_id: str | None = None) -> TableWriter:
        """A writer for many commits of this process, that compacts beside the rows which come next.

        Each ``commit()`` makes the rows since the one before visible, and returns without waiting for a compaction. Once a bucket has
        ``num-sorted-run.stop-trigger`` sorted runs (3 more than ``num-sorted-run.compaction-trigger`` unless set), the next commit
        waits for it, and so does the end of the block. Where readers of other engines or of a changelog wait for a compaction, it is part of the
        commit, as it is of ``write``. Leaving the block commits what is left, an error discards it.

        ``options`` are table options for these writes only. ``commit_id`` names a job that may have to repeat itself, whose commits are numbered
        by ``commit(batch_id)``.

        Raises ``InvalidArgument`` over Spark, where no process of ours holds the rows; ``UnsupportedOption``.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> with table.writer() as writer:
        ...     for day in range(3):
        ...         writer.write({"id": [day], "city": [f"day {day}"], "country": ["NO"], "attrs": [None]})
        ...         snapshot = writer.commit().snapshot_id
        >>> snapshot, table.count()
        (4, 4)
        """
        from pyspark_paimon.table.writer import TableWriter  # noqa: PLC0415  # few ask

        return TableWriter(self._backend, options=options, commit_id=commit_id)

    def __repr__(self) -> str:
        schema = self.table_schema
        key = f", primary_keys={list(schema.primary_keys)}" if schema.primary_keys else ""
        partitions = f", partition_keys={list(schema.partition_keys)}" if schema.partition_keys else ""
        return f"Table({self.path}: {', '.join(f'{field.name} {field.type}' for field in schema.fields)}{key}{partitions})"


__all__ = ["Table"]
