"""The driver's side of a client's questions: ``DataSource.schema()`` answers them, without a job and without side effects."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from manifest.entry.index_manifest import HASH
from manifest.fsck.walk import gone
from manifest.store import FileStore
from pyspark_paimon.frames.spark_types import spark_schema
from pyspark_paimon.jobs.compaction import bucket_sizes, wanted_buckets
from pyspark_paimon.jobs.excluded_files import check_excluded
from pyspark_paimon.jobs.incremental import scan_fields
from pyspark_paimon.jobs.index_rewrite import indexable_files
from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.request.backend import CompactRequest
from pyspark_paimon.request.partition_spec import Spec
from pyspark_paimon.spark.driver.catalog_tables import check_properties, missing_table_told
from pyspark_paimon.spark.driver.commands import answer_of_command
from pyspark_paimon.spark.driver.commit import outcome
from pyspark_paimon.spark.driver.options import read_options, table_path, with_options
from pyspark_paimon.spark.driver.scan_options import scan_request
from pyspark_paimon.spark.read.native_files import native_plan
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.arrow_stream import BLOB
from pyspark_paimon.spark.wire.errors import errors_noted
from pyspark_paimon.spark.wire.server_info import server_facts
from pyspark_paimon.stream.options import is_stream
from pyspark_paimon.system.opened import local_backend
from pyspark_paimon.views.plan_json import plan_to_json
from pyspark_paimon.views.summaries import summaries_to_json

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def schema(options: MutableMapping[str, str]) -> StructType:
    """What ``DataSource.schema()`` returns for ``options``; a scan's snapshot is pinned in them for the reader."""
    with errors_noted():
        if rpc.QUESTION in options:
            return rpc.answer_schema(_answer(local_backend(table_path(options)), rpc.parse_question(options[rpc.QUESTION])))
        if rpc.FSCK in options:
            from pyspark_paimon.spark.read.fsck_reader import fsck_schema  # noqa: PLC0415  # only a check needs it

            return fsck_schema()
        if rpc.HASHES in options:
            from pyspark_paimon.spark.read.hash_index_reader import hash_schema  # noqa: PLC0415  # only writes to dynamic buckets need it

            return hash_schema(local_backend(table_path(options)).schema())
        if is_stream(options):
            from pyspark_paimon.spark.read.stream_reader import stream_schema  # noqa: PLC0415  # only streams need it

            return stream_schema(options)
        given = dict(options) if rpc.SCAN in options else read_options(options)
        backend = local_backend(table_path(given))
        with missing_table_told(options):
            request = scan_request(backend, given)
        if request.excluded_files:
            check_excluded(backend.store(), request)
        options[rpc.SCAN] = request.model_dump_json()
        if rpc.form_of(options) != "rows":
            return _carrier(options[rpc.FORM])
        table = backend.schema(request.schema_id)
        check_properties(options, table)
        return with_options(spark_schema(scan_fields(table, request.columns)), options)


def _carrier(form: str) -> StructType:
    """The schema of a scan that gives something else than rows of the table."""
    from pyspark.sql import types as st  # noqa: PLC0415  # Spark is imported when it is used

    if form == "blobs":
        return st.StructType([st.StructField(BLOB, st.BinaryType(), nullable=False)])
    return st.StructType([st.StructField(rpc.ANSWER, st.StringType(), nullable=False)])


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
        case rpc.AskPlan():
            return plan_to_json(backend.plan(question.request))
        case rpc.AskTree():
            return backend.tree(question.request).model_dump_json()
        case rpc.AskNative():
            return native_plan(backend, question.request).model_dump_json()
        case rpc.AskCount():
            return json.dumps(backend.cheap_count(question.request))
        case rpc.AskAggregate():
            found = backend.cheap_aggregate(question.request)
            return "null" if found is None else summaries_to_json(found)
        case rpc.AskBuckets():
            return json.dumps(_sized_buckets(backend.store(), question.request))
        case rpc.AskDynamicBuckets():
            return json.dumps(_dynamic_buckets(backend.store(), question.snapshot_id))
        case rpc.AskIndexFiles():
            return json.dumps(_index_files(backend.store(), question.partitions))
        case rpc.AskGone():
            return json.dumps(gone(backend.store(), question.origins))
        case rpc.AskOrphans():
            return json.dumps([orphan.model_dump(mode="json") for orphan in backend.orphans(question.older_than_ms, remove=False)])
        case rpc.AskOutcome():
            return outcome(backend.store(), question.commit_id) or "null"
        case rpc.AskAnswer():
            return json.dumps(answer_of_command(question.id))


def _sized_buckets(store: FileStore, request: CompactRequest) -> list[tuple[str, int, int]]:
    """The buckets of a compaction, and the bytes of their files."""
    sizes = bucket_sizes(store)
    return [(partition.hex(), bucket, sizes[partition, bucket]) for partition, bucket in wanted_buckets(store, request)]


def _dynamic_buckets(store: FileStore, snapshot_id: int) -> int:
    entries = store.index_entries(store.snapshots.get(snapshot_id))
    return max(Counter(entry.partition for entry in entries if entry.index_type == HASH).values(), default=0)


def _index_files(store: FileStore, partitions: Sequence[Spec] | None) -> dict[str, Any]:
    """The files that a rewrite of indexes looks at, and the snapshot that has them."""
    snapshot = store.snapshots.latest()
    files = [
        (entry.partition.hex(), entry.bucket, entry.file.file_name, entry.file.file_size)
        for entry in indexable_files(store, snapshot, partitions)
    ]
    return {"snapshot_id": 0 if snapshot is None else snapshot.id, "files": files}


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


__all__ = ["schema"]
