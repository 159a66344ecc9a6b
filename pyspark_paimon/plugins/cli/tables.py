"""Commands ``list`` and ``drop``."""

from __future__ import annotations

from paimon_base.errors import InvalidArgument
from pyspark_paimon.plugins.cli.output import print_grid, print_json
from pyspark_paimon.plugins.cli.target import TableOption, destructive, on_catalog


@on_catalog
def list_tables(target: TableOption) -> None:
    """Show the tables of a warehouse or of a database."""
    if not target.name and not target.catalog:
        raise InvalidArgument("give the directory of a warehouse, or a catalog by --warehouse or --catalog")
    warehouse = target if target.catalog else target.in_warehouse(target.name)
    catalog = warehouse.catalog_of()
    databases = [target.name] if target.catalog and target.name else catalog.list_databases()
    table_names = [(database, table) for database in databases for table in catalog.list_tables(database)]
    if target.as_json:
        print_json([{"database": database, "table": table} for database, table in table_names])
    else:
        print_grid(None, ("database", "table"), table_names)


@destructive
def drop_table(target: TableOption) -> None:
    """Delete a table and all its files.

    TABLE is database.table of a catalog, or a path that ends with DATABASE.db/TABLE.
    """
    location, name = target.in_catalog()
    catalog = location.catalog_of()
    catalog.table(name)  # raises if it is no table
    if target.confirm(f"delete table {name} and all its files"):
        catalog.drop_table(name)
        target.report({"dry_run": False, "dropped": name}, f"table {name} is deleted")
    else:
        removal = catalog.drop_table(name, dry_run=True)
        result = {"dry_run": target.dry_run, "dropped": None, "would_drop": name}
        target.report(result, f"table {name} would be deleted" + (f": {removal}" if removal is not None else ""))
