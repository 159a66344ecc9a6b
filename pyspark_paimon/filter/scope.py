"""Resolution of names in the clauses of a scan: outputs before stored columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidFilter, UnknownColumn
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.filter.parse import bind_value
from sparkexpr.expression.functions import call
from sparkexpr.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue, map_columns
from sparkexpr.expression.types import TEXT_TYPE
from sparkexpr.values.column_type import ColumnType

_PARTS = frozenset({"item", "get", "element_at", "try_element_at"})
_MARKS = frozenset(".[(`")
"""Characters of names that are more than the plain name of a column."""
_QUOTED = re.compile(r"\s*`((?:[^`]|``)+)`\s*")
_HEAD = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s.\[(`]+))\s*[.\[]")
"""Column whose part a name may mean."""


@dataclass(frozen=True)
class ColumnScope:
    """Columns that a name may mean in ORDER BY, aggregates and groups.

    As in Spark's ORDER BY, an output hides the stored columns of its name. Filters see stored columns only, as WHERE does.

    schema: Schema of the table.
    outputs: Computed columns by name. Empty: the scan returns stored columns.

    >>> from pyspark_paimon.example import cities
    >>> scope = ColumnScope(cities().table_schema)
    >>> negative = ColumnScope(scope.schema, {"ID": scope.bind("-id")})
    >>> str(negative.bind("id")), str(negative.bind("city"))
    ('negative(id)', 'city')
    """

    schema: TableSchema
    outputs: Mapping[str, Expression] = field(default_factory=dict)

    @cached_property
    def types(self) -> Mapping[str, ColumnType]:
        """Types of the columns by name, without stored columns that an output hides."""
        hidden = {name.lower() for name, value in self.outputs.items() if stored_name(value) != name}
        visible = {name: kind for name, kind in self.schema.column_types.items() if name.lower() not in hidden}
        return visible | {name: value.type for name, value in self.outputs.items()}

    def type_text(self, value: Expression) -> str:
        """Return the type of a value for an error."""
        column = stored_name(value)
        return str(value.type.kind if column is None else self.schema.field(column).type)

    def bind(self, value: object) -> Expression:
        """Return an expression on stored columns. Raises the errors of ``bind_value``."""
        return map_columns(bind_value(value, self.types), self._expanded)

    def named(self, text: str) -> tuple[str, Expression]:
        """Return the name and the value of an expression: a column has its spelling, others their text.

        Raises ``UnknownColumn``, and ``InvalidFilter`` for ambiguous names and parts that a column does not have.
        """
        name, value = self._read(text)
        return name, map_columns(value, self._expanded)

    def column(self, text: str) -> tuple[str, Expression]:
        """Return the name and the value of a column, or of a part of one.

        Raises the errors of ``named``, and ``InvalidFilter`` for other expressions.
        """
        if not _MARKS & set(text):
            resolve(text, self.types)
        name, value = self._read(text)
        if not is_part(value):
            raise InvalidFilter(f"'{text}' is an expression, not a column or a part of one")
        return name, map_columns(value, self._expanded)

    def find(self, text: str) -> tuple[str, Expression] | None:
        """Return the name and the value of a column or a part. None: the text means no column.

        Raises ``InvalidFilter`` for an ambiguous name, and the errors of ``column`` for a part that its column does not have.
        """
        try:
            return self.column(text)
        except UnknownColumn:
            if self._has_head(text):
                raise
        except InvalidFilter:
            if not _MARKS & set(text) or self._has_head(text):
                raise
        return None

    def _read(self, text: str) -> tuple[str, Expression]:
        """Return the name and the value of an expression on ``types``."""
        quoted = None if text in self.types else _QUOTED.fullmatch(text)
        try:
            name = resolve(text if quoted is None else quoted[1].replace("``", "`"), self.types)
        except UnknownColumn:
            if quoted is not None:
                raise
        else:
            return name, ColumnValue(name, None, self.types[name])
        value = bind_value(text, self.types)
        return stored_name(value) or text, value

    def _has_head(self, name: str) -> bool:
        head = _HEAD.match(name)
        lowered = "" if head is None else (head[2] or head[1].replace("``", "`")).lower()
        return any(column.lower() == lowered for column in self.types)

    def _expanded(self, column: ColumnValue) -> Expression:
        value = self.outputs.get(column.name)
        if value is None or column.key is None:
            return column if value is None else value
        if isinstance(value, ColumnValue) and value.key is None:
            return ColumnValue(value.name, column.key, column.type)
        return call("try_element_at", [value, LiteralValue(column.key, TEXT_TYPE)])


def is_part(value: Expression) -> bool:
    """Return whether a value is a column or a part of one."""
    match value:
        case ColumnValue():
            return True
        case FunctionCall(function, (outer, LiteralValue()), _) if function in _PARTS:
            return is_part(outer)
    return False


def stored_name(value: Expression) -> str | None:
    """Return the stored column that a value is. None: it is computed, or a part of a column."""
    return value.name if isinstance(value, ColumnValue) and value.key is None else None
