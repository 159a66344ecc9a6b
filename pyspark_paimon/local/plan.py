"""The plan of a scan's request: splits and the funnel's report, whatever the request asks for."""

from __future__ import annotations

from functools import partial

from lsm.scan.plan import ScanPlan
from lsm.scan.planner import ScanPlanner
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from pyspark_paimon.jobs.excluded_files import without_files
from pyspark_paimon.jobs.incremental import plan_changes
from pyspark_paimon.request.backend import ScanRequest


def plan_request(store: FileStore, request: ScanRequest, pinned: Snapshot | None) -> ScanPlan:
    """Plan ``request``; ``pinned`` is its snapshot where that is at hand, which is looked for again all the same."""
    if request.incremental is not None:
        return plan_changes(store, request, request.incremental)
    if pinned is None:
        snapshot = None if request.snapshot_id is None else store.snapshots.readable(request.snapshot_id)
    else:  # what it names need not wait for that
        snapshot, _ = store.file_io.together(partial(store.snapshots.readable, pinned.id), partial(store.manifest_metas, pinned))
    limit = None if request.order_by else request.limit  # sorted rows may come from any split
    top = store.options.max_level if request.read_optimized and store.schema.is_primary_key_table else 0
    plan = ScanPlanner(store, top).plan(request.predicate, snapshot=snapshot, columns=request.columns, limit=limit)
    return without_files(store, plan, request.excluded_files) if request.excluded_files else plan


__all__ = ["plan_request"]
