"""The instruments of the torture: a disk that does what it is told to, and a judge who finds what is planted."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from manifest.io.errors import StorageError
from manifest.io.file_io import LocalFileIO
from tests.torture.disk import Disk, Fault, Kill
from tests.torture.forked import forked
from tests.torture.kills import Try, _tried
from tests.torture.model import Model
from tests.torture.operations import carry_out
from tests.torture.tables import CONFIGURATIONS

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forks with threads beside are what it is about
FIRST = {"op": "write", "id": "first", "rows": [{"id": 1, "p": 1, "n": 5}, {"id": 2, "p": 2, "n": 6}]}
SECOND = {"op": "write", "id": "second", "rows": [{"id": 2, "p": 2, "n": 7}, {"id": 3, "p": 0, "n": 8}]}
THIRD = {"op": "write", "id": "third", "rows": [{"id": 9, "p": 0}]}


@pytest.mark.parametrize(
    ("number", "when", "left"), [(1, "before", None), (1, "after", b""), (2, "inside", b"half"), (2, "after", b"halfhalf")]
)
def test_a_kill_comes_before_after_or_inside_an_operation(tmp_path, number, when, left) -> None:
    def write() -> None:
        Disk(str(tmp_path), Kill(number, when)).install()
        LocalFileIO().write(str(tmp_path / "f"), b"halfhalf")

    assert forked(write).signal == signal.SIGKILL
    assert ((tmp_path / "f").read_bytes() if (tmp_path / "f").exists() else None) == left


@pytest.mark.parametrize(
    ("kind", "told", "there"),
    [("EIO", ["StorageError", ""], False), ("after the effect", ["StorageError", ""], True), ("full", ["OutOfDisk", "OutOfDisk"], False)],
)
def test_a_fault_strikes_before_or_after_the_effect_once_or_until_it_is_healed(tmp_path, kind, told, there) -> None:
    def make() -> tuple[list[str], bool]:
        Disk(str(tmp_path), Fault(1, kind)).install()
        found = []
        for name in ("b", "c"):
            try:
                LocalFileIO().write(str(tmp_path / name), b"", durable=False)
                found.append("")
            except StorageError as failure:
                found.append(type(failure).__name__)
        return found, (tmp_path / "b").is_file()

    assert forked(make).value == (told, there)


@pytest.mark.parametrize(("planted", "verdict"), [("forgets a commit", "lost"), ("nothing", "right")])
def test_the_judge_finds_a_commit_that_is_acknowledged_and_not_made(tmp_path, monkeypatch, planted, verdict) -> None:
    path = str(tmp_path / "t")
    CONFIGURATIONS["append"].create(path)
    carry_out(path, FIRST)
    model = Model("append").after(FIRST)
    create = LocalFileIO.create_exclusive

    def forgetful(storage: LocalFileIO, file: str, data: bytes, **options: Any) -> bool:
        return True if file.endswith("/snapshot-2") and b'"second"' in data else create(storage, file, data, **options)

    if planted != "nothing":
        monkeypatch.setattr(LocalFileIO, "create_exclusive", forgetful)
    one = Try("append", 1, model, [SECOND], {"by": "operation", "number": 10**6, "when": "before"}, repeats=False, following=THIRD)
    outcome, _, _ = _tried(path, one, str(tmp_path))
    assert outcome.verdict == verdict, outcome.detail
