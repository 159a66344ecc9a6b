"""Requests of ``Table.merge``, bound to the table and the source.

A request is objects in a process, and JSON text on its way to a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from fileindex.base.errors import InvalidArgument
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.request.assignments import refuse_delete
from pyspark_paimon.request.bound import BoundExpression, BoundSource, BoundValue
from pyspark_paimon.request.message import Message

When: TypeAlias = Literal["matched", "not matched", "not matched by source"]
Action: TypeAlias = Literal["update", "delete", "insert"]


class Clause(Message):
    """Action on rows that ``condition`` matches.

    The first clause that matches a row applies. ``values``: by column of the table.
    """

    when: When
    action: Action
    condition: BoundExpression | None
    values: dict[str, BoundValue]


class Join(Message):
    """Conditions under which rows of table and source match.

    ``pairs``: equal columns (table, source). All ``conditions`` must be true, too.
    """

    pairs: tuple[tuple[str, str], ...]
    conditions: tuple[BoundExpression, ...] = ()

    def finds_keys(self, schema: TableSchema) -> bool:
        """Return whether source rows match by exactly the primary key.

        If so, a source row without a match has a new key.
        """
        return not self.conditions and sorted(target for target, _ in self.pairs) == sorted(schema.primary_keys)


class MergeRequest(Message):
    """Source rows, join conditions and clauses of a merge."""

    source: BoundSource
    join: Join
    clauses: tuple[Clause, ...] = ()

    def reads_all(self, schema: TableSchema) -> bool:
        """Return whether inserts depend on rows in other buckets.

        Rows there may match, and a matched source row is not inserted.
        """
        if not any(clause.action == "insert" for clause in self.clauses):
            return False
        return not schema.primary_keys or not {target for target, _ in self.join.pairs}.issuperset(schema.primary_keys)


def check_merge(clauses: Sequence[Clause], schema: TableSchema, table: str) -> None:
    """Check that the table supports the clauses.

    Raises ``InvalidArgument`` without clauses, ``UnsupportedTable`` for an action that the table does not support.
    """
    if not clauses:
        raise InvalidArgument("merge does nothing: say what becomes of rows, when_matched_update_all().when_not_matched_insert_all()")
    from lsm.write.new_version import NewVersion  # noqa: PLC0415  # questions import requests, but not the write code

    for clause in clauses:
        if clause.action == "update":
            NewVersion.of(schema, clause.values, table)
        elif clause.action == "delete":
            refuse_delete(schema, table)


__all__ = ["Action", "Clause", "Join", "MergeRequest", "When", "check_merge"]
