"""Columns of a case, and their values: whole arrays from a seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Dice = np.random.Generator
ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789 ", np.uint8)


@dataclass(frozen=True)
class Column:
    """A column of a table: name, type as DDL, and how values are made from dice and a number of rows."""

    name: str
    type: str
    make: Callable[[Dice, int], Any]
    indexes: tuple[str, ...] = ()
    asked: bool = True
    """Whether filters compare it with values."""
    summed: bool = True
    """Whether the sum of its numbers fits BIGINT."""

    @property
    def ddl(self) -> str:
        return f"{self.name} {self.type}"


def nulled(dice: Dice, values: Any, share: float = 0.1) -> Any:
    """Values of which a share is null."""
    return pc.if_else(pa.array(dice.random(len(values)) >= share), values, pa.scalar(None, values.type))


def _turns(dice: Dice, count: int) -> Any:
    """A mask that is true in every other run of rows; runs have a seventh of the rows, about."""
    run = max(1, int(count / dice.integers(1, 9)))
    return (np.arange(count) // run + dice.integers(0, 2)) % 2 == 0


def _turning_texts(dice: Dice, count: int) -> Any:
    """Texts that have few values in some runs of rows and many in others."""
    numbers = np.where(_turns(dice, count), dice.integers(0, 6, count), dice.integers(0, 1 << 40, count))
    return nulled(dice, pc.binary_join_element_wise("t", pa.array(numbers).cast(pa.string()), "-"))


def _wide_pool(dice: Dice, values: int, least: int, most: int) -> Any:
    """Random texts of ``least`` to ``most`` bytes."""
    letters = ALPHABET[dice.integers(0, len(ALPHABET), most * 2)].tobytes().decode()
    lengths, starts = dice.integers(least, most + 1, values), dice.integers(0, most, values)
    return pa.array([f"{at:05}{letters[start : start + length]}" for at, (start, length) in enumerate(zip(starts, lengths, strict=True))])


def wide(least: int, most: int, budget: int) -> Callable[[Dice, int], Any]:
    """Texts of ``least`` to ``most`` bytes, few or many by turns, null where ``budget`` bytes are used up."""

    def make(dice: Dice, count: int) -> Any:
        filled = min(count, max(1, 2 * budget // (least + most)))
        pool = _wide_pool(dice, min(filled, max(4, budget // (4 * most))), least, most)
        chosen = np.where(_turns(dice, count), dice.integers(0, min(3, len(pool)), count), dice.integers(0, len(pool), count))
        return pool.take(pa.array(chosen, mask=dice.random(count) >= filled / count))

    return make


def _doubles(dice: Dice, count: int) -> Any:
    odd = np.array([math.nan, 0.0, -0.0, math.inf, -math.inf])
    values = np.where(dice.random(count) < 0.1, odd[dice.integers(0, len(odd), count)], dice.integers(-4000, 4000, count) / 4)
    return nulled(dice, pa.array(values, from_pandas=False))


def _numbers(low: int, high: int, kind: Any) -> Callable[[Dice, int], Any]:
    return lambda dice, count: nulled(dice, pa.array(dice.integers(low, high, count)).cast(kind))


def _decimals(dice: Dice, count: int) -> Any:
    return nulled(dice, pa.array(dice.integers(-(10**6), 10**6, count) / 4).cast(pa.decimal128(12, 2)))


def _lists(dice: Dice, count: int) -> Any:
    sizes = dice.integers(0, 4, count)
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    return nulled(dice, pa.ListArray.from_arrays(offsets, _turning_texts(dice, int(sizes.sum()))))


def _maps(dice: Dice, count: int) -> Any:
    sizes = dice.integers(0, 4, count)
    ends = np.cumsum(sizes)
    within = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
    keys = pa.array(["a", "b", "c"]).take(pa.array(within))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    return pa.MapArray.from_arrays(offsets, keys, _numbers(0, 50, pa.int32())(dice, len(within)))


def _structs(dice: Dice, count: int) -> Any:
    parts = [_numbers(0, 9, pa.int32())(dice, count), _turning_texts(dice, count)]
    return pa.StructArray.from_arrays(parts, ["a", "b"], mask=pa.array(dice.random(count) < 0.1))


def nothing(kind: Any) -> Callable[[Dice, int], Any]:
    return lambda _, count: pa.nulls(count, kind)


def _bytes(dice: Dice, count: int) -> Any:
    return _turning_texts(dice, count).cast(pa.binary())


ALL = ("bloom-filter", "bitmap", "range-bitmap")
NUMBER = (*ALL, "bsi")
ORDINARY = (
    Column("n", "BIGINT", _numbers(-500, 500, pa.int64()), NUMBER),
    Column("big", "BIGINT", _numbers(-(2**62), 2**62, pa.int64()), NUMBER, summed=False),
    Column("i", "INT", _numbers(0, 100_000, pa.int32()), NUMBER),
    Column("tiny", "TINYINT", _numbers(-9, 9, pa.int8()), ("bloom-filter", "bitmap", "bsi")),
    Column("d", "DOUBLE", _doubles, ("bloom-filter", "range-bitmap")),
    Column("day", "DATE", _numbers(19000, 19400, pa.int32()), NUMBER),
    Column("ts", "TIMESTAMP(6)", _numbers(0, 10**15, pa.int64()), NUMBER),
    Column("dec", "DECIMAL(12, 2)", _decimals, ("bsi", "range-bitmap")),
    Column("flag", "BOOLEAN", _numbers(0, 2, pa.bool_()), ("bitmap", "range-bitmap")),
    Column("t", "STRING", _turning_texts, ALL),
    Column("u", "VARCHAR(40)", _turning_texts, ALL),
    Column("x", "BYTES", _bytes, ("bloom-filter",)),
    Column("a", "ARRAY<STRING>", _lists, asked=False),
    Column("m", "MAP<STRING, INT>", _maps, asked=False),
    Column("r", "ROW<a INT, b STRING>", _structs, asked=False),
    Column("z", "STRING", nothing(pa.string()), ALL),
    Column("zi", "INT", nothing(pa.int32()), NUMBER),
)
"""Columns of every kind; names are unique."""
_EPOCHS = {"DATE": pa.date32(), "TIMESTAMP(6)": pa.timestamp("us")}


def made(column: Column, dice: Dice, count: int) -> Any:
    """Values of a column in its Arrow type."""
    values = column.make(dice, count)
    return values.cast(_EPOCHS[column.type]) if column.type in _EPOCHS else values
