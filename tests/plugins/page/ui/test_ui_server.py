"""The server of a tree's page answers this machine only, and only who has the token."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from pyspark_paimon.plugins.page.ui.server import TreeServer
from tests.build import keyed


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TreeServer]:
    table = keyed(tmp_path / "t", "id INT", {"write-only": "true"})
    for low in (0, 100):
        table.write(pa.table({"id": pa.array(range(low, low + 10), pa.int32())}))
    with TreeServer(table) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(
    server: TreeServer, path: str, host: str | None = None, method: str = "GET", **given: str
) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    try:
        connection.request(method, f"{path}?{urlencode(given)}" if given else path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()


def test_the_page_and_the_plan_of_a_filter(server: TreeServer) -> None:
    status, page, headers = ask(server, "/", token=server.token)
    assert (status, headers["Cache-Control"], headers["Referrer-Policy"]) == (200, "no-store", "no-referrer")
    assert 'id="filter"' in page
    assert "connect-src &#39;self&#39;" in page or "connect-src 'self'" in page
    _, answer, _ = ask(server, "/tree", token=server.token, filter="id = 105")
    assert "1 of 2 files" in json.loads(answer)["html"]
    _, answer, _ = ask(server, "/tree", token=server.token, filter="idd = 105")
    assert json.loads(answer)["error"].startswith("UnknownColumn")
    _, answer, _ = ask(server, "/tree", token=server.token, filter="")
    assert "2 of 2 files" in json.loads(answer)["html"]


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_who_lacks_the_token_sees_nothing(server: TreeServer, token: str) -> None:
    for path in ("/", "/tree"):
        status, text, _ = ask(server, path, token=token)
        assert status == 403
        assert server.token not in text
    assert ask(server, "/")[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil.example:80"])
def test_who_calls_it_by_another_name_sees_nothing(server: TreeServer, host: str) -> None:
    assert ask(server, "/", host=host, token=server.token)[0] == 403


def test_it_may_be_called_localhost(server: TreeServer) -> None:
    assert ask(server, "/", host=f"localhost:{server.server_port}", token=server.token)[0] == 200


def test_it_listens_on_loopback_only_and_takes_no_other_method(server: TreeServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert ask(server, "/", method="POST", token=server.token)[0] == 501
    assert ask(server, "/other", token=server.token)[0] == 404
    assert ask(server, "/tree", token=server.token, filter="x" * 20_000)[0] == 414


def test_tokens_are_fresh(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id INT")
    with TreeServer(table) as one, TreeServer(table) as other:
        assert one.token != other.token
        assert len(one.token) >= 32
