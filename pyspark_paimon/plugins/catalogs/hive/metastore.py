"""Calls of a Hive metastore.

Each call has its own connection: a catalog is asked rarely, and no connection is held by a fork or grows stale.
"""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from manifest.io.catalog_errors import CatalogUnavailable, NotOffered, ResourceMissing, ResourceTaken
from manifest.io.errors import CatalogRefused, CommitConflict
from paimon_base.log import logger_of
from paimon_base.redaction import redact
from pyspark_paimon.plugins.catalogs.hive.options import HiveOptions
from pyspark_paimon.plugins.catalogs.hive.wire import (
    BadMessage,
    Struct,
    decode_answer,
    encode_call,
    flag,
    is_exception,
    long,
    number,
    properties,
    record,
    records,
    text,
    texts,
    value_of,
)

_LOG = logger_of(__name__)
_TAKEN, _MISSING, _OTHER = "AlreadyExistsException", "NoSuchObjectException", ""
_UNKNOWN_CALL: Final = 1
_BATCH: Final = 300
"""Tables of one request."""
_EXCLUSIVE, _OF_TABLE = 3, 2
_ACQUIRED, _WAITING = 1, 2
_FIRST_SLEEP: Final = 0.05


class Metastore:
    """Databases and tables of a metastore, as structs of its interface.

    Raises ``CatalogUnavailable`` if it does not answer, ``CatalogRefused`` and its subclasses if it refuses.
    """

    def __init__(self, options: HiveOptions) -> None:
        self._options = options

    def databases(self) -> list[str]:
        """Return the names of the databases."""
        return list(self._call("get_all_databases", {}))

    def database(self, name: str) -> Struct:
        """Return a database. Raises ``ResourceMissing``."""
        database: Struct = self._call("get_database", {1: text(name)}, {1: _MISSING})
        return database

    def create_database(self, database: Struct) -> None:
        """Create a database. Raises ``ResourceTaken``."""
        self._call("create_database", {1: record(database)}, {1: _TAKEN})

    def alter_database(self, name: str, database: Struct) -> None:
        """Change a database. Raises ``ResourceMissing``."""
        self._call("alter_database", {1: text(name), 2: record(database)}, {2: _MISSING})

    def drop_database(self, name: str) -> None:
        """Delete an empty database, without its directory. Raises ``ResourceMissing``."""
        self._call("drop_database", {1: text(name), 2: flag(value=False), 3: flag(value=False)}, {1: _MISSING})

    def table_names(self, database: str) -> list[str]:
        """Return the names of all tables of a database."""
        return list(self._call("get_all_tables", {1: text(database)}))

    def tables(self, database: str, names: Sequence[str]) -> Iterator[Struct]:
        """Yield tables."""
        for first in range(0, len(names), _BATCH):
            batch = texts(names[first : first + _BATCH])
            try:
                yield from self._call("get_table_objects_by_name", {1: text(database), 2: batch})
            except NotOffered:  # of Hive 4
                answer = self._call("get_table_objects_by_name_req", {1: record({1: text(database), 2: batch})})
                yield from value_of(answer, 1, [])

    def table(self, database: str, name: str) -> Struct:
        """Return a table. Raises ``ResourceMissing``."""
        try:
            entry: Struct = self._call("get_table", {1: text(database), 2: text(name)}, {2: _MISSING})
        except NotOffered:  # of Hive 4
            entry = value_of(self._call("get_table_req", {1: record({1: text(database), 2: text(name)})}, {2: _MISSING}), 1)
        return entry

    def create_table(self, table: Struct) -> None:
        """Register a table. Raises ``ResourceTaken``, ``ResourceMissing``."""
        self._call("create_table", {1: record(table)}, {1: _TAKEN, 4: _MISSING})

    def alter_table(self, database: str, name: str, table: Struct) -> None:
        """Replace the entry of a table."""
        settings = {"DO_NOT_UPDATE_STATS": str(self._options.skip_statistics).lower()}
        if self._options.cascade:
            settings["CASCADE"] = "true"
        call = {1: text(database), 2: text(name), 3: record(table), 4: record({1: properties(settings)})}
        self._call("alter_table_with_environment_context", call)

    def drop_table(self, database: str, name: str) -> None:
        """Delete the entry of a table, without its files. Raises ``ResourceMissing``."""
        self._call("drop_table", {1: text(database), 2: text(name), 3: flag(value=False)}, {1: _MISSING})

    @contextmanager
    def locked(self, database: str, table: str, timeout_seconds: float, longest_sleep: float) -> Iterator[None]:
        """Hold the exclusive lock of a table, as Paimon's engines do around commits.

        Raises ``CommitConflict`` if it is not free in time.
        """
        component = {1: number(_EXCLUSIVE), 2: number(_OF_TABLE), 3: text(database), 4: text(table)}
        request = {1: records([component]), 3: text(user_name()), 4: text(socket.gethostname())}
        answer = self._call("lock", {1: record(request)})
        lock_id, state = value_of(answer, 1), value_of(answer, 2)
        try:
            deadline, sleep = time.monotonic() + timeout_seconds, _FIRST_SLEEP
            while state == _WAITING and time.monotonic() < deadline:
                sleep = min(2 * sleep, longest_sleep)
                time.sleep(sleep)
                state = value_of(self._call("check_lock", {1: record({1: long(lock_id)})}), 2)
            if state != _ACQUIRED:
                raise CommitConflict(
                    f"the lock of table '{database}.{table}' in the metastore was not free in {timeout_seconds:.0f} s; nothing was committed, "
                    "try again, or raise option 'lock-acquire-timeout' of the catalog"
                )
            yield
        finally:
            try:
                self._call("unlock", {1: record({1: long(lock_id)})})
            except (CatalogRefused, CatalogUnavailable) as error:  # the metastore frees it after a time
                _LOG.warning("table '%s.%s': did not free lock %d of the metastore (%s)", database, table, lock_id, error)

    def _call(self, name: str, arguments: Struct, raised: Mapping[int, str] | None = None) -> Any:
        """Return the result of a call, None without one.

        ``raised``: kinds of exceptions by their field.
        """
        with self._connection() as (link, source):
            try:
                link.sendall(encode_call(name, arguments))
                kind, _, answer = decode_answer(source)
            except (OSError, BadMessage) as error:
                raise CatalogUnavailable(
                    f"the Hive metastore failed during {name} ({error}); whether a change was made is unknown"
                ) from error
        if is_exception(kind):
            message = redact(str(value_of(answer, 1, "")))
            if value_of(answer, 2) == _UNKNOWN_CALL:
                raise NotOffered(f"the Hive metastore has no call {name} ({message})")
            raise CatalogRefused(f"the Hive metastore failed in {name} ({message})")
        for field_id, (_, content) in answer.items():
            if field_id:
                message = redact(str(value_of(content, 1, "")))
                match (raised or {}).get(field_id, _OTHER):
                    case "AlreadyExistsException":
                        raise ResourceTaken(message)
                    case "NoSuchObjectException":
                        raise ResourceMissing(message)
                    case _:
                        raise CatalogRefused(f"the Hive metastore refuses {name} ({message}); nothing was changed")
        return value_of(answer, 0)

    @contextmanager
    def _connection(self) -> Iterator[tuple[socket.socket, Any]]:
        """Connect to the first metastore that answers."""
        problems = []
        for host, port in self._options.addresses:
            try:
                link = socket.create_connection((host, port), self._options.timeout_seconds or None)  # as in Hive 0 is no limit
            except (OSError, UnicodeError) as error:  # a name that no host can have
                problems.append(f"{host}:{port}: {error}")
                continue
            with link, link.makefile("rb") as source:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with suppress(OSError, BadMessage):  # a metastore with logins does not need it
                    link.sendall(encode_call("set_ugi", {1: text(user_name()), 2: texts([])}))
                    decode_answer(source)
                yield link, source
                return
        raise CatalogUnavailable(f"no Hive metastore answers ({'; '.join(problems)}); nothing was changed")


def user_name() -> str:
    """Return the user's name for Hadoop's services."""
    hadoop_user = os.environ.get("HADOOP_USER_NAME")
    if hadoop_user:
        return hadoop_user
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # containers have users without a name
        return str(os.getuid())
