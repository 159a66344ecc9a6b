"""Options of a catalog itself, by Paimon's names. Others belong to its server or store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fileindex.base.errors import InvalidArgument, UnsupportedOption

_TABLE_DEFAULT: Final = "table-default."
_DATABASE: Final = ("default-database", "defaultDatabase")
_CASE, _CACHE, _LOCK = "case-sensitive", "cache-enabled", "lock.enabled"
_BOUNDS = "a catalog holds no tables, so there is no such cache; metadata of files is held up to a bound of the process"
_NO_LOCK = "commits create each snapshot file only if it is absent, and take no lock of a catalog"
_REFUSED: Final = {
    "lock.type": _NO_LOCK,
    "lock-acquire-timeout": _NO_LOCK,
    "lock-check-max-sleep": _NO_LOCK,
    "lock-key-max-length": _NO_LOCK,
    "client-pool-size": "there are no connections to a metastore",
    "format-table.enabled": "tables of plain files are not supported",
    "sync-all-properties": "there is no metastore to write properties to",
    "table.type": "tables are of the catalog; Table.create(path) makes a table elsewhere",
    "resolving-file-io.enabled": "each path is read through the store of its scheme",
    "file-io.allow-cache": "stores are held for the process",
}


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
    def of(cls, given: Mapping[str, Any]) -> tuple[CatalogOptions, dict[str, Any]]:
        """Return the options of the catalog, and the remaining ones.

        Raises ``UnsupportedOption`` for an option of Paimon that has no meaning here, ``InvalidArgument`` for a value.

        >>> CatalogOptions.of({"table-default.bucket": "4", "cache-enabled": "false", "s3.region": "eu"})
        (CatalogOptions(table_defaults={'bucket': '4'}, case_sensitive=True, default_database='default'), {'s3.region': 'eu'})
        """
        rest, defaults = dict(given), dict[str, str]()
        for name in given:
            if name in _REFUSED:
                raise UnsupportedOption(name, _REFUSED[name])
            if name.startswith("cache."):
                raise UnsupportedOption(name, _BOUNDS)
            if name.startswith(_TABLE_DEFAULT):
                defaults[name.removeprefix(_TABLE_DEFAULT)] = _text(rest.pop(name))
        _flag(_CACHE, rest.pop(_CACHE, "true"))  # without effect: nothing is held that could be old
        if _flag(_LOCK, rest.pop(_LOCK, "false")):
            raise UnsupportedOption(_LOCK, _NO_LOCK)
        databases = {str(rest.pop(name)) for name in _DATABASE if name in rest}
        if len(databases) > 1:
            raise InvalidArgument(f"options {' and '.join(_DATABASE)} name two databases: {', '.join(sorted(databases))}")
        sensitive = _flag(_CASE, rest.pop(_CASE, "true"))
        return cls(defaults, sensitive, next(iter(databases), cls.default_database)), rest

    def check_name(self, name: str, what: str) -> None:
        """Raise ``InvalidArgument`` for a name that is not lower case, where it must be."""
        if not self.case_sensitive and name != name.lower():
            raise InvalidArgument(f"{what} '{name}' must be lower case: option '{_CASE}' of the catalog is false")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _flag(name: str, value: object) -> bool:
    text = _text(value).strip().lower()
    if text not in {"true", "false"}:
        raise InvalidArgument(f"option '{name}' must be 'true' or 'false', not {value!r}")
    return text == "true"


__all__ = ["CatalogOptions"]
