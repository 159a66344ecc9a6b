"""Partition specifications, such as ``{"day": "2024-01-31"}``.

Requests carry them as JSON text. The engine converts them to predicates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from fileindex.predicate.tree import FALSE, ColumnRef, Compare, Op, Predicate, all_of, any_of, columns_of
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataType
from paimon_base.errors import InvalidArgument, InvalidFilter, UnknownColumn
from sparkexpr.values.column_type import BINARIES, TIMESTAMPS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import from_scalar, to_scalar

if TYPE_CHECKING:
    from pyspark_paimon.request.requests import WriteRequest
    from pyspark_paimon.typing import Filter

_ALL_DIGITS = Context(prec=80)

Spec = Mapping[str, str | None]


def spec_of(values: Mapping[str, object], schema: TableSchema) -> dict[str, str | None]:
    """Return a user's partition specification with values as text.

    A value of None matches null. A missing column matches all values.
    Text is read as in a filter. Other values are converted like values of rows.

    Raises:
        InvalidArgument: the table has no partitions, ``values`` is empty, or a column cannot hold a value.
        UnknownColumn: a column is not a partition key.

    >>> from datetime import date
    >>> from manifest.schema.validation import build_schema
    >>> spec_of({"day": date(2024, 1, 31)}, build_schema("id INT, day DATE", partition_keys=["day"]))
    {'day': '2024-01-31'}
    """
    if not schema.partition_keys:
        raise InvalidArgument("the table has no partitions to name")
    if not values:
        raise InvalidArgument(f"a partition is named by some of its columns: {', '.join(schema.partition_keys)}")
    for name in values:
        if name not in schema.partition_keys:
            raise UnknownColumn(name, schema.partition_keys)
    spec = {name: value if isinstance(value, str) else _text(name, value, schema) for name, value in values.items()}
    predicate_of([spec], schema)
    return {name: _with_zone(name, value, schema) for name, value in spec.items()}


def _with_zone(name: str, value: str | None, schema: TableSchema) -> str | None:
    """Return a text that is independent of the reader's zone."""
    if value is None or schema.field(name).type.kind is not Kind.TIMESTAMP_LTZ:
        return value
    term = _term(name, value, schema)
    return display_value(term.value, schema.field(name).type) if isinstance(term, Compare) else value


def _text(name: str, value: object, schema: TableSchema) -> str | None:
    """Return text that a filter reads as ``value``."""
    from lsm.rows_in.arrow import python_scalar  # noqa: PLC0415  # see test_imports

    type_ = schema.field(name).type
    try:
        scalar = python_scalar(name, value, type_.arrow)
    except SchemaMismatch as error:
        raise InvalidArgument(f"partition {error}") from error
    if not scalar.is_valid:
        return None
    if type_.kind in BINARIES:
        raise InvalidArgument(f"partition column '{name}': a partition of binary values cannot be named; give a filter")
    if type_.kind in TIMESTAMPS:
        return str(scalar.cast(pa.string()).as_py())
    plain = from_scalar(scalar, type_.column_type)
    return str(plain).lower() if isinstance(plain, bool) else repr(plain) if isinstance(plain, float) else display_value(plain, type_)


def predicate_of(specs: Iterable[Spec], schema: TableSchema) -> Predicate:
    """Return the predicate of rows in any of the partitions."""
    return any_of(*(all_of(*(_term(name, value, schema) for name, value in spec.items())) for spec in specs))


def partition_filter(filter: Filter, schema: TableSchema, what: str) -> Predicate | None:  # noqa: A002  # as in Table.compact
    """Return the bound filter of partitions. None: all.

    ``what``: operation, for errors.
    Raises ``InvalidArgument`` for a column that is not a partition column, ``InvalidFilter``, ``UnknownColumn``.
    """
    from pyspark_paimon.filter.parse import bind_filter  # noqa: PLC0415  # see test_imports

    predicate = bind_filter(filter, schema.column_types)
    for name in columns_of(predicate):
        if name not in schema.partition_keys:
            raise InvalidArgument(
                f"filter of {what} must use partition columns only ({', '.join(schema.partition_keys) or 'none'}), not '{name}'"
            )
    return predicate


def replaced_partitions(request: WriteRequest, schema: TableSchema) -> Predicate | None:
    """Return the partitions that an overwrite replaces.

    They are in addition to the partitions of its rows.
    None: all partitions, or ``request`` is not an overwrite.
    """
    if not request.keeps_others:
        return None
    return FALSE if request.partition is None else predicate_of([request.partition], schema)


def _term(name: str, value: str | None, schema: TableSchema) -> Predicate:
    from pyspark_paimon.filter.ast import Comparison, NullTest  # noqa: PLC0415  # see test_imports
    from pyspark_paimon.filter.bind import bind  # noqa: PLC0415  # as above

    column = ColumnRef(name)
    try:
        term = bind(NullTest(column) if value is None else Comparison(column, Op.EQ, value), schema.column_types)
    except InvalidFilter as error:
        raise InvalidArgument(f"partition column '{name}' of type {schema.field(name).type} cannot be '{value}': {error}") from error
    if value is not None and not isinstance(term, Compare):
        raise InvalidArgument(f"partition column '{name}' of type {schema.field(name).type} cannot be '{value}'")
    return term


def values_of(spec: Spec, schema: TableSchema) -> tuple[Plain, ...] | None:
    """Return the plain values of a complete specification.

    None: a partition column is missing.
    """
    if set(spec) != set(schema.partition_keys):
        return None
    terms = [_term(name, spec[name], schema) for name in schema.partition_keys]
    return tuple(term.value if isinstance(term, Compare) else None for term in terms)


def display_partition(values: Iterable[Plain], schema: TableSchema) -> str:
    """Return text such as ``day=2024-01-31/hour=7``.

    Empty for a table without partitions.
    """
    named = zip(schema.partition_keys, values, schema.partition_types, strict=True)
    return "/".join(f"{name}={display_value(value, type_)}" for name, value, type_ in named)


def display_pattern(spec: Spec, schema: TableSchema) -> re.Pattern[str]:
    """Return a pattern for ``display_partition`` of the named partitions.

    >>> from manifest.schema.validation import build_schema
    >>> schema = build_schema("id INT, day DATE, hour INT", partition_keys=["day", "hour"])
    >>> bool(display_pattern({"hour": "7"}, schema).fullmatch("day=2024-01-31/hour=7"))
    True
    """
    texts = {}
    for name, value in spec.items():
        term = _term(name, value, schema)
        texts[name] = re.escape(display_value(term.value if isinstance(term, Compare) else None, schema.field(name).type))
    return re.compile("/".join(f"{re.escape(name)}={texts.get(name, '.*')}" for name in schema.partition_keys), re.DOTALL)


def display_value(value: Plain, type_: DataType | ColumnType) -> str:
    """Return a plain value as text for users.

    >>> display_value(18262, ColumnType(Kind.DATE)), display_value(None, ColumnType(Kind.INT))
    ('2020-01-01', 'null')
    """
    if value is None:
        return "null"
    column = type_.column_type if isinstance(type_, DataType) else type_
    if column.kind is Kind.DECIMAL and isinstance(value, int):
        return str(Decimal(value).scaleb(-column.scale, _ALL_DIGITS))
    if column.kind in TIMESTAMPS or column.kind in {Kind.DATE, Kind.TIME}:
        return str(to_scalar(value, column).cast(pa.string()))
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
