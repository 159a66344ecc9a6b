"""Typed options of merge engines (``CoreOptions``).

``MergeOptions.of`` reads a schema. It raises ``UnsupportedOption``, with the key, for what Paimon refuses or this package does not support.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from manifest.options.aggregate_functions import DEFAULT_FUNCTION, FIELD_OPTION, GROUP_REMOVE, LAST_NON_NULL, check_function
from manifest.options.core_options import CoreOptions
from manifest.options.merge_engine import AGGREGATE_REMOVE, DEDUPLICATE, ENGINES, PARTIAL_REMOVE, EngineTraits, engine_traits
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataType
from paimon_base.errors import UnsupportedOption, not_a_column

_NULL_STRATEGIES = ("merge", "ignore", "error")


@dataclass(frozen=True, slots=True)
class FieldAggregate:
    """Aggregation of one column's versions.

    ``count_limit`` None is unlimited. ``ts_field`` None is the last field.
    """

    function: str
    ignore_retract: bool = False
    distinct: bool = False
    delimiter: str = ","
    nested_key: tuple[str, ...] = ()
    nested_key_nulls: str = "merge"
    nested_sequence: tuple[str, ...] = ()
    count_limit: int | None = None
    ts_field: str | None = None


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    """Columns of partial-update that are overwritten together.

    The version with the greatest ``ordering`` columns wins.
    """

    ordering: tuple[str, ...]
    protected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """Merge engine of a table.

    ``aggregates`` has every aggregated column except key columns.
    """

    engine: EngineTraits = engine_traits(DEDUPLICATE)  # noqa: RUF009 - frozen
    ignore_delete: bool = False
    remove_on_delete: bool = False
    groups: tuple[SequenceGroup, ...] = ()
    remove_on_groups: frozenset[str] = frozenset()
    aggregates: Mapping[str, FieldAggregate] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: TableSchema) -> MergeOptions:
        """Return the merge engine of ``schema``.

        Raises ``UnsupportedOption`` with the invalid or unsupported key.

        >>> from manifest.types.ddl import parse_ddl
        >>> options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
        >>> schema = TableSchema(id=0, fields=parse_ddl("id BIGINT, n INT, s STRING"), primary_keys=("id",), options=options)
        >>> [(name, rule.function) for name, rule in MergeOptions.of(schema).aggregates.items()]
        [('n', 'sum'), ('s', 'last_non_null_value')]
        """
        core, raw = schema.core, schema.options
        match core.engine.name:
            case "deduplicate":
                return cls(core.engine, core.ignore_delete)
            case "first-row":
                if core.sequence_field:
                    raise UnsupportedOption(
                        "sequence.field", "cannot be combined with merge-engine 'first-row', where the first version to arrive wins"
                    )
                return cls(core.engine, core.ignore_delete)
            case "aggregation":
                remove = _flag(raw, AGGREGATE_REMOVE)
                aggregates = _aggregation(schema)
                for name, rule in aggregates.items():
                    if remove and rule.ignore_retract:
                        raise UnsupportedOption(f"fields.{name}.ignore-retract", f"cannot be combined with '{AGGREGATE_REMOVE}'")
                return cls(core.engine, core.ignore_delete, remove, aggregates=aggregates)
            case "partial-update":
                return _partial_update(schema, core)
        raise UnsupportedOption("merge-engine", f"'{core.engine.name}' is not valid; use one of: {', '.join(ENGINES)}")


def _partial_update(schema: TableSchema, core: CoreOptions) -> MergeOptions:
    raw = schema.options
    groups = _sequence_groups(schema)
    remove = _flag(raw, PARTIAL_REMOVE)
    ordering = {name for group in groups for name in group.ordering}
    listed = tuple(name.strip() for name in raw.get(GROUP_REMOVE, "").split(",") if name.strip())
    for name in listed:
        if name not in ordering:
            raise UnsupportedOption(GROUP_REMOVE, f"'{name}' does not order a sequence group")
    if core.ignore_delete and (remove or listed):
        raise UnsupportedOption("ignore-delete", f"cannot be combined with '{PARTIAL_REMOVE if remove else GROUP_REMOVE}'")
    if remove and groups:
        raise UnsupportedOption(PARTIAL_REMOVE, f"cannot be combined with sequence groups; use '{GROUP_REMOVE}'")
    protected = {name for group in groups for name in group.protected}
    aggregates: dict[str, FieldAggregate] = {}
    for name in schema.names:
        if name in schema.primary_keys or name in ordering:
            continue
        rule, key = _rule(schema, name)
        if rule is None:
            continue
        if rule.function != LAST_NON_NULL and name not in protected:
            raise UnsupportedOption(key, f"'{rule.function}' needs a sequence group, but column '{name}' is in none")
        aggregates[name] = rule
    return MergeOptions(core.engine, core.ignore_delete, remove, groups, frozenset(listed), aggregates)


def _sequence_groups(schema: TableSchema) -> tuple[SequenceGroup, ...]:
    groups, owner = [], dict[str, str]()
    for key, value in schema.options.items():
        match = FIELD_OPTION.fullmatch(key)
        if match is None or match["option"] != "sequence-group":
            continue
        ordering = _columns(schema, key, match["column"])
        protected = _columns(schema, key, value)
        for name in protected:
            if owner.setdefault(name, key) != key:
                raise UnsupportedOption(key, f"column '{name}' is also in '{owner[name]}'")
        groups.append(SequenceGroup(ordering, protected))
    for group in groups:
        for name in group.ordering:
            if schema.field(name).type.is_nested:
                raise UnsupportedOption(f"fields.{','.join(group.ordering)}.sequence-group", f"column '{name}' has a type without an order")
            other_groups = [other for other in groups if other is not group and name in (*other.ordering, *other.protected)]
            if other_groups or name in group.protected:
                raise UnsupportedOption(f"fields.{','.join(group.ordering)}.sequence-group", f"column '{name}' is in several groups")
    return tuple(groups)


def _columns(schema: TableSchema, key: str, text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in schema.names:
            raise UnsupportedOption(key, not_a_column(name, schema.names))
        if name in schema.primary_keys:
            raise UnsupportedOption(key, f"'{name}' is a primary-key column, which cannot be in a sequence group")
    if not names:
        raise UnsupportedOption(key, "lists no columns")
    return names


def _aggregation(schema: TableSchema) -> dict[str, FieldAggregate]:
    aggregates = {}
    for name in schema.names:
        if name in schema.primary_keys:
            continue
        if name in schema.core.sequence_field:
            if f"fields.{name}.aggregate-function" in schema.options:
                raise UnsupportedOption(
                    f"fields.{name}.aggregate-function", "cannot be combined with 'sequence.field', which orders the versions"
                )
            aggregates[name] = FieldAggregate("last_value")
            continue
        rule, _ = _rule(schema, name)
        aggregates[name] = rule or FieldAggregate(LAST_NON_NULL, _flag(schema.options, f"fields.{name}.ignore-retract"))
    return aggregates


def _rule(schema: TableSchema, name: str) -> tuple[FieldAggregate | None, str]:
    """Return the function of a column and its option key.

    Without an option, the function is missing.
    """
    raw = schema.options
    key = f"fields.{name}.aggregate-function"
    if key not in raw:
        key = DEFAULT_FUNCTION
    function = raw.get(key)
    if function is None:
        return None, key
    function = check_function(key, function.strip(), name, schema.field(name).type)
    return _build_rule(schema, name, function), key


def _build_rule(schema: TableSchema, name: str, function: str) -> FieldAggregate:
    raw = schema.options

    def option(suffix: str, default: str = "") -> str:
        return raw.get(f"fields.{name}.{suffix}", default)

    keys, sequence = (_parts(option(suffix)) for suffix in ("nested-key", "nested-sequence-field"))
    rule = FieldAggregate(
        function,
        ignore_retract=_flag(raw, f"fields.{name}.ignore-retract"),
        distinct=_flag(raw, f"fields.{name}.distinct"),
        delimiter=option("list-agg-delimiter", ","),
        nested_key=keys,
        nested_key_nulls=option("nested-key-null-strategy", "merge").strip().lower(),
        nested_sequence=sequence,
        count_limit=_count(f"fields.{name}.count-limit", option("count-limit")),
        ts_field=option("ts-field") or None,
    )
    data_type = schema.field(name).type
    if function.startswith("nested_"):
        row = data_type.part("element")
        for suffix, parts in (("nested-key", keys), ("nested-sequence-field", sequence)):
            _check_parts(f"fields.{name}.{suffix}", parts, row)
        if not keys and (sequence or function == "nested_partial_update" or f"fields.{name}.nested-key-null-strategy" in raw):
            raise UnsupportedOption(f"fields.{name}.nested-key", f"is required by '{function}' with these options")
        if rule.nested_key_nulls not in _NULL_STRATEGIES:
            possible = ", ".join(_NULL_STRATEGIES)
            raise UnsupportedOption(
                f"fields.{name}.nested-key-null-strategy", f"'{rule.nested_key_nulls}' is not valid; use one of: {possible}"
            )
    if function == "merge_map_with_keytime" and rule.ts_field is not None:
        _check_parts(f"fields.{name}.ts-field", (rule.ts_field,), data_type.part("value"))
    return rule


def _check_parts(key: str, names: tuple[str, ...], row: DataType) -> None:
    field_names = [part.name for part in row.fields]
    for name in names:
        if name not in field_names:
            raise UnsupportedOption(key, f"'{name}' is not a field of the row; fields are: {', '.join(field_names)}")
        if row.fields[field_names.index(name)].type.is_nested:
            raise UnsupportedOption(key, f"field '{name}' is nested, which is not supported here")


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _flag(raw: Mapping[str, Any], key: str) -> bool:
    text = raw.get(key, "false").strip().lower()
    if text not in {"true", "false"}:
        raise UnsupportedOption(key, f"'{raw[key]}' is neither true nor false")
    return bool(text == "true")


def _count(key: str, text: str) -> int | None:
    if not text:
        return None
    if not text.strip().isdigit():
        raise UnsupportedOption(key, f"'{text}' is not a number")
    return int(text)
