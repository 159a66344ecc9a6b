"""Repairs that read rows.

Recounts table statistics, and rewrites data files with wrong column statistics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa

from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from lsm.scan.table_statistics import collect_statistics
from lsm.write.compaction_job import CompactionJob
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.transaction import Round, Transaction
from manifest.io.checksum import with_checksum
from manifest.options.core_options import OWN_BRANCH
from manifest.snapshot.commit_info import commit_properties
from manifest.snapshot.snapshot import CommitKind, Snapshot
from manifest.stats.table_stats import Statistics
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, PaimonError
from paimon_base.log import logger_of
from pyspark_paimon.plugins.fsck.repair import Repairs, states_of
from pyspark_paimon.plugins.fsck.walk import branch_store
from pyspark_paimon.results.fsck_problem import Problem, ProblemKind, RepairKind

_LOG = logger_of(__name__)


def repair_rows(repairs: Repairs, problems: Sequence[Problem], commit_id: str) -> None:
    """Repair statistics files, and data files with wrong statistics.

    Data files with other problems are not rewritten. A file that cannot be read, or that another commit replaces, is left unchanged.
    """
    files = {problem.path: problem for problem in problems if problem.kind is ProblemKind.STATISTICS_FILE}
    for path, problem in files.items():
        try:
            _count_again(repairs, branch_store(repairs.store, problem.origin.branch), path, problem.message)
        except (PaimonError, FileNotFoundError) as error:
            _LOG.warning("%s: cannot recount the statistics: %s", path, error)
    otherwise = {problem.path for problem in problems if problem.kind is not ProblemKind.COLUMN_STATISTICS}
    wrong = {problem.path: problem.message for problem in problems if problem.path not in otherwise}
    if wrong:
        try:
            _rewrite_files(repairs, repairs.store, wrong, commit_id)
        except CorruptFile as error:
            _LOG.warning("%s: cannot rewrite files with wrong statistics: %s", repairs.store.root, error)


def _count_again(repairs: Repairs, store: FileStore, path: str, message: str) -> None:
    """Recount the rows of the oldest snapshot with the file.

    That is the snapshot counted by ``ANALYZE``, if it still exists.
    """
    name = path.rpartition("/")[2]
    snapshot = next(states_of(store, name), None)
    if snapshot is None:
        return
    schema = store.schemas.get(snapshot.schema_id)
    schema_store = store.with_schema(schema)
    try:
        columns: Collection[str] = store.statistics_files.read(name).col_stats
    except (PaimonError, FileNotFoundError):
        columns = schema.names
    names = [column for column in schema.names if column in columns]
    plan = ScanPlanner(schema_store.with_options(OWN_BRANCH)).plan(snapshot=snapshot)

    def count() -> None:
        rows, column_statistics = collect_statistics(_batches(schema_store, snapshot, names), [schema.field(column) for column in names])
        size = plan.file_size * rows // max(plan.row_count, 1)
        before = int(snapshot.commit_kind is CommitKind.ANALYZE and snapshot.id > 1)  # it follows the snapshot it describes
        statistics = Statistics(
            snapshot_id=snapshot.id - before,
            schema_id=schema.id,
            merged_record_count=rows,
            merged_record_size=size,
            col_stats=column_statistics,
        )
        store.file_io.write(path, with_checksum(path, statistics.to_json()), overwrite=True)

    repairs.mend(RepairKind.COUNT_STATISTICS, path, f"{message}; recount the rows of snapshot {snapshot.id}", count, changes=[path])


def _batches(store: FileStore, snapshot: Snapshot, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for split in ScanPlanner(store.with_options(OWN_BRANCH)).plan(snapshot=snapshot).splits:
        for rows in read_split(store, split, columns=columns):
            yield from rows.to_batches() if isinstance(rows, pa.Table) else (rows,)


def _rewrite_files(repairs: Repairs, store: FileStore, wrong: dict[str, str], commit_id: str) -> None:
    """Rewrite files of the newest state by a compaction.

    Older states keep the old files until they expire.
    """
    buckets: defaultdict[tuple[bytes, int], dict[str, str]] = defaultdict(dict)
    for entry in store.live_entries(store.snapshots.latest()).entries():
        path = store.physical_files(entry.partition, entry.bucket, entry.file)[0]
        if path in wrong:
            buckets[entry.partition, entry.bucket][entry.file.file_name] = path
    if buckets and not repairs.dry_run:
        store.check_writable()
        commit = FileStoreCommit(store, commit_id, fresh=True)

        def evaluate(current: Round[CommitMessage]) -> None:
            with CompactionJob(store, commit_id=commit_id) as job:
                for (partition, bucket), files in buckets.items():
                    job.rewrite(partition, bucket, files)
                current.work.extend(job.prepare_commit())

        def publish(messages: Sequence[CommitMessage]) -> CommitResult:
            return commit.commit(messages, properties=commit_properties("repair"))

        for bucket_id in set(Transaction(commit.abort).run(evaluate, publish, evaluations=1).lost_compactions):
            del buckets[bucket_id]
    for files in buckets.values():
        for path in files.values():
            message = f"{wrong[path]}; rewrite it, older snapshots keep the old file until they expire"
            repairs.mend(RepairKind.REWRITE_FILE, path, message, _already_done)


def _already_done() -> None:
    """Do nothing: the commit made the change."""
