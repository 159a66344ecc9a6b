"""Options of stores as a session's file: what is sent, which of them count for a path, and what a server refuses."""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fileindex.base.errors import InvalidArgument, UnsupportedOption
from manifest.storage.resolve import file_io_for
from manifest.storage.storage_options import StorageOptions
from pyspark_paimon.spark.wire.session_storage import CLIENT_STORAGE, send_storage_options

KEYS = {"s3.endpoint": "http://127.0.0.1:9", "s3.access-key": "AKIA", "s3.secret-key": "hidden"}


class Session:
    """Keeps the files that it is given, as a server does."""

    client = object()

    def __init__(self, folder):
        self.folder = folder

    def addArtifacts(self, path, *, file):  # Spark's name
        assert file
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
        shutil.copy(path, self.folder)


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """This process as a worker of the server, whose session's files are in ``tmp_path``."""
    files = SimpleNamespace(_is_running_on_worker=True, getRootDirectory=lambda: str(tmp_path))
    monkeypatch.setitem(sys.modules, "pyspark.core.files", SimpleNamespace(SparkFiles=files))
    return files


def options_for(path):
    return file_io_for(path)[0].options


def test_what_was_given_for_the_longest_path_counts_and_of_that_the_newest(session, server):
    send_storage_options(session, KEYS)
    send_storage_options(session, KEYS | {"s3.access-key": "OLD"}, "s3://b/w/t/")
    send_storage_options(session, KEYS | {"s3.access-key": "NEW"}, "s3://b/w/t$branch_dev")
    named = {
        path: {name: value for _, name, value in options_for(path).values}["access_key_id"]
        for path in ("s3://b/w/t", "s3://b/w/t$branch_x", "s3://b/w/t/branch/branch-x", "s3://b/w/t2", "s3://other/t")
    }
    assert list(named.values()) == ["NEW", "NEW", "NEW", "AKIA", "AKIA"]
    own = {"s3.region": "eu-1"}
    assert file_io_for("s3://b/w/t", storage_options=own)[0].options == StorageOptions.of(own), "what a caller says counts first"


def test_nothing_is_sent_twice_nor_for_local_tables(session, tmp_path):
    for _ in range(3):
        send_storage_options(session, KEYS, "s3://b/w/t")
        send_storage_options(session, KEYS, "/warehouse/t")
        send_storage_options(session, KEYS, "file:///warehouse/t")
    assert len(list(tmp_path.iterdir())) == 1


def test_only_a_server_s_processes_look_for_files(session, server):
    send_storage_options(session, KEYS)
    server._is_running_on_worker = False
    assert options_for("s3://b/w/t") == StorageOptions()


def test_a_server_may_take_none(session, server, monkeypatch):
    monkeypatch.setenv(CLIENT_STORAGE, "refused")
    assert options_for("s3://b/w/t") == StorageOptions(), "its own count where nobody gives any"
    send_storage_options(session, KEYS)
    with pytest.raises(UnsupportedOption, match="refuses those of clients"):
        options_for("s3://b/w/t")
    monkeypatch.setenv(CLIENT_STORAGE, "no")
    with pytest.raises(InvalidArgument, match=CLIENT_STORAGE):
        options_for("s3://b/w/t")


@pytest.mark.parametrize(
    "lent",
    [
        {"s3.endpoint": "http://evil.example.com"},
        {"s3.endpoint": "http://evil.example.com", "azure.account-key": "k"},
        {"azure.endpoint": "http://evil.example.com"},
        {"s3.role-arn": "arn:aws:iam::1:role/r"},
        {"s3.web-identity-token-file": "/etc/shadow"},
        {"gs.service-account": "/etc/shadow"},
        {"gs.application-credentials": "/etc/shadow"},
    ],
)
def test_nothing_of_the_server_s_own_is_lent(session, server, tmp_path, monkeypatch, lent):
    with pytest.raises(InvalidArgument, match="storage_options"):
        send_storage_options(session, lent)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("pyspark_paimon.spark.wire.session_storage.refuse_server_credentials", lambda options: None)
    send_storage_options(session, lent)  # as a client of its own making would
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyspark.core.files", SimpleNamespace(SparkFiles=server))
    with pytest.raises(InvalidArgument, match="storage_options"):
        options_for("s3://b/w/t")


def test_a_session_without_such_files_is_refused():
    with pytest.raises(InvalidArgument, match="Spark Connect session"):
        send_storage_options(SimpleNamespace(), KEYS)
