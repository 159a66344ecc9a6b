"""Class ``TableReader``, returned by ``Table.reader``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paimon_base.memory_size import parse_memory_size
from paimon_base.public import public
from pyspark_paimon.request.keys import LookupShape, Missing
from pyspark_paimon.request.requests import ScanRequest, TravelRequest
from pyspark_paimon.request.validate import CheckedMethods
from pyspark_paimon.table.keyed import find_rows
from pyspark_paimon.typing import Keys

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_paimon.local.engine import LocalEngine


@public
class TableReader(CheckedMethods):
    """Lookups at one pinned snapshot, for serving. Safe for many threads.

    The reader has a cache of its own, which other reads of the process do not evict. It does not look for newer snapshots until
    ``refresh()``. It does not keep its snapshot from expiring: refresh it more often than that, or pin a tag.

    >>> from pyspark_paimon.example import cities
    >>> table = cities()
    >>> reader = table.reader()
    >>> table.delete("id = 3").snapshot_id, reader.lookup({"id": [3]}, ["city"]).to_pylist()
    (2, [{'city': 'Rome'}])
    >>> reader.refresh(), reader.snapshot_id, reader.lookup({"id": [3]}).num_rows
    (True, 2, 0)
    """

    def __init__(self, engine: LocalEngine, travel: TravelRequest, cache: str) -> None:
        self._engine = engine.server(parse_memory_size(cache, "cache"))
        # Replaced as a whole, so each lookup of another thread sees one state.
        self._state = self._engine.start(travel)

    def __repr__(self) -> str:
        return f"TableReader({self._engine.path}: snapshot {self.snapshot_id})"

    @property
    def snapshot_id(self) -> int | None:
        """Id of the pinned snapshot.

        None: the table was empty.

        >>> from pyspark_paimon.example import cities
        >>> cities().reader().snapshot_id
        1
        """
        snapshot, _ = self._state
        return None if snapshot is None else snapshot.id

    def lookup(
        self, keys: Keys, columns: Sequence[str] | None = None, *, missing: Missing = "drop", indicator: bool | str = False
    ) -> pa.Table:
        """Return the rows with the given primary keys at the pinned snapshot.

        Args:
            keys: As for ``Table.lookup``.
            columns: Columns to return. None: all.
            missing: As for ``Table.lookup``.
            indicator: As for ``Table.lookup``.

        Raises:
            SnapshotExpired: The pinned snapshot has expired. Call ``refresh()``.
            SchemaMismatch, NullInKey, InvalidArgument, UnknownColumn: As for ``Table.lookup``.

        >>> from pyspark_paimon.example import cities
        >>> cities().reader().lookup({"id": [9, 1]}, columns=["id", "city"], missing="null").to_pylist()
        [{'id': 9, 'city': None}, {'id': 1, 'city': 'Oslo'}]
        """
        snapshot, schema = self._state
        return find_rows(self._engine, snapshot, schema, keys, columns, shape=LookupShape.of(missing, indicator))

    def warm(self) -> int:
        """Cache what lookups need, ahead of the first one.

        These are the files of each bucket, their footers and page indexes, and the keys of their pages, up to the size of the cache.
        A later lookup then decodes only the pages of the rows that it returns.

        Returns:
            Bytes in the cache.

        >>> from pyspark_paimon.example import cities
        >>> cities().reader().warm() > 0
        True
        """
        snapshot, schema = self._state
        return self._engine.warm(ScanRequest.of(None, columns=(), snapshot=snapshot).model_copy(update={"schema_id": schema.id}))

    def refresh(self) -> bool:
        """Pin the newest snapshot.

        What is cached of files that it shares with the former one stays. Lookups of other threads are not disturbed.

        Returns:
            Whether there is a newer snapshot than the pinned one.

        >>> from pyspark_paimon.example import cities
        >>> cities().reader().refresh()
        False
        """
        before, _ = self._state
        self._state = after, _ = self._engine.start(TravelRequest())
        return (None if before is None else before.key) != (None if after is None else after.key)
