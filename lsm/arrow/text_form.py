"""Forms of text columns in writes, compactions and reads.

Rows in key order are scattered over a large input, so each value costs a cache miss, and each text two. Texts with few distinct
values become dictionary arrays: the codes fit the cache, and the Parquet encoder accepts them. Other texts become views, which are copied
with one access to the text. Decoding, filtering and merging codes is several times faster too. Expanding the remaining codes
costs less than decoding all of them as plain texts.

Readers have an argument ``dictionaries``: the columns whose texts may be returned as dictionary arrays. Others are always plain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import arrow_array

DICTIONARY = pa.dictionary(pa.int32(), pa.string())
"""Type of texts with few distinct values, for the encoder. Without nulls, because the encoder's bounds of dictionaries with nulls are too wide."""
_SHORT = 4096
"""Texts that are always returned as a dictionary, and the size of a sample of more."""
_FEW = 8
"""Mean number of equal texts in a sample from which texts are few."""
_SIXTEEN_BYTES = pa.decimal128(38)


class TextForm(Enum):
    """Form of an Arrow array.

    ``DICTIONARY``: codes of few distinct texts, from a decoder to an encoder. Only columns without nulls may reach an encoder in this form,
    because its bounds of dictionaries with nulls are too wide. ``VIEW``: only for the input of ``gather``. ``PLAIN``: all other arrays.
    """

    PLAIN = "plain"
    DICTIONARY = "dictionary"
    VIEW = "view"

    @classmethod
    def of(cls, array: Any) -> TextForm:
        """Return the form of an array.

        >>> TextForm.of(pa.array(["a"]).dictionary_encode()), TextForm.of(pa.array([1]))
        (<TextForm.DICTIONARY: 'dictionary'>, <TextForm.PLAIN: 'plain'>)
        """
        if pa.types.is_dictionary(array.type):
            return cls.DICTIONARY
        return cls.VIEW if pa.types.is_string_view(array.type) else cls.PLAIN


def plain_text(array: Any) -> Any:
    """Expand a dictionary array. Return other arrays unchanged.

    >>> plain_text(pa.array(["a", "b", "a"]).dictionary_encode()).type
    DataType(string)
    """
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def plain_texts(rows: Any, dictionaries: Collection[str] = ()) -> Any:
    """Expand the dictionaries of a table or batch.

    Columns in ``dictionaries`` are not expanded. Returns the same object if no column is expanded.
    """
    if not any(map(pa.types.is_dictionary, rows.schema.types)):
        return rows
    names = rows.schema.names
    arrays = [column if name in dictionaries else plain_text(column) for name, column in zip(names, rows.columns, strict=True)]
    if all(array is column for array, column in zip(arrays, rows.columns, strict=True)):
        return rows
    fields = [field.with_type(array.type) for field, array in zip(rows.schema, arrays, strict=True)]  # keep NOT NULL fields
    return type(rows).from_arrays(arrays, schema=pa.schema(fields))


def coded_texts(batches: Iterable[pa.RecordBatch], schema: pa.Schema, dictionaries: Collection[str], *, choose: bool = False) -> pa.Table:
    """Build a table with one dictionary per column in ``dictionaries``.

    The batches have ``schema``; their texts may have any form. With ``choose``, only columns with few distinct texts become dictionaries.
    These are columns of which at least half of the rows come as dictionaries, or repeat in a sample. A short column always is one.

    >>> batches = [pa.record_batch({"a": pa.array(["x", "y"])}), pa.record_batch({"a": pa.array(["y", None]).dictionary_encode()})]
    >>> coded = coded_texts(batches, batches[0].schema, {"a"})
    >>> coded["a"].type, [chunk.dictionary.to_pylist() for chunk in coded["a"].chunks]
    (DictionaryType(dictionary<values=string, indices=int32, ordered=0>), [['x', 'y'], ['x', 'y']])
    """
    batch_list = list(batches)
    columns = [[batch.column(index) for batch in batch_list] for index in range(len(schema))]
    fields = []
    for index, field in enumerate(schema):
        if field.name not in dictionaries:
            fields.append(field)
        elif choose and not _are_few(columns[index]):
            columns[index] = list(map(plain_text, columns[index]))
            fields.append(field)
        else:
            columns[index] = list(map(_dictionary, columns[index]))
            fields.append(field.with_type(DICTIONARY))
    arrays = [pa.chunked_array(chunks, field.type) for chunks, field in zip(columns, fields, strict=True)]
    return pa.table(arrays, pa.schema(fields, schema.metadata)).unify_dictionaries()


def _are_few(chunks: Sequence[Any]) -> bool:
    """Return whether a dictionary fits a text column.

    It fits a short column, and one with at least half of its texts in chunks that repeat texts.
    """
    count = sum(map(len, chunks))
    return count <= _SHORT or 2 * sum([len(chunk) for chunk in chunks if pa.types.is_dictionary(chunk.type) or _repeats(chunk)]) >= count


def _repeats(texts: Any) -> bool:
    sample = _sample(texts, _SHORT)
    return bool(_FEW * pc.count_distinct(sample).as_py() < len(sample))


def _sample(texts: Any, count: int) -> Any:
    """Return about ``count`` texts, evenly spaced."""
    return texts.take(arrow_array(np.arange(0, len(texts), max(1, len(texts) // count))))


def _dictionary(texts: Any) -> Any:
    encoded = texts if TextForm.of(texts) is TextForm.DICTIONARY else texts.dictionary_encode()
    return encoded if encoded.type == DICTIONARY else encoded.cast(DICTIONARY)


def encode_for_gather(column: Any) -> Any:
    """Encode a text array for ``gather``.

    Few distinct texts in a sample and no nulls: a dictionary array. Other texts: a view array. Other types are returned unchanged.

    >>> encode_for_gather(pa.array(["a", "b", "a", "a", "b", "a"])).type, encode_for_gather(pa.array(["a", "b"])).type, encode_for_gather(pa.array([1])).type
    (DictionaryType(dictionary<values=string, indices=int8, ordered=0>), DataType(string_view), DataType(int64))
    """
    if not pa.types.is_string(column.type):
        return column
    sample = _sample(column, thresholds.text_sample_rows)
    distinct = pc.count_distinct(sample).as_py()
    if not column.null_count and distinct <= thresholds.text_sample_distinct and 2 * distinct < len(sample):
        encoded = column.dictionary_encode()
        if len(encoded.dictionary) < thresholds.text_dictionary:
            codes = encoded.indices.cast(pa.int8() if len(encoded.dictionary) <= np.iinfo(np.int8).max else pa.int16())
            return pa.DictionaryArray.from_arrays(codes, encoded.dictionary)
    return column.cast(pa.string_view())


def gather(column: Any, rows: Any) -> Any:
    """Return the values of an encoded array at ``rows``.

    ``column`` is a result of ``encode_for_gather``, ``rows`` an Arrow array of positions. Texts are plain, or dictionary arrays with 32-bit codes.

    >>> gather(encode_for_gather(pa.array(["c", "a"])), pa.array([1, 0])).to_pylist()
    ['a', 'c']
    """
    form = TextForm.of(column)
    if form is TextForm.VIEW:
        return _texts(column, rows)
    if form is TextForm.DICTIONARY:
        return pa.DictionaryArray.from_arrays(column.indices.take(rows).cast(DICTIONARY.index_type), column.dictionary)
    return column.take(rows)


def concat_tables(pieces: Sequence[Any]) -> Any:
    """Concatenate tables with the same columns.

    A text column with dictionaries in all tables gets one dictionary.
    """
    alike = all(piece.schema.types == pieces[0].schema.types for piece in pieces)
    return pa.concat_tables(pieces if alike else [plain_texts(piece) for piece in pieces]).unify_dictionaries()


def _texts(views: Any, rows: Any) -> Any:
    """Copy texts of a view array."""
    # Gather the fixed-width views first, then copy all texts at once.
    validity, wide, *data = views.buffers()
    wide = pa.Array.from_buffers(_SIXTEEN_BYTES, len(views), [None, wide], offset=views.offset).take(rows).buffers()[1]
    taken_validity = pc.is_valid(views).take(rows).buffers()[1] if validity is not None and views.null_count else None
    return pa.Array.from_buffers(pa.string_view(), len(rows), [taken_validity, wide, *data]).cast(pa.string())


def codes_fit(array: Any) -> bool:
    """Return whether all codes are in the dictionary."""
    # A damaged page header can leave the dictionary empty. Checksums do not cover page headers.
    codes = pc.min_max(array.indices)
    low, high = codes["min"].as_py(), codes["max"].as_py()
    return bool(low is None or (low >= 0 and high < len(array.dictionary)))
