"""How a column of texts travels through a write, a compaction or a read: in one of three forms, which are told and changed here alone.

Rows in key order lie all over a large input, and every value costs a miss of the processor's cache, a text two. Texts of few distinct
values become dictionaries, whose codes fit the cache and which the Parquet encoder takes as they are; other texts become views, of which
a copy needs one look at the text. Decoding, filtering and merging codes is several times faster, too, and expanding what is left of them
costs less than decoding all of them as plain texts.

Who reads or drains rows is told in ``dictionaries`` the columns whose texts it may hand on as dictionaries; all others leave it plain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.thresholds import thresholds

DICTIONARY = pa.dictionary(pa.int32(), pa.string())
"""The form of texts of few distinct values on their way to the encoder. It bounds dictionaries with nulls too widely: they have none."""
_SIXTEEN_BYTES = pa.decimal128(38)


class TextForm(Enum):
    """Of an Arrow array.

    ``DICTIONARY``: codes of few distinct texts, from a decoder to an encoder. An encoder bounds dictionaries with nulls too widely, so
    that only columns without nulls reach it so. ``VIEW``: for the input of ``gather`` alone. ``PLAIN``: all else, texts or not.
    """

    PLAIN = "plain"
    DICTIONARY = "dictionary"
    VIEW = "view"

    @classmethod
    def of(cls, array: Any) -> TextForm:
        """The form of an array.

        >>> TextForm.of(pa.array(["a"]).dictionary_encode()), TextForm.of(pa.array([1]))
        (<TextForm.DICTIONARY: 'dictionary'>, <TextForm.PLAIN: 'plain'>)
        """
        if pa.types.is_dictionary(array.type):
            return cls.DICTIONARY
        return cls.VIEW if pa.types.is_string_view(array.type) else cls.PLAIN


def plain_text(array: Any) -> Any:
    """An array, expanded if it is a dictionary array.

    >>> plain_text(pa.array(["a", "b", "a"]).dictionary_encode()).type
    DataType(string)
    """
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def plain_texts(rows: Any, dictionaries: Collection[str] = ()) -> Any:
    """A table or batch with its dictionaries expanded, but those of ``dictionaries``; the same object if there are none to expand."""
    if not any(map(pa.types.is_dictionary, rows.schema.types)):
        return rows
    names = rows.schema.names
    arrays = [column if name in dictionaries else plain_text(column) for name, column in zip(names, rows.columns, strict=True)]
    if all(array is column for array, column in zip(arrays, rows.columns, strict=True)):
        return rows
    fields = [field.with_type(array.type) for field, array in zip(rows.schema, arrays, strict=True)]  # what is never null stays so
    return type(rows).from_arrays(arrays, schema=pa.schema(fields))


def coded_texts(batches: Iterable[pa.RecordBatch], schema: pa.Schema, dictionaries: Collection[str]) -> pa.Table:
    """Batches of ``schema`` as a table whose columns ``dictionaries`` have one dictionary each, however their texts come.

    >>> batches = [pa.record_batch({"a": pa.array(["x", "y"])}), pa.record_batch({"a": pa.array(["y", None]).dictionary_encode()})]
    >>> coded = coded_texts(batches, batches[0].schema, {"a"})
    >>> coded["a"].type, [chunk.dictionary.to_pylist() for chunk in coded["a"].chunks]
    (DictionaryType(dictionary<values=string, indices=int32, ordered=0>), [['x', 'y'], ['x', 'y']])
    """
    wanted = pa.schema([field.with_type(DICTIONARY) if field.name in dictionaries else field for field in schema], schema.metadata)

    def coded(array: Any, data_type: pa.DataType) -> Any:
        if data_type != DICTIONARY:
            return array
        found = array if TextForm.of(array) is TextForm.DICTIONARY else array.dictionary_encode()
        return found if found.type == DICTIONARY else found.cast(DICTIONARY)

    parts = [pa.RecordBatch.from_arrays(list(map(coded, batch.columns, wanted.types)), schema=wanted) for batch in batches]
    return pa.Table.from_batches(parts, wanted).unify_dictionaries()


def encode_for_gather(column: Any) -> Any:
    """A text array as a dictionary array if a sample shows few distinct texts and there is no null, else as a view array; others as they are.

    >>> encode_for_gather(pa.array(["a", "b", "a", "a", "b", "a"])).type, encode_for_gather(pa.array(["a", "b"])).type, encode_for_gather(pa.array([1])).type
    (DictionaryType(dictionary<values=string, indices=int8, ordered=0>), DataType(string_view), DataType(int64))
    """
    if not pa.types.is_string(column.type):
        return column
    step = max(1, len(column) // thresholds().text_sample_rows)
    sample = column.take(pa.array(np.arange(0, len(column), step)))
    distinct = pc.count_distinct(sample).as_py()
    if not column.null_count and distinct <= thresholds().text_sample_distinct and 2 * distinct < len(sample):
        encoded = column.dictionary_encode()
        if len(encoded.dictionary) < thresholds().text_dictionary:
            codes = encoded.indices.cast(pa.int8() if len(encoded.dictionary) <= np.iinfo(np.int8).max else pa.int16())
            return pa.DictionaryArray.from_arrays(codes, encoded.dictionary)
    return column.cast(pa.string_view())


def gather(column: Any, rows: Any) -> Any:
    """The values of a ``encode_for_gather`` array at ``rows`` (an Arrow array of positions): plain texts, or dictionary arrays with 32-bit codes.

    >>> gather(encode_for_gather(pa.array(["c", "a"])), pa.array([1, 0])).to_pylist()
    ['a', 'c']
    """
    form = TextForm.of(column)
    if form is TextForm.VIEW:
        return _texts(column, rows)
    if form is TextForm.DICTIONARY:
        return pa.DictionaryArray.from_arrays(column.indices.take(rows).cast(DICTIONARY.index_type), column.dictionary)
    return column.take(rows)


def joined(pieces: Sequence[Any]) -> Any:
    """Tables of the same columns as one; texts that are dictionaries in all of them have one dictionary."""
    alike = all(piece.schema.types == pieces[0].schema.types for piece in pieces)
    return pa.concat_tables(pieces if alike else [plain_texts(piece) for piece in pieces]).unify_dictionaries()


def _texts(views: Any, rows: Any) -> Any:
    """Plain texts of a view array: its fixed-width views are gathered, then all texts copied in one go."""
    validity, wide, *data = views.buffers()
    wide = pa.Array.from_buffers(_SIXTEEN_BYTES, len(views), [None, wide], offset=views.offset).take(rows).buffers()[1]
    known = pc.is_valid(views).take(rows).buffers()[1] if validity is not None and views.null_count else None
    return pa.Array.from_buffers(pa.string_view(), len(rows), [known, wide, *data]).cast(pa.string())


__all__ = [
    "DICTIONARY",
    "TextForm",
    "coded_texts",
    "encode_for_gather",
    "gather",
    "joined",
    "plain_text",
    "plain_texts",
]
