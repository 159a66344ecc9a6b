"""Application of schema changes (``SchemaManager.generateTableSchema``)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fileindex.build.options import COLUMNS_OPTION, index_option
from manifest.io.errors import InvalidSchema
from manifest.options.aggregate_functions import MAP_LAYOUT
from manifest.options.former_keys import FORMER_KEYS
from manifest.options.parquet_options import PARQUET_PREFIX
from manifest.options.secondary_indexes import secondary_index_option
from manifest.schema.change import (
    AddColumn,
    ChangeComment,
    ChangeDefault,
    ChangeNullability,
    ChangeOptions,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    ReplaceColumns,
    SchemaChange,
)
from manifest.schema.table_schema import FILE_VERSION, TableSchema
from manifest.schema.validation import check_altered
from manifest.types.cast_rules import Cast, cast_of
from manifest.types.data_type import DataField, DataType, highest_id, number_fields
from paimon_base.errors import UnknownColumn
from sparkexpr.values.column_type import Kind

_LISTS = frozenset(
    [
        "bucket-key",
        "sequence.field",
        "rowkind.field",
        "record-level.time-field",
        "clustering.columns",
        *FORMER_KEYS["clustering.columns"],
        "partial-update.remove-record-on-sequence-group",
        "changelog-producer.row-deduplicate-ignore-fields",
    ]
)
_FIELDS = "fields."
_SEQUENCE_GROUP = "sequence-group"
Rename = Callable[[str], str]


def rename_in_options(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """Rename a column in the keys and values of ``options``.

    >>> rename_in_options({"sequence.field": "at,n", "fields.at,n.sequence-group": "a,b", "file-index.bitmap.columns": "n,m[k]"}, "n", "x")
    {'sequence.field': 'at,x', 'fields.at,x.sequence-group': 'a,b', 'file-index.bitmap.columns': 'x,m[k]'}
    """

    def rename(name: str) -> str:
        return name.replace(old, new, 1) if name.strip() == old else name

    return {_key(key, rename): _value(key, text, rename) for key, text in options.items()}


def options_naming(options: Mapping[str, str], column: str) -> list[str]:
    """Return the keys of options that name ``column``.

    >>> options_naming({"bucket": "4", "bucket-key": "id,n", "fields.n.stats-mode": "full"}, "n")
    ['bucket-key', 'fields.n.stats-mode']
    """
    renamed = rename_in_options(options, column, f"\0{column}")
    return [key for key, text in options.items() if renamed.get(key) != text]


def hashed_columns(options: Mapping[str, str], primary_keys: Iterable[str]) -> frozenset[str]:
    """Return the columns that determine a row's bucket."""
    text = options.get("bucket-key")
    return frozenset(primary_keys if text is None else text.split(","))


def _key(key: str, rename: Rename) -> str:
    layout = MAP_LAYOUT.fullmatch(key)
    if layout is not None:
        return f"{_FIELDS}{rename(layout['column'])}{key[layout.end('column') :]}"
    if key.startswith(_FIELDS):
        middle, dot, option = key.removeprefix(_FIELDS).rpartition(".")
        return f"{_FIELDS}{_list(middle, rename)}.{option}" if dot else key
    if key.startswith(PARQUET_PREFIX):
        name, mark, column = key.partition("#")
        return f"{name}{mark}{rename(column)}"
    of_index = index_option(key)
    if of_index is not None and not key.endswith(COLUMNS_OPTION):
        parts = of_index.split(".")
        if len(parts) == 3:
            return key.removesuffix(of_index) + ".".join([parts[0], _map_column(parts[1], rename), parts[2]])
    return key


def _value(key: str, text: str, rename: Rename) -> str:
    if key in _LISTS or (key.startswith(_FIELDS) and key.endswith(f".{_SEQUENCE_GROUP}")):
        return _list(text, rename)
    if index_option(key) is not None and key.endswith(COLUMNS_OPTION):
        return ",".join(_map_column(part, rename) for part in text.split(","))
    return text


def _list(text: str, rename: Rename) -> str:
    return ",".join(rename(part) for part in text.split(","))


def _map_column(text: str, rename: Rename) -> str:
    """Rename the column in ``m`` or ``m[key]``."""
    name, bracket, rest = text.partition("[")
    return f"{rename(name)}{bracket}{rest}"


_KEEP_NULLS = "alter-column-null-to-not-null.disabled"
_NO_EXPLICIT_CASTS = "disable-explicit-type-casting"
_BEFORE_PARTITION = "add-column-before-partition"
_PARTS = {Kind.ARRAY: "element", Kind.MAP: "value"}
Fields = tuple[DataField, ...]


def evolve(schema: TableSchema, changes: Sequence[SchemaChange]) -> TableSchema:
    """Return ``schema`` after ``changes``, with the next id.

    Returns ``schema`` itself if nothing changes. Raises ``InvalidSchema``, ``UnknownColumn``, ``UnsupportedType`` or ``UnsupportedOption`` for
    the first forbidden change.

    >>> from manifest.schema.validation import build_schema
    >>> before = build_schema("id BIGINT, qty INT", primary_keys=["id"])
    >>> after = evolve(before, [RenameColumn(path=("qty",), name="amount"), AddColumn(path=("at",), type="DATE", first=True)])
    >>> after.id, [(field.id, field.name) for field in after.fields], after.highest_field_id
    (1, [(2, 'at'), (0, 'id'), (1, 'amount')], 2)
    """
    after, options = schema, dict(schema.options)
    for change, evolved in steps(schema, changes):
        after = evolved
        if isinstance(change, RenameColumn) and len(change.path) == 1:
            options = rename_in_options(options, change.path[0], change.name)
    if after == schema:
        return schema
    stamped = after.model_copy(update={"id": schema.id + 1, "time_millis": int(time.time() * 1000), "version": FILE_VERSION})
    fresh = TableSchema.model_validate(stamped.model_dump(by_alias=True))  # drops values cached for the old schema
    check_altered(schema.model_copy(update={"options": options}), fresh)
    return fresh


def steps(schema: TableSchema, changes: Sequence[SchemaChange]) -> Iterator[tuple[SchemaChange, TableSchema]]:
    """Yield each change with the schema after it. Raises the errors of ``evolve`` for one change."""
    after = schema
    for change in changes:
        after = _apply(after, change)
        yield change, after


def _apply(schema: TableSchema, change: SchemaChange) -> TableSchema:
    match change:
        case AddColumn():
            return _add(schema, change)
        case DropColumn(path=path):
            _refuse_drop(schema, path)
            return _with_fields(schema, _edit(schema.fields, path, lambda siblings, position: _without(path, siblings, position)))
        case RenameColumn():
            return _rename(schema, change)
        case MoveColumn(path=path):
            return _with_fields(schema, _edit(schema.fields, path, lambda siblings, position: _move(siblings, position, change)))
        case ChangeType(path=path):
            _refuse_retype(schema, path)
            strict = schema.options.get(_NO_EXPLICIT_CASTS, "false").strip().lower() == "true"
            target = DataType.from_json(change.type)
            return _with_fields(schema, _edit_type(schema.fields, path, lambda old: _retype(".".join(path), old, target, strict=strict)))
        case ChangeNullability(path=path):
            return _with_fields(schema, _edit_type(schema.fields, path, lambda old: _nullable(schema, change, old)))
        case ChangeComment(path=()):
            return schema.model_copy(update={"comment": change.comment})
        case ChangeComment(path=path):
            return _with_fields(
                schema, _edit(schema.fields, path, lambda s, position: _put(s, position, replace(s[position], description=change.comment)))
            )
        case ChangeDefault(path=path):
            if len(path) > 1:
                raise InvalidSchema(f"column '{'.'.join(path)}': only a whole column has a default value")
            return _with_fields(
                schema,
                _edit(schema.fields, path, lambda s, position: _put(s, position, replace(s[position], default_value=change.default))),
            )
        case ChangeOptions():
            options = {key: value for key, value in {**schema.options, **change.options}.items() if value is not None}
            return schema.model_copy(update={"options": options})
        case ReplaceColumns():
            return _replace_columns(schema, [DataField.from_json(column) for column in change.columns])


def _replace_columns(schema: TableSchema, columns: Sequence[DataField]) -> TableSchema:
    before = {field.name: field for field in schema.fields}
    after = {field.name: field for field in columns}
    hashed = tuple(name for name in hashed_columns(schema.options, ()) if name in before)
    for role, names in (("primary-key", schema.primary_keys), ("partition", schema.partition_keys), ("bucket-key", hashed)):
        for name in names:
            if name not in after or not _has_same_type(after[name], before[name]):
                raise InvalidSchema(f"column '{name}' is a {role} column and must stay, as {before[name].type}")
    for name, field in before.items():
        if name not in after or not _has_same_type(after[name], field):
            _refuse_indexed(schema, name)
    for name in before.keys() - after.keys():
        if naming := options_naming(schema.options, name):
            raise InvalidSchema(f"column '{name}' is named by option '{naming[0]}'; change or remove the option first")
    highest = max(schema.highest_field_id, highest_id(schema.fields))
    fields: list[DataField] = []
    for field in columns:
        old = before.get(field.name)
        if field.id > max(schema.highest_field_id, highest_id(schema.fields)):
            raise InvalidSchema(f"column '{field.name}': the table has had no column with id {field.id}")
        if field.id >= 0:
            fields.append(field)
        elif old is not None and _has_same_type(field, old):
            fields.append(replace(field, id=old.id, type=old.type.with_nullable(nullable=field.type.nullable)))
        else:
            fields += number_fields([field], highest + 1)
            highest = highest_id(fields[-1:])
    return _with_fields(schema, tuple(fields)).model_copy(update={"highest_field_id": highest})


def _has_same_type(left: DataField, right: DataField) -> bool:
    return str(left.type.with_nullable(nullable=True)) == str(right.type.with_nullable(nullable=True))


def _with_fields(schema: TableSchema, fields: Fields) -> TableSchema:
    return schema.model_copy(update={"fields": fields})


def _add(schema: TableSchema, change: AddColumn) -> TableSchema:
    name, shown = change.path[-1], ".".join(change.path)
    data_type = DataType.from_json(change.type)
    if not data_type.nullable:
        raise InvalidSchema(f"column '{shown}': a new column is null in existing rows, so it cannot be {data_type}")
    if change.default is not None and len(change.path) > 1:
        raise InvalidSchema(f"column '{shown}': only a whole column has a default value")
    if change.first and change.after is not None:
        raise InvalidSchema(f"column '{shown}': give either 'first' or 'after', not both")
    unnumbered = DataField(-1, name, data_type, change.comment, change.default)
    (field,) = number_fields([unnumbered], max(schema.highest_field_id, highest_id(schema.fields)) + 1)

    def insert(siblings: Fields) -> Fields:
        if any(sibling.name == name for sibling in siblings):
            raise InvalidSchema(f"column '{shown}' exists already")
        position = _place(siblings, change.first, change.after, len(siblings))
        if len(change.path) == 1 and not change.first and change.after is None:
            position = _default_place(schema)
        return (*siblings[:position], field, *siblings[position:])

    fields = insert(schema.fields) if len(change.path) == 1 else _edit_siblings(schema.fields, change.path, insert)
    return _with_fields(schema, fields).model_copy(update={"highest_field_id": highest_id([field])})


def _default_place(schema: TableSchema) -> int:
    """Return the end, or the position before partition columns.

    The latter if option ``add-column-before-partition`` is set.
    """
    if schema.options.get(_BEFORE_PARTITION, "false").strip().lower() == "true":
        return min(
            (position for position, field in enumerate(schema.fields) if field.name in schema.partition_keys), default=len(schema.fields)
        )
    return len(schema.fields)


def _refuse_drop(schema: TableSchema, path: Sequence[str]) -> None:
    _refuse_indexed(schema, path[0])
    if len(path) > 1:
        return
    for role, names in (("primary-key", schema.primary_keys), ("partition", schema.partition_keys)):
        if path[0] in names:
            raise InvalidSchema(f"column '{path[0]}' is a {role} column and cannot be dropped")
    naming = options_naming(schema.options, path[0])
    if naming:
        raise InvalidSchema(f"column '{path[0]}' is named by option '{naming[0]}'; change or remove the option first")


def _refuse_indexed(schema: TableSchema, column: str) -> None:
    """Raise ``InvalidSchema`` if the column has a secondary index."""
    option = secondary_index_option(schema.options, column)
    if option is not None:
        raise InvalidSchema(
            f"column '{column}' is named by option '{option}': its index has the values as they are; take the column out of the option first"
        )


def _without(path: Sequence[str], siblings: Fields, position: int) -> Fields:
    if len(siblings) == 1:
        raise InvalidSchema(f"column '{'.'.join(path)}' is the only one and cannot be dropped")
    return (*siblings[:position], *siblings[position + 1 :])


def _rename(schema: TableSchema, change: RenameColumn) -> TableSchema:
    path, name = change.path, change.name
    if path[0] in schema.partition_keys and len(path) == 1:
        raise InvalidSchema(f"column '{path[0]}' is a partition column and cannot be renamed: directory names contain it")

    _refuse_indexed(schema, path[0])

    def rename(siblings: Fields, position: int) -> Fields:
        if any(sibling.name == name for sibling in siblings):
            raise InvalidSchema(f"column '{'.'.join((*path[:-1], name))}' exists already")
        return _put(siblings, position, replace(siblings[position], name=name))

    changed = _with_fields(schema, _edit(schema.fields, path, rename))
    if len(path) > 1:
        return changed
    keys = tuple(name if key == path[0] else key for key in schema.primary_keys)
    return changed.model_copy(update={"primary_keys": keys, "options": rename_in_options(schema.options, path[0], name)})


def _refuse_retype(schema: TableSchema, path: Sequence[str]) -> None:
    """Raise ``InvalidSchema`` for a change of a key's type."""
    _refuse_indexed(schema, path[0])
    # The bytes of a key determine its bucket and sort order.
    roles = (
        ("primary-key", schema.primary_keys),
        ("partition", schema.partition_keys),
        ("bucket-key", hashed_columns(schema.options, schema.primary_keys)),
    )
    for role, names in roles:
        if path[0] in names:
            raise InvalidSchema(f"column '{path[0]}' is a {role} column and keeps its type")


def _retype(shown: str, old: DataType, target: DataType, *, strict: bool) -> DataType:
    """Return ``old`` with the kind and parameters of ``target``.

    Nested types change part by part, fields of a ROW by name.
    """
    if old.kind is Kind.ROW and target.kind is Kind.ROW:
        if [field.name for field in old.fields] != [field.name for field in target.fields]:
            raise InvalidSchema(f"column '{shown}': add, drop, rename and move the fields of a ROW one by one, by their path")
        pairs = zip(old.fields, target.fields, strict=True)
        return replace(old, fields=tuple(replace(a, type=_retype(f"{shown}.{a.name}", a.type, b.type, strict=strict)) for a, b in pairs))
    if old.kind is target.kind and old.kind in _PARTS:
        part = _PARTS[old.kind]
        if old.kind is Kind.MAP and old.part("key").with_nullable(nullable=False) != target.part("key").with_nullable(nullable=False):
            raise InvalidSchema(f"column '{shown}': the type of a map's keys cannot change")
        inner = _retype(f"{shown}.{part}", old.part(part), target.part(part), strict=strict)
        return replace(old, element=inner) if old.kind is Kind.ARRAY else replace(old, value=inner)
    cast = cast_of(old, target)
    if cast is Cast.NONE:
        raise InvalidSchema(f"column '{shown}': {old} cannot become {target}")
    if cast is Cast.EXPLICIT and strict:
        raise InvalidSchema(f"column '{shown}': casting {old} to {target} may lose data, which option '{_NO_EXPLICIT_CASTS}' forbids")
    return target.with_nullable(old.nullable)


def _nullable(schema: TableSchema, change: ChangeNullability, old: DataType) -> DataType:
    if len(change.path) == 1 and change.path[0] in schema.primary_keys and old.nullable != change.nullable:
        raise InvalidSchema(f"column '{change.path[0]}' is a primary-key column and stays NOT NULL")
    if old.nullable and not change.nullable and schema.options.get(_KEEP_NULLS, "true").strip().lower() != "false":
        raise InvalidSchema(
            f"column '{'.'.join(change.path)}' may have nulls already; set option '{_KEEP_NULLS}' to 'false' if you know that it has none"
        )
    return old.with_nullable(change.nullable)


def _move(siblings: Fields, position: int, change: MoveColumn) -> Fields:
    if change.first and change.after is not None:
        raise InvalidSchema(f"column '{'.'.join(change.path)}': give either 'first' or 'after', not both")
    if change.after == siblings[position].name:
        raise InvalidSchema(f"column '{change.after}' cannot be moved after itself")
    rest = (*siblings[:position], *siblings[position + 1 :])
    to = _place(rest, change.first, change.after, len(rest))
    return (*rest[:to], siblings[position], *rest[to:])


def _place(siblings: Fields, first: bool, after: str | None, otherwise: int) -> int:
    if first:
        return 0
    return otherwise if after is None else _position(siblings, after) + 1


def _position(siblings: Fields, name: str) -> int:
    for position, field in enumerate(siblings):
        if field.name == name:
            return position
    raise UnknownColumn(name, tuple(field.name for field in siblings))


def _put(siblings: Fields, position: int, field: DataField) -> Fields:
    return (*siblings[:position], field, *siblings[position + 1 :])


def _edit(fields: Fields, path: Sequence[str], change: Callable[[Fields, int], Fields]) -> Fields:
    """Return ``fields`` with changed siblings of the column at ``path``.

    ``change`` gets the siblings and the column's position.
    """
    return _edit_siblings(fields, path, lambda siblings: change(siblings, _position(siblings, path[-1])))


def _edit_siblings(fields: Fields, path: Sequence[str], change: Callable[[Fields], Fields]) -> Fields:
    if len(path) == 1:
        return change(fields)

    def inside(data_type: DataType) -> DataType:
        if data_type.kind is not Kind.ROW:
            raise InvalidSchema(f"column '{'.'.join(path[:-1])}' has type {data_type}: it has no fields")
        return replace(data_type, fields=change(data_type.fields))

    return _edit_type(fields, path[:-1], inside)


def _edit_type(fields: Fields, path: Sequence[str], change: Callable[[DataType], DataType]) -> Fields:
    """Return ``fields`` with the type at ``path`` changed."""
    position = _position(fields, path[0])
    return _put(fields, position, replace(fields[position], type=_edit_part(fields[position].type, path[1:], change)))


def _edit_part(data_type: DataType, path: Sequence[str], change: Callable[[DataType], DataType]) -> DataType:
    if not path:
        return change(data_type)
    if data_type.kind is Kind.ROW:
        return replace(data_type, fields=_edit_type(data_type.fields, path, change))
    part = _PARTS.get(data_type.kind)
    if part is None or path[0] != part:
        raise InvalidSchema(f"type {data_type} has no part '{path[0]}'{f', only {part!r}' if part else ''}")
    inner = _edit_part(data_type.part(part), path[1:], change)
    return replace(data_type, element=inner) if part == "element" else replace(data_type, value=inner)
