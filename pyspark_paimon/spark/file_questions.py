"""Answers to the questions that are about a table's files: plans of scans, what metadata tell of rows, the work of jobs.

Apart from ``server``, whose other questions need none of what plans and reads.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lsm.commit.postponed import waiting_files
from manifest.entry.index_manifest import HASH
from manifest.fsck.walk import gone
from manifest.io.paths import POSTPONE_BUCKET
from manifest.store import FileStore
from pyspark_paimon.jobs.compaction import wanted_buckets, wanted_entries
from pyspark_paimon.jobs.index_rewrite import indexable_files
from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.request.partition_spec import Spec
from pyspark_paimon.spark.read.native_files import native_plan
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.views.plan_json import plan_to_json
from pyspark_paimon.views.summaries import summaries_to_json


def answer_from_files(backend: LocalBackend, question: rpc.FileQuestion) -> str:
    """The answer as JSON."""
    match question:
        case rpc.AskPlan():
            return plan_to_json(backend.plan(question.request))
        case rpc.AskNative():
            return native_plan(backend, question.request).model_dump_json()
        case rpc.AskCount():
            return json.dumps(backend.cheap_count(question.request))
        case rpc.AskAggregate():
            found = backend.cheap_aggregate(question.request)
            return "null" if found is None else summaries_to_json(found)
        case rpc.AskBuckets():
            return json.dumps(_sized_buckets(backend.store(), question))
        case rpc.AskDynamicBuckets():
            return json.dumps(_dynamic_buckets(backend.store(), question.snapshot_id))
        case rpc.AskIndexFiles():
            return json.dumps(_index_files(backend.store(), question.partitions))
        case rpc.AskGone():
            return json.dumps(gone(backend.store(), question.origins))


def _sized_buckets(store: FileStore, question: rpc.AskBuckets) -> list[tuple[str, int, int]]:
    """The buckets of a compaction, and the bytes of their files."""
    if question.waiting_at is not None:
        found = waiting_files(store, store.snapshots.get(question.waiting_at), wanted_entries(store, question.request))
        return [(partition.hex(), POSTPONE_BUCKET, sum(file.file_size for file in files)) for partition, files in found.items()]
    return [(partition.hex(), bucket, size) for (partition, bucket), size in wanted_buckets(store, question.request).items()]


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


__all__ = ["answer_from_files"]
