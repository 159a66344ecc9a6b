"""Files that a read of a plan opens, by the answers of file indexes."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from fileindex.predicate.tree import TRUE
from lsm.read.metrics import ReadReport
from lsm.read.split import SplitRead
from lsm.scan.other_branch import branch_of
from lsm.scan.plan import ScanPlan
from lsm.scan.splits import DataSplit
from manifest.io.threads import map_in_threads
from manifest.store import FileStore
from pyspark_paimon.request.requests import ScanRequest

BucketFile: TypeAlias = tuple[bytes, int, str]
"""Partition, bucket and name of a data file."""


@dataclass(frozen=True)
class OpenedFiles:
    """Files of a plan that a read opens.

    report: Counters of files and of their indexes, as a read counts them.
    """

    files: AbstractSet[BucketFile]
    report: ReadReport


def opened_files(store: FileStore, request: ScanRequest, plan: ScanPlan, threads: int) -> OpenedFiles:
    """Ask the file indexes of a plan which files a read opens.

    Raises the errors of a read for indexes that are not advice: deletion vectors.
    """
    answers = map_in_threads(partial(_of_split, store, request), plan.splits, threads)
    files: set[BucketFile] = set()
    total = ReadReport()
    for opened, report in answers:
        files |= opened
        total.merge(report)
    return OpenedFiles(files, total)


def _of_split(store: FileStore, request: ScanRequest, split: DataSplit) -> tuple[set[BucketFile], ReadReport]:
    keys, predicate = request.keys_and_filter(store.schema)
    read_store = store if split.branch is None else branch_of(store, split.branch)
    condition = TRUE if predicate is None else predicate
    read = SplitRead(read_store, split.model_copy(update={"branch": None}), request.columns, condition, keys=keys)
    opened = {(split.partition, split.bucket, file.file_name) for file in split.files}
    reports = {id(read.report): read.report}
    for unit in read.index_reads():
        answers = [each.selection.is_empty for each in unit]  # of every file, as a search asks them
        if all(answers):
            opened -= {(split.partition, split.bucket, each.file.file_name) for each in unit}
        reports |= {id(each.report): each.report for each in unit}
    report = ReadReport(files=len(split.files), files_skipped=len(split.files) - len(opened))
    for each in reports.values():
        report.index.merge(each.index)
    return opened, report
