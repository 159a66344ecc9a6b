"""Repair what a check found."""

from __future__ import annotations

import time

from paimon_base.texts import count_text
from pyspark_paimon.operations.compact import Compact, compact_table
from pyspark_paimon.operations.history.removal import Destruction
from pyspark_paimon.plugins.fsck.operation import Fsck
from pyspark_paimon.plugins.fsck.repair import Repairs, forget_before_gap, repair_metadata
from pyspark_paimon.plugins.fsck.repair_rows import repair_rows
from pyspark_paimon.plugins.fsck.states import WAITING
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.operation import OpenTable
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.request.validate import commit_identity
from pyspark_paimon.results.fsck_problem import Problem, Repair, RepairKind
from pyspark_paimon.results.message import CommitId
from pyspark_paimon.results.state_results import FsckResult, TableChangeResult


class RepairTable(Destruction):
    """Repair problems that lose no rows.

    ``problems``: problems that a check found.
    ``older_than_ms``: unreferenced index files last changed before this time are deleted.
    """

    commit_id: CommitId
    problems: tuple[Problem, ...]
    older_than_ms: int

    def run(self, table: OpenTable) -> TableChangeResult:
        """Repair metadata, then rows."""
        store = table.store()
        repairs = Repairs(store, self.dry_run)
        repair_metadata(repairs, self.problems, self.older_than_ms)
        repair_rows(repairs, self.problems, self.commit_id)
        return TableChangeResult(repairs=tuple(repairs.records))


class RepairEarliestSnapshot(Destruction):
    """Remove the snapshots before a gap in the history.

    ``snapshot_id``: the first snapshot behind the gap.
    """

    snapshot_id: int

    def run(self, table: OpenTable) -> TableChangeResult:
        """Remove the snapshot files, after copies of them were made."""
        repairs = Repairs(table.writable(), self.dry_run)
        before = len(repairs.store.snapshots.ids())
        forget_before_gap(repairs, self.snapshot_id)
        gone = (
            sum(i < self.snapshot_id for i in repairs.store.snapshots.ids())
            if self.dry_run
            else before - len(repairs.store.snapshots.ids())
        )
        return TableChangeResult(snapshot_id=self.snapshot_id, snapshots=gone, repairs=tuple(repairs.records))


def repair_table(engine: Engine, check: Fsck, older_than_ms: int, *, dry_run: bool) -> FsckResult:
    """Check the table, repair it, and check it again.

    ``dry_run``: report the repairs and change nothing.
    """
    start = time.perf_counter()
    checked = engine.ask(check)
    change = RepairTable(commit_id=commit_identity(None), problems=checked.problems, older_than_ms=older_than_ms, dry_run=dry_run)
    repairs = (*engine.run(change).repairs, *_compact(engine, checked.counts.get(WAITING, 0), dry_run=dry_run))
    left = engine.ask(check) if repairs and not dry_run else checked
    copies = next((_folder(engine.path, copy) for repair in repairs for copy in repair.copies), None)
    fields = {"repairs": repairs, "copies": copies, "dry_run": dry_run, "seconds": time.perf_counter() - start}
    return left.model_copy(update=fields)


def _compact(engine: Engine, waiting: int, *, dry_run: bool) -> tuple[Repair, ...]:
    """Compact files that wait on level 0."""
    if not waiting:
        return ()
    message = f"level 0 had {count_text(waiting, 'file')}, whose rows are not visible to engines that skip level 0"
    if not dry_run:
        schema = engine.ask(SchemaOf())
        compacted = compact_table(engine, schema, Compact(commit_id=commit_identity(None)))
        if compacted.snapshot_id is None:
            compacted = compact_table(engine, schema, Compact(commit_id=commit_identity(None), full=True))
        if compacted.snapshot_id is None:
            return ()
        message += f"; snapshot {compacted.snapshot_id} has {count_text(compacted.files_before, 'file')} as {compacted.files_after:,}"
    return (Repair(kind=RepairKind.COMPACT, path=engine.path, message=message),)


def _folder(table: str, copy: str) -> str:
    """Return the folder with the copies of a repair.

    ``copy``: path of one of the copies.
    """
    head, _, rest = copy.partition("/_repair/")
    return f"{head}/_repair/{rest.partition('/')[0]}" if rest else table
