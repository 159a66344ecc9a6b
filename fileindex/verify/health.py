"""Health of indexes: size, distinct values, false positive rate."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fileindex.build.advice import SMALL, nearly_all_differ
from fileindex.format.bloom_filter import BloomFilterReader
from fileindex.format.container import Payload
from fileindex.format.ngram_filter import NgramFilterReader
from fileindex.format.registry import STORED_TYPES
from sparkexpr.values.column_type import ColumnType

OVERFULL = 0.5
"""False positive rate above which a bloom filter is hardly useful."""

WASTEFUL = 16
"""A bloom filter is too large from this multiple of the bits that a false positive rate of 10 % needs."""

_BITS_A_VALUE = -math.log(0.1) / math.log(2) ** 2


@dataclass(frozen=True, slots=True)
class IndexHealth:
    """Health of one index of one file.

    Attributes:
        rows: Rows of the file.
        bytes: Size of the payload.
        distinct: Number of distinct values. For a bloom filter estimated from its bits. None if the format does not store it.
        bits_per_row: Eight times ``bytes`` divided by ``rows``. 0 without rows.
        false_positive_rate: Probability that an absent value passes, from the share of set bits. For an n-gram filter, that a block seems to
            have an absent n-gram. Only of these two.
        note: What is wrong or wasteful, else "".
    """

    rows: int
    bytes: int
    distinct: int | None
    bits_per_row: float
    false_positive_rate: float | None
    note: str


def payload_health(
    index_type: str, payload: Payload | None, column_type: ColumnType, row_count: int, column_bytes: int | None = None
) -> IndexHealth:
    """Return the health of an index.

    Never raises: an index that cannot be read has a note.

    Args:
        index_type: Name of the type in the container.
        payload: Its bytes. None for an index that was built from no values.
        column_type: Type of the indexed column (for a map entry, of the map's values).
        row_count: The file's rows.
        column_bytes: Bytes of the column in the file, if known.

    >>> import pyarrow as pa
    >>> from fileindex.format.bsi import write_bsi
    >>> from fileindex.keys.group_by import ColumnRows
    >>> rows = ColumnRows(ColumnType("INT"))
    >>> rows.append(pa.array([1, 2], pa.int32()))
    >>> payload_health("bsi", Payload.of(write_bsi(rows.group())), ColumnType("INT"), 2, column_bytes=8)
    IndexHealth(rows=2, bytes=84, distinct=None, bits_per_row=336.0, false_positive_rate=None, note='larger than the column (84 of 8 bytes)')
    """
    size = 0 if payload is None else payload.length
    notes: list[str] = []
    distinct: int | None = None
    rate: float | None = None
    try:
        distinct, rate = _inspect(index_type, payload, column_type, row_count, notes)
    except Exception as error:  # noqa: BLE001 - a view of all indexes must also show the malformed ones
        notes.append(f"unusable: {error}")
    if column_bytes is not None and size > column_bytes:
        notes.append(f"larger than the column ({size:,} of {column_bytes:,} bytes)")
    return IndexHealth(row_count, size, distinct, 8 * size / row_count if row_count else 0.0, rate, "; ".join(notes))


def _inspect(
    index_type: str, payload: Payload | None, column_type: ColumnType, row_count: int, notes: list[str]
) -> tuple[int | None, float | None]:
    """Return the distinct values and the false positive rate.

    Adds to ``notes``.
    """
    stored_type = STORED_TYPES.get(index_type)
    if payload is None or stored_type is None or not stored_type.supports(column_type):
        why = "was built from no values" if payload is None else f"unusable: '{index_type}' on {column_type.kind} is not supported"
        notes.append(why)
        return None, None
    reader = stored_type.open(payload, column_type)
    if reader.row_count not in {None, row_count}:
        notes.append(f"unusable: it has {reader.row_count:,} rows, the file {row_count:,}")
    if isinstance(reader, BloomFilterReader):
        return _bloom(reader, notes)
    if isinstance(reader, NgramFilterReader):
        rate = reader.false_positive_rate()
        if rate > OVERFULL:
            notes.append(f"{rate:.0%} of absent n-grams seem present; lower 'block-rows'")
        return None, rate
    distinct = reader.distinct
    if distinct is not None and nearly_all_differ(row_count, distinct, payload.length):
        notes.append("nearly every row has a distinct value; a bloom filter would be smaller")
    return distinct, None


def _bloom(reader: BloomFilterReader, notes: list[str]) -> tuple[int | None, float]:
    share = reader.share_of_set_bits()
    rate = share**reader.hashes
    if share == 1:
        notes.append("all bits are set, so it excludes nothing; raise 'items'")
        return None, rate
    distinct = round(-reader.bits / reader.hashes * math.log1p(-share))
    if rate > OVERFULL:
        notes.append(f"{rate:.0%} false positives; raise 'items' (about {distinct:,} values)")
    elif reader.bits > 8 * SMALL and reader.bits > WASTEFUL * _BITS_A_VALUE * max(distinct, 1):
        notes.append(f"much larger than about {distinct:,} values need; lower 'items'")
    return distinct, rate
