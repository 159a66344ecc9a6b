"""Options of a catalog itself, by Paimon's names. Others belong to its server or store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from manifest.options.option_reader import OptionReader
from paimon_base.errors import InvalidArgument, UnsupportedOption
from paimon_base.log import logger_of

_LOG = logger_of(__name__)
_TABLE_DEFAULT: Final = "table-default."
_DATABASE: Final = ("default-database", "defaultDatabase")
_CASE, _CACHE, _LOCK = "case-sensitive", "cache-enabled", "lock.enabled"
_TYPE, _MANAGED = "table.type", "managed"
POOL: Final = "client-pool-size"
SYNC: Final = "sync-all-properties"
_BOUNDS = "a catalog holds no tables, so there is no such cache; metadata of files is held up to a bound of the process"
_NO_LOCK = "commits create each snapshot file only if it is absent, and take no lock of a catalog"
_JAVA_ONLY = "tunes another engine's catalog"
_WITHOUT_EFFECT: Final = {
    "lock.type": _NO_LOCK,
    "lock-acquire-timeout": _NO_LOCK,
    "lock-check-max-sleep": _NO_LOCK,
    "lock-key-max-length": _NO_LOCK,
    POOL: "there are no connections to a metastore",
    "format-table.enabled": "tables of plain files are not listed",
    SYNC: "there is no metastore to write properties to",
    "resolving-file-io.enabled": "each path is read through the store of its scheme",
    "file-io.allow-cache": "stores are held for the process",
    "alter-table-cascade": _JAVA_ONLY,
    "catalog-options-table.enabled": _JAVA_ONLY,
    "catalog.create-underlying-session-catalog": _JAVA_ONLY,
    "disable-create-table-in-default-db": _JAVA_ONLY,
    "lineage-use-catalog-key-as-identifier": _JAVA_ONLY,
    "v1Function.enabled": _JAVA_ONLY,
}
"""Options of Paimon's catalogs that change no table, with reasons."""
_CACHES: Final = ("cache.", "client-pool-cache.", "local-cache.")


@dataclass(frozen=True)
class CatalogOptions:
    """Parsed options.

    table_defaults: Options of each table that the catalog creates; its own options win.
    case_sensitive: False: names of databases, tables and columns must be lower case.
    default_database: Database of names without one.
    """

    table_defaults: Mapping[str, str] = field(default_factory=dict)
    case_sensitive: bool = True
    default_database: str = "default"

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> tuple[CatalogOptions, dict[str, Any]]:
        """Return the options of the catalog, and the remaining ones.

        Raises ``UnsupportedOption`` for an option of Paimon that has no meaning here, ``InvalidArgument`` for a value.

        >>> CatalogOptions.of({"table-default.bucket": "4", "cache-enabled": "false", "s3.region": "eu"})
        (CatalogOptions(table_defaults={'bucket': '4'}, case_sensitive=True, default_database='default'), {'s3.region': 'eu'})
        """
        reader = OptionReader(options)
        for name in [name for name in options if name in _WITHOUT_EFFECT or name.startswith(_CACHES)]:
            _LOG.info("option '%s' of the catalog has no effect: %s", name, _WITHOUT_EFFECT.get(name, _BOUNDS))
            reader.rest.pop(name, None)
        if reader.text(_TYPE, _MANAGED).strip().lower() != _MANAGED:
            raise UnsupportedOption(_TYPE, "tables are of the catalog; Table.create(path) makes a table elsewhere")
        reader.flag(_CACHE, default=True)  # without effect: nothing is held that could be old
        if reader.flag(_LOCK, default=False):
            raise UnsupportedOption(_LOCK, _NO_LOCK)
        databases = {reader.text(name) for name in _DATABASE if name in options}
        if len(databases) > 1:
            raise InvalidArgument(f"options {' and '.join(_DATABASE)} name two databases: {', '.join(sorted(databases))}")
        defaults, sensitive = reader.prefixed(_TABLE_DEFAULT), reader.flag(_CASE, default=True)
        return cls(defaults, sensitive, next(iter(databases), cls.default_database)), reader.rest

    def check_name(self, name: str, what: str) -> None:
        """Raise ``InvalidArgument`` for a name that is not lower case, where it must be."""
        if not self.case_sensitive and name != name.lower():
            raise InvalidArgument(f"{what} '{name}' must be lower case: option '{_CASE}' of the catalog is false")
