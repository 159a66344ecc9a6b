"""Merge functions: fold all versions of one key.

Paimon's ``MergeFunction`` with its reducer shortcut.

Only this module of the package tests the name of the merge engine. Others ask for a trait (``manifest.options.merge_engine``).

In lookup compactions, a version above level 0 already contains the versions on deeper levels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from lsm.arrow.row_kind import retracts
from lsm.keys.encoding import one_array
from lsm.keys.sort import DELETE, VALUE_KIND, Sorted
from manifest.io.errors import UnmergeableRows, UnsupportedTable
from manifest.schema.merge_options import MergeOptions
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import UnsupportedOption
from paimon_base.lazy import LazyModule
from sparkexpr.values.arrays import Int8s, Int64s, Mask, arrow_array

if TYPE_CHECKING:
    from lsm.merge import aggregation, partial_update
else:
    aggregation = LazyModule("lsm.merge.aggregation")
    partial_update = LazyModule("lsm.merge.partial_update")


LEVEL = "_LEVEL"
"""Column with the level of a version's file. Only in rows during a merge, never in files."""
_NOT_MERGED_YET = np.iinfo(np.int8).max

_DERIVED = "merge function"
"""Name in ``TableSchema.derived``."""


class MergeFunction(Protocol):
    """Fold of groups of versions (``lsm.merge.function.merge_function_for``).

    If ``is_associative`` is False, folding some versions of a key first may change the result. Then a flush, compaction or read
    must fold the versions it sees at once.
    """

    @property
    def is_associative(self) -> bool:
        """Whether folding parts first gives the same result."""

    def refusal(self, kind: int) -> str | None:
        """Return why rows of a retracting ``kind`` cannot be written.

        None: they can. ``kind`` is ``UPDATE_BEFORE`` or ``DELETE``.
        """

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return ``columns`` and the columns that their fold needs.

        The key and ``sequence.field`` are excluded.
        """

    def copies(self, column: str) -> bool:
        """Return whether merged values are copies or null."""

    def fold(self, rows: Any, sorted_rows: Sorted) -> Any:
        """Return at most one row per key, in key order.

        ``rows`` has ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND``. ``sorted_rows`` lists its rows by key and, within a key, oldest first.
        A key with one version is returned unchanged.
        """

    def prefilter(self, kinds: Any, sorted_rows: Sorted) -> Sorted:
        """Return ``sorted_rows`` without versions that cannot affect the result.

        Saves gathering these rows. ``kinds`` None means that all are ``+I``.
        """


class _VersionChoice:
    """Base of functions that return one of a key's versions."""

    __slots__ = ()

    @property
    def is_associative(self) -> bool:
        """See ``MergeFunction``."""
        return True

    def copies(self, column: str) -> bool:  # noqa: ARG002  # all columns
        """See ``MergeFunction``."""
        return True

    @abstractmethod
    def winners(self, kinds: Any, sorted_rows: Sorted) -> Int64s:
        """Return the positions of the surviving rows, in key order.

        ``kinds`` is the ``_VALUE_KIND`` column. None: all rows are ``+I``.

        Raises:
            UnmergeableRows: The engine does not accept a retract.
        """

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return ``columns``."""
        return tuple(columns)

    def fold(self, rows: Any, sorted_rows: Sorted) -> Any:
        """Return the winners."""
        return rows.take(arrow_array(self.winners(rows.column(VALUE_KIND), sorted_rows)))

    def prefilter(self, kinds: Any, sorted_rows: Sorted) -> Sorted:
        """Return only the winners."""
        winners = self.winners(kinds, sorted_rows)
        return Sorted(winners, np.arange(len(winners)))


@dataclass(frozen=True, slots=True)
class Deduplicate(_VersionChoice):
    """Merge function ``deduplicate``: the last version wins, whatever its kind.

    With ``ignore_delete`` a retract only counts if it is the only version of its key.

    >>> rows = pa.table({"_VALUE_KIND": pa.array([0, 3], pa.int8()), "v": ["old", "gone"]})
    >>> done = Sorted(np.array([0, 1]), np.array([0]))
    >>> Deduplicate().fold(rows, done)["v"].to_pylist(), Deduplicate(ignore_delete=True).fold(rows, done)["v"].to_pylist()
    (['gone'], ['old'])
    """

    ignore_delete: bool = False

    @property
    def newest_wins(self) -> bool:
        """Whether the newest version always wins, retracts included."""
        return not self.ignore_delete

    def refusal(self, kind: int) -> str | None:  # noqa: ARG002 - of both kinds
        """Return None: all retracts are accepted."""
        return None

    def winners(self, kinds: Any, sorted_rows: Sorted) -> Int64s:
        """Return the last version that counts."""
        if not self.ignore_delete or kinds is None or not len(sorted_rows.order):
            return sorted_rows.last
        retract = retracts(kinds)
        if not retract.any():
            return sorted_rows.last
        alone = _alone(sorted_rows)
        candidates = np.where(alone | ~retract[sorted_rows.order], np.arange(len(sorted_rows.order)), -1)
        newest = np.maximum.reduceat(candidates, sorted_rows.starts)
        winners: Int64s = sorted_rows.order[newest[newest >= 0]]
        return winners


@dataclass(frozen=True, slots=True)
class FirstRow(_VersionChoice):
    """Merge function ``first-row``: the first version wins.

    With ``ignore_delete`` a retract only counts if it is the only version of its key. Without it, retracts are refused.

    >>> rows = pa.table({"_VALUE_KIND": pa.array([0, 0], pa.int8()), "v": ["old", "new"]})
    >>> FirstRow().fold(rows, Sorted(np.array([0, 1]), np.array([0])))["v"].to_pylist()
    ['old']
    """

    ignore_delete: bool = False

    @property
    def newest_wins(self) -> bool:
        """Always False: the oldest version wins."""
        return False

    def refusal(self, kind: int) -> str | None:  # noqa: ARG002 - of neither kind
        """Return the reason: the first version cannot be retracted."""
        return (
            None
            if self.ignore_delete
            else "merge-engine 'first-row' keeps the first version of a key; set 'ignore-delete' to drop such rows"
        )

    def winners(self, kinds: Any, sorted_rows: Sorted) -> Int64s:
        """Return the first version that counts."""
        first: Int64s = sorted_rows.order[sorted_rows.starts]
        if kinds is None or not len(first):
            return first
        retract = retracts(kinds)[sorted_rows.order]
        alone = _alone(sorted_rows)
        skipped = retract & ~alone
        if not skipped.any():
            return first
        if not self.ignore_delete:
            raise UnmergeableRows(f"a '-U' or '-D' row meets other versions of its key: {self.refusal(DELETE)}")
        candidates = np.where(skipped, len(sorted_rows.order), np.arange(len(sorted_rows.order)))
        oldest = np.minimum.reduceat(candidates, sorted_rows.starts)
        winners: Int64s = sorted_rows.order[oldest[oldest < len(sorted_rows.order)]]
        return winners


def _alone(sorted_rows: Sorted) -> Mask:
    """Return a mask of keys' only versions, in key order."""
    ends = np.append(sorted_rows.starts[1:], len(sorted_rows.order))
    mask: Mask = np.repeat(ends - sorted_rows.starts == 1, ends - sorted_rows.starts)
    return mask


def merge_function_for(schema: TableSchema) -> MergeFunction:
    """Return the merge function of a primary-key table.

    It is made once for a schema.

    Raises:
        UnsupportedTable: The engine or one of its options is not implemented; the message names it.

    >>> from manifest.schema.validation import build_schema
    >>> merge_function_for(build_schema("id BIGINT", primary_keys=["id"], options={"bucket": "1", "ignore-delete": "true"}))
    Deduplicate(ignore_delete=True)
    """
    function: MergeFunction | None = schema.derived.get(_DERIVED)
    if function is None:
        function = schema.derived[_DERIVED] = _merge_function(schema)
    return function


def _merge_function(schema: TableSchema) -> MergeFunction:
    try:
        options = MergeOptions.of(schema)
    except UnsupportedOption as error:
        raise UnsupportedTable(str(error)) from error
    match options.engine.name:
        case "deduplicate":
            return Deduplicate(options.ignore_delete)
        case "first-row":
            return FirstRow(options.ignore_delete)
        case "aggregation":
            return aggregation.Aggregation(options.aggregates, options.remove_on_delete)
        case _:
            return partial_update.PartialUpdate(
                schema.primary_keys,
                options.groups,
                options.aggregates,
                options.ignore_delete,
                options.remove_on_delete,
                options.remove_on_groups,
            )


def with_level(rows: Any, level: int) -> Any:
    """Return ``rows`` with a ``_LEVEL`` column."""
    return rows.append_column(LEVEL, pa.array(np.full(rows.num_rows, level, np.int8)))


def without_level(rows: Any) -> Any:
    """Return ``rows`` without the ``_LEVEL`` column."""
    return rows.drop_columns([LEVEL]) if LEVEL in rows.column_names else rows


@dataclass(frozen=True, slots=True)
class LookupMerge:
    """Merge function that drops versions contained in shallower ones.

    Of versions above level 0 only the shallowest takes part: it is the merged result of all deeper ones.
    Rows to fold have ``_LEVEL``, results do not. For first-row, keys with a version on a level deeper than ``known_below`` have no result,
    because that version stays the first. None for other engines.
    """

    inner: MergeFunction
    known_below: int | None = None

    def fold(self, rows: Any, sorted_rows: Sorted) -> Any:
        """See ``MergeFunction``."""
        levels = one_array(rows.column(LEVEL)).to_numpy()[sorted_rows.order]
        if self.known_below is None:
            keep = _shallowest(levels, sorted_rows)
        else:  # first-row: a version below the output level stays the first
            keep = ~np.repeat(np.maximum.reduceat(levels, sorted_rows.starts) > self.known_below, _sizes(sorted_rows))
        return self.inner.fold(without_level(rows), filter_sorted(sorted_rows, keep))


def combines_versions(fold: MergeFunction) -> bool:
    """Return whether results combine several versions.

    If so, versions on deeper levels must not be merged twice.
    """
    return not isinstance(fold, Deduplicate | FirstRow)


def filter_sorted(sorted_rows: Sorted, keep: Mask) -> Sorted:
    """Return ``sorted_rows`` without the positions where ``keep`` is False.

    Keys without a remaining row are removed.

    >>> less = filter_sorted(Sorted(np.array([2, 0, 1]), np.array([0, 1])), np.array([False, True, False]))
    >>> less.order.tolist(), less.starts.tolist()
    ([0], [0])
    """
    if keep.all():
        return sorted_rows
    group = np.repeat(np.arange(len(sorted_rows.starts)), _sizes(sorted_rows))[keep]
    return Sorted(sorted_rows.order[keep], np.flatnonzero(np.diff(group, prepend=-1)))


def _shallowest(levels: Int8s, sorted_rows: Sorted) -> Mask:
    """Return a mask without versions contained in a shallower one."""
    merged = levels > 0
    least = np.minimum.reduceat(np.where(merged, levels, _NOT_MERGED_YET), sorted_rows.starts)
    mask: Mask = ~merged | (levels == np.repeat(least, _sizes(sorted_rows)))
    return mask


def _sizes(sorted_rows: Sorted) -> Int64s:
    return np.diff(sorted_rows.starts, append=len(sorted_rows.order))
