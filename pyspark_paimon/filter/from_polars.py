"""Translation of polars expressions to conditions.

Only the parts that give the same result for every row, nulls included, are translated. The caller applies the whole
expression to the rows that were read.
"""

# polars' own translation to Arrow is not used: its is_in is false for null, so that NOT is_in is true for null.

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fileindex.predicate.tree import ColumnRef, Op
from paimon_base.errors import InvalidFilter, UnknownColumn
from pyspark_paimon.filter.arrow_values import literal_of_scalar
from pyspark_paimon.filter.ast import (
    MIRRORED,
    And,
    Computation,
    Condition,
    Constant,
    GivenValue,
    Literal,
    Not,
    Or,
    Term,
    field_of,
)
from pyspark_paimon.filter.conditions import among, condition_of
from sparkexpr.values.column_type import BINARIES, INTEGERS, STRINGS, TIMESTAMPS, ColumnType, Kind

if TYPE_CHECKING:
    import polars as pl

_OPS = {"Eq": Op.EQ, "NotEq": Op.NE, "Lt": Op.LT, "LtEq": Op.LE, "Gt": Op.GT, "GtEq": Op.GE}
_BETWEEN = {"Both": (Op.GE, Op.LE), "Left": (Op.GE, Op.LT), "Right": (Op.GT, Op.LE), "None": (Op.GT, Op.LT)}
_EXACT_FLOAT = 2**53


class _Inexact(Exception):  # control flow, not an error: polars evaluates this part
    """A part of an expression that is not translated."""


def polars_condition(expression: pl.Expr, types: Mapping[str, ColumnType]) -> Condition | None:
    """Return a condition that keeps all rows of ``expression``.

    None: no part of the expression could be translated.

    >>> import polars as pl
    >>> polars_condition(~pl.col("n").is_in([1]) & (pl.col("n").sin() > 0), {"n": ColumnType(Kind.INT)})
    Not(child=Membership(column=ColumnRef(name='n', key=None), values=(1,)))
    """
    try:
        tree = json.loads(expression.meta.serialize(format="json"))
    except Exception:  # noqa: BLE001  # expressions with Python functions cannot be serialized
        return None
    conditions = []
    for part in _conjuncts(tree):
        try:
            conditions.append(_Translation(types).condition(part))
        except (_Inexact, RecursionError):
            continue
        except (LookupError, TypeError, ValueError, AttributeError):  # the tree differs between versions of polars
            continue
    return None if not conditions else conditions[0] if len(conditions) == 1 else And(tuple(conditions))


def whole_polars_condition(expression: pl.Expr, types: Mapping[str, ColumnType]) -> Condition:
    """Return the condition that is true for the same rows.

    Raises ``UnknownColumn``, and ``InvalidFilter`` for an expression of which a part cannot be translated.

    >>> import polars as pl
    >>> whole_polars_condition(pl.col("n") > 1, {"n": ColumnType(Kind.INT)})
    Comparison(column=ColumnRef(name='n', key=None), op=<Op.GT: '>'>, value=1)
    """
    for name in expression.meta.root_names():
        if name not in types:
            raise UnknownColumn(name, tuple(types))
    try:
        return _Translation(types).condition(json.loads(expression.meta.serialize(format="json")))
    except Exception as error:  # serialization fails for Python functions, and the tree differs between versions of polars
        raise InvalidFilter(
            f"the polars expression {expression!s:.120} has a part that filters do not support, or a literal of another type than its column; "
            "write it as SQL text, or filter the result"
        ) from error


def _compare(value: Term, op: Op, literal: Literal) -> Condition:
    return condition_of(Computation(op.value, (value, GivenValue(literal))))


def _conjuncts(node: Any) -> list[Any]:
    parts, waiting = [], [node]
    while waiting:
        part = waiting.pop()
        binary = part.get("BinaryExpr") if isinstance(part, dict) else None
        if binary is not None and binary["op"] in {"And", "LogicalAnd"}:
            waiting += [binary["right"], binary["left"]]
        else:
            parts.append(part)
    return parts


class _Translation:
    def __init__(self, types: Mapping[str, ColumnType]) -> None:
        self.types = types

    def condition(self, node: Any) -> Condition:
        """Return the equivalent condition, or raise ``_Inexact``."""
        match node:
            case {"Column": str()} | {"Function": {"function": {"StructExpr": _}}}:
                value, value_type = self._value(node)
                if value_type.kind is Kind.BOOLEAN:
                    return condition_of(value)
            case {"Literal": _}:
                constant = _series(node)[0]
                if constant is None or isinstance(constant, bool):
                    return Constant(constant)
            case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
                return And((self.condition(left), self.condition(right)))
            case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
                return Or((self.condition(left), self.condition(right)))
            case {"BinaryExpr": {"left": left, "op": op, "right": right}}:
                return self._comparison(left, op, right)
            case {"Function": {"input": inputs, "function": {"Boolean": function}}}:
                return self._boolean(function, inputs)
            case {"Function": {"input": [of, pattern], "function": {"StringExpr": "StartsWith"}}}:
                value, value_type = self._value(of)
                prefix = self._literal(pattern, value_type)
                if isinstance(prefix, str):
                    return condition_of(Computation("startswith", (value, GivenValue(prefix))))
        raise _Inexact

    def _boolean(self, function: Any, inputs: list[Any]) -> Condition:
        match function, inputs:
            case "Not", [child]:
                return Not(self.condition(child))
            case "IsNull", [child]:
                return self._is_null(child)
            case "IsNotNull", [child]:
                return Not(self._is_null(child))
            case {"IsIn": {"nulls_equal": False}}, [child, values]:
                value, value_type = self._value(child)
                listed = _series(values)[0]
                literals = tuple(_exact_literal(listed.slice(position, 1), value_type) for position in range(len(listed)))
                return among(value, tuple(literal for literal in literals if literal is not None))
            case {"IsBetween": {"closed": closed}}, [child, low, high]:
                value, value_type = self._value(child)
                ends = zip(_BETWEEN[closed], (low, high), strict=True)
                return And(tuple(_compare(value, op, self._literal(end, value_type)) for op, end in ends))
        raise _Inexact

    def _is_null(self, node: Any) -> Condition:
        return condition_of(Computation("isnull", (self._value(node)[0],)))

    def _comparison(self, left: Any, op: str, right: Any) -> Condition:
        swapped = "Literal" in left
        value, value_type = self._value(right if swapped else left)
        literal = self._literal(left if swapped else right, value_type)
        if op in {"EqValidity", "NotEqValidity"}:
            same = condition_of(Computation("<=>", (value, GivenValue(literal))))
            return same if op == "EqValidity" else Not(same)
        operator = _OPS[op]
        return _compare(value, MIRRORED[operator] if swapped else operator, literal)

    def _value(self, node: Any) -> tuple[Term, ColumnType]:
        """Return a column or a field of one."""
        match node:
            case {"Column": str() as name} if name in self.types:
                return ColumnRef(name), self.types[name]
            case {"Function": {"input": [child], "function": {"StructExpr": {"FieldByName": str() as name}}}}:
                struct, whole_type = self._value(child)
                return field_of(struct, [name]), dict(whole_type.fields)[name]
        raise _Inexact

    def _literal(self, node: Any, column_type: ColumnType) -> Literal:
        if "Literal" not in node:
            raise _Inexact
        return _exact_literal(_series(node), column_type)


def _series(node: Any) -> pl.Series:
    """Return a literal as a series of one value."""
    import polars as pl  # noqa: PLC0415  # the caller has a polars expression: polars is loaded

    if "Literal" not in node:
        raise _Inexact
    try:
        series = pl.select(pl.Expr.deserialize(io.BytesIO(json.dumps(node).encode()), format="json")).to_series()
    except pl.exceptions.PolarsError as error:  # JSON has neither NaN nor infinity
        raise _Inexact from error
    if series[0] is None and series.dtype != pl.Null:
        raise _Inexact
    return series


def _exact_literal(series: pl.Series, column_type: ColumnType) -> Literal:
    """Return a literal that polars compares exactly as ``bind`` does.

    Raises ``_Inexact`` for any other literal.
    """
    value, dtype, kind = series[0], series.dtype, column_type.kind
    if value is None:
        return None
    is_same = (
        (kind in INTEGERS and dtype.is_integer())
        or (kind is Kind.DOUBLE and (isinstance(value, float) or (dtype.is_integer() and abs(value) <= _EXACT_FLOAT)))
        or (kind in STRINGS and isinstance(value, str))
        or (kind in BINARIES and isinstance(value, bytes))
        or (kind is Kind.BOOLEAN and isinstance(value, bool))
        or (kind in {Kind.DATE, *TIMESTAMPS} and series.to_arrow().type == column_type.arrow)
    )
    if not is_same:
        raise _Inexact
    return literal_of_scalar(series.to_arrow()[0])
