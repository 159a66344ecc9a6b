"""Storage of a table whose commits hold the lock of a Hive metastore."""

# The methods of a FileIO are documented once, in the protocol.
# ruff: noqa: D102
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from manifest.io.file_io import FileIO
from manifest.io.wrapped import ThinFileIO
from manifest.options.option_reader import OptionReader
from paimon_base.errors import UnsupportedOption
from pyspark_paimon.plugins.catalogs.hive.metastore import Metastore

_ENABLED, _TYPE, _TIMEOUT, _SLEEP, _LENGTH = (
    "lock.enabled",
    "lock.type",
    "lock-acquire-timeout",
    "lock-check-max-sleep",
    "lock-key-max-length",
)
_GUARDED: Final = re.compile(r"/(?:snapshot/snapshot|schema/schema)-\d+$")


@dataclass(frozen=True)
class LockOptions:
    """Options of locks. ``enabled`` None: on object stores, as Paimon's engines do."""

    enabled: bool | None = None
    timeout_seconds: float = 480.0
    longest_sleep: float = 8.0

    @classmethod
    def of(cls, catalog_options: Mapping[str, Any]) -> tuple[LockOptions, dict[str, Any]]:
        """Return the options of locks, and the remaining ones.

        >>> LockOptions.of({"lock.enabled": "true", "lock-acquire-timeout": "1 min"})
        (LockOptions(enabled=True, timeout_seconds=60.0, longest_sleep=8.0), {})
        """
        reader = OptionReader(catalog_options)
        reader.refuse({_LENGTH: "is an option of JDBC catalogs"})
        if reader.text(_TYPE, "hive") != "hive":
            raise UnsupportedOption(_TYPE, "the lock of a Hive catalog is that of its metastore; leave the option out")
        enabled = reader.flag(_ENABLED, default=False) if _ENABLED in catalog_options else None
        return cls(enabled, reader.seconds(_TIMEOUT, cls.timeout_seconds), reader.seconds(_SLEEP, cls.longest_sleep)), reader.rest


class LockedFileIO(ThinFileIO):
    """Storage that creates snapshots and schemas under the metastore's lock of ``table``.

    Only engines that test a name and then rename need the lock. Commits of this package are safe without it.
    """

    def __init__(self, inner: FileIO, metastore: Metastore, table: tuple[str, str], options: LockOptions) -> None:
        super().__init__(inner)
        self._metastore, self._table, self._options = metastore, table, options

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:
        if _GUARDED.search(path) is None:
            return self.inner.create_exclusive(path, data, guard=guard)
        with self._metastore.locked(*self._table, self._options.timeout_seconds, self._options.longest_sleep):
            return self.inner.create_exclusive(path, data, guard=guard)

    def write_hint(self, path: str, data: bytes, guard: Callable[[], bool]) -> None:
        self.inner.write_hint(path, data, guard)
