"""Interleavings: an operation stops before one of its file operations, another runs to its end, then the first goes on or is killed.

Tables lie in a local directory or on an object store, where a file operation is a request.

The outcome must be that of the two in some order: rows, tags, branches and what both were answered. An operation that is refused must have
done nothing. Afterwards the table is whole (``fsck`` deep), orphans can be removed, and the next write works.
"""

from __future__ import annotations

import itertools
import os
import random
import select
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import manifest.io.posix
from manifest.io.errors import StorageError, TableNotFound
from manifest.storage.resolve import file_io_for
from paimon_base.errors import CorruptFile, PaimonError
from pyspark_paimon import Table
from tests.torture.check import Wrong, delete_unfinished_branches, whole
from tests.torture.directory_store import url_of, watch
from tests.torture.disk import Count, Operation, Stop
from tests.torture.footprints import Footprint, relevant_stops
from tests.torture.forked import Ended, forked, warm_up
from tests.torture.kills import scratch_folder
from tests.torture.model import Row, bag
from tests.torture.operations import LATER, opened, table_of
from tests.torture.report import Outcome, case_of, leave_case
from tests.torture.tables import KINDS, ON_STORE, Configuration, configuration_of

PART = "interleavings"
SECONDS = 60.0
_QUICK = {"commit.min-retry-wait": "1 ms", "commit.max-retry-wait": "5 ms"}


@dataclass(frozen=True)
class Step:
    """An operation by name. ``prepare`` runs before the clock starts: what it returns is given to ``act``."""

    act: Callable[..., Any]
    kinds: Callable[[Configuration], bool] = lambda _: True
    prepare: Callable[[Table], Any] | None = None


def _rows(keys: range, n: int, table: Table) -> Any:
    made: list[Row] = [{"id": key, "p": key % 3, "n": n, "s": f"s{n}"} for key in keys]
    return table_of(made, table.schema)


def _has_key(kind: Configuration) -> bool:
    return kind.engine != "append"


def _changes_rows(kind: Configuration) -> bool:
    return kind.deletes


def _commit_of_writer(writer: Any) -> None:
    writer.commit()
    writer.close()


def _writer(table: Table) -> Any:
    writer = table.writer()
    writer.write(_rows(range(14, 17), 9, table))
    return writer


def _merge(table: Table) -> None:
    source = _rows(range(10, 15), 8, table)
    table.merge(source, on=["id", "p"]).when_matched_update_all().when_not_matched_insert_all().execute()


def _drop_schemas(table: Table) -> None:
    file_io, root = file_io_for(table.path)
    file_io.delete_directory(f"{root}/schema", recursive=True)


STEPS: dict[str, Step] = {
    "write": Step(lambda t: t.write(_rows(range(4, 9), 3, t))),
    "write new": Step(lambda t: t.write(_rows(range(30, 32), 4, t))),
    "writer": Step(_commit_of_writer, prepare=_writer),
    "overwrite": Step(lambda t: t.write(_rows(range(0, 6, 3), 5, t), "overwrite")),
    "delete": Step(lambda t: t.delete("id >= 3 AND id < 7"), _changes_rows),
    "delete keys": Step(lambda t: t.delete(keys=_rows(range(5, 7), 0, t).select(t.primary_keys)), lambda k: k.engine == "deduplicate"),
    "update": Step(lambda t: t.update("id >= 5 AND id < 9", values={"s": "updated"}), _changes_rows),
    "merge": Step(_merge, _changes_rows),
    "truncate": Step(lambda t: t.write(_rows(range(0), 0, t), "overwrite")),
    "compact": Step(lambda t: t.compact()),
    "compact full": Step(lambda t: t.compact(full=True)),
    "rewrite indexes": Step(lambda t: t.rewrite_file_index()),
    "expire": Step(lambda t: t.expire_snapshots(retain_min=1, retain_max=1, older_than=LATER)),
    "orphans": Step(lambda t: t.remove_orphan_files(older_than=time.time_ns() // 1_000_000 - 3_600_000)),
    "analyze": Step(lambda t: t.analyze()),
    "tag": Step(lambda t: t.create_tag("new")),
    "untag": Step(lambda t: t.delete_tag("first")),
    "replace tag": Step(lambda t: t.replace_tag("second", min(t.snapshots()["snapshot_id"].to_pylist()))),
    "rename tag": Step(lambda t: t.rename_tag("second", "renamed")),
    "rollback": Step(lambda t: t.rollback_to(tag="second")),
    "rollback far": Step(lambda t: t.rollback_to(tag="first")),
    "restore": Step(lambda t: t.restore(tag="second")),
    "branch": Step(lambda t: t.create_branch("other", "second")),
    "write to branch": Step(lambda t: opened(t.path, branch="side").write(_rows(range(2), 6, t))),
    "unbranch": Step(lambda t: t.delete_branch("side")),
    "fast-forward": Step(lambda t: t.fast_forward("side")),
    "add column": Step(lambda t: t.add_column("x", "BIGINT")),
    "drop column": Step(lambda t: t.drop_column("s"), lambda k: not any("file-index" in option for option in k.options)),
    "fsck": Step(lambda t: t.fsck("deep") and None),
    "repair": Step(lambda t: t.fsck("deep", repair=True) and None),
    "scan": Step(lambda t: t.scan().to_arrow().to_pylist()),
    "filter": Step(lambda t: t.scan("n >= 2 AND s > 'a'").to_arrow().to_pylist()),
    "count": Step(lambda t: [{"count": t.scan().count()}]),
    "scan tag": Step(lambda t: t.scan(tag="second").to_arrow().to_pylist()),
    "scan branch": Step(lambda t: opened(t.path, branch="side").scan().to_arrow().to_pylist()),
    "aggregate": Step(lambda t: [dict(t.scan().aggregate({"n": ["min", "max"]}).to_pylist()[0].items())]),
    "lookup": Step(lambda t: t.lookup(_rows(range(3, 8), 0, t).select(t.primary_keys)).to_pylist(), _has_key),
    "drop": Step(_drop_schemas),
}  # fmt: skip
"""Every operation of the matrix. ``drop`` deletes the schema first, as other engines do."""

_REPEATED = frozenset({"rollback", "rollback far", "fast-forward"})
"""Operations that are to be repeated after they were cut off on an object store."""
READS = frozenset({"scan", "filter", "count", "scan tag", "scan branch", "aggregate", "lookup", "fsck"})
_ANY_STOP = 0.1
"""Share of the stops that are drawn without regard to what the other operations touch."""


@dataclass(frozen=True)
class Answer:
    """What an operation was answered: ``rows`` of a read, or the ``error`` that refused it; ``unknown``: whether it is done was not known."""

    rows: Counter[str] | None = None
    error: str = ""
    typed: bool = True
    unknown: bool = False


@dataclass(frozen=True)
class View:
    """All that can be seen of a table: rows by branch and by tag, columns; None if there is no table."""

    rows: Counter[str] | None
    tags: Mapping[str, Counter[str]] = field(default_factory=dict)
    branches: Mapping[str, Counter[str]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()


def carry_out(name: str, path: str) -> Answer:
    """Do one operation in this process."""
    step = STEPS[name]
    try:
        table = opened(path)
        given = table if step.prepare is None else step.prepare(table)
        return _answered(step, given)
    except PaimonError as error:
        return _refused(error)


def _answered(step: Step, given: Any) -> Answer:
    found = step.act(given)
    return Answer(bag(found) if isinstance(found, list) else None)


def _refused(error: PaimonError) -> Answer:
    text = f"{type(error).__name__}: {error}"
    return Answer(error=text, unknown=isinstance(error, StorageError) and ("may be" in text or "repeat the call" in text))


def view(path: str, *, dropped: bool = False) -> View:
    """Look at everything, in this process. A table that another engine ``dropped`` may have left a schema that came meanwhile."""
    try:
        return _view(path)
    except TableNotFound:
        return View(None)
    except CorruptFile:
        if not dropped:
            raise
        return View(None)


def _view(path: str) -> View:
    table = opened(path)
    names = table.tags()["tag_name"].to_pylist()
    branches = table.branches()["branch_name"].to_pylist()
    return View(
        bag(table.scan().to_arrow().to_pylist()),
        {name: bag(table.scan(tag=name).to_arrow().to_pylist()) for name in names},
        {name: bag(opened(path, branch=name).scan().to_arrow().to_pylist()) for name in branches},
        tuple(table.schema.names),
    )


@dataclass
class PreparedTable:
    """A table of one of ``KINDS``, made once, and what operations do to it when they run one after the other."""

    name: str
    scratch: str
    _serial: dict[tuple[str, ...], tuple[tuple[Answer, ...], View]] = field(default_factory=dict)
    _counted: dict[str, list[Operation]] = field(default_factory=dict)
    _copies: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        made = forked(partial(_make, self.kind, self.url(self.base)))
        if made.verdict:
            raise AssertionError(made.error)

    @property
    def kind(self) -> Configuration:
        return configuration_of(self.name)

    @property
    def on_store(self) -> bool:
        return self.name.endswith(ON_STORE)

    @property
    def base(self) -> str:
        return f"{self.scratch}/base"

    def url(self, directory: str) -> str:
        """Return the path by which a copy is opened."""
        return url_of(directory, self.name)

    def copy(self) -> str:
        path = f"{self.scratch}/t{next(self._copies)}"
        shutil.copytree(self.base, path, copy_function=os.link)
        return path

    def serial(self, *names: str) -> tuple[tuple[Answer, ...], View]:
        """Return the answers and the view after ``names`` ran one after the other."""
        if names not in self._serial:
            path = self.copy()
            url = self.url(path)
            ended = forked(lambda: (tuple(carry_out(name, url) for name in names), view(url)))
            shutil.rmtree(path)
            assert not ended.verdict, (self.name, names, ended)
            self._serial[names] = ended.value
        return self._serial[names]

    def operations(self, name: str) -> list[Operation]:
        """Return the file operations of ``name`` when it runs alone, paths relative to the table."""
        if name not in self._counted:
            path = self.copy()
            ended = forked(partial(_count, name, path, self.url(path)))
            shutil.rmtree(path)
            assert not ended.verdict, (self.name, name, ended)
            self._counted[name] = [replace(o, path=o.path.removeprefix(path)) for o in ended.value]
        return self._counted[name]

    def stops(self, first: str, *others: str) -> list[int]:
        """Return the file operations of ``first`` to stop before, one for each group of stops that ``others`` make alike."""
        return relevant_stops(self.operations(first), [Footprint.of(self.operations(other)) for other in others])


def _make(kind: Configuration, path: str) -> None:
    options = {**kind.options, **_QUICK}
    table = Configuration(kind.name, kind.engine, options, kind.partitioned).create(path)
    table = opened(path)
    table.write(_rows(range(12), 1, table))
    table.create_tag("first")
    table.write(_rows(range(6, 18), 2, table))
    table.compact(full=True)
    table.create_tag("second")
    table.create_branch("side", "second")
    side = opened(path, branch="side")
    side.write(_rows(range(20, 23), 5, table))
    side.write(_rows(range(21, 24), 6, table))
    table.write(_rows(range(8, 10), 7, table))
    table.write(_rows(range(18, 20), 8, table))


def _count(name: str, path: str, url: str) -> list[Operation]:
    seen: list[Operation] = []
    _impatient(0.0)
    step = STEPS[name]
    table = opened(url)
    given = table if step.prepare is None else step.prepare(table)
    watch(Count(seen), path, url)
    with suppress(PaimonError):
        step.act(given)
    return list(seen)


def _impatient(seconds: float) -> None:
    """Wait no longer for the lock: safety must not rest on it."""
    manifest.io.posix._TURN_SECONDS = seconds
    manifest.io.posix._LOCK_SECONDS = seconds


def _stopping(name: str, path: str, url: str, stop: Stop, patience: float) -> Answer:
    _impatient(patience)
    step = STEPS[name]
    try:
        table = opened(url)
        given = table if step.prepare is None else step.prepare(table)
        watch(stop, path, url)
        return _answered(step, given)
    except PaimonError as error:
        return _refused(error)


@dataclass(frozen=True)
class Case:
    """One interleaving: ``first`` stops before its ``number``-th file operation while ``others`` run, then goes on or is killed."""

    kind: str
    first: str
    others: tuple[str, ...]
    number: int
    kills: bool = False
    patience: float = 0.0

    @property
    def what(self) -> str:
        return f"{self.first} {'killed' if self.kills else 'stopped'} at {self.number}, {' and '.join(self.others)}"


def run_case(table: PreparedTable, case: Case) -> tuple[str, str]:
    """Run one interleaving on a copy. Returns a verdict of the report and its detail."""
    path = table.copy()
    try:
        return _judged(table, case, path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _judged(table: PreparedTable, case: Case, path: str) -> tuple[str, str]:
    url = table.url(path)
    first, others = _interleaved(case, path, url)
    for ended in (first, *others):
        if ended.verdict and not (case.kills and ended.signal == signal.SIGKILL):
            return ended.verdict, ended.error
    answers = [ended.value for ended in others]
    killed = first.value is None
    looked = forked(lambda: view(url, dropped="drop" in {case.first, *case.others}))
    if looked.verdict:
        return "broken table", looked.error
    seen: View = looked.value
    verdict = _explained(table, case, None if killed else first.value, answers, seen)
    if verdict and killed and table.on_store and case.first in _REPEATED:
        again = forked(lambda: (carry_out(case.first, url), view(url)))
        if again.verdict:
            return again.verdict, again.error
        answer, seen = again.value
        verdict = _explained(table, case, answer, answers, seen)
    if verdict and _deletes_a_tag_late(table, case):
        return "excused", verdict[1]
    if verdict:
        return verdict
    after = forked(partial(_aftermath, url, seen))
    if after.verdict:
        return after.verdict, after.error
    if isinstance(after.value, Wrong):
        return after.value.verdict, after.value.detail
    return "right", ""


def _interleaved(case: Case, path: str, url: str) -> tuple[Ended, list[Ended]]:
    """Run the first operation to its stop, then the others, then the rest of it."""
    warm_up()
    others: list[Ended] = []

    def meanwhile() -> None:
        others.extend(forked(partial(_beside, name, url, case.patience), seconds=SECONDS) for name in case.others)

    first = _paused(partial(_stopping, case.first, path, url, Stop(case.number), case.patience), meanwhile, kills=case.kills)
    return first, others


def _beside(name: str, path: str, patience: float) -> Answer:
    _impatient(patience)
    return carry_out(name, path)


def _paused(function: Callable[[], Any], meanwhile: Callable[[], None], *, kills: bool) -> Ended:
    """Fork ``function``; when it stops itself, call ``meanwhile`` and let it go on. If it ends before, call it afterwards."""
    pid: list[int] = []
    fork = os.fork

    def remembered() -> int:
        child = fork()
        if child:
            pid.append(child)
            os.fork = fork
            if _stops(child):
                meanwhile()
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL if kills else signal.SIGCONT)
            else:
                meanwhile()
        return child

    os.fork = remembered
    try:
        return forked(function, seconds=SECONDS)
    finally:
        os.fork = fork


def _stops(pid: int) -> bool:
    """Wait until a child stops or ends; whether it has stopped."""
    watched = os.pidfd_open(pid)
    try:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            # WNOWAIT leaves the end of the child to whoever waits for it next.
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                return bool(found.si_code == os.CLD_STOPPED)
            select.select([watched], [], [], 0.002)
    finally:
        os.close(watched)
    return False


def _explained(table: PreparedTable, case: Case, first: Answer | None, others: list[Answer], seen: View) -> tuple[str, str] | None:
    """None if some order of the operations that were not refused gives these answers and this view."""
    names = dict(zip(range(1, len(others) + 1), case.others, strict=True))
    answers: dict[int, Answer | None] = {0: first, **dict(enumerate(others, 1))}
    names[0] = case.first
    if first is None and case.first == "rename tag" and {"second", "renamed"} <= seen.tags.keys():
        seen = replace(seen, tags={name: rows for name, rows in seen.tags.items() if name != "second"})  # killed between its two steps
    sure = [number for number, answer in answers.items() if answer is not None and not answer.error]
    doubtful = [number for number, answer in answers.items() if answer is None or answer.unknown]
    allowed: list[tuple[tuple[str, ...], View]] = []
    wrong_answers: list[str] = []
    for count in range(len(doubtful) + 1):
        for some in itertools.combinations(doubtful, count):
            for order in itertools.permutations([*sure, *some]):
                given, expected = table.serial(*(names[number] for number in order))
                allowed.append((tuple(names[number] for number in order), expected))
                if expected != seen:
                    continue
                told = dict(zip(order, given, strict=True))
                off = [
                    names[n]
                    for n in sure
                    if (told[n].error and not _may_differ(names[n])) or (told[n].rows != answers[n].rows)  # type: ignore[union-attr]
                ]
                if not off:
                    return None
                wrong_answers += off
    said = "; ".join(f"{names[n]}: {answer.error or 'done'}" for n, answer in sorted(answers.items()) if answer is not None)
    if wrong_answers:
        return "wrong rows", f"{said}; answers of {sorted(set(wrong_answers))} are those of no order"
    closest = min(allowed, key=lambda found: len(_difference(found[1], seen)))
    return "wrong rows", f"{said}; closest order {' > '.join(closest[0]) or 'none'}: {_difference(closest[1], seen)}"


def _may_differ(name: str) -> bool:
    """Whether an operation that is refused after another one may also have been done beside it."""
    return name in {"fsck", "repair"}


def _difference(expected: View, seen: View) -> str:
    lines = [
        f"{what}: expected {_few(getattr(expected, what))}, found {_few(getattr(seen, what))}"
        for what in ("rows", "columns")
        if getattr(expected, what) != getattr(seen, what)
    ]
    for what in ("tags", "branches"):
        ours, theirs = getattr(expected, what), getattr(seen, what)
        lines += [
            f"{what[:-1]} {name}: expected {_few(ours.get(name))}, found {_few(theirs.get(name))}"
            for name in sorted({*ours, *theirs})
            if ours.get(name) != theirs.get(name)
        ]
    return "; ".join(lines)


def _few(rows: Any) -> str:
    return str(rows) if not isinstance(rows, Counter) else f"{rows.total()} rows {sorted(rows)[:3]}"


def _aftermath(path: str, seen: View) -> Wrong | None:
    """In a process of its own: the table is whole, its orphans go, the next write works."""
    try:
        if seen.rows is None:
            return None
        delete_unfinished_branches(path)
        whole(opened(path))
        opened(path).remove_orphan_files(older_than=LATER)
        if view(path) != seen:
            return Wrong("lost", "the removal of orphans changed the table")
        table = opened(path)
        columns = [name for name in table.schema.names if name in {"id", "p", "n", "s"}]
        table.write(_rows(range(100, 101), 1, table).select(columns), missing="null")
        if sum(row["id"] == 100 for row in opened(path).scan().to_arrow().to_pylist()) != 1:
            return Wrong("lost", "the row of the next write")
        whole(opened(path), "footers")
        if opened(path).list_orphan_files(older_than=LATER):
            return Wrong("broken table", "orphans after the next write")
    except Wrong as wrong:
        return wrong
    except PaimonError as error:
        return Wrong("broken table", f"{type(error).__name__}: {error}")
    return None


def _deletes_a_tag_late(table: PreparedTable, case: Case) -> bool:
    """Return whether a rollback stops right before it deletes a tag that a fast-forward writes again.

    Stores do not compare before they delete, so the new tag goes. The documentation says so.
    """
    if not table.on_store or case.first not in _REPEATED or "fast-forward" not in case.others:
        return False
    operation = table.operations(case.first)[case.number - 1]
    return operation.name == "unlink" and operation.path.startswith("/tag/")


def pairs(kind: Configuration) -> list[tuple[str, str]]:
    """Return the pairs of operations that make sense on a kind of table: at least one of the two changes something."""
    names = [name for name, step in STEPS.items() if step.kinds(kind)]
    return [(first, second) for first in names for second in names if not {first, second} <= READS]


def outcomes(seed: int, folder: Path) -> Iterator[Outcome]:
    """Interleave for ever, in an order drawn from ``seed``."""
    dice = random.Random(seed)
    while True:
        name = dice.choice(KINDS)
        with scratch_folder() as scratch:
            table = PreparedTable(name, scratch)
            for _ in range(60):
                case = drawn(table, dice)
                yield _outcome(table, case, seed, folder)


def drawn(table: PreparedTable, dice: random.Random) -> Case:
    """Draw a pair, or three, and where the first stops."""
    first, second = dice.choice(pairs(table.kind))
    others = (second, dice.choice([n for n, s in STEPS.items() if s.kinds(table.kind)])) if dice.random() < 0.15 else (second,)
    stops = table.stops(first, *others) if dice.random() >= _ANY_STOP else range(1, len(table.operations(first)) + 1)
    return Case(table.name, first, others, dice.choice(stops) if stops else 1, kills=dice.random() < 0.25)


def _outcome(table: PreparedTable, case: Case, seed: int, folder: Path) -> Outcome:
    verdict, detail = run_case(table, case)
    files = None
    if verdict not in {"right", "typed error", "excused"}:
        name = f"{case.kind}-{case.what}".replace(",", "").replace(" ", "-")
        files = leave_case(folder / PART / name, PART, seed=seed, **vars(case))
    return Outcome(PART, case.kind, seed, case.what, verdict, detail, files)


def replay(folder: Path) -> Outcome:
    """Run the case of ``folder`` again."""
    found = case_of(folder)
    case = Case(found["kind"], found["first"], tuple(found["others"]), found["number"], found["kills"], found["patience"])
    with scratch_folder() as scratch:
        table = PreparedTable(case.kind, scratch)
        return _outcome(table, case, found["seed"], folder.parent.parent)
