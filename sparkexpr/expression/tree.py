"""The expression tree: typed columns, literals and calls.

Create calls with ``functions.call``, which checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from sparkexpr.values.column_type import ColumnType, Plain


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """A column, or the entry ``key`` of a MAP column.

    ``type`` is the type of the value.
    """

    name: str
    key: str | None
    type: ColumnType

    def __str__(self) -> str:
        return self.name if self.key is None else f"{self.name}['{self.key}']"


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """A plain value of ``type``.

    None is null.
    """

    value: Plain
    type: ColumnType

    def __str__(self) -> str:
        return "NULL" if self.value is None else repr(self.value)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function call, or a ``cast``.

    ``function`` is a key of ``functions.FUNCTION_RULES``. The arguments have the types that it takes.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: ColumnType

    def __str__(self) -> str:
        if self.function == "item":
            container, part = self.arguments
            return f"{container}.{part.value!s}" if container.type.fields and isinstance(part, LiteralValue) else f"{container}[{part!s}]"
        if len(self.arguments) == 2 and not self.function[0].isalpha():
            return f"({self.arguments[0]} {self.function} {self.arguments[1]})"
        shown = ", ".join(map(str, self.arguments))
        return f"{self.function}({shown})" if self.function != "cast" else f"cast({shown} as {self.type.kind})"


Expression: TypeAlias = ColumnValue | LiteralValue | FunctionCall


def column_values(expression: Expression) -> Iterator[ColumnValue]:
    """Yield every column of the expression, left to right.

    A repeated column is yielded each time.
    """
    match expression:
        case ColumnValue():
            yield expression
        case FunctionCall(_, arguments, _):
            for argument in arguments:
                yield from column_values(argument)


def map_columns(expression: Expression, change: Callable[[ColumnValue], Expression]) -> Expression:
    """Return the expression with ``change`` applied to every column.

    ``change`` must keep the column's type.
    """
    match expression:
        case ColumnValue():
            return change(expression)
        case FunctionCall(_, arguments, _):
            return replace(expression, arguments=tuple(map_columns(argument, change) for argument in arguments))
        case _:
            return expression
