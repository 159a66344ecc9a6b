"""Tags: named snapshots that keep their files (Paimon's ``Tag``)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from manifest.snapshot.snapshot import Snapshot


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


__all__ = ["Tag"]
