"""Names of Spark's functions, common to all filter languages."""

from __future__ import annotations

from collections.abc import Callable

from fileindex.base.errors import InvalidFilter
from fileindex.expression.types import BIGINT_TYPE, BOOLEAN_TYPE, DATE_TYPE, DOUBLE_TYPE, INT_TYPE, TEXT_TYPE
from fileindex.predicate.tree import ColumnRef
from pyspark_paimon.filter.ast import Casting, Computation, GivenValue, Term

_ALIASES = {
    "==": "=",
    "!=": "<>",
    "!": "not",
    "mod": "%",
    "||": "concat",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "lcase": "lower",
    "ucase": "upper",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "substr": "substring",
    "dayofmonth": "day",
    "when": "case",
    "if": "case",
    "dateadd": "date_add",
    "date_diff": "datediff",
}
_CASTS = {
    "date": DATE_TYPE,
    "to_date": DATE_TYPE,
    "int": INT_TYPE,
    "bigint": BIGINT_TYPE,
    "double": DOUBLE_TYPE,
    "string": TEXT_TYPE,
    "boolean": BOOLEAN_TYPE,
}


def computation(name: str, arguments: tuple[Term, ...]) -> Term:
    """Return the term of a Spark function call.

    Aliases and derived functions are rewritten. Unknown functions are reported when the term is bound.

    >>> computation("NVL2", (ColumnRef("a"), GivenValue(1), GivenValue(2))).function
    'case'
    """
    folded = name.lower()
    if folded in _CASTS and len(arguments) == 1:
        return Casting(arguments[0], _CASTS[folded])
    if folded in _FORMS:
        return _FORMS[folded](*_exactly(folded, arguments))
    known = _ALIASES.get(folded, folded)
    match known, arguments:
        case "-", (argument,):
            return Computation("negative", (argument,))
        case "+", (argument,):
            return argument
        case "like", (_, _):
            return Computation(known, (*arguments, GivenValue("\\")))
        case "case", _ if len(arguments) % 2 == 0:
            return Computation(known, (*arguments, GivenValue(None)))
    return Computation(known, arguments)


def _exactly(name: str, arguments: tuple[Term, ...]) -> tuple[Term, ...]:
    wanted = _ARITY.get(name, 2)
    if len(arguments) != wanted:
        raise InvalidFilter(f"'{name}' takes {wanted} arguments, not {len(arguments)}")
    return arguments


def _is_known(value: Term) -> Term:
    return Computation("not", (Computation("isnull", (value,)),))


def _right(value: Term, number: Term) -> Term:
    if not isinstance(number, GivenValue) or type(number.value) is not int:
        raise InvalidFilter("'right' takes a whole number as its length")
    if number.value <= 0:
        return Computation("substring", (value, GivenValue(1), GivenValue(0)))
    return Computation("substring", (value, GivenValue(-number.value)))


def _part(unit: Term, value: Term) -> Term:
    name = str(unit.value).lower() if isinstance(unit, GivenValue) else ""
    if name not in {"year", "quarter", "month", "day", "hour", "minute", "week", "doy", "dayofweek"}:
        raise InvalidFilter(f"EXTRACT of '{name}' is not supported in filters; use year, quarter, month, week, day, doy, hour or minute")
    return Computation({"week": "weekofyear", "doy": "dayofyear"}.get(name, name), (value,))


def _ilike(value: Term, pattern: Term) -> Term:
    if not isinstance(pattern, GivenValue) or not isinstance(pattern.value, str):
        raise InvalidFilter("the pattern of 'ilike' must be a text in quotes")
    return Computation("like", (Computation("lower", (value,)), GivenValue(pattern.value.lower()), GivenValue("\\")))


_ARITY = {"nvl2": 3, "between": 3, "isnotnull": 1}
_FORMS: dict[str, Callable[..., Term]] = {
    "isnotnull": _is_known,
    "nvl2": lambda value, then, otherwise: Computation("case", (_is_known(value), then, otherwise)),
    "nullif": lambda value, other: Computation("case", (Computation("=", (value, other)), GivenValue(None), value)),
    "left": lambda value, number: Computation("substring", (value, GivenValue(1), number)),
    "right": _right,
    "ilike": _ilike,
    "date_part": _part,
    "datepart": _part,
    "extract": _part,
    "date_sub": lambda day, number: Computation("date_add", (day, Computation("negative", (number,)))),
    "between": lambda value, low, high: Computation("and", (Computation(">=", (value, low)), Computation("<=", (value, high)))),
}


def is_computed(term: Term) -> bool:
    """Return whether a term is neither column nor literal."""
    return not isinstance(term, ColumnRef | GivenValue)


__all__ = ["computation", "is_computed"]
