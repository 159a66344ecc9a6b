"""Upkeep of the secondary indexes of one bucket (Paimon's ``BucketedSortedIndexMaintainer``).

A level's payload lists all compacted files of the level. After a compaction each level without such a payload gets one, and payloads
that nobody will look at are removed. A payload that cannot be built is left out: its level is read without it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.sorted_index.build_options import SortedIndexKind, SortedIndexOptions
from fileindex.sorted_index.index_meta import SortedIndexMeta, SourceFile, SourceMeta
from fileindex.sorted_index.kinds import sorted_index_writer
from fileindex.sorted_index.payload_writer import SortedIndexWriter
from fileindex.sorted_index.sorted_rows import sort_rows
from lsm.data_files.spill import SpillSpace
from lsm.keys.encoding import one_array
from lsm.keys.sort import SortKey
from lsm.merge.function import Deduplicate
from lsm.read.full_scan import file_rows
from lsm.secondary_index.payloads import is_covered, payload_of
from lsm.write_buffer.sort_buffer import SortBuffer
from lsm.write_buffer.source import Source
from manifest.commit.index_change import IndexChange
from manifest.entry.data_file import DataFileMeta
from manifest.entry.index_manifest import IndexedColumn, IndexFile, IndexManifestEntry
from manifest.io.output_file import OutputFile
from manifest.io.paths import FileNames
from manifest.schema.secondary_index import SecondaryIndex, secondary_indexes
from manifest.store import FileStore
from paimon_base.log import logger_of

_LOG = logger_of(__name__)
_ORDINAL, _ORDINAL_BYTES = "_ORDINAL", 8


@dataclass(frozen=True)
class BucketIndexes:
    """The secondary indexes of a bucket.

    Args:
        store: Store of the table.
        partition: Serialised partition.
        bucket: Bucket number.
        names: Names of new payloads.
        space: Where the sort of a large level spills.
        entries: Index files of the bucket, of any type.
    """

    store: FileStore
    partition: bytes
    bucket: int
    names: FileNames
    space: SpillSpace
    entries: Sequence[IndexManifestEntry]

    def changes(self, files: Sequence[DataFileMeta]) -> tuple[IndexChange, ...]:
        """Return the changes of payloads after a compaction.

        Args:
            files: Files of the bucket after it.
        """
        indexes = secondary_indexes(self.store.schema)
        sources = _sources(files)
        return tuple(change for kind in SortedIndexKind if (change := self._change(kind, indexes, sources)) is not None)

    def _change(
        self, kind: SortedIndexKind, indexes: Sequence[SecondaryIndex], sources: Sequence[tuple[SourceMeta, list[DataFileMeta]]]
    ) -> IndexChange | None:
        present = [entry for entry in self.entries if entry.index_type == kind and entry.indexed is not None]
        current_names: set[str] = set()
        new: list[IndexFile] = []
        for index in indexes:
            if index.kind != kind:
                continue
            of_index = [payload for entry in present if (payload := payload_of([index], entry)) is not None]
            for source, files in sources:
                same = [payload.entry.file_name for payload in of_index if payload.source == source]
                if len(same) == 1:
                    current_names.add(same[0])
                elif (built := self._try_build(index, source, files)) is not None:
                    new.append(built)
        removed = [entry for entry in present if entry.file_name not in current_names]
        if not new and not removed:
            return None
        return IndexChange(
            kind=kind,
            new=tuple(new),
            removed=tuple(entry.file for entry in removed),
            base=tuple(entry.file_name for entry in self.entries if entry.index_type == kind),
            compaction=True,
        )

    def _try_build(self, index: SecondaryIndex, source: SourceMeta, files: Sequence[DataFileMeta]) -> IndexFile | None:
        try:
            return None if index.options is None else self._build(index, index.options, source, files)
        except Exception:  # noqa: BLE001 - a missing payload only makes reads slower, but the compaction is needed
            text = "%s: bucket %d: no '%s' index of column '%s' on level %d"
            _LOG.warning(text, self.store.root, self.bucket, index.kind, index.column, source.level, exc_info=True)
            return None

    def _build(self, index: SecondaryIndex, options: SortedIndexOptions, source: SourceMeta, files: Sequence[DataFileMeta]) -> IndexFile:
        name = self.names.next()
        path = self.store.paths.index(name, self.store.partition.decode(self.partition), self.bucket)
        output = OutputFile(self.store.file_io, path)
        try:
            writer = sorted_index_writer(options, index.type, output.open().write)
            self._add_rows(writer, index, self._columns(index.column, files))
            meta = writer.finish()
            size = output.finish()
        except BaseException:
            output.abort()
            raise
        return _file(name, size, index, source, meta)

    def _columns(self, column: str, files: Sequence[DataFileMeta]) -> Iterator[pa.Array]:
        """Yield the column's values of all physical rows of files."""
        for file in files:
            for rows in file_rows(self.store, self.partition, self.bucket, file, columns=(column,)):
                yield one_array(rows.column(column))

    def _add_rows(self, writer: SortedIndexWriter, index: SecondaryIndex, columns: Iterator[pa.Array]) -> None:
        """Add rows by value. What fits into the write buffer is grouped in memory, which is faster where values repeat."""
        held: list[pa.Array] = []
        size = 0
        for values in columns:
            held.append(values)
            size += values.nbytes + _ORDINAL_BYTES * len(values)
            if size > self.store.options.write_buffer_size:
                self._add_from_disk(writer, index.column, itertools.chain(held, columns))
                return
        rows = sort_rows(held, index.type)
        writer.add(rows.values, rows.ordinals, rows.counts)
        writer.add_nulls(rows.null_ordinals)

    def _add_from_disk(self, writer: SortedIndexWriter, name: str, columns: Iterable[pa.Array]) -> None:
        buffer = SortBuffer(SortKey((name, _ORDINAL)), Deduplicate(), 0)  # ordinals make keys unique, so no row is dropped
        start = 0
        try:
            for values in columns:
                ordinals = pa.array(np.arange(start, start + len(values)))
                start += len(values)
                writer.add_nulls(ordinals.filter(pc.is_null(values)).to_numpy().astype(np.uint32))
                present = pc.is_valid(values)
                rows = pa.table({name: values.filter(present), _ORDINAL: ordinals.filter(present)})
                if rows.num_rows:
                    buffer.add(Source(rows), None)
                if buffer.held.size > self.store.options.write_buffer_size:
                    buffer.spill(self.space)
            for rows in buffer.drain(self.space):
                writer.add(one_array(rows.column(name)), one_array(rows.column(_ORDINAL)).to_numpy().astype(np.uint32))
        finally:
            buffer.clear()


def _sources(files: Sequence[DataFileMeta]) -> list[tuple[SourceMeta, list[DataFileMeta]]]:
    """Return the compacted files of each level above 0, sorted by name."""
    by_level: dict[int, list[DataFileMeta]] = {}
    for file in sorted(files, key=lambda file: file.file_name):
        if is_covered(file):
            by_level.setdefault(file.level, []).append(file)
    return [
        (SourceMeta(level, tuple(SourceFile(file.file_name, file.row_count) for file in members)), members)
        for level, members in sorted(by_level.items())
    ]


def _file(name: str, size: int, index: SecondaryIndex, source: SourceMeta, meta: SortedIndexMeta) -> IndexFile:
    indexed = IndexedColumn(
        first_row=0,
        last_row=source.row_count - 1,
        field_id=index.field_id,
        index_meta=meta.encode(),
        source_meta=source.encode(),
    )
    return IndexFile(file_name=name, file_size=size, row_count=source.row_count, indexed=indexed)
