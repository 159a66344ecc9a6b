"""Nodes of unbound filters, common to all filter languages.

Each filter language is translated to these nodes. ``bind.bind`` then resolves column names, converts literals to the
columns' types and pushes NOT to the leaves.
"""

# Dates and times have literal classes of their own: Python's types end in the year 9999 and at microseconds, Paimon's do not.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

from fileindex.predicate.tree import ColumnRef, Op
from paimon_base.errors import InvalidFilter
from paimon_base.texts import count_text
from sparkexpr.expression.types import BIGINT_TYPE, BOOLEAN_TYPE, DATE_TYPE, DOUBLE_TYPE, INT_TYPE, TEXT_TYPE
from sparkexpr.values.column_type import ColumnType
from sparkexpr.values.time_zone import instant_of, wall_of

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # naive on purpose: a TIMESTAMP without zone counts from it
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
    "cardinality": "size",
    "array_size": "size",
    "ceiling": "ceil",
    "signum": "sign",
    "regexp": "rlike",
    "regexp_like": "rlike",
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


@dataclass(frozen=True, slots=True, order=True)
class TimestampLiteral:
    """Timestamp in nanoseconds since 1970-01-01 00:00.

    wall: Whether the nanoseconds count local time, whose zone is not known yet. False: they count UTC.
    """

    nanos: int
    wall: bool = False

    def instant(self, zone: str) -> int:
        """Return nanoseconds since the epoch, reading local time in ``zone``."""
        return instant_of(self.nanos, zone) if self.wall else self.nanos

    def reading(self, zone: str) -> int:
        """Return the nanoseconds of local time in ``zone``."""
        return self.nanos if self.wall else wall_of(self.nanos, zone)

    @classmethod
    def of(cls, value: datetime) -> TimestampLiteral:
        """Return the literal of an aware or naive datetime.

        >>> TimestampLiteral.of(datetime(1970, 1, 1, 0, 0, 1))
        TimestampLiteral(nanos=1000000000, wall=True)
        """
        # Subtract without astimezone(): the instant in UTC may lie outside Python's range of years.
        since = value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or timedelta(0))
        return cls(since // timedelta(microseconds=1) * 1000 + int(getattr(value, "nanosecond", 0)), value.tzinfo is None)


@dataclass(frozen=True, slots=True, order=True)
class DateLiteral:
    """Days since 1970-01-01."""

    days: int

    @classmethod
    def of(cls, value: date) -> DateLiteral:
        """Return the literal of a date."""
        return cls(value.toordinal() - 719_163)


@dataclass(frozen=True, slots=True, order=True)
class TimeLiteral:
    """Nanoseconds since midnight."""

    nanos: int

    @classmethod
    def of(cls, value: time) -> TimeLiteral:
        """Return the literal of a time of day."""
        return cls(((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000)


Literal: TypeAlias = bool | int | float | Decimal | str | bytes | DateLiteral | TimeLiteral | TimestampLiteral | None


def literal_from_python(value: object) -> Literal:
    """Convert a Python value to a literal.

    Raises ``InvalidFilter`` for a type that no column has.

    >>> literal_from_python(date(1970, 1, 2)), literal_from_python(2.5)
    (DateLiteral(days=1), 2.5)
    """
    match value:
        case datetime():
            return TimestampLiteral.of(value)
        case date():
            return DateLiteral.of(value)
        case time():
            return TimeLiteral.of(value)
        case bytearray() | memoryview():
            return bytes(value)
        case bool() | int() | float() | Decimal() | str() | bytes() | DateLiteral() | TimeLiteral() | TimestampLiteral() | None:
            return value
    raise InvalidFilter(f"{value!r} of type {type(value).__name__} cannot be used as a literal in a filter")


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A literal inside a computed term."""

    value: Literal


@dataclass(frozen=True, slots=True)
class Computation:
    """A function call, named as in ``sparkexpr.expression.functions``."""

    function: str
    arguments: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Casting:
    """``CAST(argument AS target)``."""

    argument: Term
    target: ColumnType


Term: TypeAlias = ColumnRef | GivenValue | Computation | Casting


@dataclass(frozen=True, slots=True)
class ComputedCondition:
    """A condition computed for each row from a BOOLEAN term."""

    term: Term


@dataclass(frozen=True, slots=True)
class Comparison:
    """``column op value``."""

    column: ColumnRef
    op: Op
    value: Literal


@dataclass(frozen=True, slots=True)
class NullSafeEqual:
    """``column <=> value``: never unknown."""

    column: ColumnRef
    value: Literal


@dataclass(frozen=True, slots=True)
class Membership:
    """``column IN (values)``.

    If ``values`` has a null, the result for values that are not in the list is unknown.
    """

    column: ColumnRef
    values: tuple[Literal, ...] | pa.Array | pa.ChunkedArray


@dataclass(frozen=True, slots=True)
class NullTest:
    """``column IS NULL``."""

    column: ColumnRef


@dataclass(frozen=True, slots=True)
class NanTest:
    """``isnan(column)``: false for null, as in Spark."""

    column: ColumnRef


@dataclass(frozen=True, slots=True)
class Prefix:
    """``column LIKE 'prefix%'``."""

    column: ColumnRef
    prefix: str


@dataclass(frozen=True, slots=True)
class Truth:
    """A BOOLEAN column used as a condition."""

    column: ColumnRef


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, FALSE, or unknown."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Not:
    """NOT ``child``."""

    child: Condition


@dataclass(frozen=True, slots=True)
class And:
    """AND of ``children``."""

    children: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """OR of ``children``."""

    children: tuple[Condition, ...]


Condition: TypeAlias = (
    Comparison | NullSafeEqual | Membership | NullTest | NanTest | Prefix | Truth | ComputedCondition | Constant | Not | And | Or
)
MIRRORED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
"""Equivalent operator after swapping the two sides."""


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
    spark_name = _ALIASES.get(folded, folded)
    match spark_name, arguments:
        case "-", (argument,):
            return Computation("negative", (argument,))
        case "+", (argument,):
            return argument
        case "like", (_, _):
            return Computation(spark_name, (*arguments, GivenValue("\\")))
        case "case", _ if len(arguments) % 2 == 0:
            return Computation(spark_name, (*arguments, GivenValue(None)))
    return Computation(spark_name, arguments)


def _exactly(name: str, arguments: tuple[Term, ...]) -> tuple[Term, ...]:
    arity = _ARITY.get(name, 2)
    if len(arguments) != arity:
        raise InvalidFilter(f"'{name}' takes {count_text(arity, 'argument')}, not {len(arguments)}")
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


def item_of(parent: Term, part: Term, function: str = "item") -> Term:
    """Return the term of a field, an element or a map entry.

    function: ``item`` (from 0), or ``element_at`` and ``try_element_at`` (from 1).

    >>> item_of(ColumnRef("m"), GivenValue("k"))
    ColumnRef(name='m', key='k')
    """
    # Statistics and indexes can answer an entry of a MAP column. For a ROW it is rewritten when the column's type is known.
    if isinstance(parent, ColumnRef) and parent.key is None and isinstance(part, GivenValue) and isinstance(part.value, str):
        return ColumnRef(parent.name, part.value)
    return Computation(function, (parent, part))


def field_of(term: Term, names: Sequence[str]) -> Term:
    """Return the term of a field of a ROW, nested by ``names``.

    >>> field_of(ColumnRef("s"), ["a", "b"])
    Computation(function='item', arguments=(ColumnRef(name='s', key='a'), GivenValue(value='b')))
    """
    for name in names:
        term = item_of(term, GivenValue(name))
    return term
