"""As ``test_spark_exactly_once.py``, for accidents that only a cluster survives or has: there tasks are tried again."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark.sql.connect.session")

from once_kit import (
    BEFORE,
    ROWS,
    armed,
    changes,
    content,
    executor_is_replaced,
    files,
    kinds,
    made_table,
    session_at,
    settled,
    worker_is_replaced,
    writing,
)

from pyspark_paimon import Table

pytestmark = pytest.mark.spark

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "50ms",
}


@pytest.fixture(scope="module")
def remote(cluster):
    """A session of this process on the cluster."""
    made = session_at(cluster.url)
    yield made
    made.client.close()


@pytest.fixture
def path(tmp_path):
    return made_table(tmp_path)


@pytest.fixture
def faults(tmp_path, monkeypatch, set_thresholds):
    with armed(tmp_path, monkeypatch, set_thresholds) as made:
        yield made


def attempts(faults, point="files") -> set[tuple[int, int]]:
    return {(visit["task"], visit["attempt"]) for visit in faults.visits(point)}


@pytest.mark.slow
def test_a_task_that_fails_once_is_tried_again_and_only_its_second_files_count(remote, path, faults):
    faults.register(remote)
    faults.order("files", "raise")
    result = Table.open(path, spark=remote).write(changes(remote), commit_id=faults.commit_id)
    assert (result.rows, result.files) == (ROWS, 2)
    assert len(attempts(faults)) == 3
    settled(remote, path, faults.commit_id, orphans=True)


def test_a_killed_python_worker_is_replaced(remote, path, faults):
    worker_is_replaced(remote, path, faults)
    assert len(attempts(faults)) == 3


@pytest.mark.long
def test_a_killed_executor_is_replaced(cluster, remote, path, faults):
    executor_is_replaced(cluster, remote, path, faults)


@pytest.mark.long
def test_a_server_that_dies_commits_nothing_and_the_write_is_repeated_on_the_next_one(cluster, path, faults):
    from pyspark.sql.connect.client.retries import DefaultPolicy

    old = session_at(cluster.url)
    old.client.set_retry_policies([DefaultPolicy(max_retries=2, initial_backoff=50, max_backoff=100)])
    faults.register(old)
    faults.order("files", "hold", times=2)
    with writing(old, path, faults.commit_id) as write:
        faults.wait_for("files", 2)
        cluster.stop_server()
    assert write.error is not None
    assert content(path) == BEFORE
    assert kinds(path) == ["APPEND"]
    assert any(faults.commit_id in file.name for file in files(path))
    faults.release("files")
    cluster.start_server(conf=SPECULATION)
    new = session_at(cluster.url)
    faults.register(new)
    assert Table.open(path, spark=new).write(changes(new), commit_id=faults.commit_id).rows == ROWS
    settled(new, path, faults.commit_id, orphans=True)
    old.client.close()


@pytest.mark.long
def test_of_two_attempts_of_a_slow_task_one_counts(cluster, path, faults):
    """Runs on the server that the test before started, which speculates."""
    remote = session_at(cluster.url)
    if remote.sql("SET spark.speculation").collect()[0][1] != "true":
        cluster.stop_server()
        cluster.start_server(conf=SPECULATION)
        remote = session_at(cluster.url)
    faults.register(remote)
    faults.order("rows", "hold")
    with writing(remote, path, faults.commit_id) as write:
        faults.wait_for("rows", 3)
    assert (write.error, write.result.rows, write.result.files) == (None, ROWS, 2)
    tried = attempts(faults, "rows")
    assert sorted(len([attempt for task, attempt in tried if task == one]) for one in (0, 1)) == [1, 2]
    settled(remote, path, faults.commit_id)
    remote.client.close()
