"""Headers of data pages, decoded without a Parquet decoder."""

from __future__ import annotations

import re

import numpy as np

from fileindex.base.arrays import Int64s, Mask, UInt8s
from lsm.parquet.fields import DataPageHeader, PageHeader, value, value_or
from lsm.parquet.thrift import Struct, decode_struct, unzigzag

LONGEST = 8 * 1024
"""Maximum bytes of a page header, unless its statistics are very long texts."""
_NUMBER = rb"[\x80-\xff]{0,4}[\x00-\x7f]"
_USUAL = re.compile(rb"\x15\x00\x15%b\x15(%b)(?:\x15(%b)\x1c|\x2c)\x15(%b)" % (_NUMBER, _NUMBER, _NUMBER, _NUMBER))
"""Header of a version 1 data page: type, two sizes, optional checksum, then the data page header with the number of values."""
_DIGITS, _I32 = 5, 0x15
_USUAL_LENGTH = 3 + 4 * (_DIGITS + 1) + _DIGITS + 2
"""Maximum bytes read of a header that matches ``_USUAL``."""


def data_page(header: bytes) -> tuple[int, int, int | None]:
    """Decode the header of a data page.

    Returns value count, compressed size and checksum.

    ``header`` begins with the page header. Values include nulls. The checksum may be missing.

    Raises:
        ValueError, LookupError: The header is damaged.

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


def data_pages(content: bytes, starts: Int64s, sizes: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Decode the headers of many data pages, like ``data_page``.

    ``starts`` and ``sizes`` include the page headers. A missing checksum is -1.

    >>> from lsm.parquet.thrift import I32, STRUCT, encode_struct
    >>> page = encode_struct({1: (I32, 0), 2: (I32, 300), 3: (I32, 200), 4: (I32, -5), 5: (STRUCT, {1: (I32, 100)})})
    >>> [found.tolist() for found in data_pages(page + bytes(200), np.array([0]), np.array([len(page) + 200]))]
    [[100], [200], [4294967291]]
    """
    room = np.minimum(starts[:, None] + np.arange(_USUAL_LENGTH), len(content) - 1)
    heads = np.frombuffer(content, np.uint8)[room]
    page = np.arange(len(starts))
    usual = (heads[:, :3] == (_I32, 0, _I32)).all(axis=1)
    at = _numbers(heads, np.full(len(starts), 3), usual)[1]
    usual &= heads[page, at] == _I32
    inner, at = _numbers(heads, at + 1, usual)
    has_checksum = heads[page, at] == _I32
    checksums, behind = _numbers(heads, at + 1, usual)
    at = np.where(has_checksum, behind, at)
    usual &= (heads[page, at] == np.where(has_checksum, 0x1C, 0x2C)) & (heads[page, at + 1] == _I32)
    values, _ = _numbers(heads, at + 2, usual)
    checksums = np.where(has_checksum, checksums & 0xFFFFFFFF, -1)
    for other in np.flatnonzero(~usual).tolist():
        start = int(starts[other])
        values[other], inner[other], checksum = _any_data_page(content[start : start + min(int(sizes[other]), LONGEST)])
        checksums[other] = -1 if checksum is None else checksum
    return values, inner, checksums


def _numbers(heads: UInt8s, at: Int64s, usual: Mask) -> tuple[Int64s, Int64s]:
    """Decode one number per row, and return the end positions.

    Rows whose number has no end are removed from ``usual``.
    """
    digits = heads[np.arange(len(heads))[:, None], at[:, None] + np.arange(_DIGITS)]
    ends = digits < 0x80  # other bytes continue the number
    last = ends.argmax(axis=1)
    usual &= ends.any(axis=1)
    parts = (digits & 0x7F).astype(np.int64) << 7 * np.arange(_DIGITS)
    raw = np.where(np.arange(_DIGITS) <= last[:, None], parts, 0).sum(axis=1)
    return unzigzag(raw), at + last + 1


def _any_data_page(header: bytes) -> tuple[int, int, int | None]:
    fields, _ = decode_struct(header)
    own = PageHeader.DATA_PAGE_HEADER if PageHeader.DATA_PAGE_HEADER in fields else PageHeader.DATA_PAGE_HEADER_V2
    return value(value(fields, own), DataPageHeader.NUM_VALUES), value(fields, PageHeader.COMPRESSED_PAGE_SIZE), _checksum(fields)


def dictionary_page(header: bytes) -> tuple[int, int, int | None]:
    """Decode the header of a dictionary page.

    Returns header length, compressed size and checksum.

    Raises the errors of ``data_page``.

    >>> from lsm.parquet.thrift import I32, STRUCT, encode_struct
    >>> dictionary_page(encode_struct({1: (I32, 2), 2: (I32, 300), 3: (I32, 200), 7: (STRUCT, {1: (I32, 9)})}))
    (13, 200, None)
    """
    fields, length = decode_struct(header)
    if PageHeader.DICTIONARY_PAGE_HEADER not in fields:
        raise ValueError("the page is not a dictionary page")
    return length, value(fields, PageHeader.COMPRESSED_PAGE_SIZE), _checksum(fields)


def _checksum(header: Struct) -> int | None:
    signed = value_or(header, PageHeader.CRC, None)
    return None if signed is None else signed & 0xFFFFFFFF


def _number(encoded: bytes) -> int:
    """Decode a zigzag varint of the compact protocol."""
    raw = 0
    for byte in reversed(encoded):
        raw = raw << 7 | byte & 0x7F
    return int(unzigzag(raw))


__all__ = ["LONGEST", "data_page", "data_pages", "dictionary_page"]
