"""Durations in option values: ``1 h``, ``500ms``, ``10 min``."""

from __future__ import annotations

import re

from paimon_base.errors import UnsupportedOption

_TEXT = re.compile(r"\s*(\d{1,18})\s*([a-zA-Zµ]*)\s*")
_MILLIS: dict[str, float] = {
    **dict.fromkeys(["d", "day", "days"], 86_400_000),
    **dict.fromkeys(["h", "hour", "hours"], 3_600_000),
    **dict.fromkeys(["m", "min", "minute", "minutes"], 60_000),
    **dict.fromkeys(["s", "sec", "second", "seconds"], 1_000),
    **dict.fromkeys(["", "ms", "milli", "millis", "millisecond", "milliseconds"], 1),
    **dict.fromkeys(["us", "µs", "micro", "micros", "microsecond", "microseconds"], 0.001),
    **dict.fromkeys(["ns", "nano", "nanos", "nanosecond", "nanoseconds"], 0.000_001),
}


def parse_duration_millis(text: str, option: str) -> int:
    """Return a duration in milliseconds, the default unit.

    Raises ``UnsupportedOption`` for ``option``.

    >>> [parse_duration_millis(text, "x") for text in ("1 h", "10 min", "250 ms")]
    [3600000, 600000, 250]
    """
    match = _TEXT.fullmatch(text)
    factor = _MILLIS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise UnsupportedOption(option, f"'{text}' is not a duration such as '1 h' or '500 ms'")
    return int(int(match[1]) * factor)
