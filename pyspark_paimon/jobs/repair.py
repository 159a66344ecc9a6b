"""``Table.fsck(repair=True)``: what can be mended without loss is, each by what is safe beside writers; then the table is checked again."""

from __future__ import annotations

import time

from manifest.fsck.problem import Repair, RepairKind
from manifest.fsck.states import WAITING
from pyspark_paimon.request.backend import Backend, CompactRequest, FsckRequest
from pyspark_paimon.request.state_results import FsckResult
from pyspark_paimon.request.table_changes import RepairTable
from pyspark_paimon.request.validate import commit_identity


def repaired(backend: Backend, request: FsckRequest, older_than_ms: int, *, dry_run: bool) -> FsckResult:
    """Check the table, repair it, and check it again if anything was repaired; ``dry_run``: say what would be, and change nothing."""
    start = time.perf_counter()
    found = backend.fsck(request)
    change = RepairTable(commit_id=commit_identity(None), problems=found.problems, older_than_ms=older_than_ms, dry_run=dry_run)
    repairs = (*backend.change(change).repairs, *_compacted(backend, found.counts.get(WAITING, 0), dry_run=dry_run))
    left = backend.fsck(request) if repairs and not dry_run else found
    copies = next((_folder(backend.path, copy) for repair in repairs for copy in repair.copies), None)
    told = {"repairs": repairs, "copies": copies, "dry_run": dry_run, "seconds": time.perf_counter() - start}
    return left.model_copy(update=told)


def _compacted(backend: Backend, waiting: int, *, dry_run: bool) -> tuple[Repair, ...]:
    """Settle the files that engines which hide level 0 do not show yet."""
    if not waiting:
        return ()
    message = f"{waiting:,} files waited on level 0, where engines that hide it do not see their rows"
    if not dry_run:
        done = backend.compact(CompactRequest(commit_id=commit_identity(None)))
        if done.snapshot_id is None:
            done = backend.compact(CompactRequest(commit_id=commit_identity(None), full=True))
        if done.snapshot_id is None:
            return ()
        message += f"; snapshot {done.snapshot_id} has {done.files_before:,} files as {done.files_after:,}"
    return (Repair(kind=RepairKind.COMPACT, path=backend.path, message=message),)


def _folder(table: str, copy: str) -> str:
    """The folder of one repair's copies, by one of them."""
    head, _, rest = copy.partition("/_repair/")
    return f"{head}/_repair/{rest.partition('/')[0]}" if rest else table


__all__ = ["repaired"]
