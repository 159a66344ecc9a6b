"""HTTP server of one table's page.

It listens on loopback only and requires a token.
"""

from __future__ import annotations

import hmac
import json
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from paimon_base.errors import PaimonError
from pyspark_paimon.plugins.page.report.page import render_live, render_page
from pyspark_paimon.table.table import Table

LOOPBACK = "127.0.0.1"
_LONGEST = 16_384
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class TreeServer(ThreadingHTTPServer):
    """Server of a table's page.

    Each request reads the table again. Requests without the token are refused. So are requests with another ``Host`` header: a
    foreign page could make its name resolve to this address.

    port: 0 selects a free port.

    >>> from pyspark_paimon.example import cities
    >>> with TreeServer(cities()) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    # The address cannot be configured: the page shows keys and paths, and the token is sent unencrypted.
    daemon_threads = True

    def __init__(self, table: Table, *, port: int = 0, token: str | None = None) -> None:
        self.table = table
        self.token = token or secrets.token_urlsafe(24)
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def hosts(self) -> tuple[str, str]:
        """Allowed ``Host`` headers."""
        return f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def url(self) -> str:
        """Address of the page, including the token."""
        return f"http://{self.hosts[0]}/?token={self.token}"


class _Handler(BaseHTTPRequestHandler):
    server: TreeServer
    server_version = "pyspark-paimon"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Send the page, or the parts a filter changes."""
        url = urlsplit(self.path)
        parameters = parse_qs(url.query, keep_blank_values=True)
        if self.headers.get("Host", "") not in self.server.hosts:
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", f"the host of the request must be {self.server.hosts[0]}")
        elif not hmac.compare_digest(parameters.get("token", [""])[0].encode(), self.server.token.encode()):
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", "the address has no valid token; use the one that 'pyspark-paimon ui' printed")
        elif len(self.path) > _LONGEST:
            self._answer(HTTPStatus.REQUEST_URI_TOO_LONG, "text/plain", "the filter is too long")
        elif url.path == "/":
            self._page()
        elif url.path == "/tree":
            self._tree(parameters.get("filter", [""])[0].strip())
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "not found; the server has / and /tree")

    def _page(self) -> None:
        try:
            page = render_page(self.server.table.tree(), live=True)
        except PaimonError as error:
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", _error_text(error))
            return
        self._answer(HTTPStatus.OK, "text/html", page)

    def _tree(self, text: str) -> None:
        answer: dict[str, Any]
        try:
            answer = {"html": render_live(self.server.table.tree(text or None))}
        except PaimonError as error:
            answer = {"error": _error_text(error)}
        self._answer(HTTPStatus.OK, "application/json", json.dumps(answer))

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""
        # A line would contain the token of the URL.


def _error_text(error: PaimonError) -> str:
    return f"{type(error).__name__}: {error}"
