"""Primary keys from the user, for lookups and deletes.

They are checked against the schema and converted for scans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeGuard, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.predicate.tree import ColumnRef, In, Predicate, all_of
from lsm.keys.key_set import KeySet
from lsm.rows_in.arrow import ArrowRows, is_a
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument
from pyspark_paimon.request.inputs import rows_of
from pyspark_paimon.typing import Keys, LocalRows
from sparkexpr.values.arrays import arrow_array
from sparkexpr.values.column_type import FLOATS
from sparkexpr.values.plain_value import plain_array, plain_values

Missing: TypeAlias = Literal["drop", "null"]
FOUND = "_found"
"""Default name of the indicator column."""


def keys_of(keys: Keys, schema: TableSchema, method: str) -> KeySet:
    """Convert keys to the types of the key columns.

    ``method``: name of the public method, for errors.

    Raises:
        InvalidArgument: the table has no primary key, or the keys are a Spark DataFrame.
        SchemaMismatch: a key column is missing, another column is present, or a value does not fit.
        NullInKey: a key has a null.
    """
    from lsm.rows_in.conform import conform  # noqa: PLC0415  # see test_imports

    if not schema.is_primary_key_table:
        raise InvalidArgument(f"{method} finds rows by primary key, and the table has none; give a filter")
    fields = tuple(field for field in schema.fields if field.name in schema.primary_keys)
    key_schema = TableSchema(id=schema.id, fields=fields)
    rows = rows_of(_named_keys(keys, schema.primary_keys, method), key_schema)
    if not isinstance(rows, ArrowRows):
        raise InvalidArgument(f"{method}: keys cannot be a Spark DataFrame: collect them with keys.toArrow()")
    named = rows.schema.names
    other = [name for name in named if name not in key_schema.names]
    missing = [name for name in key_schema.names if name not in named]
    if other or missing:
        wrong = [f"column '{name}' is no primary key" for name in other] + [f"column '{name}' is missing" for name in missing]
        raise SchemaMismatch(f"{method}: keys have the columns {', '.join(schema.primary_keys)}: {'; '.join(wrong)}")
    return KeySet(conform(rows.reader.read_all(), key_schema).combine_chunks())


def _named_keys(keys: Keys, names: Sequence[str], method: str) -> LocalRows:
    """Return keys with the names of their columns.

    One key may be a dict of values. Several may be a list of values, or of tuples for a key of several columns.
    """
    if isinstance(keys, Mapping):
        is_single = bool(keys) and all(isinstance(value, str | bytes) or not hasattr(value, "__iter__") for value in keys.values())
        return {name: [value] for name, value in keys.items()} if is_single else keys
    if not _is_list(keys):
        if isinstance(keys, str | bytes | int | float):
            raise _wrong_form(keys, names, method)
        return cast("LocalRows", keys)
    items = list(keys) if isinstance(keys, set | frozenset) else keys
    first = next(iter(items), None)
    if isinstance(first, Mapping | pa.RecordBatch | pa.Table):
        return cast("LocalRows", keys)
    if len(names) == 1 and not isinstance(first, list | tuple):
        return {names[0]: items}
    tuples = [item for item in items if isinstance(item, list | tuple) and len(item) == len(names)]
    if len(tuples) < len(items):
        raise _wrong_form(keys, names, method)
    return {name: [item[position] for item in tuples] for position, name in enumerate(names)}


def _is_list(keys: object) -> TypeGuard[Sequence[object] | set[object]]:
    """Return whether ``keys`` are values in an order, without names."""
    if isinstance(keys, list | tuple | range | set | frozenset | pa.Array | pa.ChunkedArray):
        return True
    if isinstance(keys, np.ndarray):
        return keys.ndim == 1 and keys.dtype.names is None
    return is_a(keys, "pandas", "Series") or is_a(keys, "pandas", "Index") or is_a(keys, "polars", "Series")


def _wrong_form(keys: object, names: Sequence[str], method: str) -> InvalidArgument:
    named = ", ".join(f"'{name}': [...]" for name in names)
    listed = f"[({', '.join(names)}), ...]" if len(names) > 1 else "[value, ...]"
    return InvalidArgument(
        f"{method}: keys must be {{{named}}}, {listed} or rows of Arrow, pandas or polars with these names, not {keys!r:.60}"
    )


def any_of_keys(keys: KeySet, schema: TableSchema) -> Predicate:
    """Return a predicate that matches every row with a key.

    With several key columns it may match more rows.
    """
    types = schema.column_types
    lists = {name: plain_array(keys.rows.column(name), types[name]) for name in keys.names}
    if keys.rows.num_rows > 1:
        lists = {name: pc.unique(values) for name, values in lists.items()}
    return all_of(*(In(ColumnRef(name), tuple(plain_values(values, types[name]))) for name, values in lists.items()))


def distinguishes_keys(schema: TableSchema) -> bool:
    """Return whether ``any_of_keys`` matches exactly the keys.

    Floats do not: filters treat -0.0 and 0.0 as equal, but they are two keys.
    """
    return len(schema.primary_keys) == 1 and schema.column_types[schema.primary_keys[0]].kind not in FLOATS


@dataclass(frozen=True, slots=True)
class LookupShape:
    """Rows of a lookup's result.

    ``keeps_missing``: a missing key has a row with the key and nulls. ``indicator``: name of the column that marks such rows.
    """

    keeps_missing: bool
    indicator: str | None

    @classmethod
    def of(cls, missing: object, indicator: object) -> LookupShape:
        """Check the arguments ``missing`` and ``indicator``.

        Raises:
            InvalidArgument: They are not valid, or do not fit each other.
        """
        if not isinstance(missing, str) or missing not in {"drop", "null"}:
            raise InvalidArgument(f"lookup: missing is 'drop' or 'null', not {missing!r:.60}")
        if not isinstance(indicator, bool | str) or indicator == "":
            raise InvalidArgument(f"lookup: indicator is True, False or the name of a column, not {indicator!r:.60}")
        if indicator and missing == "drop":
            raise InvalidArgument("lookup: indicator needs missing='null'; without it every row is of a key that the table has")
        return cls(missing == "null", FOUND if indicator is True else indicator or None)

    def arranged(self, keys: KeySet, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Return ``columns`` of ``rows`` in the order of the requested keys.

        ``rows`` has at most one row for each key. A repeated key repeats its row.

        Raises:
            InvalidArgument: The indicator has the name of one of the columns.
        """
        if self.indicator in columns:
            raise InvalidArgument(f"lookup: indicator '{self.indicator}' is a column of the result; give another name")
        if keys.rows.num_rows == 1 and (rows.num_rows or not self.keeps_missing):
            row_positions, has = np.arange(rows.num_rows), np.ones(1, np.bool_)
        else:
            row_of = np.full(len(keys), -1, np.int64)
            row_of[keys.find(rows)] = np.arange(rows.num_rows)
            row_positions = row_of[keys.numbers]
            has = row_positions >= 0
        if not self.keeps_missing:
            # A copy: a row that was read may lie in the buffers of its pages.
            return rows.take(arrow_array(row_positions if has.all() else row_positions[has])).select(list(columns))
        matched = rows.take(arrow_array(row_positions, has))
        key_names = set(keys.names)
        arrays = [keys.rows.column(name) if name in key_names else matched.column(name) for name in columns]
        fields = [field if field.name in key_names else field.with_nullable(True) for field in map(rows.schema.field, columns)]
        if self.indicator is not None:
            arrays.append(arrow_array(has))
            fields.append(pa.field(self.indicator, pa.bool_(), nullable=False))
        return pa.table(arrays, pa.schema(fields))
