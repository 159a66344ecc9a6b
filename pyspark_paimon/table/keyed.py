"""Rows by their keys, and changes to rows that a filter or keys name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from fileindex.base.lazy import LazyModule
from fileindex.predicate.tree import Predicate
from manifest.options.own_branch import OWN_BRANCH
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.request.backend import EVERY_LEVEL, ArrowRows, DeleteRequest, ScanRequest, TravelRequest
from pyspark_paimon.request.inputs import rows_of
from pyspark_paimon.request.keys import any_of_keys, in_order_of, keys_of, tells_keys
from pyspark_paimon.request.state import Start
from pyspark_paimon.request.validate import checked_options, commit_identity, projection, travel_of
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.table.scan import Scan
from pyspark_paimon.typing import Data, Expression, Filter, Keys, Time

if TYPE_CHECKING:
    from pyspark_paimon.operations import change_rows
    from pyspark_paimon.request import results
    from pyspark_paimon.table.merge import Merge
else:
    change_rows = LazyModule("pyspark_paimon.operations.change_rows")
    results = LazyModule("pyspark_paimon.request.results")


class TableRows(TableRole):
    """The role that finds rows by key, deletes and updates."""

    def lookup(
        self,
        keys: Keys,
        columns: Sequence[str] | None = None,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: Time | None = None,
        options: Mapping[str, str] | None = None,
    ) -> pa.Table:
        """The rows with these primary keys, in the order of ``keys``: a key that the table has not is left out, one asked twice comes twice.

        ``keys`` has exactly the columns of the primary key: an Arrow table, a pandas or polars DataFrame, a dict of lists, or
        whatever else can be written, in this process; thousands are asked together, by key ranges, buckets, indexes and pages.
        Keys are equal as they are stored: -0.0 is another key than 0.0, and NaN is one. Other arguments are as for ``scan``.

        Raises ``SchemaMismatch`` for missing or other columns and values that do not fit, ``NullInKey``, ``InvalidArgument`` for a
        table without primary key and for a DataFrame of Spark, and what ``scan`` raises.

        >>> from pyspark_paimon.example import cities
        >>> cities().lookup({"id": [3, 9, 1]}, columns=["city"]).to_pylist()
        [{'city': 'Rome'}, {'city': 'Oslo'}]
        """
        travel = travel_of(snapshot, tag, timestamp)
        given = self._read_options(options, placed=travel != TravelRequest())
        pinned, schema = self._backend.ask(Start(travel=travel))
        wanted = keys_of(keys, schema, "lookup")
        named = projection(columns, schema)
        request = ScanRequest.of(
            any_of_keys(wanted, schema),
            columns=tuple(dict.fromkeys([*named, *schema.primary_keys])),
            snapshot=pinned,
        ).model_copy(update={"schema_id": schema.id, "keys": None if tells_keys(schema) else wanted, "options": checked_options(given)})
        scan = Scan(self._backend, request, schema)
        found = scan.to_arrow() if len(wanted) else scan.schema.empty_table()
        return in_order_of(wanted, found).select(list(named))

    def take(self, keys: Keys, columns: Sequence[str] | None = None) -> pa.Table:
        """``lookup`` in the newest snapshot, by the name that dataframes have for it.

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
        dry_run: bool = False,
    ) -> results.WriteResult:
        """Delete the rows for which ``filter`` is true (``"TRUE"`` deletes all), or those with ``keys``, given as for ``lookup``.

        The rows are looked up and deleted in one snapshot: if a concurrent commit changes a bucket they are in, the filter
        is evaluated again. ``rows`` of the answer counts the deleted rows. A table without primary key marks them in deletion
        vectors if it has ``deletion-vectors.enabled``, else the files that hold them are rewritten. ``commit_id`` is as for ``write``.
        ``dry_run`` only counts the rows that would be deleted.

        Raises ``InvalidArgument`` unless there is one of filter and keys, ``InvalidFilter``, ``CommitConflict``, ``CommitReplayed``, and
        for keys what ``lookup`` raises.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.delete("country IN ('NO', 'PE')").rows, table.delete(keys={"id": [1, 3]}).rows
        (2, 1)
        """
        if keys is None:
            request = self._change("delete", filter, params, self._write_options(options), commit_id)
            return self._changed(change_rows.DeleteRows(request=request), dry_run=dry_run)
        if filter is not None or params:
            raise InvalidArgument("delete takes a filter or keys, not both")
        schema = self.table_schema
        wanted = keys_of(keys, schema, "delete")
        request = _request(any_of_keys(wanted, schema), self._write_options(options), commit_id)
        named = request.model_copy(update={"keys": None if tells_keys(schema) else wanted})
        return self._changed(change_rows.DeleteRows(request=named), dry_run=dry_run)

    def update(
        self,
        filter: Filter,  # noqa: A002  # SQL's word
        set: Mapping[str, object],  # noqa: A002  # SQL's word
        *,
        params: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        dry_run: bool = False,
    ) -> results.WriteResult:
        """Give the rows for which ``filter`` is true new values in the columns of ``set``; ``"TRUE"`` updates all.

        A value is a Python value, a pyarrow expression over the old row's columns (in process) or a Spark ``Column`` (on
        Spark). Isolation, ``dry_run`` and the way of a table without primary key are those of ``delete``.

        Raises:
            InvalidArgument: no filter, nothing set, a column of the primary key, the partition or the bucket key, or null where null says nothing.
            SchemaMismatch, UnknownColumn, InvalidFilter: a value or a name does not fit.
            UnsupportedTable: the merge engine makes a column of all that was written to it (`max`, `listagg`), or keeps the first row.
            CommitConflict: the rows changed again and again meanwhile; nothing is updated.

        >>> from pyspark_paimon.example import cities
        >>> import pyarrow.compute as pc
        >>> table = cities()
        >>> table.update("country = 'NO'", set={"city": pc.utf8_upper(pc.field("city")), "attrs": None}).rows
        1
        >>> table.scan("id = 1", columns=["city", "attrs"]).to_arrow().to_pylist()
        [{'city': 'OSLO', 'attrs': None}]
        """
        from pyspark_paimon.request.assignments import Assignments  # noqa: PLC0415  # see test_imports

        values = Assignments.of(set, self.table_schema)
        request = self._change("update", filter, params, self._write_options(options), commit_id)
        return self._changed(change_rows.UpdateRows(request=request, values=values), dry_run=dry_run)

    def merge(
        self, source: Data, on: Expression | Sequence[str], *, options: Mapping[str, str] | None = None, commit_id: str | None = None
    ) -> Merge:
        """Merge the rows of ``source`` into the table: say what becomes of rows that match and of others, then ``execute()``.

        Rows match where the columns ``on``, which both have, are equal, or by a condition about ``t``, the table, and ``s``, the source, that
        equates columns: ``"t.id = s.key AND t.day > '2024-01-01'"``, or the same as a Spark ``Column`` or of Arrow. The source is what can be written; in this process it is held in
        memory, and of the table those files are read that can match. Over Spark it may be a DataFrame, which Spark joins with the table
        and computes in its session's time zone; up to 100,000 rows of this process, or 20,000 of a DataFrame, the driver merges. ``commit_id`` is as for ``write``.

        Raises ``InvalidArgument``, ``InvalidFilter``, ``UnknownColumn``, ``UnsupportedType``, ``SchemaMismatch``; see ``Merge``.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> more = pa.table({"id": [3, 4], "city": ["Roma", "Oulu"], "country": ["IT", "FI"], "attrs": [None, None]})
        >>> table.merge(more, on="id").when_matched_update_all().when_not_matched_insert_all().execute().rows
        2
        """
        from pyspark_paimon.request.merge import MergeRequest  # noqa: PLC0415  # few tables are merged into
        from pyspark_paimon.request.merge_clauses import join_of, sides_of  # noqa: PLC0415  # parses SQL
        from pyspark_paimon.table.merge import Merge  # noqa: PLC0415  # as above

        schema = self.table_schema
        rows = rows_of(source, schema.arrow)
        if not isinstance(rows, ArrowRows) and self._backend.spark is None:
            raise InvalidArgument(
                "merge takes a DataFrame of Spark into a table opened with spark=...; else collect it with frame.toArrow()"
            )
        sides = sides_of(schema, rows.schema)
        held = rows.reader.read_all() if isinstance(rows, ArrowRows) else rows
        wanted = MergeRequest(source=held, join=join_of(on, sides))
        return Merge(self._backend, _request(None, self._write_options(options), commit_id), wanted, schema, sides)

    def _changed(self, change: change_rows.DeleteRows | change_rows.UpdateRows, *, dry_run: bool) -> results.WriteResult:
        """Return what the change did, in a dry run the number of rows that it would find now."""
        if not dry_run:
            return self._backend.run(change)
        request = change.request
        pinned, schema = self._backend.ask(Start(travel=TravelRequest()))
        asked = ScanRequest.of(request.predicate, columns=schema.names, snapshot=pinned).model_copy(
            update={"schema_id": schema.id, "keys": request.keys, "options": EVERY_LEVEL if schema.is_primary_key_table else OWN_BRANCH}
        )
        counted = self._backend.count(asked) if asked.keys is None else sum(batch.num_rows for batch in self._backend.read(asked))
        return results.WriteResult(rows=counted, files=0, snapshot_id=None, removal=results.Removal(rows=counted))

    def _change(
        self,
        verb: str,
        filter: Filter,  # noqa: A002  # as above
        params: Mapping[str, object] | None,
        options: Mapping[str, str] | None,
        commit_id: str | None,
    ) -> DeleteRequest:
        predicate = bind_filter(filter, self.table_schema.column_types, params)
        if predicate is None:
            raise InvalidArgument(f"{verb} needs a filter; 'TRUE' means every row")
        return _request(predicate, options, commit_id)


def _request(predicate: Predicate | None, options: Mapping[str, str] | None, commit_id: str | None) -> DeleteRequest:
    return DeleteRequest(
        commit_id=commit_identity(commit_id), first_run=commit_id is None, predicate=predicate, options=checked_options(options)
    )


__all__ = ["TableRows"]
