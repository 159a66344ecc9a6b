"""What people say of a store: endpoint, region, credentials. Checked here, held apart from the options of tables, never shown.

What is not said comes from the environment of the process that touches the files (``AWS_*``, ``AZURE_*``, ``GOOGLE_*``), or from the
machine's role, as the client library finds it.
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
_NOBODY = frozenset({"AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider"})
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
    """Whether the list ``classes`` means that nobody signs; ``has_keys``: an access key is given beside it.

    Packages of the classes do not count, for they differ between versions. Raises ``UnsupportedOption`` for a class that is none of those,
    and for a list that would not take the keys that are given.

    >>> is_anonymous("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider", has_keys=False)
    True
    """
    names = [part.strip().rpartition(".")[2].rpartition("$")[2] for part in classes.split(",") if part.strip()]
    for name in names:
        if name not in _GIVEN | _NOBODY | _FOUND | _EVERY:
            known = ", ".join(sorted(_GIVEN | _NOBODY | _FOUND | _EVERY))
            raise UnsupportedOption(
                option, f"is of no class whose credentials are found here, which are {known}; give keys or a token instead"
            )
    wanted = set(names)
    if has_keys:
        if not wanted & (_GIVEN | _EVERY):
            raise UnsupportedOption(option, "is of no class that takes keys, and there are some: leave one or the other out")
        return False
    if wanted & _NOBODY and wanted & (_FOUND | _EVERY):
        raise UnsupportedOption(option, "is of several classes, of which one signs nothing: name that alone, or the others")
    if wanted and wanted <= _GIVEN:
        raise UnsupportedOption(option, "is of a class that takes keys, and there are none beside it: 's3.access-key', 's3.secret-key'")
    return bool(wanted & _NOBODY)


_BOOLEANS = {"true": True, "false": False}
_SWITCHES = frozenset({"path_style", "ssl", "skip_signature", "use_emulator"})
_OPEN = frozenset({"endpoint", "region", "path_style", "ssl", "skip_signature", "timeout", "max_retries", "account_name", "use_emulator"})
"""What may be read by everybody; all else is a secret or says whose."""
_ENDPOINTS = {
    StoreFamily.S3: ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    StoreFamily.AZURE: ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
"""Variables by which the client library finds an endpoint, the first counts."""
_TIMEOUT_MILLIS = 30_000
_RETRIES = 8
_MOST_RETRIES = 100


@dataclass(frozen=True, slots=True, repr=False)
class StorageOptions:
    """Options of stores, by family and our name of each; equal options are one store to the process."""

    values: tuple[tuple[StoreFamily | None, str, str], ...] = ()

    @classmethod
    def of(cls, given: Mapping[Any, Any] | None) -> StorageOptions:
        """What was said, checked. Raises ``UnsupportedOption`` for a name that there is not, ``InvalidArgument`` for a value of another kind.

        >>> StorageOptions.of({"s3.endpoint": "http://127.0.0.1:9000", "s3.access-key": "AKIA"})
        StorageOptions(endpoint='http://127.0.0.1:9000', access_key_id=***)
        """
        if given is None:
            return cls()
        if type(given) is not dict:
            given = _pairs(given)
        if not all(isinstance(name, str) for name in given):
            raise InvalidArgument("storage_options are names and values: {'s3.endpoint': ..., 's3.access-key': ...}")
        found: dict[tuple[StoreFamily | None, str], tuple[str, str]] = {}
        for name, value in given.items():
            key = canonical(name)
            text = _text(name, key[1], value)
            earlier, told = found.setdefault(key, (name, text))
            if told != text:
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
        """The values that nobody may read anywhere, the longest first; names of keys are among them."""
        return tuple(sorted({value for _, name, value in self.values if name not in _OPEN and value}, key=len, reverse=True))

    @property
    def timeout_millis(self) -> int:
        """How long one request may take."""
        told = self._of(None).get("timeout")
        return _TIMEOUT_MILLIS if told is None else parse_duration_millis(told, "storage.timeout")

    @property
    def max_retries(self) -> int:
        """How often one request is made again."""
        return int(self._of(None).get("max_retries", _RETRIES))

    def fingerprint(self, place: ObjectPlace) -> int:
        """Tells a bucket, reached in this way, from every other that this process reaches under the same name."""
        told = repr((place.root, sorted(self._of(place.family).items())))
        return int.from_bytes(hashlib.sha256(told.encode()).digest()[:7], "big")

    def config(self, place: ObjectPlace) -> dict[str, Any]:
        """The client library's own configuration for a bucket. Raises ``InvalidArgument`` for what does not fit together."""
        told = self._of(place.family)
        match place.family:
            case StoreFamily.S3:
                return dict(_s3(place, told))
            case StoreFamily.AZURE:
                return dict(_azure(place, told))
            case StoreFamily.GOOGLE:
                return told
            case StoreFamily.MEMORY:
                return {}

    def allows_http(self, place: ObjectPlace) -> bool:
        """Whether the endpoint is one without encryption, which only who names it can want."""
        told = self._of(place.family).get("endpoint") or next(
            (os.environ[name] for name in _ENDPOINTS.get(place.family, ()) if os.environ.get(name)), ""
        )
        return str(told).startswith("http://") or self._of(place.family).get("ssl") == "false" or "use_emulator" in self._of(place.family)

    def _of(self, family: StoreFamily | None) -> dict[str, str]:
        return {name: value for whose, name, value in self.values if whose is family}


def _text(name: str, ours: str, value: object) -> str:
    """The option's value as text. Its own text is in no message: it may be a secret under a wrong name."""
    if ours in _SWITCHES:
        text = str(value).lower()
        if text not in _BOOLEANS:
            raise InvalidArgument(f"storage_options: '{name}' is true or false")
        return text
    if not isinstance(value, str | int) or isinstance(value, bool) or "\0" in str(value) or "\n" in str(value):
        raise InvalidArgument(f"storage_options: the value of '{name}' is one line of text, not {type(value).__name__}")
    if ours == "max_retries" and not (str(value).isdecimal() and int(value) <= _MOST_RETRIES):
        raise InvalidArgument(f"storage_options: '{name}' is a number from 0 to {_MOST_RETRIES}")
    if ours == "timeout":
        parse_duration_millis(str(value), name)
    return str(value)


def _resolve_providers(found: dict[tuple[StoreFamily | None, str], tuple[str, str]]) -> None:
    """Put what Hadoop's list of classes means into its place."""
    told = found.pop((StoreFamily.S3, "credentials_provider"), None)
    if told is not None and is_anonymous(*told, has_keys=(StoreFamily.S3, "access_key_id") in found):
        found.setdefault((StoreFamily.S3, "skip_signature"), (told[0], "true"))


def _pairs(given: object) -> dict[Any, Any]:
    try:
        pairs: dict[Any, Any] = dict(given)  # type: ignore[call-overload]  # whatever is no mapping is refused here
    except (TypeError, ValueError):
        raise InvalidArgument("storage_options are names and values: {'s3.endpoint': ..., 's3.access-key': ...}") from None
    return pairs


def _s3(place: ObjectPlace, told: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    endpoint = told.get("endpoint")
    path_style = _BOOLEANS[told["path_style"]] if "path_style" in told else place.scheme != "oss"
    if ("access_key_id" in told) != ("secret_access_key" in told):
        raise InvalidArgument("storage_options: an access key and its secret go together ('s3.access-key', 's3.secret-key')")
    if endpoint is not None:
        scheme, mark, host = endpoint.rpartition("://")
        scheme = scheme if mark else "http" if told.get("ssl") == "false" else "https"
        yield "endpoint", f"{scheme}://{host}" if path_style else f"{scheme}://{place.bucket}.{host}"
    elif place.scheme == "oss":
        raise UnsupportedOption("path", "oss: is reached by its S3 face and needs an endpoint: storage_options={'fs.oss.endpoint': ...}")
    yield "virtual_hosted_style_request", not path_style
    if "region" in told:
        yield "region", told["region"]
    elif not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        yield "region", "us-east-1"
    if "skip_signature" in told:
        yield "skip_signature", _BOOLEANS[told["skip_signature"]]
    kept = ("access_key_id", "secret_access_key", "session_token", "role_arn", "role_session_name", "web_identity_token_file")
    yield from ((name, told[name]) for name in kept if name in told)


def _azure(place: ObjectPlace, told: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    if place.account:
        yield "account_name", place.account.partition(".")[0]
    elif "account_name" in told:
        yield "account_name", told["account_name"]
    if "use_emulator" in told:
        yield "use_emulator", _BOOLEANS[told["use_emulator"]]
    kept = ("account_key", "sas_token", "client_id", "client_secret", "tenant_id", "endpoint")
    yield from ((name, told[name]) for name in kept if name in told)


__all__ = ["StorageOptions", "is_anonymous"]
