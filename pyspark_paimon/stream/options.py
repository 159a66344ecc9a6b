"""Options and offsets of a streaming read.

The names are the same as in Paimon's table options and Spark connector.
"""

# Spark passes options in lower case. It asks a source for its schema without saying whether the read is a stream:
# ``is_stream`` therefore looks for options that only streams have.

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, ValidationError

from lsm.incremental.stream_scan import Limits, Position, StartMode
from manifest.options.known_keys import STREAM_LIMITS, STREAM_ONLY
from paimon_base.errors import InvalidArgument, UnsupportedOption

SNAPSHOT_ID, TIMESTAMP = "scan.snapshot-id", "scan.timestamp-millis"
MODE, OVERWRITES = "scan.mode", "streaming-read-overwrite"
KINDS, CONSUMER_OPTION, IGNORE_PROGRESS = "read.changelog", "consumer-id", "consumer.ignore-progress"
_KEYS = frozenset({*STREAM_ONLY, MODE, OVERWRITES, IGNORE_PROGRESS, SNAPSHOT_ID, TIMESTAMP})
_FULL = {"full": StartMode.LATEST_FULL}
_UNSUPPORTED = {
    "scan.tag-name": "selects a snapshot, not a position in a stream; use scan.snapshot-id",
    "incremental-between": "reads a range with an end, which a stream does not have; use a batch read",
    "incremental-between-scan-mode": "reads a range with an end, which a stream does not have; use a batch read",
}
_VERSION = 1


class StreamOptions(BaseModel):
    """Validated options of a stream.

    >>> options = StreamOptions.of({"scan.snapshot-id": "3", "read.stream.maxrowspertrigger": "1000"})
    >>> options.mode.value, options.snapshot_id, options.limits.rows
    ('from-snapshot', 3, 1000)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: StartMode = StartMode.LATEST_FULL
    snapshot_id: PositiveInt | None = None
    timestamp_millis: int | None = None
    max_files: PositiveInt | None = None
    max_rows: PositiveInt | None = None
    max_bytes: PositiveInt | None = None
    consumer: str | None = None
    ignore_progress: bool = False
    overwrites: bool = False
    kinds: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str], table: Mapping[str, str] | None = None) -> StreamOptions:
        """Parse the options of a read.

        table: Options of the table, used if the read does not set them.
        Raises ``InvalidArgument`` and ``UnsupportedOption``.
        """
        for key, reason in _UNSUPPORTED.items():
            if key in options:
                raise UnsupportedOption(key, f"{reason}")
        stored = {key: value for key, value in (table or {}).items() if key in {MODE, OVERWRITES, IGNORE_PROGRESS}}
        stream_settings = {**stored, **{key: value.strip() for key, value in options.items() if key in _KEYS}}
        members: dict[str, Any] = {
            "snapshot_id": stream_settings.get(SNAPSHOT_ID),
            "timestamp_millis": stream_settings.get(TIMESTAMP),
            "consumer": stream_settings.get(CONSUMER_OPTION),
            "mode": _mode(stream_settings),
            **{member: stream_settings.get(key) for key, member in STREAM_LIMITS.items()},
        }
        for key, member in ((IGNORE_PROGRESS, "ignore_progress"), (OVERWRITES, "overwrites"), (KINDS, "kinds")):
            members[member] = stream_settings.get(key)
        try:
            return cls.model_validate({member: value for member, value in members.items() if value is not None})
        except ValidationError as error:
            first = error.errors()[0]
            raise InvalidArgument(f"the stream's {first['loc'][0]} cannot be {first['input']!r}: {first['msg']}") from None

    @property
    def limits(self) -> Limits:
        """Limits of one batch."""
        return Limits(self.max_files, self.max_rows, self.max_bytes)


def is_stream(options: Mapping[str, str]) -> bool:
    """Return whether only a streaming read has such options.

    >>> is_stream({"path": "/t", "consumer-id": "c"}), is_stream({"path": "/t"})
    (True, False)
    """
    return MODE in options or not STREAM_ONLY.isdisjoint(options)


def without_stream(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that batch reads have, too."""
    return {key: value for key, value in options.items() if key not in _KEYS}


def _mode(stream_settings: Mapping[str, str]) -> StartMode:
    name = stream_settings.get(MODE, "default").lower()
    if name == "default":
        name = "from-snapshot" if SNAPSHOT_ID in stream_settings else "from-timestamp" if TIMESTAMP in stream_settings else "latest-full"
    mode = _FULL.get(name) or next((start_mode for start_mode in StartMode if start_mode.value == name), None)
    if mode is None:
        raise UnsupportedOption(MODE, f"'{name}' is not a supported start of a stream; use one of {', '.join(StartMode)}")
    needs = {StartMode.FROM_SNAPSHOT: SNAPSHOT_ID, StartMode.FROM_SNAPSHOT_FULL: SNAPSHOT_ID, StartMode.FROM_TIMESTAMP: TIMESTAMP}.get(mode)
    for key in (SNAPSHOT_ID, TIMESTAMP):
        if (key in stream_settings) != (key == needs):
            raise InvalidArgument(f"{MODE} '{mode.value}' {'needs' if key == needs else 'does not allow'} the option {key}")
    return mode


def offset_of(position: Position) -> dict[str, Any]:
    """Encode a position as Spark stores it in a checkpoint.

    >>> offset_of(Position(3, 1))
    {'version': 1, 'snapshot': 3, 'unit': 1, 'whole': False}
    """
    offset = {"version": _VERSION, "snapshot": position.snapshot_id, "unit": position.unit, "whole": position.whole}
    return offset if position.after is None else {**offset, "after": position.after}


class _Offset(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    version: int
    snapshot: NonNegativeInt
    unit: NonNegativeInt
    whole: bool
    after: str | None = None


def position_of(offset: Mapping[str, Any]) -> Position:
    """Decode the offset of a checkpoint.

    Raises ``InvalidArgument`` for an offset of another version or source.
    """
    try:
        parsed = _Offset.model_validate(dict(offset))
    except ValidationError:
        parsed = None
    if parsed is None or parsed.version != _VERSION:
        raise InvalidArgument(
            f"the checkpoint's offset {json.dumps(dict(offset))} was not written by this version of pyspark-paimon; use its version, or a new checkpoint"
        )
    return Position(parsed.snapshot, parsed.unit, parsed.whole, parsed.after)
