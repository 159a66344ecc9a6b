"""This project where the disk is not waited for: what durable commits cost. There is no such switch in the product."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.contenders import ours
from benchmarks.contenders.worker import Job, serve


def unsynced(step: Callable[[Job], Any]) -> Callable[[Job], Any]:
    def run(job: Job) -> Any:
        os.fsync = lambda fd: None  # noqa: ARG005  # named as the system's
        return step(job)

    return run


CONTENDER = replace(
    ours.CONTENDER,
    title="ours without fsync",
    steps={name: unsynced(step) for name, step in ours.CONTENDER.steps.items()},
    tables_of="ours",
    only=("write", "upsert", "commits", "commits_compacting", "compact", "write_indexed"),
)

if __name__ == "__main__":
    serve(CONTENDER, ["pyspark-paimon"])
