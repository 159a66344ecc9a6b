"""Iceberg manifests and manifest lists.

An entry of a manifest is a record as Avro decodes it. A list has the counts and partition bounds of each manifest.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeAlias

from manifest.avro.codecs import codec_name
from manifest.avro.container import ContainerWriter, WriterSchema, blocks_of, encode_records, read_container
from manifest.avro.schemas import AvroSchema
from manifest.io.file_io import FileIO
from manifest.io.paths import local_form
from manifest.schema.iceberg_schema import WITH_VECTORS, IcebergOptions
from manifest.stats.column_stats import PartitionType
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from pyspark_paimon.plugins.iceberg.avro_schemas import legacy_name, manifest_entry, manifest_list
from pyspark_paimon.plugins.iceberg.values import from_partition_bound, partition_bound, partition_value
from sparkexpr.values.column_type import Plain
from sparkexpr.values.float_order import total_order_key

EXISTING: Final = 0
ADDED: Final = 1
DELETED: Final = 2
DATA: Final = 0
Entry: TypeAlias = dict[str, Any]
"""Record of a manifest: ``status``, ``snapshot_id``, sequence numbers, and ``data_file``."""


@dataclass(frozen=True, slots=True)
class IcebergManifest:
    """One manifest of a list, with Iceberg's names."""

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: int
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int | None
    added_files_count: int
    existing_files_count: int
    deleted_files_count: int
    added_rows_count: int
    existing_rows_count: int
    deleted_rows_count: int
    partitions: list[dict[str, Any]] | None
    first_row_id: int | None = None

    @property
    def live_files(self) -> int:
        """Number of entries that are not deleted."""
        return self.added_files_count + self.existing_files_count

    @property
    def live_rows(self) -> int:
        """Rows of the entries that are not deleted."""
        return self.added_rows_count + self.existing_rows_count


_COLUMNS = tuple(IcebergManifest.__dataclass_fields__)
_ROW_ID = "first_row_id"


@dataclass(slots=True)
class IcebergManifests:
    """Reads and writes the manifests of one table, for one publication.

    Args:
        file_io: The table's storage.
        directory: Directory of the metadata, as this package spells it.
        prefix: What metadata has before such a path: "" or ``file:``.
        partition: Partition columns of the table.
        options: The table's Iceberg options.
        target_size: Bytes at which a manifest is closed.
        headers: Avro metadata of new manifests.
    """

    file_io: FileIO
    directory: str
    prefix: str
    partition: PartitionType
    options: IcebergOptions
    target_size: int
    headers: dict[bytes, bytes]
    written: list[str] = field(default_factory=list)
    """Paths of the files that this object wrote."""
    _uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def read_list(self, path: str) -> list[IcebergManifest]:
        """Return the manifests of a list.

        Raises ``FileNotFoundError`` and ``CorruptFile``.
        """
        path = local_form(path)
        try:
            return [_manifest(record) for record in read_container(path, self.file_io.read(path)).records()]
        except (LookupError, TypeError) as error:
            raise CorruptFile(path, f"a record is not a manifest of Iceberg ({error})") from error

    def read(self, manifest: IcebergManifest) -> list[Entry]:
        """Return the entries of a manifest.

        Raises ``FileNotFoundError`` and ``CorruptFile``.
        """
        path = local_form(manifest.manifest_path)
        entries = read_container(path, self.file_io.read(path)).records()
        if any("status" not in entry or "file_path" not in entry.get("data_file", ()) for entry in entries):
            raise CorruptFile(path, "a record is not an entry of an Iceberg manifest")
        return entries

    def write(self, entries: Iterable[Entry], snapshot_id: int, content: int = DATA) -> list[IcebergManifest]:
        """Write entries into one or more manifests."""
        schema = manifest_entry(self.partition.names, self.partition.types)
        writer_schema = WriterSchema.of(schema)
        manifests: list[IcebergManifest] = []
        writer, pending = self._writer(schema, content), list[Entry]()
        rest = list(entries)
        records = iter(rest)
        for size, block in blocks_of(encode_records(writer_schema, rest)):
            writer.add(size, block)
            pending += [next(records) for _ in range(size)]
            if writer.size >= self.target_size:
                manifests.append(self._close(writer, pending, snapshot_id, content))
                writer, pending = self._writer(schema, content), []
        if pending:
            manifests.append(self._close(writer, pending, snapshot_id, content))
        return manifests

    def write_list(self, manifests: Sequence[IcebergManifest]) -> str:
        """Write a list, possibly empty.

        Returns its path as metadata has it.
        """
        row_ids = self.options.format_version >= WITH_VECTORS
        schema = manifest_list(legacy=self.options.legacy_names, row_ids=row_ids)
        writer = ContainerWriter(schema, codec=codec_name(self.options.compression), level=1)
        columns = [name for name in _COLUMNS if row_ids or name != _ROW_ID]
        records = [{name: getattr(manifest, name) for name in columns} for manifest in manifests]
        if self.options.legacy_names:
            records = [{legacy_name(name): value for name, value in record.items()} for record in records]
        for size, block in blocks_of(encode_records(WriterSchema.of(schema), records)):
            writer.add(size, block)
        return self._put(f"snap-1-{self._uuid}.avro", writer.content())

    def write_vectors(self, data: bytes) -> str:
        """Write a Puffin file. Returns its path as metadata has it."""
        return self._put(f"{self._uuid}-dv.puffin", data)

    def delete_written(self) -> None:
        """Delete the files that this object wrote."""
        for path in self.written:
            with suppress(OSError):  # leaves an orphan
                self.file_io.delete(path)
        self.written.clear()

    def _writer(self, schema: AvroSchema, content: int) -> ContainerWriter:
        writer = ContainerWriter(schema, codec=codec_name(self.options.compression), level=1)
        writer.metadata.update({**self.headers, b"content": b"data" if content == DATA else b"deletes"})
        return writer

    def _close(self, writer: ContainerWriter, entries: Sequence[Entry], snapshot_id: int, content: int) -> IcebergManifest:
        data = writer.content()
        files, rows = [0, 0, 0], [0, 0, 0]
        for entry in entries:
            files[entry["status"]] += 1
            rows[entry["status"]] += entry["data_file"]["record_count"]
        return IcebergManifest(
            manifest_path=self._put(f"{self._uuid}-m{next(self._numbers)}.avro", data),
            manifest_length=len(data),
            partition_spec_id=0,
            content=content,
            sequence_number=snapshot_id,
            min_sequence_number=min(entry["sequence_number"] for entry in entries),
            added_snapshot_id=snapshot_id,
            added_files_count=files[ADDED],
            existing_files_count=files[EXISTING],
            deleted_files_count=files[DELETED],
            added_rows_count=rows[ADDED],
            existing_rows_count=rows[EXISTING],
            deleted_rows_count=rows[DELETED],
            partitions=self._summaries([entry["data_file"]["partition"] for entry in entries]),
        )

    def _put(self, name: str, data: bytes) -> str:
        path = f"{self.directory}/{name}"
        self.written.append(path)
        self.file_io.write(path, data)
        return self.prefix + path

    def _summaries(self, partitions: Sequence[dict[str, Plain]]) -> list[dict[str, Any]]:
        """Return null flags and bounds of each partition column."""
        summaries: list[dict[str, Any]] = []
        for name, data_type in zip(self.partition.names, self.partition.types, strict=True):
            every = {partition[name] for partition in partitions}
            comparable = [value for value in every if value is not None and not _is_nan(value)]
            summaries.append(
                {
                    "contains_null": None in every,
                    "contains_nan": any(map(_is_nan, every)),
                    "lower_bound": partition_bound(min(comparable, key=total_order_key, default=None), data_type),
                    "upper_bound": partition_bound(max(comparable, key=total_order_key, default=None), data_type),
                }
            )
        return summaries

    def may_hold(self, manifest: IcebergManifest, partitions: Sequence[dict[str, Plain]]) -> bool:
        """Return whether a manifest may have entries of one of ``partitions``."""
        if not partitions:
            return False
        if manifest.partitions is None or len(manifest.partitions) != len(self.partition.names):
            return True
        columns = [
            (name, data_type, summary)
            for name, data_type, summary in zip(self.partition.names, self.partition.types, manifest.partitions, strict=True)
        ]
        return any(all(_may_be(partition[name], data_type, summary) for name, data_type, summary in columns) for partition in partitions)


def _may_be(value: Plain, data_type: DataType, summary: dict[str, Any]) -> bool:
    """Return whether a partition column may have a value."""
    if value is None:
        return bool(summary["contains_null"])
    low, high = summary["lower_bound"], summary["upper_bound"]
    if low is None or high is None or _is_nan(value):
        return True
    least, upper = (total_order_key(from_partition_bound(bound, data_type)) for bound in (low, high))
    return least <= total_order_key(value) <= upper


def _is_nan(value: Plain) -> bool:
    return isinstance(value, float) and math.isnan(value)


def partition_record(partition: PartitionType, values: Sequence[Plain]) -> dict[str, Plain]:
    """Return the Avro record of a partition."""
    columns = zip(partition.names, partition.types, values, strict=True)
    return {name: partition_value(value, data_type) for name, data_type, value in columns}


def _manifest(record: dict[str, Any]) -> IcebergManifest:
    columns = [name for name in _COLUMNS if name != _ROW_ID]
    values = {name: record[name] if name in record else record[legacy_name(name)] for name in columns}
    return IcebergManifest(**values, first_row_id=record.get(_ROW_ID))
