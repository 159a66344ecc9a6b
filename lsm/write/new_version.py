"""New row versions for UPDATE statements.

For each merge engine, computes the row to write so that merging it with the old row sets the updated columns.
With deduplicate the new row is the version itself, and this module is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.keys.encoding import fixed_words, one_array
from manifest.io.errors import UnmergeableRows, UnsupportedTable
from manifest.options.aggregate_functions import LAST_NON_NULL
from manifest.schema.merge_options import MergeOptions, SequenceGroup
from manifest.schema.partial_rows import LAST_VALUE, requires_value
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField
from paimon_base.errors import InvalidArgument
from sparkexpr.values.arrays import Mask
from sparkexpr.values.column_type import INTEGERS, Kind

Way: TypeAlias = Literal["new", "old", "nothing", "difference"]
"""Content of a column in the written version.

"new": the new row's value. "old": the old row's value. "nothing": null. "difference": new value minus old value.
"""

_KEEPS = frozenset({LAST_VALUE, LAST_NON_NULL, "first_value", "first_non_null_value", "max", "min", "bool_and", "bool_or"})
"""Idempotent aggregate functions: aggregating the old value again does not change it."""


@dataclass(frozen=True)
class NewVersion:
    """Rule to build the version that sets some columns.

    Args:
        ways: Content of each column, keys excluded.
        known: Columns that cannot be set to null, because the engine ignores null.
        orders: Ordering columns that are set. Each tuple must not decrease.
        needed: Ordering columns of sequence groups. They must not all be null, otherwise the version does not change the group.
        groups: Sequence groups of the table.
    """

    ways: Mapping[str, Way]
    known: tuple[str, ...] = ()
    orders: tuple[tuple[str, ...], ...] = ()
    needed: tuple[tuple[str, ...], ...] = ()
    groups: tuple[SequenceGroup, ...] = ()

    @classmethod
    def of(cls, schema: TableSchema, names: Collection[str], table: str = "the table") -> NewVersion | None:
        """Return the rule to set columns ``names``.

        None: the new row itself is the version.

        Raises:
            UnsupportedTable: A column aggregates all values ever written, so its value cannot be replaced.

        >>> from manifest.schema.validation import build_schema
        >>> options = {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
        >>> NewVersion.of(build_schema("id INT, n INT, s STRING", primary_keys=["id"], options=options), ["n"]).ways
        {'n': 'difference', 's': 'nothing'}
        """
        engine = schema.core.engine
        if not schema.is_primary_key_table or engine.newest_replaces:
            return None
        if engine.first_row_wins:
            raise UnsupportedTable(f"{table}: merge-engine '{engine.name}' keeps the first version of a row, so update cannot replace it")
        return _Choice(schema, MergeOptions.of(schema), frozenset(names), table).build()

    @classmethod
    def keeping(cls, schema: TableSchema, names: Collection[str], table: str = "the table") -> NewVersion | None:
        """Return the rule for rows that set ``names`` only.

        The engine merges their values as those of any written row: a sum adds them, and a late row of a sequence group changes nothing.
        None: a row with the old values of other columns is the version.

        Raises:
            UnsupportedTable: No version keeps the value of a column that is missing.

        >>> from manifest.schema.validation import build_schema
        >>> options = {"bucket": "1", "merge-engine": "aggregation", "fields.s.aggregate-function": "last_value"}
        >>> NewVersion.keeping(build_schema("id INT, n INT, s STRING", primary_keys=["id"], options=options), ["id", "n"]).ways
        {'n': 'new', 's': 'new'}
        """
        if not schema.is_primary_key_table or schema.core.engine.newest_replaces:
            return None
        built = _Choice(schema, MergeOptions.of(schema), frozenset(), table, frozenset(names)).build()
        return replace(built, known=(), orders=(), needed=())

    def apply(self, old: pa.Table, new: pa.Table) -> pa.Table:
        """Return the version to write for each row.

        Raises:
            InvalidArgument: A value cannot be set.
            UnmergeableRows: A difference does not fit the column's type.
        """
        for name in self.known:
            if new.column(name).null_count > 0:
                raise InvalidArgument(null_message(name))
        for names in self.needed:
            if _all_null(new, names).any():
                raise InvalidArgument(unordered_message(names))
        for names in self.orders:
            if _decreases(old, new, names).any():
                raise InvalidArgument(decrease_message(names))
        version = new
        for index, name in enumerate(new.column_names):
            way = self.ways.get(name, "new")
            if way == "old":
                version = version.set_column(index, name, old.column(name))
            elif way == "nothing":
                version = version.set_column(index, name, pa.nulls(new.num_rows, new.schema.field(name).type))
            elif way == "difference":
                version = version.set_column(index, name, _difference(old.column(name), new.column(name), name))
        for group in self.groups:
            version = _with_unordered(old, new, version, group)
        return version

    def overriding_group(self, name: str) -> SequenceGroup | None:
        """Return the sequence group that overrides ``ways`` for a column.

        If the old ordering is null, the version holds the column's new value instead.
        """
        if self.ways.get(name) not in {"nothing", "difference"}:
            return None
        return next((group for group in self.groups if name in group.protected and self.ways[group.ordering[0]] == "new"), None)


@dataclass(frozen=True)
class _Choice:
    schema: TableSchema
    options: MergeOptions
    names: frozenset[str]
    """Columns that are set."""
    table: str
    written: frozenset[str] = frozenset()
    """Columns whose values are merged with the stored ones."""

    def build(self) -> NewVersion:
        groups = [group for group in self.options.groups if self._changes(group)]
        orders = [self.schema.core.sequence_field, *(group.ordering for group in groups)]
        ways: dict[str, Way] = {}
        for field in self.schema.fields:
            if field.name not in self.schema.primary_keys:
                ways[field.name] = self._way(field, groups)
        return NewVersion(
            ways,
            known=tuple(name for name in ways if name in self.names and self._ignores_null(name)),
            orders=tuple(order for order in orders if self.names & set(order)),
            needed=tuple(group.ordering for group in groups if self.names & {*group.ordering, *group.protected}),
            groups=self.options.groups,
        )

    def _changes(self, group: SequenceGroup) -> bool:
        """Return whether a version contains columns of the group."""
        columns = {*group.ordering, *group.protected}
        # A column is set, or it cannot be null.
        return bool((self.names | self.written) & columns) or any(requires_value(self.schema.field(name)) for name in columns)

    def _way(self, field: DataField, touched: Collection[SequenceGroup]) -> Way:
        name = field.name
        if name in self.written or name in self.schema.core.sequence_field or any(name in group.ordering for group in touched):
            return "new"
        if any(name in {*group.ordering, *group.protected} for group in self.options.groups if group not in touched):
            return "nothing"
        function = self._function(name)
        if function == LAST_VALUE or (name in self.names and function == LAST_NON_NULL):
            return "new"
        if name in self.names:
            if function == "sum" and field.type.kind in INTEGERS | {Kind.DECIMAL}:
                return "difference"
            exact = " of floating point numbers" if function == "sum" else ""
            reason = f"folds column '{name}' by '{function}'{exact}, which keeps something of every value, so update cannot replace it"
            raise UnsupportedTable(f"{self.table}: merge-engine '{self.options.engine.name}' {reason} (fields.{name}.aggregate-function)")
        if not requires_value(field):
            return "nothing"
        if function in _KEEPS:
            return "old"
        if function == "sum":
            return "difference"
        reason = f"folds column '{name}' by '{function}', and it is {field.type}, so an update of other columns cannot keep its value"
        raise UnsupportedTable(f"{self.table}: merge-engine '{self.options.engine.name}' {reason} (fields.{name}.aggregate-function)")

    def _function(self, name: str) -> str:
        rule = self.options.aggregates.get(name)
        if rule is not None:
            return rule.function
        return LAST_VALUE if any(name in group.protected for group in self.options.groups) else LAST_NON_NULL

    def _ignores_null(self, name: str) -> bool:
        ordering = {*self.schema.core.sequence_field, *(column for group in self.options.groups for column in group.ordering)}
        return name not in ordering and self._function(name) != LAST_VALUE


def _difference(old: Any, new: Any, name: str) -> Any:
    kind = new.type
    wide: Callable[[Any], Any] = lambda column: column.cast(pa.decimal256(75, kind.scale)) if pa.types.is_decimal(kind) else column  # noqa: E731
    try:
        step = pc.subtract_checked(wide(new), wide(old)).cast(kind)
    except pa.ArrowInvalid as error:
        raise UnmergeableRows(f"column '{name}': the difference of the new and the old sum does not fit {kind} ({error})") from error
    same = pc.equal(old, new).fill_null(False)
    zero = pa.scalar(0).cast(kind) if not pa.types.is_decimal(kind) else pa.scalar(0, kind)
    return pc.if_else(same, zero, pc.if_else(old.is_valid(), step, new))


def _with_unordered(old: pa.Table, new: pa.Table, version: pa.Table, group: SequenceGroup) -> pa.Table:
    """Put new group values into versions without an old ordering.

    Raises:
        InvalidArgument: The new ordering is null too, so that the group's values would be lost.
    """
    # A merge drops the values of a version whose ordering is null.
    # So a version over such an old row contains all values of the group.
    unordered = _all_null(old, group.ordering)
    if not unordered.any():
        return version
    if (unordered & _all_null(version, group.ordering) & ~_all_null(old, group.protected)).any():
        raise InvalidArgument(lost_values_message(group))
    unordered_mask = pa.array(unordered)
    for name in group.protected:
        version = version.set_column(
            version.column_names.index(name), name, pc.if_else(unordered_mask, new.column(name), version.column(name))
        )
    return version


def _all_null(rows: pa.Table, names: Collection[str]) -> Mask:
    all_null: Mask = np.ones(rows.num_rows, np.bool_)
    for name in names:
        all_null = all_null & rows.column(name).is_null().to_numpy()
    return all_null


def _decreases(old: pa.Table, new: pa.Table, names: Collection[str]) -> Mask:
    """Return rows whose columns decrease, compared lexicographically.

    Null is the smallest value.
    """
    falls, level = np.zeros(new.num_rows, np.bool_), np.ones(new.num_rows, np.bool_)
    for name in names:
        before, after = _in_file_order(old.column(name)), _in_file_order(new.column(name))
        less = pc.or_(pc.and_(after.is_null(), before.is_valid()), pc.less(after, before).fill_null(False)).to_numpy()
        same = pc.or_(pc.and_(after.is_null(), before.is_null()), pc.equal(after, before).fill_null(False)).to_numpy()
        falls |= level & less
        level &= same
    return falls


def _in_file_order(column: Any) -> Any:
    """Return ``column`` with the order of data files."""
    if not pa.types.is_floating(column.type):
        return column
    # Files order -0.0 before 0.0, and NaN has a place. Arrow's comparison does not.
    array = one_array(column)
    (words,) = fixed_words(array)
    return pa.chunked_array([pa.array(words, mask=array.is_null().to_numpy(zero_copy_only=False))])


def null_message(name: str) -> str:
    """Return the error text for a column set to null."""
    return f"column '{name}' cannot be set to null: the table's merge engine ignores null, so the old value would stay"


def unordered_message(names: Collection[str]) -> str:
    """Return the error text for a null ordering column."""
    shown = ", ".join(names)
    return f"column '{shown}' is null but orders the sequence group of a column that is set. Set it in the same update (fields.{shown}.sequence-group)"


def lost_values_message(group: SequenceGroup) -> str:
    """Return the error text for lost group values."""
    values, shown = ", ".join(group.protected), ", ".join(group.ordering)
    return f"column '{values}' has values where '{shown}', which orders its sequence group, is null: the next version loses them. Set '{shown}' in the same update (fields.{shown}.sequence-group)"


def decrease_message(names: Collection[str]) -> str:
    """Return the error text for decreasing ordering columns."""
    return f"column '{', '.join(names)}' orders the versions of a row, so it cannot be set to a smaller value"
