"""Type changes that do not keep every value of the types that a column has had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from manifest.schema.change import ChangeType, SchemaChange
from manifest.schema.evolution import steps
from manifest.schema.table_schema import TableSchema
from manifest.types.cast_rules import keeps_values
from manifest.types.data_type import DataField, DataType

Leaf = tuple[int | str, ...]
"""Field ids and part names on the way to a type that is not nested."""


@dataclass(frozen=True)
class LossyChange:
    """A column whose new type does not keep every value of an old one. ``is_back``: a dropped column comes back."""

    name: str
    old: DataType
    new: DataType
    is_back: bool


def lossy_change(schema: TableSchema, changes: Sequence[SchemaChange], stored: Iterable[TableSchema]) -> LossyChange | None:
    """Return the first change that may lose values of ``stored`` versions.

    Each leaf is compared by itself: a forced change of one does not speak for another.
    """
    before, forced = dict(_leaves(schema.fields)), dict[Leaf, bool]()
    last = schema
    for change, after in steps(schema, changes):
        former = dict(_leaves(last.fields))
        is_forced = isinstance(change, ChangeType) and change.force
        forced |= {leaf: is_forced for leaf, kind in _leaves(after.fields) if former.get(leaf) != kind}
        last = after
    retyped = {leaf: kind for leaf, kind in _leaves(last.fields) if before.get(leaf) != kind and not forced[leaf]}
    if not retyped:
        return None
    for version in stored:
        for leaf, old in _leaves(version.fields):
            if leaf in retyped and not keeps_values(old, retyped[leaf]):
                (new,) = (field for field in last.fields if field.id == leaf[0])
                (former_field,) = (field for field in version.fields if field.id == leaf[0])
                name = next((field.name for field in schema.fields if field.id == leaf[0]), None)
                return LossyChange(name or new.name, former_field.type, new.type, is_back=name is None)
    return None


def _leaves(fields: Iterable[DataField], path: Leaf = ()) -> Iterator[tuple[Leaf, DataType]]:
    for field in fields:
        yield from _type_leaves(field.type, (*path, field.id))


def _type_leaves(data_type: DataType, path: Leaf) -> Iterator[tuple[Leaf, DataType]]:
    if data_type.fields:
        yield from _leaves(data_type.fields, path)
    elif data_type.is_nested and data_type.children:
        for number, child in enumerate(data_type.children):
            yield from _type_leaves(child, (*path, f"part {number}"))
    else:
        yield path, data_type.with_nullable(nullable=True)
