"""Checks of file indexes and of a bucket's index files.

Deletion vectors and hashes are index files of a bucket. Indexes must decode and agree with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fileindex.build.options import parse_column
from fileindex.format.container import ContainerEntry, ContainerReader
from fileindex.format.registry import STORED_TYPES
from fileindex.predicate.evaluate_rows import type_of
from fileindex.predicate.tree import ColumnRef
from fileindex.rowset.roaring import rows_to_bitmap
from fileindex.sorted_index.build_options import SortedIndexKind
from fileindex.sorted_index.key_codec import supports
from fileindex.verify.rebuild import BROKEN_INDEX, RebuiltIndex, rebuild_index
from lsm.bucket.dynamic import read_hashes
from lsm.deletion_vectors.reader import DeletionFile, read_deletion_vector
from lsm.file_index.locate import index_place
from lsm.secondary_index.answers import open_index
from lsm.secondary_index.payloads import payload_of
from manifest.entry.index_manifest import DELETION_VECTORS, HASH
from manifest.io.errors import UnsupportedTable
from manifest.schema.secondary_index import SecondaryIndex
from manifest.schema.table_schema import TableSchema
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, PaimonError
from pyspark_paimon.plugins.fsck.unit import DataUnit, IndexUnit, place_of
from pyspark_paimon.results.fsck_problem import Findings, ProblemKind


@dataclass
class CheckedFileIndexes:
    """Check of the index container of one data file.

    Args:
        store: Store of the table.
        unit: Data file.
        schema: Schema of the file.
        path: Path of the data file.
        findings: Collector of problems.
    """

    store: FileStore
    unit: DataUnit
    schema: TableSchema
    path: str
    findings: Findings
    _index_path: str = field(init=False, default="")
    _rebuilt: list[tuple[ColumnRef, str, RebuiltIndex]] = field(init=False, default_factory=list)

    def open(self, *, deep: bool) -> None:
        """Decode the header and open every index.

        ``deep`` prepares a comparison with the rows.
        """
        self._index_path = self.path
        try:
            index_file = index_place(self.store, self.unit.entry)
            if index_file is None:
                return
            self._index_path = index_file.path or self.path
            entries = index_file.container.entries()
        except FileNotFoundError:
            return  # reported as missing already
        except (*BROKEN_INDEX, OSError) as error:
            self._wrong(ProblemKind.FILE_INDEX, f"its index container cannot be read: {_message(error)}")
            return
        self.findings.counts["index containers"] += 1
        for entry in entries:
            self._open_one(index_file.container, entry, deep=deep)

    def _open_one(self, container: ContainerReader, entry: ContainerEntry, *, deep: bool) -> None:
        self.findings.counts["file indexes"] += 1
        name = f"{entry.index_type} of '{entry.column}'"
        column = parse_column(entry.column)
        try:
            column_type = type_of(column, self.schema.column_types)
            stored_type = STORED_TYPES.get(entry.index_type)
            if stored_type is None or not stored_type.supports(column_type):
                self.findings.unchecked[f"indexes of type '{entry.index_type}'"] += 1
                return
            payload = None if entry.is_empty else container.payload(entry)
            if payload is not None:
                rows = stored_type.open(payload, column_type).row_count
                if rows not in {None, self.unit.entry.file.row_count}:
                    self._wrong(ProblemKind.FILE_INDEX, f"its {name} has {rows} rows, the file {self.unit.entry.file.row_count}")
                    return
            if deep:
                rebuilt = rebuild_index(column, entry.index_type, payload, column_type, self._options(column, entry.index_type))
                self._rebuilt.append((column, name, rebuilt))
        except (*BROKEN_INDEX, OSError) as error:
            self._wrong(ProblemKind.FILE_INDEX, f"its {name} cannot be read: {_message(error)}")

    def _options(self, column: ColumnRef, index_type: str) -> dict[str, str]:
        """Return the options of an index in the file's schema.

        The index may have been built with other options.
        """
        try:
            specs = self.schema.file_index.specs
        except PaimonError:
            return {}
        return next((dict(spec.options) for spec in specs if spec.column == column and spec.index_type == index_type), {})

    def write(self, rows: Any) -> None:
        """Add the next rows of the file."""
        for index, (column, name, rebuilt) in reversed(list(enumerate(self._rebuilt))):
            try:
                rebuilt.write(rows.column(column.name))
            except (*BROKEN_INDEX, OSError) as error:
                del self._rebuilt[index]
                self._wrong(ProblemKind.FILE_INDEX, f"its {name} cannot be compared with the rows: {_message(error)}")

    def finish(self) -> None:
        """Compare the indexes with the rows."""
        for _, name, rebuilt in self._rebuilt:
            try:
                mismatch = rebuilt.mismatch()
            except (*BROKEN_INDEX, OSError) as error:
                self._wrong(ProblemKind.FILE_INDEX, f"its {name} cannot be read: {_message(error)}")
                continue
            if mismatch is not None:
                self._wrong(ProblemKind.FALSE_INDEX, f"its {name} is wrong: {mismatch}")

    def _wrong(self, kind: ProblemKind, message: str) -> None:
        partition_and_bucket = place_of(self.store, self.unit.entry.partition, self.unit.entry.bucket)
        self.findings.add(
            kind, self._index_path, message, self.unit.origin, manifest=self.unit.manifest, partition_and_bucket=partition_and_bucket
        )


def check_index_file(store: FileStore, unit: IndexUnit, findings: Findings) -> None:
    """Check a deletion-vector or hash index file.

    It has deletion vectors, hashes, or a payload. The file must exist and have the right size.
    """
    entry = unit.entry
    if entry.index_type == DELETION_VECTORS:
        wrong = _vectors(store, unit, findings)
        kind = ProblemKind.DELETION_VECTOR
    elif entry.index_type == HASH:
        wrong = _hashes(store, unit)
        kind = ProblemKind.HASH_INDEX
    elif entry.index_type in set(SortedIndexKind) and store.schema.is_primary_key_table:
        wrong = _payload(store, unit, findings)
        kind = ProblemKind.FILE_INDEX
    else:
        findings.unchecked[f"index files of type '{entry.index_type}'"] += 1
        return
    partition_and_bucket = place_of(store, entry.partition, entry.bucket)
    path = store.paths.index(entry.file_name, store.partition.decode(entry.partition), entry.bucket, entry.external_path)
    for message in wrong:
        findings.add(kind, path, message, unit.origin, manifest=unit.manifest, partition_and_bucket=partition_and_bucket)


def _payload(store: FileStore, unit: IndexUnit, findings: Findings) -> Iterator[str]:
    """Yield the problems of a secondary index's payload.

    It must list its data files, and have each of their rows once.
    """
    entry = unit.entry
    findings.counts["secondary index payloads"] += 1
    if entry.indexed is None or entry.indexed.source_meta is None:
        yield "does not say which data files it covers, as Paimon 1.4 rewrites it: it answers nothing; compact(full=True) drops it"
        return
    field = next((field for field in store.schema.fields if field.id == entry.indexed.field_id), None)
    if field is None or not supports(field.type.column_type):
        yield f"is of column id {entry.indexed.field_id}, which the table does not have; compact(full=True) drops it"
        return
    index = SecondaryIndex(field.name, field.id, SortedIndexKind(entry.index_type), field.type.column_type, None)
    payload = payload_of([index], entry)
    if payload is None:
        yield "has an entry that is not understood, so it is not used; compact(full=True) builds it again"
        return
    try:
        reader = open_index(store, payload)
        seen = reader.nulls()
        for block in reader.walk():
            seen |= rows_to_bitmap(block.ordinals)
    except (*BROKEN_INDEX, OSError) as error:
        yield (
            f"cannot be read: {_message(error)}; its files are read without it. Take column '{field.name}' out of option "
            f"'{index.kind.columns_option}', call compact(full=True), and put it back"
        )
        return
    if len(seen) != entry.row_count:
        yield f"has {len(seen)} of {entry.row_count} rows"


def _vectors(store: FileStore, unit: IndexUnit, findings: Findings) -> Iterator[str]:
    """Yield the problems of deletion vectors.

    Every vector must decode, match its checksum and cardinality, and mark existing rows of its data file.
    """
    entry = unit.entry
    ranges = entry.vectors or ()
    if entry.row_count != len(ranges):
        yield f"has {len(ranges)} vectors, but its manifest says {entry.row_count}"
    path = store.paths.index(entry.file_name, store.partition.decode(entry.partition), entry.bucket, entry.external_path)
    for vector in ranges:
        findings.counts["deletion vectors"] += 1
        try:
            rows = read_deletion_vector(store.file_io, DeletionFile(path, vector.offset, vector.length, vector.cardinality))
        except CorruptFile as error:
            yield f"the vector of {vector.data_file}: {error.reason}"
            continue
        except UnsupportedTable as error:
            yield f"the vector of {vector.data_file}: {error}"
            continue
        count = unit.rows.get(vector.data_file)
        if count is not None and rows and rows.max() >= count:
            yield f"the vector of {vector.data_file} marks row {rows.max()} of {count}"


def _hashes(store: FileStore, unit: IndexUnit) -> Iterator[str]:
    """Yield the problems of a hash index.

    It must have as many hashes as the manifest says, each once.
    """
    try:
        hashes = read_hashes(store, unit.entry)
    except CorruptFile as error:
        yield error.reason
        return
    distinct = len(np.unique(hashes))
    if distinct < len(hashes):
        yield f"has {len(hashes)} hashes, {len(hashes) - distinct} of them repeated"


def _message(error: BaseException) -> str:
    return error.reason if isinstance(error, CorruptFile) else str(error) or type(error).__name__
