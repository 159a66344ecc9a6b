"""Peers: other Python implementations of Paimon, each in a virtual environment and a process of its own.

The environments are made once (about a minute) and kept in the user's cache directory under a name made from their requirements. Only a
run with ``PYSPARK_PAIMON_INTEROP`` set makes them (``make interop`` does); another run uses those that are there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import environments
from tests.interop import features

_PATIENCE = 280  # seconds; a test may take 300
PROGRAM = Path(__file__).with_name("pypaimon_process.py")


@dataclass(frozen=True)
class Requirements:
    """What a peer is: its name in the the docs' table and the pins of its environment."""

    name: str
    pins: tuple[str, ...]
    arguments: tuple[str, ...] = ()

    def is_there(self) -> bool:
        return environments.is_made(environments.home_of(self.pins))


PYPAIMON = Requirements(features.PYPAIMON, ("pypaimon==2.1.0",))
PYPAIMON_RUST = Requirements(features.RUST, ("pypaimon==2.1.0", "pypaimon-rust==0.4.0"), ("--native",))


class PeerUnavailable(Exception):
    """The peer's environment is not there and could or should not be made."""


class PeerError(Exception):
    """What the peer raised: the name of its exception and its message."""

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.trace = trace


def environment(wanted: Requirements, *, make: bool | None = None) -> Path:
    """The Python of the peer's environment; made if it is not there and ``make`` (default: as the run's environment says).

    Raises ``PeerUnavailable`` with one line that says why not.
    """
    if not wanted.is_there() and not (bool(os.environ.get("PYSPARK_PAIMON_INTEROP")) if make is None else make):
        raise PeerUnavailable(f"no environment for {wanted.name} yet: `make interop` makes it")
    try:
        return environments.environment(wanted.pins, _PATIENCE)
    except environments.Unavailable as error:
        raise PeerUnavailable(f"{wanted.name} {error}") from error


@dataclass
class Peer:
    """A running peer. Methods are those of ``pypaimon_process.Peer``; rows go out and come in as Arrow tables."""

    requirements: Requirements
    home: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="paimon-peer-")))

    def __post_init__(self) -> None:
        python = environment(self.requirements)
        self.log = (self.home / "log").open("w")
        self.process = subprocess.Popen(
            [str(python), str(PROGRAM), *self.requirements.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, "TZ": "UTC", "PYTHONPATH": ""},
        )
        self.calls = 0

    @property
    def name(self) -> str:
        return self.requirements.name

    def ask(self, op: str, **arguments: Any) -> Any:
        """The answer to one request; raises ``PeerError`` with what the peer raised."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"op": op, **{key: value for key, value in arguments.items() if value is not None}}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise PeerError("Died", f"{self.name} ended with {self.process.wait()}", (self.home / "log").read_text()[-2000:])
        said = json.loads(line)
        if "error" in said:
            raise PeerError(said["error"], said["message"], said["trace"])
        return said["ok"]

    def _file(self) -> Path:
        self.calls += 1
        return self.home / f"{self.calls}.arrow"

    def create(self, path: str | Path, schema: dict[str, Any]) -> None:
        """A new table from the JSON form that the Java engine takes too: ``fields`` (name, type), ``primaryKeys``, ``options`` ..."""
        self.ask("create", path=str(path), schema=schema)

    def write(self, path: str | Path, rows: pa.Table, **more: Any) -> int:
        """Write and commit rows; the id of the newest snapshot."""
        file = self._file()
        with pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
        try:
            return int(self.ask("write", path=str(path), rows=str(file), **more))
        finally:
            file.unlink()

    def read(self, path: str | Path, **more: Any) -> pa.Table:
        """Rows, for ``filter`` (the golden tables' form), ``columns``, ``limit``, table ``options`` and ``branch``."""
        file = self._file()
        self.ask("read", path=str(path), out=str(file), **more)
        try:
            with pa.OSFile(str(file)) as source:
                return pa.ipc.open_file(source).read_all()
        finally:
            file.unlink()

    def plan(self, path: str | Path, **more: Any) -> Sequence[str]:
        """The names of the files that the peer's planner keeps, sorted."""
        return list(self.ask("plan", path=str(path), **more))

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=30)
        self.log.close()
        shutil.rmtree(self.home)


@pytest.fixture(scope="session")
def pypaimon() -> Iterator[Peer]:
    """pypaimon alone."""
    yield from _running(PYPAIMON)


@pytest.fixture(scope="session")
def pypaimon_rust() -> Iterator[Peer]:
    """pypaimon with its native half switched on."""
    yield from _running(PYPAIMON_RUST)


def _running(wanted: Requirements) -> Iterator[Peer]:
    try:
        peer = Peer(wanted)
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    yield peer
    peer.close()
