"""What a contender is, and the worker that runs one step of it in a process of its own.

The harness starts ``python -m benchmarks.contenders.<name> JOB`` in the contender's environment, in the repository's root, with a ``Job`` as
JSON. The worker prints JSON objects, one a line, each with ``event``:

* ``{"event": "ready"}`` when its inputs are in memory and the work is about to start (a read is done once before the clock starts),
* ``{"event": "done"}`` when the clock has stopped (the harness samples the memory of the process tree between the two),
* ``{"event": "result", ...}``: ``seconds`` and ``cpu`` (lists), ``answer`` (``{"rows": n, "hash": h}`` as ``answers.answer_of`` computes it;
  null after a write or compaction: then the harness reads the table with ours), ``queries`` (by name: ``seconds``, ``answers``), ``versions``.

Other lines are ignored. A step that fails ends the process with another code than 0; the end of standard error is the reason.
A contender that is no Python module (Paimon's Java core) takes the same JSON as its last argument and prints the same lines.
Only the standard library, numpy, pyarrow and the peer may be imported here: peers pin other versions than ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Filter = list[list[Any]]
"""Conditions that all hold: ``[column, "=" | ">=" | "<=", literal]``; literals of DECIMAL and DATE columns are texts."""


class Unavailable(Exception):
    """The contender cannot run here; the text is the one line that the report shows."""


@dataclass(frozen=True)
class Query:
    """A lookup or a plan: asked once with each filter; ``count`` wants the number of rows, ``warm`` a table that has planned before."""

    name: str
    filters: list[Filter]
    columns: list[str] | None = None
    count: bool = False
    warm: bool = False


@dataclass(frozen=True)
class Job:
    """One step. Operations: ``write``, ``compact``, ``read``, ``lookup``, ``plan``.

    Each file of ``inputs`` (Parquet) is one commit. With ``create`` the table is made first, by the inputs' columns, ``primary_key``
    (empty: an append table) and ``options`` (Paimon's); without, ``options`` alter it. Neither counts. A row of an input replaces the row
    with its key. ``indexes``: columns by kind of index, for contenders that do not know Paimon's options, which say the same.
    """

    op: str
    path: str
    inputs: list[str] = field(default_factory=list)
    create: bool = False
    primary_key: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    indexes: dict[str, list[str]] = field(default_factory=dict)
    queries: list[Query] = field(default_factory=list)
    threads: int = 2

    @property
    def is_repeated(self) -> bool:
        """Whether it is done once more before, unmeasured, in the same process, as queries are.

        Imports would count else, and on a virtual machine the memory that its host has yet to give: seconds for each GiB, whoever comes first.
        """
        return self.op == "read"

    def to_json(self) -> str:
        """The worker's argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The other way."""
        form = json.loads(text)
        return cls(**{**form, "queries": [Query(**query) for query in form["queries"]]})

    def tables(self) -> list[Any]:
        """The inputs, in memory, each column in one chunk."""
        import pyarrow.parquet as pq

        return [pq.read_table(path).combine_chunks() for path in self.inputs]


@dataclass(frozen=True)
class Timed:
    """A step made ready: the clock runs during ``work`` only; ``answer`` turns its result into a table to be checked (None: harness reads)."""

    work: Callable[[], Any]
    answer: Callable[[Any], Any] = lambda _: None


Ask = Callable[[Query, Filter], Any]
"""Answers a query: an Arrow table, or a number (rows of a count, files of a plan). Opens the table itself, so that this counts."""


@dataclass(frozen=True)
class Contender:
    """What the harness knows of one; importable without the peer.

    ``pins`` are the packages of its environment (none: the harness's own Python). ``lacks`` tells why something is left out, by the
    name of a workload, operation or query, or ``indexed`` for all that has to do with indexes. ``share``: it is so slow that it gets only this
    part of the rows. ``paimon``: its tables are Paimon's. ``compacted_by`` names the contender that compacts its tables where it cannot
    (its own name: they need none). ``tables_of``: it works on copies of another contender's tables. ``only``: the workloads that make
    sense. ``command`` makes what is not a Python environment in a cache folder and answers the command line in front of the job;
    raises ``Unavailable``.
    """

    title: str
    steps: Mapping[str, Callable[[Job], Any]] = field(default_factory=dict)
    pins: tuple[str, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)
    share: float = 1.0
    paimon: bool = False
    compacted_by: str | None = None
    tables_of: str | None = None
    only: tuple[str, ...] = ()
    command: Callable[[Path], list[str]] | None = None
    note: str = ""


def say(event: str, **more: Any) -> None:
    """A line for the harness."""
    print(json.dumps({"event": event, **more}), flush=True)


def cpu_seconds() -> float:
    """Of this process and the children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def clocked(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, seconds on the wall, seconds of processors."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    result = work()
    wall = time.perf_counter() - wall
    return result, wall, cpu_seconds() - cpu


def versions(names: Iterable[str]) -> dict[str, str]:
    """Of installed packages; one that runs from its sources is left out."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def answer_form(result: Any) -> dict[str, Any] | None:
    """A result as JSON: what the harness compares with the truth."""
    from benchmarks.answers import answer_of

    if result is None:
        return None
    return {"rows": result, "hash": 0} if isinstance(result, int) else answer_of(result)


def run_timed(timed: Timed, *, twice: bool) -> dict[str, Any]:
    """One measurement, with ``twice`` of the second time: see ``Job.is_repeated``."""
    say("ready")
    if twice:
        timed.work()
    result, wall, cpu = clocked(timed.work)
    say("done")
    return {"seconds": [wall], "cpu": [cpu], "answer": answer_form(timed.answer(result))}


def run_queries(ask: Ask, queries: list[Query], *, twice: bool) -> dict[str, Any]:
    """All queries, each with all its filters. The first filter is asked once more before, unmeasured, as imports would count else.

    With ``twice`` the seconds of the first time are ``first``, and those of the second time ``seconds``: the steady state of a process.
    """
    ask(queries[0], queries[0].filters[0])
    say("ready")
    found = _ask_all(ask, queries)
    if twice:
        first, found = found, _ask_all(ask, queries)
        for name, times in found.items():
            times["first"] = first[name]["seconds"]
            if times["answers"] != first[name]["answers"]:
                raise RuntimeError(f"{name}: the second answer is not the first")
    say("done")
    return {"seconds": [], "cpu": [], "answer": None, "queries": found}


def _ask_all(ask: Ask, queries: list[Query]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for query in queries:
        walls, cpus, answers = [], [], []
        for each in query.filters:
            result, wall, cpu = clocked(lambda: ask(query, each))  # noqa: B023  # called at once
            walls.append(wall)
            cpus.append(cpu)
            answers.append(answer_form(result))
            del result
        found[query.name] = {"seconds": walls, "cpu": cpus, "answers": answers}
    return found


def serve(contender: Contender, packages: Iterable[str]) -> None:
    """The main function of a contender's module."""
    job = Job.from_json(sys.argv[1])
    os.environ.setdefault("POLARS_MAX_THREADS", str(job.threads))
    import pyarrow as pa

    pa.set_cpu_count(job.threads)
    ready = contender.steps[job.op](job)
    pa.default_memory_pool().release_unused()
    result = (
        run_timed(ready, twice=job.is_repeated) if isinstance(ready, Timed) else run_queries(ready, job.queries, twice=job.op != "plan")
    )
    say("result", versions={**versions(packages), "pyarrow": pa.__version__}, **result)


__all__ = ["Ask", "Contender", "Filter", "Job", "Query", "Timed", "Unavailable", "serve"]
