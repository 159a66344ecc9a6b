"""Values of each column type, and rows as things that compare by bits.

A date is a number of days, a time of milliseconds, a timestamp of its unit: ``pa.array`` reads these, and no Python type limits them.
A map is a list of pairs.
"""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Row = dict[str, Any]

SMALL = [0, 1, -1, 2, 3, 7]
_TEXTS = ["", "a", "a\0", "\0", "b", "ab", "a" * 16, "a" * 17, "\uffff" * 17, "\U0010ffff" * 17, "ä", "😀", "it's", 'q"%_\\', " ", "x" * 40]
_BYTES = [b"", b"\0", b"a", b"a\0", b"\xff" * 17, b"\xff", b"\x00\xff", b"b" * 40]
_FLOATS = [0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 1.0, 16777216.0]
_DAYS = [0, -1, 19000, 19001, -719162, 2932896]
_SECONDS = [0, 1, -1, 1_700_000_000, -62_135_596_800, 253_402_300_799]
_PART = st.fixed_dictionaries({"a": st.none() | st.sampled_from(SMALL), "b": st.none() | st.sampled_from(_TEXTS[:9])})


def _scaled(seconds: Sequence[int], unit: int, *rest: int) -> list[int]:
    return [*(second * unit for second in seconds), *rest]


SCALARS: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [*SMALL, -128, 127],
    "SMALLINT": [*SMALL, -(2**15), 2**15 - 1],
    "INT": [*SMALL, -(2**31), 2**31 - 1],
    "BIGINT": [*SMALL, -(2**63), 2**63 - 1, 2**53 + 1],
    "FLOAT": [*_FLOATS, 3.4028234663852886e38, 1.401298464324817e-45],
    "DOUBLE": [*_FLOATS, 0.1, 1.7976931348623157e308, 5e-324],
    "DECIMAL(4, 2)": [Decimal(text) for text in ("0.00", "1.25", "-1.25", "99.99", "-99.99", "0.01")],
    "DECIMAL(18, 3)": [Decimal(text) for text in ("0.000", "1.250", "999999999999999.999", "-999999999999999.999")],
    "DECIMAL(38, 10)": [Decimal(text) for text in ("0E-10", "1.2500000000", f"{'9' * 28}.9999999999", f"-{'9' * 28}.9999999999")],
    "STRING": _TEXTS,
    "VARCHAR(20)": _TEXTS[:-1],
    "BYTES": _BYTES,
    "VARBINARY(20)": _BYTES[:-1],
    "DATE": _DAYS,
    "TIME": [0, 1, 86_399_999, 3_600_000],
    "TIMESTAMP(3)": _scaled(_SECONDS, 10**3, 1, -1, 999),
    "TIMESTAMP(6)": _scaled(_SECONDS, 10**6, 1, -1, 1001),
    "TIMESTAMP(9)": _scaled(_SECONDS[:4], 10**9, 1, -1, 1_000_001),
    "TIMESTAMP_LTZ(3)": _scaled(_SECONDS, 10**3, 1, -1, 999),
    "TIMESTAMP_LTZ(6)": _scaled(_SECONDS, 10**6, 1, -1, 1001),
}
"""Few values of each type, so that they meet again: the ordinary, the ends of the range, and what formats confuse."""

NESTED: dict[str, st.SearchStrategy[Any]] = {
    "ARRAY<INT>": st.lists(st.none() | st.sampled_from(SMALL), max_size=3),
    "ARRAY<STRING>": st.lists(st.none() | st.sampled_from(_TEXTS), max_size=3),
    "MAP<STRING, INT>": st.dictionaries(st.sampled_from(["a", "b", "", "a\0"]), st.none() | st.sampled_from(SMALL), max_size=3).map(
        lambda entries: list(entries.items())
    ),
    "MAP<INT, ARRAY<DOUBLE>>": st.dictionaries(
        st.sampled_from(SMALL), st.none() | st.lists(st.none() | st.sampled_from(_FLOATS), max_size=2), max_size=2
    ).map(lambda entries: list(entries.items())),
    "ROW<a INT, b STRING>": _PART,
    "ARRAY<ROW<a INT, b STRING>>": st.lists(st.none() | _PART, max_size=2),
}

KEY_TYPES = [
    "INT",
    "BIGINT",
    "STRING",
    "DATE",
    "DECIMAL(18, 3)",
    "BYTES",
    "TIMESTAMP(6)",
    "DOUBLE",
    "BOOLEAN",
    "SMALLINT",
    "TIMESTAMP_LTZ(3)",
]
PARTITION_TYPES = ["INT", "STRING", "DATE", "BOOLEAN", "BIGINT", "TINYINT"]
PARTITION_TEXTS = ["", " ", "a", "a/b", "x=y", "ä", "__DEFAULT_PARTITION__", "a%2Fb", "."]


DrawnColumn = tuple[str, str, bool]
"""A column of rows in bulk: its name, its type, whether null is among its values."""


def bulk_rows(seed: int, count: int, columns: Sequence[DrawnColumn]) -> list[Row]:
    """Rows of values that mostly differ, the same for the same seed."""
    dice = random.Random(seed)
    return [{name: None if null and dice.random() < 0.1 else _common(dice, kind) for name, kind, null in columns} for _ in range(count)]


def _common(dice: random.Random, kind: str) -> Any:
    match kind:
        case "INT" | "BIGINT" | "TIMESTAMP(3)" | "TIMESTAMP(6)" | "TIMESTAMP(9)" | "TIMESTAMP_LTZ(3)" | "TIMESTAMP_LTZ(6)":
            return dice.randrange(400)
        case "SMALLINT" | "DATE" | "TIME":
            return dice.randrange(200)
        case "STRING" | "VARCHAR(20)":
            return f"{'a' * dice.randrange(3)}{dice.randrange(300)}"
        case "BYTES" | "VARBINARY(20)":
            return bytes([dice.randrange(3), dice.randrange(200)])
        case "DOUBLE" | "FLOAT":
            return dice.randrange(800) / 2
        case _ if kind in SCALARS:
            return dice.choice(SCALARS[kind])
        case "ARRAY<INT>":
            return [dice.randrange(9) for _ in range(dice.randrange(4))]
        case "ARRAY<STRING>":
            return [str(dice.randrange(9)) for _ in range(dice.randrange(4))]
        case "MAP<STRING, INT>":
            return [(key, dice.randrange(9)) for key in "abc"[: dice.randrange(4)]]
        case "ROW<a INT, b STRING>":
            return {"a": dice.randrange(9), "b": str(dice.randrange(9))}
        case _:
            return None


def values_of(kind: str) -> st.SearchStrategy[Any]:
    """Values of a type that are not null."""
    return NESTED[kind] if kind in NESTED else st.sampled_from(SCALARS[kind])


def arrow_rows(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """Rows as an Arrow table with the columns of ``schema``."""
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in schema]))


def plain_rows(found: pa.Table) -> list[Row]:
    """An Arrow table as rows of the values that are drawn here."""
    columns = {name: _plain(found.column(name)) for name in found.column_names}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        column = column.cast(pa.int64())
    return column.to_pylist()


def bits(value: Any) -> Any:
    """A value as one that hashes, and equals only what has its bits; all NaN are one."""
    match value:
        case bool() | None:
            return value
        case float():
            return "nan" if math.isnan(value) else struct.pack(">d", value)
        case Mapping():
            return tuple((name, bits(part)) for name, part in sorted(value.items()))
        case list() | tuple():
            return tuple(bits(part) for part in value)
        case _:
            return value


def bag(rows: Iterable[Row], names: Sequence[str]) -> Counter[Any]:
    """Rows without their order."""
    return Counter(tuple(bits(row.get(name)) for name in names) for row in rows)
