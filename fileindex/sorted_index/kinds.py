"""Writers and readers of payloads by their kind."""

from __future__ import annotations

from collections.abc import Callable

from fileindex.format.container import PartCache
from fileindex.sorted_index.bitmap_payload_reader import BitmapIndexReader
from fileindex.sorted_index.bitmap_payload_writer import BitmapIndexWriter
from fileindex.sorted_index.btree_reader import BTreeIndexReader
from fileindex.sorted_index.btree_writer import BTreeIndexWriter
from fileindex.sorted_index.build_options import SortedIndexKind, SortedIndexOptions
from fileindex.sorted_index.index_meta import SortedIndexMeta
from fileindex.sorted_index.payload_writer import SortedIndexWriter
from sparkexpr.values.column_type import ColumnType

_WRITERS: dict[SortedIndexKind, type[SortedIndexWriter]] = {
    SortedIndexKind.BTREE: BTreeIndexWriter,
    SortedIndexKind.BITMAP: BitmapIndexWriter,
}
_READERS: dict[SortedIndexKind, type[BTreeIndexReader | BitmapIndexReader]] = {
    SortedIndexKind.BTREE: BTreeIndexReader,
    SortedIndexKind.BITMAP: BitmapIndexReader,
}


def sorted_index_writer(options: SortedIndexOptions, column_type: ColumnType, write: Callable[[bytes], object]) -> SortedIndexWriter:
    """Return a writer of a payload.

    ``write`` receives its bytes in order.
    """
    return _WRITERS[options.kind](options, column_type, write)


def open_sorted_index(
    kind: SortedIndexKind,
    read: Callable[[int, int], bytes],
    size: int,
    *,
    column_type: ColumnType,
    row_count: int,
    meta: SortedIndexMeta,
    hold: PartCache | None = None,
) -> BTreeIndexReader | BitmapIndexReader:
    """Return a reader of a payload, see ``SortedIndexReader``. It reads nothing yet."""
    return _READERS[kind](read, size, column_type=column_type, row_count=row_count, meta=meta, hold=hold)
