"""``Table.merge`` bound to the table and to the source: which rows match, and what becomes of them.

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
    """What becomes of rows, if ``condition`` is true of them and of no clause before; ``values`` by column of the table."""

    when: When
    action: Action
    condition: BoundExpression | None
    values: dict[str, BoundValue]


class Join(Message):
    """Which rows match: those with equal columns (of table, of source), for which all ``conditions`` are true."""

    pairs: tuple[tuple[str, str], ...]
    conditions: tuple[BoundExpression, ...] = ()

    def finds_keys(self, schema: TableSchema) -> bool:
        """Whether a row of the source matches the row with its key and no other, so that what matches nothing has a new key."""
        return not self.conditions and sorted(target for target, _ in self.pairs) == sorted(schema.primary_keys)


class MergeRequest(Message):
    """The rows of the source, which rows match, and what becomes of them."""

    source: BoundSource
    join: Join
    clauses: tuple[Clause, ...] = ()

    def reads_all(self, schema: TableSchema) -> bool:
        """Whether rows in other buckets than it writes decide what is inserted: those that would have matched."""
        if not any(clause.action == "insert" for clause in self.clauses):
            return False
        return not schema.primary_keys or not {target for target, _ in self.join.pairs}.issuperset(schema.primary_keys)


def check_merge(clauses: Sequence[Clause], schema: TableSchema, table: str) -> None:
    """Raise ``InvalidArgument`` if nothing is to be done, ``UnsupportedTable`` for what the table does not take."""
    if not clauses:
        raise InvalidArgument("merge does nothing: say what becomes of rows, when_matched_update_all().when_not_matched_insert_all()")
    from lsm.write.new_version import NewVersion  # noqa: PLC0415  # questions know requests, and nothing that writes

    for clause in clauses:
        if clause.action == "update":
            NewVersion.of(schema, clause.values, table)
        elif clause.action == "delete":
            refuse_delete(schema, table)


__all__ = ["Action", "Clause", "Join", "MergeRequest", "When", "check_merge"]
