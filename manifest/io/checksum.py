"""Checksum at the end of JSON metadata files.

Covers schemas, snapshots, tags, statistics, consumer positions and batch announcements. One flipped bit in such a file may give another
valid value. So files of this package end with a member ``crc32`` over the file's name and all preceding bytes. Other engines ignore unknown
members. Their files have no checksum and are trusted, like files edited and written again with any JSON library: the member
counts only in the exact form written here, after a tab, which no JSON library writes.
"""

from __future__ import annotations

import re
import zlib
from pathlib import PurePosixPath

from paimon_base.errors import CorruptFile

CHECKSUM_MEMBER = "crc32"
"""Name of the JSON member."""
_END = re.compile(rb',\n\t"crc32": "([0-9a-f]{8})"\n\}\Z')


def with_checksum(path: str, text: str) -> bytes:
    r"""Return a JSON object with its checksum as last member.

    ``path`` is the future path of the file, ``text`` a JSON object with members.

    >>> with_checksum("/w/t/schema/schema-0", '{"id": 0}')
    b'{"id": 0,\n\t"crc32": "2cf0ce4b"\n}'
    """
    body = text.rstrip().removesuffix("}").rstrip().encode()
    return body + b',\n\t"crc32": "%08x"\n}' % _checksum(path, body)


def verify_checksum(path: str, content: bytes | str) -> None:
    r"""Raise ``CorruptFile`` if ``content`` has a wrong checksum.

    >>> verify_checksum("schema-0", b'{"id": 0,\n\t"crc32": "2cf0ce4b"\n}')
    >>> verify_checksum("schema-0", b'{"id": 1,\n\t"crc32": "2cf0ce4b"\n}')
    Traceback (most recent call last):
    pyspark_paimon.CorruptFile: schema-0: its content is not what was written: ...
    """
    data = content.encode() if isinstance(content, str) else content
    trailer = _END.search(data)
    if trailer is not None and int(trailer[1], 16) != _checksum(path, data[: trailer.start()]):
        raise CorruptFile(
            path,
            "its content is not what was written: its checksum 'crc32' is wrong; restore the file, or remove 'crc32' if it was edited on purpose",
        )


def _checksum(path: str, body: bytes) -> int:
    """Return the checksum of file name and content."""
    # With the name: a file copied over another one is as wrong as a damaged one. Without the directory, which may move.
    return zlib.crc32(body, zlib.crc32(PurePosixPath(path).name.encode()))
