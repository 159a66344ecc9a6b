"""Encoder of Python values and JSON texts.

Numbers take the narrowest form, as in Paimon and Spark: a number of a JSON text is an integer, a DECIMAL of up to 38 digits, or a DOUBLE.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa

from sparkexpr.errors import CorruptVariant, InvalidArgument
from sparkexpr.variant.codes import (
    DECIMAL_DIGITS,
    DECIMAL_WIDTHS,
    INTEGER_WIDTHS,
    MOST_BYTES,
    MOST_DIGITS,
    MOST_NESTED,
    SHORT_TEXT,
    VERSION,
    Basic,
    Primitive,
    primitive_header,
)
from sparkexpr.variant.decoding import elements, fields, key_names, primitive_place

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # a TIMESTAMP_NTZ counts from it
_EPOCH_UTC = _EPOCH.replace(tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MICRO = _EPOCH.resolution
_DIGITS = frozenset("-.0123456789")


class Encoded(NamedTuple):
    """Both binaries of a value."""

    value: bytes
    metadata: bytes


class Keys:
    """Keys of the objects of one value, numbered in the order of their first use."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def id_of(self, key: str) -> int:
        """Return the number of a key."""
        return self._ids.setdefault(key, len(self._ids))

    def metadata(self) -> bytes:
        """Return the encoded metadata.

        Raises ``InvalidArgument`` for keys of more than 16 MiB.
        """
        names = [_utf8(name) for name in self._ids]
        size = sum(map(len, names))
        width = _width(max(size, len(names)))
        ends = accumulate(map(len, names), initial=0)
        numbers = b"".join([number.to_bytes(width, "little") for number in (len(names), *ends)])
        encoded = bytes([VERSION | (width - 1) << 6]) + numbers + b"".join(names)
        return _checked(encoded, "the keys of its objects take")


def encode(value: object) -> Encoded:
    r"""Encode a Python value.

    Takes None, bool, int, float, Decimal, str, bytes, date, datetime, UUID, lists, and mappings with texts as keys, nested. A naive datetime is a
    TIMESTAMP_NTZ, an aware one a TIMESTAMP. Raises ``InvalidArgument`` for other values, and for values that the encoding cannot hold.

    >>> encode({"a": [1, None]}).value.hex(), encode({"a": [1, None]}).metadata
    ('020100000803020002030c0100', b'\x01\x01\x00\x01a')
    """
    keys = Keys()
    encoded = _checked(_encode(value, keys, 0), "it takes")
    return Encoded(encoded, keys.metadata())


def encode_json(text: str | bytes) -> Encoded:
    """Encode a JSON text.

    As in Spark, the first JSON value counts, and what follows it does not: ``{}{}`` is ``{}``.
    Raises ``InvalidArgument`` for invalid JSON, and for an object with the same key twice.

    >>> encode_json('{"price": 1.50}') == encode({"price": Decimal("1.50")})
    True
    """
    try:
        parsed = _first_value(text if isinstance(text, str) else text.decode(json.detect_encoding(text)))
    except (ValueError, RecursionError) as error:
        shown = text if isinstance(text, str) else text.decode(errors="replace")
        raise InvalidArgument(f"'{shown[:60]}' cannot be read as JSON: {error}") from error
    return encode(parsed)


def _first_value(text: str) -> Any:
    trimmed = text.lstrip(_SPACES)
    parsed, end = _DECODER.raw_decode(trimmed)
    if trimmed[end : end + 1] not in {"", *_SPACES} and trimmed[0] not in _DELIMITED:
        raise ValueError(f"a space is missing at position {len(text) - len(trimmed) + end}")
    return parsed


_SPACES = " \t\r\n"
_DELIMITED = '"[{'
"""First letters of values whose end needs no space behind it."""


def _integer(text: str) -> int | Decimal | float:
    value = int(text) if len(text) <= 20 else None
    return value if value is not None and -(1 << 63) <= value < 1 << 63 else _number(text)


def _number(text: str) -> Decimal | float:
    """Return a number with a decimal form as a DECIMAL, if it fits."""
    if _DIGITS.issuperset(text):
        exact = Decimal(text)
        _, digits, exponent = exact.as_tuple()
        if isinstance(exponent, int) and -exponent <= MOST_DIGITS and len(str(int("".join(map(str, digits))))) <= MOST_DIGITS:
            return exact
    return float(text)


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number in JSON")


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value_by_key = dict(pairs)
    if len(value_by_key) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object has the key {next(name for name in names if names.count(name) > 1)!r} twice")
    return value_by_key


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=_refuse_constant, object_pairs_hook=_distinct_keys)


def reencode(value: bytes, metadata: bytes) -> Encoded:
    """Return the value at the beginning of ``value``, with only its own keys.

    Raises ``CorruptVariant``.

    >>> reencode(encode(7).value + b"more", encode({"a": 1}).metadata) == encode(7)
    True
    """
    keys = Keys()
    try:
        return Encoded(copy_value(value, 0, len(value), key_names(metadata), keys), keys.metadata())
    except RecursionError:
        raise CorruptVariant("the value nests too deeply to be copied; read a deeper part of it by variant_get()") from None


def copy_value(value: bytes, start: int, end: int, names: tuple[str, ...], keys: Keys) -> bytes:
    """Return the encoded value at ``start`` with numbers of ``keys``.

    names: Keys of the metadata of ``value``. Raises ``CorruptVariant``.
    """
    basic = value[start] & 3 if start < end else None
    if basic == Basic.OBJECT:
        members = {}
        for name, part in fields(value, start, end, names):  # comprehensions would be second frames
            members[name] = keys.id_of(name), copy_value(value, *part, names, keys)
        return encode_object(members)
    if basic == Basic.ARRAY:
        parts = []
        for part in elements(value, start, end):
            parts.append(copy_value(value, *part, names, keys))  # noqa: PERF401  # as above
        return encode_array(parts)
    _, begin, size = primitive_place(value, start, end)
    return value[start : begin + size]


def _encode(value: object, keys: Keys, depth: int) -> bytes:
    """Encode one value. Recursive: one Python frame a level."""
    if depth > MOST_NESTED:
        raise InvalidArgument(f"a VARIANT nests deeper than {MOST_NESTED} levels; store the inner part as a text")
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if isinstance(value, str):
        return encode_text(_utf8(value))
    if isinstance(value, dict | Mapping):
        members = {}
        for key, inner in value.items():
            if not isinstance(key, str):
                raise InvalidArgument(f"a VARIANT has objects with texts as keys, not {key!r} of type {type(key).__name__}")
            members[key] = keys.id_of(key), _encode(inner, keys, depth + 1)
        return encode_object(members)
    if isinstance(value, list | tuple | np.ndarray):
        parts = []
        for inner in value:  # a comprehension would be a second frame
            parts.append(_encode(inner, keys, depth + 1))  # noqa: PERF401  # as above
        return encode_array(parts)
    return _primitive(value)


def _primitive(value: object) -> bytes:
    match value:
        case None:
            return primitive_header(Primitive.NULL)
        case bool() | np.bool_():
            return primitive_header(Primitive.TRUE if value else Primitive.FALSE)
        case int() | np.integer():
            return _encode_integer(int(value))
        case np.floating() if value.itemsize <= 4:
            return primitive_header(Primitive.FLOAT) + struct.pack("<f", value)
        case float():
            return primitive_header(Primitive.DOUBLE) + struct.pack("<d", value)
        case Decimal():
            return _encode_decimal(value)
        case bytes() | bytearray() | memoryview():
            return primitive_header(Primitive.BINARY) + len(value).to_bytes(4, "little") + bytes(value)
        case datetime():
            return _encode_datetime(value)
        case date():
            return primitive_header(Primitive.DATE) + struct.pack("<i", value.toordinal() - _EPOCH_DAY)
        case UUID():
            return primitive_header(Primitive.UUID) + value.bytes
    raise InvalidArgument(
        f"{value!r:.60} of type {type(value).__name__} cannot be stored in a VARIANT; pass None, bool, int, float, Decimal, str, bytes, date, datetime, "
        "UUID, a list or a dict"
    )


def _encode_integer(value: int) -> bytes:
    for kind, width in INTEGER_WIDTHS.items():
        if -(1 << (8 * width - 1)) <= value < 1 << (8 * width - 1):
            return primitive_header(kind) + value.to_bytes(width, "little", signed=True)
    return _encode_decimal(Decimal(value))


def _encode_decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidArgument(f"{value} is not a DECIMAL that a VARIANT can store; pass a float")
    leading_digits = digits[: MOST_DIGITS + 1]  # one digit too many is refused below; Python reads no integer of more than 4300
    number = int("".join(map(str, leading_digits))) * 10 ** min(max(exponent, 0), MOST_DIGITS + 1)
    scale = max(-exponent, 0)
    for kind, digit_limit in DECIMAL_DIGITS.items():
        if number < 10**digit_limit and scale <= digit_limit:
            unscaled: int = -number if sign else number
            return primitive_header(kind) + bytes([scale]) + unscaled.to_bytes(DECIMAL_WIDTHS[kind], "little", signed=True)
    raise InvalidArgument(f"{value!s:.60} has more than {MOST_DIGITS} digits, the limit of a DECIMAL in a VARIANT; pass a float or a text")


def _encode_datetime(value: datetime) -> bytes:
    if value != value:  # noqa: PLR0124  # pandas' NaT
        raise InvalidArgument("NaT is not a timestamp; pass None")
    if getattr(value, "nanosecond", 0):
        raise InvalidArgument(f"{value!r} has nanoseconds, and a VARIANT stores microseconds; round it")
    zoned = value.utcoffset() is not None
    since: timedelta = (value - _EPOCH_UTC) if zoned else (value.replace(tzinfo=None) - _EPOCH)
    return primitive_header(Primitive.TIMESTAMP if zoned else Primitive.TIMESTAMP_NTZ) + struct.pack("<q", since // _MICRO)


def encode_text(text: bytes) -> bytes:
    """Encode a text in UTF-8."""
    if len(text) <= SHORT_TEXT:
        return bytes([len(text) << 2 | Basic.SHORT_STRING]) + text
    return primitive_header(Primitive.STRING) + len(text).to_bytes(4, "little") + text


def encode_array(parts: Sequence[bytes]) -> bytes:
    """Return an array of encoded values."""
    offsets, size = [0], 0
    for part in parts:
        size += len(part)
        offsets.append(size)
    wide = len(parts) > 0xFF
    width = _width(size)
    header = bytes([(wide << 4) | (width - 1) << 2 | Basic.ARRAY]) + len(parts).to_bytes(4 if wide else 1, "little")
    return b"".join([header, *[offset.to_bytes(width, "little") for offset in offsets], *parts])


def encode_object(parts: Mapping[str, tuple[int, bytes]]) -> bytes:
    """Return an object of encoded values by key.

    parts: The number of the key in the metadata, and the encoded value.
    """
    offsets, size = {}, 0
    for key, (_, part) in parts.items():
        offsets[key] = size
        size += len(part)
    ordered = sorted(parts, key=_utf8)
    wide, width = len(parts) > 0xFF, _width(size)
    id_width = _width(max([number for number, _ in parts.values()], default=0))
    header = bytes([(wide << 6) | (id_width - 1) << 4 | (width - 1) << 2 | Basic.OBJECT]) + len(parts).to_bytes(4 if wide else 1, "little")
    numbers = [parts[key][0].to_bytes(id_width, "little") for key in ordered]
    places = [offsets[key].to_bytes(width, "little") for key in ordered]
    return b"".join([header, *numbers, *places, size.to_bytes(width, "little"), *[part for _, part in parts.values()]])


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{text!r:.60} is not valid Unicode text: {error.reason}; replace the lone surrogate") from error


def _width(number: int) -> int:
    return 1 if number <= 0xFF else 2 if number <= 0xFFFF else 3 if number <= 0xFFFFFF else 4


def _checked(encoded: bytes, what: str) -> bytes:
    if len(encoded) > MOST_BYTES:
        raise InvalidArgument(
            f"a VARIANT is too large: {what} {len(encoded)} bytes, and {MOST_BYTES} are allowed; split it, or store it as BYTES"
        )
    return encoded
