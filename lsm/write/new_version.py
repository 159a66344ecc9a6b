"""Versions that set columns of a row: what a merge engine must be given so that its fold is the old row with new values.

Where the newest version is the whole row (deduplicate) that is the new row, and nothing here is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.arrays import Mask
from fileindex.base.column_type import INTEGERS, Kind
from fileindex.base.errors import InvalidArgument
from lsm.keys.encoding import fixed_words, one_array
from manifest.io.errors import UnmergeableRows, UnsupportedTable
from manifest.options.merge_keys import LAST_NON_NULL
from manifest.schema.merge_options import MergeOptions, SequenceGroup
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField

Way: TypeAlias = Literal["new", "old", "nothing", "difference"]
"""What stands in a column: the new row's value, the old row's, null, or what added to the old value makes the new one."""

_KEEPS = frozenset({"last_value", LAST_NON_NULL, "first_value", "first_non_null_value", "max", "min", "bool_and", "bool_or"})
"""Functions that make nothing new of a value that is there and comes again."""


@dataclass(frozen=True)
class NewVersion:
    """How one set of columns is set.

    Args:
        ways: by column, keys left out.
        known: columns of which null says nothing, so that they cannot be set to it.
        orders: columns that say together which version is newer: those that are set may not fall.
        needed: of ``orders``, those that touch nothing if all of their columns are null.
        groups: sequence groups of the table. What a row's only version has in one whose ordering is null, no fold keeps: where the new
            version orders the group it has those values whole, and elsewhere they would be lost.
    """

    ways: Mapping[str, Way]
    known: tuple[str, ...] = ()
    orders: tuple[tuple[str, ...], ...] = ()
    needed: tuple[tuple[str, ...], ...] = ()
    groups: tuple[SequenceGroup, ...] = ()

    @classmethod
    def of(cls, schema: TableSchema, names: Collection[str], table: str = "the table") -> NewVersion | None:
        """How ``names`` are set; None where the new row is all that it takes.

        Raises ``UnsupportedTable`` for a column that the merge engine makes of all that was ever written to it.

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
        return _Choice(schema, MergeOptions.of(schema), frozenset(names), table).made()

    def applied(self, old: pa.Table, new: pa.Table) -> pa.Table:
        """The version to write for each row. Raises ``InvalidArgument`` for a value that cannot be set, ``UnmergeableRows`` for a step too wide."""
        for name in self.known:
            if new.column(name).null_count > 0:
                raise InvalidArgument(null_told(name))
        for names in self.needed:
            if _all_null(new, names).any():
                raise InvalidArgument(untouched_told(names))
        for names in self.orders:
            if _falls(old, new, names).any():
                raise InvalidArgument(falls_told(names))
        made = new
        for at, name in enumerate(new.column_names):
            way = self.ways.get(name, "new")
            if way == "old":
                made = made.set_column(at, name, old.column(name))
            elif way == "nothing":
                made = made.set_column(at, name, pa.nulls(new.num_rows, new.schema.field(name).type))
            elif way == "difference":
                made = made.set_column(at, name, _difference(old.column(name), new.column(name), name))
        for group in self.groups:
            made = _with_unordered(old, new, made, group)
        return made

    def stands_whole(self, name: str) -> SequenceGroup | None:
        """The group whose ordering says where the version has the new value of a column, and not what ``ways`` says."""
        if self.ways.get(name) not in {"nothing", "difference"}:
            return None
        return next((group for group in self.groups if name in group.protected and self.ways[group.ordering[0]] == "new"), None)


@dataclass(frozen=True)
class _Choice:
    schema: TableSchema
    options: MergeOptions
    names: frozenset[str]
    table: str

    def made(self) -> NewVersion:
        groups = [group for group in self.options.groups if self._touches(group)]
        orders = [self.schema.core.sequence_field, *(group.ordering for group in groups)]
        ways: dict[str, Way] = {}
        for field in self.schema.fields:
            if field.name not in self.schema.primary_keys:
                ways[field.name] = self._way(field, groups)
        return NewVersion(
            ways,
            known=tuple(name for name in ways if name in self.names and self._says_nothing(name)),
            orders=tuple(order for order in orders if self.names & set(order)),
            needed=tuple(group.ordering for group in groups if self.names & {*group.ordering, *group.protected}),
            groups=self.options.groups,
        )

    def _touches(self, group: SequenceGroup) -> bool:
        """Whether a version has the group's columns: one is set, or cannot be left out."""
        columns = {*group.ordering, *group.protected}
        return bool(self.names & columns) or any(_must_stand(self.schema.field(name)) for name in columns)

    def _way(self, field: DataField, touched: Collection[SequenceGroup]) -> Way:
        name = field.name
        if name in self.schema.core.sequence_field or any(name in group.ordering for group in touched):
            return "new"
        if any(name in {*group.ordering, *group.protected} for group in self.options.groups if group not in touched):
            return "nothing"
        function = self._function(name)
        if function == "last_value" or (name in self.names and function == LAST_NON_NULL):
            return "new"
        if name in self.names:
            if function == "sum" and field.type.kind in INTEGERS | {Kind.DECIMAL}:
                return "difference"
            exact = " of floating point numbers" if function == "sum" else ""
            told = f"folds column '{name}' by '{function}'{exact}, which keeps something of every value, so update cannot replace it"
            raise UnsupportedTable(f"{self.table}: merge-engine '{self.options.engine.name}' {told} (fields.{name}.aggregate-function)")
        if not _must_stand(field):
            return "nothing"
        if function in _KEEPS:
            return "old"
        if function == "sum":
            return "difference"
        told = f"folds column '{name}' by '{function}', and it is {field.type}, so that no version of a row can leave it as it is"
        raise UnsupportedTable(f"{self.table}: merge-engine '{self.options.engine.name}' {told} (fields.{name}.aggregate-function)")

    def _function(self, name: str) -> str:
        rule = self.options.aggregates.get(name)
        if rule is not None:
            return rule.function
        return "last_value" if any(name in group.protected for group in self.options.groups) else LAST_NON_NULL

    def _says_nothing(self, name: str) -> bool:
        ordering = {*self.schema.core.sequence_field, *(column for group in self.options.groups for column in group.ordering)}
        return name not in ordering and self._function(name) != "last_value"


def _must_stand(field: DataField) -> bool:
    """Whether a row cannot have null there, or would get the default in its place."""
    return not field.type.nullable or field.default_value is not None


def _difference(old: Any, new: Any, name: str) -> Any:
    kind = new.type
    wide: Callable[[Any], Any] = lambda column: column.cast(pa.decimal256(75, kind.scale)) if pa.types.is_decimal(kind) else column  # noqa: E731
    try:
        step = pc.subtract_checked(wide(new), wide(old)).cast(kind)
    except pa.ArrowInvalid as error:
        raise UnmergeableRows(f"column '{name}': the step from the old sum to the new one is no {kind} ({error})") from error
    same = pc.equal(old, new).fill_null(False)
    zero = pa.scalar(0).cast(kind) if not pa.types.is_decimal(kind) else pa.scalar(0, kind)
    return pc.if_else(same, zero, pc.if_else(old.is_valid(), step, new))


def _with_unordered(old: pa.Table, new: pa.Table, made: pa.Table, group: SequenceGroup) -> pa.Table:
    """The versions with the group's values whole where nothing ordered them. Raises ``InvalidArgument`` where nothing does so now."""
    unordered = _all_null(old, group.ordering)
    if not unordered.any():
        return made
    if (unordered & _all_null(made, group.ordering) & ~_all_null(old, group.protected)).any():
        raise InvalidArgument(lost_told(group))
    whole = pa.array(unordered)
    for name in group.protected:
        made = made.set_column(made.column_names.index(name), name, pc.if_else(whole, new.column(name), made.column(name)))
    return made


def _all_null(rows: pa.Table, names: Collection[str]) -> Mask:
    found: Mask = np.ones(rows.num_rows, np.bool_)
    for name in names:
        found = found & rows.column(name).is_null().to_numpy()
    return found


def _falls(old: pa.Table, new: pa.Table, names: Collection[str]) -> Mask:
    """Rows whose columns, first by first, are less than they were; null is least."""
    falls, level = np.zeros(new.num_rows, np.bool_), np.ones(new.num_rows, np.bool_)
    for name in names:
        before, after = _ordered(old.column(name)), _ordered(new.column(name))
        less = pc.or_(pc.and_(after.is_null(), before.is_valid()), pc.less(after, before).fill_null(False)).to_numpy()
        same = pc.or_(pc.and_(after.is_null(), before.is_null()), pc.equal(after, before).fill_null(False)).to_numpy()
        falls |= level & less
        level &= same
    return falls


def _ordered(column: Any) -> Any:
    """``column`` so that Arrow compares it as files do, where zeros have an order, and NaN a place."""
    if not pa.types.is_floating(column.type):
        return column
    array = one_array(column)
    (words,) = fixed_words(array)
    return pa.chunked_array([pa.array(words, mask=array.is_null().to_numpy(zero_copy_only=False))])


def null_told(name: str) -> str:
    """What is told of a column that is set to null where null leaves it as it is."""
    return f"column '{name}' cannot be set to null: to the table's merge engine null says nothing, so that the old value would stay"


def untouched_told(names: Collection[str]) -> str:
    """What is told where no version touches a group."""
    shown = ", ".join(names)
    return f"column '{shown}' is null and orders the sequence group of a column that is set: set it, too (fields.{shown}.sequence-group)"


def lost_told(group: SequenceGroup) -> str:
    """What is told where the next version takes away what nothing orders."""
    kept, shown = ", ".join(group.protected), ", ".join(group.ordering)
    return f"column '{kept}' has values where '{shown}', which orders its sequence group, is null: the next version loses them; set '{shown}', too (fields.{shown}.sequence-group)"


def falls_told(names: Collection[str]) -> str:
    """What is told of columns that would make the new version the older one."""
    return f"column '{', '.join(names)}' says which version is newer, so it cannot be set to less than it is"


__all__ = ["NewVersion", "Way", "falls_told", "lost_told", "null_told", "untouched_told"]
