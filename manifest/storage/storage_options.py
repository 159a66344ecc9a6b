"""Options of a store: endpoint, region, credentials.

They are validated, kept separate from table options, and never shown. The client library finds other
settings in the environment of the process that accesses the files (``AWS_*``, ``AZURE_*``, ``GOOGLE_*``), or in the machine's role.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fileindex.base.errors import InvalidArgument, UnsupportedOption
from fileindex.base.redaction import HIDDEN
from manifest.options.durations import parse_duration_millis
from manifest.storage.option_names import canonical
from manifest.storage.schemes import ObjectPlace, StoreFamily

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
            known = ", ".join(sorted(_GIVEN | _ANONYMOUS | _FOUND | _EVERY))
            raise UnsupportedOption(option, f"is not a supported class; use one of {known}, or pass keys or a token instead")
    wanted = set(names)
    if has_keys:
        if not wanted & (_GIVEN | _EVERY):
            raise UnsupportedOption(option, "is not a class that uses keys, but keys are given; remove one or the other")
        return False
    if wanted & _ANONYMOUS and wanted & (_FOUND | _EVERY):
        raise UnsupportedOption(option, "cannot list an anonymous class together with others; use either the anonymous one or the others")
    if wanted and wanted <= _GIVEN:
        raise UnsupportedOption(option, "is a class that uses keys, but none are given; set 's3.access-key' and 's3.secret-key'")
    return bool(wanted & _ANONYMOUS)


_BOOLEANS = {"true": True, "false": False}
_SWITCHES = frozenset({"path_style", "ssl", "skip_signature", "use_emulator"})
_OPEN = frozenset({"endpoint", "region", "path_style", "ssl", "skip_signature", "timeout", "max_retries", "account_name", "use_emulator"})
"""Options that may be shown. All others are secrets or identify an account."""
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
    def of(cls, given: Mapping[Any, Any] | None) -> StorageOptions:
        """Validate a user's options.

        Raises ``UnsupportedOption`` for an unknown name, ``InvalidArgument`` for an invalid value.

        >>> StorageOptions.of({"s3.endpoint": "http://127.0.0.1:9000", "s3.access-key": "AKIA"})
        StorageOptions(endpoint='http://127.0.0.1:9000', access_key_id=***)
        """
        if given is None:
            return cls()
        if type(given) is not dict:
            given = _pairs(given)
        if not all(isinstance(name, str) for name in given):
            raise InvalidArgument("storage_options must be a mapping of names to values: {'s3.endpoint': ..., 's3.access-key': ...}")
        found: dict[tuple[StoreFamily | None, str], tuple[str, str]] = {}
        for name, value in given.items():
            key = canonical(name)
            text = _text(name, key[1], value)
            earlier, known = found.setdefault(key, (name, text))
            if known != text:
                raise InvalidArgument(f"storage_options: '{earlier}' and '{name}' are the same option, with two values")
        _resolve_providers(found)
        return cls(tuple((family, name, text) for (family, name), (_, text) in found.items()))

    def __repr__(self) -> str:
        return (
            f"StorageOptions({', '.join(f'{name}={value!r}' if name in _OPEN else f'{name}={HIDDEN}' for _, name, value in self.values)})"
        )

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return StorageOptions, (self.values,)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be shown, longest first.

        Includes names of keys.
        """
        return tuple(sorted({value for _, name, value in self.values if name not in _OPEN and value}, key=len, reverse=True))

    @property
    def timeout_millis(self) -> int:
        """Timeout of one request."""
        text = self._of(None).get("timeout")
        return _TIMEOUT_MILLIS if text is None else parse_duration_millis(text, "storage.timeout")

    @property
    def max_retries(self) -> int:
        """Maximal number of retries of one request."""
        return int(self._of(None).get("max_retries", _RETRIES))

    def fingerprint(self, place: ObjectPlace) -> int:
        """Return a number that identifies a bucket with these options."""
        options = repr((place.root, sorted(self._of(place.family).items())))
        return int.from_bytes(hashlib.sha256(options.encode()).digest()[:7], "big")

    def config(self, place: ObjectPlace) -> dict[str, Any]:
        """Return the client library's configuration for a bucket.

        Raises ``InvalidArgument`` for contradictory options.
        """
        options = self._of(place.family)
        match place.family:
            case StoreFamily.S3:
                return dict(_s3(place, options))
            case StoreFamily.AZURE:
                return dict(_azure(place, options))
            case StoreFamily.GOOGLE:
                return options
            case StoreFamily.MEMORY:
                return {}

    def allows_http(self, place: ObjectPlace) -> bool:
        """Return whether the user named an unencrypted endpoint."""
        options = self._of(place.family).get("endpoint") or next(
            (os.environ[name] for name in _ENDPOINTS.get(place.family, ()) if os.environ.get(name)), ""
        )
        return (
            str(options).startswith("http://") or self._of(place.family).get("ssl") == "false" or "use_emulator" in self._of(place.family)
        )

    def _of(self, family: StoreFamily | None) -> dict[str, str]:
        return {name: value for whose, name, value in self.values if whose is family}


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


def _resolve_providers(found: dict[tuple[StoreFamily | None, str], tuple[str, str]]) -> None:
    """Replace Hadoop's list of provider classes by its meaning."""
    options = found.pop((StoreFamily.S3, "credentials_provider"), None)
    if options is not None and is_anonymous(*options, has_keys=(StoreFamily.S3, "access_key_id") in found):
        found.setdefault((StoreFamily.S3, "skip_signature"), (options[0], "true"))


def _pairs(given: object) -> dict[Any, Any]:
    try:
        pairs: dict[Any, Any] = dict(given)  # type: ignore[call-overload]  # raises unless it is a mapping
    except (TypeError, ValueError):
        raise InvalidArgument("storage_options must be a mapping of names to values: {'s3.endpoint': ..., 's3.access-key': ...}") from None
    return pairs


def _s3(place: ObjectPlace, options: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    endpoint = options.get("endpoint")
    path_style = _BOOLEANS[options["path_style"]] if "path_style" in options else place.scheme != "oss"
    if ("access_key_id" in options) != ("secret_access_key" in options):
        raise InvalidArgument("storage_options: set both the access key and its secret ('s3.access-key', 's3.secret-key')")
    if endpoint is not None:
        scheme, mark, host = endpoint.rpartition("://")
        scheme = scheme if mark else "http" if options.get("ssl") == "false" else "https"
        yield "endpoint", f"{scheme}://{host}" if path_style else f"{scheme}://{place.bucket}.{host}"
    elif place.scheme == "oss":
        raise UnsupportedOption("path", "'oss:' uses the S3 protocol and needs an endpoint: storage_options={'fs.oss.endpoint': ...}")
    yield "virtual_hosted_style_request", not path_style
    if "region" in options:
        yield "region", options["region"]
    elif not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        yield "region", "us-east-1"
    if "skip_signature" in options:
        yield "skip_signature", _BOOLEANS[options["skip_signature"]]
    kept = ("access_key_id", "secret_access_key", "session_token", "role_arn", "role_session_name", "web_identity_token_file")
    yield from ((name, options[name]) for name in kept if name in options)


def _azure(place: ObjectPlace, options: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    if place.account:
        yield "account_name", place.account.partition(".")[0]
    elif "account_name" in options:
        yield "account_name", options["account_name"]
    if "use_emulator" in options:
        yield "use_emulator", _BOOLEANS[options["use_emulator"]]
    kept = ("account_key", "sas_token", "client_id", "client_secret", "tenant_id", "endpoint")
    yield from ((name, options[name]) for name in kept if name in options)


__all__ = ["StorageOptions", "is_anonymous"]
