"""Methods of ``Table`` that look up and change rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from fileindex.predicate.tree import Predicate, columns_of
from lsm.rows_in.arrow import ArrowRows
from lsm.rows_in.policy import RowPolicy, SchemaMode
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.commit_info import check_properties
from manifest.snapshot.snapshot import Snapshot
from manifest.types.data_type import arrow_schema
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from pyspark_paimon.filter.parse import bind_filter, refuse_constant
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.inputs import rows_of
from pyspark_paimon.request.keys import LookupShape, Missing, any_of_keys, distinguishes_keys, keys_of
from pyspark_paimon.request.requests import EVERY_LEVEL, DeleteRequest, ScanRequest, TravelRequest
from pyspark_paimon.request.state import Start
from pyspark_paimon.request.validate import check_options, commit_identity, projection, schema_options, travel_of
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.typing import Data, Expression, Filter, Keys, Time

if TYPE_CHECKING:
    from pyspark_paimon.operations import change_rows
    from pyspark_paimon.results import results
    from pyspark_paimon.results.state_results import PurgeResult
    from pyspark_paimon.table.merge import Merge
else:
    change_rows = LazyModule("pyspark_paimon.operations.change_rows")
    results = LazyModule("pyspark_paimon.results.results")


class TableRows(TableRole):
    """Methods that find rows by key, and change rows."""

    def lookup(
        self,
        keys: Keys,
        columns: Sequence[str] | None = None,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: Time | None = None,
        options: Mapping[str, str] | None = None,
        missing: Missing = "drop",
        indicator: bool | str = False,
    ) -> pa.Table:
        """Return the rows with the given primary keys.

        The rows are in the order of ``keys``; a key that is given twice is returned twice. Keys are compared as they are stored:
        -0.0 and 0.0 differ, and NaN equals NaN. Thousands of keys are looked up together, by buckets, key ranges and pages.

        Args:
            keys: Arrow table, pandas or polars DataFrame, dict of lists or other local data, with exactly the columns of the
                primary key. Also one key as ``{"id": 1}``, a list or array of values where the key is one column, and tuples
                ``[(1, "a"), (2, "b")]`` in the order of ``primary_keys`` where it is several.
            columns: Columns to return. None: all.
            snapshot: As for ``scan``.
            tag: As for ``scan``.
            timestamp: As for ``scan``.
            options: As for ``scan``.
            missing: ``drop`` leaves out keys that the table does not have. ``null`` returns one row for each key: a missing key
                with nulls in all other columns.
            indicator: Add a BOOLEAN column that is true for keys that the table has. True: its name is ``_found``; text: this is its
                name. Only with ``missing="null"``.

        Raises:
            SchemaMismatch: Columns of ``keys`` are missing or not part of the key, or a value does not fit.
            NullInKey: A key is null.
            InvalidArgument: The table has no primary key, ``keys`` is a Spark DataFrame, or another argument is not valid.
            SnapshotNotFound, SnapshotExpired, UnknownColumn, UnsupportedOption: As for ``scan``.

        >>> from pyspark_paimon.example import cities
        >>> cities().lookup({"id": [3, 9, 1]}, columns=["city"]).to_pylist()
        [{'city': 'Rome'}, {'city': 'Oslo'}]
        >>> cities().lookup({"id": [3, 9]}, columns=["id", "city"], missing="null", indicator=True).to_pylist()
        [{'id': 3, 'city': 'Rome', '_found': True}, {'id': 9, 'city': None, '_found': False}]
        >>> cities().lookup([2, 1], columns=["city"]).to_pylist(), cities().lookup({"id": 2}, columns=["city"]).num_rows
        ([{'city': 'Lima'}, {'city': 'Oslo'}], 1)
        """
        shape = LookupShape.of(missing, indicator)
        travel = travel_of(snapshot, tag, timestamp)
        read_options = self._read_options(options, placed=travel != TravelRequest())
        pinned, schema = self._engine.ask(Start(travel=travel))
        return find_rows(self._engine, pinned, schema, keys, columns, shape=shape, options=read_options)

    def take(self, keys: Keys, columns: Sequence[str] | None = None) -> pa.Table:
        """Return rows of the newest snapshot by key, as ``lookup``.

        >>> from pyspark_paimon.example import cities
        >>> cities().take({"id": [2]}, columns=["city"]).to_pylist()
        [{'city': 'Lima'}]
        """
        return self.lookup(keys, columns)

    def delete(
        self,
        filter: Filter = None,  # noqa: A002  # SQL's word
        *,
        params: Mapping[str, object] | None = None,
        keys: Keys | None = None,
        options: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> results.WriteResult:
        """Delete rows by filter or by key.

        The deletion reads one snapshot. If a concurrent commit changes an affected bucket, the filter is evaluated again.
        Append tables with ``deletion-vectors.enabled`` mark the rows in deletion vectors; other append tables rewrite the
        files.

        Args:
            filter: As for ``scan``. Rows for which it is true are deleted; ``"TRUE"`` deletes all rows.
            params: As for ``scan``.
            keys: Primary keys of the rows, as for ``lookup``, instead of a filter.
            options: Table options for this call only.
            commit_id: As for ``write``.
            properties: As for ``write``.
            dry_run: Count the rows that would be deleted, and change nothing.

        Returns:
            A result whose ``rows`` is the number of deleted rows.

        Raises:
            InvalidArgument: Not exactly one of filter and keys is given.
            InvalidFilter, UnknownColumn, SchemaMismatch, NullInKey: The filter or the keys are not valid.
            CommitConflict: Other commits won every retry. Nothing is deleted.
            CommitReplayed: As for ``write``.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.delete("country IN ('NO', 'PE')").rows, table.delete(keys={"id": [1, 3]}).rows
        (2, 1)
        """
        if keys is None:
            request = _request(self._predicate("delete", filter, params), self._write_options(options), commit_id, properties)
            return self._run_change(change_rows.DeleteRows(request=request), dry_run=dry_run)
        if filter is not None or params:
            raise InvalidArgument("delete takes a filter or keys, not both; remove one of them")
        schema = self.table_schema
        key_set = keys_of(keys, schema, "delete")
        request = _request(any_of_keys(key_set, schema), self._write_options(options), commit_id, properties)
        named = request.model_copy(update={"keys": None if distinguishes_keys(schema) else key_set})
        return self._run_change(change_rows.DeleteRows(request=named), dry_run=dry_run)

    def purge(
        self,
        filter: Filter = None,  # noqa: A002  # SQL's word
        *,
        params: Mapping[str, object] | None = None,
        keys: Keys | None = None,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> PurgeResult:
        """Delete rows, and every file of the table that stores them.

        The matching rows are deleted. Files that store such rows are rewritten, also those that newer versions, deletes or
        deletion vectors hide. Then all snapshots and changelogs expire, with their manifests, whose statistics hold values, and
        the table's statistics. The newest state stays, without time travel to older ones.

        Tags and branches stay, and so do snapshots that a consumer has yet to read. The result says which of them still hold
        matching rows: delete those, and call ``purge`` again.

        Args:
            filter: As for ``delete``.
            params: As for ``scan``.
            keys: Primary keys of the rows, as for ``lookup``, instead of a filter.
            properties: As for ``write``.
            dry_run: Count the rows and search for what holds them, and change nothing.

        Returns:
            A result that is ``gone``, or names the ``holders``.

        Raises:
            InvalidArgument: Not exactly one of filter and keys is given.
            InvalidFilter, UnknownColumn, SchemaMismatch, NullInKey: The filter or the keys are not valid.
            UnsupportedTable: The table has row ids (``row-tracking.enabled``), which a rewrite would lose.
            CommitConflict: Other commits won every retry. Rows may be deleted, and older snapshots hold them; call it again.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> done = table.purge("country = 'NO'")
        >>> done.rows, done.gone, table.snapshots().num_rows
        (1, True, 1)
        """
        from pyspark_paimon.operations.purge import purge_table  # noqa: PLC0415  # seldom needed

        schema = self.table_schema
        if keys is not None and (filter is not None or params):
            raise InvalidArgument("purge takes a filter or keys, not both; remove one of them")
        predicate = self._predicate("purge", filter, params) if keys is None else any_of_keys(keys_of(keys, schema, "purge"), schema)
        request = _request(predicate, self._write_options(None), None, properties)
        count = partial(count_change, self._engine, change_rows.DeleteRows(request=request))
        return purge_table(self._engine, schema, request, count, dry_run=dry_run)

    def update(
        self,
        filter: Filter,  # noqa: A002  # SQL's word
        set: Mapping[str, object] | None = None,  # noqa: A002  # SQL's word
        *,
        values: Mapping[str, object] | None = None,
        params: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> results.WriteResult:
        """Set columns of the rows that match a filter.

        Isolation, and the treatment of append tables, are as for ``delete``.

        Args:
            filter: As for ``scan``. ``"TRUE"`` updates all rows.
            set: Expressions on the old row by column, as in SQL and ``merge``: ``{"n": "n + 1", "s": "upper(s)"}``. A text is SQL, also
                ``"'a'"`` for a constant. Also Arrow expressions (in process), Spark Columns (on Spark), and constants that are no texts.
            values: Constants by column: ``{"s": "any text"}``.
            params: As for ``scan``.
            options: Table options for this call only.
            commit_id: As for ``write``.
            properties: As for ``write``.
            dry_run: Count the rows that would be updated, and change nothing.

        Returns:
            A result whose ``rows`` is the number of updated rows.

        Raises:
            InvalidArgument: There is no filter or nothing to set. Or a column is part of the primary key, partition or bucket key.
                Or a value is null where the merge engine ignores null.
            SchemaMismatch, UnknownColumn, InvalidFilter: A value or a name is not valid.
            UnsupportedTable: The merge engine aggregates the column (`max`, `listagg`), or keeps the first row.
            CommitConflict: Other commits won every retry. Nothing is updated.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.update("country = 'NO'", set={"city": "upper(city)", "attrs": None}).rows
        1
        >>> table.update("id = 2", values={"city": "Cusco"}).rows
        1
        >>> table.scan("id < 3", columns=["city"]).to_arrow().to_pylist()
        [{'city': 'OSLO'}, {'city': 'Cusco'}]
        """
        from pyspark_paimon.request.assignments import Assignments  # noqa: PLC0415  # see test_imports

        assigned = Assignments.parse(set, values, self.table_schema, self._engine.spark)
        request = _request(self._predicate("update", filter, params), self._write_options(options), commit_id, properties)
        return self._run_change(change_rows.UpdateRows(request=request, values=assigned), dry_run=dry_run)

    def merge(
        self,
        source: Data,
        on: Expression | Sequence[str],
        *,
        options: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        properties: Mapping[str, str] | None = None,
        schema_mode: SchemaMode | None = None,
    ) -> Merge:
        """Start a merge of ``source`` into the table.

        Add clauses for matching and other rows to the result, then call ``execute()``.

        Args:
            source: Rows to merge, as ``data`` of ``write``. In process they are held in memory, and only files of the table
                that can match are read. On Spark the source may be a DataFrame, which Spark joins with the table in its
                session's time zone. Up to 100,000 local rows, or 20,000 rows of a DataFrame, are merged by the driver.
            on: Columns that both sides have, or a condition: SQL text (``"t.id = s.key AND t.day > '2024-01-01'"``), a Spark
                Column or an Arrow expression. It needs at least one equality of a column of ``t`` (the table) and one of ``s``
                (the source).
            options: Table options for this call only.
            commit_id: As for ``write``.
            properties: As for ``write``.
            schema_mode: As for ``write``. ``merge`` adds the columns that the clauses take from the source, all of them for
                ``update_all`` and ``insert_all``. Columns that the source lacks keep their values in updates, and get their default
                in inserts. Columns by which rows match keep their types.

        Raises:
            InvalidArgument, InvalidFilter, UnknownColumn, UnsupportedType, SchemaMismatch: An argument is not valid.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> more = pa.table({"id": [3, 4], "city": ["Roma", "Oulu"], "country": ["IT", "FI"], "attrs": [None, None]})
        >>> table.merge(more, on="id").when_matched_update_all().when_not_matched_insert_all().execute().rows
        2
        """
        from pyspark_paimon.request.merge import bind_merge  # noqa: PLC0415  # parses SQL
        from pyspark_paimon.table.merge import Merge  # noqa: PLC0415  # as above

        schema, settings = self.table_schema, {**(self._write_options(options) or {}), **schema_options(schema_mode)}
        policy = RowPolicy.of(schema, check_options(settings))
        rows = rows_of(source, schema, policy)
        if not isinstance(rows, ArrowRows) and self._engine.spark is None:
            raise InvalidArgument(
                "merge of a Spark DataFrame needs a table opened with spark=...; or collect the frame with frame.toArrow()"
            )
        merge_request = bind_merge(rows.reader.read_all() if isinstance(rows, ArrowRows) else rows, on, (), schema, policy)
        return Merge(self._engine, _request(None, settings, commit_id, properties), merge_request, on, schema, policy)

    def _run_change(self, change: change_rows.DeleteRows | change_rows.UpdateRows, *, dry_run: bool) -> results.WriteResult:
        """Run a change; a dry run counts its rows."""
        if not dry_run:
            return self._engine.run(change)
        counted = count_change(self._engine, change)
        removal = results.Removal(rows=counted, verb="update" if isinstance(change, change_rows.UpdateRows) else "remove")
        return results.WriteResult(rows=counted, files=0, snapshot_id=None, removal=removal)

    def _predicate(self, verb: str, filter: Filter, params: Mapping[str, object] | None) -> Predicate:  # noqa: A002  # as above
        """Return the bound filter of a change.

        Raises ``InvalidArgument`` without a filter.
        """
        predicate = bind_filter(filter, self.table_schema.column_types, params)
        if predicate is None:
            raise InvalidArgument(f"{verb} needs a filter; 'TRUE' means every row")
        if isinstance(filter, str) and not columns_of(predicate):
            refuse_constant(verb, filter, self.table_schema.names)
        return predicate


def count_change(engine: Engine, change: change_rows.DeleteRows | change_rows.UpdateRows) -> int:
    """Return the number of rows that a change finds."""
    request = change.request
    pinned, schema = engine.ask(Start(travel=TravelRequest()))
    matching = ScanRequest.of(request.predicate, columns=schema.names, snapshot=pinned).model_copy(
        update={"schema_id": schema.id, "keys": request.keys, "options": EVERY_LEVEL}
    )
    return engine.count(matching) if matching.keys is None else sum(batch.num_rows for batch in engine.read(matching))


def find_rows(
    engine: Engine,
    pinned: Snapshot | None,
    schema: TableSchema,
    keys: Keys,
    columns: Sequence[str] | None,
    *,
    shape: LookupShape,
    options: Mapping[str, str] | None = None,
) -> pa.Table:
    """Return the rows of keys at a snapshot. See ``Table.lookup``.

    Args:
        engine: Engine of the table.
        pinned: The snapshot. None: the table is empty.
        schema: Schema to read with.
        keys: Primary keys.
        columns: Columns to return. None: all.
        shape: Treatment of missing keys.
        options: Options of the call.
    """
    key_set = keys_of(keys, schema, "lookup")
    named = projection(columns, schema)
    read = tuple(dict.fromkeys([*named, *schema.primary_keys]))
    request = ScanRequest.of(any_of_keys(key_set, schema), columns=read, snapshot=pinned).model_copy(
        update={"schema_id": schema.id, "keys": key_set, "options": {} if options is None else check_options(options)}
    )
    arrow = schema.arrow if read == schema.names else arrow_schema([schema.field(name) for name in read])
    matching_rows = pa.Table.from_batches(engine.read(request, keeps_all=True), arrow) if key_set.rows.num_rows else arrow.empty_table()
    return shape.arranged(key_set, matching_rows, named)


def _request(
    predicate: Predicate | None, options: Mapping[str, str] | None, commit_id: str | None, properties: Mapping[str, str] | None
) -> DeleteRequest:
    return DeleteRequest(
        commit_id=commit_identity(commit_id),
        first_run=commit_id is None,
        predicate=predicate,
        properties=check_properties(properties),
        options=check_options(options),
    )
