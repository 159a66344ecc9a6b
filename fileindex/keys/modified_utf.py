"""Names in Java's modified UTF-8."""

from __future__ import annotations

import struct

from paimon_base.errors import CorruptIndex

_MAX_UTF = 65535


def encode_utf(text: str) -> bytes:
    """Return length-prefixed modified UTF-8.

    U+0000 is encoded as two bytes, a character beyond the BMP as two surrogates.
    """
    data = text.encode()
    if not text.isascii() or "\0" in text:
        units = text.encode("utf-16-be", "surrogatepass")
        data = b"".join(_unit(int.from_bytes(units[offset : offset + 2], "big")) for offset in range(0, len(units), 2))
    if len(data) > _MAX_UTF:
        raise OverflowError(f"the name '{text[:40]}...' exceeds {_MAX_UTF} bytes")
    return struct.pack(">H", len(data)) + data


def decode_utf(data: bytes) -> str:
    r"""Return the text of modified UTF-8 without its length.

    Raises CorruptIndex if it is malformed.

    >>> decode_utf(encode_utf("a\0\U0001f600")[2:]) == "a\0\U0001f600"
    True
    """
    if data.isascii():
        return data.decode()
    try:
        text = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeError as error:
        raise CorruptIndex("a name of an index is not modified UTF-8") from error


def _unit(unit: int) -> bytes:
    return b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass")
