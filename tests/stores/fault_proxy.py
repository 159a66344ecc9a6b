"""Between client and server: drops the answers of requests that succeeded, throttles, cuts bodies short, as a rule of the test says."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

DROP, LOSE, BUSY, BROKEN, STALL, TRUNCATE = "drop", "lose", "busy", "broken", "stall", "truncate"
"""The answer is lost; the request is lost; 503 SlowDown; 500; no answer for a while; half of the body."""
EXPIRED, SKEWED, UNCONDITIONAL = "expired", "skewed", "unconditional"
"""Expired credentials; the asker's clock is wrong; a condition that fails is said to hold."""
STALL_SECONDS = 3.0
_REFUSALS = {BUSY: ("SlowDown", 503), BROKEN: ("InternalError", 500), EXPIRED: ("ExpiredToken", 400), SKEWED: ("RequestTimeTooSkewed", 403)}


@dataclass(frozen=True)
class Request:
    """What a rule may look at; ``number`` counts the requests of that method and path, from 1."""

    method: str
    path: str
    headers: dict[str, str]
    number: int

    @property
    def creates(self) -> bool:
        """A put-if-absent."""
        return self.method == "PUT" and "if-none-match" in self.headers


class FaultProxy:
    """Listens on ``port``; ``rule`` may be changed at any time; ``done`` counts the faults."""

    def __init__(self, engine: int, rule: Callable[[Request], str | None] = lambda _: None) -> None:
        self.rule = rule
        self.done: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self._seen: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, engine))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fault(self, method: str, path: str, headers: dict[str, str]) -> str | None:
        with self._lock:
            self._seen[method, path] += 1
            self.requests[method] += 1
            found = self.rule(Request(method, path, headers, self._seen[method, path]))
            if found is not None and found in {LOSE, STALL, *_REFUSALS}:
                self.done[found] += 1
            return found

    def answered(self, fault: str) -> None:
        with self._lock:
            self.done[fault] += 1


def _handler(proxy: FaultProxy, engine: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _pass(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            fault = proxy.fault(self.command, self.path, headers)
            if fault in {LOSE, STALL}:
                time.sleep(STALL_SECONDS if fault == STALL else 0)
                self.close_connection = True
                return
            if fault is not None and fault in _REFUSALS:
                code, status = _REFUSALS[fault]
                self._answer(status, [("Retry-After", "1")], f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())
                return
            connection = http.client.HTTPConnection("127.0.0.1", engine, timeout=60)
            try:
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in headers.items():
                    connection.putheader(name, value)
                connection.endheaders(body)
                answer = connection.getresponse()
                content = answer.read()
                told = [(name, value) for name, value in answer.getheaders() if name.lower() not in {"transfer-encoding", "connection"}]
            except OSError:
                self.close_connection = True
                return
            finally:
                connection.close()
            fits = answer.status == 412 if fault == UNCONDITIONAL else answer.status < 300
            if fault is not None and fits:
                proxy.answered(fault)
            if fault == DROP and fits:
                self.close_connection = True
            elif fault == UNCONDITIONAL and fits:
                self._answer(200, [("ETag", '"0"')], b"")
            else:
                self._answer(answer.status, told, content, truncated=fault == TRUNCATE and fits)

        def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes, *, truncated: bool = False) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() != "content-length" or self.command == "HEAD":
                    self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content[: len(content) // 2] if truncated else content)
            self.close_connection |= truncated

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass  # noqa: N815

    return Handler
