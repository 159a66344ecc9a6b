"""Races: six processes at one table, each with keys of its own or with sums that take any order; then rows are what was acknowledged.

A round is a table, made anew, and a few seconds of mixed calls: writes, deletes, updates, overwrites of own partitions, compactions, expiry,
tags, reads. What a process was told is in its log, outside of the table. A call that lost to others may end in ``CommitConflict``, or, as
expiry keeps three snapshots only, in ``SnapshotExpired``, and then has done nothing; any other error, or rows that are not those of the logs, is a failure. The order of calls is not reproducible, the calls are.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import random
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from manifest.io.errors import CommitConflict, SnapshotNotFound
from paimon_base.errors import PaimonError
from pyspark_paimon import Table
from tests.torture import watched
from tests.torture.report import Outcome, case_of, leave_case

PART = "races"
PROCESSES = 6
READERS = 3
CALLS = 6
SECONDS = 120
_KEYS = 12
"""Keys that each process has."""
_SCHEMA = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64()), ("s", pa.string())]
)
_COUNTED = -1
"""The key of a row whose value all processes count up."""


@dataclass(frozen=True)
class Raced:
    """A configuration: options, whether rows have keys, and the calls that make sense."""

    options: Mapping[str, str]
    calls: Sequence[str]
    keys: Sequence[str] = ("p", "k")
    partitions: Sequence[str] = field(default=())
    fold: str = "last"

    def make(self, path: Path) -> None:
        table = Table.create(path, _SCHEMA, primary_keys=self.keys, partition_keys=self.partitions, options=self.options)
        table.write(_rows([(0, _COUNTED, 0)]))


_OFTEN = ("write", "write", "write")
_KEEP = ("compact", "compact fully", "expire", "tag", "read")
_CHANGES = ("delete", "update", "count up")
_DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "20"}
CONFIGURATIONS: dict[str, Raced] = {
    "deduplicate": Raced({"bucket": "2"}, (*_OFTEN, *_CHANGES, *_KEEP)),
    "write only": Raced({"bucket": "1", "write-only": "true"}, (*_OFTEN, *_CHANGES, *_KEEP)),
    "deletion vectors": Raced({"bucket": "2", "deletion-vectors.enabled": "true"}, (*_OFTEN, *_CHANGES, *_KEEP)),
    "dynamic buckets": Raced(_DYNAMIC, (*_OFTEN, *_CHANGES, *_KEEP)),
    "dynamic buckets, vectors": Raced(_DYNAMIC | {"deletion-vectors.enabled": "true"}, (*_OFTEN, *_CHANGES, *_KEEP)),
    "lookup changelog": Raced({"bucket": "1", "changelog-producer": "lookup"}, (*_OFTEN, *_CHANGES, *_KEEP)),
    "partial update": Raced({"bucket": "2", "merge-engine": "partial-update"}, (*_OFTEN, *_KEEP)),
    "aggregation": Raced({"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}, ("add", "add", "add", *_KEEP), fold="sum"),
    "first row": Raced({"bucket": "2", "merge-engine": "first-row"}, (*_OFTEN, *_KEEP), fold="first"),
    "overwritten partitions": Raced({"bucket": "1"}, (*_OFTEN, "overwrite", "delete", *_KEEP), partitions=("p",)),
    "append": Raced({}, ("append", "append", "append", "delete", *_KEEP), keys=(), fold="all"),
    "append, vectors": Raced({"deletion-vectors.enabled": "true", "bucket": "2", "bucket-key": "k"}, ("append", "append", "delete", "update", *_KEEP), keys=(), fold="all"),
}  # fmt: skip

WATCHED = {f"readers beside a writer, {layout}": layout for layout in watched.LAYOUTS}
"""Rounds in which one process writes and others read."""


def _rows(values: Sequence[tuple[int, int, int]]) -> pa.Table:
    made = [{"p": p, "k": k, "v": v, "s": f"of {p}: {v}"} for p, k, v in values]
    return pa.Table.from_pylist(made, schema=_SCHEMA)


class Player:
    """One process: its calls, drawn from a seed, and its log."""

    def __init__(self, path: Path, log: Path, configuration: str, me: int, seed: int) -> None:
        self._path, self._log, self._raced, self._me = path, log, CONFIGURATIONS[configuration], me + 1
        self._random = random.Random(f"{seed}-{me}")
        self._fresh = itertools.count(1)

    def play(self) -> None:
        with self._log.open("w") as log:
            for _ in range(CALLS):
                call = self._random.choice(self._raced.calls)
                said = self._carried_out(call)
                log.write(json.dumps(said) + "\n")
                log.flush()

    def _carried_out(self, call: str) -> dict[str, Any]:
        draw = self._random
        keys = [draw.randrange(_KEYS) for _ in range(draw.randint(1, 5))]
        said: dict[str, Any] = {"call": call, "keys": keys, "owner": self._me}
        table = Table.open(self._path)
        mine = pc.field("p") == self._me
        try:
            match call:
                case "write" | "append" | "overwrite" | "add":
                    owner = 0 if call == "add" else self._me
                    said |= {"owner": owner, "values": [(owner, k, draw.randrange(1000)) for k in sorted(set(keys))]}
                    if call == "append":
                        said["values"] = [(owner, 1000 * next(self._fresh) + k, v) for owner, k, v in said["values"]]
                    if call == "overwrite":
                        table.write(_rows(said["values"]), mode="overwrite", partition={"p": self._me})
                    else:
                        table.write(_rows(said["values"]))
                case "delete":
                    table.delete(mine & pc.field("k").isin([*keys, *(1000 + k for k in keys)]))
                case "update":
                    table.update(mine & (pc.field("k") >= min(keys)), set={"v": pc.field("v") + 1})
                case "count up":
                    table.update(pc.field("k") == _COUNTED, set={"v": pc.field("v") + 1})
                case _:
                    self._kept(table, call)
        except (CommitConflict, SnapshotNotFound) as error:
            return {"call": "lost", "of": call, "error": str(error)}
        except PaimonError as error:
            return {"call": "failed", "of": call, "error": f"{type(error).__name__}: {error}"}
        except Exception as error:  # noqa: BLE001 -- what must not be
            return {"call": "untyped", "of": call, "error": f"{type(error).__name__}: {error}: {traceback.format_exc()[-600:]}"}
        return said

    def _kept(self, table: Table, call: str) -> None:
        match call:
            case "compact":
                table.compact()
            case "compact fully":
                table.compact(full=True)
            case "expire":
                table.expire_snapshots(retain_min=3, retain_max=3, older_than=int(time.time() * 1000) + 1000)
            case "tag":
                name = f"of-{self._me}-{next(self._fresh)}"
                with suppress(SnapshotNotFound):  # expired meanwhile
                    table.create_tag(name)
                    table.scan(tag=name).to_arrow()
                    if self._random.random() < 0.5:
                        table.delete_tag(name)
            case _:
                with suppress(SnapshotNotFound):
                    table.scan().to_arrow()


def _play(*arguments: Any) -> None:
    Player(*arguments).play()


def expected(raced: Raced, logs: Sequence[Sequence[Mapping[str, Any]]]) -> Counter[tuple[int, int, int]]:
    """The rows (p, k, v) of what was acknowledged; that of each process in its order, those of several add up."""
    counted = sum(said["call"] == "count up" for log in logs for said in log)
    rows: Counter[tuple[int, int, int]] = Counter()
    sums: Counter[tuple[int, int]] = Counter({(0, _COUNTED): counted})
    for log in logs:
        state: dict[tuple[int, int], int] = {}
        for said in log:
            _follow(raced, said, state, sums)
        rows.update((p, k, v) for (p, k), v in state.items())
    rows.update((p, k, v) for (p, k), v in sums.items())
    return rows


def _follow(raced: Raced, said: Mapping[str, Any], state: dict[tuple[int, int], int], sums: Counter[tuple[int, int]]) -> None:
    match said["call"]:
        case "overwrite":
            state.clear()
            state.update({(p, k): v for p, k, v in said["values"]})
        case "add":
            for p, k, v in said["values"]:
                sums[p, k] += v
        case "write" | "append":
            for p, k, v in said["values"]:
                if raced.fold != "first" or (p, k) not in state:
                    state[p, k] = v
        case "delete":
            for k in said["keys"]:
                state.pop((said["owner"], k), None)
                state.pop((said["owner"], 1000 + k), None)
        case "update":
            for p, k in list(state):
                if k >= min(said["keys"]):
                    state[p, k] += 1


def _judge(path: Path, logs: Path, configuration: str, answer: Path) -> None:
    """Write what is to say of a round, in a process that has seen nothing of it."""
    verdict, detail = "untyped error", ""
    try:
        verdict, detail = _judged(path, logs, configuration)
    except Exception:  # noqa: BLE001 -- what must not be
        detail = traceback.format_exc()[-1500:]
    answer.write_text(json.dumps([verdict, detail]))


def _judged(path: Path, logs: Path, configuration: str) -> tuple[str, str]:
    said = [[json.loads(line) for line in log.read_text().splitlines()] for log in sorted(logs.glob("*.log"))]
    short = [number for number, log in enumerate(said) if len(log) < CALLS]
    if short or len(said) < PROCESSES:
        return "abort", f"processes {short} ended early"
    for one in itertools.chain(*said):
        if one["call"] in {"failed", "untyped"}:
            return ("untyped error" if one["call"] == "untyped" else "broken table"), f"{one['of']}: {one['error']}"
    table = Table.open(path)
    found = _found(table)
    wanted = expected(CONFIGURATIONS[configuration], said)
    if found != wanted:
        more, less = found - wanted, wanted - found
        return (
            "lost" if less and not more else "twice" if more and not less else "wrong rows"
        ), f"too many {dict(more)}, missing {dict(less)}"
    checked = table.fsck("deep")
    if not checked.clean:
        return "broken table", "; ".join(str(problem) for problem in checked.problems[:3])
    table.write(_rows([(99, 99, 99)]))
    after = _found(Table.open(path))
    if after != wanted + Counter([(99, 99, 99)]):
        return "broken table", f"the next write gives {dict(after - wanted)} besides, and {dict(wanted - after)} less"
    return "right", f"{sum(wanted.values())} rows, {sum(one['call'] == 'lost' for one in itertools.chain(*said))} calls lost"


def _found(table: Table) -> Counter[tuple[int, int, int]]:
    rows = table.scan(columns=["p", "k", "v"]).to_arrow()
    return Counter(zip(*(rows[name].to_pylist() for name in ("p", "k", "v")), strict=True))


def played(seed: int, configuration: str, folder: Path) -> tuple[str, str]:
    """Verdict and details of a round in ``folder``, which must be empty."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.torture.races", "tests.torture.watched", "lsm.read.split", "pyspark_paimon.local.engine"])
    if configuration in WATCHED:
        return _watched(processes, WATCHED[configuration], folder)
    path, logs, answer = folder / "t", folder / "logs", folder / "answer"
    logs.mkdir(parents=True)
    CONFIGURATIONS[configuration].make(path)
    players = [processes.Process(target=_play, args=(path, logs / f"{me}.log", configuration, me, seed)) for me in range(PROCESSES)]
    if not _done(players):
        return "hang", f"a process took more than {SECONDS} s"
    if not _done([processes.Process(target=_judge, args=(path, logs, configuration, answer))]):
        return "hang", f"the check took more than {SECONDS} s"
    if not answer.exists():
        return "abort", "the check died"
    verdict, detail = json.loads(answer.read_text())
    return verdict, detail


def _watched(processes: Any, layout: str, folder: Path) -> tuple[str, str]:
    """A round of readers beside a writer."""
    path, done = folder / "t", folder / "written"
    folder.mkdir(parents=True)
    watched.make(layout, path)
    logs = [folder / f"{reader}.log" for reader in range(READERS)]
    readers = [processes.Process(target=watched.read, args=(path, done, log)) for log in logs]
    if not _done([processes.Process(target=watched.write, args=(path, done)), *readers]):
        return "hang", f"a process took more than {SECONDS} s"
    if not all(log.exists() for log in (done, *logs)):
        return "abort", f"of {READERS} readers and a writer {sum(not log.exists() for log in (done, *logs))} ended early"
    found = [json.loads(log.read_text()) for log in logs]
    wrong = [one for said in found for one in said["wrong"]]
    return ("wrong rows", "; ".join(wrong[:5])) if wrong else ("right", f"{sum(said['reads'] for said in found)} reads")


def _done(started: Sequence[Any]) -> bool:
    for process in started:
        process.start()
    end = time.monotonic() + SECONDS
    for process in started:
        process.join(max(0.0, end - time.monotonic()))
    late = [process for process in started if process.is_alive()]
    for process in late:
        process.kill()
        process.join()
    return not late


def outcomes(seed: int, folder: Path) -> Iterator[Outcome]:
    """One round after the other, over all configurations in turn."""
    for number, configuration in enumerate(itertools.cycle([*CONFIGURATIONS, *WATCHED])):
        yield _tried(seed * 1_000_000 + number, configuration, folder)


def _tried(seed: int, configuration: str, folder: Path) -> Outcome:
    home = folder / f"{PART}-{seed}"
    shutil.rmtree(home, ignore_errors=True)
    verdict, detail = played(seed, configuration, home)
    outcome = Outcome(
        PART,
        configuration,
        seed,
        "readers and a writer" if configuration in WATCHED else f"{PROCESSES} processes, {CALLS} calls each",
        verdict,
        detail,
    )
    if outcome.good:
        shutil.rmtree(home)
        return outcome
    leave_case(home, PART, configuration=configuration, seed=seed, detail=detail)
    return Outcome(PART, configuration, seed, outcome.what, verdict, detail, home)


def replay(folder: Path) -> Outcome:
    """The same calls once more, beside what is left of the first time; their order is the machine's."""
    case = case_of(folder)
    again = folder / "again"
    shutil.rmtree(again, ignore_errors=True)
    verdict, detail = played(case["seed"], case["configuration"], again)
    return Outcome(PART, case["configuration"], case["seed"], "the same calls", verdict, detail, again)


__all__ = ["CONFIGURATIONS", "PART", "expected", "outcomes", "replay"]
