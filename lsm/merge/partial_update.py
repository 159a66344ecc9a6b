"""The merge engine ``partial-update`` (Paimon's ``PartialUpdateMergeFunction``).

By default a non-null value overwrites the existing one. Columns of a sequence group follow the group's own
order instead. An aggregate function may fold them, and deletes retract them.

A version whose ordering columns are all null does not change the group. Otherwise its ordering columns are compared with the current ones.
If they are not smaller, the version is in order and its ordering columns become current. If they are smaller, it is late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.arrow.row_kind import retracts
from lsm.keys.encoding import WordColumn
from lsm.keys.sort import DELETE, INSERT, SEQUENCE_NUMBER, VALUE_KIND, Sorted, sort_rows
from lsm.merge.agg_first_last import last_non_null_value, last_value
from lsm.merge.aggregators import copies_value, fold_column, retract_refusal
from lsm.merge.version_groups import GroupFold, VersionHistory, Versions
from manifest.io.errors import UnmergeableRows
from manifest.schema.merge_options import FieldAggregate, SequenceGroup
from paimon_base.lazy import cached_property
from sparkexpr.values.arrays import Int64s, Mask

_HOW = (
    "set 'ignore-delete' to drop such rows, 'partial-update.remove-record-on-delete' to let '-D' remove the row, "
    "or sequence groups ('fields.<columns>.sequence-group') to retract columns"
)


@dataclass(frozen=True)
class PartialUpdate:
    """Merge function that fills columns from several versions.

    Columns of ``keys`` are copied. Columns of ``groups`` follow the group's order. Others take their last non-null value.

    >>> rows = pa.table({"_SEQUENCE_NUMBER": [0, 1], "_VALUE_KIND": pa.array([0, 0], pa.int8()), "a": [1, None], "b": [None, 2]})
    >>> engine = PartialUpdate((), (), {}, ignore_delete=False, remove_on_delete=False, remove_on_groups=frozenset())
    >>> engine.fold(rows, Sorted(np.array([0, 1]), np.array([0]))).to_pylist()
    [{'_SEQUENCE_NUMBER': 1, '_VALUE_KIND': 0, 'a': 1, 'b': 2}]
    """

    keys: tuple[str, ...]
    groups: tuple[SequenceGroup, ...]
    aggregates: Mapping[str, FieldAggregate]
    ignore_delete: bool
    remove_on_delete: bool
    remove_on_groups: frozenset[str]

    @property
    def is_associative(self) -> bool:
        """See ``MergeFunction``."""
        return False

    def refusal(self, kind: int) -> str | None:
        """Return the reason if no option allows retracts."""
        if self.ignore_delete or (self.remove_on_delete and kind == DELETE):
            return None
        if self.groups:
            reasons = (retract_refusal(name, rule) for name, rule in self._in_groups.items())
            return next((reason for reason in reasons if reason is not None), None)
        return None if self.remove_on_delete else f"merge-engine 'partial-update' cannot retract rows; {_HOW}"

    @cached_property
    def _in_groups(self) -> dict[str, FieldAggregate]:
        protected = {name for group in self.groups for name in group.protected}
        return {name: rule for name, rule in self.aggregates.items() if name in protected}

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Add the ordering columns of the needed sequence groups.

        Includes groups whose deletes remove rows.
        """
        needed_columns = dict.fromkeys(columns)
        for group in self.groups:
            if self.remove_on_groups & set(group.ordering) or set(needed_columns) & {*group.ordering, *group.protected}:
                needed_columns |= dict.fromkeys(group.ordering)
        return tuple(needed_columns)

    def copies(self, column: str) -> bool:
        """See ``MergeFunction``."""
        return column not in self._in_groups or copies_value(self._in_groups[column])

    def prefilter(self, kinds: Any, sorted_rows: Sorted) -> Sorted:  # noqa: ARG002 - every version counts
        """Return all versions."""
        return sorted_rows

    def fold(self, rows: Any, sorted_rows: Sorted) -> Any:
        """Return one row per key.

        The row is ``-D`` if it was removed or no version is an add. Otherwise it is ``+I``.
        """
        folding = GroupFold.of(rows, sorted_rows)
        if folding.is_single.all():
            return rows.take(pa.array(sorted_rows.order))
        kinds = rows.column(VALUE_KIND).to_numpy()[folding.versions.rows]
        return _Fold(self, folding, kinds).result()


@dataclass(frozen=True)
class _Fold:
    """One fold. ``kinds`` are the row kinds by place."""

    engine: PartialUpdate
    folding: GroupFold
    kinds: Any

    def result(self) -> Any:
        versions, rows = self.folding.versions, self.folding.rows
        if self._retract.any() and not (self.engine.ignore_delete or self.engine.remove_on_delete or self.engine.groups):
            raise UnmergeableRows(f"a '-U' or '-D' row meets other versions of its key: {self.engine.refusal(DELETE)}")
        columns = []
        for name in rows.schema.names:
            if name == VALUE_KIND:
                columns.append(self.folding.with_values(name, pa.array(self._result_kinds)))
            elif name == SEQUENCE_NUMBER:
                columns.append(self.folding.with_values(name, self._sequences(rows.column(name).to_numpy())))
            elif name in self.engine.keys:
                columns.append(self.folding.gather(name, versions.rows[versions.last]))
            else:
                columns.append(self._column(name))
        return self.folding.table(columns)

    def _column(self, name: str) -> Any:
        versions = self.folding.versions
        for ordering, event in zip(self._orderings, self._events[0], strict=True):
            if name in ordering.group.ordering:
                newer = event.in_order & self._counts
                return self.folding.gather(name, versions.rows_at(last_value(VersionHistory(versions, newer, seed=self._seed))))
            if name in ordering.group.protected:
                return self._protected(name, event)
        history = VersionHistory(versions, self._adds & self._counts, seed=self._seed)
        valid = versions.valid(self.folding.rows.column(name))
        return self.folding.gather(name, versions.rows_at(last_non_null_value(history, valid)))

    def _protected(self, name: str, event: GroupEvents) -> Any:
        versions, rule = self.folding.versions, self.engine.aggregates.get(name)
        newer, late = event.in_order & self._adds, event.late & self._adds
        back = self._retract & self._counts & (not self.engine.ignore_delete)
        if rule is None:
            applied = event.in_order & back
            history = VersionHistory(versions, newer & self._counts, retract=_or_none(applied), seed=self._seed)
            return self.folding.gather(name, versions.rows_at(last_value(history)))
        touched = (event.in_order | event.late) & back
        past = None if self._counts.all() else (newer | late) & ~self._counts
        older = _or_none(late & self._counts)
        history = VersionHistory(versions, newer & self._counts, older, _or_none(touched), self._seed, past)
        return fold_column(self.folding, name, rule, history)

    @cached_property
    def _retract(self) -> Mask:
        return retracts(self.kinds)

    @cached_property
    def _adds(self) -> Mask:
        return ~self._retract

    @cached_property
    def _orderings(self) -> list[Ordering]:
        """Sequence groups whose ordering columns are present."""
        names, versions = set(self.folding.rows.schema.names), self.folding.versions
        counts = np.ones(versions.count, np.bool_)
        if self.engine.ignore_delete:
            counts = self._adds.copy()
            counts[versions.starts] = True
        groups = [group for group in self.engine.groups if set(group.ordering) <= names]
        return [Ordering.of(group, versions, self.folding.rows, counts) for group in groups]

    @cached_property
    def _events(self) -> tuple[list[GroupEvents], Int64s]:
        deletes = self.kinds == DELETE
        return events(self._orderings, self.folding.versions, deletes, self.engine.remove_on_groups)

    @cached_property
    def _base(self) -> Int64s:
        """Last version per key that replaced the row, or -1.

        ``remove-record-on-delete`` and its sequence-group form make a ``-D`` row replace all values by its own.
        """
        if self.engine.remove_on_delete:
            return self.folding.versions.last_where(self.kinds == DELETE)
        return self._events[1]

    @cached_property
    def _counts(self) -> Mask:
        """Versions after the last one that replaced the row."""
        after: Mask = self.folding.versions.positions > self._base[self.folding.versions.keys]
        return after

    @cached_property
    def _seed(self) -> Mask | None:
        """Versions that set all values of their key.

        The last version that replaced the row, or a first version that is a retract.
        """
        starts = self.folding.versions.starts
        first = np.where(self._retract[starts], starts, -1)
        positions = np.where(self._base >= 0, self._base, first)
        if not (positions >= 0).any():
            return None
        mask = np.zeros(self.folding.versions.count, np.bool_)
        mask[positions[positions >= 0]] = True
        return mask

    @cached_property
    def _result_kinds(self) -> Any:
        versions = self.folding.versions
        is_gone = (versions.last_where(self._adds) < 0) | (self._base == versions.last)
        return np.where(is_gone, DELETE, INSERT).astype(np.int8)

    def _sequences(self, numbers: Any) -> Any:
        """Return the sequence number of the last version that counts.

        0 if all versions are ignored.
        """
        versions = self.folding.versions
        last = versions.last_where(self._adds) if self.engine.ignore_delete else versions.last
        return pa.array(np.where(last < 0, 0, numbers[versions.rows[last]]))


def _or_none(mask: Mask) -> Mask | None:
    return mask if mask.any() else None


@dataclass(frozen=True)
class Ordering:
    """One sequence group over the versions of many keys.

    Args:
        touched: Versions that touch the group.
        rank: Rank of their ordering columns, -1 for other versions.
    """

    group: SequenceGroup
    versions: Versions
    touched: Mask
    rank: Int64s

    @classmethod
    def of(cls, group: SequenceGroup, versions: Versions, rows: Any, counts: Mask) -> Ordering:
        """Return the ordering. ``counts`` masks the versions to use."""
        words = [WordColumn.of(rows.column(name)) for name in group.ordering]
        touched = np.zeros(versions.count, np.bool_)
        for name in group.ordering:
            touched |= versions.valid(rows.column(name))
        touched &= counts
        return cls(group, versions, touched, np.where(touched, _ranks(words, versions.rows), -1))

    @cached_property
    def in_order(self) -> Mask:
        """Versions that are not smaller than all earlier ones."""
        span = int(self.rank.max(initial=0)) + 2
        offset = self.versions.keys * span
        highest = np.maximum.accumulate(offset + self.rank + 1) - offset - 1
        mask: Mask = self.touched & (self.rank == highest)
        return mask


def _ranks(words: Sequence[WordColumn], rows: Int64s) -> Int64s:
    """Return dense ranks of ``rows``. Equal rows get equal ranks."""
    row_words = [WordColumn(tuple(_of_rows(word, rows) for word in column.words), len(rows)) for column in words]
    sorted_rows = sort_rows(row_words, length=len(rows))
    ranks = np.empty(len(rows), np.int64)
    ranks[sorted_rows.order] = np.repeat(np.arange(len(sorted_rows.starts)), np.diff(np.append(sorted_rows.starts, len(rows))))
    return ranks


def _of_rows(word: Any, rows: Int64s) -> Any:
    return lambda positions: word(rows if positions is None else rows[positions])


@dataclass(frozen=True)
class GroupEvents:
    """Versions that are in order or late in one group."""

    in_order: Mask
    late: Mask


def events(orderings: Sequence[Ordering], versions: Versions, deletes: Mask, removing: frozenset[str]) -> tuple[list[GroupEvents], Int64s]:
    """Return the events of each group, and the replacing versions.

    The second result is the last version of each key that replaced the whole row, -1 if none. ``deletes`` are the ``-D`` versions.
    A delete replaces the row if it is in order in a group with an ordering column in ``removing``.
    After that all groups continue from its ordering columns.
    """
    in_order = [ordering.in_order.copy() for ordering in orderings]
    base = np.full(len(versions.starts), -1)
    replay = _Replay(orderings, removing, in_order)
    candidates = replay.candidates(deletes)
    for key in np.unique(versions.keys[candidates]).tolist():
        base[key] = replay.last_removal(range(int(versions.starts[key]), int(versions.last[key]) + 1), candidates)
    late = [ordering.touched & ~mask for ordering, mask in zip(orderings, in_order, strict=True)]
    return [GroupEvents(newer, older) for newer, older in zip(in_order, late, strict=True)], base


@dataclass(frozen=True)
class _Replay:
    """Version-by-version evaluation of keys with row removals.

    A removal resets the ordering values that later versions are compared with.
    """

    orderings: Sequence[Ordering]
    removing: frozenset[str]
    in_order: Sequence[Mask]

    @cached_property
    def _removers(self) -> list[int]:
        return [index for index, ordering in enumerate(self.orderings) if self.removing & set(ordering.group.ordering)]

    def candidates(self, deletes: Mask) -> Mask:
        """Return the deletes that remove the row if in order."""
        mask = np.zeros(len(deletes), np.bool_)
        for group in self._removers:
            mask |= deletes & self.orderings[group].touched
        return mask

    def last_removal(self, positions: range, candidates: Mask) -> int:
        """Return the last version that replaced the row, or -1.

        Processes one key, and corrects ``in_order``.
        """
        current = [-1] * len(self.orderings)
        base = -1
        for position in positions:
            ranks = [int(ordering.rank[position]) for ordering in self.orderings]
            for group, rank in enumerate(ranks):
                self.in_order[group][position] = 0 <= rank >= current[group]
            if candidates[position] and any(self.in_order[group][position] for group in self._removers):
                base, current = position, ranks
            else:
                current = [max(seen_rank, rank_here) for seen_rank, rank_here in zip(current, ranks, strict=True)]
        return base
