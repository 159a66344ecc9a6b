"""The checksum at the end of our JSON files: schemas, snapshots, tags, statistics, what consumers and writers note.

One flipped bit in such a file may spell another valid value: another digit of a count, another option. So what we write ends with a
member ``crc32`` over the file's own name and all that is before it. Other engines pass over members that they do not know, and files
that they write have none: those are taken at their word. So is a file that somebody has edited and written anew: the member counts only
as it is spelled here, behind a tab, as no JSON library spells it.
"""

from __future__ import annotations

import re
import zlib
from pathlib import PurePosixPath

from fileindex.base.errors import CorruptFile

SEAL = "crc32"
"""The member's name."""
_END = re.compile(rb',\n\t"crc32": "([0-9a-f]{8})"\n\}\Z')


def sealed(path: str, text: str) -> bytes:
    r"""The content of the file at ``path``: a JSON object with members, and its checksum as the last one.

    >>> sealed("/w/t/schema/schema-0", '{"id": 0}')
    b'{"id": 0,\n\t"crc32": "2cf0ce4b"\n}'
    """
    body = text.rstrip().removesuffix("}").rstrip().encode()
    return body + b',\n\t"crc32": "%08x"\n}' % _checksum(path, body)


def check_seal(path: str, content: bytes | str) -> None:
    r"""Raises ``CorruptFile`` if ``content`` has a checksum, and it is that of something else.

    >>> check_seal("schema-0", b'{"id": 0,\n\t"crc32": "2cf0ce4b"\n}')
    >>> check_seal("schema-0", b'{"id": 1,\n\t"crc32": "2cf0ce4b"\n}')
    Traceback (most recent call last):
    pyspark_paimon.CorruptFile: schema-0: its content is not what was written: ...
    """
    data = content.encode() if isinstance(content, str) else content
    found = _END.search(data)
    if found is not None and int(found[1], 16) != _checksum(path, data[: found.start()]):
        raise CorruptFile(
            path,
            "its content is not what was written: its checksum 'crc32' is another; restore the file, or take 'crc32' out if it was changed on purpose",
        )


def _checksum(path: str, body: bytes) -> int:
    """Over the name too: a file in the place of another one is no better than a damaged one. Directories may be moved."""
    return zlib.crc32(body, zlib.crc32(PurePosixPath(path).name.encode()))


__all__ = ["SEAL", "check_seal", "sealed"]
