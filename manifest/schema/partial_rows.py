"""Effects of rows that leave out columns, by merge engine.

A version without a column has null there. Some engines ignore that null, others replace the stored value by it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from manifest.options.aggregate_functions import LAST_NON_NULL
from manifest.schema.merge_options import MergeOptions, SequenceGroup
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField, default_scalar

LAST_VALUE = "last_value"
"""Aggregate function that takes the newest value, also null. Columns of a sequence group without a function follow it, too."""

_NEWEST = frozenset({LAST_VALUE, LAST_NON_NULL})
"""Aggregate functions that take a value of the newest version."""


def requires_value(field: DataField) -> bool:
    """Return whether a version cannot have null in a column.

    The column is not nullable, or null is replaced by its default.
    """
    return not field.type.nullable or field.default_value is not None


@dataclass(frozen=True)
class PartialRows:
    """Rows that have only the columns ``names``.

    >>> from manifest.schema.validation import build_schema
    >>> options = {"bucket": "1", "merge-engine": "partial-update", "fields.ts.sequence-group": "a,b"}
    >>> schema = build_schema("id INT, a INT, b INT, ts INT, c INT", primary_keys=["id"], options=options)
    >>> PartialRows(schema, ["id", "a", "ts"]).replaced, PartialRows(schema, ["id", "a"]).replaced
    (('b',), ())
    >>> PartialRows(schema, ["id", "a"]).refusal
    "column 'ts' is missing, which orders the sequence group of column 'a'..."
    """

    schema: TableSchema
    names: Collection[str]

    @property
    def replaced(self) -> tuple[str, ...]:
        """Missing columns whose stored values would become null."""
        return tuple(name for name in self._unless_null if default_scalar(self.schema.field(name)) is None)

    @property
    def changed(self) -> tuple[str, ...]:
        """Missing columns whose stored values a plain version would not keep.

        Besides ``replaced`` these are columns with a default, and NOT NULL columns, of which a plain version needs a value.
        """
        if self._keeps_row:
            return ()
        needed = (field.name for field in self.schema.fields if requires_value(field) and self._is_missing(field.name))
        return tuple(dict.fromkeys([*self._unless_null, *needed]))

    @property
    def refusal(self) -> str | None:
        """Error text for a write of such rows. None: it neither clears nor ignores values."""
        if replaced := [name for name in self.replaced if self.schema.field(name).type.nullable]:
            return self._replaced_text(replaced)
        return self.ignored

    @property
    def ignored(self) -> str | None:
        """Error text for values that the merge would ignore. None: it uses all.

        A version without its sequence column is older than all that have one.
        """
        for group in self._groups:
            names = [name for name in group.protected if name in self.names]
            if names and not self._has_some(group.ordering):
                shown = ",".join(group.ordering)
                return _ignored_text(group.ordering, f"the sequence group of {_columns(names)}", names, f"fields.{shown}.sequence-group")
        ordering = self.schema.core.sequence_field
        if ordering and (names := self._newest_values) and not self._has_some(ordering):
            return _ignored_text(ordering, "the versions of a key", names, "sequence.field")
        return None

    @property
    def _newest_values(self) -> list[str]:
        """Given columns outside of sequence groups whose value in the newest version replaces the stored one, unless it is null."""
        options = MergeOptions.of(self.schema)
        if self._keeps_row or options.engine.newest_replaces:
            return []
        fixed = {*self.schema.primary_keys, *self.schema.partition_keys, *self.schema.core.sequence_field}
        grouped = {name for group in options.groups for name in (*group.ordering, *group.protected)}
        return [
            name
            for name in self.schema.names
            if name in self.names and name not in fixed | grouped
            if name not in options.aggregates or options.aggregates[name].function in _NEWEST
        ]

    def _replaced_text(self, names: Collection[str]) -> str:
        engine = self.schema.core.engine
        group = next((group for group in self._groups if set(names) & {*group.ordering, *group.protected}), None)
        more = ""
        if engine.newest_replaces:
            reason = f"with merge-engine '{engine.name}' a row replaces the stored row of its key"
            more = "; or change columns by update() or merge(), or use merge-engine 'partial-update'"
        elif group is not None:
            shown = ",".join(group.ordering)
            reason = f"a row with '{shown}' replaces all columns of its sequence group (fields.{shown}.sequence-group)"
        else:
            reason = f"aggregate function '{LAST_VALUE}' takes the value of the newest row, also null"
        return (
            f"{_columns_are(names)} missing: {reason}, so stored values would become NULL, and nothing was committed. Give all columns; or write "
            f"with missing='keep' to keep the stored values, or missing='null' to set NULL{more}"
        )

    @property
    def _keeps_row(self) -> bool:
        return not self.schema.is_primary_key_table or self.schema.core.engine.first_row_wins

    @property
    def _unless_null(self) -> tuple[str, ...]:
        """Missing columns whose stored values the value of this version replaces, be it null."""
        if self._keeps_row:
            return ()
        options = MergeOptions.of(self.schema)
        if options.engine.newest_replaces:
            columns: Collection[str] = self.schema.names
        elif options.groups:
            columns = [
                name
                for group in options.groups
                if self._has_some(group.ordering)
                for name in (*group.ordering, *group.protected)
                if name not in options.aggregates or options.aggregates[name].function == LAST_VALUE
            ]
        else:
            ordering = self.schema.core.sequence_field
            columns = [name for name, rule in options.aggregates.items() if rule.function == LAST_VALUE and name not in ordering]
        return tuple(filter(self._is_missing, columns))

    @property
    def _groups(self) -> tuple[SequenceGroup, ...]:
        return () if self._keeps_row else MergeOptions.of(self.schema).groups

    def _has_some(self, ordering: Collection[str]) -> bool:
        return any(name in self.names or default_scalar(self.schema.field(name)) is not None for name in ordering)

    def _is_missing(self, name: str) -> bool:
        return name not in self.names and name not in {*self.schema.primary_keys, *self.schema.partition_keys}


def _ignored_text(ordering: Collection[str], ordered: str, names: Collection[str], option: str) -> str:
    return (
        f"{_columns_are(ordering)} missing, which orders {ordered}: the merge would ignore the values, and nothing was committed. "
        f"Give {_quoted(ordering)}, or leave out {_quoted(names)} ({option}); missing='null' writes such rows"
    )


def _quoted(names: Collection[str]) -> str:
    return ", ".join(map(repr, names))


def _columns(names: Collection[str]) -> str:
    return f"column {_quoted(names)}" if len(names) == 1 else f"columns {_quoted(names)}"


def _columns_are(names: Collection[str]) -> str:
    return f"{_columns(names)} {'is' if len(names) == 1 else 'are'}"
