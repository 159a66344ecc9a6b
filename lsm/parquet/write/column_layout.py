"""How each column of a file is stored: by a dictionary, as differences, or plain; with the codec, or without where it saves little.

Chosen by a sample of the file's first rows. Whole numbers of most distributions are smaller as differences packed into bits
(DELTA_BINARY_PACKED) than compressed, and are decoded several times faster; numbers with rare outliers are not.

A sample is encoded three times, which for a small file is more work than the file; even to count its values is a quarter of the work of a
tiny one. So what it says holds for the next files of the table that have about as many rows, in columns about as wide, until these have
``kept_rows`` rows: any layout is valid for any rows, a worse one only larger.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fileindex.base.thresholds import thresholds
from manifest.io.file_cache import SHARED

_MAX_INT64_DIGITS = 18
_BYTES_A_NAME = 200
_SAVING = 0.1
"""What a codec, or differences, must save of a column."""
_AS_SMALL = 1.05
"""Differences may be so much larger than what the codec makes: they are decoded several times faster."""
_DIFFERENCES = "DELTA_BINARY_PACKED"


@dataclass(frozen=True)
class ColumnLayout:
    """Leaf columns by their paths: those with a dictionary, stored as differences, compressed and with statistics (None: all)."""

    dictionary: Sequence[str]
    differences: Collection[str] = ()
    compressed: Collection[str] | None = None
    bounded: Sequence[str] | None = None

    def settings(self, codec: str, level: int | None) -> dict[str, Any]:
        """What ``pq.ParquetWriter`` is told."""
        found: dict[str, Any] = {"use_dictionary": list(self.dictionary)}
        found["write_statistics"] = True if self.bounded is None else list(self.bounded)
        if self.differences:
            found["column_encoding"] = dict.fromkeys(self.differences, _DIFFERENCES)
        if self.compressed is None:
            return found | {"compression": codec, "compression_level": level}
        found["compression"] = dict.fromkeys(self.compressed, codec)
        if level is not None:
            found["compression_level"] = dict.fromkeys(self.compressed, level)
        return found if self.compressed else found | {"compression": "none"}


def column_layout(
    rows: Any, plain: frozenset[str], codec: str, level: int | None, *, by_sample: bool, table: str | None = None
) -> ColumnLayout:
    """The layout of a file that begins with ``rows``, in the types that are encoded.

    Args:
        rows: of the first row group.
        plain: columns for which no dictionary is tried.
        codec: the file's codec, as Arrow calls it, and its level.
        level: None: the codec has none.
        by_sample: False: every column has the codec, and none is stored as differences.
        table: whose files share what samples say; None: these rows are asked.
    """
    bulky = [name for name in rows.schema.names if _is_bulky(rows.column(name))] if rows.nbytes > thresholds().bulky else []
    if not bulky:
        return _layout(rows, plain, codec, level, by_sample=by_sample, table=table)
    others = rows.drop_columns(bulky)
    found = _layout(others, plain, codec, level, by_sample=by_sample, table=table)
    large = [path for name in bulky for path in _leaves(name, rows.schema.field(name).type)]
    compressed = None if found.compressed is None else [*found.compressed, *large]
    return replace(found, compressed=compressed, bounded=[path for field in others.schema for path in _leaves(field.name, field.type)])


def _is_bulky(column: Any) -> bool:
    """Whether a text or binary value, or the mean of nested ones, has more than ``bulky`` bytes."""
    kind = column.type
    if pa.types.is_nested(kind):
        return bool(column.nbytes > thresholds().bulky * max(1, len(column)))
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind)) or column.nbytes <= thresholds().bulky:
        return False
    return bool((pc.max(pc.binary_length(column)).as_py() or 0) > thresholds().bulky)


@dataclass(frozen=True)
class _Kept:
    """A layout, the widths of the columns that it was chosen for, and how many more rows it holds for."""

    layout: ColumnLayout
    widths: Any
    rows: int

    def holds(self, widths: Any) -> bool:
        """Whether columns are about as wide: an empty column says nothing of one that is filled."""
        return bool(np.all(np.abs(widths - self.widths) <= 1 + np.maximum(widths, self.widths) / 2))


def _widths(rows: Any) -> Any:
    """Bytes that each column has a row, those of nulls not counted."""
    return np.array([column.nbytes * (len(column) - column.null_count) / len(column) ** 2 for column in rows.columns])


def _layout(rows: Any, plain: frozenset[str], codec: str, level: int | None, *, by_sample: bool, table: str | None) -> ColumnLayout:
    # A table without columns has no rows: all columns were bulky.
    tried = by_sample and codec != "none" and rows.num_columns > 0 and rows.num_rows >= thresholds().fewest_rows
    if table is None or not rows.num_rows:
        return _chosen(rows, plain, codec, level, tried=tried)
    key = ("column layout", table, rows.schema, plain, codec, level, tried, int(rows.num_rows).bit_length())
    kept: _Kept | None = SHARED.get(key)
    widths = _widths(rows)
    if kept is None or kept.rows < rows.num_rows or not kept.holds(widths):
        kept = _Kept(_chosen(rows, plain, codec, level, tried=tried), widths, thresholds().kept_rows)
    SHARED.put(key, replace(kept, rows=kept.rows - rows.num_rows), _BYTES_A_NAME * (1 + 2 * rows.num_columns))
    return kept.layout


def _chosen(rows: Any, plain: frozenset[str], codec: str, level: int | None, *, tried: bool) -> ColumnLayout:
    return _sampled(rows, plain, codec, level) if tried else ColumnLayout(dictionary_columns(rows, plain))


def _sampled(rows: Any, plain: frozenset[str], codec: str, level: int | None) -> ColumnLayout:
    dictionary = dictionary_columns(rows, plain)
    sample = _slices(rows)
    numbers = [field.name for field in rows.schema if field.name not in dictionary and _is_whole_number(field.type)]
    shares = rows.num_rows / sample.num_rows
    with_codec = _trial(sample, ColumnLayout(dictionary).settings(codec, level), shares)
    packed = _trial(sample.select(numbers), ColumnLayout((), numbers, ()).settings(codec, level), shares) if numbers else {}
    without = _trial(sample, ColumnLayout(dictionary, (), ()).settings(codec, level), shares)
    differences = {
        name for name in numbers if packed[name] <= _AS_SMALL * with_codec[name] and packed[name] <= (1 - _SAVING) * without[name]
    }
    compressed = [path for path, size in with_codec.items() if path not in differences and size <= (1 - _SAVING) * without[path]]
    return ColumnLayout(dictionary, frozenset(differences), compressed)


def _slices(rows: Any) -> Any:
    """Neighbouring rows, as differences want them, from two places."""
    if rows.num_rows <= 2 * thresholds().trial_rows:
        return rows
    return pa.concat_tables([rows.slice(0, thresholds().trial_rows), rows.slice(rows.num_rows // 2, thresholds().trial_rows)])


def _trial(sample: Any, settings: dict[str, Any], shares: float) -> dict[str, float]:
    """The size that every leaf column would have, by path, in a row group of so many samples; its dictionary is there once."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, sample.schema, store_decimal_as_integer=True, store_schema=False, **{**settings, "write_statistics": False}
    ) as writer:
        writer.write_table(sample)
    group = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
    found = {}
    for column in map(group.column, range(group.num_columns)):
        dictionary = column.data_page_offset - column.dictionary_page_offset if column.has_dictionary_page else 0
        found[column.path_in_schema] = dictionary + shares * (column.total_compressed_size - dictionary)
    return found


def _is_whole_number(kind: Any) -> bool:
    """Whether values are stored as whole numbers of 32 or 64 bits."""
    if pa.types.is_decimal(kind):
        return not _is_wide_decimal(kind)
    if pa.types.is_timestamp(kind):
        return bool(kind.unit != "ns")
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_time32(kind))


def dictionary_columns(rows: Any, plain: frozenset[str]) -> list[str]:
    """Leaf columns whose values repeat enough for a dictionary, judged by a sample; those inside nested ones always.

    Decimals of more than 18 digits never: Paimon's reader looks for their values in dictionaries without the leading bytes that
    fixed-length values have there, finds none, and drops rows that match.

    >>> dictionary_columns(pa.table({"id": [1, 2, 3, 4], "city": ["Oslo"] * 4}), frozenset())
    ['city']
    """
    step = max(1, min(rows.num_rows, thresholds().sample_window) // thresholds().sample_rows)
    sample = rows if rows.num_rows <= thresholds().sample_rows else rows.take(pa.array(np.arange(0, thresholds().sample_rows * step, step)))
    found: list[str] = []
    for field in rows.schema:
        if pa.types.is_dictionary(field.type):
            found.append(field.name)
        elif pa.types.is_nested(field.type):
            found += _leaves(field.name, field.type)
        elif field.name not in plain and not pa.types.is_boolean(field.type) and not _is_wide_decimal(field.type):
            distinct = _distinct(sample.column(field.name), whole=sample is rows)
            if thresholds().repeats * distinct <= rows.num_rows and distinct <= thresholds().most_distinct:
                found.append(field.name)
    return found


def _distinct(sample: Any, *, whole: bool) -> float:
    """The number of distinct values, by those that a sample has once and twice (Chao's estimate)."""
    if pa.types.is_integer(sample.type) and not sample.null_count:
        counts = np.unique(sample.to_numpy(), return_counts=True)[1]
    else:
        counts = sample.value_counts().field("counts").to_numpy()
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    if whole or not once:
        return len(counts)
    return len(counts) + once * once / (2 * twice) if twice else math.inf


def _is_wide_decimal(kind: Any) -> bool:
    return bool(pa.types.is_decimal(kind) and kind.precision > _MAX_INT64_DIGITS)


def _leaves(path: str, kind: Any) -> Iterator[str]:
    if pa.types.is_struct(kind):
        for at in range(kind.num_fields):
            yield from _leaves(f"{path}.{kind.field(at).name}", kind.field(at).type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path


__all__ = ["ColumnLayout", "column_layout", "dictionary_columns"]
