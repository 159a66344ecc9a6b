"""Numbers of metadata files. Other engines keep them as Java's ``long``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, TypeAlias

from pydantic import Field

MAX_LONG = 2**63 - 1
_YEAR_1, _YEAR_10000 = -62_135_596_800_000, 253_402_300_800_000
"""Milliseconds since the epoch that calendars of years with four digits end with."""

Long: TypeAlias = Annotated[int, Field(ge=-MAX_LONG - 1, le=MAX_LONG)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=MAX_LONG)]
SnapshotId: TypeAlias = Annotated[int, Field(ge=1, le=MAX_LONG)]
FieldId: TypeAlias = Annotated[int, Field(ge=-1, le=2**31 - 1)]
Millis: TypeAlias = Annotated[int, Field(ge=_YEAR_1, lt=_YEAR_10000)]


def utc_text(millis: int) -> str:
    """Return a time for messages.

    >>> utc_text(0), utc_text(2**62)
    ('1970-01-01 00:00:00+00:00', 'beyond all calendars')
    """
    try:
        return datetime.fromtimestamp(millis / 1000, UTC).isoformat(sep=" ", timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return "beyond all calendars"
