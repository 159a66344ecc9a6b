"""Translation of sqlglot nodes to computed terms.

A node without a translation raises ``InvalidFilter`` with its SQL text.

A LIKE pattern without wildcards becomes an equality and ``text%`` a prefix test, which sorted or indexed columns can answer.
Other patterns are computed for each row, after a test of their prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, cast

from sqlglot import exp

from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter.arrow_values import literals_of
from pyspark_paimon.filter.ast import (
    Casting,
    Computation,
    GivenValue,
    Term,
    computation,
    field_of,
    item_of,
)
from pyspark_paimon.filter.now_literals import interval_parts
from pyspark_paimon.filter.parameters import list_values
from pyspark_paimon.filter.sql_literals import is_literal, literal_of
from sparkexpr.expression import calendar, variants
from sparkexpr.expression.types import BIGINT_TYPE, BOOLEAN_TYPE, BYTES_TYPE, DATE_TYPE, DOUBLE_TYPE, INT_TYPE, MOST_DIGITS, TEXT_TYPE
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.variant.path import path_text

_BINARY: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.DPipe: "concat",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Contains: "contains",
    exp.StartsWith: "startswith",
    exp.EndsWith: "endswith",
    exp.Left: "left",
    exp.Right: "right",
    exp.Nullif: "nullif",
    exp.DateDiff: "datediff",
    exp.ILike: "ilike",
    exp.RegexpLike: "rlike",
    exp.ArrayContains: "array_contains",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.AddMonths: "add_months",
}
_UNARY: dict[type[exp.Expression], str] = {
    exp.Neg: "negative",
    exp.Not: "not",
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Length: "length",
    exp.ArraySize: "size",
    exp.Reverse: "reverse",
    exp.Abs: "abs",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.Sign: "sign",
    exp.Sqrt: "sqrt",
    exp.BitwiseNot: "~",
    exp.LastDay: "last_day",
    exp.IsNan: "isnan",
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeek: "dayofweek",
    exp.DayOfYear: "dayofyear",
    exp.WeekOfYear: "weekofyear",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
_COMMON = frozenset({"this", "expression", "expressions"})
_ARGUMENTS: dict[type[exp.Expression], frozenset[str]] = {
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.Coalesce: _COMMON | {"is_nvl", "is_null"},
    exp.Concat: frozenset({"expressions", "safe"}),
    exp.DPipe: _COMMON | {"safe"},
    exp.DateDiff: _COMMON | {"unit"},
    exp.Div: _COMMON | {"safe"},
    exp.In: _COMMON | {"field"},
    exp.JSONExtract: _COMMON | {"variant_extract", "requires_json"},
    exp.ConcatWs: frozenset({"expressions", "safe", "coalesce", "flatten"}),
    exp.DateTrunc: frozenset({"this", "unit", "zone"}),
    exp.Greatest: _COMMON | {"ignore_nulls"},
    exp.Least: _COMMON | {"ignore_nulls"},
    exp.If: frozenset({"this", "true", "false"}),
    exp.Like: _COMMON | {"negate"},
    exp.Nvl2: frozenset({"this", "true", "false"}),
    exp.ParseJSON: _COMMON | {"safe"},
    exp.Pad: _COMMON | {"fill_pattern", "is_left"},
    exp.Repeat: frozenset({"this", "times"}),
    exp.Replace: frozenset({"this", "expression", "replacement"}),
    exp.Round: frozenset({"this", "decimals"}),
    exp.SplitPart: frozenset({"this", "delimiter", "part_index"}),
    exp.StrPosition: frozenset({"this", "substr"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.TimestampTrunc: frozenset({"this", "unit"}),
    exp.Trim: frozenset({"this", "position"}),
    exp.TryCast: frozenset({"this", "to", "safe"}),
    exp.TsOrDsAdd: _COMMON | {"unit"},
    exp.TsOrDsToDate: frozenset({"this", "safe"}),
}
"""Arguments of nodes that terms honour. Others than in this list have those in ``_COMMON``."""
_CALLS: dict[type[exp.Expression], tuple[str, tuple[str, ...]]] = {
    exp.Round: ("round", ("this", "decimals")),
    exp.Repeat: ("repeat", ("this", "times")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.Pad: ("pad", ("this", "expression", "fill_pattern")),
    exp.StrPosition: ("instr", ("this", "substr")),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
}
"""Functions by node, with the names of their arguments."""
_ITEMS = {(None, None): "item", (1, False): "element_at", (1, True): "try_element_at"}
"""Function of an element by the offset of its index, and whether an absent element is NULL."""
_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim"}
_Type = exp.DataType.Type
_TYPES: dict[object, ColumnType] = {
    _Type.BOOLEAN: BOOLEAN_TYPE,
    _Type.TINYINT: ColumnType(Kind.TINYINT),
    _Type.SMALLINT: ColumnType(Kind.SMALLINT),
    _Type.INT: INT_TYPE,
    _Type.BIGINT: BIGINT_TYPE,
    _Type.FLOAT: ColumnType(Kind.FLOAT),
    _Type.DOUBLE: DOUBLE_TYPE,
    _Type.TEXT: TEXT_TYPE,
    _Type.BINARY: BYTES_TYPE,
    _Type.DATE: DATE_TYPE,
    _Type.TIMESTAMP: ColumnType(Kind.TIMESTAMP_LTZ, precision=6),
    _Type.TIMESTAMPTZ: ColumnType(Kind.TIMESTAMP_LTZ, precision=6),
    _Type.TIMESTAMPLTZ: ColumnType(Kind.TIMESTAMP_LTZ, precision=6),
    _Type.TIMESTAMPNTZ: ColumnType(Kind.TIMESTAMP, precision=6),
}


ColumnOf: TypeAlias = Callable[[Sequence[str]], Term]
"""Resolver of a name with dots: a column, or a field of it."""


def term_of(node: exp.Expression, column: ColumnOf) -> Term:
    """Return the term of a node.

    column: Resolver of the parts of a name.
    Raises ``InvalidFilter`` for a node that filters do not support.
    """
    while isinstance(node, exp.Paren):
        node = node.this
    term = _term(node, partial(term_of, column=column), column)
    if term is None:
        name = str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name().lower() if isinstance(node, exp.Func) else node.key
        raise InvalidFilter(f"'{node.sql(dialect='spark')[:120]}': {name} is not supported in filters; apply it to the result")
    if not isinstance(node, exp.Column | exp.Dot | exp.Bracket) and not is_literal(node):
        _check_arguments(node)
    return term


def _check_arguments(node: exp.Expression) -> None:
    """Raise ``InvalidFilter`` for an argument that would be ignored."""
    # The parser attaches what Spark's functions may have: units, formats, flags of newer versions.
    allowed = _ARGUMENTS.get(type(node), _COMMON)
    unknown = [name for name, value in node.args.items() if value and name not in allowed]
    unit = node.args.get("unit")
    if isinstance(node, exp.DateDiff | exp.TsOrDsAdd) and unit is not None and unit.name.upper() != "DAY":
        unknown.append(f"unit {unit.name.upper()}")
    if unknown:
        raise InvalidFilter(
            f"'{node.sql(dialect='spark')[:120]}': {', '.join(unknown)} is not supported in filters; apply it to the result"
        )


def _term(node: exp.Expression, of: Callable[[exp.Expression], Term], column: ColumnOf) -> Term | None:
    kind = type(node)
    if is_literal(node) and not _is_typed_number(node):
        return GivenValue(literal_of(node))
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
        unit, count = interval_parts(node, -1 if isinstance(node, exp.Sub) else 1)
        return Computation(calendar.SHIFTED, (of(node.this), GivenValue(unit), GivenValue(count)))
    if kind in _BINARY:
        return computation(_BINARY[kind], (of(node.this), of(cast("exp.Expression", node.expression))))
    if kind in _UNARY:
        return computation(_UNARY[kind], (of(_bare(node.this)),))
    match node:
        case exp.Column() if all(isinstance(part, exp.Identifier) for part in node.parts):
            return column([part.name for part in node.parts])
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            return field_of(of(node.this), [node.expression.name])
        case exp.Bracket() if len(node.expressions) == 1:
            return item_of(of(node.this), of(node.expressions[0]), _ITEMS[node.args.get("offset"), node.args.get("safe")])
        case exp.And() | exp.Or():
            return computation(node.key, tuple(of(cast("exp.Expression", child)) for child in node.flatten()))
        case exp.JSONExtract() if node.args.get("variant_extract"):
            return computation("variant_get", (of(node.this), GivenValue(_variant_path(node))))
        case exp.TryCast() if node.args.get("safe"):
            return computation("try_cast", (of(node.this), GivenValue(variants.type_name(cast_type(node.to)))))
        case exp.Cast():
            return Casting(of(node.this), cast_type(node.to))
        case exp.Like() | exp.Escape():
            return _like(node, of)
        case exp.Is() if isinstance(node.expression, exp.Null):
            return computation("isnull", (of(node.this),))
        case exp.Is() if isinstance(node.expression, exp.Boolean):
            return computation("<=>", (of(node.this), GivenValue(bool(node.expression.this))))
        case exp.NullSafeNEQ():
            return computation("not", (computation("<=>", (of(node.this), of(cast("exp.Expression", node.expression)))),))
        case exp.In() if node.args.get("field") is not None:
            return computation("in", (of(node.this), *map(GivenValue, literals_of(list_values(node.args["field"])))))
        case exp.In() if node.expressions:
            return computation("in", (of(node.this), *map(of, node.expressions)))
        case exp.In() if node.args.get("query") is None:
            column_text = node.this.sql(dialect="spark")
            raise InvalidFilter(
                f"'{column_text} IN ()' has no values; pass them as a parameter, which may be empty: \"{column_text} IN :values\" with "
                "params={'values': [...]}"
            )
        case exp.Between():
            return computation("between", (of(node.this), of(node.args["low"]), of(node.args["high"])))
    return _function(node, of)


def _variant_path(node: exp.JSONExtract) -> str:
    steps: list[str | int] = []
    for step in cast("exp.JSONPath", node.expression).expressions[1:]:
        if not isinstance(step, exp.JSONPathKey | exp.JSONPathSubscript) or not isinstance(step.this, str | int):
            raise InvalidFilter(f"'{node.sql(dialect='spark')[:120]}': a path into a VARIANT has keys and numbers only")
        steps.append(step.this)
    return path_text(tuple(steps))


def _is_typed_number(node: exp.Expression) -> bool:
    """Return whether a node casts a number (``CAST(1 AS BIGINT)``)."""
    # The cast must stay: the type of a number determines the type of a sum.
    return isinstance(node, exp.Cast) and not (isinstance(node.this, exp.Literal) and node.this.is_string) and node.to.this in _TYPES


def _function(node: exp.Expression, of: Callable[[exp.Expression], Term]) -> Term | None:
    match node:
        case exp.ConcatWs() | exp.Array():
            return computation("array" if isinstance(node, exp.Array) else "concat_ws", tuple(map(of, node.expressions)))
        case exp.Struct() if all(isinstance(member, exp.PropertyEQ) for member in node.expressions):
            pairs = [(GivenValue(member.this.name), of(cast("exp.Expression", member.expression))) for member in node.expressions]
            return computation("named_struct", tuple([term for pair in pairs for term in pair]))
        case exp.Greatest() | exp.Least():
            return computation(node.sql_name().lower(), (of(node.this), *map(of, node.expressions)))
        case exp.Round() | exp.Repeat() | exp.Replace() | exp.Pad() | exp.StrPosition() | exp.SplitPart():
            name, parts = _CALLS[type(node)]
            arguments = [of(part) for key in parts if (part := node.args.get(key)) is not None]
            return computation(("lpad" if node.args.get("is_left") else "rpad") if isinstance(node, exp.Pad) else name, tuple(arguments))
        case exp.DateTrunc():
            return computation("trunc", (of(node.this), GivenValue(str(node.args["unit"].name))))
        case exp.Concat():
            return computation("concat", tuple(map(of, node.expressions)))
        case exp.Coalesce():
            return computation("coalesce", (of(node.this), *map(of, node.expressions)))
        case exp.Substring():
            places = [part for name in ("start", "length") if (part := node.args.get(name)) is not None]
            return computation("substring", (of(node.this), *map(of, places)))
        case exp.Trim() if node.expression is None:
            return computation(_TRIMS.get(str(node.args.get("position")), "trim"), (of(node.this),))
        case exp.If():
            return computation("case", tuple(of(node.args[part]) for part in ("this", "true", "false") if node.args.get(part)))
        case exp.Nvl2():
            return computation("nvl2", tuple(of(node.args[part]) for part in ("this", "true", "false") if node.args.get(part)))
        case exp.Case():
            return _case(node, of)
        case exp.Extract():
            return computation("extract", (GivenValue(node.name), of(cast("exp.Expression", node.expression))))
        case exp.TimestampTrunc():
            return computation("date_trunc", (GivenValue(str(node.args["unit"].name)), of(node.this)))
        case exp.TsOrDsToDate() if not node.args.get("format"):
            return computation("date", (of(node.this),))
        case exp.TsOrDsAdd():
            return computation("date_add", (of(node.this), of(cast("exp.Expression", node.expression))))
        case exp.ParseJSON() if node.expression is None:
            return computation("try_parse_json" if node.args.get("safe") else "parse_json", (of(node.this),))
        case exp.Anonymous():
            return computation(str(node.this), tuple(map(of, node.expressions)))
    return None


def _bare(node: exp.Expression) -> exp.Expression:
    # sqlglot parses year(d) as year(to_date(d)).
    return node.this if isinstance(node, exp.TsOrDsToDate) else node


def cast_type(named: exp.DataType) -> ColumnType:
    """Return the column type of a CAST.

    Raises ``InvalidFilter`` for a type that filters cannot cast to.
    """
    column_type = _TYPES.get(named.this)
    if named.this is _Type.DECIMAL:
        digits = [int(parameter.name) for parameter in named.expressions] or [10, 0]
        precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
        if not 0 <= scale <= precision <= MOST_DIGITS or not precision:
            raise InvalidFilter(
                f"DECIMAL({precision}, {scale}) is not a valid type: its precision is 1 to {MOST_DIGITS}, and its scale at most the precision"
            )
        column_type = ColumnType(Kind.DECIMAL, precision=precision, scale=scale)
    if column_type is None or (named.expressions and column_type.kind is not Kind.DECIMAL):
        raise InvalidFilter(f"a CAST to {named.sql(dialect='spark')} is not supported in filters")
    return column_type


def _like(node: exp.Expression, of: Callable[[exp.Expression], Term]) -> Term:
    escape: Term = GivenValue("\\")
    if isinstance(node, exp.Escape):
        escape, node = of(cast("exp.Expression", node.expression)), node.this
    if not isinstance(node, exp.Like):
        raise InvalidFilter(f"'{node.sql(dialect='spark')[:120]}': ESCAPE must follow a LIKE")
    like = computation("like", (of(node.this), of(cast("exp.Expression", node.expression)), escape))
    return computation("not", (like,)) if node.args.get("negate") else like


def _case(node: exp.Case, of: Callable[[exp.Expression], Term]) -> Term:
    """Translate both forms of CASE, with and without a value."""
    arguments: list[Term] = []
    for branch in node.args["ifs"]:
        condition = of(branch.this)
        arguments += [condition if node.this is None else Computation("=", (of(node.this), condition)), of(branch.args["true"])]
    default = node.args.get("default")
    return computation("case", (*arguments, GivenValue(None) if default is None else of(default)))
