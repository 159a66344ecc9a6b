"""Default values of columns (Paimon's ``CastUtils``, ``DefaultValueRow``).

They are text in the schema. Writers use them for null.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from fileindex.base.column_type import BINARIES, STRINGS, Kind
from manifest.io.errors import UnsupportedTable
from manifest.types.data_type import DataField

_READ_AS_TEXT = frozenset(
    {
        Kind.BOOLEAN,
        Kind.TINYINT,
        Kind.SMALLINT,
        Kind.INT,
        Kind.BIGINT,
        Kind.FLOAT,
        Kind.DOUBLE,
        Kind.DECIMAL,
        Kind.DATE,
        Kind.TIMESTAMP,
    }
)


@lru_cache(maxsize=1024)
def default_scalar(field: DataField) -> pa.Scalar | None:
    """Return the column's default as an Arrow scalar, or None.

    Raises ``UnsupportedTable`` with the column if the text is not a value of the type. Also for types whose text each engine parses by its
    own rules: local-zoned timestamps (by the session's zone), TIME, BINARY and constructed types.

    >>> from manifest.types.data_type import DataType
    >>> default_scalar(DataField(0, "n", DataType(Kind.INT), default_value=" 42"))
    <pyarrow.Int32Scalar: 42>
    """
    text, data_type = field.default_value, field.type
    if text is None:
        return None
    if (data_type.kind is Kind.VARCHAR and len(text) <= data_type.length) or (
        data_type.kind is Kind.CHAR and len(text) == data_type.length
    ):
        return pa.scalar(text, data_type.arrow)
    if data_type.kind is Kind.VARBINARY and len(text.encode()) <= data_type.length:
        return pa.scalar(text.encode(), data_type.arrow)
    if data_type.kind not in _READ_AS_TEXT:
        unfit = data_type.kind in STRINGS | BINARIES
        raise UnsupportedTable(
            f"column '{field.name}': default value '{text}' of type {data_type} {'does not fit' if unfit else 'is not supported'}"
        )
    try:
        return pa.scalar(text.strip()).cast(data_type.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedTable(f"column '{field.name}': default value '{text}' is not a valid {data_type} ({error})") from error


__all__ = ["default_scalar"]
