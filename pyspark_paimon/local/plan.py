"""Scan plans of requests: splits and the funnel's report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import TypeVar

from lsm.scan.key_plan import BucketPlace, HeldBucket, keys_by_bucket, plan_of_keys
from lsm.scan.other_branch import other_branch
from lsm.scan.plan import ScanPlan
from lsm.scan.planned_splits import sums_of
from lsm.scan.planner import ScanPlanner
from lsm.scan.predicates import is_short
from manifest.io.file_cache import StatIdentity
from manifest.schema.metadata_columns import metadata_names
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.thresholds import thresholds
from pyspark_paimon.jobs.incremental import plan_changes
from pyspark_paimon.request.requests import ScanRequest

P = TypeVar("P", ScanPlan, HeldBucket)
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
    limit = None if request.order_by or request.keys is not None else request.limit  # sorted or sought rows may come from any split
    top = _top_level(store, request)
    predicate = request.predicate
    metadata_columns = metadata_names(request.columns, store.schema)
    columns = tuple(name for name in request.columns if name not in metadata_columns)
    make = partial(ScanPlanner(store, top).plan, predicate, snapshot=snapshot, columns=columns, limit=limit)
    short = predicate is None or is_short(predicate)
    plan = make() if snapshot is None or not short else _plan(store, snapshot, (repr(predicate), limit, top, request.columns), make)
    if not request.excluded_files:
        return plan
    from pyspark_paimon.jobs.excluded_files import without_files  # noqa: PLC0415  # Spark alone reads files itself

    return without_files(store, plan, request.excluded_files)


def plan_lookup(store: FileStore, request: ScanRequest, pinned: Snapshot | None) -> ScanPlan:
    """Plan the read of ``request``.

    A filter that fixes the whole key finds its files in the held files of its buckets.
    """
    keys, _ = request.keys_and_filter(store.schema)
    if keys is None or not len(keys.rows) or request.incremental is not None or request.excluded_files or other_branch(store) is not None:
        return plan_request(store, request, pinned)
    snapshot = pinned or request.find_snapshot(store.snapshots)
    parts = keys_by_bucket(keys, store.schema)
    if snapshot is None or len(parts) > thresholds.held_splits:
        return plan_request(store, request, pinned)
    if pinned is None:
        identities = _metadata_files(store, snapshot)
    else:  # read its metadata while the snapshot is checked
        snapshot, identities = store.file_io.run_parallel(
            partial(store.snapshots.readable, *pinned.key), partial(_metadata_files, store, pinned)
        )
    if identities is None:
        return plan_request(store, request, snapshot)
    top = _top_level(store, request)
    return plan_of_keys(snapshot.id, [(_held_bucket(store, snapshot, identities, part.place, top), part.keys) for part in parts])


def hold_buckets(store: FileStore, snapshot: Snapshot, places: Iterable[BucketPlace]) -> None:
    """Cache the files of some buckets for lookups."""
    identities = _metadata_files(store, snapshot)
    if identities is not None and other_branch(store) is None:
        for bucket_place in places:
            _held_bucket(store, snapshot, identities, bucket_place, 0)


def _held_bucket(
    store: FileStore, snapshot: Snapshot, identities: tuple[StatIdentity, ...], bucket_place: BucketPlace, top: int
) -> HeldBucket:
    def make() -> HeldBucket:
        predicate = bucket_place.predicate(store.schema)
        return HeldBucket.of(store, ScanPlanner(store, top).plan(predicate, snapshot=snapshot, bucket=bucket_place.bucket))

    return _held(store, snapshot, identities, (bucket_place, top), make, max_splits=sys.maxsize)


def _plan(store: FileStore, snapshot: Snapshot, question: Hashable, make: Callable[[], ScanPlan]) -> ScanPlan:
    """Return a plan, from the cache if possible.

    A cached plan is valid for one table state, while all metadata files are the same. Only small plans are cached.
    """
    identities = _metadata_files(store, snapshot)
    if identities is None or other_branch(store) is not None:
        return make()
    return _held(store, snapshot, identities, question, make, max_splits=thresholds.held_splits)


def _held(
    store: FileStore,
    snapshot: Snapshot,
    identities: tuple[StatIdentity, ...],
    question: Hashable,
    make: Callable[[], P],
    *,
    max_splits: int,
) -> P:
    """Return a cached value of one table state, or call ``make``.

    Values of more than ``max_splits`` splits are not cached.
    """
    options = tuple(sorted(store.schema.options.items()))
    key = "plan", store.root, store.branch, snapshot.id, snapshot.delta_manifest_list, store.schema.id, options, question
    entry = store.cache.files.get(key)
    if entry is not None and entry[0] == identities:
        cached_plan: P = entry[1]
        return cached_plan
    plan = make()
    if len(plan.splits) <= max_splits:
        store.cache.files.put(key, (identities, plan), _PLAN_BYTES + sums_of(plan.splits).files * _FILE_BYTES)
    return plan


def _top_level(store: FileStore, request: ScanRequest) -> int:
    return store.schema.kind.top_level if request.read_optimized else 0


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
        identities = tuple(store.file_io.identity(store.paths.manifest(name)) for name in (*names, *manifests))
    except FileNotFoundError:
        return None  # planning reports the missing file
    return None if None in identities else identities
