"""Options taken by name and type from those a user gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manifest.options.durations import parse_duration_millis
from paimon_base.errors import InvalidArgument, UnsupportedOption

_FLAGS = {"true": True, "false": False}


class OptionReader:
    """Options of a user, taken one by one. ``rest`` has those that nothing took.

    >>> reader = OptionReader({"lock.enabled": True, "client-pool-size": "2", "s3.region": "eu"})
    >>> reader.flag("lock.enabled", default=False), reader.number("client-pool-size", 1), reader.seconds("timeout", 5.0), reader.rest
    (True, 2, 5.0, {'s3.region': 'eu'})
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.rest = dict(options)

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Raise ``UnsupportedOption`` for the first given option that has a reason."""
        for name in self.rest:
            if name in reasons:
                raise UnsupportedOption(name, reasons[name])

    def text(self, name: str, default: str = "") -> str:
        """Take a text. Booleans become ``true`` and ``false``."""
        value = self.rest.pop(name, default)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """Take a boolean. Raises ``InvalidArgument`` for another value."""
        text = self.text(name, str(default))
        flag = _FLAGS.get(text.strip().lower())
        if flag is None:
            raise InvalidArgument(f"option '{name}' must be 'true' or 'false', not {text!r:.40}")
        return flag

    def number(self, name: str, default: int, minimum: int = 1, maximum: int | None = None) -> int:
        """Take a whole number. Raises ``InvalidArgument`` for another value."""
        text = self.text(name, str(default)).strip()
        number = int(text) if text.isdecimal() else -1
        if number < minimum or (maximum is not None and number > maximum):
            bounds = f"from {minimum} up" if maximum is None else f"from {minimum} to {maximum}"
            raise InvalidArgument(f"option '{name}' must be a number {bounds}, not {text!r:.40}")
        return number

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """Take one of a few words, by default the first. Raises ``InvalidArgument`` for another value."""
        text = self.text(name, allowed[0]).strip().lower()
        if text not in allowed:
            raise InvalidArgument(f"option '{name}' must be {' or '.join(map(repr, allowed))}, not {text!r:.40}")
        return text

    def seconds(self, name: str, default: float) -> float:
        """Take a duration in seconds. Raises ``UnsupportedOption`` for another value."""
        return parse_duration_millis(self.text(name), name) / 1000 if name in self.rest else default

    def prefixed(self, prefix: str) -> dict[str, str]:
        """Take all options of a prefix, by the rest of their names."""
        return {name.removeprefix(prefix): self.text(name) for name in list(self.rest) if name.startswith(prefix)}
