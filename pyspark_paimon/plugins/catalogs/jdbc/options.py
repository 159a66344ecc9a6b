"""Options of a JDBC catalog, by Paimon's names.

Separate from the options of the tables' storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from manifest.options.catalog_options import POOL, SYNC
from manifest.options.option_reader import OptionReader
from paimon_base.errors import InvalidArgument, UnsupportedOption

_URI, _KEY = "uri", "catalog-key"
_PROPERTY: Final = "jdbc."
_EXAMPLE: Final = "{'metastore': 'jdbc', 'uri': 'jdbc:sqlite:/path/catalog.db', ...}"
_SHAPES: Final = "'jdbc:sqlite:/path', 'jdbc:postgresql://host:port/database' or 'jdbc:mysql://host:port/database'"
_LONGEST_KEY = 255


@dataclass(frozen=True)
class _Database:
    """A kind of database: SQLAlchemy's name, and the driver's arguments by the names of the JDBC driver."""

    dialect: str
    driver: str
    install: str
    arguments: Mapping[str, str] = field(default_factory=dict)


_SQLITE: Final = _Database("sqlite", "sqlite3", "")
_SERVERS: Final = {
    "postgresql": _Database(
        "postgresql+psycopg",
        "psycopg",
        "pip install 'psycopg[binary]'",
        {
            "ApplicationName": "application_name",
            "connectTimeout": "connect_timeout",
            "sslcert": "sslcert",
            "sslkey": "sslkey",
            "sslmode": "sslmode",
            "sslrootcert": "sslrootcert",
        },
    ),
    "mysql": _Database("mysql+pymysql", "pymysql", "pip install pymysql"),
}


@dataclass(frozen=True)
class JdbcOptions:
    """Address of the database, and what the catalog writes there. ``password`` is never shown.

    catalog_key: Name of the catalog. Catalogs of several names share one database.
    sync_properties: Whether rows of a new table's options are written, too.
    arguments: More arguments of the database's driver.
    """

    database: _Database
    place: str
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    arguments: Mapping[str, str] = field(default_factory=dict, repr=False)
    catalog_key: str = "jdbc"
    sync_properties: bool = True

    @classmethod
    def of(cls, catalog_options: Mapping[str, Any]) -> tuple[JdbcOptions, dict[str, Any]]:
        """Return the options of the catalog's database, and the remaining ones.

        Raises ``InvalidArgument`` for a missing option or a value, ``UnsupportedOption`` for a database or a property of its driver.

        >>> options, rest = JdbcOptions.of({"uri": "jdbc:mysql://db:3306/lake", "jdbc.user": "me", "s3.region": "eu"})
        >>> options.host, options.port, options.place, options.user, options.catalog_key, rest
        ('db', 3306, 'lake', 'me', 'jdbc', {'s3.region': 'eu'})
        """
        reader = OptionReader(catalog_options)
        uri = reader.rest.pop(_URI, None)
        if not isinstance(uri, str) or not uri.strip():
            raise InvalidArgument(f"a JDBC catalog needs option '{_URI}': {_EXAMPLE}")
        key = reader.text(_KEY, cls.catalog_key)
        if not 0 < len(key) <= _LONGEST_KEY:
            raise InvalidArgument(f"option '{_KEY}' must have 1 to {_LONGEST_KEY} characters, not {len(key)}")
        reader.number(POOL, 1)  # without effect: each call has its own connection
        address = _address(uri.strip(), reader.prefixed(_PROPERTY))
        return cls(catalog_key=key, sync_properties=reader.flag(SYNC, default=True), **address), reader.rest


def _address(uri: str, properties: dict[str, str]) -> dict[str, Any]:
    # Errors do not contain the address: it may have a password.
    kind, colon, location = uri.removeprefix("jdbc:").partition(":")
    if not uri.startswith("jdbc:") or not colon:
        raise InvalidArgument(f"option '{_URI}' must be {_SHAPES}")
    if kind == "sqlite":
        return _file(location, properties)
    if kind not in _SERVERS:
        raise UnsupportedOption(_URI, f"databases of kind '{kind}' are not supported; use {_SHAPES}")
    try:
        parts = urlsplit(f"{kind}:{location}")
        host, port, database = parts.hostname, parts.port, unquote(parts.path.removeprefix("/"))
    except ValueError:
        host, port, database = None, None, ""
    if not host or not database or "/" in database or parts.username is not None or parts.fragment:
        raise InvalidArgument(
            f"option '{_URI}' must be 'jdbc:{kind}://host:port/database', with one host; user and password are options 'jdbc.user' and "
            "'jdbc.password'"
        )
    # As in Java's drivers the address wins over the properties.
    properties |= dict(parse_qsl(parts.query, keep_blank_values=True))
    user, password = properties.pop("user", None), properties.pop("password", None)
    server = _SERVERS[kind]
    for name in properties:
        if name not in server.arguments:
            property_names = ", ".join(["user", "password", *server.arguments])
            raise UnsupportedOption(f"{_PROPERTY}{name}", f"this is a property of the Java driver; known here: {property_names}")
    arguments = {server.arguments[name]: value for name, value in properties.items()}
    return {
        "database": server,
        "place": database,
        "host": host,
        "port": port,
        "user": user,
        "password": password,
        "arguments": arguments,
    }


def _file(path: str, properties: Mapping[str, str]) -> dict[str, Any]:
    if not path or path.startswith((":", "file:")) or "?" in path:
        raise InvalidArgument(
            f"option '{_URI}' must be 'jdbc:sqlite:/path' of a file, without parameters; a database in memory is lost with its connection"
        )
    for name in properties:
        if name not in {"user", "password"}:  # a file has no users, as in Java
            raise UnsupportedOption(f"{_PROPERTY}{name}", "this is a property of the Java driver; SQLite has none here")
    return {"database": _SQLITE, "place": path}
