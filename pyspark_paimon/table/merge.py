"""Builder of merges, returned by ``Table.merge``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from manifest.io.errors import SchemaMismatch
from paimon_base.public import public
from paimon_base.texts import count_text
from pyspark_paimon.operations.change_rows import MergeRows
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.requests import DeleteRequest
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.request.validate import CheckedMethods
from pyspark_paimon.results.results import MergeResult
from pyspark_paimon.typing import Expression

if TYPE_CHECKING:
    from lsm.rows_in.policy import RowPolicy
    from manifest.schema.table_schema import TableSchema
    from pyspark_paimon.request.merge import Action, ClauseCall, MergeRequest, When

_SCHEMA_RACES = 10
"""Most attempts of a merge beside writers that change the schema."""


@public
@dataclass(frozen=True, repr=False, eq=False)
class Merge(CheckedMethods):
    """Merge of a source into a table, returned by ``Table.merge``.

    Each method returns a new merge with one more clause; ``execute`` runs it. Of the clauses for a kind of row, the first
    applies whose condition is true. In SQL text, Spark columns (``col("t.n")``) and Arrow fields (``field("s.n")``), ``t`` or
    ``target`` is the table and ``s`` or ``source`` the source. Other values are constants. Columns that an insert leaves out
    get their default or null.

    Every method raises ``InvalidFilter``, ``UnknownColumn``, ``SchemaMismatch`` or ``InvalidArgument`` for an argument that
    does not fit the table.

    >>> from pyspark_paimon.example import cities
    >>> import pyarrow as pa
    >>> table = cities()
    >>> news = pa.table({"id": [1, 2, 9], "city": ["Bergen", None, "Bern"], "country": ["NO", "PE", "CH"]})
    >>> merge = table.merge(news, on="id").when_matched_delete("s.city IS NULL").when_matched_update({"city": "s.city"})
    >>> done = merge.when_not_matched_insert_all().execute()
    >>> done.updated, done.deleted, done.inserted
    (1, 1, 1)
    >>> table.scan(columns=["id", "city"], order_by="id").to_arrow().to_pylist()
    [{'id': 1, 'city': 'Bergen'}, {'id': 3, 'city': 'Rome'}, {'id': 9, 'city': 'Bern'}]
    """

    _engine: Engine
    _request: DeleteRequest
    _merge: MergeRequest
    _on: Expression | Sequence[str]
    _table_schema: TableSchema
    _policy: RowPolicy
    _calls: tuple[ClauseCall, ...] = ()

    def when_matched_update(self, set: Mapping[str, object], condition: Expression | None = None) -> Merge:  # noqa: A002  # SQL's word
        """Update rows of the table that match.

        Args:
            set: New values by column: ``{"n": "t.n + s.n"}``. Columns of the primary key, partition and bucket key cannot be set.
            condition: Further condition on the row of the table and that of the source.

        >>> from pyspark_paimon.example import cities
        >>> merge = cities().merge({"id": [1, 9], "city": ["Bergen", "Bern"]}, on="id")
        >>> merge.when_matched_update({"city": "upper(s.city)"}, "t.country = 'NO'").execute().updated
        1
        """
        return self._with("matched", "update", set, condition)

    def when_matched_update_all(self, condition: Expression | None = None) -> Merge:
        """Update all columns of matching rows from the source.

        The source must have all columns of the table. With ``write.merge-schema`` it may lack some, which keep their values.

        Args:
            condition: Further condition on the row of the table and that of the source.

        >>> from pyspark_paimon.example import cities
        >>> source = {"id": [1], "city": ["Bergen"], "country": ["NO"], "attrs": [None]}
        >>> cities().merge(source, on="id").when_matched_update_all().execute().updated
        1
        """
        return self._with("matched", "update", "all", condition)

    def when_matched_delete(self, condition: Expression | None = None) -> Merge:
        """Delete rows of the table that match.

        Args:
            condition: Further condition on the row of the table and that of the source.

        >>> from pyspark_paimon.example import cities
        >>> cities().merge({"id": [1, 9]}, on="id").when_matched_delete().execute().deleted
        1
        """
        return self._with("matched", "delete", None, condition)

    def when_not_matched_insert(self, values: Mapping[str, object], condition: Expression | None = None) -> Merge:
        """Insert rows of the source that have no match.

        Args:
            values: Values by column: ``{"id": "s.id", "n": 0}``.
            condition: Further condition on the row of the source.

        >>> from pyspark_paimon.example import cities
        >>> merge = cities().merge({"id": [1, 9], "city": ["Bergen", "Bern"]}, on="id")
        >>> merge.when_not_matched_insert({"id": "s.id", "city": "s.city"}).execute().inserted
        1
        """
        return self._with("not matched", "insert", values, condition)

    def when_not_matched_insert_all(self, condition: Expression | None = None) -> Merge:
        """Insert whole rows of the source that have no match.

        All columns that source and table share are inserted, with ``write.merge-schema`` all columns of the source.

        Args:
            condition: Further condition on the row of the source.

        >>> from pyspark_paimon.example import cities
        >>> cities().merge({"id": [1, 9], "city": ["Bergen", "Bern"]}, on="id").when_not_matched_insert_all().execute().inserted
        1
        """
        return self._with("not matched", "insert", "all", condition)

    def when_not_matched_by_source_update(self, set: Mapping[str, object], condition: Expression | None = None) -> Merge:  # noqa: A002  # as above
        """Update rows of the table that have no match.

        The whole table is read.

        Args:
            set: New values by column.
            condition: Further condition on the row of the table.

        >>> from pyspark_paimon.example import cities
        >>> merge = cities().merge({"id": [1, 9]}, on="id")
        >>> merge.when_not_matched_by_source_update({"country": "lower(t.country)"}).execute().updated
        2
        """
        return self._with("not matched by source", "update", set, condition)

    def when_not_matched_by_source_delete(self, condition: Expression | None = None) -> Merge:
        """Delete rows of the table that have no match.

        The whole table is read.

        Args:
            condition: Further condition on the row of the table.

        >>> from pyspark_paimon.example import cities
        >>> cities().merge({"id": [1, 9]}, on="id").when_not_matched_by_source_delete().execute().deleted
        2
        """
        return self._with("not matched by source", "delete", None, condition)

    def execute(self) -> MergeResult:
        """Run the merge in one commit.

        The merge reads one snapshot. If another commit changes an affected bucket first, the merge is computed again.

        Raises:
            InvalidArgument: There is no clause. Or two rows of the source change one row of the table, or are inserted with one key.
                Or an insert would replace a row that does not match.
            UnsupportedTable: The table does not support such a change.
            CommitConflict, CommitReplayed, FilterFailed: As for ``Table.write`` and ``Scan``. Nothing is committed.

        >>> from pyspark_paimon.example import cities
        >>> merge = cities().merge({"id": [1, 9], "city": ["Bergen", "Bern"]}, on="id")
        >>> result = merge.when_matched_delete().when_not_matched_insert_all().execute()
        >>> result.deleted, result.inserted
        (1, 1)
        """
        merge = self
        for left in reversed(range(_SCHEMA_RACES)):
            try:
                return self._engine.run(MergeRows(request=self._request, merge=merge._merge))
            except SchemaMismatch:
                newest = self._engine.ask(SchemaOf())
                # Another writer changed the schema that this merge is bound to.
                if not left or newest.id == merge._table_schema.id:
                    raise
                merge = merge._bound(newest, self._calls)
        raise AssertionError

    def _with(self, when: When, action: Action, values: object, condition: Expression | None) -> Merge:
        return self._bound(self._table_schema, (*self._calls, (when, action, values, condition)))

    def _bound(self, schema: TableSchema, calls: tuple[ClauseCall, ...]) -> Merge:
        from pyspark_paimon.request.merge import bind_merge  # noqa: PLC0415  # parses SQL

        merge_request = bind_merge(self._merge.source, self._on, calls, schema, self._policy)
        return replace(self, _merge=merge_request, _table_schema=schema, _calls=calls)

    def __repr__(self) -> str:
        clauses = ", ".join(f"{clause.action} {clause.when}" for clause in self._merge.clauses)
        rows = f"{count_text(self._merge.source.num_rows, 'row')}" if isinstance(self._merge.source, pa.Table) else "a DataFrame"
        return f"Merge({self._engine.path}, {rows} of the source, {clauses or 'no clause yet'})"
