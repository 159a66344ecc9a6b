"""Scan plans of requests: splits and the funnel's report."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

from fileindex.base.thresholds import thresholds
from lsm.scan.other_branch import other_branch
from lsm.scan.plan import ScanPlan
from lsm.scan.planner import ScanPlanner
from lsm.scan.predicates import is_short
from manifest.io.file_cache import StatIdentity
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from pyspark_paimon.jobs.excluded_files import without_files
from pyspark_paimon.jobs.incremental import plan_changes
from pyspark_paimon.request.backend import ScanRequest

_PLAN_BYTES, _FILE_BYTES = 16 << 10, 2 << 10
"""Approximate bytes in memory of a plan with its key, and of each of its files."""


def plan_request(store: FileStore, request: ScanRequest, pinned: Snapshot | None) -> ScanPlan:
    """Plan ``request``.

    ``pinned``: its snapshot where known. The snapshot is still checked on storage.
    """
    if request.incremental is not None:
        return plan_changes(store, request, request.incremental)
    if pinned is None:
        snapshot = request.find_snapshot(store.snapshots)
    else:  # read its manifest lists while the snapshot is checked
        snapshot, _ = store.file_io.run_parallel(partial(store.snapshots.readable, *pinned.key), partial(store.manifest_metas, pinned))
    limit = None if request.order_by else request.limit  # sorted rows may come from any split
    top = store.options.max_level if request.read_optimized and store.schema.is_primary_key_table else 0
    predicate = request.predicate
    make = partial(ScanPlanner(store, top).plan, predicate, snapshot=snapshot, columns=request.columns, limit=limit)
    short = predicate is None or is_short(predicate)
    plan = make() if snapshot is None or not short else _plan(store, snapshot, (repr(predicate), limit, top, request.columns), make)
    return without_files(store, plan, request.excluded_files) if request.excluded_files else plan


def _plan(store: FileStore, snapshot: Snapshot, question: Hashable, make: Callable[[], ScanPlan]) -> ScanPlan:
    """Return a plan, from the cache if possible.

    A cached plan is valid for one table state, while all metadata files are the same. Only small plans are cached.
    """
    seen = _metadata_files(store, snapshot)
    if seen is None:
        return make()
    options = tuple(sorted(store.schema.options.items()))
    key = "plan", store.root, store.branch, snapshot.id, snapshot.delta_manifest_list, store.schema.id, options, question
    held = store.cache.files.get(key)
    if held is not None and held[0] == seen:
        found: ScanPlan = held[1]
        return found
    plan = make()
    if len(plan.splits) <= thresholds.held_splits and other_branch(store) is None:
        store.cache.files.put(key, (seen, plan), _PLAN_BYTES + plan.file_count * _FILE_BYTES)
    return plan


def _metadata_files(store: FileStore, snapshot: Snapshot) -> tuple[StatIdentity, ...] | None:
    """Return identities of a snapshot's manifest lists and manifests.

    None: too many files, a file too young to be identified, or a missing file.
    """
    index = [] if snapshot.index_manifest is None else [snapshot.index_manifest]
    names = [snapshot.base_manifest_list, snapshot.delta_manifest_list, *index]
    try:
        manifests = [meta.file_name for meta in store.manifest_metas(snapshot)]
        if len(manifests) > thresholds.held_manifests:
            return None
        found = tuple(store.file_io.identity(store.paths.manifest(name)) for name in (*names, *manifests))
    except FileNotFoundError:
        return None  # planning reports the missing file
    return None if None in found else found


__all__ = ["plan_request"]
