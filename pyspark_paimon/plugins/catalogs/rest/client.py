"""JSON client: authorization, bounded safe retries, typed errors.

Connections are pooled per server. A connection closed by the server is detected before use, so a request that must not be sent twice is not
lost on it. Redirects are not followed, because the token is only for the host that the user named.
"""

from __future__ import annotations

import http.client
import json
import random
import select
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from manifest.io.catalog_errors import CatalogUnavailable, NotAuthorized, NotOffered, NotPermitted, ResourceMissing, ResourceTaken
from manifest.io.errors import CatalogRefused
from paimon_base.errors import PaimonError
from paimon_base.log import logger_of
from paimon_base.redaction import hide
from pyspark_paimon.plugins.catalogs.rest.dlf import DlfSigner
from pyspark_paimon.plugins.catalogs.rest.options import RestOptions

_LOG = logger_of(__name__)
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 20.0
_NOT_DONE = frozenset({429})
"""Too many requests: the server has not processed this one."""
_LATER = frozenset({429, 502, 503, 504})
_MOST_TEXT = 500
_Answered = TypeVar("_Answered", bound=BaseModel)
_IDLE = 8
"""Maximal number of idle connections."""
_MOST_BYTES = 256 << 20


class _Refusal(BaseModel):
    """Error body of the API."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    message: str | None = None
    resourceType: str | None = None  # noqa: N815  # the API's name
    resourceName: str | None = None  # noqa: N815  # the API's name
    code: int | None = None


class RestClient:
    """Client of the server in ``options``. Thread-safe and picklable."""

    def __init__(self, options: RestOptions, connections: Connections | None = None, signer: DlfSigner | None = None) -> None:
        self.options = options
        self._connections = connections or Connections(options.uri, options.connect_seconds, options.read_seconds)
        self._headers = {"Accept": "application/json", "User-Agent": "pyspark-paimon", **options.headers}
        if options.token:
            self._headers["Authorization"] = f"Bearer {options.token}"
        self._signer = signer if options.dlf is None or signer is not None else DlfSigner(options.dlf, options.uri)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.options, self._connections)

    def __repr__(self) -> str:
        return f"RestClient({self.options.uri})"

    def with_options(self, options: RestOptions) -> RestClient:
        """Return a client with other options on the same connections."""
        return RestClient(options, self._connections, self._signer if options.dlf == self.options.dlf else None)

    def get(self, path: str, answer: type[_Answered], parameters: Mapping[str, str] | None = None) -> _Answered:
        """Read from the server. Retries lost answers."""
        content = self._send("GET", f"{path}?{urlencode(parameters)}" if parameters else path, None)
        return self._parse(path, answer, content)

    def post(self, path: str, body: BaseModel | Mapping[str, Any], answer: type[_Answered] | None = None) -> _Answered | None:
        """Send a change, once.

        ``CatalogUnavailable`` means that its outcome is unknown.
        """
        payload = body.model_dump(mode="json", by_alias=True, exclude_none=True) if isinstance(body, BaseModel) else body
        content = self._send("POST", path, json.dumps(payload).encode())
        return None if answer is None else self._parse(path, answer, content)

    def delete(self, path: str) -> None:
        """Send a deletion, once."""
        self._send("DELETE", path, None)

    def _send(self, method: str, path: str, body: bytes | None) -> bytes:
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        for attempt in range(self.options.max_retries + 1):
            last = attempt == self.options.max_retries
            signed = headers if self._signer is None else {**headers, **self._signer.headers(method, path, body)}
            try:
                answer = self._connections.send(method, path, signed, body)
            except NotSent as error:
                if last:
                    raise CatalogUnavailable(self._describe(method, path, f"cannot be reached ({error}); nothing was done")) from error
                self._wait(attempt, method, path, str(error))
            except (OSError, http.client.HTTPException) as error:
                reason = str(error) or type(error).__name__
                if last or method != "GET":
                    raise CatalogUnavailable(self._describe(method, path, f"did not answer ({reason}){_unknown(method)}")) from error
                self._wait(attempt, method, path, reason)
            else:
                if answer.status < 300:
                    return answer.body
                if last or answer.status not in (_LATER if method == "GET" else _NOT_DONE):
                    raise self._refusal_error(method, path, answer)
                self._wait(attempt, method, path, f"status {answer.status}", answer.retry_after)
        raise AssertionError("the last attempt returns or raises")

    def _wait(self, attempt: int, method: str, path: str, reason: str, retry_after: str | None = None) -> None:
        wait = min(_FIRST_WAIT * 2.0**attempt, _LONGEST_WAIT) * random.uniform(0.5, 1.0)  # noqa: S311 -- not a secret
        if retry_after is not None and retry_after.strip().isdecimal():
            wait = max(wait, min(float(retry_after), _LONGEST_WAIT))
        _LOG.info("%s: retrying in %.1f s", self._describe(method, path, reason), wait)
        time.sleep(wait)

    def _refusal_error(self, method: str, path: str, answer: HttpAnswer) -> PaimonError:
        try:
            refusal = _Refusal.model_validate_json(answer.body)
        except ValidationError:
            refusal = _Refusal()
        message = refusal.message or f"status {answer.status}"
        message = self._hide(message)[:_MOST_TEXT]  # a secret that is cut would not be recognized
        text = self._describe(method, path, f"{message}{f' (request {answer.request_id})' if answer.request_id else ''}")
        kind, name = self._hide(refusal.resourceType or ""), self._hide(refusal.resourceName or "")
        match answer.status:
            case 401:
                what = "option 'token' is" if self._signer is None else "keys of options 'dlf.*' are"
                return NotAuthorized(f"{text}; the {what} wrong, missing or expired, or a clock differs (401)")
            case 403:
                return NotPermitted(f"{text} (403)")
            case 404 if refusal.code == 501:  # Paimon's own server, for operations that external tables lack
                return NotOffered(text)
            case 404 if not refusal.message and not kind:
                return NotOffered(f"{text}: the server does not know that path")
            case 404:
                return ResourceMissing(text, kind, name)
            case 409:
                return ResourceTaken(text, kind, name)
            case 405 | 501:
                return NotOffered(text)
            case status if status >= 500 or status in {408, *_NOT_DONE}:
                return CatalogUnavailable(f"{text} ({status}){'' if status in _NOT_DONE else _unknown(method)}")
            case status:
                return CatalogRefused(f"{text} ({status})")

    def _describe(self, method: str, path: str, message: str) -> str:
        return f"{self.options.uri}: {method} {path.partition('?')[0]}: {self._hide(message)}"

    def _hide(self, text: str) -> str:
        """Return a text of the server without the secrets that it was sent."""
        values = self.options.headers.values()
        credentials = [words[1] for words in map(str.split, values) if len(words) == 2]  # behind a scheme, such as Bearer
        return hide(text, (self.options.token, *values, *credentials, *(() if self._signer is None else self._signer.secrets)))

    def _parse(self, path: str, answer: type[_Answered], content: bytes) -> _Answered:
        try:
            return answer.model_validate_json(content)
        except (ValidationError, RecursionError) as error:
            where = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "nested too deeply"}
            member = ".".join(map(str, where["loc"])) or "body"
            raise CatalogUnavailable(self._describe("answer to", path, f"is not valid in this API ({member}: {where['msg']})")) from None


def _unknown(method: str) -> str:
    return "" if method == "GET" else "; whether it was done is not known"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP response.

    ``retry_after`` is the header ``Retry-After``, None without one.
    """

    status: int
    body: bytes
    retry_after: str | None = None
    request_id: str | None = None


class NotSent(ConnectionError):
    """No connection could be made, so the server received nothing."""


class Connections:
    """Connection pool for the host of ``uri``. Thread-safe.

    A copy in another process starts empty.
    """

    def __init__(self, uri: str, connect_seconds: float, read_seconds: float) -> None:
        self._uri = uri
        self._timeouts = connect_seconds, read_seconds
        parts = urlsplit(uri)
        self._secure, self._host, self._port, self._base = parts.scheme == "https", parts.hostname or "", parts.port, parts.path
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._uri, *self._timeouts)

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> HttpAnswer:
        """Send one request and return its response.

        Raises ``NotSent``. Raises another ``OSError`` or ``HTTPException`` once the server may have received it.
        """
        connection = self._take()
        try:
            connection.request(method, self._base + path, body, dict(headers))
            response = connection.getresponse()
            content = _whole(response)
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._give_back(connection)
        return HttpAnswer(response.status, content, response.getheader("Retry-After"), response.getheader("x-request-id"))

    def close(self) -> None:
        """Close idle connections. Later requests open new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._open()
            if _is_alive(connection):
                return connection
            connection.close()

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _open(self) -> http.client.HTTPConnection:
        to_connect, to_read = self._timeouts
        connection = (
            http.client.HTTPSConnection(self._host, self._port, timeout=to_connect, context=ssl.create_default_context())
            if self._secure
            else http.client.HTTPConnection(self._host, self._port, timeout=to_connect)
        )
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise NotSent(str(error)) from error
        connection.sock.settimeout(to_read)
        return connection

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter may be shutting down
            self.close()


def _whole(response: http.client.HTTPResponse) -> bytes:
    """Read a complete body.

    Raises ``IncompleteRead`` if it is truncated or too long.
    """
    content = response.read(_MOST_BYTES)
    if response.length or not response.isclosed():
        raise http.client.IncompleteRead(b"", response.length)
    return content


def _is_alive(connection: http.client.HTTPConnection) -> bool:
    """Return whether an idle connection has nothing to read."""
    # Between requests, readable data can only be the server's close.
    if connection.sock is None:
        return False
    try:
        if hasattr(select, "poll"):  # unlike select, poll supports large descriptor numbers
            poll = select.poll()
            poll.register(connection.sock, select.POLLIN)
            return not poll.poll(0)
        return not select.select([connection.sock], [], [], 0)[0]
    except (OSError, ValueError):
        return False
