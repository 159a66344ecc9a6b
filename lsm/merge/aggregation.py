"""The merge engine ``aggregation`` (Paimon's ``AggregateMergeFunction``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.arrow.row_kind import retracts
from lsm.keys.sort import DELETE, INSERT, SEQUENCE_NUMBER, VALUE_KIND, Sorted
from lsm.merge.aggregators import copies_value, fold_column, retract_refusal
from lsm.merge.version_groups import GroupFold, VersionHistory
from manifest.schema.merge_options import FieldAggregate


@dataclass(frozen=True)
class Aggregation:
    """Merge function that folds each column by its aggregate function.

    Columns without an entry in ``aggregates`` are key columns. With ``remove_on_delete`` a ``-D`` row replaces all earlier values by its own;
    later versions build on them.

    >>> rows = pa.table({"_SEQUENCE_NUMBER": [0, 1], "_VALUE_KIND": pa.array([0, 0], pa.int8()), "id": [7, 7], "n": [1, 2]})
    >>> engine = Aggregation({"n": FieldAggregate("sum")})
    >>> engine.fold(rows, Sorted(np.array([0, 1]), np.array([0]))).to_pylist()
    [{'_SEQUENCE_NUMBER': 1, '_VALUE_KIND': 0, 'id': 7, 'n': 3}]
    """

    aggregates: Mapping[str, FieldAggregate] = field(default_factory=dict)
    remove_on_delete: bool = False

    @property
    def is_associative(self) -> bool:
        """See ``MergeFunction``."""
        return False

    def refusal(self, kind: int) -> str | None:
        """Return the reason of the first function without retracts."""
        if kind == DELETE and self.remove_on_delete:
            return None
        reasons = (retract_refusal(name, rule) for name, rule in self.aggregates.items())
        return next((reason for reason in reasons if reason is not None), None)

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return ``columns``: columns do not depend on each other."""
        return tuple(columns)

    def copies(self, column: str) -> bool:
        """See ``MergeFunction``."""
        return column not in self.aggregates or copies_value(self.aggregates[column])

    def prefilter(self, kinds: Any, sorted_rows: Sorted) -> Sorted:  # noqa: ARG002 - every version counts
        """Return all versions."""
        return sorted_rows

    def fold(self, rows: Any, sorted_rows: Sorted) -> Any:
        """Return one ``+I`` row per key.

        The row is ``-D`` if ``remove_on_delete`` is set and the last version is ``-D``.
        """
        folding = GroupFold.of(rows, sorted_rows)
        if folding.is_single.all():
            return rows.take(pa.array(sorted_rows.order))
        versions = folding.versions
        kinds = rows.column(VALUE_KIND).to_numpy()[versions.rows]
        history = self._history(folding, kinds)
        last = versions.rows[versions.last]
        is_gone = (kinds[versions.last] == DELETE) & self.remove_on_delete
        columns = []
        for name in rows.schema.names:
            if name == VALUE_KIND:
                columns.append(folding.with_values(name, pa.array(np.where(is_gone, DELETE, INSERT).astype(np.int8))))
            elif name == SEQUENCE_NUMBER or name not in self.aggregates:
                columns.append(folding.gather(name, last))
            else:
                columns.append(fold_column(folding, name, self.aggregates[name], history))
        return folding.table(columns)

    def _history(self, folding: GroupFold, kinds: Any) -> VersionHistory:
        versions = folding.versions
        retract = retracts(kinds)
        if not retract.any():
            return VersionHistory(versions, ~retract)
        deletes = kinds == DELETE
        if not self.remove_on_delete or not deletes.any():
            return VersionHistory(versions, ~retract, retract=retract)
        base = versions.last_where(deletes)[versions.keys]
        counts = versions.positions > base
        left = retract & counts
        return VersionHistory(
            versions,
            ~retract & counts,
            retract=left if left.any() else None,
            seed=versions.positions == base,
            past=~retract & ~counts,
        )
