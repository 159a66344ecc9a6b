"""One change of the file set (Paimon's ``ManifestEntry``)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict

from manifest.entry.data_file import DataFileMeta, FileIdentity

ENTRY_VERSION = 2

EntryIdentity: TypeAlias = tuple[bytes, int, FileIdentity]


class FileKind(IntEnum):
    """Whether an entry adds or deletes its file."""

    ADD = 0
    DELETE = 1


class ManifestEntry(BaseModel):
    """An added or deleted file of a bucket.

    ``total_buckets`` is the bucket count when the file was written.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> EntryIdentity:
        """(partition, bucket, file identity).

        An ADD and a DELETE of equal identity cancel.
        """
        return self.partition, self.bucket, self.file.identity

    def deleted(self) -> ManifestEntry:
        """Return the DELETE of this ADD."""
        return self.model_copy(update={"kind": FileKind.DELETE})

    def to_avro(self) -> dict[str, Any]:
        """Return the manifest record."""
        return {
            "_VERSION": ENTRY_VERSION,
            "_KIND": int(self.kind),
            "_PARTITION": self.partition,
            "_BUCKET": self.bucket,
            "_TOTAL_BUCKETS": self.total_buckets,
            "_FILE": self.file.to_avro(),
        }

    @classmethod
    def from_avro(cls, record: Mapping[str, Any]) -> ManifestEntry:
        """Return the entry of a manifest record.

        Raises ``KeyError`` or ``ValidationError``.
        """
        return cls(
            kind=FileKind(record["_KIND"]),
            partition=record["_PARTITION"],
            bucket=record["_BUCKET"],
            total_buckets=record["_TOTAL_BUCKETS"],
            file=DataFileMeta.from_avro(record["_FILE"]),
        )


__all__ = ["ENTRY_VERSION", "FileKind", "ManifestEntry"]
