"""Encoding and compression of each column of a file.

A column is stored with a dictionary, as differences, or plain; compression is omitted where it saves little. The choice uses a sample of the
file's first rows. Whole numbers of most distributions are smaller as bit-packed differences (DELTA_BINARY_PACKED) than compressed,
and are decoded several times faster. Numbers with rare outliers are not.

A sample is encoded three times, which for a small file takes longer than the file itself. Even counting its values takes a quarter of the time of
a tiny file. So a layout is reused for files of the table with a similar row count and similar column widths, for up to ``kept_rows`` rows.
Any layout is valid for any rows; a worse one is only larger.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lsm.keys.encoding import one_array
from manifest.io.file_cache import SHARED
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import arrow_array, numpy_array

_MAX_INT64_DIGITS = 18
_BYTES_A_NAME = 200
_SAVING = 0.1
"""Minimum saving of a codec or of differences, as a fraction of the column."""
_AS_SMALL = 1.05
"""Maximum size of differences relative to compressed values. They are decoded several times faster."""
_DIFFERENCES = "DELTA_BINARY_PACKED"


@dataclass(frozen=True)
class ColumnLayout:
    """Layout of leaf columns, by path.

    Lists columns with a dictionary, stored as differences, compressed, and with statistics (None: all columns).
    """

    dictionary: Sequence[str]
    differences: Collection[str] = ()
    compressed: Collection[str] | None = None
    bounded: Sequence[str] | None = None

    def settings(self, codec: str, level: int | None, codecs: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
        """Return the arguments of ``pq.ParquetWriter``.

        ``codecs``: codec of each leaf column that the options name.
        """
        arguments: dict[str, Any] = {"use_dictionary": list(self.dictionary)}
        arguments["write_statistics"] = True if self.bounded is None else list(self.bounded)
        if self.differences:
            arguments["column_encoding"] = dict.fromkeys(self.differences, _DIFFERENCES)
        if self.compressed is None:
            return arguments | {"compression": codec, "compression_level": level}
        codec_by_leaf = {**dict.fromkeys(self.compressed, codec), **codecs}
        arguments["compression"] = codec_by_leaf or "none"
        if level is not None:
            arguments["compression_level"] = {leaf: level for leaf, of_leaf in codec_by_leaf.items() if of_leaf == codec}
        return arguments


def leaf_codecs(schema: Any, codec_by_column: Mapping[str, str]) -> dict[str, str]:
    """Return the codec of each leaf of columns with one of their own."""
    return {
        leaf: codec for name, codec in codec_by_column.items() if name in schema.names for leaf in _leaves(name, schema.field(name).type)
    }


def with_every_codec(layout: ColumnLayout, schema: Any) -> ColumnLayout:
    """Return a layout that names the compressed leaves."""
    if layout.compressed is not None:
        return layout
    return replace(layout, compressed=[leaf for field in schema for leaf in _leaves(field.name, field.type)])


def column_layout(
    rows: Any, plain: frozenset[str], codec: str, level: int | None, *, by_sample: bool, table: str | None = None
) -> ColumnLayout:
    """Choose the layout of a file that begins with ``rows``.

    ``rows`` have the encoded types.

    Args:
        rows: Rows of the first row group.
        plain: Columns without a dictionary.
        codec: Arrow name of the file's codec.
        level: Compression level. None: the codec has none.
        by_sample: False: compress every column, and store none as differences.
        table: Cache key for sampled column layouts (the table path). None: sample these rows.
    """
    bulky = [name for name in rows.schema.names if _is_bulky(rows.column(name))] if rows.nbytes > thresholds.bulky else []
    if not bulky:
        return _layout(rows, plain, codec, level, by_sample=by_sample, table=table)
    small_columns = rows.drop_columns(bulky)
    layout = _layout(small_columns, plain, codec, level, by_sample=by_sample, table=table)
    large = [path for name in bulky for path in _leaves(name, rows.schema.field(name).type)]
    compressed = None if layout.compressed is None else [*layout.compressed, *large]
    return replace(
        layout, compressed=compressed, bounded=[path for field in small_columns.schema for path in _leaves(field.name, field.type)]
    )


def _is_bulky(column: Any) -> bool:
    """Return whether values of a column exceed ``bulky`` bytes.

    For texts and binaries any value, for nested columns the mean.
    """
    kind = column.type
    if pa.types.is_nested(kind):
        return bool(column.nbytes > thresholds.bulky * max(1, len(column)))
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind)) or column.nbytes <= thresholds.bulky:
        return False
    return bool((pc.max(pc.binary_length(column)).as_py() or 0) > thresholds.bulky)


@dataclass(frozen=True)
class _Kept:
    """A cached layout, its column widths, and the remaining rows."""

    layout: ColumnLayout
    widths: Any
    rows: int

    def holds(self, widths: Any) -> bool:
        """Return whether the columns have similar widths."""
        # An empty column is not similar to a filled one.
        return bool(np.all(np.abs(widths - self.widths) <= 1 + np.maximum(widths, self.widths) / 2))


def _widths(rows: Any) -> Any:
    """Return the bytes per row of each column, without nulls."""
    return np.array([column.nbytes * (len(column) - column.null_count) / len(column) ** 2 for column in rows.columns])


def _layout(rows: Any, plain: frozenset[str], codec: str, level: int | None, *, by_sample: bool, table: str | None) -> ColumnLayout:
    # A table without columns has no rows: all columns were bulky.
    tried = by_sample and codec != "none" and rows.num_columns > 0 and rows.num_rows >= thresholds.fewest_rows
    if table is None or not rows.num_rows:
        return _choose(rows, plain, codec, level, tried=tried)
    key = ("column layout", table, rows.schema, plain, codec, level, tried, int(rows.num_rows).bit_length())
    cached: _Kept | None = SHARED.get(key)
    widths = _widths(rows)
    if cached is None or cached.rows < rows.num_rows or not cached.holds(widths):
        cached = _Kept(_choose(rows, plain, codec, level, tried=tried), widths, thresholds.kept_rows)
    SHARED.put(key, replace(cached, rows=cached.rows - rows.num_rows), _BYTES_A_NAME * (1 + 2 * rows.num_columns))
    return cached.layout


def _choose(rows: Any, plain: frozenset[str], codec: str, level: int | None, *, tried: bool) -> ColumnLayout:
    return _choose_by_sample(rows, plain, codec, level) if tried else ColumnLayout(dictionary_columns(rows, plain))


def _choose_by_sample(rows: Any, plain: frozenset[str], codec: str, level: int | None) -> ColumnLayout:
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
    """Return sample rows from two places, each with adjacent rows."""
    if rows.num_rows <= 2 * thresholds.trial_rows:
        return rows
    return pa.concat_tables([rows.slice(0, thresholds.trial_rows), rows.slice(rows.num_rows // 2, thresholds.trial_rows)])


def _trial(sample: Any, settings: dict[str, Any], shares: float) -> dict[str, float]:
    """Return the estimated size of every leaf column.

    ``shares`` is the number of samples in the row group. The dictionary is counted once.
    """
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, sample.schema, store_decimal_as_integer=True, store_schema=False, **{**settings, "write_statistics": False}
    ) as writer:
        writer.write_table(sample)
    group = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
    size_by_leaf = {}
    for column in map(group.column, range(group.num_columns)):
        dictionary = column.data_page_offset - column.dictionary_page_offset if column.has_dictionary_page else 0
        size_by_leaf[column.path_in_schema] = dictionary + shares * (column.total_compressed_size - dictionary)
    return size_by_leaf


def _is_whole_number(kind: Any) -> bool:
    """Return whether values are stored as INT32 or INT64."""
    if pa.types.is_decimal(kind):
        return not _is_wide_decimal(kind)
    if pa.types.is_timestamp(kind):
        return bool(kind.unit != "ns")
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_time32(kind))


def dictionary_columns(rows: Any, plain: frozenset[str]) -> list[str]:
    """Return the leaf columns to store with a dictionary.

    Their values repeat often in a sample. Leaves of nested columns are always included. Decimals of more than 18 digits never are.

    >>> dictionary_columns(pa.table({"id": [1, 2, 3, 4], "city": ["Oslo"] * 4}), frozenset())
    ['city']
    """
    step = max(1, min(rows.num_rows, thresholds.sample_window) // thresholds.sample_rows)
    sample = rows if rows.num_rows <= thresholds.sample_rows else rows.take(arrow_array(np.arange(0, thresholds.sample_rows * step, step)))
    leaves: list[str] = []
    for field in rows.schema:
        if pa.types.is_dictionary(field.type):
            leaves.append(field.name)
        elif pa.types.is_nested(field.type):
            leaves += _leaves(field.name, field.type)
        # Paimon's reader looks up decimals of more than 18 digits without the leading bytes that fixed-length values have,
        # misses them in the dictionary, and drops matching rows.
        elif field.name not in plain and not pa.types.is_boolean(field.type) and not _is_wide_decimal(field.type):
            distinct = _distinct(sample.column(field.name), is_complete=sample is rows)
            if thresholds.repeats * distinct <= rows.num_rows and distinct <= thresholds.most_distinct:
                leaves.append(field.name)
    return leaves


def _distinct(sample: Any, *, is_complete: bool) -> float:
    """Estimate the number of distinct values (Chao's estimate)."""
    if pa.types.is_integer(sample.type) and not sample.null_count:
        counts = np.unique(numpy_array(one_array(sample)), return_counts=True)[1]
    else:
        counts = numpy_array(sample.value_counts().field("counts"))
    # The estimate uses the values that occur once and twice in the sample.
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    if is_complete or not once:
        return len(counts)
    return len(counts) + once * once / (2 * twice) if twice else math.inf


def _is_wide_decimal(kind: Any) -> bool:
    return bool(pa.types.is_decimal(kind) and kind.precision > _MAX_INT64_DIGITS)


def _leaves(path: str, kind: Any) -> Iterator[str]:
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            yield from _leaves(f"{path}.{kind.field(index).name}", kind.field(index).type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path
