"""Filters before they know a table: what SQL text, a Spark Column and an Arrow expression have in common.

A filter language is translated to these nodes; ``bind.bind`` then resolves names, converts literals to the columns'
types and pushes NOT to the leaves. Literals are Python values, except dates and times: Python's end in the year 9999 and
at microseconds, Paimon's do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

from fileindex.base.column_type import ColumnType
from fileindex.base.errors import InvalidFilter
from fileindex.base.time_zone import instant_of, wall_of
from fileindex.predicate.tree import ColumnRef, Op

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # naive on purpose: a TIMESTAMP without zone counts from it


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """Nanoseconds since 1970-01-01 00:00: of UTC, or with ``wall`` of a clock whose zone is not yet known."""

    nanos: int
    wall: bool = False

    def instant(self, zone: str) -> int:
        """Nanoseconds since the epoch; a wall clock is read in ``zone``."""
        return instant_of(self.nanos, zone) if self.wall else self.nanos

    def reading(self, zone: str) -> int:
        """Nanoseconds that a clock in ``zone`` shows."""
        return self.nanos if self.wall else wall_of(self.nanos, zone)

    @classmethod
    def of(cls, value: datetime) -> Moment:
        """The moment of a datetime, aware or naive.

        >>> Moment.of(datetime(1970, 1, 1, 0, 0, 1))
        Moment(nanos=1000000000, wall=True)
        """
        since = value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or timedelta(0))  # an instant may lie beyond Python's years
        return cls(since // timedelta(microseconds=1) * 1000 + int(getattr(value, "nanosecond", 0)), value.tzinfo is None)


@dataclass(frozen=True, slots=True, order=True)
class Day:
    """Days since 1970-01-01."""

    days: int

    @classmethod
    def of(cls, value: date) -> Day:
        """The day of a date."""
        return cls(value.toordinal() - 719_163)


@dataclass(frozen=True, slots=True, order=True)
class Clock:
    """Nanoseconds since midnight."""

    nanos: int

    @classmethod
    def of(cls, value: time) -> Clock:
        """The reading of a time of day."""
        return cls(((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000)


Literal: TypeAlias = bool | int | float | Decimal | str | bytes | Day | Clock | Moment | None


def literal_from_python(value: object) -> Literal:
    """A Python value as a literal. Raises ``InvalidFilter`` for a type that no column has.

    >>> literal_from_python(date(1970, 1, 2)), literal_from_python(2.5)
    (Day(days=1), 2.5)
    """
    match value:
        case datetime():
            return Moment.of(value)
        case date():
            return Day.of(value)
        case time():
            return Clock.of(value)
        case bytearray() | memoryview():
            return bytes(value)
        case bool() | int() | float() | Decimal() | str() | bytes() | Day() | Clock() | Moment() | None:
            return value
    raise InvalidFilter(f"{value!r} of type {type(value).__name__} is no literal of a filter")


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A literal inside something that is computed."""

    value: Literal


@dataclass(frozen=True, slots=True)
class Computation:
    """A function, by the name that ``fileindex.expression.functions`` has for it, of what may be computed, too."""

    function: str
    arguments: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Casting:
    """``CAST(argument AS wanted)``."""

    argument: Term
    wanted: ColumnType


Term: TypeAlias = ColumnRef | GivenValue | Computation | Casting


@dataclass(frozen=True, slots=True)
class Holds:
    """A condition that is computed for each row: true where ``term``, a BOOLEAN, is."""

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
    """``column IN (values)``, literals or an Arrow array; a null among them makes what is not found unknown."""

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
    """A BOOLEAN column that stands for itself."""

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
class All:
    """AND of ``children``."""

    children: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """OR of ``children``."""

    children: tuple[Condition, ...]


Condition: TypeAlias = Comparison | NullSafeEqual | Membership | NullTest | NanTest | Prefix | Truth | Holds | Constant | Not | All | Any

MIRRORED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
"""The operator that says the same with its sides swapped."""


__all__ = [
    "MIRRORED",
    "All",
    "Any",
    "Casting",
    "Clock",
    "Comparison",
    "Computation",
    "Condition",
    "Constant",
    "Day",
    "GivenValue",
    "Holds",
    "Literal",
    "Membership",
    "Moment",
    "NanTest",
    "Not",
    "NullSafeEqual",
    "NullTest",
    "Prefix",
    "Term",
    "Truth",
    "literal_from_python",
]
