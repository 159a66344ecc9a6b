"""Options of a store: endpoint, region, credentials.

They are validated, kept separate from table options, and never shown. The client library finds other
settings in the environment of the process that accesses the files (``AWS_*``, ``AZURE_*``, ``GOOGLE_*``), or in the machine's role.


Option names may be those of Paimon, Hadoop, pypaimon and the vendors' environment variables. A name is a prefix for the family and a rest for the
option. In the rest, case, ``-``, ``_`` and ``.`` are ignored, so that ``s3.access-key``, ``fs.s3a.access.key``, ``fs.s3.accessKeyId`` and
``AWS_ACCESS_KEY_ID`` are the same option.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from manifest.options.durations import parse_duration_millis
from manifest.storage.hdfs_options import PREFIXES, hdfs_name
from manifest.storage.schemes import ObjectPlace, StoreFamily
from paimon_base.errors import InvalidArgument, UnsupportedOption
from paimon_base.redaction import HIDDEN

_GIVEN = frozenset(
    {"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider", "BasicAWSCredentialsProvider", "StaticCredentialsProvider"}
)
_ANONYMOUS = frozenset({"AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider"})
_FOUND = frozenset(
    {
        "EnvironmentVariableCredentialsProvider",
        "ContainerCredentialsProvider",
        "EC2ContainerCredentialsProviderWrapper",
        "IAMInstanceCredentialsProvider",
        "InstanceProfileCredentialsProvider",
        "WebIdentityTokenCredentialsProvider",
        "WebIdentityTokenFileCredentialsProvider",
    }
)
_EVERY = frozenset({"DefaultAWSCredentialsProviderChain", "DefaultCredentialsProvider"})
STORE_PREFIXES: Mapping[StoreFamily, tuple[str, ...]] = {
    StoreFamily.S3: ("fs.s3a.", "fs.s3.", "s3a.", "s3.", "fs.oss.", "oss.", "aws_"),
    StoreFamily.AZURE: ("fs.azure.", "azure.", "azure_storage_", "azure_"),
    StoreFamily.GOOGLE: ("fs.gs.", "gs.", "gcs.", "google_"),
    StoreFamily.MEMORY: (),
    StoreFamily.HDFS: PREFIXES,
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
    StoreFamily.HDFS: {},
}
COMMON: Mapping[str, str] = {"timeout": "timeout", "max-retries": "max_retries"}
"""Options of all families: ``storage.timeout`` (a duration) and ``storage.max-retries``."""
_COMMON_PREFIX = "storage."
_AZURE_ACCOUNT = re.compile(r"fs\.azure\.account\.key\.[a-z0-9.-]+", re.IGNORECASE)


def is_anonymous(option: str, classes: str, *, has_keys: bool) -> bool:
    """Return whether the provider list ``classes`` means unsigned requests.

    Ignores packages, which differ between versions. Raises ``UnsupportedOption`` for an unknown class, and for a list that excludes the given
    keys.

    Args:
        option: Name of the option, for errors.
        classes: Comma-separated class names.
        has_keys: Whether an access key is given too.

    >>> is_anonymous("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider", has_keys=False)
    True
    """
    names = [part.strip().rpartition(".")[2].rpartition("$")[2] for part in classes.split(",") if part.strip()]
    for name in names:
        if name not in _GIVEN | _ANONYMOUS | _FOUND | _EVERY:
            supported = ", ".join(sorted(_GIVEN | _ANONYMOUS | _FOUND | _EVERY))
            raise UnsupportedOption(option, f"is not a supported class; use one of {supported}, or pass keys or a token instead")
    class_names = set(names)
    if has_keys:
        if not class_names & (_GIVEN | _EVERY):
            raise UnsupportedOption(option, "is not a class that uses keys, but keys are given; remove one or the other")
        return False
    if class_names & _ANONYMOUS and class_names & (_FOUND | _EVERY):
        raise UnsupportedOption(option, "cannot list an anonymous class together with others; use either the anonymous one or the others")
    if class_names and class_names <= _GIVEN:
        raise UnsupportedOption(option, "is a class that uses keys, but none are given; set 's3.access-key' and 's3.secret-key'")
    return bool(class_names & _ANONYMOUS)


_BOOLEANS = {"true": True, "false": False}
_SWITCHES = frozenset({"path_style", "ssl", "skip_signature", "use_emulator"})
_OPEN = frozenset({"endpoint", "region", "path_style", "ssl", "skip_signature", "timeout", "max_retries", "account_name", "use_emulator"})
"""Options that may be shown, with those of HDFS. All others are secrets or identify an account."""
_ENDPOINTS = {
    StoreFamily.S3: ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    StoreFamily.AZURE: ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
"""Environment variables of the client library's endpoint, in order of priority."""
_TIMEOUT_MILLIS = 30_000
_RETRIES = 8
_MOST_RETRIES = 100


@dataclass(frozen=True, slots=True, repr=False)
class StorageOptions:
    """Options of stores as (family, our name, value).

    Equal options mean the same store within a process.
    """

    values: tuple[tuple[StoreFamily | None, str, str], ...] = ()

    @classmethod
    def of(cls, options: Mapping[Any, Any] | None) -> StorageOptions:
        """Validate a user's options.

        Raises ``UnsupportedOption`` for an unknown name, ``InvalidArgument`` for an invalid value.

        >>> StorageOptions.of({"s3.endpoint": "http://127.0.0.1:9000", "s3.access-key": "AKIA"})
        StorageOptions(endpoint='http://127.0.0.1:9000', access_key_id=***)
        """
        if options is None:
            return cls()
        if type(options) is not dict:
            options = _pairs(options)
        if not all(isinstance(name, str) for name in options):
            raise InvalidArgument("storage_options must be a mapping of names to values: {'s3.endpoint': ..., 's3.access-key': ...}")
        text_by_option: dict[tuple[StoreFamily | None, str], tuple[str, str]] = {}
        for name, value in options.items():
            key = canonical(name)
            text = _text(name, key[1], value)
            earlier, earlier_text = text_by_option.setdefault(key, (name, text))
            if earlier_text != text:
                raise InvalidArgument(f"storage_options: '{earlier}' and '{name}' are the same option, with two values")
        _resolve_providers(text_by_option)
        return cls(tuple((family, name, text) for (family, name), (_, text) in text_by_option.items()))

    def __repr__(self) -> str:
        return f"StorageOptions({', '.join(f'{name}={value!r}' if _is_open(family, name) else f'{name}={HIDDEN}' for family, name, value in self.values)})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return StorageOptions, (self.values,)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be shown, longest first.

        Includes names of keys.
        """
        return tuple(sorted({value for family, name, value in self.values if value and not _is_open(family, name)}, key=len, reverse=True))

    @property
    def timeout_millis(self) -> int:
        """Timeout of one request."""
        text = self._of(None).get("timeout")
        return _TIMEOUT_MILLIS if text is None else parse_duration_millis(text, "storage.timeout")

    @property
    def max_retries(self) -> int:
        """Maximal number of retries of one request."""
        return int(self._of(None).get("max_retries", _RETRIES))

    @property
    def hdfs(self) -> dict[str, str]:
        """Options of HDFS, by Hadoop's names."""
        return self._of(StoreFamily.HDFS)

    def fingerprint(self, location: ObjectPlace) -> int:
        """Return a number that identifies a bucket with these options."""
        options = repr((location.root, sorted(self._of(location.family).items())))
        return int.from_bytes(hashlib.sha256(options.encode()).digest()[:7], "big")

    def config(self, location: ObjectPlace) -> dict[str, Any]:
        """Return the client library's configuration for a bucket.

        Raises ``InvalidArgument`` for contradictory options.
        """
        options = self._of(location.family)
        match location.family:
            case StoreFamily.S3:
                return dict(_s3(location, options))
            case StoreFamily.AZURE:
                return dict(_azure(location, options))
            case StoreFamily.GOOGLE:
                return options
            case StoreFamily.MEMORY | StoreFamily.HDFS:
                return {}

    def allows_http(self, location: ObjectPlace) -> bool:
        """Return whether the user named an unencrypted endpoint."""
        options = self._of(location.family).get("endpoint") or next(
            (os.environ[name] for name in _ENDPOINTS.get(location.family, ()) if os.environ.get(name)), ""
        )
        return (
            str(options).startswith("http://")
            or self._of(location.family).get("ssl") == "false"
            or "use_emulator" in self._of(location.family)
        )

    def _of(self, family: StoreFamily | None) -> dict[str, str]:
        return {name: value for whose, name, value in self.values if whose is family}


def _is_open(family: StoreFamily | None, name: str) -> bool:
    return name in _OPEN or family is StoreFamily.HDFS


def _text(name: str, ours: str, value: object) -> str:
    """Return the option's value as text."""
    # Errors do not contain the value: it may be a secret under a wrong name.
    if ours in _SWITCHES:
        text = str(value).lower()
        if text not in _BOOLEANS:
            raise InvalidArgument(f"storage_options: '{name}' must be 'true' or 'false'")
        return text
    if not isinstance(value, str | int) or isinstance(value, bool) or "\0" in str(value) or "\n" in str(value):
        raise InvalidArgument(f"storage_options: '{name}' must be one line of text, not {type(value).__name__}")
    if ours == "max_retries" and not (str(value).isdecimal() and int(value) <= _MOST_RETRIES):
        raise InvalidArgument(f"storage_options: '{name}' must be a number from 0 to {_MOST_RETRIES}")
    if ours == "timeout":
        parse_duration_millis(str(value), name)
    return str(value)


def _resolve_providers(text_by_option: dict[tuple[StoreFamily | None, str], tuple[str, str]]) -> None:
    """Replace Hadoop's list of provider classes by its meaning."""
    options = text_by_option.pop((StoreFamily.S3, "credentials_provider"), None)
    if options is not None and is_anonymous(*options, has_keys=(StoreFamily.S3, "access_key_id") in text_by_option):
        text_by_option.setdefault((StoreFamily.S3, "skip_signature"), (options[0], "true"))


def _pairs(options: object) -> dict[Any, Any]:
    try:
        pairs: dict[Any, Any] = dict(options)  # type: ignore[call-overload]  # raises unless it is a mapping
    except (TypeError, ValueError):
        raise InvalidArgument("storage_options must be a mapping of names to values: {'s3.endpoint': ..., 's3.access-key': ...}") from None
    return pairs


def _s3(location: ObjectPlace, options: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    endpoint = options.get("endpoint")
    path_style = _BOOLEANS[options["path_style"]] if "path_style" in options else location.scheme != "oss"
    if ("access_key_id" in options) != ("secret_access_key" in options):
        raise InvalidArgument("storage_options: set both the access key and its secret ('s3.access-key', 's3.secret-key')")
    if endpoint is not None:
        scheme, mark, host = endpoint.rpartition("://")
        scheme = scheme if mark else "http" if options.get("ssl") == "false" else "https"
        yield "endpoint", f"{scheme}://{host}" if path_style else f"{scheme}://{location.bucket}.{host}"
    elif location.scheme == "oss":
        raise UnsupportedOption("path", "'oss:' uses the S3 protocol and needs an endpoint: storage_options={'fs.oss.endpoint': ...}")
    yield "virtual_hosted_style_request", not path_style
    if "region" in options:
        yield "region", options["region"]
    elif not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        yield "region", "us-east-1"
    if "skip_signature" in options:
        yield "skip_signature", _BOOLEANS[options["skip_signature"]]
    passed_names = ("access_key_id", "secret_access_key", "session_token", "role_arn", "role_session_name", "web_identity_token_file")
    yield from ((name, options[name]) for name in passed_names if name in options)


def _azure(location: ObjectPlace, options: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    if location.account:
        yield "account_name", location.account.partition(".")[0]
    elif "account_name" in options:
        yield "account_name", options["account_name"]
    if "use_emulator" in options:
        yield "use_emulator", _BOOLEANS[options["use_emulator"]]
    passed_names = ("account_key", "sas_token", "client_id", "client_secret", "tenant_id", "endpoint")
    yield from ((name, options[name]) for name in passed_names if name in options)


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
        option = _known(COMMON).get(_without_separators(lower.removeprefix(_COMMON_PREFIX)))
        if option is not None:
            return None, option
    hadoop = hdfs_name(name)
    if hadoop is not None:
        return StoreFamily.HDFS, hadoop
    for family, prefixes in STORE_PREFIXES.items():
        prefix = next((prefix for prefix in prefixes if lower.startswith(prefix)), None)
        if prefix is not None:
            option = _known(NAMES[family]).get(_without_separators(lower.removeprefix(prefix)))
            if option is not None:
                return family, option
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
