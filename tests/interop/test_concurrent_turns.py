"""We and another engine commit to one table at the same time.

What is acknowledged to us stays. Others look whether a snapshot's name is free and then rename over it, so in a race they may replace a
commit. We see it when that happens before our commit is acknowledged; the last tests show what is left: an engine that stalls
between its look and its rename for longer takes back what was acknowledged. Tables that several engines write at the same time on a local file
system need a lock of their users, or one writer.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine
from tests.interop.features import JAVA, PYPAIMON, RUST, TURNS, feature
from tests.interop.peers import Peer

FEATURE = "concurrent commits"
REPLACES = "its rename may replace a commit"
Write = Callable[[int], None]


def create(home: Path) -> Path:
    path = home / "race.db" / "t"
    Table.create(path, "id BIGINT, who STRING", options={"bucket": "-1", "commit.max-retries": "100"})
    return path


def row(number: int, who: str) -> pa.Table:
    return pa.table({"id": [number], "who": [who]})


def ids(path: Path, who: str) -> list[int]:
    return sorted(Table.open(path).scan(f"who = '{who}'", columns=["id"]).to_arrow()["id"].to_pylist())


def race(path: Path, write: Write, commits: int) -> None:
    """Both commit as they can; every commit of ours and every acknowledged one of theirs is there in the end."""
    acknowledged: list[int] = []
    done = threading.Event()

    def theirs() -> None:
        number = 0
        while not done.is_set():
            write(number)
            acknowledged.append(number)
            number += 1
            time.sleep(0.05)

    other = threading.Thread(target=theirs)
    other.start()
    try:
        table = Table.open(path)
        for number in range(commits):
            table.write(row(number, "ours"))
    finally:
        done.set()
        other.join()
    assert ids(path, "ours") == list(range(commits))
    assert ids(path, "theirs") == acknowledged


@pytest.mark.slow
@feature(FEATURE, JAVA, TURNS)
def test_commits_beside_java_are_not_lost(engine: Engine, tmp_path: Path) -> None:
    path = create(tmp_path)
    race(path, lambda number: engine.write(path, [{"id": number, "who": "theirs"}]), commits=3)


@pytest.mark.interop
@pytest.mark.long
@feature(FEATURE, JAVA, TURNS)
def test_many_commits_beside_java_are_not_lost(engine: Engine, tmp_path: Path) -> None:
    path = create(tmp_path)
    race(path, lambda number: engine.write(path, [{"id": number, "who": "theirs"}]), commits=60)


@pytest.mark.interop
@pytest.mark.long
@pytest.mark.parametrize(
    "fixture",
    [pytest.param("pypaimon", marks=feature(FEATURE, PYPAIMON, TURNS)), pytest.param("pypaimon_rust", marks=feature(FEATURE, RUST, TURNS))],
)
def test_commits_beside_pypaimon_are_not_lost(request: pytest.FixtureRequest, tmp_path: Path, fixture: str) -> None:
    path, peer = create(tmp_path), request.getfixturevalue(fixture)
    race(path, lambda number: peer.write(path, row(number, "theirs")), commits=20)


def replaced(path: Path, write: Write) -> None:
    """We commit while the other engine is between its look and its rename: both are acknowledged, ours is gone."""
    other = threading.Thread(target=write, args=(1,))
    other.start()
    time.sleep(0.7)
    result = Table.open(path).write(row(1, "ours"))
    assert ids(path, "ours") == [1]
    other.join()
    assert ids(path, "theirs")[-1] == 1
    assert ids(path, "ours") == []
    assert Table.open(path).snapshots()["snapshot_id"].to_pylist()[-1] == result.snapshot_id


@pytest.mark.interop
@pytest.mark.long
@feature(FEATURE, PYPAIMON, TURNS, outcome=REPLACES)
def test_pypaimon_that_stalls_between_look_and_rename_replaces_a_snapshot(pypaimon: Peer, tmp_path: Path) -> None:
    path = create(tmp_path)
    pypaimon.write(path, row(0, "theirs"))
    pypaimon.ask("hold_renames", seconds=2.5)
    try:
        replaced(path, lambda number: (pypaimon.write(path, row(number, "theirs")), None)[1])
    finally:
        pypaimon.ask("hold_renames", seconds=0)


@contextmanager
def held_renames(pid: int) -> Iterator[None]:
    """Each rename of the process waits before it happens; skips where processes may not be traced."""
    if shutil.which("strace") is None:
        pytest.skip("holding a process between two system calls needs strace")
    options = ["-f", "-qq", "-e", "trace=rename", "-e", "inject=rename:delay_enter=2500000", "-o", "/dev/null"]
    tracer = subprocess.Popen(["strace", *options, "-p", str(pid)], stderr=subprocess.DEVNULL)
    try:
        time.sleep(1.5)
        if tracer.poll() is not None:
            pytest.skip("strace may not trace here")
        yield
    finally:
        tracer.terminate()
        tracer.wait()


@pytest.mark.interop
@pytest.mark.long
@feature(FEATURE, JAVA, TURNS, outcome=REPLACES)
def test_java_that_stalls_between_look_and_rename_replaces_a_snapshot(engine: Engine, tmp_path: Path) -> None:
    path = create(tmp_path)
    engine.write(path, [{"id": 0, "who": "theirs"}])
    with held_renames(engine._process.pid):
        replaced(path, lambda number: (engine.write(path, [{"id": number, "who": "theirs"}]), None)[1])


@pytest.mark.interop
@pytest.mark.long
@feature(FEATURE, RUST, TURNS, outcome=REPLACES)
def test_pypaimon_rust_that_stalls_between_look_and_rename_replaces_a_snapshot(pypaimon_rust: Peer, tmp_path: Path) -> None:
    path = create(tmp_path)
    pypaimon_rust.write(path, row(0, "theirs"))
    with held_renames(pypaimon_rust.process.pid):
        replaced(path, lambda number: (pypaimon_rust.write(path, row(number, "theirs")), None)[1])
