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

from pyspark_paimon.frames.spark_functions import functions_of
from pyspark_paimon.spark.client.binary_row_expr import BucketKey, RowImage, quoted_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SEED = 42
_MASK = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_ADD = 0xE6546B64
_F1, _F2 = 0x85EBCA6B, 0xC2B2AE35


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
    return df.withColumns({column: functions_of(df).expr(f"cast(pmod({quoted_name(key.name)}, {num_buckets}) as int)")})


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


__all__ = ["bucket_stages", "hash_stages", "with_bucket", "with_bucket_mod", "with_hash"]
