"""Signatures of Alibaba's Data Lake Formation (``token.provider`` = ``dlf``), as Paimon's REST client makes them.

Two algorithms. ``default`` signs a canonical request by a key derived from day, region and product (DLF4-HMAC-SHA256). ``openapi`` signs a
request in the form of Alibaba's older interfaces (HMAC-SHA1).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import math
import re
import threading
import time
import urllib.request
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote_plus, unquote_plus, urlsplit

from manifest.io.catalog_errors import NotAuthorized
from paimon_base.errors import InvalidArgument, UnsupportedOption

PREFIX: Final = "dlf."
_KEY, _SECRET, _TOKEN, _REGION = "dlf.access-key-id", "dlf.access-key-secret", "dlf.security-token", "dlf.region"
_PATH, _LOADER, _ALGORITHM, _OSS = "dlf.token-path", "dlf.token-loader", "dlf.signing-algorithm", "dlf.oss-endpoint"
_METADATA, _ROLE = "dlf.token-ecs-metadata-url", "dlf.token-ecs-role-name"
NAMES: Final = (_KEY, _SECRET, _TOKEN, _REGION, _PATH, _LOADER, _ALGORITHM, _OSS, _METADATA, _ROLE)
_METADATA_URL: Final = "http://100.100.100.200/latest/meta-data/Ram/security-credentials/"
_DEFAULT, _OPENAPI = "default", "openapi"
_REGION_OF_URI: Final = re.compile(r"(?:pre-)?([a-z]+-[a-z]+(?:-\d+)?)")
_SAFE_MILLIS: Final = 3_600_000
"""Keys that expire within the hour are loaded again, as other engines do."""
_METADATA_SECONDS: Final = 10.0
_MOST_BYTES: Final = 1 << 16
_PRODUCT, _REQUEST, _SIGNATURE = "DlfNext", "aliyun_v4_request", "DLF4-HMAC-SHA256"
_SIGNED: Final = ("content-md5", "content-type", "x-dlf-content-sha256", "x-dlf-date", "x-dlf-version", "x-dlf-security-token")
_JSON: Final = "application/json"


@dataclass(frozen=True)
class DlfKeys:
    """An access key. ``expires_millis`` None: never."""

    key_id: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    expires_millis: float | None = None

    @classmethod
    def parse(cls, content: bytes | str, source: str) -> DlfKeys:
        """Parse the JSON of a token file or of the machine's role.

        Raises ``NotAuthorized``, which never contains the content.

        >>> DlfKeys.parse('{"AccessKeyId": "a", "AccessKeySecret": "b", "Expiration": "1970-01-01T00:00:01Z"}', "x").expires_millis
        1000.0
        """
        try:
            parsed = json.loads(content)
            expires = parsed.get("Expiration")
            expires_ms = (
                None if expires is None else datetime.strptime(expires, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp() * 1000
            )
            keys = cls(parsed["AccessKeyId"], parsed["AccessKeySecret"], parsed.get("SecurityToken"), expires_ms)
        except (ValueError, TypeError, KeyError, AttributeError):
            keys = None
        # The errors of http.client for other characters would contain the token.
        if keys is None or not all(_fits_header(text) for text in (keys.key_id, keys.secret, "" if keys.token is None else keys.token)):
            raise NotAuthorized(
                f"{source} has no keys: it must be JSON with AccessKeyId, AccessKeySecret and SecurityToken, each a line of ASCII characters"
            )
        return keys


def _fits_header(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isprintable()


@dataclass(frozen=True)
class DlfOptions:
    """Options of signatures, by Paimon's names without ``dlf.``.

    ``keys`` None: they are loaded from ``token_path``, or from the role of the machine.
    """

    region: str
    algorithm: str = _DEFAULT
    keys: DlfKeys | None = None
    token_path: str | None = None
    metadata_url: str = _METADATA_URL
    role: str | None = None

    @classmethod
    def of(cls, texts: Mapping[str, str], uri: str) -> DlfOptions:
        """Parse the options of a server at ``uri``.

        Raises ``InvalidArgument`` for a missing option, ``UnsupportedOption`` for a value that is not supported.

        >>> DlfOptions.of({"dlf.access-key-id": "a", "dlf.access-key-secret": "b"}, "http://cn-hangzhou-vpc.dlf.aliyuncs.com").region
        'cn-hangzhou'
        """
        near = _REGION_OF_URI.search(uri)
        region = texts.get(_REGION) or (near[1] if near else None)
        if region is None:
            raise InvalidArgument(f"option '{_REGION}' is missing, and 'uri' does not name the region")
        algorithm = texts.get(_ALGORITHM) or (_OPENAPI if "dlfnext" in uri.lower() else _DEFAULT)
        if algorithm not in {_DEFAULT, _OPENAPI}:
            raise UnsupportedOption(_ALGORITHM, f"'{algorithm}' is not supported; use '{_DEFAULT}' or '{_OPENAPI}'")
        common = cls(region, algorithm)
        loader = texts.get(_LOADER) or ("local_file" if _PATH in texts else "")
        match loader:
            case "local_file":
                if not texts.get(_PATH):
                    raise InvalidArgument(f"'{_LOADER}' is 'local_file', but option '{_PATH}' is missing")
                return replace(common, token_path=texts[_PATH])
            case "ecs":
                return replace(common, metadata_url=texts.get(_METADATA, _METADATA_URL), role=texts.get(_ROLE))
            case "":
                if not texts.get(_KEY) or not texts.get(_SECRET):
                    raise InvalidArgument(f"signatures of DLF need '{_KEY}' and '{_SECRET}', or '{_PATH}', or '{_LOADER}' = 'ecs'")
                return replace(common, keys=DlfKeys(texts[_KEY], texts[_SECRET], texts.get(_TOKEN)))
            case _:
                raise UnsupportedOption(_LOADER, f"'{loader}' is not supported; use 'local_file' or 'ecs'")


@dataclass(frozen=True)
class Signed:
    """What a signature covers. ``parameters`` are those of the query, decoded."""

    method: str
    path: str
    parameters: Mapping[str, str]
    body: bytes | None
    time: datetime

    def query(self, *, encoded: bool) -> str:
        """Return the sorted query."""
        values = ((name, _encoded(value) if encoded else value) for name, value in sorted(self.parameters.items()))
        return "&".join(f"{name}={value}" if value else name for name, value in values)


class DlfSigner:
    """Signs requests, with keys that are loaded when they are needed. Thread-safe."""

    def __init__(self, options: DlfOptions, uri: str) -> None:
        self._options = options
        self._host = urlsplit(uri).netloc
        self._keys = options.keys
        self._role = options.role
        self._lock = threading.Lock()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that errors must not contain."""
        return () if self._keys is None else tuple(secret for secret in (self._keys.secret, self._keys.token) if secret)

    def headers(self, method: str, path: str, body: bytes | None) -> dict[str, str]:
        """Return the headers of a request. ``path`` may have a query. Raises ``NotAuthorized`` if there are no keys."""
        plain, _, query = path.partition("?")
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        keys, request = self._fresh(), Signed(method, plain, parameters, body, datetime.now(UTC))
        if self._options.algorithm == _OPENAPI:
            return openapi_headers(keys, self._host, request, f"{uuid.uuid4()}{time.time_ns() // 10**6}")
        return default_headers(keys, self._options.region, request)

    def _fresh(self) -> DlfKeys:
        with self._lock:
            keys = self._keys
            expires = math.inf if keys is None or keys.expires_millis is None else keys.expires_millis
            left = expires - time.time() * 1000
            if keys is None or left < _SAFE_MILLIS:
                try:
                    keys = self._keys = self._load()
                except NotAuthorized:
                    if keys is None or left <= 0:
                        raise
                    # The file is being rewritten, perhaps: the next request loads it.
            return keys

    def _load(self) -> DlfKeys:
        if self._options.token_path is not None:
            try:
                return DlfKeys.parse(Path(self._options.token_path).read_bytes(), f"the file of option '{_PATH}'")
            except OSError as error:
                raise NotAuthorized(f"the file of option '{_PATH}' cannot be read ({error.strerror})") from None
        url = self._options.metadata_url
        if self._role is None:
            self._role = _fetch(url).decode("utf-8", "replace").strip()
        return DlfKeys.parse(_fetch(url + self._role), "the answer of the machine's metadata")


def _fetch(url: str) -> bytes:
    if not url.startswith(("http://", "https://")):
        raise InvalidArgument(f"option '{_METADATA}' must be http://host/path/")
    try:
        with urllib.request.urlopen(url, timeout=_METADATA_SECONDS) as answer:  # noqa: S310  # the scheme is checked
            content: bytes = answer.read(_MOST_BYTES)
            return content
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotAuthorized(
            f"the machine's metadata cannot be read ({error}), as option '{_LOADER}' wants; is this an ECS machine?"
        ) from None


def default_headers(keys: DlfKeys, region: str, request: Signed) -> dict[str, str]:
    """Return the headers of the algorithm ``default``."""
    moment = request.time.strftime("%Y%m%dT%H%M%SZ")
    headers = {"x-dlf-date": moment, "x-dlf-content-sha256": "UNSIGNED-PAYLOAD", "x-dlf-version": "v1"}
    if request.body:
        headers |= {"Content-Type": _JSON, "Content-MD5": _md5(request.body)}
    if keys.token is not None:
        headers["x-dlf-security-token"] = keys.token
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    signed = [f"{name}:{lower[name]}" for name in sorted(_SIGNED) if name in lower]
    lines = [request.method, request.path, request.query(encoded=True), *signed, "UNSIGNED-PAYLOAD"]
    scope = f"{moment[:8]}/{region}/{_PRODUCT}/{_REQUEST}"
    string_to_sign = "\n".join([_SIGNATURE, moment, scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()])
    key = f"aliyun_v4{keys.secret}".encode()
    for part in scope.split("/"):
        key = _hmac(key, part)
    headers["Authorization"] = f"{_SIGNATURE} Credential={keys.key_id}/{scope},Signature={_hmac(key, string_to_sign).hex()}"
    return headers


def openapi_headers(keys: DlfKeys, host: str, request: Signed, nonce: str) -> dict[str, str]:
    """Return the headers of the algorithm ``openapi``. ``nonce`` is used once."""
    headers = {"Date": format_datetime(request.time, usegmt=True), "Accept": _JSON, "Host": host}
    if request.body:
        headers |= {"Content-MD5": _md5(request.body), "Content-Type": _JSON}
    headers |= {
        "x-acs-signature-method": "HMAC-SHA1",
        "x-acs-signature-nonce": nonce,
        "x-acs-signature-version": "1.0",
        "x-acs-version": "2026-01-18",
    }
    if keys.token is not None:
        headers["x-acs-security-token"] = keys.token
    service_headers = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers) if name.startswith("x-acs-"))
    resource = unquote_plus(request.path) + (f"?{request.query(encoded=False)}" if request.parameters else "")
    lines = [request.method, headers["Accept"], headers.get("Content-MD5", ""), headers.get("Content-Type", ""), headers["Date"]]
    string_to_sign = "\n".join([*lines, service_headers + resource])
    signature = hmac.new(keys.secret.encode(), string_to_sign.encode(), hashlib.sha1).digest()
    headers["Authorization"] = f"acs {keys.key_id}:{base64.b64encode(signature).decode()}"
    return headers


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def _encoded(value: str) -> str:
    return quote_plus(value, safe="*").replace("~", "%7E")  # as java.net.URLEncoder


def dlf_options(texts: Mapping[str, str], uri: str) -> DlfOptions | None:
    """Return the options of signatures, None for another provider.

    Raises ``UnsupportedOption`` for an unknown option ``dlf.*``, or one without its provider.
    """
    dlf_names: list[Any] = [name for name in texts if name.startswith(PREFIX)]
    for name in dlf_names:
        if name not in NAMES:
            raise UnsupportedOption(name, f"is unknown; options are {', '.join(NAMES)}")
    if texts.get("token.provider") == "dlf":
        return DlfOptions.of(texts, uri)
    for name in dlf_names:
        if name != _OSS:
            raise UnsupportedOption(name, "is for the provider 'dlf' only; set option 'token.provider' to it")
    return None
