"""Options of a REST catalog, by Paimon's names.

Separate from the options of the tables' storage.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from manifest.options.option_reader import OptionReader
from manifest.storage.schemes import scheme_of
from manifest.storage.session_options import refuse_server_credentials
from manifest.storage.storage_options import StorageOptions, canonical
from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon.plugins.catalogs.rest.dlf import NAMES, PREFIX, DlfOptions, dlf_options

HEADER = "header."
_OURS = (
    "metastore",
    "uri",
    "warehouse",
    "token.provider",
    "token",
    "prefix",
    "data-token.enabled",
    "rest.client.connection-timeout",
    "rest.client.read-timeout",
    "rest.client.max-retries",
)
_CACHE = "io-cache."
"""Prefix of another engine's cache."""
_OSS_ENDPOINT = "dlf.oss-endpoint"
_MOST_RETRIES = 20
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t -~]*")


@dataclass(frozen=True)
class RestOptions:
    """Connection options of a server. ``token`` and the keys of ``dlf`` are never shown.

    ``prefix`` is the path component between version and resource, which the server may set. ``storage`` has options of stores.
    """

    uri: str
    warehouse: str = ""
    token: str = field(default="", repr=False)
    prefix: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    data_tokens: bool = False
    connect_seconds: float = 10.0
    read_seconds: float = 60.0
    max_retries: int = 5
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    dlf: DlfOptions | None = field(default=None, repr=False)
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options as given by the user."""
    of_session: bool = field(default=False, repr=False)
    """Whether a client gave them for its session: they must not use credentials of the process that works for it."""

    @classmethod
    def of(cls, catalog_options: Mapping[str, object]) -> RestOptions:
        """Parse the user's options.

        Raises ``UnsupportedOption`` for an unknown name, with the nearest known one. Raises ``InvalidArgument`` for a missing option.

        >>> RestOptions.of({"metastore": "rest", "uri": "localhost:8080", "token.provider": "bear", "token": "secret"})
        RestOptions(uri='http://localhost:8080', warehouse='', prefix='', data_tokens=False, connect_seconds=10.0, read_seconds=60.0, max_retries=5)
        """
        texts = {name: _text(name, value) for name, value in catalog_options.items()}
        for name in texts:
            if name not in _OURS and not name.startswith((HEADER, PREFIX)):
                _check_store_option(name)
        if texts.get("metastore", "rest") != "rest":
            raise UnsupportedOption("metastore", f"'{texts['metastore']}' is not supported; use 'filesystem', 'hive', 'jdbc' or 'rest'")
        if not texts.get("uri", "").strip():
            raise InvalidArgument("a REST catalog needs option 'uri': {'metastore': 'rest', 'uri': 'http://host:port', ...}")
        return _build(texts, texts)

    def merge(self, defaults: Mapping[str, str], overrides: Mapping[str, str]) -> RestOptions:
        """Return the options merged with the server's.

        Defaults apply where the user set nothing, overrides always. Unknown names, of other engines, are ignored. Raises ``InvalidArgument``
        for a value that cannot be sent.

        >>> RestOptions.of({"uri": "http://c", "prefix": "ours"}).merge({"prefix": "a", "any": "thing"}, {"data-token.enabled": "true"})
        RestOptions(uri='http://c', warehouse='', prefix='ours', data_tokens=True, connect_seconds=10.0, read_seconds=60.0, max_retries=5)
        """
        client_options = {name: self.given[name] for name in ("uri", "token", "token.provider", *NAMES) if name in self.given}
        merged = {**defaults, **self.given, **overrides, **client_options}
        theirs = {name for name in merged if name.startswith(PREFIX) and name not in self.given and name != _OSS_ENDPOINT}
        built = _build({name: value for name, value in merged.items() if name not in theirs}, self.given)
        return replace(built, of_session=self.of_session)

    def for_session(self) -> RestOptions:
        """Return the options for the processes of a session.

        Raises ``InvalidArgument`` for options that name a file or a role of this machine.
        """
        if self.dlf is not None and self.dlf.keys is None:
            raise InvalidArgument(
                "'dlf.token-path' and 'dlf.token-loader' read keys of one machine, and Spark's tasks run on others; "
                "give 'dlf.access-key-id' and 'dlf.access-key-secret'"
            )
        return replace(self, of_session=True)

    def store_options(self, path: str, lent: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the options of the store at ``path``, with those that the server lends for it.

        Raises ``InvalidArgument`` if they would use credentials of this process for a session.
        """
        options = {**self.storage, **of_stores(lent or {})}
        if (endpoint := self.given.get(_OSS_ENDPOINT)) is not None:  # wins over the server's, as in other engines
            options["fs.oss.endpoint"] = endpoint
        if self.of_session and scheme_of(path) not in {None, "file"}:
            refuse_server_credentials(StorageOptions.of(options))
        return options


def _build(texts: Mapping[str, str], given: Mapping[str, str]) -> RestOptions:
    reader = OptionReader(texts)
    uri = _address(texts["uri"])
    dlf = dlf_options(texts, uri)
    return RestOptions(
        uri=uri,
        warehouse=reader.text("warehouse"),
        token="" if dlf is not None else _token(texts),
        prefix=reader.text("prefix"),
        headers=_headers(reader.prefixed(HEADER), given),
        data_tokens=reader.flag("data-token.enabled", default=False),
        connect_seconds=reader.seconds("rest.client.connection-timeout", RestOptions.connect_seconds),
        read_seconds=reader.seconds("rest.client.read-timeout", RestOptions.read_seconds),
        max_retries=reader.number("rest.client.max-retries", RestOptions.max_retries, 0, _MOST_RETRIES),
        storage=of_stores(texts) | ({"fs.oss.endpoint": texts[_OSS_ENDPOINT]} if _OSS_ENDPOINT in texts else {}),
        dlf=dlf,
        given=given,
    )


def _headers(texts: Mapping[str, str], client_options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the HTTP headers, if all can be sent.

    Raises ``InvalidArgument`` for one that cannot.
    """
    for name, value in texts.items():
        option = f"option {HEADER + name!r}{'' if HEADER + name in client_options else ', which the server sets,'}"
        if _HEADER_NAME.fullmatch(name) is None:
            raise InvalidArgument(f"{option} names no HTTP header: use letters, digits and '-' after '{HEADER}'")
        # The error does not contain the value: it may be a secret.
        if _HEADER_VALUE.fullmatch(value) is None:
            raise InvalidArgument(f"{option} is sent in HTTP headers: use one line of printable ASCII characters")
    return texts


def _token(texts: Mapping[str, str]) -> str:
    provider = texts.get("token.provider", "bear")
    if provider != "bear":
        raise UnsupportedOption(
            "token.provider", f"the provider '{provider}' is not supported; use 'bear' (bearer token) or 'dlf' (signature)"
        )
    if not texts.get("token"):
        if "token.provider" in texts:
            raise InvalidArgument("'token.provider' is 'bear', but option 'token' is missing")
        return ""
    return texts["token"]


def _address(uri: str) -> str:
    url = uri.strip().rstrip("/")
    url = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fine = False
    if not fine or parts.username is not None or parts.query or parts.fragment:
        raise InvalidArgument("option 'uri' must be http://host:port or https://host/path, without credentials")
    return url


def _text(name: str, value: object) -> str:
    """Return the text of an option's value."""
    # Errors do not contain the value: it may be a secret.
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int) or any(letter in str(value) for letter in "\0\r\n"):
        raise InvalidArgument(f"option '{name}' must be one line of text, not {type(value).__name__}")
    # The error of http.client would contain the value.
    if (name in {"uri", "token"} or name.startswith((HEADER, PREFIX))) and not str(value).isascii():
        raise InvalidArgument(f"option '{name}' is sent in HTTP headers: use ASCII characters only")
    return str(value)


def _check_store_option(name: str) -> None:
    """Raise ``UnsupportedOption`` unless ``name`` is a store option."""
    if name.startswith(_CACHE):
        raise UnsupportedOption(name, "this client has no such cache")
    try:
        canonical(name)
    except UnsupportedOption:
        near = difflib.get_close_matches(name, _OURS, 1, 0.6)
        if not near:
            raise
        raise UnsupportedOption(name, f"unknown option of a REST catalog or a store; did you mean '{near[0]}'?") from None


def of_stores(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the options of stores among a server's options."""
    store_options: dict[str, str] = {}
    for name, value in texts.items():
        try:
            canonical(name)
        except UnsupportedOption:
            continue
        store_options[name] = value
    return store_options
