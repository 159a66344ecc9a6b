"""The beginning of a footer: its version and schema, the same bytes in all files that were written alike, so that they are decoded once."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from fileindex.base.lazy import cached_property
from lsm.parquet.fields import FileMetaData
from lsm.parquet.footer_structure import LeafColumn, leaf_columns
from lsm.parquet.thrift import Struct, decode_struct, encode_struct
from manifest.io.file_cache import SHARED
from manifest.schema.table_schema import TableSchema

_FIRST = 12
"""Bytes by which heads are looked for, fewer than any has; they tell the number of columns."""
_HEADS = 16
"""So many that begin alike are held, the last ones."""
_FIELDS = (FileMetaData.VERSION, FileMetaData.SCHEMA)
_IN_MEMORY = 60
"""Bytes in memory for a byte of a footer."""
_SCHEMAS = 8


@dataclass(frozen=True)
class FooterHead:
    """Fields that are the first of a footer, the bytes that spell them, and the leaf columns of their schema."""

    encoded: bytes
    fields: Struct
    leaves: tuple[LeafColumn, ...]
    _written_with: deque[tuple[TableSchema, object]] = field(default_factory=lambda: deque(maxlen=_SCHEMAS), repr=False)

    @cached_property
    def columns(self) -> dict[str, list[tuple[int, LeafColumn]]]:
        """The leaves of every top-level column, each with its position among all."""
        found: dict[str, list[tuple[int, LeafColumn]]] = {}
        for position, leaf in enumerate(self.leaves):
            found.setdefault(leaf.path[0].decode(), []).append((position, leaf))
        return found

    def is_of(self, schema: TableSchema, details: object) -> bool:
        """Whether the columns have been found to be those of this very schema, with the same ``details``."""
        return any(known is schema and found == details for known, found in tuple(self._written_with))

    def found_of(self, schema: TableSchema, details: object) -> None:
        """They are."""
        self._written_with.append((schema, details))


def decode_footer(encoded: bytes) -> tuple[Struct, FooterHead]:
    """All fields of a footer (Thrift's ``FileMetaData``), which those who use them must not change, and its head.

    Raises ``ValueError``, or what a missing part raises (``LookupError``, ``TypeError``).
    """
    key = ("footer heads", encoded[:_FIRST])
    heads: tuple[FooterHead, ...] = SHARED.get(key) or ()
    head = next((one for one in heads if encoded.startswith(one.encoded)), None)
    footer, used = decode_struct(encoded) if head is None else decode_struct(encoded, len(head.encoded), head.fields)
    if used != len(encoded):
        raise ValueError(f"its footer has {len(encoded)} bytes of which {used} are used")
    if head is None:
        fields = {number: footer[number] for number in _FIELDS}
        head = FooterHead(encode_struct(fields)[:-1], fields, leaf_columns(footer))
        if encoded.startswith(head.encoded):  # as nearly all writers spell it
            heads = (head, *heads[: _HEADS - 1])
            SHARED.put(key, heads, _IN_MEMORY * sum(len(one.encoded) for one in heads))
    return footer, head


__all__ = ["FooterHead", "decode_footer"]
