"""``Table.merge``: clauses, said one after the other, and what carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from fileindex.base.public import public
from pyspark_paimon.operations.change_rows import MergeRows
from pyspark_paimon.request.arguments import CheckedMethods
from pyspark_paimon.request.backend import DeleteRequest
from pyspark_paimon.request.executor import Backend
from pyspark_paimon.request.results import MergeResult
from pyspark_paimon.typing import Expression

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema
    from pyspark_paimon.filter.joined_sql import Sides
    from pyspark_paimon.request.merge import Action, MergeRequest, When


@public
@dataclass(frozen=True, repr=False, eq=False)
class Merge(CheckedMethods):
    """A merge that is being said; made by ``Table.merge``. Each method gives a new one with a clause more, ``execute`` does it.

    In SQL text, and in names of Spark's ``col("t.n")`` and Arrow's ``field("s.n")``, ``t`` (or ``target``) is the table and ``s`` (or
    ``source``) the source; a value that is no text and no expression is set as it is. Of the
    clauses for a kind of row the first whose condition is true applies. Columns that an insert leaves out get their default or null.
    Each method raises ``InvalidFilter``, ``UnknownColumn``, ``SchemaMismatch``, ``InvalidArgument`` for what the table does not have.

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

    _backend: Backend
    _request: DeleteRequest
    _wanted: MergeRequest
    _table_schema: TableSchema
    _sides: Sides

    def when_matched_update(self, set: Mapping[str, object], condition: Expression | None = None) -> Merge:  # noqa: A002  # SQL's word
        """Give rows of the table that match new values: ``{"n": "t.n + s.n"}``; not in columns of the key, partition or bucket."""
        return self._with("matched", "update", set, condition)

    def when_matched_update_all(self, condition: Expression | None = None) -> Merge:
        """Give rows of the table that match the values of the source in all columns, which it must have."""
        return self._with("matched", "update", "all", condition)

    def when_matched_delete(self, condition: Expression | None = None) -> Merge:
        """Delete rows of the table that match."""
        return self._with("matched", "delete", None, condition)

    def when_not_matched_insert(self, values: Mapping[str, object], condition: Expression | None = None) -> Merge:
        """Insert rows of the source that match none: ``{"id": "s.id", "n": 0}``."""
        return self._with("not matched", "insert", values, condition)

    def when_not_matched_insert_all(self, condition: Expression | None = None) -> Merge:
        """Insert rows of the source that match none, with its columns that the table has."""
        return self._with("not matched", "insert", "all", condition)

    def when_not_matched_by_source_update(self, set: Mapping[str, object], condition: Expression | None = None) -> Merge:  # noqa: A002  # as above
        """Give rows of the table that no row of the source matches new values; all of the table is read."""
        return self._with("not matched by source", "update", set, condition)

    def when_not_matched_by_source_delete(self, condition: Expression | None = None) -> Merge:
        """Delete rows of the table that no row of the source matches; all of the table is read."""
        return self._with("not matched by source", "delete", None, condition)

    def execute(self) -> MergeResult:
        """Do it in one commit, computed from one snapshot; if another commit changes a touched bucket meanwhile, computed again.

        Raises ``InvalidArgument`` where no clause was said, two rows of the source change one row of the table or are inserted with one
        key, or an insert would replace a row that does not match; ``UnsupportedTable`` where the table takes no such change,
        ``CommitConflict``, ``CommitReplayed``, ``FilterFailed``; nothing is committed then.
        """
        return self._backend.run(MergeRows(request=self._request, wanted=self._wanted))

    def _with(self, when: When, action: Action, values: object, condition: Expression | None) -> Merge:
        from pyspark_paimon.request.merge_clauses import clause_of  # noqa: PLC0415  # parses SQL

        clause = clause_of(when, action, values, condition, schema=self._table_schema, sides=self._sides, join=self._wanted.join)
        return replace(self, _wanted=self._wanted.model_copy(update={"clauses": (*self._wanted.clauses, clause)}))

    def __repr__(self) -> str:
        said = ", ".join(f"{clause.action} {clause.when}" for clause in self._wanted.clauses)
        rows = f"{self._wanted.source.num_rows} rows" if isinstance(self._wanted.source, pa.Table) else "a DataFrame"
        return f"Merge({self._backend.path}, {rows} of the source, {said or 'no clause yet'})"


__all__ = ["Merge"]
