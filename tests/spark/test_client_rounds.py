"""Rounds of a Spark client's jobs: a job that lost is staged again, once its outcome is known; no server is needed."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark.sql.datasource")

from manifest.commit.transaction import EVALUATIONS
from manifest.io.errors import CommitConflict, CommitGaveUp
from manifest.snapshot.snapshot import EMPTY_TABLE
from pyspark_paimon.operations.compact import Compact, MovePostponed
from pyspark_paimon.request.requests import DeleteRequest
from pyspark_paimon.request.tasks import Task, TaskPlan
from pyspark_paimon.results.results import Outcome
from pyspark_paimon.spark.client import engine as client
from pyspark_paimon.spark.client.engine import SparkEngine
from pyspark_paimon.spark.client.staging import Staged

FIRST, SECOND = (Outcome(snapshot_id=None, compact_snapshot_id=number, counts={"buckets": 1}) for number in (1, 2))


@pytest.fixture
def losing_engine(monkeypatch):
    """An engine whose jobs all lose, and that notes what it does."""
    events: list[str] = []

    def lose(self, job, commit_id):
        events.append("run")
        raise CommitConflict("lost")

    def ask(self, commit_id):
        events.append("ask")

    monkeypatch.setattr(SparkEngine, "_run", lose)
    monkeypatch.setattr(SparkEngine, "_outcome", ask)
    monkeypatch.setattr(SparkEngine, "ask", lambda self, question: None)
    made = SparkEngine("/t", None)
    made.events = events
    return made


def staged(*_):
    return Staged(None, None)


PLAN = TaskPlan(base=EMPTY_TABLE, tasks=(Task("", 0, 9),))


@pytest.fixture
def tasks(losing_engine, monkeypatch):
    """What the server answers to a question for tasks."""
    plans = [PLAN]
    monkeypatch.setattr(SparkEngine, "ask", lambda self, question: plans[0])
    monkeypatch.setattr(client, "stage_tasks", lambda spark, tasks, operation, job: Staged(None, job))
    return plans


def test_maintenance_is_given_up_after_the_last_round(losing_engine, tasks, monkeypatch):
    names = []
    lose = SparkEngine._run
    monkeypatch.setattr(SparkEngine, "_run", lambda self, job, commit_id: names.append(job.job.identity) or lose(self, job, commit_id))
    with pytest.raises(CommitGaveUp, match=rf"/t: {EVALUATIONS} jobs in a row lost"):
        losing_engine.run(Compact(commit_id="c"))
    assert names == ["c", *(f"c-{number}" for number in range(2, EVALUATIONS + 1))]
    assert losing_engine.events == ["run", "ask"] * EVALUATIONS


def test_what_a_job_committed_before_it_lost_counts(losing_engine, tasks, monkeypatch):
    answers = [CommitConflict("some were lost"), SECOND]

    def run(self, job, commit_id):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(SparkEngine, "_run", run)
    monkeypatch.setattr(SparkEngine, "_outcome", lambda self, commit_id: FIRST)
    done = losing_engine.run(Compact(commit_id="c"))
    assert (done.snapshot_id, done.buckets, done.attempts) == (2, 2, 2)


def test_all_or_nothing_is_done_if_its_first_run_is_visible_after_all(losing_engine, tasks, monkeypatch):
    monkeypatch.setattr(SparkEngine, "_outcome", lambda self, commit_id: FIRST)
    assert losing_engine.run(MovePostponed(commit_id="c")).snapshot_id == 1
    assert losing_engine.events == ["run"]


def test_nothing_to_do_is_one_round_without_a_job(losing_engine, tasks):
    tasks[0] = TaskPlan(base=EMPTY_TABLE)
    assert losing_engine.run(Compact(commit_id="c")).attempts == 1
    assert losing_engine.events == []


def test_a_change_asks_for_its_outcome_before_it_is_staged_again(losing_engine):
    with pytest.raises(CommitConflict, match="lost"):
        losing_engine._until_committed(
            DeleteRequest(commit_id="c", predicate=None), lambda base: losing_engine.events.append("stage") or staged()
        )
    assert losing_engine.events == ["ask", *["stage", "run", "ask"] * EVALUATIONS]


def test_a_change_that_lost_to_its_own_first_run_is_visible(losing_engine, monkeypatch):
    visible = iter([None, FIRST])
    monkeypatch.setattr(SparkEngine, "_outcome", lambda self, commit_id: next(visible))
    result, outcome = losing_engine._until_committed(DeleteRequest(commit_id="c", predicate=None), staged)
    assert (result.compact_snapshot_id, outcome, losing_engine.events) == (1, FIRST, ["run"])
