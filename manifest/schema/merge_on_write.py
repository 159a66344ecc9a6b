"""Schema changes that make a table fit incoming rows (``SchemaMergingUtils``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from manifest.schema.change import AddColumn, ChangeType, SchemaChange
from manifest.schema.evolution import hashed_columns
from manifest.schema.table_schema import TableSchema
from manifest.types.cast_rules import NUMBERS, Cast, cast_of, keeps_values
from manifest.types.data_type import DataField, DataType
from sparkexpr.values.column_type import Kind


@dataclass(frozen=True)
class MergeRules:
    """Which changes incoming rows may make.

    New columns and fields are always added. ``widens``: existing columns get the wider type if it keeps all values.
    ``casts``: existing columns get the type of the rows although values may change or be lost.
    """

    widens: bool = False
    casts: bool = False


def merge_changes(schema: TableSchema, fields: Sequence[DataField], rules: MergeRules) -> tuple[SchemaChange, ...]:
    """Return the changes that add and widen columns for ``fields``.

    Keys keep their types. A name that differs from a column's only in case is left to the check of the rows.

    >>> from manifest.types.ddl import parse_ddl
    >>> schema = TableSchema(id=0, fields=parse_ddl("id BIGINT, n INT, r ROW<a INT>"), primary_keys=("id",))
    >>> rows = parse_ddl("id BIGINT, n BIGINT, r ROW<a INT, b DATE>, s STRING")
    >>> [(change.change, change.path) for change in merge_changes(schema, rows, MergeRules(widens=True))]
    [('type', ('n',)), ('add', ('r', 'b')), ('add', ('s',))]
    """
    return tuple(_merge_fields((), schema.fields, fields, rules, fixed_columns(schema)))


def fixed_columns(schema: TableSchema) -> frozenset[str]:
    """Return the columns that keep their types."""
    return frozenset([*schema.primary_keys, *schema.partition_keys, *hashed_columns(schema.options, schema.primary_keys)])


def _merge_fields(
    path: tuple[str, ...], stored: Sequence[DataField], incoming: Sequence[DataField], rules: MergeRules, fixed: Collection[str] = ()
) -> Iterator[SchemaChange]:
    stored_by_name = {field.name: field for field in stored}
    folded = {name.lower() for name in stored_by_name}
    for field in incoming:
        if field.name in stored_by_name and field.name not in fixed:
            yield from _merge_types((*path, field.name), stored_by_name[field.name].type, field.type, rules)
        elif field.name.lower() not in folded:
            folded.add(field.name.lower())
            added = field.type.with_nullable(nullable=True)
            yield AddColumn(path=(*path, field.name), type=added.to_json(), comment=field.description)


def _merge_types(path: tuple[str, ...], stored: DataType, incoming: DataType, rules: MergeRules) -> Iterator[SchemaChange]:
    if stored.kind is incoming.kind is Kind.ROW:
        yield from _merge_fields(path, stored.fields, incoming.fields, rules)
    elif stored.kind is incoming.kind and stored.kind in _PARTS:
        part = _PARTS[stored.kind]
        yield from _merge_types((*path, part), stored.part(part), incoming.part(part), rules)
    elif not (stored.is_nested or incoming.is_nested) and (
        (rules.widens and is_wider(stored, incoming))
        or (rules.casts and stored.kind is not incoming.kind and cast_of(stored, incoming) is not Cast.NONE)
    ):
        yield ChangeType(path=path, type=incoming.with_nullable(stored.nullable).to_json(), force=rules.casts)


_PARTS = {Kind.ARRAY: "element", Kind.MAP: "value"}


def is_wider(stored: DataType, incoming: DataType) -> bool:
    """Return whether ``incoming`` has all values of ``stored`` and more.

    Texts and times keep the length and precision that their column declares: rows without a declared one have the largest.
    """
    if (
        stored.kind not in NUMBERS
        or incoming.kind not in NUMBERS
        or stored.with_nullable(nullable=True) == incoming.with_nullable(nullable=True)
    ):
        return False
    return keeps_values(stored, incoming)
