"""Options of stores and catalogs that a client gave for its session.

They complement the environment of the process that works for the session. The code that runs the process registers sources with
``set_session_sources``. Other processes have no source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from paimon_base.errors import InvalidArgument

if TYPE_CHECKING:
    from manifest.storage.schemes import ObjectPlace
    from manifest.storage.storage_options import StorageOptions

OptionsSource: TypeAlias = Callable[[], Sequence[tuple[str, "StorageOptions"]]]
"""Returns (URI, options) in the order they were given. An empty URI applies to all paths."""

CatalogSource: TypeAlias = Callable[[str], Mapping[str, str] | None]
"""Returns the newest options of a catalog by its ``catalog_key``. None: the session has no such catalog."""

_stores: list[OptionsSource] = []
_catalogs: list[CatalogSource] = []
_CREDENTIALS = frozenset({"access_key_id", "skip_signature", "account_key", "sas_token", "client_secret", "service_account_key"})
_OF_THE_MACHINE = frozenset(
    {"role_arn", "role_session_name", "web_identity_token_file", "service_account", "application_credentials", "hadoop-conf-dir"}
)
"""Options that refer to a file or a role of the machine that reads them."""


def set_session_sources(stores: OptionsSource, catalogs: CatalogSource) -> None:
    """Set the sources of session options for this process.

    ``stores`` is used whenever a store is opened without options.
    """
    _stores[:] = [stores]
    _catalogs[:] = [catalogs]


def session_catalog(key: str) -> Mapping[str, str] | None:
    """Return the options of one of the session's catalogs, or None."""
    return next((options for source in _catalogs if (options := source(key)) is not None), None)


def refuse_server_credentials(options: StorageOptions) -> None:
    """Raise ``InvalidArgument`` for options that would use the server's own credentials."""
    if any(name in _OF_THE_MACHINE for _, name, _ in options.values):
        raise InvalidArgument("storage_options of a session may not have roles or files, which are the server's: give keys or tokens")
    # Without credentials for an endpoint, the server would send its own credentials there.
    for family in {family for family, name, _ in options.values if name == "endpoint"}:
        if not any(other is family and name in _CREDENTIALS for other, name, _ in options.values):
            raise InvalidArgument("storage_options have an endpoint without credentials: add its keys or token")


def session_options(location: ObjectPlace) -> StorageOptions | None:
    """Return the session's options for a place, or None.

    The longest URI above the place wins, then the newest options. The place may be a table's branch.
    """
    from manifest.io.paths import split_branch  # noqa: PLC0415  # every process of a server imports this module

    best: tuple[int, StorageOptions | None] = (-1, None)
    table_uri, _ = split_branch(location.uri)
    for source in _stores:
        for uri, options in source():
            if len(uri) >= best[0] and (not uri or table_uri == uri or table_uri.startswith(uri + "/")):
                best = (len(uri), options)
    return best[1]
