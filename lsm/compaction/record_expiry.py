"""Record expiry in compactions (Paimon's ``RecordLevelExpire``).

Reads do not filter expired rows. A row is visible until a compaction reads it, whichever version of its key it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fileindex.predicate.tree import ColumnRef, IsNull
from lsm.keys.encoding import one_array
from manifest.entry.data_file import DataFileMeta
from manifest.io.errors import UnsupportedTable
from manifest.schema.partition_time import EXPIRE_TIME, TIME_FIELD, expiry_problem
from manifest.store import FileStore
from paimon_base.lazy import LazyModule, cached_property
from sparkexpr.values.arrays import Int64s, Mask
from sparkexpr.values.column_type import TIMESTAMPS, ColumnType, Kind

if TYPE_CHECKING:
    from lsm.scan import file_pruner
else:
    file_pruner = LazyModule("lsm.scan.file_pruner")

_A_SECOND = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_FIRST_MILLIS = 1_000_000_000_000
"""A BIGINT from this value on is in milliseconds, a smaller one in seconds."""


@dataclass(frozen=True)
class RecordExpiry:
    """Expiry rule of a table's rows.

    A row expires if ``column`` is more than ``seconds`` before the clock. Null never expires. ``clock`` returns seconds since 1970.
    """

    store: FileStore
    column: str
    seconds: int
    clock: Callable[[], float] = field(default=time.time, compare=False)

    @classmethod
    def of(cls, store: FileStore) -> RecordExpiry | None:
        """Return the rule from the table's options.

        None: rows do not expire.

        Raises:
            UnsupportedTable: The options are invalid.
        """
        millis, column = store.options.record_level_expire_time, store.options.record_level_time_field
        if millis is None:
            return None
        problem = expiry_problem(store.schema)
        if column is None or problem is not None:
            raise UnsupportedTable(f"option '{TIME_FIELD if column else EXPIRE_TIME}': {problem}")
        return cls(store, column, millis // 1000)

    def has_expired_rows(self, file: DataFileMeta) -> bool:
        """Return whether statistics prove that the file has expired rows."""
        bounds = self._pruner.bounds(file)(ColumnRef(self.column))
        if bounds is None or not isinstance(bounds.min, int):
            return False
        return bool(self._expired(np.array([bounds.min]))[0])

    def alive(self, rows: Any) -> Any:
        """Return ``rows`` without expired ones.

        Returns the same table if no row has expired.
        """
        values = one_array(rows.column(self.column))
        numbers = values.view(pa.int64()) if self._type.kind in TIMESTAMPS else values.cast(pa.int64())
        is_valid = numbers.is_valid().to_numpy(zero_copy_only=False)
        expired = self._expired(numbers.fill_null(0).to_numpy()) & is_valid
        return rows.filter(pa.array(~expired)) if expired.any() else rows

    @cached_property
    def _pruner(self) -> file_pruner.FilePruner:
        # The pruner decodes only statistics of columns in its filter, so any filter on the column will do.
        return file_pruner.FilePruner(self.store, IsNull(ColumnRef(self.column)))

    @cached_property
    def _type(self) -> ColumnType:
        return self.store.schema.column_types[self.column]

    def _expired(self, values: Int64s) -> Mask:
        """Return which values, in the column's unit, have expired."""
        if self._type.kind in TIMESTAMPS:
            seconds = values // _A_SECOND[self._type.unit]
        else:
            seconds = np.where(values >= _FIRST_MILLIS, values // 1000, values) if self._type.kind is Kind.BIGINT else values
        mask: Mask = seconds < int(self.clock()) - self.seconds
        return mask
