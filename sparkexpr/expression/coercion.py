"""Types that arguments share, and casts to them."""

from __future__ import annotations

from collections.abc import Sequence

from sparkexpr.expression.casts import cast_kernel
from sparkexpr.expression.literals import is_null_literal, literal_as, tight_decimal
from sparkexpr.expression.tree import Expression, FunctionCall, LiteralValue
from sparkexpr.expression.types import BOOLEAN_TYPE, BYTES_TYPE, DOUBLE_TYPE, TEXT_TYPE, common_type
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, ColumnType, Kind


def cast_to(argument: Expression, wanted: ColumnType) -> Expression:
    """Return ``argument`` cast to ``wanted``, as by CAST.

    Raises ``InvalidFilter`` for an unsupported pair of types.
    """
    if (
        argument.type == wanted
        or (wanted == TEXT_TYPE and argument.type.kind in STRINGS)
        or (wanted == BYTES_TYPE and argument.type.kind in BINARIES)
    ):
        return argument
    if isinstance(argument, LiteralValue):
        literal = literal_as(argument, wanted)
        if literal is not None:
            return literal
    cast_kernel(argument.type, wanted)
    return FunctionCall("cast", (argument,), wanted)


def shared_type(name: str, arguments: Sequence[Expression]) -> ColumnType:
    """Return the type to which all arguments are cast.

    NULLs and number literals take the type of the other arguments, as in Spark.
    """
    typed = [argument for argument in arguments if not is_null_literal(argument)]
    if not typed:
        return BOOLEAN_TYPE
    floats = any(argument.type.kind in FLOATS for argument in typed)
    found: ColumnType | None = None
    for argument in typed:
        kind = _operand_type(argument, floats=floats, decimals=any(one.type.kind is Kind.DECIMAL for one in typed))
        found = kind if found is None else common_type(found, kind, name)
    assert found is not None
    if found.kind in STRINGS:
        return TEXT_TYPE
    return BYTES_TYPE if found.kind in BINARIES else found


def _operand_type(argument: Expression, *, floats: bool, decimals: bool) -> ColumnType:
    if isinstance(argument, LiteralValue) and argument.value is not None:
        if argument.type.kind is Kind.DECIMAL and floats:
            return DOUBLE_TYPE
        if argument.type.kind in INTEGERS and decimals and not floats:
            return tight_decimal(argument)
    return argument.type
