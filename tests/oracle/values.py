"""Columns of the tables and their values: few of each type, so that they meet again, and the odd ones among them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark_paimon import Variant

Row = dict[str, Any]

TYPES = {
    "id": "INT",
    "p": "INT",
    "i": "INT",
    "e": "INT",
    "b": "BIGINT",
    "s": "STRING",
    "d": "DOUBLE",
    "n": "DECIMAL(9, 2)",
    "t": "TIMESTAMP(6)",
    "dt": "DATE",
    "bo": "BOOLEAN",
    "l": "ARRAY<INT>",
    "r": "ROW<x INT, y STRING>",
    "m": "MAP<STRING, INT>",
    "z": "INT",
    "k": "TINYINT",
    "h": "SMALLINT",
    "g": "INT",
    "g2": "STRING",
    "v": "VARIANT",
}
"""Paimon types by identity. ``z`` is added by a change of the schema, ``e`` may be widened, ``s`` renamed, ``g2`` replaces ``g``."""

VARIANTS = [{"a": 1}, {"a": 2, "b": "x"}, {"a": None}, {"a": "t", "l": [0, 5]}, {"l": []}, 3, "x"]
"""Python values of VARIANTs. Their fields are small integers, texts, or not there."""


_STORED = [{"value": made.value, "metadata": made.metadata} for made in map(Variant.of, VARIANTS)]


def path_of(variant: Row | None, path: str) -> Any:
    """The value at ``a``, ``b`` or ``l[1]`` of a stored VARIANT. None if it is not there, or of another type."""
    value = None if variant is None else VARIANTS[_STORED.index(variant)]
    fields = value if isinstance(value, dict) else {}
    if path == "l[1]":
        return fields["l"][1] if len(fields.get("l", ())) > 1 else None
    at = fields.get(path)
    return at if isinstance(at, int if path == "a" else str) else None


VALUES: dict[str, list[Any]] = {
    "i": [None, 0, 1, 2, 3, -1, 7],
    "e": [None, 0, 1, 2**31 - 1, -(2**31), 3, 4],
    "b": [None, 0, 1, -(2**63), 2**63 - 1, 2**53 + 1, 5],
    "s": [None, "", "a", "b", "ab", "a\0", "A", "ä", "😀", "it's", "q%_", "a" * 17, "\U0010ffff" * 17, " a "],
    "d": [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5, 0.1],
    "n": [None, Decimal("0.00"), Decimal("1.25"), Decimal("-1.25"), Decimal("9999999.99"), Decimal("-9999999.99")],
    "t": [None, datetime(1970, 1, 1), datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(1969, 12, 31, 23, 59, 59)],  # noqa: DTZ001
    "dt": [None, date(1970, 1, 1), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)],
    "bo": [None, True, False],
    "l": [None, [], [0], [1, None], [None], [2, 0], [0, 0, 3]],
    "r": [None, {"x": None, "y": None}, {"x": 0, "y": "y0"}, {"x": 1, "y": None}, {"x": 2, "y": ""}, {"x": None, "y": "a"}],
    "m": [None, [], [("k", 1)], [("k", None), ("j", 2)], [("j", 0)], [("k", 3), ("", 1)]],
    "z": [None, 0, 1, 5],
    "k": [None, 0, 1, -128, 127, 5],
    "h": [None, 0, 1, -(2**15), 2**15 - 1, 300],
    "g": [None, 0, 1, 2],
    "g2": [None, "0", "1", "a"],
    "v": [None, *_STORED],
}


def order(value: Any) -> Any:
    """A key by which Spark compares values: NaN equals itself and is the greatest, -0.0 equals 0.0."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0 if value else 0.0)
    return value


def bits(value: Any) -> Any:
    """A value that compares as stored: -0.0 is not 0.0, NaN equals itself, dicts and lists are hashable."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else repr(value)
        case dict():
            return tuple((name, bits(part)) for name, part in sorted(value.items()))
        case list() | tuple():
            return tuple(map(bits, value))
        case Decimal():
            return str(value)
    return (type(value).__name__, value) if isinstance(value, bool) else value


@dataclass(frozen=True)
class Names:
    """Names and types of the columns after some changes of the schema, by identity."""

    names: tuple[tuple[str, str], ...]
    types: tuple[tuple[str, str], ...]
    fields: tuple[str, ...] = ("x", "y")
    prefix: str = ""
    quote: str = "`"

    def text(self, ident: str) -> str:
        """The column in SQL text."""
        return f"{self.prefix}{self.quote}{self.of(ident)}{self.quote}"

    def quoted(self, quote: str) -> Names:
        return replace(self, quote=quote)

    def of(self, ident: str) -> str:
        return dict(self.names)[ident]

    def has(self, ident: str) -> bool:
        return ident in dict(self.names)

    def by_ident(self, row: dict[str, Any]) -> Row:
        """A row of the product with identities for names."""
        idents = {name: ident for ident, name in self.names}
        return {idents[name]: value for name, value in row.items()}

    def covers(self, idents: set[str]) -> bool:
        """Whether the columns and the fields of ``r`` are there."""
        return idents <= {*self.idents, *(f"r.{field}" for field in self.fields)}

    @property
    def idents(self) -> list[str]:
        return [ident for ident, _ in self.names]
