"""``python -m tests.stores``: each server by one command, which reaches it by its environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.stores import __main__ as servers
from tests.stores.local_server import LocalServer, ServerUnavailable

SERVED = {
    "s3": 'place, options = "s3://tests/t", {}',
    "versity": 'place, options = "s3://tests/t", {}',
    "azure": 'place, options = "az://tests/t", {}',
    "hdfs": 'place, options = "hdfs:///t", {}',
}
"""How a process finds a place on each store; on other servers there is a catalog."""
ON_STORE = """
from pyspark_paimon import Table
{place}
table = Table.create(place, "id INT", storage_options=options or None)
"""
IN_CATALOG = """
import json, os
from pyspark_paimon import Catalog
catalog = Catalog.create(json.loads(os.environ["PAIMON_TEST_CATALOG"]))
catalog.create_database("d")
table = catalog.create_table("d.t", "id INT")
"""
USE = """
table.write([{"id": 7}])
raise SystemExit(table.scan().to_arrow()["id"][0].as_py())
"""


class Tiny(LocalServer):
    """Python's own server of files."""

    name = "a server of files"

    def __enter__(self):
        self._make_folder("tiny")
        self.port = 1
        (self.folder / "kept").write_text("here")
        return self

    def environment(self):
        return {"TINY": str(self.folder)}


class Missing(Tiny):
    def __enter__(self):
        raise ServerUnavailable("this machine has no such server")


@pytest.fixture
def kinds(monkeypatch):
    monkeypatch.setitem(servers.SERVERS, "hive", Missing)
    monkeypatch.setitem(servers.SERVERS, "azure", Tiny)
    monkeypatch.setitem(servers.SERVERS, "s3", Tiny)
    monkeypatch.setattr(servers, "S3Server", Tiny)


@pytest.mark.parametrize("chosen", [["azure"], []])
def test_a_command_has_a_server_and_ends_it(kinds, chosen, tmp_path, capfd) -> None:
    code = f"import os, pathlib; pathlib.Path({str(tmp_path / 'seen')!r}).write_text(os.environ['TINY']); raise SystemExit(5)"
    assert servers.main([*chosen, sys.executable, "-c", code]) == 5
    folder = Path((tmp_path / "seen").read_text())
    assert not folder.exists()
    assert capfd.readouterr().out.splitlines() == [
        "a server of files listens on 127.0.0.1:1, until the command has ended; it is reached by TINY",
        "a server of files has ended, and what was on it is gone",
    ]


def test_what_cannot_run_is_said(kinds, capfd) -> None:
    assert servers.main(["hive", "true"]) == 1
    assert capfd.readouterr().err == "this machine has no such server\n"


@pytest.mark.parametrize("arguments", [[], ["postgres"], ["--help"], ["hdfs", "-x"]])
def test_without_a_command_the_servers_are_listed(arguments, capfd) -> None:
    assert servers.main(arguments) == 2
    assert capfd.readouterr().err.startswith("usage: python -m tests.stores [s3|versity|azure|hdfs|hive|rest|mariadb|postgres] COMMAND")


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", servers.SERVERS)
def test_each_server_is_used_by_its_environment(kind, capfd) -> None:
    code = (ON_STORE.format(place=SERVED[kind]) if kind in SERVED else IN_CATALOG) + USE
    status = servers.main([kind, sys.executable, "-c", code])
    if status == 1:
        pytest.skip(capfd.readouterr().err[-300:])
    assert status == 7
