"""Types that arguments share, and casts to them."""

from __future__ import annotations

from collections.abc import Sequence

from sparkexpr.expression.casts import cast_kernel
from sparkexpr.expression.literals import is_null_literal, literal_as, tight_decimal
from sparkexpr.expression.tree import Expression, FunctionCall, LiteralValue
from sparkexpr.expression.types import BOOLEAN_TYPE, BYTES_TYPE, DOUBLE_TYPE, TEXT_TYPE, common_type
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, ColumnType, Kind


def cast_to(argument: Expression, target: ColumnType) -> Expression:
    """Return ``argument`` cast to ``target``, as by CAST.

    Raises ``InvalidFilter`` for an unsupported pair of types.
    """
    if (
        argument.type == target
        or (target == TEXT_TYPE and argument.type.kind in STRINGS)
        or (target == BYTES_TYPE and argument.type.kind in BINARIES)
    ):
        return argument
    if isinstance(argument, LiteralValue):
        literal = literal_as(argument, target)
        if literal is not None:
            return literal
    cast_kernel(argument.type, target)
    return FunctionCall("cast", (argument,), target)


def shared_type(name: str, arguments: Sequence[Expression]) -> ColumnType:
    """Return the type to which all arguments are cast.

    NULLs and number literals take the type of the other arguments, as in Spark.
    """
    typed = [argument for argument in arguments if not is_null_literal(argument)]
    if not typed:
        return BOOLEAN_TYPE
    floats = any(argument.type.kind in FLOATS for argument in typed)
    common: ColumnType | None = None
    for argument in typed:
        kind = _operand_type(argument, floats=floats, decimals=any(operand.type.kind is Kind.DECIMAL for operand in typed))
        common = kind if common is None else common_type(common, kind, name)
    assert common is not None
    if common.kind in STRINGS:
        return TEXT_TYPE
    return BYTES_TYPE if common.kind in BINARIES else common


def _operand_type(argument: Expression, *, floats: bool, decimals: bool) -> ColumnType:
    if isinstance(argument, LiteralValue) and argument.value is not None:
        if argument.type.kind is Kind.DECIMAL and floats:
            return DOUBLE_TYPE
        if argument.type.kind in INTEGERS and decimals and not floats:
            return tight_decimal(argument)
    return argument.type
