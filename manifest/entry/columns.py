"""Manifest entries as columns, for pruning and merging without objects."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import numpy as np

from manifest.avro.columnar import RecordColumns, Spans, decode_columns, decode_few_columns
from manifest.avro.container import Container, WriterSchema, encode_records
from manifest.avro.schemas import MANIFEST_ENTRY, AvroSchema
from manifest.entry.data_file import ENTRY_VERSION, DataFileMeta, FileKind, FileSource, ManifestEntry
from manifest.entry.objects import BuiltFiles, build_entries, build_files, names_of
from paimon_base.errors import CorruptFile
from paimon_base.lazy import cached_property
from paimon_base.process import gc_paused
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Indices, Int64s, Mask

_WRITER_SCHEMA = WriterSchema.of(MANIFEST_ENTRY)
_LAYOUT = _WRITER_SCHEMA.layout
_SHORT_LAYOUT = (*_LAYOUT[:-1], ("_FILE", _LAYOUT[-1][1][:-1]))
"""The layout before ``_WRITE_COLS_SEQUENCES``: today's records without the last byte, that field's null."""

_LAST_FIELD = "_FILE._WRITE_COLS_SEQUENCES"
_NULL = b"\x00"


@dataclass(frozen=True, eq=False)
class EntryColumns:
    """Entries of one or more manifests as columns.

    Numbers are numpy columns, bytes are sliced on demand, objects are built on request. Immutable. Row i of every column is entry i.
    """

    paths: tuple[str, ...]
    """Manifest paths, for errors. ``source`` has the position of each entry's manifest in them."""
    source: Indices
    payload: bytes
    columns: RecordColumns
    short: Mask
    """Entries encoded without the last byte of today's layout."""
    row: Indices
    """Position of each entry in its manifest."""
    built: tuple[BuiltFiles, ...]
    """File objects built so far, by manifest."""

    @classmethod
    def from_container(cls, container: Container) -> EntryColumns:
        """Return the entries of an opened manifest. Raises ``CorruptFile``."""
        if container.count == 0:
            if container.payload:
                raise CorruptFile(container.path, "has bytes but no records")
            return cls.of(())
        shape = container.schema.layout
        if shape in {_LAYOUT, _SHORT_LAYOUT}:
            columns = decode_columns(shape, container.payload, container.count, _starts(container.payload))
            if columns is not None:
                short = np.full(container.count, shape == _SHORT_LAYOUT)
                nothing = np.zeros(container.count, np.int64)
                columns.spans = {_LAST_FIELD: Spans(nothing, nothing, np.zeros(container.count, np.bool_)), **columns.spans}
                return _check_entries(cls._single(container.path, container.payload, columns, short))
        try:
            return _check_entries(cls.of_records(encode_records(_WRITER_SCHEMA, container.records()), container.path))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise CorruptFile(container.path, f"its records are not manifest entries ({error})") from error

    @classmethod
    def from_containers(cls, containers: Sequence[Container]) -> tuple[list[EntryColumns], EntryColumns | None]:
        """Return the entries of each manifest, and of all together.

        Manifests of one layout are decoded together. If some were decoded separately, the second value is missing. Raises ``CorruptFile``.
        """
        decoded: list[EntryColumns] = []
        joined: EntryColumns | None = None
        for shape, group in groupby(containers, lambda container: container.schema.layout):
            members = list(group)
            together = cls._decoded_together(shape, members)
            if together is None:
                decoded += [cls.from_container(container) for container in members]
            else:
                parts, of_group = together
                decoded += parts
                joined = of_group if len(members) == len(containers) else None
        return decoded, joined

    @classmethod
    def _decoded_together(cls, shape: AvroSchema, containers: Sequence[Container]) -> tuple[list[EntryColumns], EntryColumns] | None:
        """Decode manifests of one layout together.

        Returns None if that is not possible, or not provably right.
        """
        if shape != _LAYOUT or len(containers) < 2 or not all(container.count for container in containers):
            return None
        counts = np.cumsum([0, *(container.count for container in containers)])
        bases = np.cumsum([0, *(len(container.payload) for container in containers)])
        payload = b"".join(container.payload for container in containers)
        columns = decode_columns(shape, payload, int(counts[-1]), _starts(payload))
        if columns is None or not np.array_equal(columns.start[counts[:-1]], bases[:-1]):
            return None
        bounds = zip(containers, counts[:-1].tolist(), counts[1:].tolist(), bases.tolist(), strict=False)
        parts = [
            cls._single(member.path, member.payload, columns.slice_rows(first, last).shift_by(-base), np.zeros(last - first, np.bool_))
            for member, first, last, base in bounds
        ]
        source = np.repeat(np.arange(len(parts)), np.diff(counts))
        row = np.arange(source.size) - counts[source]
        built = tuple(part.built[0] for part in parts)
        paths = tuple(container.path for container in containers)
        return parts, _check_entries(cls(paths, source, payload, columns, np.zeros(source.size, np.bool_), row, built))

    @classmethod
    def _single(cls, path: str, payload: bytes, columns: RecordColumns, short: Mask) -> EntryColumns:
        """Return all entries of one manifest."""
        count = columns.start.size
        return cls((path,), np.zeros(count, np.intp), payload, columns, short, np.arange(count), (BuiltFiles(count),))

    @classmethod
    def of(cls, entries: Iterable[ManifestEntry]) -> EntryColumns:
        """Return the columns of entry objects."""
        objects = list(entries)
        columns = cls.of_records(encode_records(_WRITER_SCHEMA, (entry.to_avro() for entry in objects)))
        if columns.built:
            # The objects are here: files() need not decode them again.
            columns.built[0].files.update(enumerate(entry.file for entry in objects))
        return columns

    @classmethod
    def concat(cls, parts: Iterable[EntryColumns]) -> EntryColumns:
        """Return all entries of ``parts``, in order."""
        # Each part is copied before the next but one is requested, so that an iterator can release it.
        nonempty = filter(len, parts)
        first, second = next(nonempty, None), next(nonempty, None)
        if second is None:
            return cls.of(()) if first is None else first
        assert first is not None
        filled = _Joined()
        filled.add(first)
        filled.add(second)
        del first, second
        for part in nonempty:
            filled.add(part)
        payload = filled.payload.getvalue()
        source, row, short = np.concatenate(filled.source), np.concatenate(filled.row), np.concatenate(filled.short)
        joined = cls(tuple(filled.paths), source, payload, filled.join(payload), short, row, tuple(filled.built))
        if len(joined) > thresholds.partitions_one_by_one:
            joined.__dict__["partition_codes"] = np.concatenate(filled.codes), list(filled.partitions)
        return joined

    @classmethod
    def of_records(cls, records: Sequence[bytes], path: str = "") -> EntryColumns:
        """Return columns of entries encoded in today's layout.

        Raises ``ValueError``.
        """
        payload = b"".join(records)
        if not records:
            nothing = np.zeros(0, np.intp)
            return cls((), nothing, b"", _no_columns(), np.zeros(0, np.bool_), nothing, ())
        starts = np.cumsum([0, *(len(record) for record in records[:-1])], dtype=np.int64)
        columns = decode_columns(_LAYOUT, payload, len(records), starts)
        if columns is None:
            raise ValueError("records are not in the layout of a manifest entry")
        return cls._single(path, payload, columns, np.zeros(len(records), np.bool_))

    def __repr__(self) -> str:
        return f"EntryColumns({len(self)} entries)"

    def __len__(self) -> int:
        return self.columns.start.size

    def select(self, selection: Mask | Indices) -> EntryColumns:
        """Return entries by mask or by position."""
        rows = np.flatnonzero(selection) if selection.dtype == np.bool_ else selection.astype(np.intp, copy=False)
        if rows.size == self.row.size and (selection.dtype == np.bool_ or np.array_equal(rows, np.arange(rows.size))):
            return self
        columns = self.columns.take(rows)
        selected = EntryColumns(self.paths, self.source[rows], self.payload, columns, self.short[rows], self.row[rows], self.built)
        if "partition_codes" in self.__dict__:  # keep the grouping
            codes, code_partitions = self.partition_codes
            used_codes, renumbered = np.unique(codes[rows], return_inverse=True)
            selected.__dict__["partition_codes"] = renumbered, [code_partitions[code] for code in used_codes.tolist()]
        return selected

    def numbers(self, name: str) -> Int64s:
        """Return an integer field by its manifest name.

        Names are like ``_KIND`` and ``_FILE._LEVEL``. Null is 0.
        """
        return self.columns.numbers[name].values

    def content(self, name: str) -> list[bytes]:
        """Return a bytes or string field by its manifest name.

        Null is b''.
        """
        return self.columns.spans[name].slices(self.payload)

    def present(self, name: str) -> Mask:
        """Return where a nullable field is not null."""
        column = self.columns.numbers.get(name) or self.columns.spans[name]
        return column.present

    @property
    def kind(self) -> Int64s:
        """``FileKind`` of every entry."""
        return self.columns.numbers["_KIND"].values

    @property
    def bucket(self) -> Int64s:
        """Bucket numbers."""
        return self.columns.numbers["_BUCKET"].values

    @property
    def total_buckets(self) -> Int64s:
        """Bucket counts when the files were written."""
        return self.columns.numbers["_TOTAL_BUCKETS"].values

    @property
    def level(self) -> Int64s:
        """LSM levels."""
        return self.columns.numbers["_FILE._LEVEL"].values

    @property
    def row_count(self) -> Int64s:
        """Physical rows."""
        return self.columns.numbers["_FILE._ROW_COUNT"].values

    @property
    def file_size(self) -> Int64s:
        """Bytes of the data files."""
        return self.columns.numbers["_FILE._FILE_SIZE"].values

    @property
    def schema_id(self) -> Int64s:
        """Schemas that the files were written with."""
        return self.columns.numbers["_FILE._SCHEMA_ID"].values

    @property
    def max_sequence_number(self) -> Int64s:
        """Greatest sequence numbers."""
        return self.columns.numbers["_FILE._MAX_SEQUENCE_NUMBER"].values

    @property
    def delete_row_count(self) -> Int64s:
        """Retracting rows, -1 if unknown."""
        column = self.columns.numbers["_FILE._DELETE_ROW_COUNT"]
        return np.where(column.present, column.values, -1)

    @property
    def is_appended(self) -> Mask:
        """Files that were appended or have an unknown source."""
        source = self.columns.numbers["_FILE._FILE_SOURCE"]
        appended: Mask = ~source.present | (source.values == FileSource.APPEND)
        return appended

    @cached_property
    def partition(self) -> list[bytes]:
        """Serialised partition rows."""
        return self.content("_PARTITION")

    @cached_property
    def file_name(self) -> list[str]:
        """File names. Raises ``CorruptFile`` for invalid UTF-8."""
        try:
            return [name.decode() for name in self.content("_FILE._FILE_NAME")]
        except UnicodeDecodeError as error:
            raise CorruptFile(self.path_of(0), f"a file name is not UTF-8 ({error})") from error

    @cached_property
    def is_orc(self) -> Mask:
        """Data files in ORC format, by their names."""
        return np.array([name.lower().endswith(b".orc") for name in self.content("_FILE._FILE_NAME")], np.bool_)

    @cached_property
    def min_key(self) -> list[bytes]:
        """Serialised smallest keys."""
        return self.content("_FILE._MIN_KEY")

    @cached_property
    def max_key(self) -> list[bytes]:
        """Serialised greatest keys."""
        return self.content("_FILE._MAX_KEY")

    @cached_property
    def partition_codes(self) -> tuple[Int64s, list[bytes]]:
        """(code of every entry, partition of every code)."""
        # Cached, so that grouping does not compare bytes again.
        return self.columns.spans["_PARTITION"].codes(self.payload)

    @property
    def bucket_numbers(self) -> Int64s:
        """Number of each entry's (partition, bucket), in order of first appearance."""
        codes, _ = self.partition_codes
        buckets = self.bucket
        least = int(buckets.min(initial=0))
        pairs = codes * (int(buckets.max(initial=0)) - least + 1) + buckets - least
        _, first, numbers = np.unique(pairs, return_index=True, return_inverse=True)
        renumbered: Int64s = np.argsort(np.argsort(first))[numbers]
        return renumbered

    def in_partitions(self, partitions: Iterable[bytes]) -> Mask:
        """Return the entries in one of ``partitions``."""
        requested = set(partitions)
        codes, code_partitions = self.partition_codes
        mask: Mask = np.array([partition in requested for partition in code_partitions], np.bool_)[codes]
        return mask

    @cached_property
    def not_deleted(self) -> EntryColumns:
        """ADD entries without a DELETE entry of the same identity."""
        added = self.kind == FileKind.ADD
        if added.all():
            return self
        names = self.content("_FILE._FILE_NAME")
        deletes = np.flatnonzero(~added)
        gone_names = {names[row] for row in deletes.tolist()}
        suspects = np.array([row for row in np.flatnonzero(added).tolist() if names[row] in gone_names], np.intp)
        gone = set(self.identities(deletes))
        dead = [row for row, identity in zip(suspects.tolist(), self.identities(suspects), strict=True) if identity in gone]
        added[dead] = False
        return self.select(added)

    @property
    def has_repeated_name(self) -> Mask:
        """Entries that share their file name with another one.

        Only these can have equal identities.
        """
        names = self.content("_FILE._FILE_NAME")
        if len(set(names)) == len(names):
            return np.zeros(len(names), np.bool_)
        counts = Counter(names)
        return np.array([counts[name] > 1 for name in names], np.bool_)

    @cached_property
    def added_twice(self) -> int | None:
        """An entry whose file its bucket has twice, or None."""
        added_files: set[tuple[bytes, int, bytes]] = set()
        rows = np.flatnonzero(self.has_repeated_name)
        if not rows.size:
            return None
        repeated = self.select(rows)
        for row, *file in zip(
            rows.tolist(), repeated.content("_PARTITION"), repeated.bucket.tolist(), repeated.content("_FILE._FILE_NAME"), strict=True
        ):
            if tuple(file) in added_files:
                return int(row)
            added_files.add(tuple(file))
        return None

    def identities(self, rows: Indices | None = None) -> list[tuple[bytes, ...]]:
        """Return a hashable identity of every entry or of ``rows``.

        Comparable among all ``EntryColumns``.
        """
        entries = self if rows is None else self.select(rows)
        names = ("_FILE._FILE_NAME", "_PARTITION", "_FILE._EXTRA_FILES", "_FILE._EMBEDDED_FILE_INDEX", "_FILE._EXTERNAL_PATH")
        numbers = (b"%d,%d" % pair for pair in zip(entries.bucket.tolist(), entries.level.tolist(), strict=True))
        return list(zip(*(entries.content(name) for name in names), numbers, strict=True))

    def physical_names(self) -> set[str]:
        """Return names of data files and side files."""
        names = set(self.file_name)
        for extra in set(self.content("_FILE._EXTRA_FILES")):
            names.update(names_of(extra))
        return names

    def records(self) -> Iterator[bytes]:
        """Yield the encoded entries in today's layout."""
        bounds = zip(self.columns.start.tolist(), self.columns.end.tolist(), self.short.tolist(), strict=True)
        for start, end, short in bounds:
            yield whole_record(self.payload[start:end], short=short)

    def deleted(self) -> EntryColumns:
        """Return a DELETE entry for each entry."""
        kind = bytes([FileKind.DELETE << 1])  # the second byte of an entry
        return EntryColumns.of_records([record[:1] + kind + record[2:] for record in self.records()])

    def entries(self) -> list[ManifestEntry]:
        """Return the entries as objects. Raises ``CorruptFile``."""
        return build_entries(self.columns, self.payload, self.files())

    def files(self) -> list[DataFileMeta]:
        """Return the files of the entries as objects.

        Cached while their manifests are. Raises ``CorruptFile``.
        """
        built = [cached.files for cached in self.built]
        sources, rows = self.source.tolist(), self.row.tolist()
        files = [built[source].get(row) for source, row in zip(sources, rows, strict=True)]
        missing = [index for index, file in enumerate(files) if file is None]
        if missing:
            with gc_paused():
                for index, file in zip(missing, self._build(np.array(missing, np.intp)), strict=True):
                    built[sources[index]][rows[index]] = files[index] = file
        return [file for file in files if file is not None]

    def _build(self, rows: Indices) -> list[DataFileMeta]:
        try:
            return build_files(self.columns.take(rows), self.payload)
        except (ValueError, LookupError):
            for row in rows:  # find the invalid one
                try:
                    build_files(self.columns.take(np.array([row])), self.payload)
                except (ValueError, LookupError) as error:
                    raise CorruptFile(self.path_of(int(row)), f"an entry is invalid ({error})") from error
            raise

    def path_of(self, row: int) -> str:
        """Return the path of the manifest of an entry."""
        return self.paths[self.source[row]] if row < len(self) and self.paths[self.source[row]] else "new manifest entries"


class _Joined:
    """Columns of parts to join. Keeps no part's bytes."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.source: list[Indices] = []
        self.payload = io.BytesIO()  # getvalue() does not copy
        self.columns: list[RecordColumns] = []
        self.short: list[Mask] = []
        self.row: list[Indices] = []
        self.built: list[BuiltFiles] = []
        self.codes: list[Int64s] = []
        self.partitions: dict[bytes, int] = {}

    def add(self, part: EntryColumns) -> None:
        self.source.append(part.source + len(self.paths))
        self.paths += part.paths
        self.columns.append(part.columns.shift_by(self.payload.tell()))
        self.payload.write(part.payload)
        self.short.append(part.short)
        self.row.append(part.row)
        self.built += part.built
        codes, code_partitions = part.partition_codes
        numbers = self.partitions
        self.codes.append(np.array([numbers.setdefault(partition, len(numbers)) for partition in code_partitions], np.int64)[codes])

    def join(self, payload: bytes) -> RecordColumns:
        """Return the columns of all parts."""
        # A joint decoding of few columns is cheaper than joining all, if it finds the same records.
        starts = np.concatenate([columns.start for columns in self.columns])
        decoded = decode_few_columns(_LAYOUT, payload, starts.size)
        return decoded if decoded is not None and np.array_equal(decoded.start, starts) else RecordColumns.join(self.columns)


def whole_record(record: bytes, *, short: bool) -> bytes:
    """Return an encoded entry in today's layout.

    A ``short`` record lacks the last byte.
    """
    return record + _NULL if short else record


def _check_entries(entries: EntryColumns) -> EntryColumns:
    other = entries.numbers("_VERSION") != ENTRY_VERSION
    if other.any():
        raise CorruptFile(entries.path_of(int(other.argmax())), f"has entries of another version than {ENTRY_VERSION}")
    neither = (entries.kind != FileKind.ADD) & (entries.kind != FileKind.DELETE)
    if neither.any():
        raise CorruptFile(entries.path_of(int(neither.argmax())), "has entries that neither add nor delete")
    return entries


def _starts(payload: bytes) -> Int64s:
    """Return offsets at which an entry may begin."""
    # An entry begins with version 2, a kind, and a partition with as many columns as the first one.
    buffer = np.frombuffer(payload + bytes(8), np.uint8)
    candidates = np.flatnonzero(buffer[:-8] == ENTRY_VERSION << 1)
    kinds = buffer[candidates + 1]
    candidates = candidates[(kinds == FileKind.ADD << 1) | (kinds == FileKind.DELETE << 1)]
    partition = candidates + 3 + (buffer[candidates + 2] > 0x7F)  # a partition of up to 8191 bytes has a length of one or two
    for offset in range(4 if partition.size else 0):
        bytes_at_offset = buffer[partition + offset]
        alike = bytes_at_offset == bytes_at_offset[0]
        candidates, partition = candidates[alike], partition[alike]
    starts: Int64s = candidates.astype(np.int64)
    return starts


@cache
def _no_columns() -> RecordColumns:
    """Return all columns without entries."""
    file = DataFileMeta(file_name="none", file_size=0, row_count=0, creation_time=0)
    entry = ManifestEntry(kind=FileKind.ADD, partition=bytes(12), bucket=0, total_buckets=0, file=file)
    columns = decode_columns(_LAYOUT, encode_records(_WRITER_SCHEMA, [entry.to_avro()])[0], 1, np.zeros(1, np.int64))
    assert columns is not None
    return columns.take(np.zeros(0, np.intp))
