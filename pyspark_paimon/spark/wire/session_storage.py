"""Options of object stores, sent from a client to its session.

The driver and the tasks of the session use them.
Each is a file of the session (a Spark artifact), because logs and the web interface show read options and plans. Spark gives such
files only to processes of the session, and removes them with it. The newest file of a path counts, so a client can renew credentials.
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

from fileindex.base.errors import InvalidArgument, UnsupportedOption
from manifest.storage.session_options import set_options_source

if TYPE_CHECKING:
    from manifest.storage.storage_options import StorageOptions

CLIENT_STORAGE = "PYSPARK_PAIMON_CLIENT_STORAGE"
"""Environment variable of a server. ``refused``: the server uses its own credentials and refuses those of clients."""
_PREFIX, _SUFFIX = "paimon-session-storage-", ".json"
_MOST_HELD = 256
_CREDENTIALS = frozenset({"access_key_id", "skip_signature", "account_key", "sas_token", "client_secret", "service_account_key"})
_OF_THE_MACHINE = frozenset(
    {"role_arn", "role_session_name", "web_identity_token_file", "service_account", "application_credentials", "hadoop-conf-dir"}
)
"""Options that refer to a file or a role of the machine that reads them."""
_sent: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


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
    place = split_branch(object_place(path).uri)[0] if path else ""
    refuse_server_credentials(options)
    if not is_connect(spark):
        raise InvalidArgument(
            "storage_options need a Spark Connect session; for a classic session set the environment of its processes "
            "(AWS_*, AZURE_*, GOOGLE_*)"
        )
    text = json.dumps([place, options.values])
    sent = _sent.setdefault(spark, {})
    if sent.get(place) == text:
        return
    with tempfile.TemporaryDirectory(prefix="pyspark-paimon-") as folder:
        file = Path(folder) / f"{_PREFIX}{time.time_ns():020}-{uuid.uuid4()}{_SUFFIX}"
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        spark.addArtifacts(str(file), file=True)
    sent[place] = text


def received_options() -> Sequence[tuple[str, StorageOptions]]:
    """Return the options received for the current session, oldest first.

    Raises ``UnsupportedOption`` if the server refuses options of clients.
    """
    files = sys.modules.get("pyspark.core.files")
    if files is None or not files.SparkFiles._is_running_on_worker:  # noqa: SLF001  # Spark has no public method for this
        return ()
    folder = files.SparkFiles.getRootDirectory()
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(_PREFIX) and name.endswith(_SUFFIX))  # noqa: PTH208  # names
    except FileNotFoundError:
        return ()
    setting = os.environ.get(CLIENT_STORAGE, "")
    if setting not in {"", "refused"}:
        raise InvalidArgument(f"{CLIENT_STORAGE} in the server's environment is '{setting}': set it to 'refused' or unset it")
    if names and setting:
        raise UnsupportedOption("storage_options", "this server uses its own credentials and refuses those of clients")
    return [_read(f"{folder}/{name}") for name in names]


@lru_cache(_MOST_HELD)
def _read(file: str) -> tuple[str, StorageOptions]:
    from manifest.storage.schemes import StoreFamily  # noqa: PLC0415  # as above
    from manifest.storage.storage_options import StorageOptions  # noqa: PLC0415  # as above

    place, values = json.loads(Path(file).read_text(encoding="utf-8"))
    options = StorageOptions(tuple((None if family is None else StoreFamily(family), name, value) for family, name, value in values))
    refuse_server_credentials(options)
    return place, options


def refuse_server_credentials(options: StorageOptions) -> None:
    """Raise ``InvalidArgument`` for options that would use the server's own credentials."""
    if any(name in _OF_THE_MACHINE for _, name, _ in options.values):
        raise InvalidArgument("storage_options of a session may not have roles or files, which are the server's: give keys or tokens")
    # Without credentials for an endpoint, the server would send its own credentials there.
    for family in {family for family, name, _ in options.values if name == "endpoint"}:
        if not any(other is family and name in _CREDENTIALS for other, name, _ in options.values):
            raise InvalidArgument("storage_options have an endpoint without credentials: add its keys or token")


set_options_source(received_options)

__all__ = ["CLIENT_STORAGE", "is_connect", "received_options", "refuse_server_credentials", "send_storage_options"]
