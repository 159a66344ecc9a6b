"""Requests: what is repeated and what is not, what refusals become, connections, and that the token is in no message."""

from __future__ import annotations

import logging
import pickle
import re
import socket
import threading
from itertools import pairwise
from types import SimpleNamespace

import pytest

from manifest.io.catalog_errors import CatalogUnavailable, NotAuthorized, NotOffered, NotPermitted, ResourceMissing, ResourceTaken
from manifest.io.errors import CatalogRefused
from pyspark_paimon.plugins.catalogs.rest import client as client_module
from pyspark_paimon.plugins.catalogs.rest.api import RestApi
from pyspark_paimon.plugins.catalogs.rest.client import RestClient
from pyspark_paimon.plugins.catalogs.rest.messages import Page
from pyspark_paimon.plugins.catalogs.rest.options import RestOptions
from tests.catalogs.server import PREFIX, TOKEN, CatalogServer
from tests.stores.fault_proxy import BUSY, DROP, LOSE, TRUNCATE, FaultProxy


@pytest.fixture(autouse=True)
def _quick(monkeypatch) -> None:
    monkeypatch.setattr(client_module, "_FIRST_WAIT", 0.001)


@pytest.fixture
def server(tmp_path):
    with CatalogServer(tmp_path) as server:
        yield server


@pytest.fixture
def proxy(server):
    with FaultProxy(server.port) as proxy:
        yield proxy


def server_uri(server) -> str:
    return f"http://127.0.0.1:{server.port}"


def api(server, port=None, **more) -> RestApi:
    return RestApi.connect(RestOptions.of(server.options(port, **more)))


def test_the_prefix_of_the_server_is_in_every_path(server) -> None:
    found = api(server)
    assert found.options.prefix == PREFIX
    found.create_database("a b/c", {"k": "v"})
    assert found.database("a b/c").options == {"k": "v"}
    assert server.requests[-1][1] == "/v1/the+prefix/databases/a+b%2Fc"


def test_pages_are_followed_to_the_end(server) -> None:
    found = api(server)
    for name in "edcba":
        found.create_database(name, {})
    assert found.databases() == list("abcde")
    assert sum(path.startswith("/v1/the+prefix/databases?pageToken") for _, path, _, _ in server.requests) == 2


def test_a_page_that_leads_to_itself_is_left(server) -> None:
    found = api(server)
    server.answers = lambda method, path: (200, {"databases": ["a"], "nextPageToken": "a"})
    assert found.databases() == ["a"]


def test_each_wait_is_twice_the_one_before_up_to_a_bound(server, proxy, monkeypatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(client_module, "time", SimpleNamespace(sleep=waited.append))
    monkeypatch.setattr(client_module, "random", SimpleNamespace(uniform=lambda low, high: high))
    proxy.rule = lambda request: LOSE
    with pytest.raises(CatalogUnavailable):
        api(server, proxy.port, **{"rest.client.max-retries": "20"}).databases()
    steps = [later / sooner for sooner, later in pairwise(waited)]
    growing = steps.index(1.0) - 1
    assert growing > 3
    assert steps[:growing] == [2.0] * growing
    assert set(waited[growing + 1 :]) == {waited[-1]}


@pytest.mark.parametrize("fault", [BUSY, LOSE, DROP, TRUNCATE])
def test_what_reads_is_asked_again(server, proxy, fault) -> None:
    found = api(server, proxy.port)
    found.create_database("a", {})
    proxy.rule = lambda request: fault if request.number < 3 else None
    assert found.databases() == ["a"]
    assert proxy.done[fault] == 2


@pytest.mark.parametrize("fault", [BUSY, LOSE, DROP])
def test_what_changes_is_asked_once(server, proxy, fault) -> None:
    found = api(server, proxy.port)
    proxy.rule = lambda request: fault if request.method == "POST" else None
    with pytest.raises(CatalogUnavailable, match="whether it was done is not known"):
        found.create_database("a", {})
    assert proxy.done[fault] == 1
    assert server.databases == ({"a": {}} if fault == DROP else {})


def test_a_server_that_has_not_looked_is_asked_again_for_changes_too(server) -> None:
    found, left = api(server), [3]

    def busy(method, path):
        left[0] -= 1
        return (429, {"message": "later", "code": 429}) if left[0] >= 0 else None

    server.answers = busy
    found.create_database("a", {})
    assert list(server.databases) == ["a"]
    assert [method for method, *_ in server.requests].count("POST") == 4


def test_repeats_are_bounded(server) -> None:
    found = api(server, **{"rest.client.max-retries": "2"})
    server.answers = lambda method, path: (503, None)
    before = len(server.requests)
    with pytest.raises(CatalogUnavailable, match="503"):
        found.databases()
    assert len(server.requests) - before == 3


def test_nobody_there_is_told_as_not_done(server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(CatalogUnavailable, match="nothing was done"):
        api(server, port, **{"rest.client.max-retries": "1"})


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, None, NotAuthorized),
        (403, {"message": "no", "resourceType": "TABLE"}, NotPermitted),
        (404, {"message": "no", "resourceType": "TABLE", "resourceName": "t"}, ResourceMissing),
        (404, None, NotOffered),
        (404, {"message": "external", "code": 501}, NotOffered),
        (409, {"message": "no", "resourceType": "TAG", "resourceName": "t"}, ResourceTaken),
        (501, {"message": "no"}, NotOffered),
        (400, {"message": "no"}, CatalogRefused),
        (302, None, CatalogRefused),
        (500, {"message": "no"}, CatalogUnavailable),
        (408, None, CatalogUnavailable),
        (200, {"databases": 7}, CatalogUnavailable),
        (200, None, CatalogUnavailable),
    ],
)
def test_every_refusal_has_its_type(server, status, body, kind) -> None:
    found = api(server)
    server.answers = lambda method, path: (status, body)
    with pytest.raises(kind) as error:
        found.databases()
    assert type(error.value) is kind
    assert "/v1/the+prefix/databases" in str(error.value)
    again = pickle.loads(pickle.dumps(error.value))
    assert (type(again), str(again)) == (kind, str(error.value))
    if isinstance(again, ResourceMissing | ResourceTaken):
        assert (again.kind, again.name) == (body["resourceType"], "t")


def test_the_token_is_in_no_message_although_the_server_repeats_it(server, caplog) -> None:
    found = api(server)
    caplog.set_level(logging.DEBUG)
    for status in (400, 401, 403, 404, 409, 500, 503):
        server.answers = lambda method, path, status=status: (status, {"message": f"who is Bearer {TOKEN}?"})
        with pytest.raises((CatalogRefused, CatalogUnavailable)) as error:
            found.databases()
        assert TOKEN not in f"{error.value!r} {error.value}"
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(RestClient(found.options))


@pytest.mark.parametrize("length", [0, 480, 495])
@pytest.mark.parametrize("value", ["k3y-of-user", "Basic dXNlcjpwYXNz", "Zq"])
def test_values_of_headers_are_in_no_message_although_the_server_repeats_them(server, caplog, value, length) -> None:
    server.overrides = {"header.x-of-server": "c0okie"}
    calls = api(server, **{"header.x-key": value})
    caplog.set_level(logging.DEBUG)
    secret = value.split()[-1]
    for status in (400, 401, 403, 404, 409, 500, 503):
        text = f"{'-' * length} who is {secret}, {value} or c0okie?"
        body = {"message": text, "resourceType": "TABLE", "resourceName": f"of {secret}"}
        server.answers = lambda method, path, status=status, body=body: (status, body)
        with pytest.raises((CatalogRefused, CatalogUnavailable)) as error:
            calls.databases()
        message = f"{error.value!r} {error.value} {getattr(error.value, 'name', '')} {caplog.text}".replace(server_uri(server), "")
        assert not [part for part in (secret, "c0okie", secret[:5] if len(secret) > 5 else secret) if re.search(rf"\b{part}", message)]


def test_connections_are_used_again_and_one_that_was_closed_is_left(server) -> None:
    """The server closes after each answer without saying so: a change must not be lost on a dead connection."""
    seen = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for _ in range(3):
            connection, _ = listening.accept()
            with connection:
                while b"\r\n\r\n" not in connection.recv(65536):
                    pass
                seen.append(1)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    thread = threading.Thread(target=serve)
    thread.start()
    with listening:
        client = RestClient(RestOptions.of({"uri": f"http://127.0.0.1:{listening.getsockname()[1]}", "rest.client.max-retries": "0"}))
        for _ in range(3):
            client.delete("/v1/databases/a")
            deadline = threading.Event()
            deadline.wait(0.05)  # for the good-bye to arrive
        thread.join()
    assert len(seen) == 3


def test_many_threads_and_other_processes_share_a_client(server) -> None:
    found = api(server)
    found.create_database("a", {})
    again = pickle.loads(pickle.dumps(found))
    threads = [threading.Thread(target=again.databases) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert again.databases() == ["a"]


def test_unknown_members_of_answers_are_passed_over(server) -> None:
    found = api(server)
    server.answers = lambda method, path: (200, {"databases": ["a"], "new": {"in": "2.0"}})
    assert found.databases() == ["a"]
    assert Page.model_validate({"databases": None}).names == ()
