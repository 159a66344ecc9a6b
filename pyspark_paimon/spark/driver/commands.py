"""Client operations that run on the driver.

The commit hook of a write job runs them.
"""

from __future__ import annotations

from typing import Any

from pyspark_paimon.request.operation import Operation
from pyspark_paimon.spark.driver.job_files import answer_once, stored_answer, wait_for_end
from pyspark_paimon.system.opened import local_backend


def run_command(path: str, command_id: str, operation: Operation[Any]) -> None:
    """Run an operation once and store its answer.

    ``path`` is the path of the table.
    """
    answer_once(command_id, lambda: operation.answer_text(local_backend(path).run(operation)))


def answer_of_command(command_id: str) -> str | None:
    """Return the answer of a command.

    Waits a limited time for the end of its job. None: the command did not succeed.
    """
    return wait_for_end(command_id, lambda: stored_answer(command_id))


__all__ = ["answer_of_command", "run_command"]
