"""A thin client of another Python version against a standalone cluster of two workers: see ``cluster_client.py``."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.spark


def test_the_client_is_thin_and_of_another_python_where_there_is_one(told, cluster):
    from thin_client import interpreter

    assert told["java"] is None
    assert (tuple(told["python"]) != sys.version_info[:2]) == (interpreter() != sys.executable)
    assert (len(cluster.workers), len(cluster.executors)) == (2, 2)


def test_it_creates_writes_compacts_reads_and_deletes(told):
    assert told["counts"] == {"a": 500, "b": 1000}
    assert told["unique name"] == 1500
    assert told["found"] == [{"id": 700, "v": "b"}]
    assert (told["compacted"], told["left"]) == (2, 1490)


def test_a_token_is_asked_for_and_never_shown(told):
    for case in ("wrong token", "no token"):
        kind, text = told[case]
        assert kind == "SparkUnavailable"
        assert "asks for a token" in text
        assert "hunter2" not in text


def test_an_address_where_nobody_listens_is_named_at_once(told):
    kind, text = told["nobody there"]
    assert kind == "SparkUnavailable"
    assert "sc://localhost:9: no Spark Connect server answers" in text
    assert "hunter2" not in text


def test_the_same_address_has_one_session_and_another_one_on_request(told):
    assert told["again the same"]
    assert told["new session"]
    assert told["settings"] == ["2", "5"]


def test_sessions_see_the_same_table_and_each_its_own_progress(told):
    assert told["other reads"] == 490
    assert told["first sees"] == 10
    assert told["progress"] == [0, True]


def test_where_the_package_is_installed_nothing_is_shipped(told):
    assert told["install"]["shipped"] is None
