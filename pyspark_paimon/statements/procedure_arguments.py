"""Parsing and conversion of procedure arguments."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from fileindex.base.errors import InvalidArgument
from manifest.options.durations import parse_duration_millis
from pyspark_paimon.statements.words import TokenCursor, WrittenValue

Arguments = Mapping[str, WrittenValue]
"""Values by argument name, without NULLs."""


def arguments_of(words: TokenCursor, procedure: str, order: list[str]) -> dict[str, WrittenValue]:
    """Parse arguments in parentheses, by name or by position.

    order: Names of all arguments in order.
    Raises ``InvalidArgument`` for unknown and repeated arguments.
    """
    found: dict[str, WrittenValue] = {}
    for _ in words.items():
        place = len(found)
        if words.peek(1) == "=>":
            name = words.part().lower()
            words.expect("=>")
        elif place < len(order):
            name = order[place]
        else:
            raise InvalidArgument(f"{procedure} takes {len(order)} arguments: {', '.join(order)}")
        words.take("TIMESTAMP")
        if name not in order:
            raise InvalidArgument(f"{procedure} has no argument '{name}'; it takes {', '.join(order)}")
        if name in found:
            raise InvalidArgument(f"{procedure}: argument '{name}' is given twice")
        found[name] = words.literal()
    return {name: value for name, value in found.items() if value is not None}


def required(given: Arguments, name: str) -> str:
    """Return the text of a required argument."""
    if name not in given:
        raise InvalidArgument(f"the procedure needs an argument '{name}'")
    return str(given[name])


def true_or_false(given: Arguments, name: str) -> bool:
    """Return a boolean argument; False if it is absent."""
    text = str(given.get(name, False)).lower()
    if text not in {"true", "false"}:
        raise InvalidArgument(f"argument '{name}' must be true or false, not {given[name]!r}")
    return text == "true"


def whole_number(given: Arguments, name: str) -> int | None:
    """Return an integer argument; None if it is absent."""
    value = given.get(name)
    if value is None or type(value) is int:
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    raise InvalidArgument(f"argument '{name}' must be a whole number, not {value!r}")


def parts_of(given: Arguments, name: str, separator: str = ",") -> list[str]:
    """Split a text argument; an absent one has no parts."""
    return [part.strip() for part in str(given.get(name, "")).split(separator) if part.strip()]


def partitions_of(given: Arguments) -> list[dict[str, object]] | None:
    """Parse ``partitions``: ``day=2026-01-01,hour=7;day=2026-01-02``."""
    found = [dict(_pair(pair, "partitions") for pair in part.split(",")) for part in parts_of(given, "partitions", ";")]
    return [{**spec} for spec in found] or None


def options_of(given: Arguments) -> dict[str, str] | None:
    """Parse ``options``: ``name=value`` pairs with commas."""
    return dict(_pair(pair, "options") for pair in parts_of(given, "options")) or None


def _pair(text: str, argument: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidArgument(f"argument '{argument}' must have the form name=value, not {text!r}")
    return name.strip(), value.strip().strip("'\"")


def time_of(given: Arguments, name: str) -> Any:
    """Return a time argument: a text, or milliseconds."""
    value = given.get(name)
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def time_retained(given: Arguments) -> timedelta | None:
    """Return the retention time of a tag, or None."""
    value = given.get("time_retained")
    return None if value is None else timedelta(milliseconds=parse_duration_millis(str(value), "time_retained"))


__all__ = [
    "Arguments",
    "arguments_of",
    "options_of",
    "partitions_of",
    "parts_of",
    "required",
    "time_of",
    "time_retained",
    "true_or_false",
    "whole_number",
]
