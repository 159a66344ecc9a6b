"""The requests of checks and repairs come back from their texts."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.plugins.fsck.jobs import findings_to_json
from pyspark_paimon.plugins.fsck.operation import FindExpired, Fsck
from pyspark_paimon.plugins.fsck.repair_operation import RepairEarliestSnapshot, RepairTable
from pyspark_paimon.request.operation import Operation, Question, parse_request
from pyspark_paimon.results.fsck_problem import Findings, Origin
from pyspark_paimon.spark.client.engine import SparkEngine
from pyspark_paimon.spark.wire.rpc import ANSWER
from tests.build import keyed


@pytest.mark.parametrize("question", [Fsck(), FindExpired(origins=(Origin(snapshot=1), Origin(snapshot=9)))])
def test_a_question_and_its_answer_come_back_as_they_were(tmp_path: Any, question: Question[Any]) -> None:
    table = keyed(tmp_path / "t", "id BIGINT, city STRING")
    assert parse_request(question.to_text(), Question, "q") == question
    answer = LocalEngine(table.path).ask(question)
    assert question.answer_of(question.answer_text(answer)) == answer


@pytest.mark.parametrize("operation", [RepairTable(commit_id="c", problems=(), older_than_ms=0), RepairEarliestSnapshot(snapshot_id=3)])
def test_an_operation_comes_back_as_it_was(operation: Operation[Any]) -> None:
    assert parse_request(operation.to_text(), Operation, "o").to_text() == operation.to_text()


def test_the_time_of_a_check_includes_its_tasks() -> None:
    """A check over Spark is timed from before its job."""
    job_seconds = 0.02

    def collect() -> list[dict[str, str]]:
        time.sleep(job_seconds)
        return [{ANSWER: findings_to_json(Findings(10))}]

    frame = SimpleNamespace(collect=collect)
    reader = SimpleNamespace()
    reader.format = lambda name: reader
    reader.options = lambda **options: reader
    reader.load = lambda: frame
    result = SparkEngine("/t", SimpleNamespace(read=reader)).ask(Fsck())
    assert result.clean
    assert result.seconds >= job_seconds
