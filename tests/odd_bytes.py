"""Texts and bytes that fixed-width types, C strings and careless comparisons take for others: what random models draw from."""

from __future__ import annotations

from hypothesis import strategies as st

ODD_BYTES = (
    b"",
    b"\0",
    b"\0\0",
    b"a",
    b"a\0",
    b"a\0\0",
    b"\0a",
    b"a\0b",
    b"ab",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\0",
    b"\xff\xff",
    b"\xff" * 9,
    bytes(7) + b"\1",
    b"\1" + bytes(7),
    b"\1" + bytes(8),
    b"abcdefgh",
    b"abcdefgh\0",
)
"""With NULs at the end, at the start and inside, empty, runs of 0xFF, and prefixes of each other up to a machine word's width."""

ODD_TEXTS = (
    "",
    "\0",
    "\0\0",
    "a",
    "a\0",
    "a\0\0",
    "\0a",
    "a\0b",
    "ab",
    "b",
    "\x7f",
    "\x80",
    "\uffff",
    "\U0010ffff",
    "\U0010ffff\0",
    "abcdefgh",
    "abcdefgh\0",
)

odd_bytes = st.sampled_from(ODD_BYTES) | st.binary(max_size=6)
odd_texts = st.sampled_from(ODD_TEXTS) | st.text("\0a\x7f\U0010ffff", max_size=4)


def padded(value: bytes, width: int) -> bytes:
    """``value`` in a column of fixed width.

    >>> padded(b"a", 3)
    b'a\\x00\\x00'
    """
    return value[:width].ljust(width, b"\0")
