"""Metadata of a payload in the entry of the index manifest.

``SourceMeta`` lists the data files that the payload covers (Paimon's ``PrimaryKeyIndexSourceMeta``). ``SortedIndexMeta`` has its first
and last key (Paimon's ``SortedIndexFileMeta``). Bytes of another form raise ``CorruptIndex``: the caller ignores the payload.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

from fileindex.keys.modified_utf import decode_utf, encode_utf
from paimon_base.errors import CorruptIndex

MAX_ROWS = 2**31 - 1
"""Most rows of a payload: ordinals have 32 bits."""
_SOURCE_VERSION = 1
_SOURCE_HEAD = struct.Struct(">iii")
_FORMAT = 1
_NO_FIRST, _NO_LAST = 1, 2


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Name and row count of a data file that a payload covers."""

    name: str
    row_count: int


@dataclass(frozen=True, slots=True)
class SourceMeta:
    """The level and data files that a payload covers.

    Rows are numbered through the files in order. All rows of a file count, deleted ones too.
    """

    level: int
    files: tuple[SourceFile, ...]

    @property
    def row_count(self) -> int:
        """Number of ordinals."""
        return sum(file.row_count for file in self.files)

    def encode(self) -> bytes:
        """Return the bytes of ``_SOURCE_META``.

        >>> SourceMeta(5, (SourceFile("a", 7),)).encode().hex()
        '0000000100000005000000010001610000000000000007'
        """
        files = b"".join(encode_utf(file.name) + struct.pack(">q", file.row_count) for file in self.files)
        return _SOURCE_HEAD.pack(_SOURCE_VERSION, self.level, len(self.files)) + files

    @classmethod
    def parse(cls, data: bytes) -> SourceMeta:
        """Parse ``_SOURCE_META``.

        Raises CorruptIndex for another version, a level of 0, no file, names out of order, or other malformed bytes.
        """
        try:
            version, level, count = _SOURCE_HEAD.unpack_from(data)
            if version != _SOURCE_VERSION or level <= 0 or count <= 0:
                raise CorruptIndex(f"the source of an index has version {version}, level {level} and {count} files")
            position, files = _SOURCE_HEAD.size, []
            for _ in range(count):
                (length,) = struct.unpack_from(">H", data, position)
                (row_count,) = struct.unpack_from(">q", data, position + 2 + length)
                files.append(SourceFile(decode_utf(data[position + 2 : position + 2 + length]), row_count))
                position += 2 + length + 8
        except struct.error as error:
            raise CorruptIndex("the source of an index is truncated") from error
        if position != len(data) or min(file.row_count for file in files) < 0:
            raise CorruptIndex("the source of an index has negative row counts or trailing bytes")
        # Java compares strings by UTF-16 units.
        names = [file.name.encode("utf-16-be", "surrogatepass") for file in files]
        if any(name >= following for name, following in pairwise(names)):
            raise CorruptIndex("the files of an index are not in the order of their names")
        return cls(level, tuple(files))


@dataclass(frozen=True, slots=True)
class SortedIndexMeta:
    """Stored bytes of the smallest and greatest key, and whether some row is null.

    Both keys are None if all rows are null.
    """

    first_key: bytes | None
    last_key: bytes | None
    has_nulls: bool

    def encode(self) -> bytes:
        """Return the bytes of ``_INDEX_META``.

        >>> SortedIndexMeta(None, None, has_nulls=True).encode().hex()
        '0000000000000000010103'
        """
        keys = b"".join(struct.pack("<i", len(key or b"")) + (key or b"") for key in (self.first_key, self.last_key))
        flags = _NO_FIRST * (self.first_key is None) | _NO_LAST * (self.last_key is None)
        return keys + bytes([self.has_nulls, _FORMAT, flags])

    @classmethod
    def parse(cls, data: bytes) -> SortedIndexMeta:
        """Parse ``_INDEX_META``. Raises CorruptIndex if it is malformed."""
        keys, position = [], 0
        for _ in range(2):
            length = int.from_bytes(data[position : position + 4], "little", signed=True)
            if length < 0 or position + 4 + length >= len(data):
                raise CorruptIndex("the first and last key of an index are truncated")
            keys.append(data[position + 4 : position + 4 + length])
            position += 4 + length
        has_nulls, tail = data[position], data[position + 1 :]
        if not tail:  # Paimon 1.4 had no flags
            flags = _NO_FIRST | _NO_LAST if has_nulls and not any(keys) else 0
        elif len(tail) == 2 and tail[0] == _FORMAT:
            flags = tail[1]
        else:
            raise CorruptIndex("the first and last key of an index have an unknown format")
        if has_nulls > 1 or flags not in {0, _NO_FIRST | _NO_LAST} or (flags and any(keys)):
            raise CorruptIndex(f"the first and last key of an index have the flags {has_nulls} and {flags}")
        return cls(None, None, bool(has_nulls)) if flags else cls(keys[0], keys[1], bool(has_nulls))
