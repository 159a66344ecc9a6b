"""Pooled connections to one server, by Python's HTTP client.

A connection closed by the server is detected before use, so a request that must not be sent twice is not
lost on it. Redirects are not followed, because the token is only for the host that the user named.
"""

from __future__ import annotations

import http.client
import select
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_IDLE = 8
"""Maximal number of idle connections."""
_MOST_BYTES = 256 << 20


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


__all__ = ["Connections", "HttpAnswer", "NotSent"]
