"""The cache that all tables of a process share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

from pydantic import BaseModel, ConfigDict

from manifest.io.file_cache import SHARED
from paimon_base.public import public

_KINDS = {
    "narrow column": "columns",
    "column": "columns",
    "keys": "keys",
    "key pages": "keys",
    "footer": "footers",
    "dictionary": "dictionaries",
}
"""Kinds by the first part of a key."""
_TABLE_FOLDERS = frozenset({"manifest", "schema", "snapshot", "index", "statistics", "branch", "tag", "consumer"})


@public
class CacheUse(BaseModel):
    """Cached values of one kind and one table.

    ``kind``: ``columns``, ``keys``, ``footers``, ``dictionaries`` or ``metadata``. ``table``: path of the table, empty if several tables share
    the values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    kind: str
    table: str
    values: int
    bytes: int


@public
class CacheInfo(BaseModel):
    """Use of the cache of this process.

    ``capacity``: most bytes of all values. ``column_capacity``: most bytes of decoded columns, a part of it. ``bytes``: bytes of all values.
    ``uses``: what they are, the largest first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    capacity: int
    column_capacity: int
    bytes: int
    uses: tuple[CacheUse, ...]


@public
def cache_info() -> CacheInfo:
    """Return what the cache of this process holds.

    On Spark, each Python worker has a cache of its own.

    >>> from pyspark_paimon import Table
    >>> from pyspark_paimon.example import cities
    >>> table = cities()
    >>> cache_clear()
    >>> rows = Table.open(table.path).scan("city = 'Oslo'").to_arrow()
    >>> sorted(use.kind for use in cache_info().uses if use.table == str(table.path))
    ['columns', 'footers', 'metadata']
    """
    counts: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for key, weight in SHARED.uses():
        count = counts[_kind_and_table(key)]
        count[0] += 1
        count[1] += weight
    uses = [CacheUse(kind=kind, table=table, values=values, bytes=size) for (kind, table), (values, size) in counts.items()]
    ordered = tuple(sorted(uses, key=lambda use: (-use.bytes, use.kind, use.table)))
    return CacheInfo(
        capacity=SHARED.capacity,
        column_capacity=min(SHARED.capacity, SHARED.column_capacity),
        bytes=sum(use.bytes for use in ordered),
        uses=ordered,
    )


@public
def cache_clear() -> None:
    """Free the cache of this process.

    Later reads fill it again.

    >>> cache_clear()
    >>> cache_info().bytes
    0
    """
    SHARED.clear()


def _kind_and_table(key: Hashable) -> tuple[str, str]:
    parts = list(_flat(key))
    names = [part for part in parts if isinstance(part, str)]
    paths = [name for name in names if "/" in name]
    return _KINDS.get(names[0], "metadata") if names else "metadata", _table_of(paths[0]) if paths else ""


def _flat(key: Hashable) -> Iterator[Hashable]:
    if isinstance(key, tuple):
        for part in key:
            yield from _flat(part)
    else:
        yield key


def _table_of(path: str) -> str:
    """Return the path of the table that a file belongs to.

    >>> _table_of("/lake/t/day=3/bucket-0/data-1.parquet"), _table_of("/lake/t/manifest/manifest-1"), _table_of("/lake/t")
    ('/lake/t', '/lake/t', '/lake/t')
    """
    folders = path.split("/")
    for number, folder in enumerate(folders[:-1]):
        if number and (folder in _TABLE_FOLDERS or folder.startswith("bucket-") or "=" in folder):
            return "/".join(folders[:number])
    return path
