"""Options that select what a scan reads.

Paimon's ``scan.mode`` with its companion options, and ``incremental-between`` (``StartupMode``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self, TypeAlias

import pyarrow as pa

from manifest.io.errors import SnapshotNotFound
from manifest.options.former_keys import PRESENT_KEYS, with_present_keys
from manifest.options.known_keys import BY_FILES
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.requests import TravelRequest
from pyspark_paimon.request.state import Pin, Snapshots
from pyspark_paimon.typing import Filter

_Point: TypeAlias = int | str
_MODE = "scan.mode"
_MEMBERS = {
    "scan.snapshot-id": "snapshot_id",
    "scan.tag-name": "tag",
    "scan.timestamp-millis": "timestamp_millis",
    "scan.timestamp": "timestamp_millis",
    "scan.watermark": "watermark",
    "scan.version": "version",
}
_BETWEEN, _BETWEEN_TIMES, _BETWEEN_MODE = "incremental-between", "incremental-between-timestamp", "incremental-between-scan-mode"
_INCREMENTAL = frozenset({_BETWEEN, _BETWEEN_TIMES})
_TIMES = frozenset({"scan.timestamp-millis", "scan.timestamp"})
_STATES = frozenset(_MEMBERS) - _TIMES
_NEEDS: dict[str, frozenset[str]] = {
    "latest-full": frozenset(),
    "full": frozenset(),
    "latest": frozenset(),
    "compacted-full": frozenset(),
    "from-timestamp": _TIMES,
    "from-snapshot": _STATES,
    "from-snapshot-full": frozenset({"scan.snapshot-id"}),
    "incremental": _INCREMENTAL,
}
"""Options by mode: it needs exactly one of them and allows no other."""
_REFUSED = {
    "scan.creation-time-millis": BY_FILES,
    "scan.file-creation-time-millis": BY_FILES,
    "incremental-to-auto-tag": f"is a function of SQL, paimon_incremental_to_auto_tag('t', 'tag'); here name the two tags in '{_BETWEEN}'",
}
_PLACES = frozenset({_MODE, _BETWEEN_MODE, *_MEMBERS, *_INCREMENTAL})


@dataclass(frozen=True, slots=True)
class ScanPlace:
    """A table state, or the changes between two points.

    ``mode``: incremental mode. None: derived from the table's options.
    """

    travel: TravelRequest
    between: tuple[_Point, _Point] | None = None
    mode: str | None = None

    @classmethod
    def of(cls, engine: Engine, options: Mapping[str, str]) -> ScanPlace | None:
        """Return the place that the options select.

        None: they select no place. Raises ``InvalidArgument``, ``UnsupportedOption``.
        """
        present = with_present_keys(options)
        for key, reason in _REFUSED.items():
            if key in present:
                raise UnsupportedOption(key, reason)
        place_options = {key: value.strip() for key, value in present.items() if key in _PLACES}
        if not place_options:
            return None
        mode = _mode(place_options)
        named = sorted(place_options.keys() - {_MODE, _BETWEEN_MODE})
        needed = _NEEDS[mode]
        if len(named) != bool(needed) or not needed.issuperset(named):
            needs = f"needs one of {', '.join(sorted(needed))}" if needed else "takes no position options"
            raise InvalidArgument(f"{_MODE} '{mode}' {needs}; given: {', '.join(named) or 'none'}")
        if mode == "incremental":
            diff_mode = place_options.get(_BETWEEN_MODE, "auto").lower()
            return cls(TravelRequest(), _points(engine, named[0], place_options[named[0]]), None if diff_mode == "auto" else diff_mode)
        if mode == "compacted-full":
            return cls(TravelRequest(compacted=True))
        return cls(TravelRequest.model_validate({_MEMBERS[key]: value_of_place(key, place_options[key]) for key in named}))


def is_place(key: str) -> bool:
    """Return whether an option selects what to read."""
    return PRESENT_KEYS.get(key, key) in _PLACES


def has_place(options: Mapping[str, str]) -> bool:
    """Return whether any option selects what to read."""
    return not _PLACES.isdisjoint(with_present_keys(options))


def without_place(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that do not select what to read."""
    return {key: value for key, value in options.items() if not is_place(key)}


def _mode(place_options: Mapping[str, str]) -> str:
    mode = place_options.get(_MODE, "default").lower()
    if mode == "default":
        by_key = (("incremental", _INCREMENTAL), ("from-timestamp", _TIMES), ("from-snapshot", _STATES))
        mode = next((name for name, keys in by_key if not keys.isdisjoint(place_options)), "latest-full")
    if mode in {"from-creation-timestamp", "from-file-creation-time"}:
        raise UnsupportedOption(_MODE, f"'{mode}' {BY_FILES}")
    if mode not in _NEEDS:
        raise UnsupportedOption(_MODE, f"'{mode}' is not a scan mode; use one of default, {', '.join(_NEEDS)}")
    return mode


def value_of_place(key: str, text: str) -> int | str:
    """Parse the value of an option that selects a snapshot."""
    try:
        if key == "scan.timestamp":
            return _millis(text)
        return text if key in {"scan.tag-name", "scan.version"} else int(text)
    except ValueError:
        raise InvalidArgument(f"{key}: '{text}' is not a {'time' if key == 'scan.timestamp' else 'number'}") from None


def _millis(text: str) -> int:
    """Parse milliseconds since 1970, or an ISO time.

    A time without zone is local time of this process.
    """
    return int(text) if text.lstrip("-").isdecimal() else int(datetime.fromisoformat(text).timestamp() * 1000)


def _points(engine: Engine, key: str, text: str) -> tuple[_Point, _Point]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise InvalidArgument(f"{key}: '{text}': give two points, like '3,7'")
    if key == _BETWEEN:
        start, end = (int(part) if part.isdecimal() else part for part in parts)
        return start, end
    try:
        first, last = (_millis(part) for part in parts)
    except ValueError:
        raise InvalidArgument(f"{key}: '{text}': give two times, as milliseconds or 'yyyy-mm-dd hh:mm:ss'") from None
    return _as_old_as(engine, first), _as_old_as(engine, last)


def _as_old_as(engine: Engine, millis: int) -> int:
    """Return the newest snapshot id at or before a time.

    If all snapshots are newer, returns the id before the oldest.
    """
    try:
        snapshot = engine.ask(Pin(travel=TravelRequest(timestamp_millis=millis)))
    except SnapshotNotFound:
        retained = engine.ask(Snapshots())
        return retained[0].id - 1 if retained else 0
    return 0 if snapshot is None else snapshot.id


class ScanSource(Protocol):
    """A scan: its schema, its rows, and narrower scans."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""

    @property
    def table_schema(self) -> TableSchema:
        """Schema of the table, whose columns filters may name."""

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches."""

    def limited(self, rows: int) -> Self:
        """Return a scan of the first rows."""

    def narrowed(self, filter: Filter) -> Self:  # noqa: A002  # Arrow's word
        """Return a scan with an additional filter.

        Raises ``PaimonError`` for a filter that the planner does not support.
        """

    def projected(self, columns: Sequence[str]) -> Self:
        """Return a scan of these columns."""
