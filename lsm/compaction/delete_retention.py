"""Retention of deletes in compactions (``delete.time-retained``).

With ``sequence.field`` an older event of a key may arrive after its delete. A compaction to the deepest level drops deletes, so the older
event would then come back as a row. A retained delete stays until its file is older than the retention time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.arrow.row_kind import drop_retracts, retracts
from lsm.keys.encoding import one_array
from lsm.keys.sort import VALUE_KIND
from manifest.entry.data_file import DataFileMeta, wall_clock_millis
from manifest.options.core_options import CoreOptions

_OUTDATED_DELETE = 5
"""Kind of a delete whose time is over, in the rows of a merge only. Odd, because kinds of retracts are."""


@dataclass(frozen=True, slots=True)
class DeleteRetention:
    """Retention rule of a table's deletes.

    A delete ages with the file that holds it. A rewrite of the file starts its time again: deletes may stay too long, never too short.

    ``clock`` returns milliseconds like ``creation_time`` of files.
    """

    millis: int
    clock: Callable[[], int] = field(default=wall_clock_millis, compare=False)

    @classmethod
    def of(cls, options: CoreOptions) -> DeleteRetention | None:
        """Return the rule of a table.

        None: compactions to the deepest level drop all deletes.
        """
        return cls(options.delete_time_retained) if options.delete_time_retained else None

    def is_over(self, file: DataFileMeta) -> bool:
        """Return whether the deletes of a file may be dropped."""
        return file.creation_time is not None and self.clock() - file.creation_time >= self.millis

    def mark(self, file: DataFileMeta, rows: Any) -> Any:
        """Return the rows of a file for a merge that ends in ``drop``.

        Marks the deletes whose time is over. The newest version of a key wins, so the mark of a winner stays beside its delete.
        """
        if file.delete_row_count == 0 or not self.is_over(file):
            return rows
        kinds = one_array(rows.column(VALUE_KIND))
        deletes = retracts(kinds)
        if not deletes.any():
            return rows
        marked = np.where(deletes, np.int8(_OUTDATED_DELETE), kinds.to_numpy(zero_copy_only=False))
        kind_index = rows.schema.get_field_index(VALUE_KIND)
        return rows.set_column(kind_index, rows.schema.field(kind_index), pa.array(marked, pa.int8()))


def drop_deletes(rows: Any, retention: DeleteRetention | None) -> Any:
    """Return merged rows without deletes, except retained ones.

    >>> rows = pa.table({"id": [1, 2, 3], "_VALUE_KIND": pa.array([0, 3, 5], pa.int8())})
    >>> [drop_deletes(rows, retention)["id"].to_pylist() for retention in (None, DeleteRetention(1000))]
    [[1], [1, 2]]
    """
    if retention is None:
        return drop_retracts(rows)
    outdated = one_array(rows.column(VALUE_KIND)).to_numpy(zero_copy_only=False) == _OUTDATED_DELETE
    return rows.filter(pa.array(~outdated)) if outdated.any() else rows
