"""Plain values as JSON, without loss.

Booleans, integers, texts and null are JSON values. A float is ``{"float": "0x1.8p+1"}`` (``nan``, ``inf``, ``-inf``).
Bytes are ``{"bytes": "6869"}``.
"""

from __future__ import annotations

from typing import Any

from sparkexpr.values.column_type import Plain


def plain_to_json(value: Plain) -> Any:
    """Return an object that ``json.dumps`` accepts.

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


def plain_from_json(encoded: Any) -> Plain:
    """Return the value that ``plain_to_json`` encoded.

    Raises ``ValueError`` for anything else.
    """
    match encoded:
        case bool() | int() | str() | None:
            return encoded
        case {"float": str(text), **rest} if not rest:
            try:
                return float.fromhex(text)
            except OverflowError as error:
                raise ValueError(str(error)) from error
        case {"bytes": str(text), **rest} if not rest:
            return bytes.fromhex(text)
    raise ValueError("the JSON is not an encoded value")
