"""BinaryRow of a key, computed by Spark SQL.

Fixed-width keys become 64-bit words. Keys with strings or binaries become one binary value.

Layout (Paimon's ``BinaryRow``): a header of null bits, an 8-byte slot per field, then the variable part in field order.
Each piece of the variable part is padded to 8 bytes. All numbers are little endian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fileindex.base.column_type import BINARIES, STRINGS, TIMESTAMPS, ColumnType, Kind

_MASKS = {Kind.TINYINT: 0xFF, Kind.SMALLINT: 0xFFFF, Kind.INT: 0xFFFFFFFF}
_SIMPLE = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.DATE, Kind.BOOLEAN, Kind.FLOAT, Kind.DOUBLE})
_MAX_KEYS = 56  # null bits that fit into one header word
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


@dataclass(frozen=True, slots=True)
class BucketKey:
    """Name, type and nullability of a bucket key column."""

    name: str
    type: ColumnType
    nullable: bool = False

    @property
    def is_bytes(self) -> bool:
        """Whether the column holds strings or binaries."""
        return self.type.kind in STRINGS or self.type.kind in BINARIES

    @property
    def is_long_timestamp(self) -> bool:
        """Whether a timestamp uses 8 bytes of the variable part.

        True for precisions above 3: the slot then holds the nanoseconds of the millisecond.
        """
        return self.type.kind in TIMESTAMPS and self.type.precision > 3


def expressible(keys: Sequence[BucketKey]) -> bool:
    """Return whether Spark SQL can build the image of ``keys``.

    Unsupported: wide decimals, TIME and nanoseconds. The writer's tasks compute those buckets.

    >>> expressible([BucketKey("id", ColumnType(Kind.BIGINT))]), expressible([BucketKey("d", ColumnType(Kind.DECIMAL, 30, 2))])
    (True, False)
    """

    def known(key: BucketKey) -> bool:
        kind, precision = key.type.kind, key.type.precision
        return key.is_bytes or kind in _SIMPLE or (kind is Kind.DECIMAL and precision <= 18) or (kind in TIMESTAMPS and precision <= 6)

    return 0 < len(keys) <= _MAX_KEYS and all(known(key) for key in keys)


@dataclass
class RowImage:
    """Stages of SQL expressions that build a key's BinaryRow.

    Temporary columns start with ``__paimon_``.
    """

    keys: tuple[BucketKey, ...]
    _stages: list[dict[str, str]] = field(default_factory=list)

    binary_column = "__paimon_image"

    @classmethod
    def of(cls, keys: Sequence[BucketKey]) -> RowImage:
        """Return the image of ``keys``, which must be ``expressible``."""
        assert expressible(keys), "the caller checks expressible()"
        return cls(tuple(keys))

    @property
    def has_bytes(self) -> bool:
        """Whether strings or binaries make the row's length vary."""
        return any(key.is_bytes for key in self.keys)

    def word_stages(self) -> tuple[list[str | int], list[Mapping[str, str]]]:
        """Return the row as 64-bit words, and their stages.

        Words are BIGINT columns or constants. Only for fixed-width keys.
        """
        offset = self._fixed_width
        slots: list[str | int] = []
        tail: list[str | int] = []
        for i, key in enumerate(self.keys):
            slots.append(self._slot(i, key, str(offset)))
            if key.is_long_timestamp:
                tail.append(f"__paimon_v{i}")
                offset += 8
        return [self._header(), *slots, *tail], list(self._stages)

    def binary_stages(self) -> list[Mapping[str, str]]:
        """Return the stages that end in ``binary_column``, the row's bytes."""
        self._put(0, {f"__paimon_b{i}": _bytes_of(key) for i, key in enumerate(self.keys) if key.is_bytes})
        self._put(1, {f"__paimon_n{i}": f"octet_length(__paimon_b{i})" for i, key in enumerate(self.keys) if key.is_bytes})
        self._put(
            2,
            {
                f"__paimon_p{i}": f"if(__paimon_n{i} > 7, (__paimon_n{i} + 7) div 8 * 8, 0L)"
                for i, key in enumerate(self.keys)
                if key.is_bytes
            },
        )
        slots, pieces, offset = [], [], str(self._fixed_width)
        for i, key in enumerate(self.keys):
            if key.is_bytes:
                self._put(3, {f"__paimon_w{i}": f"__paimon_n{i} + shiftleft(cast({offset} as bigint), 32)"})
                slots.append(_bytes_slot(i, key))
                pieces.append(f"if(__paimon_n{i} > 7, rpad(__paimon_b{i}, cast(__paimon_p{i} as int), X'00'), X'')")
                offset = f"({offset} + __paimon_p{i})"
                continue
            slots.append(_little_endian(self._slot(i, key, offset)))
            if key.is_long_timestamp:
                pieces.append(_little_endian(f"__paimon_v{i}"))
                offset = f"({offset} + 8L)"
        header = self._header()
        first = "X'0000000000000000'" if header == 0 else _little_endian(str(header))
        return [*self._stages, {self.binary_column: f"concat({', '.join([first, *slots, *pieces])})"}]

    @property
    def _fixed_width(self) -> int:
        return 8 + 8 * len(self.keys)

    def _header(self) -> str | int:
        bits = [f"if({quoted_name(key.name)} is null, {1 << (8 + i)}L, 0L)" for i, key in enumerate(self.keys) if key.nullable]
        if not bits:
            return 0
        self._put(0, {"__paimon_nulls": " + ".join(bits)})
        return "__paimon_nulls"

    def _slot(self, i: int, key: BucketKey, offset: str) -> str:
        """Add the stages of a fixed-width slot.

        Returns the name of its BIGINT column.
        """
        slot, name, kind = f"__paimon_w{i}", quoted_name(key.name), key.type.kind
        if kind in TIMESTAMPS:
            return self._timestamp_slot(i, key, offset)
        if kind in {Kind.FLOAT, Kind.DOUBLE}:
            return self._float_slot(i, key)
        if kind is Kind.BOOLEAN:
            text = f"if({name}, 1L, 0L)"
        elif kind is Kind.DATE:
            text = f"cast(unix_date({name}) as bigint) & {0xFFFFFFFF}L"
        elif kind is Kind.DECIMAL:
            text = f"cast({name} * {10**key.type.scale}BD as bigint)"
        else:
            text = f"cast({name} as bigint)" + (f" & {_MASKS[kind]}L" if kind in _MASKS else "")
        self._put(3, {slot: f"coalesce({text}, 0L)" if key.nullable else text})
        return slot

    def _timestamp_slot(self, i: int, key: BucketKey, offset: str) -> str:
        slot, micros = f"__paimon_w{i}", f"__paimon_u{i}"
        self._put(0, {micros: _micros_of(key)})
        millis = f"({micros} - pmod({micros}, 1000L)) div 1000L"
        if not key.is_long_timestamp:
            self._put(3, {slot: f"coalesce({millis}, 0L)"})
            return slot
        self._put(3, {slot: f"coalesce(pmod({micros}, 1000L) * 1000L, 0L) + shiftleft(cast({offset} as bigint), 32)"})
        self._put(3, {f"__paimon_v{i}": f"coalesce({millis}, 0L)"})
        return slot

    def _float_slot(self, i: int, key: BucketKey) -> str:
        """Add the stages of a slot with IEEE 754 bits.

        Returns the name of its BIGINT column.
        """
        text, fraction, exponent, magnitude, slot = (f"__paimon_{part}{i}" for part in "tfemw")
        name = quoted_name(key.name)
        # Spark has no function for the bits. Java's hexadecimal text is exact.
        self._put(0, {text: f"format_string('%a', cast({name} as double))"})
        digits = f"substring_index(substring_index({text}, 'p', 1), '.', -1)"
        self._put(1, {fraction: f"if({text} like '%p%', cast(conv(rpad({digits}, 13, '0'), 16, 10) as bigint), 0L)"})
        self._put(1, {exponent: f"if({text} like '%p%', cast(substring_index({text}, 'p', -1) as bigint), 0L)"})
        narrow = key.type.kind is Kind.FLOAT
        finite = _float_bits(fraction, exponent) if narrow else f"shiftleft({exponent} + 1023L, 52) + {fraction}"
        nan, infinity = (0x7FC00000, 0x7F800000) if narrow else (0x7FF8000000000000, 0x7FF0000000000000)
        tiny = f"if({text} like '%0x0.%', {fraction}, {finite})"  # zero and doubles below the normal range
        self._put(2, {magnitude: f"case when {text} = 'NaN' then {nan}L when {text} like '%Infinity' then {infinity}L else {tiny} end"})
        sign = "2147483648L" if narrow else "shiftleft(1L, 63)"
        self._put(3, {slot: f"coalesce(if({text} like '-%', {magnitude} | {sign}, {magnitude}), 0L)"})
        return slot

    def _put(self, stage: int, columns: Mapping[str, str]) -> None:
        while len(self._stages) <= stage:
            self._stages.append({})
        self._stages[stage].update(columns)


def quoted_name(name: str) -> str:
    """Return ``name`` quoted as a Spark SQL identifier.

    >>> quoted_name("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _bytes_of(key: BucketKey) -> str:
    text = quoted_name(key.name) if key.type.kind in BINARIES else f"cast({quoted_name(key.name)} as binary)"
    return f"coalesce({text}, X'')" if key.nullable else text


def _bytes_slot(i: int, key: BucketKey) -> str:
    """Return SQL for the slot of a string or binary."""
    # The slot holds up to 7 bytes, then 0x80 plus their number. For longer values it holds length and offset.
    short = f"concat(rpad(__paimon_b{i}, 7, X'00'), unhex(hex(128 + __paimon_n{i})))"
    slot = f"if(__paimon_n{i} > 7, {_little_endian(f'__paimon_w{i}')}, {short})"
    return f"if({quoted_name(key.name)} is null, X'0000000000000000', {slot})" if key.nullable else slot


def _little_endian(column: str) -> str:
    """Return SQL for the little-endian bytes of a BIGINT."""
    # Reverse the pairs of hexadecimal digits.
    digits = f"lpad(hex({column}), 16, '0')"
    return "unhex(concat(" + ", ".join(f"substring({digits}, {at}, 2)" for at in range(15, 0, -2)) + "))"


def _micros_of(key: BucketKey) -> str:
    """Return SQL for the microseconds since the epoch."""
    name = quoted_name(key.name)
    if key.type.kind is Kind.TIMESTAMP_LTZ:
        return f"unix_micros({name})"
    # A timestamp without zone must not be converted with the session's zone.
    span = f"({name} - {_EPOCH})"
    seconds = f"extract(DAY FROM {span}) * 86400L + extract(HOUR FROM {span}) * 3600L + extract(MINUTE FROM {span}) * 60L"
    return f"({seconds}) * 1000000L + cast(extract(SECOND FROM {span}) * 1000000 as bigint)"


def _float_bits(fraction: str, exponent: str) -> str:
    """Return SQL for a FLOAT's bits from an equal DOUBLE."""
    # Below FLOAT's normal range, the leading 1 is shifted into the fraction.
    small = f"shiftright({fraction} + {1 << 52}L, cast(29 - 126 - {exponent} as int))"
    return f"if({exponent} < -126, {small}, shiftleft({exponent} + 127L, 23) + shiftright({fraction}, 29))"


__all__ = ["BucketKey", "RowImage", "expressible", "quoted_name"]
