"""In-process implementation of ``Table.fsck``.

This thread reads metadata and a pool checks files. Problems of states that expire during the check are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from pydantic import TypeAdapter

from manifest.io.threads import map_in_threads
from manifest.store import FileStore
from paimon_base.thresholds import thresholds
from pyspark_paimon.jobs.progress import Steps
from pyspark_paimon.plugins.fsck.check_file import FileCheck
from pyspark_paimon.plugins.fsck.check_keys import check_key_partitions
from pyspark_paimon.plugins.fsck.unit import Unit
from pyspark_paimon.plugins.fsck.walk import count_orphans, gone, walk
from pyspark_paimon.request.requests import Progress
from pyspark_paimon.results.fsck_depth import Depth
from pyspark_paimon.results.fsck_problem import Findings, Origin
from pyspark_paimon.results.state_results import FsckResult

_FINDINGS = TypeAdapter(Findings)
_EXPIRY_SECONDS = 1.0
_EXPIRY_TRIES = 3


def check_table(store: FileStore, depth: Depth, *, limit: int, threads: int, progress: Progress | None) -> FsckResult:
    """Check the table.

    Memory holds the live files of one state and the names of all files.
    """
    start = time.perf_counter()
    started_ms = int(time.time() * 1000)
    findings = Findings(limit)
    check = FileCheck(store, depth)
    steps = Steps(progress, "fsck", None, "files")
    for units in _batches(walk(store, findings)):
        for unit_findings in map_in_threads(partial(_check_files, check, limit, steps), units, threads):
            findings.merge(unit_findings)
    if depth is Depth.DEEP:
        check_key_partitions(store, findings)
    findings = without_expired(findings, partial(gone, store))
    if depth is not Depth.QUICK and not findings.total:
        count_orphans(store, started_ms, findings)
    steps.end()
    return result_of(findings, depth, start)


def _check_files(check: FileCheck, limit: int, steps: Steps, unit: Unit) -> Findings:
    findings = check.check(unit, limit=limit)
    steps.finish(unit.size)
    return findings


def _batches(units: Iterator[Unit]) -> Iterator[list[Unit]]:
    while batch := list(islice(units, thresholds.checked_at_once)):
        yield batch


def findings_to_json(findings: Findings) -> str:
    """Encode findings as JSON, to send to another process."""
    return _FINDINGS.dump_json(findings).decode()


def findings_from_json(text: str) -> Findings:
    """Decode the JSON of ``findings_to_json``."""
    return _FINDINGS.validate_json(text)


def without_expired(findings: Findings, are_gone: Callable[[Sequence[Origin]], list[bool]]) -> Findings:
    """Drop problems of states that expired during the check.

    Expiry deletes files first and snapshots last. So a problem is checked again after a delay.
    """
    for attempt in range(_EXPIRY_TRIES):
        origins = list({problem.origin: None for problem in findings.problems})
        if not origins:
            break
        if attempt:
            time.sleep(_EXPIRY_SECONDS)
        doomed = {origin for origin, is_gone in zip(origins, are_gone(origins), strict=True) if is_gone}
        findings = findings.without(lambda problem, doomed=doomed: problem.origin in doomed)  # type: ignore[misc]  # bound at once
    return findings


def result_of(findings: Findings, depth: Depth, start: float) -> FsckResult:
    """Return the check's result, with sorted problems."""
    ordered = sorted(findings.problems, key=lambda problem: (problem.path, problem.kind, problem.message))
    return FsckResult(
        depth=depth,
        problems=tuple(ordered),
        problem_count=findings.total,
        counts=dict(sorted(findings.counts.items())),
        unchecked=dict(sorted(findings.unchecked.items())),
        seconds=time.perf_counter() - start,
    )
