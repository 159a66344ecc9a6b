"""Builds file and entry objects from decoded columns.

Several times as fast as decoding each record again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeVar

from manifest.avro.columnar import RecordColumns
from manifest.avro.wire import BytesCursor
from manifest.entry.data_file import DataFileMeta, FileKind, ManifestEntry
from manifest.stats.column_stats import SimpleStats
from paimon_base.thresholds import thresholds

T = TypeVar("T")

_NUMBERS = (
    *("FILE_SIZE", "ROW_COUNT", "MIN_SEQUENCE_NUMBER", "MAX_SEQUENCE_NUMBER", "SCHEMA_ID", "LEVEL"),
    *("CREATION_TIME", "DELETE_ROW_COUNT", "FILE_SOURCE", "FIRST_ROW_ID"),
)
_COUNTED = ("file_size", "row_count", "schema_id")
_PATHS = re.compile(r"[/\\\0]")


@lru_cache(maxsize=4096)
def counts_of(raw: bytes) -> tuple[int | None, ...]:
    """Decode null counts."""
    # Cached, because the same encodings recur in many files.
    cursor = BytesCursor(raw)

    def count() -> int | None:
        is_present = cursor.long()
        return cursor.long() if is_present else None

    return tuple(cursor.items(count))


@lru_cache(maxsize=4096)
def names_of(raw: bytes) -> tuple[str, ...]:
    """Decode an array of strings."""
    cursor = BytesCursor(raw)
    return tuple(name.decode() for name in cursor.items(cursor.prefixed_bytes))


@lru_cache(maxsize=256)
def longs_of(raw: bytes) -> tuple[int, ...]:
    """Decode an array of numbers."""
    cursor = BytesCursor(raw)
    return tuple(cursor.items(cursor.long))


class BuiltFiles:
    """File objects of one manifest, kept once built."""

    # Objects of a large manifest are not kept: they take several times the memory of its bytes.
    def __init__(self, count: int) -> None:
        self._held: dict[int, DataFileMeta] | None = {} if count <= thresholds.held_objects else None

    @property
    def files(self) -> dict[int, DataFileMeta]:
        """Files by position of the entry.

        Additions are kept if the manifest is small.
        """
        return {} if self._held is None else self._held


def build_files(columns: RecordColumns, payload: bytes) -> list[DataFileMeta]:
    """Return the files of all entries, in order.

    Validates as ``DataFileMeta`` does, but in bulk. Raises ``ValueError``.
    """

    def spans(name: str, build: Callable[[bytes], T]) -> Iterable[T | None]:
        column = columns.spans[f"_FILE._{name}"]
        if not column.present.any():
            return repeat(None, column.present.size)
        pieces = column.slices(payload)
        if column.present.all():
            return map(build, pieces)
        return (build(piece) if present else None for piece, present in zip(pieces, column.present.tolist(), strict=True))

    def numbers(name: str) -> Iterable[int | None]:
        column = columns.numbers[f"_FILE._{name}"]
        values: list[int] = column.values.tolist()
        return values if column.present.all() else [v if p else None for v, p in zip(values, column.present.tolist(), strict=True)]

    def stats(name: str) -> Iterable[SimpleStats]:
        low, high = (columns.spans[f"_FILE._{name}.{side}"].slices(payload) for side in ("_MIN_VALUES", "_MAX_VALUES"))
        return map(SimpleStats, low, high, (counts or () for counts in spans(f"{name}._NULL_COUNTS", counts_of)))

    fields: dict[str, Iterable[Any]] = {name.lower(): numbers(name) for name in _NUMBERS}
    for name in _COUNTED:
        if (columns.numbers[f"_FILE._{name.upper()}"].values < 0).any():
            raise ValueError(f"a {name} is negative")
    fields |= {name.lower(): spans(name, bytes) for name in ("MIN_KEY", "MAX_KEY")}
    fields |= {name.lower(): list(spans(name, bytes.decode)) for name in ("FILE_NAME", "EXTERNAL_PATH")}
    fields |= {name.lower(): stats(name) for name in ("KEY_STATS", "VALUE_STATS")}
    fields |= {name.lower(): list(spans(name, names_of)) for name in ("EXTRA_FILES", "VALUE_STATS_COLS", "WRITE_COLS")}
    fields["embedded_index"] = spans("EMBEDDED_FILE_INDEX", bytes)
    fields["write_cols_sequences"] = spans("WRITE_COLS_SEQUENCES", longs_of)
    _check_names(fields["file_name"])
    for extra in set(fields["extra_files"]):
        _check_names(extra)
    return [DataFileMeta.from_trusted(dict(zip(fields, values, strict=True))) for values in zip(*fields.values(), strict=True)]


def build_entries(columns: RecordColumns, payload: bytes, files: Iterable[DataFileMeta]) -> list[ManifestEntry]:
    """Return the entries of ``columns``, in order, with their ``files``."""
    kinds = [FileKind.ADD, FileKind.DELETE]
    numbers = (columns.numbers[name].values.tolist() for name in ("_KIND", "_BUCKET", "_TOTAL_BUCKETS"))
    return [
        ManifestEntry(kind=kinds[kind], partition=partition, bucket=bucket, total_buckets=total, file=file)
        for kind, bucket, total, partition, file in zip(*numbers, columns.spans["_PARTITION"].slices(payload), files, strict=True)
    ]


def _check_names(names: Iterable[str]) -> None:
    """Raise ``ValueError`` for a name that is a path."""
    for name in names:
        if not name or name in {".", ".."} or _PATHS.search(name):
            raise ValueError(f"{name!r} is not a file name")
