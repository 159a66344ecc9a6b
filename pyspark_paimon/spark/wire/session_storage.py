"""Options of object stores on their way from a client to the driver and the tasks of its session.

They travel as a file of the session (Spark's artifacts), never in an option or a plan, which logs and the web interface show. Spark hands
such files to the session's own processes alone and removes them with it. A newer file for the same place counts: so credentials are renewed.
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
from manifest.storage.storage_options import found_by

if TYPE_CHECKING:
    from manifest.storage.storage_options import StorageOptions

CLIENT_STORAGE = "PYSPARK_PAIMON_CLIENT_STORAGE"
"""Of a server's environment: ``refused`` where it reaches stores by its own credentials and takes none of clients."""
_PREFIX, _SUFFIX = "paimon-session-storage-", ".json"
_MOST_HELD = 256
_CREDENTIALS = frozenset({"access_key_id", "skip_signature", "account_key", "sas_token", "client_secret", "service_account_key"})
_OF_THE_MACHINE = frozenset({"role_arn", "role_session_name", "web_identity_token_file", "service_account", "application_credentials"})
"""Options that name a file or a role of the machine that reads them."""
_sent: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


def give(spark: Any, storage_options: Mapping[str, Any], path: str = "") -> None:
    """Give a session's server the options of the store at ``path``, or of all; nothing is sent twice, nothing for local paths.

    Raises ``UnsupportedOption`` and ``InvalidArgument`` as ``StorageOptions.of`` does, and for a session that is not of Spark Connect.
    """
    from manifest.io.paths import split_branch  # noqa: PLC0415  # every process of a server imports this module
    from manifest.storage.schemes import object_place, scheme_of  # noqa: PLC0415  # as above
    from manifest.storage.storage_options import StorageOptions  # noqa: PLC0415  # as above

    options = StorageOptions.of(storage_options)
    if path and scheme_of(path) in {None, "file"}:
        return
    place = split_branch(object_place(path).uri)[0] if path else ""
    check_whole(options)
    if not hasattr(spark, "client"):
        raise InvalidArgument(
            "storage_options go to the server of a Spark Connect session; a classic session's processes have them in their environment "
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


def given_here() -> Sequence[tuple[str, StorageOptions]]:
    """What clients gave for the session that this process of a server works for now, oldest first.

    Raises ``UnsupportedOption`` if the server takes none.
    """
    files = sys.modules.get("pyspark.core.files")
    if files is None or not files.SparkFiles._is_running_on_worker:  # noqa: SLF001  # there is no public way to tell
        return ()
    folder = files.SparkFiles.getRootDirectory()
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(_PREFIX) and name.endswith(_SUFFIX))  # noqa: PTH208  # names
    except FileNotFoundError:
        return ()
    setting = os.environ.get(CLIENT_STORAGE, "")
    if setting not in {"", "refused"}:
        raise InvalidArgument(f"{CLIENT_STORAGE} of the server's environment is 'refused' or nothing")
    if names and setting:
        raise UnsupportedOption("storage_options", "this server reaches stores by its own credentials and takes none of clients")
    return [_read(f"{folder}/{name}") for name in names]


@lru_cache(_MOST_HELD)
def _read(file: str) -> tuple[str, StorageOptions]:
    from manifest.storage.schemes import StoreFamily  # noqa: PLC0415  # as above
    from manifest.storage.storage_options import StorageOptions  # noqa: PLC0415  # as above

    place, values = json.loads(Path(file).read_text(encoding="utf-8"))
    options = StorageOptions(tuple((None if family is None else StoreFamily(family), name, value) for family, name, value in values))
    check_whole(options)
    return place, options


def check_whole(options: StorageOptions) -> None:
    """Raise ``InvalidArgument`` for what would lend a client the server's own credentials: its files and roles, an endpoint without any."""
    if any(name in _OF_THE_MACHINE for _, name, _ in options.values):
        raise InvalidArgument("storage_options of a session name no role and no file: these are the server's own; give keys or tokens")
    for family in {family for family, name, _ in options.values if name == "endpoint"}:
        if not any(whose is family and name in _CREDENTIALS for whose, name, _ in options.values):
            raise InvalidArgument(
                "storage_options that name an endpoint bring its credentials along: the server's own go to no endpoint of a client"
            )


found_by(given_here)

__all__ = ["CLIENT_STORAGE", "check_whole", "give", "given_here"]
