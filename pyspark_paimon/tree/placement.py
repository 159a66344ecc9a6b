"""Positions of files in the picture of a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from fileindex.base.arrays import Int64s
from fileindex.base.column_type import Plain
from lsm.levels.sorted_runs import KeyOf
from lsm.scan.key_ranges import section_starts
from manifest.entry.data_file import DataFileMeta
from manifest.row.binary_row import decode_row
from manifest.types.data_type import DataType

T = TypeVar("T")
Shares: TypeAlias = npt.NDArray[np.float64]

_LEAST = 1e-4
"""Width of a single key, as a share of the picture."""
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Placement:
    """Left and right edges of files, and starts of sections.

    All values are shares of the bucket's keys, from 0 to 1.
    """

    left: tuple[float, ...]
    right: tuple[float, ...]
    sections: tuple[float, ...]


def place_by_keys(files: Sequence[DataFileMeta], key_of: KeyOf, types: Sequence[DataType]) -> Placement:
    """Place files by their key ranges.

    The distance of two keys is the number of rows between them. The rows of a file are spread evenly over its key range.

    Cost: O(n log n) in the number of files.
    """
    known = {file.min_key: key_of(file.min_key) for file in files} | {file.max_key: key_of(file.max_key) for file in files}
    order = {key: rank for rank, key in enumerate(sorted(set(known.values())))}
    first = {order[key]: data for data, key in known.items()}
    low = np.array([order[known[file.min_key]] for file in files], np.int64)
    high = np.array([order[known[file.max_key]] for file in files], np.int64)
    at = _key_positions([decode_row(first[rank], types) for rank in range(len(order))])
    edges = _edges(at, low, high, np.array([file.row_count for file in files], np.float64))
    turn = np.lexsort((high, low))
    starts = section_starts(np.zeros(low.size, np.int64), low[turn], high[turn])
    begins = edges[2 * low[turn][starts]]
    return Placement(tuple(edges[2 * low].tolist()), tuple(edges[2 * high + 1].tolist()), tuple(begins[1:].tolist()))


def place_by_rows(files: Sequence[DataFileMeta]) -> Placement:
    """Place files one after the other.

    For tables without keys. The width of a file is its number of rows.
    """
    rows = np.array([max(file.row_count, 1) for file in files], np.float64)
    edges = np.concatenate([[0.0], np.cumsum(rows)]) / rows.sum()
    return Placement(tuple(edges[:-1].tolist()), tuple(edges[1:].tolist()), ())


def _key_positions(keys: Sequence[Sequence[Plain]]) -> Shares:
    """Return positions of sorted keys between 0 and 1.

    Numbers and texts are placed by their values.
    """
    share = np.zeros(len(keys))
    for column in range(len(keys[0]) - 1, -1, -1):
        share = _column_positions([key[column] for key in keys], share)
    return np.maximum.accumulate(np.clip(np.nan_to_num(share), 0, 1))


def _column_positions(values: Sequence[Plain], rest: Shares) -> Shares:
    """Return the positions of a column's values.

    Between two whole numbers, ``rest`` decides: the positions of the following key columns.
    """
    present = [value for value in values if value is not None]
    if not present or all(value == present[0] for value in present):
        return rest
    step = 1.0  # distance of whole numbers; texts and fractions have none
    if all(isinstance(value, str | bytes) for value in present):
        whole, step = _text_numbers(values), 0.0
    else:
        whole = np.array([np.nan if value is None else float(value) for value in values])
        whole = np.where(np.isfinite(whole), whole, np.nan)
        step = 0.0 if any(isinstance(value, float) for value in present) else 1.0
    low, high = (np.nanmin(whole), np.nanmax(whole)) if not np.isnan(whole).all() else (0.0, 0.0)
    whole = np.where(np.isnan(whole), low, whole)
    return np.asarray((whole - low + step * rest) / max(float(high - low) + step, _TINY))


def _text_numbers(values: Sequence[Plain]) -> Shares:
    """Convert texts to numbers: six bytes from the first difference."""
    data = [b"" if value is None else value.encode() if isinstance(value, str) else bytes(value) for value in values]  # type: ignore[arg-type]
    first, last = min(filter(None, data)), max(data)
    skip = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    return np.array([float(int.from_bytes(item[skip : skip + 6].ljust(6, b"\0"))) for item in data])


def _edges(at: Shares, low: Int64s, high: Int64s, rows: Shares) -> Shares:
    """Return the shares of rows before and after each key.

    The two values of a key are adjacent.
    """
    steps = np.full(2 * at.size - 1, _LEAST)  # a key, the gap to the next, the next...
    steps[1::2] = np.diff(at)
    reach = np.concatenate([[0.0], np.cumsum(steps)])
    thickness = np.zeros(steps.size + 1)
    each = np.maximum(rows, 1) / (reach[2 * high + 1] - reach[2 * low])
    np.add.at(thickness, 2 * low, each)
    np.subtract.at(thickness, 2 * high + 1, each)
    weight = np.maximum(np.cumsum(thickness)[:-1], 0) * steps
    weight = np.maximum(weight, weight.sum() * _LEAST * (steps > 0))
    edges = np.concatenate([[0.0], np.cumsum(weight)])
    return np.asarray(edges / edges[-1])


def group_neighbours(items: Sequence[T], most: int) -> list[Sequence[T]]:
    """Split items into at most ``most`` groups of similar size.

    >>> group_neighbours([1, 2, 3], 5), group_neighbours([1, 2, 3, 4, 5], 2)
    ([[1], [2], [3]], [[1, 2], [3, 4, 5]])
    """
    count = min(most, len(items))
    cuts = [len(items) * at // count for at in range(count + 1)] if count else []
    return [items[start:end] for start, end in pairwise(cuts)]


__all__ = ["Placement", "Shares", "group_neighbours", "place_by_keys", "place_by_rows"]
