"""Decoder of single values: to Python, and to JSON text.

Extraction of many rows at once is in ``rows``. Decoding to Python or JSON takes Python calls for each part of each value, as those have no columns.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa

from sparkexpr.errors import CorruptVariant, OutOfRange
from sparkexpr.values.time_zone import UTC as UTC_ZONE
from sparkexpr.values.time_zone import to_wall_clock
from sparkexpr.variant.codes import DECIMAL_WIDTHS, INTEGER_WIDTHS, VERSION, Basic, Primitive

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # a TIMESTAMP_NTZ counts from it
_EPOCH_DAY = _EPOCH.toordinal()
_FIRST_DAY, _LAST_DAY = date.min.toordinal() - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY
_MICROS_PER_DAY = 86_400_000_000
_CONTROL = re.compile(r"\\u00[0-9a-f]{2}")
_FIXED_WIDTHS = {
    Primitive.NULL: 0,
    Primitive.TRUE: 0,
    Primitive.FALSE: 0,
    **INTEGER_WIDTHS,
    Primitive.DOUBLE: 8,
    **{kind: width + 1 for kind, width in DECIMAL_WIDTHS.items()},
    Primitive.DATE: 4,
    Primitive.TIMESTAMP: 8,
    Primitive.TIMESTAMP_NTZ: 8,
    Primitive.FLOAT: 4,
    Primitive.UUID: 16,
}
_Part: TypeAlias = tuple[int, int]
"""Start and end of a value. Its end may lie behind its last byte."""


def decode(value: bytes, metadata: bytes) -> Any:
    r"""Return a value as Python objects.

    Timestamps with a zone are in UTC. Raises ``CorruptVariant`` for damaged bytes, ``OutOfRange`` for a date outside of Python's years 1 to 9999.

    >>> decode(bytes.fromhex("020100000803020002030c0100"), b"\x01\x01\x00\x01a")
    {'a': [1, None]}
    """
    keys = key_names(metadata)

    def with_names(start: int, end: int) -> Any:
        basic = value[start] & 3 if start < end else None
        if basic == Basic.OBJECT:
            members = {}
            for name, part in fields(value, start, end, keys):
                members[name] = with_names(*part)  # a comprehension would be a second frame
            return members
        if basic == Basic.ARRAY:
            listed = []
            for part in elements(value, start, end):
                listed.append(with_names(*part))  # noqa: PERF401  # as above
            return listed
        return _python(primitive(value, start, end))

    try:
        return with_names(0, len(value))
    except RecursionError:
        raise CorruptVariant("the value nests too deeply to be decoded; read a part of it by variant_get()") from None


def to_json(value: bytes, metadata: bytes, zone: str = UTC_ZONE, start: int = 0) -> str:
    r"""Return a value as JSON text, as Spark's ``to_json`` does.

    Objects have their keys in order, and no spaces. Timestamps are texts; those with a zone are shown in ``zone``.
    Raises ``CorruptVariant`` for damaged bytes.

    >>> to_json(bytes.fromhex("020100000803020002030c0100"), b"\x01\x01\x00\x01a")
    '{"a":[1,null]}'
    """
    keys = key_names(metadata)
    parts: list[str] = []

    def write(start: int, end: int) -> None:
        basic = value[start] & 3 if start < end else None
        if basic == Basic.OBJECT:
            parts.append("{")
            for index, (name, part) in enumerate(fields(value, start, end, keys)):
                parts.append(f"{',' if index else ''}{_quoted(name)}:")
                write(*part)
            parts.append("}")
        elif basic == Basic.ARRAY:
            parts.append("[")
            for index, part in enumerate(elements(value, start, end)):
                if index:
                    parts.append(",")
                write(*part)
            parts.append("]")
        else:
            parts.append(_json(*primitive(value, start, end), zone))

    try:
        write(start, len(value))
    except RecursionError:
        raise CorruptVariant("the value nests too deeply for a JSON text; read a part of it by variant_get()") from None
    return "".join(parts)


@lru_cache(maxsize=256)
def key_names(metadata: bytes) -> tuple[str, ...]:
    r"""Return the keys in metadata, by their numbers.

    Raises ``CorruptVariant``.

    >>> key_names(b"\x01\x02\x00\x01\x03abc")
    ('a', 'bc')
    """
    if not metadata or metadata[0] & 0xF != VERSION:
        raise CorruptVariant(f"the metadata begins with {metadata[:1].hex() or 'nothing'}, which is not a known version")
    width = (metadata[0] >> 6) + 1
    count = unsigned(metadata, 1, width, len(metadata))
    start = 1 + (count + 2) * width
    if start > len(metadata):
        raise CorruptVariant(f"the metadata names {count} keys, but has {len(metadata)} bytes")
    ends = [unsigned(metadata, 1 + (index + 1) * width, width, len(metadata)) for index in range(count + 1)]
    if any(low > high for low, high in itertools.pairwise(ends)) or start + ends[-1] > len(metadata):
        raise CorruptVariant("the metadata has keys outside of its bytes")
    try:
        return tuple([metadata[start + low : start + high].decode() for low, high in itertools.pairwise(ends)])
    except UnicodeDecodeError as error:
        raise CorruptVariant(f"a key is not valid UTF-8: {error}") from error


def unsigned(data: bytes, position: int, width: int, end: int) -> int:
    """Return the little-endian number at a position."""
    if position + width > end:
        raise CorruptVariant(f"the value ends before the number at byte {position}")
    return int.from_bytes(data[position : position + width], "little")


def _count(value: bytes, start: int, end: int, large_bit: int) -> int:
    return unsigned(value, start + 1, 4 if value[start] >> 2 & 1 << large_bit else 1, end)


def fields(value: bytes, start: int, end: int, keys: tuple[str, ...]) -> Iterator[tuple[str, _Part]]:
    """Yield name and part of each field of an object."""
    header = value[start] >> 2
    count, width, id_width = _count(value, start, end, 4), (header & 3) + 1, (header >> 2 & 3) + 1
    ids = start + 1 + (4 if header & 16 else 1)
    offsets = ids + count * id_width
    data = offsets + (count + 1) * width
    for index in range(count):
        number = unsigned(value, ids + index * id_width, id_width, end)
        if number >= len(keys):
            raise CorruptVariant(f"an object has key number {number}, but the metadata has {len(keys)} keys")
        yield keys[number], (data + unsigned(value, offsets + index * width, width, end), end)


def elements(value: bytes, start: int, end: int) -> Iterator[_Part]:
    """Yield the part of each element of an array."""
    header = value[start] >> 2
    count, width = _count(value, start, end, 2), (header & 3) + 1
    offsets = start + 1 + (4 if header & 4 else 1)
    data = offsets + (count + 1) * width
    for index in range(count):
        yield data + unsigned(value, offsets + index * width, width, end), end


def value_end(value: bytes, start: int, end: int) -> int:
    """Return the position behind the value at ``start``.

    Raises ``CorruptVariant``.
    """
    basic = value[start] & 3 if start < end else None
    if basic not in {Basic.OBJECT, Basic.ARRAY}:
        _, begin, size = primitive_place(value, start, end)
        return begin + size
    header, is_object = value[start] >> 2, basic == Basic.OBJECT
    count, width = _count(value, start, end, 4 if is_object else 2), (header & 3) + 1
    ids = count * ((header >> 2 & 3) + 1) if is_object else 0
    last = start + 1 + (4 if header & (16 if is_object else 4) else 1) + ids + count * width
    position = last + width + unsigned(value, last, width, end)
    if position > end:
        raise CorruptVariant(f"the value has {end} bytes, but a part ends at byte {position}")
    return position


def primitive(value: bytes, start: int, end: int) -> tuple[Primitive, bytes]:
    """Return the type and the content of a scalar."""
    kind, begin, size = primitive_place(value, start, end)
    return kind, value[begin : begin + size]


def primitive_place(value: bytes, start: int, end: int) -> tuple[Primitive, int, int]:
    """Return the type of a scalar, and start and size of its content.

    Raises ``CorruptVariant``.
    """
    if start >= end:
        raise CorruptVariant(f"the value has {end} bytes, but a part begins at byte {start}")
    header = value[start]
    if header & 3 == Basic.SHORT_STRING:
        kind, start, size = Primitive.STRING, start + 1, header >> 2
    elif (code := header >> 2) in _FIXED_WIDTHS:
        kind, start, size = Primitive(code), start + 1, _FIXED_WIDTHS[Primitive(code)]
    elif code in {Primitive.BINARY, Primitive.STRING}:
        kind, start, size = Primitive(code), start + 5, unsigned(value, start + 1, 4, end)
    else:
        raise CorruptVariant(f"a value has type {code}, which Paimon does not know")
    if start + size > end:
        raise CorruptVariant(f"the value has {end} bytes, but a part of {size} bytes begins at byte {start}")
    return kind, start, size


def _python(encoded: tuple[Primitive, bytes]) -> Any:
    kind, content = encoded
    match kind:
        case Primitive.DATE:
            return _EPOCH.date() + timedelta(_within_years(struct.unpack("<i", content)[0], "date", 1))
        case Primitive.TIMESTAMP | Primitive.TIMESTAMP_NTZ:
            moment = _EPOCH + timedelta(microseconds=_within_years(struct.unpack("<q", content)[0], "timestamp", _MICROS_PER_DAY))
            return moment.replace(tzinfo=UTC) if kind is Primitive.TIMESTAMP else moment
    return scalar(kind, content)


def _within_years(number: int, what: str, per_day: int) -> int:
    if not _FIRST_DAY * per_day <= number < (_LAST_DAY + 1) * per_day:
        raise OutOfRange(f"a {what} of a VARIANT is outside of Python's years 1 to 9999; read it as JSON text or by variant_get()")
    return number


def scalar(kind: Primitive, content: bytes) -> Any:
    """Return a scalar. Dates are days, timestamps microseconds."""
    match kind:
        case Primitive.NULL:
            return None
        case Primitive.TRUE | Primitive.FALSE:
            return kind is Primitive.TRUE
        case Primitive.DOUBLE:
            return struct.unpack("<d", content)[0]
        case Primitive.FLOAT:
            return struct.unpack("<f", content)[0]
        case Primitive.DECIMAL4 | Primitive.DECIMAL8 | Primitive.DECIMAL16:
            number = int.from_bytes(content[1:], "little", signed=True)
            return Decimal((number < 0, tuple(map(int, str(abs(number)))), -content[0]))
        case Primitive.BINARY:
            return content
        case Primitive.STRING:
            try:
                return content.decode()
            except UnicodeDecodeError as error:
                raise CorruptVariant(f"a text is not valid UTF-8: {error}") from error
        case Primitive.UUID:
            return UUID(bytes=content)
    return int.from_bytes(content, "little", signed=True)


def _json(kind: Primitive, content: bytes, zone: str) -> str:
    decoded = scalar(kind, content)
    match kind:
        case Primitive.NULL:
            return "null"
        case Primitive.TRUE | Primitive.FALSE:
            return "true" if decoded else "false"
        case Primitive.STRING:
            return _quoted(decoded)
        case Primitive.DOUBLE | Primitive.FLOAT:
            shown = float_text(decoded, single=kind is Primitive.FLOAT)
            return f'"{shown}"' if shown[-1] in "Ny" else shown
        case Primitive.DECIMAL4 | Primitive.DECIMAL8 | Primitive.DECIMAL16:
            return decimal_text(decoded)
        case Primitive.BINARY:
            return f'"{base64.b64encode(content).decode()}"'
        case Primitive.DATE:
            return f'"{date_text(decoded)}"'
        case Primitive.TIMESTAMP_NTZ:
            return f'"{clock_text(decoded)}"'
        case Primitive.TIMESTAMP:
            wall = wall_micros(decoded, zone)
            minutes = abs(wall - decoded) // 60_000_000
            return f'"{clock_text(wall)}{"-" if wall < decoded else "+"}{minutes // 60:02}:{minutes % 60:02}"'
    return f'"{decoded}"' if kind is Primitive.UUID else str(decoded)


def _quoted(text: str) -> str:
    return _CONTROL.sub(lambda escape: escape[0][:2] + escape[0][2:].upper(), json.dumps(text, ensure_ascii=False))


def float_text(number: float, *, single: bool = False) -> str:
    """Return the shortest text of a float, in Java's notation.

    >>> float_text(0.1), float_text(1e21), float_text(-1e-5), float_text(0.1, single=True)
    ('0.1', '1.0E21', '-1.0E-5', '0.1')
    """
    if number != number or number in {float("inf"), float("-inf")}:  # noqa: PLR0124  # NaN
        return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"  # noqa: PLR0124  # as above
    shown = str(np.float32(number)) if single else repr(float(number))
    # Java shows two digits at least. They tell more only of the smallest numbers.
    two = f"{float(number):.1e}"
    if len(shown.partition("e")[0].lstrip("-")) == 1 and (np.float32(two) if single else float(two)) == number:
        shown = two
    sign, digits, exponent = Decimal(shown).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent)  # position of the decimal point after the first digit
    minus = "-" if sign else ""
    if number == 0:
        return f"{minus}0.0"
    if -3 < point <= 7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        return f"{minus}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def decimal_text(number: Decimal) -> str:
    """Return a DECIMAL without zeros at its end, and without an exponent.

    >>> decimal_text(Decimal("1.500")), decimal_text(Decimal("100"))
    ('1.5', '100')
    """
    shown = format(number, "f")
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return "0" if shown in {"-0", ""} else shown


def date_text(days: int) -> str:
    """Return a date in ISO form.

    >>> date_text(19723), date_text(2932897), date_text(-719529)
    ('2024-01-01', '+10000-01-01', '-0001-12-31')
    """
    if _FIRST_DAY <= days <= _LAST_DAY:
        return (_EPOCH.date() + timedelta(days)).isoformat()
    cycles, rest = divmod(days + 719_468, 146_097)  # days of 400 years, from 0000-03-01
    year, month, day = (_EPOCH.date().replace(year=2000, month=3) + timedelta(rest)).timetuple()[:3]
    year += 400 * cycles - 2000
    return f"{'-' if year < 0 else '+' if year > 9999 else ''}{abs(year):04}-{month:02}-{day:02}"


def clock_text(micros: int) -> str:
    """Return date and time of microseconds since 1970.

    >>> clock_text(1_500_000), clock_text(-1)
    ('1970-01-01 00:00:01.5', '1969-12-31 23:59:59.999999')
    """
    days, rest = divmod(micros, _MICROS_PER_DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    shown = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{date_text(days)} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{shown}"


def wall_micros(instant: int, zone: str) -> int:
    """Return the wall clock of an instant in a zone, in microseconds since 1970."""
    if zone == UTC_ZONE:
        return instant
    return int(to_wall_clock(pa.array([instant], pa.timestamp("us", "UTC")), zone)[0].value)
