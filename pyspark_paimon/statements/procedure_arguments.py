"""Arguments of procedures: by name or by place, and their values as methods of ``Table`` take them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from fileindex.base.errors import InvalidArgument
from manifest.options.durations import parse_duration_millis
from pyspark_paimon.statements.words import Words, WrittenValue

Arguments = Mapping[str, WrittenValue]
"""By name; what is NULL is left out."""


def arguments_of(words: Words, procedure: str, order: list[str]) -> dict[str, WrittenValue]:
    """The arguments in parentheses; ``order`` has their names. Raises ``InvalidArgument`` for others."""
    found: dict[str, WrittenValue] = {}
    for _ in words.listed():
        place = len(found)
        if words.word(1) == "=>":
            name = words.part().lower()
            words.need("=>")
        elif place < len(order):
            name = order[place]
        else:
            raise InvalidArgument(f"{procedure} takes {len(order)} arguments: {', '.join(order)}")
        words.take("TIMESTAMP")
        if name not in order:
            raise InvalidArgument(f"{procedure} has no argument '{name}'; it takes {', '.join(order)}")
        if name in found:
            raise InvalidArgument(f"{procedure} has the argument '{name}' twice")
        found[name] = words.literal()
    return {name: value for name, value in found.items() if value is not None}


def needed(given: Arguments, name: str) -> str:
    """The text of an argument that must be there."""
    if name not in given:
        raise InvalidArgument(f"the procedure needs an argument '{name}'")
    return str(given[name])


def true_or_false(given: Arguments, name: str) -> bool:
    """TRUE or FALSE; FALSE where nothing is said."""
    text = str(given.get(name, False)).lower()
    if text not in {"true", "false"}:
        raise InvalidArgument(f"argument '{name}' is true or false, not {given[name]!r}")
    return text == "true"


def whole(given: Arguments, name: str) -> int | None:
    """A whole number."""
    value = given.get(name)
    if value is None or type(value) is int:
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    raise InvalidArgument(f"argument '{name}' is a whole number, not {value!r}")


def parts_of(given: Arguments, name: str, separator: str = ",") -> list[str]:
    """The parts of a text."""
    return [part.strip() for part in str(given.get(name, "")).split(separator) if part.strip()]


def partitions_of(given: Arguments) -> list[dict[str, object]] | None:
    """``day=2026-01-01,hour=7;day=2026-01-02``."""
    found = [dict(_pair(pair, "partitions") for pair in part.split(",")) for part in parts_of(given, "partitions", ";")]
    return [{**spec} for spec in found] or None


def options_given(given: Arguments) -> dict[str, str] | None:
    """``name=value`` pairs."""
    return dict(_pair(pair, "options") for pair in parts_of(given, "options")) or None


def _pair(text: str, argument: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidArgument(f"argument '{argument}' has name=value, not {text!r}")
    return name.strip(), value.strip().strip("'\"")


def time_of(given: Arguments, name: str) -> Any:
    """A moment: a text, or milliseconds."""
    value = given.get(name)
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def time_retained(given: Arguments) -> timedelta | None:
    """How long a tag is kept."""
    value = given.get("time_retained")
    return None if value is None else timedelta(milliseconds=parse_duration_millis(str(value), "time_retained"))


__all__ = [
    "Arguments",
    "arguments_of",
    "needed",
    "options_given",
    "partitions_of",
    "parts_of",
    "time_of",
    "time_retained",
    "true_or_false",
    "whole",
]
