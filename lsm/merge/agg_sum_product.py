"""``sum`` and ``product`` over many keys at once.

Round k processes the k-th version of all keys. So floats equal a sum per key bit by bit, and an overflow is found
at the step where it occurs (Paimon's ``FieldSumAgg`` and ``FieldProductAgg``).

Wide decimals are summed as 128-bit integers of two words, so that an overflow of the type's range is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.keys.encoding import one_array
from lsm.merge.version_groups import VersionHistory
from manifest.io.errors import UnmergeableRows
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import AnyArray, Int64s, Mask, UInt64s

_Numbers = AnyArray
_Step = Callable[[_Numbers, _Numbers, Mask], _Numbers]
_INT64_DIGITS = 18
_DECIMALS = Context(prec=38, rounding=ROUND_HALF_UP)
_EXACT = Context(prec=120)
_LOW = (1 << 64) - 1


@dataclass(frozen=True)
class NumberSteps:
    """Additions and retracts of every key.

    Args:
        rows: Row of each value.
        back: Whether the value is retracted.
        keys: Keys that have values.
        starts: First step of each key.
        sizes: Number of steps of each key.
    """

    rows: Int64s
    back: Mask
    keys: Int64s
    starts: Int64s
    sizes: Int64s

    @classmethod
    def of(cls, history: VersionHistory, valid: Mask) -> NumberSteps:
        """Return the steps with values.

        A version that seeds and retracts makes two steps.
        """
        versions, adds = history.versions, history.sets & valid
        if history.retract is None:
            positions = np.flatnonzero(adds)
            back = np.zeros(len(positions), np.bool_)
        else:
            tagged_positions = np.concatenate([np.flatnonzero(adds) * 2, np.flatnonzero(history.retract & valid) * 2 + 1])
            tagged_positions.sort()
            positions, back = tagged_positions >> 1, (tagged_positions & 1).astype(np.bool_)
        keys = versions.keys[positions]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else keys
        return cls(versions.rows[positions], back, keys[starts], starts, np.diff(np.append(starts, len(keys))))

    @property
    def longest_first(self) -> Int64s:
        """Indices of the keys, most steps first."""
        if not len(self.sizes) or self.sizes.min() == self.sizes.max():
            return np.arange(len(self.sizes))
        return np.argsort(-self.sizes, kind="stable")

    def rounds(self, order: Int64s, first: int = 0) -> Iterator[tuple[int, Int64s]]:
        """Yield each round: number of active keys, and their steps.

        Starts with step ``first``. ``order`` lists the keys, longest first.
        """
        starts, sizes = self.starts[order], self.sizes[order]
        for number in range(first, int(sizes[0]) if len(sizes) else 0):
            alive = int(np.searchsorted(-sizes, -number, side="left"))
            yield alive, starts[:alive] + number

    def rests(self, order: Int64s, next_steps: Int64s) -> list[slice]:
        """Return the remaining steps from ``next_steps``, per active key."""
        ends = (self.starts + self.sizes)[order[: len(next_steps)]]
        return [slice(start, end) for start, end in zip(next_steps.tolist(), ends.tolist(), strict=True)]


def total(history: VersionHistory, column: Any, valid: Mask, name: str) -> Any:
    """Return the sum of a numeric column per key.

    Null if there is no value.

    Raises:
        UnmergeableRows: The sum does not fit the type.
    """
    array = one_array(column)
    steps = NumberSteps.of(history, valid)
    if not len(steps.rows):
        return pa.nulls(len(history.versions.starts), array.type)
    if pa.types.is_decimal(array.type) and array.type.precision > _INT64_DIGITS:
        summed = _wide_sums(steps, Int128.of(array)[steps.rows], array.type.precision, name).to_arrow(array.type)
    elif pa.types.is_floating(array.type):
        summed = pa.array(_float_sums(steps, _values(array, steps.rows)), array.type)
    else:
        numbers = _values(array, steps.rows)
        low, high = _range(array.type)
        summed = _integers(_whole_sums(steps, numbers, low, high, name), array.type)
    return _spread(history, steps, summed)


def product_of(history: VersionHistory, column: Any, valid: Mask, name: str) -> Any:
    """Return the product of a numeric column per key.

    A retract divides by its value. It has no effect before the first factor.
    """
    array = one_array(column)
    steps = _without_leading_retracts(NumberSteps.of(history, valid))
    if not len(steps.rows):
        return pa.nulls(len(history.versions.starts), array.type)
    if pa.types.is_decimal(array.type):
        return _spread(history, steps, _decimal_products(steps, array.take(pa.array(steps.rows)), name))
    numbers = _values(array, steps.rows)
    step = _float_step if pa.types.is_floating(array.type) else _whole_step(array.type, name)
    return _spread(history, steps, _integers(_products(steps, numbers, step), array.type))


def _spread(history: VersionHistory, steps: NumberSteps, values: Any) -> Any:
    """Spread ``values`` to all keys, null for missing ones."""
    count = len(history.versions.starts)
    if len(steps.keys) == count:
        return values
    value_index = np.full(count, -1)
    value_index[steps.keys] = np.arange(len(steps.keys))
    return values.take(pa.array(value_index, mask=value_index < 0))


def _values(array: Any, rows: Int64s) -> _Numbers:
    """Return the numbers as numpy: floats, or int64.

    Small decimals are unscaled integers.
    """
    if pa.types.is_decimal(array.type):
        return Int128.of(array).low.view(np.int64)[rows]
    width = array.type.bit_width // 8
    kind = np.dtype(f"<{'f' if pa.types.is_floating(array.type) else 'i'}{width}")
    values = np.frombuffer(array.buffers()[1], kind)[array.offset :][: len(array)][rows]
    return values if kind.kind == "f" else values.astype(np.int64)


def _integers(values: _Numbers, kind: Any) -> Any:
    """Return the numbers as an Arrow array."""
    if pa.types.is_decimal(kind):
        return Int128(np.where(values < 0, -1, 0), values.view(np.uint64)).to_arrow(kind)
    return pa.array(values, kind)


def _range(kind: Any) -> tuple[int, int]:
    if pa.types.is_decimal(kind):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    return -(1 << (kind.bit_width - 1)), (1 << (kind.bit_width - 1)) - 1


def _float_sums(steps: NumberSteps, numbers: _Numbers) -> _Numbers:
    signed = np.where(steps.back, -numbers, numbers)
    order = steps.longest_first
    sums = signed[steps.starts[order]]
    with np.errstate(all="ignore"):
        for number, (alive, round_steps) in enumerate(steps.rounds(order, 1)):
            if number == thresholds.sum_rounds:
                for key, rest in enumerate(steps.rests(order, round_steps)):
                    # np.sum adds pairwise, and rounds floats in another way than one addition after the other.
                    sums[key] = np.add.accumulate(np.append(sums[key], signed[rest]))[-1]
                break
            sums[:alive] += signed[round_steps]
    return _restore_order(sums, order)


def _whole_sums(steps: NumberSteps, numbers: _Numbers, low: int, high: int, name: str) -> _Numbers:
    order = steps.longest_first
    sums = np.zeros(len(order), np.int64)

    def check(before: _Numbers, value: _Numbers, back: Mask, after: _Numbers) -> None:
        wraps = np.where(back, (before ^ value) & (before ^ after), (before ^ after) & (value ^ after)) < 0
        if (wraps | (after < low) | (after > high)).any():
            raise UnmergeableRows(f"column '{name}': 'sum' exceeds the range of the column's type")

    for number, (alive, round_steps) in enumerate(steps.rounds(order)):
        if number == thresholds.sum_rounds:
            for key, rest in enumerate(steps.rests(order, round_steps)):
                values, back = numbers[rest], steps.back[rest]
                partial = np.add.accumulate(np.append(sums[key], np.where(back, -values, values)))
                check(partial[:-1], values, back, partial[1:])
                sums[key] = partial[-1]
            break
        values, back, before = numbers[round_steps], steps.back[round_steps], sums[:alive]
        after = np.where(back, before - values, before + values)
        check(before, values, back, after)
        sums[:alive] = after
    return _restore_order(sums, order)


def _wide_sums(steps: NumberSteps, values: Int128, precision: int, name: str) -> Int128:
    order = steps.longest_first
    signed = values.negate_where(steps.back)
    sums = Int128.zeros(len(order))
    for alive, round_steps in steps.rounds(order):
        after = sums[:alive].plus(signed[round_steps])
        if after.beyond(precision).any():
            raise UnmergeableRows(f"column '{name}': 'sum' exceeds the range of the column's type")
        sums[:alive] = after
    return Int128(_restore_order(sums.high, order), _restore_order(sums.low, order))


def _restore_order(values: _Numbers, order: Int64s) -> _Numbers:
    result = np.empty_like(values)
    result[order] = values
    return result


def _without_leading_retracts(steps: NumberSteps) -> NumberSteps:
    if not steps.back.any():
        return steps
    count = len(steps.rows)
    first = np.minimum.reduceat(np.where(steps.back, count, np.arange(count)), steps.starts)
    keep = np.arange(count) >= np.repeat(first, steps.sizes)
    sizes = np.add.reduceat(keep.astype(np.int64), steps.starts)
    left = sizes > 0
    sizes = sizes[left]
    return NumberSteps(steps.rows[keep], steps.back[keep], steps.keys[left], np.cumsum(sizes) - sizes, sizes)


def _products(steps: NumberSteps, numbers: _Numbers, step: _Step) -> _Numbers:
    order = steps.longest_first
    product = numbers[steps.starts[order]]
    with np.errstate(all="ignore"):
        for alive, round_steps in steps.rounds(order, 1):
            product[:alive] = step(product[:alive], numbers[round_steps], steps.back[round_steps])
    return _restore_order(product, order)


def _float_step(product: _Numbers, value: _Numbers, back: Mask) -> _Numbers:
    return np.where(back, product / value, product * value)


def _whole_step(kind: Any, name: str) -> _Step:
    low, high = _range(kind)

    def exact(product: int, value: int, back: bool) -> int:
        if back and value == 0:
            raise UnmergeableRows(f"column '{name}': 'product' cannot retract a factor of 0")
        results = abs(product) // abs(value) * (1 if (product < 0) == (value < 0) else -1) if back else product * value
        if not low <= results <= high:
            raise UnmergeableRows(f"column '{name}': 'product' exceeds the range of the column's type")
        return results

    def step(product: _Numbers, value: _Numbers, back: Mask) -> _Numbers:
        near = np.abs(product.astype(np.float64) * np.where(back, 1, value)) >= min(high, 1 << 62)
        unsure = np.flatnonzero(near | (back & (value == 0)) | (back & (value == -1)))
        safe = np.where(back & (value != 0), value, 1)
        floor = product // safe
        quotient = floor + (
            (floor * safe != product) & ((product < 0) != (safe < 0))
        )  # round towards 0; abs() would overflow for the least integer
        results = np.where(back, quotient, product * value)
        results[unsure] = [exact(int(product[index]), int(value[index]), bool(back[index])) for index in unsure.tolist()]
        return results

    return step


def _decimal_products(steps: NumberSteps, values: Any, name: str) -> Any:
    """Multiply decimals, key by key.

    Each step is exact, then rounded half up to the column's scale.
    """
    numbers: list[Decimal] = values.to_pylist()
    unit = Decimal(1).scaleb(-values.type.scale)
    limit = Decimal(10) ** (values.type.precision - values.type.scale)
    products = []
    for start, size in zip(steps.starts.tolist(), steps.sizes.tolist(), strict=True):
        product = numbers[start]
        for step in range(start + 1, start + size):
            if steps.back[step] and not numbers[step]:
                raise UnmergeableRows(f"column '{name}': 'product' cannot retract a factor of 0")
            exact = _DECIMALS.divide(product, numbers[step]) if steps.back[step] else _EXACT.multiply(product, numbers[step])
            product = exact.quantize(unit, ROUND_HALF_UP, _EXACT)
            if product.copy_abs() >= limit:
                raise UnmergeableRows(f"column '{name}': 'product' exceeds the range of the column's type")
        products.append(product)
    return pa.array(products, values.type)


@dataclass(frozen=True, slots=True)
class Int128:
    """128-bit integers with ``high`` (int64) and ``low`` (uint64) words.

    >>> values = Int128.of(pa.array(["1.5", "-0.5"], pa.string()).cast(pa.decimal128(38, 1)))
    >>> values.plus(values.negate()).to_arrow(pa.decimal128(38, 1)).to_pylist()
    [Decimal('0.0'), Decimal('0.0')]
    """

    high: Int64s
    low: UInt64s

    @classmethod
    def of(cls, array: Any) -> Int128:
        """Return the unscaled values of a decimal128 array.

        The values of nulls are arbitrary.
        """
        words = np.frombuffer(array.buffers()[1], "<i8")[array.offset * 2 :][: len(array) * 2]
        return cls(words[1::2].astype(np.int64), words[0::2].copy().view(np.uint64))

    @classmethod
    def zeros(cls, count: int) -> Int128:
        """Return ``count`` zeros."""
        return cls(np.zeros(count, np.int64), np.zeros(count, np.uint64))

    def __getitem__(self, index: Any) -> Int128:
        return Int128(self.high[index], self.low[index])

    def __setitem__(self, index: Any, values: Int128) -> None:
        self.high[index], self.low[index] = values.high, values.low

    def plus(self, other: Int128) -> Int128:
        """Return the sums, modulo 2^128."""
        low = self.low + other.low
        return Int128(self.high + other.high + (low < self.low).astype(np.int64), low)

    def negate(self) -> Int128:
        """Return the negated values."""
        low = ~self.low + np.uint64(1)
        return Int128(~self.high + (low == 0).astype(np.int64), low)

    def negate_where(self, mask: Mask) -> Int128:
        """Return the values, negated where ``mask`` is True."""
        other = self.negate()
        return Int128(np.where(mask, other.high, self.high), np.where(mask, other.low, self.low))

    def beyond(self, precision: int) -> Mask:
        """Return which values have more than ``precision`` digits."""
        size = self.negate_where(self.high < 0)
        limit = 10**precision
        high, low = np.int64(limit >> 64), np.uint64(limit & _LOW)
        mask: Mask = (size.high < 0) | (size.high > high) | ((size.high == high) & (size.low >= low))
        return mask

    def to_arrow(self, kind: Any) -> Any:
        """Return a decimal128 array."""
        words = np.empty(2 * len(self.high), np.int64)
        words[1::2], words[0::2] = self.high, self.low.view(np.int64)
        return pa.Array.from_buffers(kind, len(self.high), [None, pa.py_buffer(words)])
