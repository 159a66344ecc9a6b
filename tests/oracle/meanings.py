"""What a given value means in a column of another type, in plain Python."""

from __future__ import annotations

import math
import random
import re
import struct
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa

MUST, MAY, NEVER = "must", "may", "never"
"""A value must be stored; it is stored so or refused; it cannot be stored."""
_INTS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_DECIMALS = {"DECIMAL(5, 2)": (5, 2), "DECIMAL(38, 10)": (38, 10)}
_FLOATS = ("FLOAT", "DOUBLE")
_NUMBERS = (*_INTS, *_DECIMALS, *_FLOATS)
_TEXTS = {"STRING": 2**31, "VARCHAR(3)": 3}
_TIMES = {"TIMESTAMP(3)": 1000, "TIMESTAMP(6)": 1}

ATOMS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "BOOLEAN": (pa.bool_(), [True, False]),
    **{name: (pa.type_for_alias(f"int{size}"), [0, 1, -1, 2 ** (size - 1) - 1, -(2 ** (size - 1)), 100]) for name, size in _INTS.items()},
    "FLOAT": (pa.float32(), [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 16777216.0, 0.10000000149011612]),
    "DOUBLE": (pa.float64(), [0.0, -0.0, 1.5, math.nan, math.inf, 0.1, 2.0**53, 1e300, 3.0]),
    "DECIMAL(5, 2)": (pa.decimal128(5, 2), [Decimal("0.00"), Decimal("1.25"), Decimal("-999.99"), Decimal("100.00"), Decimal("-0.05")]),
    "DECIMAL(38, 10)": (
        pa.decimal128(38, 10),
        [Decimal("0E-10"), Decimal("1.2500000000"), Decimal("9" * 28 + ".9999999999"), Decimal("7.0000000000")],
    ),
    "STRING": (pa.string(), ["", "a", "ä😀", "a\0", "long text", "abc"]),
    "VARCHAR(3)": (pa.string(), ["", "abc", "ä😀x", "a\0"]),
    "BYTES": (pa.binary(), [b"", b"a", b"\xff\0", b"abc"]),
    "DATE": (pa.date32(), [date(1970, 1, 1), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)]),
    "TIMESTAMP(3)": (pa.timestamp("ms"), [datetime(1970, 1, 1), datetime(2024, 2, 29, 1, 2, 3, 999000), datetime(1969, 12, 31, 23)]),  # noqa: DTZ001
    "TIMESTAMP(6)": (pa.timestamp("us"), [datetime(1970, 1, 1), datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(1, 1, 1)]),  # noqa: DTZ001
}
"""Arrow type and some values of each type without parts."""
_ODD_TEXTS = ["", "abc", "1.255", "-0.005", "1e2", "128", "99999", "nan", "true", "No", "2024-02-30", "2024-02-29", "0x1"]


@dataclass(frozen=True)
class Type:
    """A column type. ``name`` is that of an atom, or ARRAY, MAP (with STRING keys) or ROW (with fields f0, f1)."""

    name: str
    parts: tuple[Type, ...] = ()

    @property
    def ddl(self) -> str:
        parts = [part.ddl for part in self.parts]
        match self.name:
            case "ARRAY":
                return f"ARRAY<{parts[0]}>"
            case "MAP":
                return f"MAP<STRING, {parts[0]}>"
            case "ROW":
                return f"ROW<{', '.join(f'f{at} {part}' for at, part in enumerate(parts))}>"
        return self.name

    @property
    def arrow(self) -> pa.DataType:
        parts = [part.arrow for part in self.parts]
        match self.name:
            case "ARRAY":
                return pa.list_(parts[0])
            case "MAP":
                return pa.map_(pa.string(), parts[0])
            case "ROW":
                return pa.struct([(f"f{at}", part) for at, part in enumerate(parts)])
        return ATOMS[self.name][0]

    def has(self, name: str) -> bool:
        return self.name == name or any(part.has(name) for part in self.parts)


def values_of(draw: random.Random, given: Type, target: Type) -> list[Any]:
    """Some values of ``given``; texts are often those of values of ``target``."""
    if not given.parts:
        texts = (
            [text_of(value) for value in ATOMS[target.name][1]] + _ODD_TEXTS if given.name == "STRING" and target.name != "STRING" else []
        )
        return [None, *ATOMS[given.name][1], *texts]
    pools = [values_of(draw, part, inner) for part, inner in zip(given.parts, target.parts, strict=True)]

    def one() -> Any:
        match given.name:
            case "ARRAY":
                return [draw.choice(pools[0]) for _ in range(draw.randrange(3))]
            case "MAP":
                return [(key, draw.choice(pools[0])) for key in draw.sample(["k", "", "ä"], draw.randrange(3))]
        return {f"f{at}": draw.choice(pool) for at, pool in enumerate(pools)}

    return [None, *(one() for _ in range(4))]


def text_of(value: Any) -> str:
    """The usual text of a value."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
        case bytes():
            return value.decode(errors="replace")
        case Decimal():
            return format(value, "f")
    return str(value)


def means(value: Any, given: Type, target: Type, policy: Any) -> tuple[str, Any]:
    """Return how sure it is that ``value`` is stored, and as what."""
    if value is None:
        return MUST if given == target else MAY, None
    if not target.parts:
        sure, stored = _atom(value, given.name, target.name, policy.cast)
        if policy.widens and given != target:  # the column may get the type of the values
            return MAY, _widest(value) if sure == NEVER else stored
        return (MAY, None) if sure == NEVER and policy.cast and policy.errors == "null" else (sure, stored)
    inner = target.parts
    match target.name:
        case "ARRAY":
            found = [means(item, given.parts[0], inner[0], policy) for item in value]
            stored = [part for _, part in found]
        case "MAP":
            found = [means(item, given.parts[0], inner[0], policy) for _, item in value]
            stored = [(key, part) for (key, _), (_, part) in zip(value, found, strict=True)]
        case _:
            found = [means(value[f"f{at}"], given.parts[at], part, policy) for at, part in enumerate(inner)]
            stored = {f"f{at}": part for at, (_, part) in enumerate(found)}
    return _weakest([MUST if given == target else MAY, *(sure for sure, _ in found)]), stored


def _weakest(sure: list[str]) -> str:
    return NEVER if NEVER in sure else MAY if MAY in sure else MUST


def _atom(value: Any, given: str, target: str, cast: bool | str) -> tuple[str, Any]:
    if given == target:
        return MUST, value
    if target in _TEXTS:
        if not isinstance(value, str) and not cast:
            return NEVER, None
        text = text_of(value) if not isinstance(value, str) else value
        if isinstance(value, float):  # Arrow's texts of floats: 0, 1e+300
            text = pa.scalar(value, ATOMS[given][0]).cast(pa.string()).as_py()
        return (MUST if isinstance(value, str) else MAY, text) if len(text) <= _TEXTS[target] else (NEVER, None)
    if isinstance(value, str):
        return _parsed(value, target, cast)
    if target == "BOOLEAN":
        return (MAY, bool(value)) if cast and isinstance(value, int | float | Decimal) else (NEVER, None)
    if isinstance(value, bool):
        return _number(int(value), target, cast) if cast and target in _NUMBERS else (NEVER, None)
    if isinstance(value, date) and (target in _TIMES or target == "DATE"):
        return _timed(value, target, cast)
    if isinstance(value, int | float | Decimal) and target in _NUMBERS:
        sure, stored = _number(value, target, cast)
        return (MUST if sure == MAY and given in _INTS and target in _INTS else sure), stored
    return NEVER, None


def _number(value: Any, target: str, cast: bool | str) -> tuple[str, Any]:
    """A number is stored if it equals one of the type. A cast takes the nearest FLOAT, ``round`` the nearest DECIMAL or integer."""
    if isinstance(value, float) and not math.isfinite(value):
        return (MAY, value) if target in _FLOATS else (NEVER, None)
    if target in _FLOATS:
        try:
            stored = float(value) if target == "DOUBLE" else struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            return NEVER, None
        return (MAY, stored) if cast or Fraction(stored) == Fraction(value) else (NEVER, None)
    digits, scale = _DECIMALS.get(target, (0, 0))
    with localcontext() as context:
        context.prec = 400
        exact = Decimal(value)
        shown = Decimal(repr(value)) if cast and isinstance(value, float) else exact
        stored = shown.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
        fits = abs(stored) < Decimal(10) ** (digits - scale)
    if stored != shown and cast != "round":
        return NEVER, None
    if target in _INTS:
        most = 2 ** (_INTS[target] - 1)
        return (MAY, int(stored)) if -most <= stored < most else (NEVER, None)
    return (MAY, stored) if fits else (NEVER, None)


def _parsed(text: str, target: str, cast: bool | str) -> tuple[str, Any]:
    """What a text says, which only a cast reads."""
    if target == "BYTES":
        return MAY, text.encode()
    if not cast:
        return NEVER, None
    word = text.strip()
    if target == "BOOLEAN":
        truth = {**dict.fromkeys(["true", "t", "yes", "y", "1"], True), **dict.fromkeys(["false", "f", "no", "n", "0"], False)}
        return (MAY, truth[word.lower()]) if word.lower() in truth else (NEVER, None)
    try:
        if target in _FLOATS:
            number = float(word)
            return _number(number, target, cast) if math.isfinite(number) else (MAY, number)
        if target in _NUMBERS:
            return _number(Decimal(word), target, cast)
        if re.match(r"\d{4}-", word) is None:
            return NEVER, None
        return _timed(datetime.fromisoformat(word) if len(word) > 10 else date.fromisoformat(word), target, cast)
    except (ValueError, InvalidOperation):
        return NEVER, None


def _widest(value: Any) -> Any:
    """The value in a column that got a wider type; of a text its number."""
    try:
        return (
            Decimal(value) if isinstance(value, str) and Decimal(value).is_finite() else float(value) if isinstance(value, str) else value
        )
    except (ValueError, InvalidOperation):
        return value


def _timed(value: date, target: str, cast: bool | str) -> tuple[str, Any]:
    if target == "DATE":
        if isinstance(value, datetime):
            return (MAY, value.date()) if value.time() == time() or cast == "round" else (NEVER, None)
        return MAY, value
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    rest = moment.microsecond % _TIMES[target]
    if rest and cast != "round":
        return NEVER, None
    return MAY, moment.replace(microsecond=moment.microsecond - rest)
