"""Plain values as JSON that gives each back bit for bit.

Booleans, integers, texts and null are JSON's own; a float is ``{"float": "0x1.8p+1"}`` (``nan``, ``inf``, ``-inf``), bytes are ``{"bytes": "6869"}``.
"""

from __future__ import annotations

from typing import Any

from fileindex.base.column_type import Plain


def plain_to_json(value: Plain) -> Any:
    """What ``json.dumps`` takes.

    >>> plain_to_json(3.0), plain_to_json(b"hi"), plain_to_json(7)
    ({'float': '0x1.8000000000000p+1'}, {'bytes': '6869'}, 7)
    """
    match value:
        case float():
            return {"float": value.hex()}
        case bytes():
            return {"bytes": value.hex()}
        case _:
            return value


def plain_from_json(given: Any) -> Plain:
    """The value of which ``plain_to_json`` made it. Raises ``ValueError`` for what it cannot have made."""
    match given:
        case bool() | int() | str() | None:
            return given
        case {"float": str(text), **rest} if not rest:
            try:
                return float.fromhex(text)
            except OverflowError as error:
                raise ValueError(str(error)) from error
        case {"bytes": str(text), **rest} if not rest:
            return bytes.fromhex(text)
    raise ValueError("no such value is written")


__all__ = ["plain_from_json", "plain_to_json"]
