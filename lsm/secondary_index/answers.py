"""Answers of secondary indexes to a filter: the files to read, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyroaring import BitMap

from fileindex.predicate.projection import Projection
from fileindex.predicate.tree import Leaf, Predicate, all_of, columns_of
from fileindex.query.evaluate import answer_terms
from fileindex.query.metrics import IndexMetrics
from fileindex.rowset.result import REMAIN, SKIP, FileIndexResult, RowSet
from fileindex.rowset.roaring import bitmap_to_rows, rows_to_bitmap, serialize
from fileindex.sorted_index.index_meta import MAX_ROWS, SourceMeta
from fileindex.sorted_index.kinds import open_sorted_index
from fileindex.sorted_index.payload_reader import SortedIndexReader
from lsm.secondary_index.payloads import LiveFiles, Payload, compacted_files, live_payloads
from lsm.secondary_index.selection import IndexedRows, IndexSelection, term_names
from manifest.commit.conflicts import BucketId
from manifest.entry.columns import EntryColumns
from manifest.entry.index_manifest import IndexManifestEntry
from manifest.io.file_cache import FileParts
from manifest.schema.secondary_index import SecondaryIndex
from manifest.store import FileStore
from paimon_base.errors import CorruptIndex, describe_error
from paimon_base.log import logger_of
from paimon_base.texts import count_text, size_text
from sparkexpr.values.arrays import Mask

_LOG = logger_of(__name__)

FilterOf = Callable[[bytes], Sequence[Predicate]]
"""Returns the terms of a filter inside a partition."""


@dataclass(slots=True)
class IndexAnswers:
    """What the indexes say about files.

    Args:
        may_match: Mask of files that may have matching rows.
        selections: Selected rows by bucket. Other buckets and files are read as usual.
        levels: Levels of buckets that were asked.
        payload_bytes: Size of their payloads.
        blocks: Blocks read.
        rows: Selected rows.
    """

    may_match: Mask
    selections: dict[BucketId, IndexSelection] = field(default_factory=dict)
    levels: int = 0
    payload_bytes: int = 0
    blocks: int = 0
    rows: int = 0

    def describe(self) -> str:
        """Return the sums, for explain."""
        if not self.levels:
            return "no payload covers these files"
        levels = f"{count_text(self.levels, 'level')} of buckets, payloads of {size_text(self.payload_bytes)}"
        return f"{levels}, {count_text(self.blocks, 'block')} read, {count_text(self.rows, 'row')} selected"


def ask_indexes(
    store: FileStore,
    indexes: Sequence[SecondaryIndex],
    entries: Sequence[IndexManifestEntry],
    files: EntryColumns,
    *,
    predicate: Predicate,
    inside: FilterOf,
    notes: IndexMetrics,
) -> IndexAnswers:
    """Return the answers of ``indexes`` to a filter.

    Never raises for a payload: one that cannot be used is counted in ``notes``, and its files are read.

    Args:
        store: Store of the table.
        indexes: Indexes of the table's schema.
        entries: Index files of the snapshot.
        files: Files that are left, of the same snapshot.
        predicate: Filter with literals of the table's types.
        inside: Returns the terms of ``predicate`` in a partition, in their order.
        notes: Receives what was read, used, and could not be used.
    """
    answers = IndexAnswers(np.ones(len(files), np.bool_))
    live = compacted_files(files)
    rows_by_file: dict[tuple[BucketId, str], _FileRows] = {}
    for group in _groups(store, live_payloads(store, indexes, entries, live), notes):
        results = group.answer(inside(group.bucket[0]))
        answers.levels += 1
        answers.payload_bytes += group.size
        answers.blocks += group.blocks
        for name, rows in group.rows_of_files(results, live[group.bucket]):
            earlier_rows = rows_by_file.get((group.bucket, name))
            rows_by_file[group.bucket, name] = rows if earlier_rows is None else earlier_rows.and_(rows)
    if not rows_by_file:
        return answers
    names = term_names(predicate)
    by_bucket: dict[BucketId, dict[str, IndexedRows]] = {}
    for (bucket, name), rows in rows_by_file.items():
        answers.rows += len(rows.rows)
        by_bucket.setdefault(bucket, {})[name] = IndexedRows(rows=serialize(rows.rows), proven=tuple(names[term] for term in rows.proven))
    answers.selections = {bucket: IndexSelection(terms=names, files=of_files) for bucket, of_files in by_bucket.items()}
    empty = {where for where, rows in rows_by_file.items() if not rows.rows}
    buckets = zip(files.partition, files.bucket.tolist(), strict=True)
    answers.may_match = np.array([(bucket, name) not in empty for bucket, name in zip(buckets, files.file_name, strict=True)], np.bool_)
    return answers


@dataclass(frozen=True, slots=True)
class _FileRows:
    """Selected rows of a file, and the terms (by number) that all of them match."""

    rows: BitMap
    proven: frozenset[int]

    def and_(self, other: _FileRows) -> _FileRows:
        # Each set has all rows that match the whole filter, so their intersection has, too. A term that one of them proves holds for it.
        return _FileRows(self.rows & other.rows, self.proven | other.proven)


@dataclass(frozen=True)
class _Group:
    """The payloads of one level that list the same files."""

    store: FileStore
    payloads: Sequence[Payload]
    notes: IndexMetrics
    _readers: dict[str, SortedIndexReader[Any] | None] = field(default_factory=dict)

    @property
    def bucket(self) -> BucketId:
        return self.payloads[0].bucket

    @property
    def size(self) -> int:
        """Bytes of the payloads."""
        return sum(payload.entry.file_size for payload in self.payloads)

    @property
    def blocks(self) -> int:
        """Blocks read so far."""
        return sum(reader.blocks_read for reader in self._readers.values() if reader is not None)

    def answer(self, terms: Sequence[Predicate]) -> list[FileIndexResult]:
        """Return the ordinals that match each term of a filter.

        Terms of one column share an answer, which has the rows that match all of them: two bounds are one range.
        """
        columns = [set(columns_of(term)) for term in terms]
        results: list[FileIndexResult] = [REMAIN] * len(terms)
        for payload in self.payloads:
            of_column = [number for number, names in enumerate(columns) if names == {payload.index.column}]
            together = self._ask(payload, all_of(*(terms[number] for number in of_column))) if of_column else REMAIN
            if not together.remains:
                return [SKIP] * len(terms)
            for number in of_column:
                results[number] = together
        mixed = [number for number, names in enumerate(columns) if len(names) > 1]
        mixed_results, _ = answer_terms([Projection(terms[number], exact=True) for number in mixed], self._leaf, lambda _: REMAIN)
        for number, result in zip(mixed, mixed_results, strict=True):
            results[number] = result
        return [SKIP] * len(terms) if SKIP in results else results

    def _leaf(self, leaf: Leaf) -> FileIndexResult:
        payload = next((payload for payload in self.payloads if payload.index.column == leaf.column.name), None)
        return REMAIN if payload is None else self._ask(payload, leaf)

    def _ask(self, payload: Payload, question: Predicate) -> FileIndexResult:
        """Return the answer of a payload. REMAIN, and a warning, if it cannot be used."""
        use = self.notes.of(payload.index.column, payload.index.kind)
        try:
            reader = self._reader(payload)
            before = reader.bytes_read
            result = reader.evaluate(question)
        except Exception as error:  # noqa: BLE001 - a damaged payload or a failing store must not fail the read
            reason = describe_error(error)
            use.unusable[reason] += 1
            self.notes.warnings[f"{payload.index.kind} payload {payload.entry.file_name} of '{payload.index.column}': {reason}"] += 1
            return REMAIN
        use.bytes += reader.bytes_read - before
        self.notes.bytes_read += reader.bytes_read - before
        self.notes.used[f"{payload.index.column}: {payload.index.kind}"] += 1
        return result

    def rows_of_files(self, results: Sequence[FileIndexResult], live: LiveFiles) -> Iterator[tuple[str, _FileRows]]:
        """Yield the selected rows of each live file of the level, by name."""
        sets = [result.rows for result in results if isinstance(result, RowSet)]
        if SKIP not in results and not sets:
            return
        ordinals = np.zeros(0, np.uint32) if SKIP in results else bitmap_to_rows(BitMap.intersection(*sets))
        proven = frozenset(number for number, result in enumerate(results) if result.exact)
        for file, positions in self.payloads[0].by_file(ordinals, live):
            if proven or positions.size < file.row_count:
                yield file.name, _FileRows(rows_to_bitmap(positions), proven)

    def _reader(self, payload: Payload) -> SortedIndexReader[Any]:
        name = payload.index.column
        if name not in self._readers:
            self._readers[name] = None
            self._readers[name] = open_index(self.store, payload)
        reader = self._readers[name]
        if reader is None:
            raise CorruptIndex("it could not be opened")
        return reader


def _groups(store: FileStore, payloads: Sequence[Payload], notes: IndexMetrics) -> list[_Group]:
    by_files: dict[tuple[BucketId, SourceMeta], list[Payload]] = {}
    for payload in payloads:
        if payload.entry.row_count <= MAX_ROWS:
            by_files.setdefault((payload.bucket, payload.source), []).append(payload)
    return [_Group(store, members, notes) for members in by_files.values()]


def open_index(store: FileStore, payload: Payload) -> SortedIndexReader[Any]:
    """Return the reader of a payload. Nothing is read yet."""
    entry = payload.entry
    path = store.paths.index(entry.file_name, store.partition.decode(entry.partition), entry.bucket, entry.external_path)
    ranges = store.file_io.open_ranges(path, store.cache.files)
    parts = FileParts(store.cache.files, store.file_io, path)
    return open_sorted_index(
        payload.index.kind,
        ranges.read,
        entry.file_size,
        column_type=payload.index.type,
        row_count=entry.row_count,
        meta=payload.meta,
        hold=parts.load,
    )


def log_unusable(table: str, notes: IndexMetrics) -> str:
    """Warn about payloads that could not be used. Return their number as a text, or an empty one."""
    for warning in notes.warnings:
        _LOG.warning("%s: %s; its files are read instead", table, warning)
    return f"{count_text(notes.warnings.total(), 'payload')} not usable" if notes.warnings else ""
