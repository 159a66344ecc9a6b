"""The options of tags that commits make by themselves: which periods they name, in which zone, and how many are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from fileindex.base.errors import UnsupportedOption
from manifest.options.durations import parse_duration_millis

TAG_MODE: Final = "tag.automatic-creation"
TAG_EXPIRES: Final = "tag.time-expire-enabled"
TAG_MODES: Final = ("none", "process-time", "watermark", "batch")
_PERIOD, _LASTS, _DELAY = "tag.creation-period", "tag.creation-period-duration", "tag.creation-delay"
_FORMATTER, _MOST, RETAINED = "tag.period-formatter", "tag.num-retained-max", "tag.default-time-retained"
COMPLETION, BATCH_NAME = "tag.automatic-completion", "tag.batch.customized-name"
PROCESS_ZONE, WATERMARK_ZONE = "sink.process-time-zone", "sink.watermark-time-zone"
TAG_OPTIONS: Final = (_PERIOD, _LASTS, _DELAY, _FORMATTER, _MOST, COMPLETION, BATCH_NAME, PROCESS_ZONE, WATERMARK_ZONE)
"""What else they go by."""

_HOURS = {"with_dashes": "%Y-%m-%d %H", "without_dashes": "%Y%m%d %H", "without_dashes_and_spaces": "%Y%m%d%H"}
_DAYS = {"with_dashes": "%Y-%m-%d", "without_dashes": "%Y%m%d", "without_dashes_and_spaces": "%Y%m%d"}
_MINUTES = "%Y%m%d%H%M"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # wall clocks are compared


@dataclass(frozen=True)
class TagPeriods:
    """The periods of a table's automatic tags, and the names that they give. Times are wall clocks in the table's zone.

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
        """As the options say. Raises ``UnsupportedOption`` for values that are none."""
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
            raise UnsupportedOption(_DELAY, f"is not shorter than a period, {length}")
        return cls(length, form, delay)

    def name(self, time: datetime) -> str:
        """The tag of the period that begins at ``time``."""
        return time.strftime(self.form)

    def time(self, name: str) -> datetime | None:
        """When the period of a tag begins; None for a tag of another kind."""
        try:
            found = datetime.strptime(name, self.form)  # noqa: DTZ007  # as above
        except ValueError:
            return None
        return found if self.name(found) == name else None

    def before(self, time: datetime) -> datetime:
        """The beginning of the last period that was over at ``time``."""
        return _EPOCH + (time - _EPOCH) // self.length * self.length - self.length


def check_tags(options: Mapping[str, str]) -> None:
    """Raise ``UnsupportedOption`` for options of automatic tags that mean nothing."""
    if _one_of(options, TAG_MODE, TAG_MODES) != "none":
        TagPeriods.of(options)
        most_tags(options), millis_of_option(options, RETAINED), zone_of(options, PROCESS_ZONE), zone_of(options, WATERMARK_ZONE)


def zone_of(options: Mapping[str, str], key: str) -> tzinfo | None:
    """A time zone by its name; None where none is given. Raises ``UnsupportedOption``."""
    name = options.get(key, "").strip()
    try:
        return ZoneInfo(name) if name else None
    except (LookupError, ValueError) as error:
        raise UnsupportedOption(key, f"'{name}' is no time zone") from error


def _one_of(options: Mapping[str, str], key: str, allowed: tuple[str, ...]) -> str:
    value = options.get(key, allowed[0]).strip().lower()
    if value not in allowed:
        raise UnsupportedOption(key, f"'{value}' is none; possible: {', '.join(allowed)}")
    return value


def millis_of_option(options: Mapping[str, str], key: str) -> int | None:
    """A duration in milliseconds; None where none is given. Raises ``UnsupportedOption``."""
    text = options.get(key)
    return None if text is None else parse_duration_millis(text, key)


def most_tags(options: Mapping[str, str]) -> int | None:
    """How many automatic tags are kept; None: all. Raises ``UnsupportedOption``."""
    text = options.get(_MOST, "").strip()
    if not text:
        return None
    if not text.isdigit() or int(text) < 1:
        raise UnsupportedOption(_MOST, f"'{text}' is no number of tags")
    return int(text)


__all__ = [
    "BATCH_NAME",
    "COMPLETION",
    "PROCESS_ZONE",
    "RETAINED",
    "TAG_MODE",
    "TAG_MODES",
    "TAG_OPTIONS",
    "WATERMARK_ZONE",
    "TagPeriods",
    "check_tags",
    "millis_of_option",
    "most_tags",
    "zone_of",
]
