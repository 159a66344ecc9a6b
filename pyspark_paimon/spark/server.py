"""The driver's side of a client's questions: ``DataSource.schema()`` answers them, without a job and without side effects."""

from __future__ import annotations

import base64
import json
from collections.abc import MutableMapping
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.spark.driver.options import table_path
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.errors import errors_noted
from pyspark_paimon.spark.wire.names import WARM
from pyspark_paimon.spark.wire.server_info import server_facts
from pyspark_paimon.system.opened import local_backend

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def schema(options: MutableMapping[str, str]) -> StructType:
    """What ``DataSource.schema()`` returns for ``options``; a scan's snapshot is pinned in them for the reader."""
    with errors_noted():
        if rpc.QUESTION in options:
            return rpc.answer_schema(_answer(local_backend(table_path(options)), rpc.parse_question(options[rpc.QUESTION])))
        if WARM in options:
            from pyspark_paimon.spark.warm import warm_schema  # noqa: PLC0415  # see test_imports

            return warm_schema()
        if rpc.FSCK in options:
            from pyspark_paimon.spark.read.fsck_reader import fsck_schema  # noqa: PLC0415  # only a check needs it

            return fsck_schema()
        if rpc.HASHES in options:
            from pyspark_paimon.spark.read.hash_index_reader import hash_schema  # noqa: PLC0415  # only writes to dynamic buckets need it

            return hash_schema(local_backend(table_path(options)).schema())
        from pyspark_paimon.stream.options import is_stream  # noqa: PLC0415  # see test_imports

        if is_stream(options):
            from pyspark_paimon.spark.read.stream_reader import stream_schema  # noqa: PLC0415  # only streams need it

            return stream_schema(options)
        from pyspark_paimon.spark.scan_schema import scan_schema  # noqa: PLC0415  # see test_imports

        return scan_schema(options)


def _answer(backend: LocalBackend, question: rpc.Question) -> str:
    """The answer as JSON."""
    match question:
        case rpc.AskServer():
            return server_facts().model_dump_json()
        case rpc.AskSchema():
            return backend.schema(question.id).to_json()
        case rpc.AskSnapshot():
            snapshot = backend.pin(question.travel)
            return "null" if snapshot is None else snapshot.to_json()
        case rpc.AskStart():
            snapshot, table = backend.start(question.travel)
            return json.dumps([None if snapshot is None else snapshot.to_json(), table.to_json()])
        case rpc.AskSnapshots():
            return json.dumps([snapshot.to_json() for snapshot in backend.snapshots()])
        case rpc.AskFiles():
            return json.dumps(base64.b64encode(_ipc(backend.files(question.snapshot_id))).decode())
        case rpc.AskStatistics():
            statistics = backend.statistics(question.snapshot_id)
            return "null" if statistics is None else statistics.to_json()
        case rpc.AskView():
            return json.dumps(base64.b64encode(_ipc(backend.view(question.view))).decode())
        case rpc.AskIndexView():
            return json.dumps(base64.b64encode(_ipc(backend.index_view(question.view, question.snapshot_id))).decode())
        case rpc.AskTree():
            return backend.tree(question.request).model_dump_json()
        case rpc.AskOrphans():
            return json.dumps([orphan.model_dump(mode="json") for orphan in backend.orphans(question.older_than_ms, remove=False)])
        case rpc.AskOutcome():
            from pyspark_paimon.spark.driver.outcome import outcome  # noqa: PLC0415  # see test_imports

            return outcome(backend.store(), question.commit_id) or "null"
        case rpc.AskAnswer():
            from pyspark_paimon.spark.driver.commands import answer_of_command  # noqa: PLC0415  # see test_imports

            return json.dumps(answer_of_command(question.id))
        case _:
            from pyspark_paimon.spark.file_questions import answer_from_files  # noqa: PLC0415  # see test_imports

            return answer_from_files(backend, question)


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


__all__ = ["schema"]
