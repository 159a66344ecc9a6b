"""Names of store options.

Accepts the names of Paimon, Hadoop, pypaimon and the vendors' environment variables. A name is a prefix for the family and a rest for the
option. In the rest, case, ``-``, ``_`` and ``.`` are ignored, so that ``s3.access-key``, ``fs.s3a.access.key``, ``fs.s3.accessKeyId`` and
``AWS_ACCESS_KEY_ID`` are the same option.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from fileindex.base.errors import UnsupportedOption
from manifest.storage.schemes import StoreFamily

STORE_PREFIXES: Mapping[StoreFamily, tuple[str, ...]] = {
    StoreFamily.S3: ("fs.s3a.", "fs.s3.", "s3a.", "s3.", "fs.oss.", "oss.", "aws_"),
    StoreFamily.AZURE: ("fs.azure.", "azure.", "azure_storage_", "azure_"),
    StoreFamily.GOOGLE: ("fs.gs.", "gs.", "gcs.", "google_"),
    StoreFamily.MEMORY: (),
}
NAMES: Mapping[StoreFamily, Mapping[str, str]] = {
    StoreFamily.S3: {
        "endpoint": "endpoint",
        "endpoint-url": "endpoint",
        "endpoint-url-s3": "endpoint",
        "access-key": "access_key_id",
        "access-key-id": "access_key_id",
        "secret-key": "secret_access_key",
        "secret-access-key": "secret_access_key",
        "access-key-secret": "secret_access_key",
        "session-token": "session_token",
        "security-token": "session_token",
        "region": "region",
        "endpoint-region": "region",
        "default-region": "region",
        "path-style-access": "path_style",
        "connection-ssl-enabled": "ssl",
        "anonymous": "skip_signature",
        "role-arn": "role_arn",
        "assumed-role-arn": "role_arn",
        "role-session-name": "role_session_name",
        "web-identity-token-file": "web_identity_token_file",
        "aws-credentials-provider": "credentials_provider",
    },
    StoreFamily.AZURE: {
        "account-name": "account_name",
        "account-key": "account_key",
        "account": "account_name",
        "access-key": "account_key",
        "key": "account_key",
        "sas-token": "sas_token",
        "client-id": "client_id",
        "client-secret": "client_secret",
        "tenant-id": "tenant_id",
        "endpoint": "endpoint",
        "use-emulator": "use_emulator",
    },
    StoreFamily.GOOGLE: {
        "service-account": "service_account",
        "service-account-path": "service_account",
        "auth-service-account-json-keyfile": "service_account",
        "service-account-key": "service_account_key",
        "application-credentials": "application_credentials",
    },
    StoreFamily.MEMORY: {},
}
COMMON: Mapping[str, str] = {"timeout": "timeout", "max-retries": "max_retries"}
"""Options of all families: ``storage.timeout`` (a duration) and ``storage.max-retries``."""
_COMMON_PREFIX = "storage."
_AZURE_ACCOUNT = re.compile(r"fs\.azure\.account\.key\.[a-z0-9.-]+", re.IGNORECASE)


def canonical(name: str) -> tuple[StoreFamily | None, str]:
    """Return the family and our name of an option.

    Family None: the option applies to all. Raises ``UnsupportedOption`` with the nearest known name.

    >>> canonical("fs.s3a.path.style.access"), canonical("AWS_SECRET_ACCESS_KEY")[1], canonical("storage.timeout")
    ((<StoreFamily.S3: 's3'>, 'path_style'), 'secret_access_key', (None, 'timeout'))
    """
    lower = name.lower()
    if _AZURE_ACCOUNT.fullmatch(name):
        return StoreFamily.AZURE, "account_key"
    if lower.startswith(_COMMON_PREFIX):
        found = _known(COMMON).get(_without_separators(lower.removeprefix(_COMMON_PREFIX)))
        if found is not None:
            return None, found
    for family, prefixes in STORE_PREFIXES.items():
        prefix = next((prefix for prefix in prefixes if lower.startswith(prefix)), None)
        if prefix is not None:
            found = _known(NAMES[family]).get(_without_separators(lower.removeprefix(prefix)))
            if found is not None:
                return family, found
    raise UnsupportedOption(name, f"is not a store option{_nearest(lower)}")


def spellings_of(family: StoreFamily) -> tuple[str, ...]:
    """Return the names of a family's options used in messages."""
    prefix = {StoreFamily.S3: "s3.", StoreFamily.AZURE: "azure.", StoreFamily.GOOGLE: "gs."}.get(family, "")
    return (*(prefix + name for name in NAMES[family]), *(_COMMON_PREFIX + name for name in COMMON))


def _without_separators(text: str) -> str:
    return re.sub(r"[-_.]", "", text)


def _known(names: Mapping[str, str]) -> dict[str, str]:
    return {_without_separators(name): ours for name, ours in names.items()}


def _nearest(name: str) -> str:
    every = [spelled for family in NAMES for spelled in spellings_of(family)]
    near = difflib.get_close_matches(name, every, 1, 0.6)
    return f"; did you mean '{near[0]}'?" if near else f"; options of S3 are {', '.join(spellings_of(StoreFamily.S3))}"


__all__ = ["COMMON", "NAMES", "STORE_PREFIXES", "canonical", "spellings_of"]
