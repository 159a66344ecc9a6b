"""The options of a REST catalog, by Paimon's names: how its server is reached, apart from those of the store that tables lie in."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fileindex.base.errors import InvalidArgument, UnsupportedOption
from manifest.options.durations import parse_duration_millis
from manifest.storage.option_names import canonical

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
_OTHERS = ("dlf.", "io-cache.")
"""Of Alibaba's signatures and of another engine's cache."""
_BOOLEANS = {"true": True, "false": False}
_MOST_RETRIES = 20


@dataclass(frozen=True)
class RestOptions:
    """How a server is reached; ``token`` is never shown.

    ``prefix`` stands between version and resource in every path; the server may tell it. ``storage`` are options of stores.
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
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the user said, as it was."""

    @classmethod
    def of(cls, given: Mapping[str, object]) -> RestOptions:
        """What a user says. Raises ``UnsupportedOption`` for a name that is none, with the nearest; ``InvalidArgument`` for what is missing.

        >>> RestOptions.of({"metastore": "rest", "uri": "localhost:8080", "token.provider": "bear", "token": "secret"})
        RestOptions(uri='http://localhost:8080', warehouse='', prefix='', data_tokens=False, connect_seconds=10.0, read_seconds=60.0, max_retries=5)
        """
        told = {name: _text(name, value) for name, value in given.items()}
        for name in told:
            if name not in _OURS and not name.startswith(HEADER):
                _check_store_option(name)
        if told.get("metastore", "rest") != "rest":
            raise UnsupportedOption("metastore", f"there are 'filesystem' and 'rest', not '{told['metastore']}'")
        if not told.get("uri", "").strip():
            raise InvalidArgument("a REST catalog is reached by an address: {'metastore': 'rest', 'uri': 'http://host:port', ...}")
        return _built(told, told)

    def merged(self, defaults: Mapping[str, str], overrides: Mapping[str, str]) -> RestOptions:
        """With what the server says: its defaults where the user said nothing, its overrides in any case. Names of other engines are passed over.

        >>> RestOptions.of({"uri": "http://c", "prefix": "ours"}).merged({"prefix": "a", "any": "thing"}, {"data-token.enabled": "true"})
        RestOptions(uri='http://c', warehouse='', prefix='ours', data_tokens=True, connect_seconds=10.0, read_seconds=60.0, max_retries=5)
        """
        kept = {name: self.given[name] for name in ("uri", "token", "token.provider") if name in self.given}
        return _built({**defaults, **self.given, **overrides, **kept}, self.given)


def _built(told: Mapping[str, str], given: Mapping[str, str]) -> RestOptions:
    def seconds(name: str, default: float) -> float:
        return parse_duration_millis(told[name], name) / 1000 if name in told else default

    return RestOptions(
        uri=_address(told["uri"]),
        warehouse=told.get("warehouse", ""),
        token=_token(told),
        prefix=told.get("prefix", ""),
        headers={name.removeprefix(HEADER): value for name, value in told.items() if name.startswith(HEADER)},
        data_tokens=_switch(told, "data-token.enabled"),
        connect_seconds=seconds("rest.client.connection-timeout", RestOptions.connect_seconds),
        read_seconds=seconds("rest.client.read-timeout", RestOptions.read_seconds),
        max_retries=_count(told, "rest.client.max-retries", RestOptions.max_retries),
        storage=of_stores(told),
        given=given,
    )


def _token(told: Mapping[str, str]) -> str:
    provider = told.get("token.provider", "bear")
    if provider != "bear":
        raise UnsupportedOption("token.provider", f"the signature '{provider}' is not built in; there is 'bear', a token as it is")
    if not told.get("token"):
        if "token.provider" in told:
            raise InvalidArgument("'token.provider' is 'bear', which sends the option 'token', and that is not there")
        return ""
    return told["token"]


def _address(uri: str) -> str:
    whole = uri.strip().rstrip("/")
    whole = whole if "://" in whole else f"http://{whole}"
    try:
        parts = urlsplit(whole)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fine = False
    if not fine or parts.username is not None or parts.query or parts.fragment:
        raise InvalidArgument("option 'uri' is the address of a server: http://host:port or https://host/path, without credentials")
    return whole


def _text(name: str, value: object) -> str:
    """The value's own text is in no message: it may be a secret."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int) or any(letter in str(value) for letter in "\0\r\n"):
        raise InvalidArgument(f"the value of option '{name}' is one line of text, not {type(value).__name__}")
    if (name in {"uri", "token"} or name.startswith(HEADER)) and not str(value).isascii():  # HTTP's client would show it in its error
        raise InvalidArgument(f"the value of option '{name}' travels in HTTP's own lines: ASCII letters only")
    return str(value)


def _switch(told: Mapping[str, str], name: str) -> bool:
    text = told.get(name, "false").lower()
    if text not in _BOOLEANS:
        raise InvalidArgument(f"option '{name}' is true or false")
    return _BOOLEANS[text]


def _count(told: Mapping[str, str], name: str, default: int) -> int:
    text = told.get(name, str(default))
    if not text.isdecimal() or int(text) > _MOST_RETRIES:
        raise InvalidArgument(f"option '{name}' is a number from 0 to {_MOST_RETRIES}")
    return int(text)


def _check_store_option(name: str) -> None:
    """Raise ``UnsupportedOption`` for a name that is no option of a store either."""
    if name.startswith(_OTHERS):
        raise UnsupportedOption(name, "this client has bearer tokens only ('token.provider' = 'bear') and no such cache")
    try:
        canonical(name)
    except UnsupportedOption:
        near = difflib.get_close_matches(name, _OURS, 1, 0.6)
        if not near:
            raise
        raise UnsupportedOption(name, f"no option of a REST catalog or a store has that name; did you mean '{near[0]}'?") from None


def of_stores(told: Mapping[str, str]) -> dict[str, str]:
    """Those of what a server sends that are options of stores; it sends more, for other clients."""
    found: dict[str, str] = {}
    for name, value in told.items():
        try:
            canonical(name)
        except UnsupportedOption:
            continue
        found[name] = value
    return found


__all__ = ["HEADER", "RestOptions", "of_stores"]
