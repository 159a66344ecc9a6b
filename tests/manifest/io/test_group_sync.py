"""Files that become durable side by side: nothing refers to one before it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from manifest.io.errors import OutOfDisk
from manifest.io.file_io import LocalFileIO
from manifest.io.group_sync import GroupSync
from manifest.io.wrapped import WrappedFileIO
from manifest.schema.validation import build_schema
from manifest.store import FileStore


class Watched(WrappedFileIO):
    """Notes what reaches the disk, and can fail to."""

    def __init__(self, failing: str = "") -> None:
        super().__init__(LocalFileIO())
        self.durable: list[str] = []
        self.failing = failing
        self.open = threading.Event()
        self.open.set()

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:
        assert not durable
        super().write(path, data, overwrite=overwrite, durable=durable)

    def sync(self, path: str) -> None:
        self.open.wait(10)
        if path.endswith(self.failing) and self.failing:
            raise OutOfDisk(28, "no space left", path)
        super().sync(path)
        self.durable.append(Path(path).name)


def test_everything_written_is_durable_once_it_has_settled(tmp_path: Path) -> None:
    disk = Watched()
    disk.open.clear()
    together = GroupSync(disk)
    for name in "abc":
        together.write(f"{tmp_path}/{name}", name.encode())
    together.write(f"{tmp_path}/hint", b"1", durable=False)
    assert disk.durable == []  # while the files are there already
    assert sorted(status.name for status in together.list(str(tmp_path))) == ["a", "b", "c", "hint"]
    disk.open.set()
    together.flush()
    assert sorted(disk.durable) == ["a", "b", "c"]
    together.sync(f"{tmp_path}/hint")  # and it can go on
    together.flush()
    assert disk.durable[-1] == "hint"


def test_what_is_deleted_while_it_is_written_does_not_appear_afterwards(tmp_path: Path) -> None:
    """As on a store, where a file is there when its writing has ended, not when it has begun."""

    class Late(WrappedFileIO):
        def start_write(self, path: str, data: bytes) -> Callable[[], None]:
            def end() -> None:
                time.sleep(0.05)
                self.write(path, data)

            return end

    together = GroupSync(Late(LocalFileIO()))
    together.write(f"{tmp_path}/a", b"a")
    assert together.delete(f"{tmp_path}/a")
    together.flush()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_become_durable_is_an_error_of_all(tmp_path: Path) -> None:
    together = GroupSync(Watched(failing="b"))
    for name in "abc":
        together.write(f"{tmp_path}/{name}", name.encode())
    with pytest.raises(OutOfDisk, match="no space left"):
        together.flush()
    together.flush()


@pytest.mark.long
def test_what_was_deleted_before_it_was_durable_is_no_error_of_an_abort(tmp_path: Path) -> None:
    disk = Watched()
    disk.open.clear()
    together = GroupSync(disk)
    together.write(f"{tmp_path}/a", b"a")
    together.delete(f"{tmp_path}/a")
    disk.open.set()
    together.close()
    together.flush()


def test_a_store_seen_through_another_storage_is_the_same_table(tmp_path: Path) -> None:
    store = FileStore(LocalFileIO(), str(tmp_path), build_schema("k INT", primary_keys=["k"], options={"bucket": "1"}))
    known = store.options
    seen = store.through(GroupSync(store.file_io))
    assert seen.options is known
    assert seen == store.through(seen.file_io)
    assert seen.manifests.file_io is seen.file_io is not store.file_io
