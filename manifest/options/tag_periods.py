"""Options of automatic tags: periods, time zones and retention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from manifest.options.durations import parse_duration_millis
from paimon_base.errors import UnsupportedOption

TAG_MODE: Final = "tag.automatic-creation"
TAG_EXPIRES: Final = "tag.time-expire-enabled"
TAG_MODES: Final = ("none", "process-time", "watermark", "batch")
_PERIOD, _LASTS, _DELAY = "tag.creation-period", "tag.creation-period-duration", "tag.creation-delay"
_FORMATTER, _MOST, RETAINED = "tag.period-formatter", "tag.num-retained-max", "tag.default-time-retained"
COMPLETION, BATCH_NAME = "tag.automatic-completion", "tag.batch.customized-name"
PROCESS_ZONE, WATERMARK_ZONE = "sink.process-time-zone", "sink.watermark-time-zone"
TAG_OPTIONS: Final = (_PERIOD, _LASTS, _DELAY, _FORMATTER, _MOST, COMPLETION, BATCH_NAME, PROCESS_ZONE, WATERMARK_ZONE)
"""Other options of automatic tags."""

_HOURS = {"with_dashes": "%Y-%m-%d %H", "without_dashes": "%Y%m%d %H", "without_dashes_and_spaces": "%Y%m%d%H"}
_DAYS = {"with_dashes": "%Y-%m-%d", "without_dashes": "%Y%m%d", "without_dashes_and_spaces": "%Y%m%d"}
_MINUTES = "%Y%m%d%H%M"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # wall clocks are compared


@dataclass(frozen=True)
class TagPeriods:
    """Periods of automatic tags, and the tags' names.

    Times are wall clock times in the table's zone.

    >>> periods = TagPeriods.of({"tag.creation-period": "hourly"})
    >>> periods.name(periods.before(datetime(2024, 3, 1, 0, 20)))
    '2024-02-29 23'
    >>> periods.time("2024-02-29 23"), periods.time("release")
    (datetime.datetime(2024, 2, 29, 23, 0), None)
    """

    length: timedelta
    form: str
    delay: timedelta

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TagPeriods:
        """Parse the options. Raises ``UnsupportedOption``."""
        formatter = _one_of(options, _FORMATTER, ("with_dashes", "without_dashes", "without_dashes_and_spaces"))
        period = _one_of(options, _PERIOD, ("daily", "hourly", "two-hours"))
        delay = timedelta(milliseconds=millis_of_option(options, _DELAY) or 0)
        lasts = millis_of_option(options, _LASTS)
        if lasts is not None:
            length, form = timedelta(milliseconds=lasts), _MINUTES
        elif period == "daily":
            length, form = timedelta(days=1), _DAYS[formatter]
        else:
            length = timedelta(hours=1 if period == "hourly" else 2)
            form = _HOURS[formatter if period == "hourly" else "with_dashes"]
        if length <= delay:
            raise UnsupportedOption(_DELAY, f"must be shorter than a period, {length}")
        return cls(length, form, delay)

    def name(self, time: datetime) -> str:
        """Return the tag name of the period starting at ``time``."""
        return time.strftime(self.form)

    def time(self, name: str) -> datetime | None:
        """Return the beginning of a tag's period.

        None for other tags.
        """
        try:
            start = datetime.strptime(name, self.form)  # noqa: DTZ007  # as above
        except ValueError:
            return None
        return start if self.name(start) == name else None

    def before(self, time: datetime) -> datetime:
        """Return the beginning of the last complete period at ``time``."""
        return _EPOCH + (time - _EPOCH) // self.length * self.length - self.length


def check_tags(options: Mapping[str, str]) -> None:
    """Raise ``UnsupportedOption`` for invalid options of automatic tags."""
    if _one_of(options, TAG_MODE, TAG_MODES) != "none":
        TagPeriods.of(options)
        most_tags(options), millis_of_option(options, RETAINED), zone_of(options, PROCESS_ZONE), zone_of(options, WATERMARK_ZONE)


def zone_of(options: Mapping[str, str], key: str) -> tzinfo | None:
    """Return a time zone by name, None if unset.

    Raises ``UnsupportedOption``.
    """
    name = options.get(key, "").strip()
    try:
        return ZoneInfo(name) if name else None
    except (LookupError, ValueError) as error:
        raise UnsupportedOption(key, f"'{name}' is not a time zone") from error


def _one_of(options: Mapping[str, str], key: str, allowed: tuple[str, ...]) -> str:
    value = options.get(key, allowed[0]).strip().lower()
    if value not in allowed:
        raise UnsupportedOption(key, f"'{value}' is not valid; use one of: {', '.join(allowed)}")
    return value


def millis_of_option(options: Mapping[str, str], key: str) -> int | None:
    """Return a duration in milliseconds, None if unset.

    Raises ``UnsupportedOption``.
    """
    text = options.get(key)
    return None if text is None else parse_duration_millis(text, key)


def most_tags(options: Mapping[str, str]) -> int | None:
    """Return the maximal number of automatic tags. None: unlimited.

    Raises ``UnsupportedOption``.
    """
    text = options.get(_MOST, "").strip()
    if not text:
        return None
    if not text.isdigit() or int(text) < 1:
        raise UnsupportedOption(_MOST, f"'{text}' is not a number of tags")
    return int(text)
