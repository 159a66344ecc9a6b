"""Values of VARIANT columns in Python programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from sparkexpr.errors import InvalidArgument
from sparkexpr.values.time_zone import UTC
from sparkexpr.values.variant_type import VARIANT_ARROW, variant_array


@dataclass(frozen=True, slots=True)
class Variant:
    """A value of a VARIANT column.

    Rows to write may have plain Python values instead. ``Variant(...)`` marks JSON texts, and the null of JSON, which is not NULL.

    >>> Variant.of({"tags": ["a", "b"], "price": 1.5}).to_json()
    '{"price":1.5,"tags":["a","b"]}'
    >>> Variant.from_json('{"a": [1, 2]}').to_python()
    {'a': [1, 2]}
    """

    value: bytes
    """Headers, numbers and texts in Parquet's Variant Binary Encoding."""
    metadata: bytes
    """Keys of the objects in ``value``."""

    @classmethod
    def of(cls, value: object) -> Self:
        """Return a Python value as a VARIANT.

        Raises ``InvalidArgument`` for a value that is not None, bool, int, float, Decimal, str, bytes, date, datetime, UUID, or a list or dict of these.
        """
        from sparkexpr.variant import encoding

        return cls(*encoding.encode(value))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return a JSON text as a VARIANT.

        Numbers with a decimal form become DECIMAL, as in Spark's ``parse_json``. Raises ``InvalidArgument`` for invalid JSON.
        """
        from sparkexpr.variant import encoding

        return cls(*encoding.encode_json(text))

    def to_python(self) -> Any:
        """Return the value as Python objects.

        Raises ``CorruptVariant`` for damaged bytes, ``OutOfRange`` for a date outside of the years 1 to 9999.
        """
        from sparkexpr.variant import decoding

        return decoding.decode(self.value, self.metadata)

    def to_json(self, zone: str = UTC) -> str:
        """Return the value as JSON text, as Spark's ``to_json`` does.

        zone: Time zone in which timestamps are shown.
        """
        from sparkexpr.variant import decoding

        return decoding.to_json(self.value, self.metadata, zone)

    @staticmethod
    def array(values: Iterable[object]) -> pa.Array:
        """Return Python values as an Arrow array of VARIANTs.

        None is NULL. A ``Variant`` stays as it is.

        >>> Variant.array([{"a": 1}, None]).is_null().to_pylist()
        [False, True]
        """
        return variant_column(values)

    @staticmethod
    def parse_array(texts: Any) -> pa.Array:
        """Return JSON texts as an Arrow array of VARIANTs.

        texts: Arrow array, pandas or polars Series, or list of texts. Equal texts are parsed once.

        Raises ``InvalidArgument`` for invalid JSON. The message has its row.
        """
        return parse_column(texts)

    @staticmethod
    def decode_array(array: Any) -> list[Any]:
        """Return an Arrow column of VARIANTs as Python objects.

        array: Array or ChunkedArray, such as ``table.scan().to_arrow()["v"]``. NULL is None, and so is the null of JSON.

        >>> Variant.decode_array(Variant.parse_array(['{"a": 1}', None]))
        [{'a': 1}, None]
        """
        from sparkexpr.variant import decoding

        return [None if pair is None else decoding.decode(*pair) for pair in _binaries(array)]

    @staticmethod
    def json_array(array: Any, zone: str = UTC) -> pa.Array:
        """Return an Arrow column of VARIANTs as JSON texts.

        zone: Time zone in which timestamps are shown.
        """
        from sparkexpr.variant import decoding

        return pa.array([None if pair is None else decoding.to_json(*pair, zone) for pair in _binaries(array)], pa.string())


def variant_column(values: Iterable[object]) -> Any:
    """Return Python values as a VARIANT array.

    None is a null row. Takes ``Variant``, PySpark's ``VariantVal``, dicts of the two binaries ``value`` and ``metadata``, and what ``encode`` takes.
    Raises ``InvalidArgument``.
    """
    from sparkexpr.variant import encoding

    plain = (value.as_py() if isinstance(value, pa.Scalar) else value for value in values)
    return _column([None if value is None else binaries_of(value) or encoding.encode(value) for value in plain])


def binaries_of(value: object) -> tuple[bytes, bytes] | None:
    r"""Return the binaries of a value that is already encoded, or None.

    >>> binaries_of(Variant(b"\x00", b"\x01\x00\x00")), binaries_of({"value": 1})
    ((b'\x00', b'\x01\x00\x00'), None)
    """
    if isinstance(value, dict):
        parts = (value.get("value"), value.get("metadata")) if value.keys() == {"value", "metadata"} else (None, None)
    elif isinstance(value, Variant) or type(value).__name__ == "VariantVal":
        parts = getattr(value, "value", None), getattr(value, "metadata", None)
    else:
        return None
    first, second = parts
    return (bytes(first), bytes(second)) if isinstance(first, bytes | bytearray) and isinstance(second, bytes | bytearray) else None


def parse_column(texts: Any, *, strict: bool = True) -> Any:
    """Return JSON texts as a VARIANT array.

    strict: If False, invalid JSON gives null.

    Raises ``InvalidArgument`` for invalid JSON. The message has its row.
    """
    from sparkexpr.variant import encoding

    array = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(texts, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not (
        pa.types.is_string(array.type) or pa.types.is_large_string(array.type) or pa.types.is_null(array.type) or "_view" in str(array.type)
    ):
        raise InvalidArgument(f"JSON texts are given as Arrow {array.type}; give an array of strings")
    encoded_by_text: dict[str | None, tuple[bytes, bytes] | None] = {None: None}
    encoded: list[tuple[bytes, bytes] | None] = []
    for row, text in enumerate(array.to_pylist()):
        if text not in encoded_by_text:
            try:
                encoded_by_text[text] = encoding.encode_json(text)
            except InvalidArgument as error:
                if strict:
                    raise InvalidArgument(f"row {row}: {error}") from error
                encoded_by_text[text] = None
        encoded.append(encoded_by_text[text])
    return _column(encoded)


def _column(encoded: list[tuple[bytes, bytes] | None]) -> Any:
    values, metadata = ([b"" if pair is None else pair[part] for pair in encoded] for part in range(2))
    nulls = pa.array([pair is None for pair in encoded], pa.bool_())
    return variant_array(pa.array(values, pa.binary()), pa.array(metadata, pa.binary()), nulls)


def _binaries(array: Any) -> list[tuple[bytes, bytes] | None]:
    if not pa.types.is_struct(array.type) or {field.name for field in array.type} != {field.name for field in VARIANT_ARROW}:
        raise InvalidArgument(f"an Arrow column of {array.type} does not hold VARIANTs; pass a column of structs of value and metadata")
    return [None if row is None else (row["value"], row["metadata"]) for row in array.to_pylist()]
