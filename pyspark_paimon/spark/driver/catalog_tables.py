"""Paimon tables in Spark's catalog: stale columns and properties.

CREATE TABLE copies the columns into Spark's catalog. Spark asks a Python source once, and does not report DDL on the copy.
So the errors of a stale copy explain how to replace it. ``Table`` changes the Paimon table itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from manifest.io.errors import SchemaMismatch, TableNotFound
from manifest.options.known_keys import AT_CREATION, KNOWN
from paimon_base.errors import UnknownColumn, UnsupportedOption
from pyspark_paimon.spark.driver.options import has_stored_options, is_catalog_request, properties

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from manifest.schema.table_schema import TableSchema

_AGAIN = (
    "Spark's catalog has a copy of the columns from CREATE TABLE, and Spark's ALTER TABLE changes only this copy: repeat DROP TABLE and "
    "CREATE TABLE ... USING paimon OPTIONS (path '...'), which keeps the data; to change the table use Table.add_column, rename_column etc."
)


@contextmanager
def explain_stale_columns(schema: StructType) -> Iterator[None]:
    """Add a hint on stale catalog columns to schema errors.

    Only if ``schema`` comes from Spark's catalog.
    """
    try:
        yield
    except (SchemaMismatch, UnknownColumn) as error:
        if has_stored_options(schema):
            raise SchemaMismatch(f"{error}; {_AGAIN}") from error
        raise


@contextmanager
def explain_missing_table(options: Mapping[str, str]) -> Iterator[None]:
    """Add a hint on table creation to ``TableNotFound``.

    Only if Spark's catalog asks for the columns.
    """
    try:
        yield
    except TableNotFound as error:
        if is_catalog_request(options):
            raise TableNotFound(
                f"{error}. CREATE TABLE ... USING paimon needs an existing table, because Spark gives a Python source no columns and keys: "
                "create it by Table.create(path, columns, primary_keys=[...], spark=spark)"
            ) from error
        raise


def check_properties(options: Mapping[str, str], schema: TableSchema) -> None:
    """Raise ``UnsupportedOption`` for CREATE TABLE properties that contradict the table.

    Properties unknown to Paimon are ignored.
    """
    if not is_catalog_request(options):
        return
    stored_properties = {**schema.options, "primary-key": ",".join(schema.primary_keys), "partition": ",".join(schema.partition_keys)}
    set_properties = properties(options)
    for key in sorted(set(set_properties) & (KNOWN | AT_CREATION)):
        set_value = ",".join(part.strip() for part in set_properties[key].split(","))
        if set_value != stored_properties.get(key):
            has = f"'{stored_properties[key]}'" if stored_properties.get(key) else "none"
            how = "it was fixed by Table.create" if key in AT_CREATION else "Table.alter_options changes it"
            raise UnsupportedOption(key, f"CREATE TABLE cannot set '{set_value}' on a Paimon table that exists and has {has}; {how}")
