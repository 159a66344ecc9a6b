"""Options of object stores and catalogs, sent from a client to its session.

The driver and the tasks of the session use them.
Each is a file of the session (a Spark artifact), because logs and the web interface show read options and plans. Spark gives such
files only to processes of the session, and removes them with it. The newest file of a path or catalog counts, so a client can renew
credentials.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from manifest.storage.session_options import refuse_server_credentials, set_session_sources
from paimon_base.errors import InvalidArgument, UnsupportedOption

if TYPE_CHECKING:
    from manifest.storage.storage_options import StorageOptions

CLIENT_STORAGE = "PYSPARK_PAIMON_CLIENT_STORAGE"
"""Environment variable of a server. ``refused``: the server uses its own credentials and refuses those of clients."""
_STORES, _CATALOGS, _SUFFIX = "paimon-session-storage-", "paimon-session-catalog-", ".json"
"""Names of the files: a prefix, the time, and the suffix."""
_MOST_HELD = 256
_sent: WeakKeyDictionary[Any, dict[tuple[str, str], str]] = WeakKeyDictionary()


def is_connect(spark: Any) -> bool:
    """Return whether a session is one of Spark Connect."""
    try:
        return hasattr(spark, "client")
    except RuntimeError:  # a classic session has the property, which raises
        return False


def send_storage_options(spark: Any, storage_options: Mapping[str, Any], path: str = "") -> None:
    """Send the options of the store at ``path`` to a session's server.

    Sends nothing for a local path, and nothing that was sent before.

    Args:
        spark: A session of Spark Connect.
        storage_options: Values by name, such as ``s3.access-key``.
        path: Table or directory that the options apply to. Empty: all.

    Raises:
        InvalidArgument: The session is no Spark Connect session, or an option is invalid.
        UnsupportedOption: An option is unknown.
    """
    from manifest.io.paths import split_branch  # noqa: PLC0415  # every process of a server imports this module
    from manifest.storage.schemes import object_place, scheme_of  # noqa: PLC0415  # as above
    from manifest.storage.storage_options import StorageOptions  # noqa: PLC0415  # as above

    options = StorageOptions.of(storage_options)
    if path and scheme_of(path) in {None, "file"}:
        return
    location = split_branch(object_place(path).uri)[0] if path else ""
    refuse_server_credentials(options)
    if not is_connect(spark):
        raise InvalidArgument(
            "storage_options need a Spark Connect session; for a classic session set the environment of its processes "
            "(AWS_*, AZURE_*, GOOGLE_*)"
        )
    _send(spark, _STORES, location, options.values)


def send_catalog(spark: Any, key: str, options: Mapping[str, str]) -> None:
    """Send the options of a REST catalog to a session's server.

    Sends nothing that was sent before.

    Args:
        spark: A session of Spark Connect.
        key: ``catalog_key`` of the options.
        options: The user's options.

    Raises:
        InvalidArgument: The session is no Spark Connect session, or an option names a file or a role of this machine.
    """
    if not is_connect(spark):
        raise InvalidArgument(
            "tables of a REST catalog need a Spark Connect session, because a classic session has no place for the token; "
            "use spark_session(), or leave out spark and open the table in process"
        )
    _send(spark, _CATALOGS, key, dict(options))


def _send(spark: Any, prefix: str, key: str, options: object) -> None:
    text = json.dumps([key, options])
    sent = _sent.setdefault(spark, {})
    if sent.get((prefix, key)) == text:
        return
    with tempfile.TemporaryDirectory(prefix="pyspark-paimon-") as folder:
        file = Path(folder) / f"{prefix}{time.time_ns():020}-{uuid.uuid4()}{_SUFFIX}"
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        spark.addArtifacts(str(file), file=True)
    sent[prefix, key] = text


def received_options() -> Sequence[tuple[str, StorageOptions]]:
    """Return the store options received for the current session, oldest first.

    Raises ``UnsupportedOption`` if the server refuses options of clients.
    """
    return [_read_stores(file) for file in _received(_STORES)]


def received_catalog(key: str) -> Mapping[str, str] | None:
    """Return the newest options received for a catalog. None: there are none.

    Raises ``UnsupportedOption`` if the server refuses options of clients.
    """
    matching_options = (options for catalog_key, options in map(_read, reversed(_received(_CATALOGS))) if catalog_key == key)
    return next(matching_options, None)


def _received(prefix: str) -> list[str]:
    """Return the session's files, oldest first."""
    files = sys.modules.get("pyspark.core.files")
    if files is None or not files.SparkFiles._is_running_on_worker:  # noqa: SLF001  # Spark has no public method for this
        return []
    folder = files.SparkFiles.getRootDirectory()
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(_SUFFIX))  # noqa: PTH208  # names
    except FileNotFoundError:
        return []
    setting = os.environ.get(CLIENT_STORAGE, "")
    if setting not in {"", "refused"}:
        raise InvalidArgument(f"{CLIENT_STORAGE} in the server's environment is '{setting}': set it to 'refused' or unset it")
    if names and setting:
        raise UnsupportedOption(
            "storage_options" if prefix == _STORES else "metastore",
            "this server uses its own credentials and refuses credentials of clients",
        )
    return [f"{folder}/{name}" for name in names]


@lru_cache(_MOST_HELD)
def _read(file: str) -> tuple[str, Any]:
    key, options = json.loads(Path(file).read_text(encoding="utf-8"))
    return key, options


@lru_cache(_MOST_HELD)
def _read_stores(file: str) -> tuple[str, StorageOptions]:
    from manifest.storage.schemes import StoreFamily  # noqa: PLC0415  # as above
    from manifest.storage.storage_options import StorageOptions  # noqa: PLC0415  # as above

    location, values = _read(file)
    options = StorageOptions(tuple((None if family is None else StoreFamily(family), name, value) for family, name, value in values))
    refuse_server_credentials(options)
    return location, options


set_session_sources(received_options, received_catalog)
