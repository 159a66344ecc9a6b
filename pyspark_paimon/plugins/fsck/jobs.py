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
from pyspark_paimon.request.backend import Progress
from pyspark_paimon.request.fsck_depth import Depth
from pyspark_paimon.request.fsck_problem import Findings, Origin
from pyspark_paimon.request.state_results import FsckResult

_FINDINGS = TypeAdapter(Findings)
_EXPIRY_SECONDS = 1.0
_EXPIRY_TRIES = 3


def check_table(store: FileStore, depth: Depth, *, limit: int, threads: int, progress: Progress | None) -> FsckResult:
    """Check the table.

    Memory holds the live files of one state and the names of all files.
    """
    start = time.perf_counter()
    started_ms = int(time.time() * 1000)
    found = Findings(limit)
    check = FileCheck(store, depth)
    steps = Steps(progress, "fsck", None, "files")
    for some in _batches(walk(store, found)):
        for one in map_in_threads(partial(_check_files, check, limit, steps), some, threads):
            found.merge(one)
    if depth is Depth.DEEP:
        check_key_partitions(store, found)
    found = without_expired(found, partial(gone, store))
    if depth is not Depth.QUICK and not found.total:
        count_orphans(store, started_ms, found)
    steps.end()
    return result_of(found, depth, start)


def _check_files(check: FileCheck, limit: int, steps: Steps, unit: Unit) -> Findings:
    found = check.check(unit, limit=limit)
    steps.finish(unit.size)
    return found


def _batches(units: Iterator[Unit]) -> Iterator[list[Unit]]:
    while some := list(islice(units, thresholds.checked_at_once)):
        yield some


def findings_to_json(found: Findings) -> str:
    """Encode findings as JSON, to send to another process."""
    return _FINDINGS.dump_json(found).decode()


def findings_from_json(text: str) -> Findings:
    """Decode the JSON of ``findings_to_json``."""
    return _FINDINGS.validate_json(text)


def without_expired(found: Findings, are_gone: Callable[[Sequence[Origin]], list[bool]]) -> Findings:
    """Drop problems of states that expired during the check.

    Expiry deletes files first and snapshots last. So a problem is checked again after a delay.
    """
    for attempt in range(_EXPIRY_TRIES):
        origins = list({problem.origin: None for problem in found.problems})
        if not origins:
            break
        if attempt:
            time.sleep(_EXPIRY_SECONDS)
        doomed = {origin for origin, is_gone in zip(origins, are_gone(origins), strict=True) if is_gone}
        found = found.without(lambda problem, doomed=doomed: problem.origin in doomed)  # type: ignore[misc]  # bound at once
    return found


def result_of(found: Findings, depth: Depth, start: float) -> FsckResult:
    """Return the check's result, with sorted problems."""
    ordered = sorted(found.problems, key=lambda problem: (problem.path, problem.kind, problem.message))
    return FsckResult(
        depth=depth,
        problems=tuple(ordered),
        problem_count=found.total,
        counts=dict(sorted(found.counts.items())),
        unchecked=dict(sorted(found.unchecked.items())),
        seconds=time.perf_counter() - start,
    )
