"""Local files: exclusive, durable, and honest about a full disk."""

import errno
import os
import pickle
import threading
from pathlib import Path

import pytest

from manifest.expire.dry_run import DryRunFileIO
from manifest.io import posix
from manifest.io.errors import FileMissing, FileReplaced, FileTaken, OutOfDisk, StorageDenied, StorageError, UnsafeFileIO
from manifest.io.file_io import FileIO, LocalFileIO
from manifest.io.output_file import OutputFile
from manifest.io.wrapped import WrappedFileIO
from manifest.storage.resolve import file_io_for
from paimon_base.errors import CorruptFile, InvalidArgument, UnsupportedOption

IO = LocalFileIO()


def test_of_many_creators_one_wins_and_its_content_is_whole(tmp_path):
    path = str(tmp_path / "deep" / "snapshot-1")
    won = []
    contents = [bytes([i]) * 10_000 for i in range(16)]
    threads = [threading.Thread(target=lambda c=c: won.append(c) if IO.create_exclusive(path, c) else None) for c in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert IO.read(path) == won[0]
    assert [status.name for status in IO.list(str(tmp_path / "deep"))] == ["snapshot-1"]


def test_file_replaced_by_rename_of_another_engine_raises(tmp_path, monkeypatch):
    path, other = str(tmp_path / "snapshot-1"), tmp_path / ".snapshot-1.theirs"
    other.write_bytes(b"theirs")
    link = os.link

    def link_and_lose(source, target):
        link(source, target)
        other.rename(target)

    monkeypatch.setattr(os, "link", link_and_lose)
    with pytest.raises(FileReplaced, match="snapshot-1"):
        IO.create_exclusive(path, b"ours")
    assert IO.read(path) == b"theirs"
    assert [status.name for status in IO.list(str(tmp_path))] == ["snapshot-1"]


@pytest.mark.parametrize("code", [errno.EIO, errno.EEXIST, errno.ESTALE, errno.ENOENT])
def test_link_that_succeeds_but_reports_an_error_counts_as_created(tmp_path, monkeypatch, code):
    """As an NFS server does that repeats a request whose answer was lost."""
    link = os.link

    def link_and_fail(source, target):
        link(source, target)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link_and_fail)
    assert IO.create_exclusive(str(tmp_path / "snapshot-1"), b"ours")
    assert [status.name for status in IO.list(str(tmp_path))] == ["snapshot-1"]


@pytest.mark.parametrize("name", ["rename", "replace"])
def test_rename_that_succeeds_but_reports_an_error_counts_as_done(tmp_path, monkeypatch, name):
    rename = getattr(os, name)

    def rename_and_fail(source, target):
        rename(source, target)
        raise FileNotFoundError(errno.ENOENT, "no such file")

    monkeypatch.setattr(os, name, rename_and_fail)
    if name == "replace":
        IO.write(str(tmp_path / "a"), b"1", overwrite=True)
        assert IO.read(str(tmp_path / "a")) == b"1"
    else:
        IO.mkdirs(str(tmp_path / "a"))
        IO.rename_directory(str(tmp_path / "a"), str(tmp_path / "b"))
        assert IO.is_directory(str(tmp_path / "b"))


def test_cancelled_creation_fails_to_link(tmp_path):
    path = str(tmp_path / "snapshot-3")

    def cancelled():
        IO.cancel_creates(str(tmp_path), lambda name: name == "snapshot-2")
        assert len(IO.list(str(tmp_path))) == 1, "that of another name"
        IO.cancel_creates(str(tmp_path), lambda name: name == "snapshot-3")
        return True

    assert not IO.create_exclusive(path, b"late", guard=cancelled)
    assert not IO.create_exclusive(path, b"late", guard=lambda: False)
    assert IO.list(str(tmp_path)) == []
    assert IO.create_exclusive(path, b"early", guard=lambda: True)


def test_a_new_file_with_the_inode_of_a_cancelled_creation_is_not_taken_for_it(tmp_path, monkeypatch):
    target = tmp_path / "snapshot-1"

    def reuse(source: str, path: str) -> None:
        status = Path(source).stat()
        Path(source).rename(path)  # the inode of the deleted source, as ext4 gives it to the next file
        Path(path).write_bytes(b"theirs")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        raise FileNotFoundError(errno.ENOENT, "the source is gone", source, None, path)

    monkeypatch.setattr(os, "link", reuse)
    assert not LocalFileIO().create_exclusive(str(target), b"ours!!")
    assert target.read_bytes() == b"theirs"


def test_a_file_with_the_inode_of_a_deleted_one_was_not_renamed(tmp_path, monkeypatch):
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"ours")
    os.utime(source, ns=(0, 0))

    def reuse(old: str, new: str) -> None:
        Path(old).replace(new)
        Path(new).write_bytes(b"them")
        raise FileNotFoundError(errno.ENOENT, "the source is gone", old, None, new)

    with pytest.raises(FileNotFoundError):
        posix.move(reuse, str(source), str(target))


@pytest.mark.parametrize("code", [errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EXDEV])
def test_without_hard_links_there_is_no_commit(tmp_path, monkeypatch, code):
    def refuse(*_):
        raise OSError(code, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(UnsafeFileIO, match=r"snapshot-1.*hard link.*Nothing was committed.*exFAT"):
        IO.create_exclusive(str(tmp_path / "snapshot-1"), b"x")
    assert IO.list(str(tmp_path)) == []


@pytest.mark.parametrize("io", [IO, DryRunFileIO(IO)], ids=["local", "dry"])
def test_what_has_changed_is_not_replaced(tmp_path, io):
    path = str(tmp_path / "tag-a")
    assert not io.replace(path, b"", b"1"), "nothing is there"
    IO.write(path, b"1")
    assert io.replace(path, b"1", b"2")
    assert not io.replace(path, b"1", b"3")
    assert io.read(path) == b"2"


def test_of_many_who_replace_the_same_one_does(tmp_path):
    path, won = str(tmp_path / "tag-a"), []
    IO.write(path, b"old")
    contents = [b"%d" % number for number in range(8)]
    threads = [threading.Thread(target=lambda c=c: won.append(c) if IO.replace(path, b"old", c) else None) for c in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [IO.read(path)]


def test_who_does_not_get_the_lock_replaces_nothing(tmp_path, monkeypatch):
    path = str(tmp_path / "tag-a")
    IO.write(path, b"old")
    monkeypatch.setattr(posix, "_LOCK_SECONDS", 0.05)
    with IO.fair_lock(str(tmp_path)):
        assert not IO.replace(path, b"old", b"new")
    assert IO.read(path) == b"old"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("call", ["write", "overwrite", "create_exclusive"])
def test_a_full_disk_is_typed_and_leaves_nothing(tmp_path, monkeypatch, code, call):
    def full(*_):
        raise OSError(code, "full")

    path = str(tmp_path / "file")
    monkeypatch.setattr(os, "write", full)
    calls = {
        "write": lambda: IO.write(path, b"x"),
        "overwrite": lambda: IO.write(path, b"x", overwrite=True),
        "create_exclusive": lambda: IO.create_exclusive(path, b"x"),
    }
    with pytest.raises(OutOfDisk) as caught:
        calls[call]()
    assert str(tmp_path) in str(caught.value)
    assert caught.value.errno == code
    assert IO.list(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("code", "also"),
    [
        (errno.EIO, OSError),
        (errno.EACCES, PermissionError),
        (errno.EPERM, PermissionError),
        (errno.EROFS, OSError),
        (errno.EMFILE, OSError),
        (errno.ELOOP, OSError),
        (errno.ENAMETOOLONG, OSError),
        (errno.ENOTDIR, OSError),
    ],
)
@pytest.mark.parametrize("place", ["open", "write", "fsync", "unlink", "stat", "link", "replace", "mkdir", "scandir", "pread", "rename"])
def test_what_storage_refuses_is_typed_and_names_the_file(tmp_path, monkeypatch, place, code, also):
    path, folder = str(tmp_path / "d" / "file"), str(tmp_path / "e")
    IO.write(path, b"x")
    IO.mkdirs(folder)
    calls = {
        "open": lambda: IO.write(f"{folder}/file", b"x"),
        "write": lambda: IO.write(f"{folder}/file", b"x"),
        "fsync": lambda: IO.sync(path),
        "unlink": lambda: IO.delete(path),
        "stat": lambda: IO.exists(path),
        "link": lambda: IO.create_exclusive(f"{folder}/file", b"x"),
        "replace": lambda: IO.write(path, b"y", overwrite=True),
        "mkdir": lambda: IO.mkdirs(f"{folder}/new"),
        "scandir": lambda: IO.list(folder),
        "pread": lambda: IO.read_range(path, 0, 1),
        "rename": lambda: IO.rename_directory(folder, f"{folder}-moved"),
    }
    if (place, code) in {("link", errno.EPERM), ("link", errno.EACCES), ("stat", errno.ENOTDIR), ("scandir", errno.ENOTDIR)}:
        pytest.skip("an answer, not a failure: no links here, nothing there")

    def refuse(*_arguments, **_options):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, place, refuse)
        with pytest.raises(StorageError, match=r"/file|/e") as caught:
            calls[place]()
    assert isinstance(caught.value, also)
    assert (caught.value.errno, pickle.loads(pickle.dumps(caught.value)).filename) == (code, caught.value.filename)
    assert IO.list(folder) == []
    assert IO.read(path) == b"x"


def test_missing_and_taken_files_are_what_they_are_called(tmp_path):
    path = str(tmp_path / "a")
    for missing in (lambda: IO.read(path), lambda: IO.open_input(path), lambda: IO.size(path), lambda: IO.identity(path)):
        with pytest.raises(FileMissing, match="/a'") as caught:
            missing()
        assert isinstance(caught.value, FileNotFoundError)
    IO.write(path, b"x")
    with pytest.raises(FileTaken):
        IO.write(path, b"x")
    with pytest.raises(StorageError, match="a/b"):
        IO.read(f"{path}/b")
    with pytest.raises(StorageError, match="a/b"):
        IO.write(f"{path}/b", b"x")
    assert not IO.exists(f"{path}/b")
    with pytest.raises(StorageError):
        IO.exists(f"{path}{'x' * 300}")


def test_what_a_wrapper_raises_itself_is_typed_too():
    class Broken(WrappedFileIO):
        def read(self, path):
            raise PermissionError(errno.EACCES, "no")

    with pytest.raises(StorageDenied, match="somewhere"):
        Broken(IO).read("somewhere")


def test_write_is_exclusive_unless_told_otherwise(tmp_path):
    path = str(tmp_path / "a")
    IO.write(path, b"1")
    with pytest.raises(FileExistsError):
        IO.write(path, b"2")
    IO.write(path, b"3", overwrite=True)
    assert IO.read(path) == b"3"
    assert len(IO.list(str(tmp_path))) == 1


def test_ranges_are_bounded_by_the_file(tmp_path):
    path = str(tmp_path / "a")
    IO.write(path, bytes(range(100)))
    assert IO.read_range(path, 10, 5) == bytes(range(10, 15))
    assert IO.read_range(path, 100, 0) == b""
    for offset, length in [(99, 2), (0, 2**62), (101, 0), (-1, 1), (0, -1)]:
        with pytest.raises(CorruptFile, match="a: "):
            IO.read_range(path, offset, length)


def test_a_range_that_the_system_gives_in_pieces_is_whole(tmp_path, monkeypatch):
    path = str(tmp_path / "a")
    IO.write(path, bytes(range(100)))
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, length, offset: pread(descriptor, min(length, 3), offset))
    assert IO.read_range(path, 10, 50) == bytes(range(10, 60))
    monkeypatch.setattr(os, "pread", lambda descriptor, length, offset: pread(descriptor, 2, offset) if offset < 12 else b"")
    with pytest.raises(CorruptFile, match="was truncated"):
        IO.read_range(path, 10, 50)


def test_an_output_is_exclusive_and_an_input_seeks(tmp_path):
    path = str(tmp_path / "bucket-0" / "data")
    with IO.open_output(path) as out:
        out.write(b"0123")
    IO.sync(path)
    with pytest.raises(FileExistsError):
        IO.open_output(path)
    with IO.open_input(path) as source:
        source.seek(2)
        assert source.read() == b"23"


def test_listing_deleting_and_directories(tmp_path):
    root = str(tmp_path)
    assert IO.list(f"{root}/none") == []
    IO.write(f"{root}/d/a", b"123")
    (status,) = IO.list(f"{root}/d")
    assert (status.name, status.size, status.is_dir) == ("a", 3, False)
    assert not IO.delete_directory(f"{root}/d")
    assert IO.delete(f"{root}/d/a")
    assert not IO.delete(f"{root}/d/a")
    IO.mkdirs(f"{root}/d/e/f")
    IO.rename_directory(f"{root}/d", f"{root}/x/y")
    assert IO.exists(f"{root}/x/y/e/f")
    with pytest.raises(FileExistsError):
        IO.rename_directory(f"{root}/x", f"{root}/x/y")
    assert IO.delete_directory(f"{root}/x", recursive=True)
    assert not IO.delete_directory(f"{root}/x", recursive=True)


@pytest.mark.parametrize(
    ("given", "found"),
    [("/w/t", "/w/t"), ("file:/w/t", "/w/t"), ("file:///w/t", "/w/t"), ("/w/a:b", "/w/a:b"), ("/w/../t", "/t"), ("FILE:/t/", "/t")],
)
def test_local_paths_have_many_spellings(given, found):
    assert file_io_for(given) == (LocalFileIO(), found)


def test_a_new_directory_is_durable_in_the_one_above(tmp_path, monkeypatch):
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink())))
    IO.mkdirs(str(tmp_path / "a" / "b"))
    assert synced == [str(tmp_path), str(tmp_path / "a")]
    IO.write(str(tmp_path / "a" / "b" / "file"), b"1")
    assert synced[-1] == str(tmp_path / "a" / "b")


class Sink:
    """Keeps what is done to it."""

    def __init__(self, ending: str) -> None:
        self.done: list[str] = []
        setattr(self, ending, lambda: self.done.append(ending))

    def open_output(self, path: str):
        return self

    def delete(self, path: str) -> None:
        self.done.append(f"delete {path}")


@pytest.mark.parametrize("ending", ["abort", "close"])
def test_an_output_that_is_given_up_is_taken_back_where_that_can_be(ending):
    sink = Sink(ending)
    sink.close = getattr(sink, "close", lambda: sink.done.append("finish"))
    output = OutputFile(sink, "x")
    output.abort()
    assert sink.done == [], "nothing was opened"
    output.open()
    output.abort()
    assert sink.done == [ending, "delete x"]


def test_a_relative_path_is_of_this_directory():
    assert file_io_for("t")[1] == str(Path.cwd() / "t")


def test_other_schemes_are_refused_by_name():
    with pytest.raises(UnsupportedOption, match="'ftp:'"):
        file_io_for("ftp://name/t")
    with pytest.raises(InvalidArgument):
        file_io_for("")


def test_a_wrapper_passes_everything_on(tmp_path):
    wrapped = WrappedFileIO(IO)
    assert isinstance(wrapped, FileIO)
    path = str(tmp_path / "d" / "a")
    wrapped.mkdirs(str(tmp_path / "d"))
    assert wrapped.create_exclusive(path, b"123")
    wrapped.sync(path)
    assert (wrapped.read(path), wrapped.read_range(path, 1, 1), wrapped.size(path)) == (b"123", b"2", 3)
    assert (wrapped.exists(path), wrapped.local_path(path), len(wrapped.list(str(tmp_path / "d")))) == (True, path, 1)
    wrapped.write(path, b"4", overwrite=True)
    with wrapped.open_input(path) as source:
        assert source.read() == b"4"
    with wrapped.open_output(path + "2") as out:
        out.write(b"5")
    assert wrapped.delete(path)
    wrapped.rename_directory(str(tmp_path / "d"), str(tmp_path / "e"))
    assert wrapped.delete_directory(str(tmp_path / "e"), recursive=True)
    assert pickle.loads(pickle.dumps(wrapped)).inner == IO


def test_turns_are_taken_one_after_the_other(tmp_path):
    first, second = threading.Event(), []
    io = LocalFileIO()

    def other():
        with io.fair_lock(str(tmp_path)):
            second.append(first.is_set())

    with io.fair_lock(str(tmp_path)):
        waiting = threading.Thread(target=other)
        waiting.start()
        waiting.join(0.05)
        assert second == []
        first.set()
    waiting.join()
    assert second == [True]


def test_a_turn_at_no_directory_is_everybodys(tmp_path):
    with LocalFileIO().fair_lock(str(tmp_path / "missing")), LocalFileIO().fair_lock(str(tmp_path / "missing")):
        assert not (tmp_path / "missing").exists()


def test_nobody_waits_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("manifest.io.posix._TURN_SECONDS", 0.01)
    taken = 0
    with LocalFileIO().fair_lock(str(tmp_path)), LocalFileIO().fair_lock(str(tmp_path)):
        taken += 1
    assert taken == 1
