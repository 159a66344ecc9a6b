"""Primary keys from the user, for lookups and deletes.

They are checked against the schema and converted for scans.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.column_type import FLOATS
from fileindex.base.errors import InvalidArgument
from fileindex.base.plain_value import plain_array, plain_values
from fileindex.predicate.tree import ColumnRef, In, Predicate, all_of
from lsm.keys.key_set import KeySet
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.request.backend import ArrowRows
from pyspark_paimon.request.inputs import rows_of
from pyspark_paimon.typing import Keys


def keys_of(keys: Keys, schema: TableSchema, method: str) -> KeySet:
    """Convert keys to the types of the key columns.

    ``method``: name of the public method, for errors.

    Raises:
        InvalidArgument: the table has no primary key, or the keys are a Spark DataFrame.
        SchemaMismatch: a key column is missing, another column is present, or a value does not fit.
        NullInKey: a key has a null.
    """
    from lsm.schema.conform_input import conform  # noqa: PLC0415  # see test_imports

    if not schema.is_primary_key_table:
        raise InvalidArgument(f"{method} finds rows by primary key, and the table has none; give a filter")
    fields = tuple(field for field in schema.fields if field.name in schema.primary_keys)
    wanted = TableSchema(id=schema.id, fields=fields)
    given = isinstance(keys, list | tuple) and all(isinstance(item, Mapping | pa.RecordBatch | pa.Table) for item in keys)
    if isinstance(keys, str | bytes | int | float | list | tuple | set | range) and not given:
        spelt = ", ".join(f"'{name}': [...]" for name in wanted.names)
        raise InvalidArgument(f"{method}: keys must be {{{spelt}}} or rows of Arrow, pandas or polars with these names, not {keys!r:.60}")
    rows = rows_of(keys, wanted.arrow)
    if not isinstance(rows, ArrowRows):
        raise InvalidArgument(f"{method}: keys cannot be a Spark DataFrame: collect them with keys.toArrow()")
    named = rows.schema.names
    other = [name for name in named if name not in wanted.names]
    missing = [name for name in wanted.names if name not in named]
    if other or missing:
        wrong = [f"column '{name}' is none of them" for name in other] + [f"column '{name}' is missing" for name in missing]
        raise SchemaMismatch(f"{method}: keys have the columns {', '.join(schema.primary_keys)}: {'; '.join(wrong)}")
    return KeySet(conform(rows.reader.read_all(), wanted).combine_chunks())


def any_of_keys(keys: KeySet, schema: TableSchema) -> Predicate:
    """Return a predicate that matches every row with a key.

    With several key columns it may match more rows.
    """
    types = schema.column_types
    lists = {name: pc.unique(plain_array(keys.rows.column(name), types[name])) for name in keys.names}
    return all_of(*(In(ColumnRef(name), tuple(plain_values(values, types[name]))) for name, values in lists.items()))


def distinguishes_keys(schema: TableSchema) -> bool:
    """Return whether ``any_of_keys`` matches exactly the keys.

    Floats do not: filters treat -0.0 and 0.0 as equal, but they are two keys.
    """
    return len(schema.primary_keys) == 1 and schema.column_types[schema.primary_keys[0]].kind not in FLOATS


def in_order_of(keys: KeySet, rows: pa.Table) -> pa.Table:
    """Return ``rows`` in the order of the requested keys.

    ``rows`` has at most one row for each key. A repeated key repeats its row.
    """
    row_of = np.full(len(keys), -1, np.int64)
    found = keys.find(rows)
    row_of[found] = np.arange(rows.num_rows)
    positions = row_of[keys.numbers]
    return rows.take(pa.array(positions[positions >= 0]))


__all__ = ["any_of_keys", "distinguishes_keys", "in_order_of", "keys_of"]
