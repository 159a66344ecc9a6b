"""The commands of a client, run on the driver by the commit hook of a write job."""

from __future__ import annotations

import json

from manifest.schema.table_schema import TableSchema
from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.spark.driver.answers import answered, stored_answer
from pyspark_paimon.spark.driver.running_jobs import after_its_end
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.system.opened import local_backend


def run_command(path: str, command: rpc.Command) -> None:
    """Run ``command`` on the table at ``path`` unless it ran before, and keep its answer."""
    answered(command.id, lambda: _run(local_backend(path), command))


def answer_of_command(command_id: str) -> str | None:
    """What a command answered, once its job is over if that is under way; None if it did not end well."""
    return after_its_end(command_id, lambda: stored_answer(command_id))


def _run(backend: LocalBackend, command: rpc.Command) -> str:
    match command:
        case rpc.Create():
            return backend.create(TableSchema.from_json(command.table_schema)).to_json()
        case rpc.ChangeTable():
            return backend.change(command.change).model_dump_json()
        case rpc.Expire():
            return backend.expire(command.request).model_dump_json()
        case rpc.RemoveOrphans():
            return json.dumps([orphan.model_dump(mode="json") for orphan in backend.orphans(command.older_than_ms, remove=True)])
        case rpc.Analyze():
            return backend.analyze(command.commit_id, command.columns).model_dump_json()
        case rpc.MergeHeldRows():
            return backend.merge(command.request, command.wanted).model_dump_json()


__all__ = ["answer_of_command", "run_command"]
