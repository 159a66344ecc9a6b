"""A FIFO, socket or device in the place of any file of a table: refused with a typed error before it is opened, which could wait forever."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.io.errors import NotARegularFile
from manifest.io.file_io import LocalFileIO
from paimon_base.errors import PaimonError
from pyspark_paimon import Table

SECONDS = 20
OPTIONS = {"bucket": "1", "file-index.bitmap.columns": "s", "file-index.in-manifest-threshold": "1 b", "deletion-vectors.enabled": "true"}


@contextmanager
def in_time() -> Iterator[None]:
    """Fail if the block waits for somebody to write into a FIFO."""

    def stop(*_: object) -> None:
        raise AssertionError("the call waits")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("irregular") / "t"
    for kind in ("parquet", "orc", "avro"):
        table = Table.create(path / kind, "id BIGINT, s STRING", primary_keys=["id"], options={**OPTIONS, "file.format": kind})
        for at in range(3):
            table.write(pa.table({"id": range(at, at + 9), "s": [f"s{one}" for one in range(9)]}))
    return path


def names(root: Path) -> list[str]:
    return sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())


def error_of(call: Callable[[], object]) -> PaimonError | None:
    try:
        call()
    except PaimonError as error:
        return error
    return None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", pytest.param("orc", marks=pytest.mark.long), pytest.param("avro", marks=pytest.mark.long)])
def test_no_call_waits_for_a_fifo(made, tmp_path, kind):
    refused = set()
    for name in names(made / kind):
        root = tmp_path / name.replace("/", "_")
        shutil.copytree(made / kind, root)
        (root / name).unlink()
        os.mkfifo(root / name)
        with in_time():
            for call in (
                lambda root: Table.open(root).scan().to_arrow(),
                lambda root: Table.open(root).scan("s = 's4'").to_arrow(),
                lambda root: Table.open(root).compact(full=True),
                lambda root: Table.open(root).fsck("deep"),
                lambda root: Table.open(root).write(pa.table({"id": [1], "s": ["new"]})),
            ):
                error = error_of(partial(call, root))
                if isinstance(error, NotARegularFile):
                    assert name.rpartition("/")[2] in str(error)
                    refused.add(name.split("-")[0].split("/")[0])
        shutil.rmtree(root)
    assert {"snapshot", "schema", "manifest", "bucket"} <= refused


@pytest.mark.parametrize("what", ["fifo", "socket", "device", "link to a fifo"])
@pytest.mark.parametrize("call", ["read", "read_range", "open_input", "open_ranges"])
def test_each_way_to_read_refuses_what_is_no_file(tmp_path, monkeypatch, what, call):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    path = str(tmp_path / "f")
    if what == "device":
        path = os.devnull
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("f")
    else:
        os.mkfifo("f" if what == "fifo" else "target")
        if what != "fifo":
            Path("f").symlink_to("target")
    io = LocalFileIO()
    calls = {
        "read": lambda: io.read(path),
        "read_range": lambda: io.read_range(path, 0, 1),
        "open_input": lambda: io.open_input(path),
        "open_ranges": lambda: io.open_ranges(path).read(0, 1),
    }
    with in_time(), pytest.raises(NotARegularFile, match="FIFO, socket or device"):
        calls[call]()
