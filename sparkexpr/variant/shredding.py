"""Plain VARIANTs from shredded ones, which have typed parts beside ``value`` (Parquet's Variant Shredding).

Typed leaves are encoded by column. Objects and arrays are joined one by one, as no two need have the same fields.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import CorruptVariant
from sparkexpr.values.variant_type import VARIANT_ARROW, variant_array
from sparkexpr.variant.codes import Basic, Primitive, primitive_header
from sparkexpr.variant.decoding import fields, key_names, value_end
from sparkexpr.variant.encoding import Keys, encode, encode_array, encode_object

TYPED = "typed_value"
"""Name of the typed part."""
_Values: TypeAlias = list[bytes | None]
"""Encoded values, None for a missing one."""


def plain_variants(array: Any) -> Any:
    r"""Return the rows of a column of a Parquet file as a VARIANT array.

    array: Struct with ``metadata``, ``value`` and possibly ``typed_value``.

    Raises ``CorruptVariant``.

    >>> typed = pa.array([7, None], pa.int32())
    >>> parts = [pa.array([b"\x01\x00\x00"] * 2), pa.array([None, b"\x04"]), typed]
    >>> [row["value"] for row in plain_variants(pa.StructArray.from_arrays(parts, ["metadata", "value", "typed_value"])).to_pylist()]
    [b'\x0c\x07', b'\x04']
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    names = [field.name for field in array.type]
    metadata = array.field("metadata").cast(pa.binary())
    nulls = array.is_null() if array.null_count else None
    values = array.field("value").cast(pa.binary()) if "value" in names else pa.nulls(len(array), pa.binary())
    if TYPED in names:
        typed_rows = np.flatnonzero(np.asarray(array.is_valid()) & np.asarray(array.field(TYPED).is_valid()))
        if len(typed_rows):
            values, metadata = _rebuild(array, typed_rows, values, metadata)
    if (np.asarray(values.is_null()) & np.asarray(array.is_valid())).any():
        raise CorruptVariant("a row has neither a value nor a typed value")
    return variant_array(values.fill_null(b""), metadata.fill_null(b""), nulls).cast(VARIANT_ARROW)


def _rebuild(array: Any, row_numbers: Any, values: Any, metadata: Any) -> tuple[Any, Any]:
    """Return values and metadata, with those of rows ``row_numbers`` joined from their parts."""
    shredded = array.take(pa.array(row_numbers))
    coded = shredded.field("metadata").dictionary_encode()
    distinct_keys = [_RowKeys(encoded_keys) for encoded_keys in coded.dictionary.to_pylist()]
    keys = [distinct_keys[code] for code in coded.indices.to_pylist()]
    all_values, all_metadata = values.to_pylist(), metadata.to_pylist()
    for row, value in zip(row_numbers.tolist(), _group(shredded, keys), strict=True):
        all_values[row] = value
    for row, row_keys in zip(row_numbers.tolist(), keys, strict=True):
        all_metadata[row] = row_keys.encoded()
    return pa.array(all_values, pa.binary()), pa.array(all_metadata, pa.binary())


class _RowKeys:
    """Keys of the metadata of a row. Names of typed fields that it lacks are added behind them."""

    def __init__(self, metadata: bytes) -> None:
        self.names = key_names(metadata)
        self._metadata: bytes | None = metadata
        self._keys = Keys()
        for key_number, name in enumerate(self.names):
            if self._keys.id_of(name) != key_number:
                raise CorruptVariant(f"the metadata of a shredded value has the key {name!r:.40} twice")

    def id_of(self, name: str) -> int:
        """Return the number of a key."""
        key_number = self._keys.id_of(name)
        if key_number >= len(self.names):
            self._metadata = None
        return key_number

    def encoded(self) -> bytes:
        """Return the metadata with all keys."""
        return self._keys.metadata() if self._metadata is None else self._metadata


def _group(array: Any, keys: Sequence[_RowKeys]) -> _Values:
    """Return the values of a struct of ``value`` and ``typed_value``."""
    if not pa.types.is_struct(array.type):
        raise CorruptVariant(f"a part of a shredded value has the type {array.type}, which is not a group of value and {TYPED}")
    # flatten() makes what lies below a null a null: Arrow leaves it undefined.
    parts = dict(zip(array.type.names, array.flatten(), strict=True))
    values: _Values = parts["value"].to_pylist() if "value" in parts else [None] * len(array)
    if TYPED not in parts:
        return values
    typed = parts[TYPED]
    if pa.types.is_struct(typed.type):
        return _objects(typed, values, keys)
    if pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type):
        typed_values: _Values = _arrays(typed, keys)
    else:
        typed_values = _leaves(typed)
    return [value if typed_value is None else typed_value for typed_value, value in zip(typed_values, values, strict=True)]


def _objects(typed: Any, values: _Values, keys: Sequence[_RowKeys]) -> _Values:
    members = [(name, _group(part, keys)) for name, part in zip(typed.type.names, typed.flatten(), strict=True)]
    shredded = {name for name, _ in members}
    encoded = list(values)
    for row, there in enumerate(typed.is_valid().to_pylist()):
        if there:
            typed_fields = {name: (keys[row].id_of(name), part) for name, parts in members if (part := parts[row]) is not None}
            rest = values[row]
            if rest is not None:
                typed_fields |= _rest_of(rest, keys[row], shredded)
            encoded[row] = encode_object(typed_fields)
    return encoded


def _rest_of(value: bytes, keys: _RowKeys, shredded: set[str]) -> dict[str, tuple[int, bytes]]:
    """Return the fields of an object that are not typed."""
    if not value or value[0] & 3 != Basic.OBJECT:
        raise CorruptVariant("a row has typed fields, and a value that is not an object")
    untyped = {
        name: (keys.id_of(name), value[start : value_end(value, start, end)])
        for name, (start, end) in fields(value, 0, len(value), keys.names)
    }
    if duplicates := shredded & untyped.keys():
        raise CorruptVariant(f"the field {min(duplicates)!r:.40} is both typed and in the value of a row")
    return untyped


def _arrays(typed: Any, keys: Sequence[_RowKeys]) -> _Values:
    lengths = np.asarray(pc.fill_null(pc.list_value_length(typed), 0)).astype(np.int64)
    ends = np.cumsum(lengths)
    owners = np.repeat(np.arange(len(typed)), lengths).tolist()
    elements = _group(typed.flatten(), [keys[owner] for owner in owners])  # without those of null lists
    encoded: _Values = []
    for row, there in enumerate(typed.is_valid().to_pylist()):
        parts = elements[ends[row] - lengths[row] : ends[row]]
        if there and None in parts:
            raise CorruptVariant("a typed array has an element without a value")
        encoded.append(encode_array([part for part in parts if part is not None]) if there else None)
    return encoded


def _leaves(typed: Any) -> _Values:
    """Return the values of a typed column of scalars."""
    kind = typed.type
    if pa.types.is_date32(kind):
        return _packed(typed.view(pa.int32()), Primitive.DATE, "<i")
    if pa.types.is_timestamp(kind) and kind.unit in {"ms", "us"}:
        micros = typed.cast(pa.timestamp("us", kind.tz)).view(pa.int64())
        return _packed(micros, Primitive.TIMESTAMP_NTZ if kind.tz is None else Primitive.TIMESTAMP, "<q")
    if pa.types.is_float32(kind):
        return _packed(typed, Primitive.FLOAT, "<f")
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return [None if value is None else primitive_header(Primitive.UUID) + value for value in typed.to_pylist()]
    is_encodable: tuple[Callable[[Any], bool], ...] = (
        pa.types.is_boolean,
        pa.types.is_signed_integer,
        pa.types.is_float64,
        pa.types.is_decimal,
        pa.types.is_string,
        pa.types.is_binary,
    )
    if not any(test(kind) for test in is_encodable):
        raise CorruptVariant(f"a typed value has the type {kind}, which no shredded VARIANT has")
    return [None if value is None else encode(value).value for value in typed.to_pylist()]


def _packed(array: Any, kind: Primitive, form: str) -> _Values:
    header = primitive_header(kind)
    return [None if value is None else header + struct.pack(form, value) for value in array.to_pylist()]
