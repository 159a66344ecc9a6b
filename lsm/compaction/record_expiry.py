"""Rows that compaction leaves behind because their time has passed (Paimon's ``RecordLevelExpire``).

Reads know nothing of it: a row is there until a compaction has read it, whichever version of its key it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s, Mask
from fileindex.base.column_type import TIMESTAMPS, ColumnType, Kind
from fileindex.base.lazy import LazyModule, cached_property
from fileindex.predicate.tree import ColumnRef, IsNull
from lsm.keys.encoding import one_array
from manifest.entry.data_file import DataFileMeta
from manifest.io.errors import UnsupportedTable
from manifest.schema.record_expiry import EXPIRE_TIME, TIME_FIELD, expiry_problem
from manifest.store import FileStore

if TYPE_CHECKING:
    from lsm.scan import file_pruner
else:
    file_pruner = LazyModule("lsm.scan.file_pruner")

_A_SECOND = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_FIRST_MILLIS = 1_000_000_000_000
"""From here on a BIGINT is milliseconds, below it seconds."""


@dataclass(frozen=True)
class RecordExpiry:
    """Which rows of a table have expired: those whose ``column`` lies more than ``seconds`` behind the clock; a null never does.

    ``clock`` gives seconds since 1970.
    """

    store: FileStore
    column: str
    seconds: int
    clock: Callable[[], float] = field(default=time.time, compare=False)

    @classmethod
    def of(cls, store: FileStore) -> RecordExpiry | None:
        """What the table's options say; None if its rows stay. Raises ``UnsupportedTable`` where they make no sense."""
        millis, column = store.options.record_level_expire_time, store.options.record_level_time_field
        if millis is None:
            return None
        problem = expiry_problem(store.schema)
        if column is None or problem is not None:
            raise UnsupportedTable(f"option '{TIME_FIELD if column else EXPIRE_TIME}': {problem}")
        return cls(store, column, millis // 1000)

    def has_expired_rows(self, file: DataFileMeta) -> bool:
        """Whether the file's statistics tell of rows that have expired; False where they do not tell."""
        bounds = self._pruner.bounds(file)(ColumnRef(self.column))
        if bounds is None or not isinstance(bounds.min, int):
            return False
        return bool(self._expired(np.array([bounds.min]))[0])

    def alive(self, rows: Any) -> Any:
        """``rows`` (a table) without those that have expired; the same object if none has."""
        values = one_array(rows.column(self.column))
        numbers = values.view(pa.int64()) if self._type.kind in TIMESTAMPS else values.cast(pa.int64())
        known = numbers.is_valid().to_numpy(zero_copy_only=False)
        expired = self._expired(numbers.fill_null(0).to_numpy()) & known
        return rows.filter(pa.array(~expired)) if expired.any() else rows

    @cached_property
    def _pruner(self) -> file_pruner.FilePruner:
        return file_pruner.FilePruner(self.store, IsNull(ColumnRef(self.column)))

    @cached_property
    def _type(self) -> ColumnType:
        return self.store.schema.column_types[self.column]

    def _expired(self, values: Int64s) -> Mask:
        """Which of the column's values, as numbers of its unit, lie too far back."""
        if self._type.kind in TIMESTAMPS:
            seconds = values // _A_SECOND[self._type.unit]
        else:
            seconds = np.where(values >= _FIRST_MILLIS, values // 1000, values) if self._type.kind is Kind.BIGINT else values
        found: Mask = seconds < int(self.clock()) - self.seconds
        return found


__all__ = ["RecordExpiry"]
