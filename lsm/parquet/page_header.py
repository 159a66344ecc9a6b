"""The header of a data page, as far as reading pages without a decoder needs it."""

from __future__ import annotations

import re

from lsm.parquet.fields import DataPageHeader, PageHeader, value, value_or
from lsm.parquet.thrift import Struct, decode_struct

LONGEST = 8 * 1024
"""More bytes than a page header takes up, unless its statistics are very long texts."""
_NUMBER = rb"[\x80-\xff]{0,4}[\x00-\x7f]"
_USUAL = re.compile(rb"\x15\x00\x15%b\x15(%b)(?:\x15(%b)\x1c|\x2c)\x15(%b)" % (_NUMBER, _NUMBER, _NUMBER, _NUMBER))
"""Of a page of the first version: type, two sizes, perhaps a checksum, then its own header, which begins with the number of values."""


def data_page(header: bytes) -> tuple[int, int, int | None]:
    """Of the data page that begins with ``header`` its values (nulls among them), compressed bytes, and checksum if it has one.

    Raises ``ValueError`` or ``LookupError``.

    >>> from lsm.parquet.thrift import I32, STRUCT, encode_struct
    >>> page = {1: (I32, 0), 2: (I32, 300), 3: (I32, 200), 5: (STRUCT, {1: (I32, 100)})}
    >>> data_page(encode_struct(page)), data_page(encode_struct(page | {4: (I32, -5)}))
    ((100, 200, None), (100, 200, 4294967291))
    """
    usual = _USUAL.match(header)
    if usual is None:
        return _any_data_page(header)
    size, checksum, values = usual.groups()
    return _number(values), _number(size), None if checksum is None else _number(checksum) & 0xFFFFFFFF


def _any_data_page(header: bytes) -> tuple[int, int, int | None]:
    fields, _ = decode_struct(header)
    own = PageHeader.DATA_PAGE_HEADER if PageHeader.DATA_PAGE_HEADER in fields else PageHeader.DATA_PAGE_HEADER_V2
    return value(value(fields, own), DataPageHeader.NUM_VALUES), value(fields, PageHeader.COMPRESSED_PAGE_SIZE), _checksum(fields)


def dictionary_page(header: bytes) -> tuple[int, int, int | None]:
    """Of the dictionary page that begins with ``header`` the bytes of the header, compressed bytes, and checksum. Raises as ``data_page``.

    >>> from lsm.parquet.thrift import I32, STRUCT, encode_struct
    >>> dictionary_page(encode_struct({1: (I32, 2), 2: (I32, 300), 3: (I32, 200), 7: (STRUCT, {1: (I32, 9)})}))
    (13, 200, None)
    """
    fields, length = decode_struct(header)
    if PageHeader.DICTIONARY_PAGE_HEADER not in fields:
        raise ValueError("is no dictionary page")
    return length, value(fields, PageHeader.COMPRESSED_PAGE_SIZE), _checksum(fields)


def _checksum(header: Struct) -> int | None:
    signed = value_or(header, PageHeader.CRC, None)
    return None if signed is None else signed & 0xFFFFFFFF


def _number(encoded: bytes) -> int:
    """A number of the compact protocol, seven bits in a byte, its sign in the last bit."""
    raw = 0
    for byte in reversed(encoded):
        raw = raw << 7 | byte & 0x7F
    return raw >> 1 ^ -(raw & 1)


__all__ = ["LONGEST", "data_page", "dictionary_page"]
