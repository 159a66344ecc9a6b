"""Snapshots, tags and commits by a catalog server.

The appearance of a snapshot file is a commit (Paimon's ``Snapshot``, ``Tag``, ``SnapshotCommit``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, NamedTuple, Protocol, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError
from pydantic.alias_generators import to_camel

from manifest.io.checksum import verify_checksum
from manifest.io.numbers import Count, Long, Millis, SnapshotId
from paimon_base.errors import CorruptFile

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
    id: SnapshotId
    schema_id: Count
    base_manifest_list: FileName
    base_manifest_list_size: Count | None = None
    delta_manifest_list: FileName
    delta_manifest_list_size: Count | None = None
    changelog_manifest_list: FileName | None = None
    changelog_manifest_list_size: Count | None = None
    index_manifest: FileName | None = None
    commit_user: str
    commit_identifier: Long
    commit_kind: CommitKind
    time_millis: Millis
    total_record_count: Long
    delta_record_count: Long
    changelog_record_count: Long | None = None
    watermark: Long | None = None
    statistics: FileName | None = None
    properties: dict[str, str] | None = None
    next_row_id: Long | None = None
    operation: str | None = None

    @classmethod
    def from_json(cls, text: bytes | str, path: str) -> Self:
        """Parse the content of ``path``. Raises ``CorruptFile``."""
        verify_checksum(path, text)
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


class PartitionStatistics(BaseModel):
    """Change of one partition by a snapshot. Deletions are negative.

    ``spec`` has the values as text, as in directory names.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")

    spec: dict[str, str]
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int
    total_buckets: int = 0


Changed = Callable[[], Sequence[PartitionStatistics]]
"""Returns the changed partitions of a snapshot, counted on demand."""


class SnapshotCommit(Protocol):
    """Catalog that knows and commits the newest snapshot.

    Snapshot files keep their usual paths.
    """

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot, None before the first commit."""

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Return a snapshot whose file is missing, None if unknown."""

    def commit(self, snapshot: Snapshot, changed: Changed) -> bool:
        """Make ``snapshot`` the newest. Return False if its id exists.

        Raises ``CatalogRefused`` if the snapshot surely was not committed, another ``OSError`` if that is unknown.
        """


def _time(value: object) -> object:
    """Parse a local date and time in Java's list format."""
    # [year, month, day, hour, minute, second, nanosecond], trailing zeros omitted
    if isinstance(value, list) and len(value) >= 3 and all(type(part) is int for part in value):
        year, month, day, hour, minute, second, nanos = (*value, 0, 0, 0, 0)[:7]
        return datetime(year, month, day, hour, minute, second, nanos // 1000)  # noqa: DTZ001 -- a wall clock's time
    return value


def _parts(time: datetime) -> list[int]:
    return [time.year, time.month, time.day, time.hour, time.minute, time.second, time.microsecond * 1000]


LocalTime = Annotated[datetime, BeforeValidator(_time), PlainSerializer(_parts)]
Seconds = Annotated[timedelta, PlainSerializer(lambda duration: duration.total_seconds())]


class Tag(Snapshot):
    """Content of a tag file.

    Both times are set for a tag that expires. ``tag_create_time`` is local wall clock time.

    >>> tag = Tag.from_json('''{"id": 1, "schemaId": 0, "baseManifestList": "a", "deltaManifestList": "b", "commitUser": "u",
    ...     "commitIdentifier": 7, "commitKind": "APPEND", "timeMillis": 0, "totalRecordCount": 5, "deltaRecordCount": 5,
    ...     "tagCreateTime": [2024, 1, 31, 10, 0], "tagTimeRetained": 90000.000000000}''', "tag-a")
    >>> tag.expires_at
    datetime.datetime(2024, 2, 1, 11, 0)
    """

    tag_create_time: LocalTime | None = None
    tag_time_retained: Seconds | None = None

    @classmethod
    def of(cls, snapshot: Snapshot, retained_ms: int | None = None) -> Tag:
        """Return a new tag of ``snapshot``, created now."""
        members = snapshot.model_dump(exclude={"tag_create_time", "tag_time_retained"})
        if retained_ms is None:
            return cls.model_validate(members)
        now = datetime.now()  # noqa: DTZ005 -- Paimon notes the wall clock's time
        return cls.model_validate(members | {"tag_create_time": now, "tag_time_retained": timedelta(milliseconds=retained_ms)})

    @property
    def snapshot(self) -> Snapshot:
        """The tagged snapshot."""
        return Snapshot.model_validate(self.model_dump())

    @property
    def state(self) -> Snapshot:
        """The tagged snapshot as the start of a history.

        Without its changelog, which a tag does not keep.
        """
        nothing = dict.fromkeys(("changelog_manifest_list", "changelog_manifest_list_size", "changelog_record_count"))
        return self.snapshot.model_copy(update=nothing)

    @property
    def expires_at(self) -> datetime | None:
        """Local wall clock time of expiry. None: never."""
        if self.tag_create_time is None or self.tag_time_retained is None:
            return None
        return self.tag_create_time + self.tag_time_retained
