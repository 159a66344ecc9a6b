"""Paimon's bucket functions as Spark SQL built-ins.

The JVM assigns buckets without a Python function. The default function is Murmur3 (seed 42) over the BinaryRow of the bucket key,
as in Paimon's ``DefaultBucketFunction``.

Fixed-width rows are folded as 32-bit words, in 64-bit arithmetic that ANSI mode accepts.
Rows with strings become a binary image: Spark's ``hash`` of a binary is the same function.
Expressions are staged, a few steps per column. Nested expressions would double with each step and exceed the depth limit of Connect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_paimon.frames.spark_functions import functions_of, quote_name
from sparkexpr.values.column_type import BINARIES, STRINGS, TIMESTAMPS, ColumnType, Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MASKS = {Kind.TINYINT: 0xFF, Kind.SMALLINT: 0xFFFF, Kind.INT: 0xFFFFFFFF}
_SIMPLE = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.DATE, Kind.BOOLEAN, Kind.FLOAT, Kind.DOUBLE})
_MAX_KEYS = 56  # null bits that fit into one header word
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_SEED = 42
_MASK = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_ADD = 0xE6546B64
_F1, _F2 = 0x85EBCA6B, 0xC2B2AE35


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

    Fixed-width keys become 64-bit words. Keys with strings or binaries become one binary value.

    Layout (Paimon's ``BinaryRow``): a header of null bits, an 8-byte slot per field, then the variable part in field order. Each piece of the
    variable part is padded to 8 bytes. All numbers are little endian. Temporary columns start with ``__paimon_``.
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
        bits = [f"if({quote_name(key.name)} is null, {1 << (8 + i)}L, 0L)" for i, key in enumerate(self.keys) if key.nullable]
        if not bits:
            return 0
        self._put(0, {"__paimon_nulls": " + ".join(bits)})
        return "__paimon_nulls"

    def _slot(self, i: int, key: BucketKey, offset: str) -> str:
        """Add the stages of a fixed-width slot.

        Returns the name of its BIGINT column.
        """
        slot, name, kind = f"__paimon_w{i}", quote_name(key.name), key.type.kind
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
        name = quote_name(key.name)
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


def _bytes_of(key: BucketKey) -> str:
    text = quote_name(key.name) if key.type.kind in BINARIES else f"cast({quote_name(key.name)} as binary)"
    return f"coalesce({text}, X'')" if key.nullable else text


def _bytes_slot(i: int, key: BucketKey) -> str:
    """Return SQL for the slot of a string or binary."""
    # The slot holds up to 7 bytes, then 0x80 plus their number. For longer values it holds length and offset.
    short = f"concat(rpad(__paimon_b{i}, 7, X'00'), unhex(hex(128 + __paimon_n{i})))"
    slot = f"if(__paimon_n{i} > 7, {_little_endian(f'__paimon_w{i}')}, {short})"
    return f"if({quote_name(key.name)} is null, X'0000000000000000', {slot})" if key.nullable else slot


def _little_endian(column: str) -> str:
    """Return SQL for the little-endian bytes of a BIGINT."""
    # Reverse the pairs of hexadecimal digits.
    digits = f"lpad(hex({column}), 16, '0')"
    return "unhex(concat(" + ", ".join(f"substring({digits}, {position}, 2)" for position in range(15, 0, -2)) + "))"


def _micros_of(key: BucketKey) -> str:
    """Return SQL for the microseconds since the epoch."""
    name = quote_name(key.name)
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


def with_bucket(df: DataFrame, keys: Sequence[BucketKey], num_buckets: int, column: str) -> DataFrame:
    """Add the INT column ``column`` with the default bucket.

    Buckets are in [0, ``num_buckets``). The key columns must have the table's Spark types and be ``expressible``.
    """
    stages = bucket_stages(keys, num_buckets, column)
    for stage in filter(None, stages):
        df = df.withColumns({name: functions_of(df).expr(text) for name, text in stage.items()})
    return df.drop(*(name for stage in stages for name in stage if name != column))


def with_hash(df: DataFrame, keys: Sequence[BucketKey], column: str) -> DataFrame:
    """Add the INT column ``column`` with the key's hash.

    Hash index files store the same value. ``keys`` as in ``with_bucket``.
    """
    stages, text = hash_stages(keys)
    for stage in filter(None, stages):
        df = df.withColumns({name: functions_of(df).expr(part) for name, part in stage.items()})
    return df.withColumn(column, functions_of(df).expr(f"cast({text} as int)")).drop(*(name for stage in stages for name in stage))


def hash_stages(keys: Sequence[BucketKey]) -> tuple[list[Mapping[str, str]], str]:
    """Return the SQL stages of the hash, and its expression.

    The expression refers to columns of the stages. Its value is in the signed 32-bit range.
    """
    image = RowImage.of(keys)
    if image.has_bytes:
        return image.binary_stages(), f"hash({image.binary_column})"
    words, stages = image.word_stages()
    fold = _Fold(stages)
    fold.run(words)
    return fold.stages, f"if({fold.state} > 2147483647L, {fold.state} - 4294967296L, {fold.state})"


def bucket_stages(keys: Sequence[BucketKey], num_buckets: int, column: str) -> list[Mapping[str, str]]:
    """Return the SQL stages of ``with_bucket``.

    Each stage may refer to columns of earlier stages.

    >>> bucket_stages([], 1, "bucket")
    [{'bucket': '0'}]
    """
    if num_buckets == 1:
        return [{column: "0"}]
    stages, text = hash_stages(keys)
    return [*stages, {column: f"cast(abs({text} % {num_buckets}) as int)"}]


def with_bucket_mod(df: DataFrame, key: BucketKey, num_buckets: int, column: str) -> DataFrame:
    """Add the bucket of ``bucket-function.type = mod``.

    The bucket is the floor remainder of one INT or BIGINT column.
    """
    return df.withColumns({column: functions_of(df).expr(f"cast(pmod({quote_name(key.name)}, {num_buckets}) as int)")})


@dataclass
class _Fold:
    """Murmur3 over 64-bit words, as SQL stages.

    ``state`` is the SQL of the current hash: a column, or a number at first.
    """

    stages: list[Mapping[str, str]]
    state: str = str(_SEED)
    _constant: int | None = _SEED
    _count: int = field(default=0)

    def run(self, words: Sequence[str | int]) -> None:
        """Fold ``words`` and finalise the hash.

        Each word is a constant or the SQL of a BIGINT.
        """
        halves = self._mix_halves(words)
        for half in halves:
            self._mix(half)
        self._finalise(8 * len(words))

    def _mix_halves(self, words: Sequence[str | int]) -> list[str | int]:
        """Add stages for Murmur's ``k`` of all 32-bit halves.

        The low half of each word comes first.
        """
        names: list[str | int] = []
        split: dict[str, str] = {}
        for word in words:
            if isinstance(word, int):
                names += [_scramble(word & _MASK), _scramble(word >> 32 & _MASK)]
                continue
            low, high = self._name("k"), self._name("k")
            split |= {low: f"{word} & {_MASK}L", high: f"shiftrightunsigned({word}, 32)"}
            names += [low, high]
        # ``k`` does not depend on the state: two stages compute it for all words.
        self.stages.append({name: _times(f"({half})", _C1) for name, half in split.items()})
        self.stages.append({name: _times(_rotate(name, 15), _C2) for name in split})
        return names

    def _mix(self, half: str | int) -> None:
        if self._constant is not None and isinstance(half, int):
            state = self._constant ^ half
            self._constant = ((state << 13 | state >> 19) * 5 + _ADD) & _MASK
            self.state = str(self._constant)
            return
        before = f"{self._constant}L" if self._constant is not None else self.state
        self._constant = None
        mixed = f"({before} ^ {half}L)" if isinstance(half, int) else f"({before} ^ {half})"
        self.state = self._stage(f"({_rotate(mixed, 13)} * 5L + {_ADD}L) & {_MASK}L")

    def _finalise(self, length: int) -> None:
        state = self._stage(_fold(f"({self.state} ^ {length}L)", 16))
        state = self._stage(_fold(f"({_times(state, _F1)})", 13))
        self.state = self._stage(_fold(f"({_times(state, _F2)})", 16))

    def _stage(self, text: str) -> str:
        name = self._name("h")
        self.stages.append({name: text})
        return name

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"__paimon_{kind}{self._count}"


def _scramble(word: int) -> int:
    word = word * _C1 & _MASK
    return (word << 15 | word >> 17) * _C2 & _MASK


def _times(name: str, factor: int) -> str:
    """Return SQL for the low 32 bits of a product."""
    # Both partial products fit 63 bits: ANSI mode raises on overflow.
    return f"({name} * {factor & 0xFFFF}L + shiftleft(({name} * {factor >> 16}L) & 65535L, 16)) & {_MASK}L"


def _rotate(name: str, bits: int) -> str:
    return f"((shiftleft({name}, {bits}) & {_MASK}L) | shiftrightunsigned({name}, {32 - bits}))"


def _fold(text: str, bits: int) -> str:
    return f"{text} ^ shiftrightunsigned({text}, {bits})"
