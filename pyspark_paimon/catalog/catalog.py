"""File-system catalog, and the way to every other one."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Self, cast

from paimon_base.errors import InvalidArgument
from paimon_base.plugins import has_plugin, plugin
from paimon_base.public import public
from pyspark_paimon.catalog.catalog_base import AnyCatalog
from pyspark_paimon.catalog.directory_catalog import DirectoryCatalog

_KINDS = {"filesystem": "file-system", "hive": "Hive", "jdbc": "JDBC"}


@public
class Catalog(DirectoryCatalog):
    """Catalog of the databases and tables below one directory.

    Tables are named ``database.table``. A name without a database belongs to ``default``; ``database.table$branch_name`` is a branch.

    Args:
        warehouse: Directory or URI of an object store.
        options: Access to the object store, as ``storage_options`` of ``Table.open``. ``table-default.<option>`` is an option of each
            table that the catalog creates, ``default-database`` the database of names without one. With ``case-sensitive`` = ``false``
            names must be lower case. ``cache-enabled`` has no effect, and ``lock.enabled`` can only be ``false``: commits need no lock.
            With ``metastore`` = ``jdbc`` a ``JdbcCatalog`` is returned, with ``hive`` a ``HiveCatalog``.

    >>> import tempfile
    >>> catalog = Catalog(tempfile.mkdtemp())
    >>> catalog.create_database("sales")
    >>> orders = catalog.create_table("sales.orders", "id BIGINT, total DECIMAL(10, 2)", primary_keys=["id"], options={"bucket": "1"})
    >>> catalog.rename_table("sales.orders", "sales.purchases")
    >>> catalog.list_databases(), catalog.list_tables("sales"), catalog.table("sales.purchases").primary_keys
    (['sales'], ['purchases'], ('id',))
    """

    def __new__(cls, warehouse: object = None, options: object = None) -> Self:
        """Return a catalog of the class that the option ``metastore`` names."""
        if isinstance(options, Mapping) and options.get("metastore") in _KINDS.keys() - {"filesystem"}:
            return cast("Self", plugin("catalog", str(options["metastore"]))(warehouse, options))  # the same methods
        return super().__new__(cls)

    @classmethod
    def create(cls, options: Mapping[str, Any]) -> AnyCatalog:
        """Return the catalog that Paimon's catalog options describe.

        Args:
            options: ``metastore`` is ``filesystem`` (default), ``hive``, ``jdbc`` or ``rest``. All but the last need ``warehouse``. A Hive
                catalog has ``uri`` and ``hive-conf-dir``. A JDBC catalog has ``uri``, ``jdbc.user``, ``jdbc.password``, ``catalog-key`` and ``sync-all-properties``, too. A REST catalog has
                ``uri``, ``warehouse``, ``token``, ``token.provider`` (``bear`` or ``dlf``), ``prefix``, ``data-token.enabled`` and
                ``header.*``. Other names are options of object stores.

        Raises:
            UnsupportedOption: An option is unknown.
            InvalidArgument: A required option is missing.

        >>> import tempfile
        >>> Catalog.create({"warehouse": tempfile.mkdtemp()}).list_databases()
        []
        """
        remaining = dict(options)
        metastore = remaining.get("metastore", "filesystem")
        if metastore not in _KINDS:
            kind = metastore if has_plugin("catalog", str(metastore)) else "rest"  # whose options say what is not supported
            opened: AnyCatalog = plugin("catalog", kind)(remaining)
            return opened
        if metastore == "filesystem":
            remaining.pop("metastore", None)
        if "warehouse" not in remaining:
            near = "".join(f" (not '{name}')" for name in get_close_matches("warehouse", map(str, remaining), n=1))
            raise InvalidArgument(f"a {_KINDS[metastore]} catalog needs a directory; give {{'warehouse': '/path', ...}}{near}")
        return cls(remaining.pop("warehouse"), remaining)

    def __repr__(self) -> str:
        return f"Catalog({self._root})"
