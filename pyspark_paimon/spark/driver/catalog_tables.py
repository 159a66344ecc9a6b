"""Tables of Spark's catalog that stand for a Paimon table: what the catalog keeps of them, and what goes stale there.

Spark's catalog keeps a copy of the columns, made by CREATE TABLE; it asks a Python source once, and never tells it what DDL
does to the copy. So the errors that come of it say how to make the copy anew. The Paimon table itself is changed by ``Table``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fileindex.base.errors import UnknownColumn, UnsupportedOption
from manifest.io.errors import SchemaMismatch, TableNotFound
from manifest.options.known_keys import AT_CREATION, KNOWN
from pyspark_paimon.spark.driver.options import has_stored_options, is_catalog_request, properties

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from manifest.schema.table_schema import TableSchema

_AGAIN = (
    "the columns are those that Spark's catalog copied when CREATE TABLE ran there, and ALTER TABLE in Spark changes only the copy: "
    "DROP TABLE and CREATE TABLE ... USING paimon OPTIONS (path '...') again, which leaves the data alone; Table.add_column, rename_column "
    "and the like change the table itself"
)


@contextmanager
def stale_columns_named(schema: StructType) -> Iterator[None]:
    """Say of columns that do not fit that Spark's catalog may have an old copy of them, where ``schema`` comes from there."""
    try:
        yield
    except (SchemaMismatch, UnknownColumn) as error:
        if has_stored_options(schema):
            raise SchemaMismatch(f"{error}; {_AGAIN}") from error
        raise


@contextmanager
def missing_table_named(options: Mapping[str, str]) -> Iterator[None]:
    """Say, where Spark's catalog asks for the columns of a table that does not exist, what creates it."""
    try:
        yield
    except TableNotFound as error:
        if is_catalog_request(options):
            raise TableNotFound(
                f"{error}. CREATE TABLE ... USING paimon names a table that exists, for Spark tells a Python source of no columns and keys; "
                "create it by Table.create(path, columns, primary_keys=[...], spark=spark)"
            ) from error
        raise


def check_properties(options: Mapping[str, str], schema: TableSchema) -> None:
    """Refuse properties of a CREATE TABLE that promise something else than the table keeps. Raises ``UnsupportedOption``."""
    if not is_catalog_request(options):
        return
    kept = {**schema.options, "primary-key": ",".join(schema.primary_keys), "partition": ",".join(schema.partition_keys)}
    given = properties(options)
    for key in sorted(set(given) & (KNOWN | AT_CREATION)):
        wanted = ",".join(part.strip() for part in given[key].split(","))
        if wanted != kept.get(key):
            has = f"'{kept[key]}'" if kept.get(key) else "none"
            how = "it was fixed by Table.create" if key in AT_CREATION else "Table.alter_options changes it"
            raise UnsupportedOption(key, f"CREATE TABLE cannot set '{wanted}' on a Paimon table that exists and has {has}; {how}")


__all__ = ["check_properties", "missing_table_named", "stale_columns_named"]
