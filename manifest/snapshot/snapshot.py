"""Snapshot files, whose appearance is a commit (Paimon's ``Snapshot``)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError
from pydantic.alias_generators import to_camel

from fileindex.base.errors import CorruptFile
from manifest.io.seal import check_seal

BATCH_IDENTIFIER = 2**63 - 1
"""Commit identifier of jobs that commit once, without batch numbers."""

NO_WATERMARK = -(2**63)
FIRST_REPLACED = "pyspark-paimon.first-replaced"
"""Property of snapshots that replace others (rollback on an object store): smallest replaced id."""


class SnapshotKey(NamedTuple):
    """Identity of a snapshot.

    A rollback may free an id for reuse, but no two commits share a delta manifest list.
    The state before the first snapshot has ``id`` 0 and an empty ``delta_manifest_list``.
    """

    id: int
    delta_manifest_list: str


EMPTY_TABLE = SnapshotKey(0, "")


class ReadState(NamedTuple):
    """Snapshot that the rows to commit were computed from.

    ``whole_table``: whether they depend on all buckets, not only on the written ones.
    """

    snapshot: SnapshotKey
    whole_table: bool = False


class CommitKind(StrEnum):
    """Kind of a snapshot. Readers reject any other value."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


def plain_name(name: str) -> str:
    """Return ``name`` unless it is a path.

    Raises ``ValueError`` for a path.

    >>> plain_name("manifest-list-1")
    'manifest-list-1'
    """
    if not name or "/" in name or "\\" in name or "\0" in name or name in {".", ".."}:
        raise ValueError(f"{name!r} is not a file name")
    return name


FileName = Annotated[str, AfterValidator(plain_name)]


class Snapshot(BaseModel):
    """One version of the table: base state, delta, counters.

    Unknown JSON keys are ignored.

    >>> text = Snapshot(id=1, schema_id=0, base_manifest_list="a", delta_manifest_list="b", commit_user="u",
    ...     commit_identifier=7, commit_kind=CommitKind.APPEND, time_millis=0, total_record_count=5, delta_record_count=5).to_json()
    >>> Snapshot.from_json(text, "snapshot-1").commit_identifier
    7
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore", defer_build=True)

    version: int = 3
    uuid: str | None = None
    id: Annotated[int, Field(ge=1)]
    schema_id: NonNegativeInt
    base_manifest_list: FileName
    base_manifest_list_size: NonNegativeInt | None = None
    delta_manifest_list: FileName
    delta_manifest_list_size: NonNegativeInt | None = None
    changelog_manifest_list: FileName | None = None
    changelog_manifest_list_size: NonNegativeInt | None = None
    index_manifest: FileName | None = None
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    total_record_count: int
    delta_record_count: int
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: FileName | None = None
    properties: dict[str, str] | None = None
    next_row_id: int | None = None
    operation: str | None = None

    @classmethod
    def from_json(cls, text: bytes | str, path: str) -> Self:
        """Parse the content of ``path``. Raises ``CorruptFile``."""
        check_seal(path, text)
        try:
            return cls.model_validate_json(text)
        except (ValidationError, ValueError, RecursionError) as error:
            raise CorruptFile(path, f"not a snapshot ({_brief(error)})") from error

    def to_json(self) -> str:
        """Return the file's content, without absent values."""
        return self.model_dump_json(by_alias=True, exclude_none=True, indent=2)

    @property
    def manifest_lists(self) -> tuple[tuple[str, int | None], ...]:
        """(name, size) of the base and delta list.

        Together they are the state.
        """
        return (self.base_manifest_list, self.base_manifest_list_size), (self.delta_manifest_list, self.delta_manifest_list_size)

    @property
    def key(self) -> SnapshotKey:
        """Identity of the snapshot."""
        return SnapshotKey(self.id, self.delta_manifest_list)

    @property
    def first_replaced(self) -> int | None:
        """Smallest id of the replaced snapshots. None: replaces none."""
        text = (self.properties or {}).get(FIRST_REPLACED, "")
        return int(text) if text.isascii() and text.isdecimal() else None


def _brief(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'file'}: {item['msg']}" for item in error.errors()[:3])


__all__ = [
    "BATCH_IDENTIFIER",
    "EMPTY_TABLE",
    "FIRST_REPLACED",
    "NO_WATERMARK",
    "CommitKind",
    "FileName",
    "ReadState",
    "Snapshot",
    "SnapshotKey",
]
