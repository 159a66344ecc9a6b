"""Files of HDFS on a real cluster: what commits need, lost answers, errors by name, options."""

from __future__ import annotations

import errno
import logging
import os
import pickle
import signal
import sys
import threading
import uuid
from types import SimpleNamespace

import pytest

from manifest.io.errors import FileMissing, FileTaken, OutOfDisk, StorageDenied, StorageError
from manifest.io.posix import temporary_name
from manifest.storage.resolve import file_io_for
from manifest.storage.schemes import object_place
from manifest.storage.storage_options import StorageOptions
from paimon_base.errors import CorruptFile, InvalidArgument, UnsupportedOption
from pyspark_paimon.plugins.hdfs import file_io as hdfs
from pyspark_paimon.plugins.hdfs.cluster import HdfsCluster, _Failure
from pyspark_paimon.plugins.hdfs.file_io import HdfsFileIO
from tests.stores.cut_proxy import CutProxy

on_cluster = [pytest.mark.long, pytest.mark.timeout(300)]
IO = HdfsFileIO(StorageOptions())


@pytest.fixture
def place(hdfs):
    return f"{hdfs.uri()}/{uuid.uuid4()}"


@pytest.fixture
def proxy(hdfs):
    with CutProxy(hdfs.port) as proxy:
        yield proxy


def names(io, place):
    return sorted(one.name for one in io.list(place))


class TestOnACluster:
    pytestmark = on_cluster

    def test_files_are_written_listed_read_in_parts_and_deleted(self, place):
        IO.write(f"{place}/a/b", b"0123456789")
        with pytest.raises(FileTaken):
            IO.write(f"{place}/a/b", b"x")
        IO.write(f"{place}/a/b", b"9876543210", overwrite=True)
        IO.write(f"{place}/a/empty", b"")
        assert (IO.read(f"{place}/a/b"), IO.read(f"{place}/a/empty"), IO.size(f"{place}/a/b")) == (b"9876543210", b"", 10)
        assert IO.read_range(f"{place}/a/b", 2, 3) == b"765"
        with pytest.raises(CorruptFile, match="ends at byte 10"):
            IO.read_range(f"{place}/a/b", 8, 3)
        (directory,) = IO.list(place)
        assert (directory.name, directory.is_dir) == ("a", True)
        assert sorted((one.name, one.size) for one in IO.list(f"{place}/a")) == [("b", 10), ("empty", 0)]
        assert (IO.list(f"{place}/none"), IO.list(f"{place}/a/b"), IO.is_directory(f"{place}/a"), IO.exists(f"{place}/a")) == (
            [],
            [],
            True,
            False,
        )
        IO.delete(f"{place}/a/b")
        assert not IO.exists(f"{place}/a/b")
        with pytest.raises(FileMissing, match="no such file"):
            IO.read(f"{place}/a/b")
        assert (IO.delete_directory(f"{place}/a"), IO.delete_directory(f"{place}/a", recursive=True), IO.is_directory(f"{place}/a")) == (
            False,
            True,
            False,
        )

    def test_ranges_of_a_file_of_several_blocks_come_as_asked(self, place):
        small = HdfsFileIO(StorageOptions.of({"dfs.blocksize": "4096", "dfs.replication": "1"}))
        content = os.urandom(20_000)
        path = f"{place}/data-{uuid.uuid4()}-0.bin"
        with small.open_output(path) as sink:
            for at in range(0, len(content), 777):
                sink.write(content[at : at + 777])
        cluster, key = small._at(path)
        wanted = [(0, 10), (4090, 20), (19_990, 10), (8000, 9000), (4090, 20), (5, 0)]
        assert cluster.get_ranges(key, wanted) == [content[at : at + length] for at, length in wanted]
        with IO.open_input(path) as source:
            source.seek(19_000)
            assert source.read() == content[19_000:]
        ranges = IO.open_ranges(path)
        assert (ranges.size(), ranges.read(12_000, 100)) == (20_000, content[12_000:12_100])

    def test_an_aborted_file_is_not_there(self, place):
        sink = IO.open_output(f"{place}/x")
        sink.write(b"begun")
        sink.abort()
        assert names(IO, place) == []

    def test_of_creates_at_once_one_wins_and_nothing_else_stays(self, place):
        won = []

        def create(number):
            if IO.create_exclusive(f"{place}/snapshot-1", str(number).encode()):
                won.append(number)

        threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert IO.read(f"{place}/snapshot-1") == str(won[0]).encode()
        assert names(IO, place) == ["snapshot-1"]

    def test_a_create_whose_answer_is_lost_knows_that_it_won(self, hdfs, proxy, place):
        through = f"{hdfs.uri(proxy.port)}/{place.rpartition('/')[2]}"
        IO.mkdirs(place)
        proxy.rule = lambda data: b"rename2" in data and proxy.cuts["answers"] == 0
        assert IO.create_exclusive(f"{through}/snapshot-1", b"mine")
        assert proxy.cuts["answers"] == 1
        assert not IO.create_exclusive(f"{through}/snapshot-1", b"mine")
        assert (names(IO, place), IO.read(f"{place}/snapshot-1")) == (["snapshot-1"], b"mine")

    def test_a_create_that_lost_knows_it_whatever_answers_are_lost(self, hdfs, proxy, place, monkeypatch):
        through = f"{hdfs.uri(proxy.port)}/{place.rpartition('/')[2]}"
        IO.write(f"{place}/snapshot-1", b"theirs")
        monkeypatch.setattr(HdfsCluster, "status", _blind_once(HdfsCluster.status, "snapshot-1"))
        proxy.rule = lambda data: b"rename2" in data and proxy.cuts["answers"] == 0
        assert not IO.create_exclusive(f"{through}/snapshot-1", b"ours")
        assert (names(IO, place), IO.read(f"{place}/snapshot-1")) == (["snapshot-1"], b"theirs")

    def test_an_outcome_that_cannot_be_known_is_an_error(self, hdfs, proxy, place):
        through = f"{hdfs.uri(proxy.port)}/{place.rpartition('/')[2]}"
        IO.mkdirs(place)

        def rule(data):
            if b"rename2" in data:
                proxy.rule = lambda _: False
                return True
            return False

        proxy.rule = rule
        original = HdfsCluster.delete

        def delete(self, key, *, recursive=False):
            if ".tmp" in key:  # another process acts between the lost answer and the look
                IO.write(f"{place}/snapshot-1", b"later", overwrite=True)
            return original(self, key, recursive=recursive)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(HdfsCluster, "delete", delete)
            with pytest.raises(StorageError, match="unknown whether the file was created"):
                IO.create_exclusive(f"{through}/snapshot-1", b"first")

    def test_replacements_at_once_lose_no_step(self, place):
        path = f"{place}/counter"
        IO.write(path, b"0")
        done = []

        def count():
            for _ in range(6):
                while True:
                    held = IO.read(path)
                    if IO.replace(path, held, str(int(held) + 1).encode()):
                        done.append(1)
                        break

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (IO.read(path), len(done), names(IO, place)) == (b"24", 24, ["counter"])
        assert not IO.replace(path, b"other", b"x")
        assert not IO.replace(f"{place}/none", b"other", b"x")
        assert names(IO, place) == ["counter"]

    def test_a_replacement_deletes_what_a_stalled_one_wrote(self, place):
        path = f"{place}/counter"
        IO.write(path, b"0")
        stalled = temporary_name(f"{path}.swap")
        IO.write(stalled, b"late")
        IO.write(temporary_name(path), b"a create of somebody else")
        assert IO.replace(path, b"0", b"1")
        assert not IO.exists(stalled)
        assert len(names(IO, place)) == 2

    def test_directories_move_whole_and_never_over_another(self, hdfs, proxy, place):
        IO.write(f"{place}/a/f", b"1")
        IO.write(f"{place}/taken/f", b"2")
        with pytest.raises(FileTaken):
            IO.rename_directory(f"{place}/a", f"{place}/taken")
        through = f"{hdfs.uri(proxy.port)}/{place.rpartition('/')[2]}"
        proxy.rule = lambda data: b"rename2" in data and proxy.cuts["answers"] == 0
        IO.rename_directory(f"{through}/a", f"{through}/new/b")
        assert (names(IO, f"{place}/new/b"), names(IO, place), proxy.cuts["answers"]) == (["f"], ["new", "taken"], 1)
        with pytest.raises(FileMissing):
            IO.rename_directory(f"{place}/a", f"{place}/c")
        IO.publish_directory(f"{place}/p", {f"{place}/p/s/0": b"x"})
        assert IO.read(f"{place}/p/s/0") == b"x"
        IO.retire_directory(f"{place}/p", [])
        assert not IO.is_directory(f"{place}/p")

    def test_permissions_are_kept_and_named(self, hdfs, place):
        strict = HdfsFileIO(StorageOptions.of({"fs.permissions.umask-mode": "077"}))
        strict.write(f"{place}/d/f", b"1")
        cluster, key = strict._at(f"{place}/d")
        assert cluster.call("x", key, lambda client: client.get_file_info(f"/{key}").permission) == 0o700
        assert cluster.call("x", key, lambda client: client.get_file_info(f"/{key}/f").permission) == 0o600
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("HADOOP_USER_NAME", "stranger")
            other = HdfsFileIO(StorageOptions.of({"storage.max-retries": "1"}))
            with pytest.raises(StorageDenied, match=r"HDFS refuses \(Permission denied: user=stranger"):
                other.read(f"{place}/d/f")

    def test_the_environment_names_the_cluster(self, hdfs, place, monkeypatch):
        monkeypatch.setenv("HADOOP_CONF_DIR", hdfs.environment()["HADOOP_CONF_DIR"])
        io, path = file_io_for(f"hdfs:/{place.rpartition('/')[2]}/t/f", storage_options={"storage.max-retries": "2"})
        io.write(path, b"1")
        assert IO.read(f"{place}/t/f") == b"1"
        monkeypatch.delenv("HADOOP_CONF_DIR")
        named = {"hadoop-conf-dir": hdfs.environment()["HADOOP_CONF_DIR"]}
        io, path = file_io_for(f"hdfs:/{place.rpartition('/')[2]}/t/f", storage_options=named)
        assert io.read(path) == b"1"
        nameservice = {
            "hadoop.dfs.nameservices": "lake",
            "dfs.ha.namenodes.lake": "a,b",
            "dfs.namenode.rpc-address.lake.a": "127.0.0.1:1",
            "dfs.namenode.rpc-address.lake.b": f"127.0.0.1:{hdfs.port}",
            "dfs.client.failover.proxy.provider.lake": "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
        }
        io, path = file_io_for(f"hdfs://lake/{place.rpartition('/')[2]}/t/f", storage_options=nameservice)
        assert io.read(path) == b"1"

    def test_a_child_of_a_fork_is_told_instead_of_waiting_for_ever(self, place):
        IO.write(f"{place}/f", b"1")
        child = os.fork()
        if not child:
            code = 1
            try:
                IO.read(f"{place}/f")
            except UnsupportedOption as error:
                code = 0 if "forked from one that used it" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert IO.read(f"{place}/f") == b"1"

    def test_what_passes_is_repeated_and_logged(self, place, caplog, monkeypatch):
        cluster, key = IO._at(f"{place}/f")
        monkeypatch.setattr("manifest.storage.faults._FIRST_WAIT", 0.001)
        left = [2]

        def request(_):
            if left[0]:
                left[0] -= 1
                raise RuntimeError('RPCError("org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported")')
            return 7

        with caplog.at_level(logging.WARNING):
            assert cluster.call("getFileInfo", key, request, repeatable=False) == 7
        assert "getFileInfo failed (Operation category READ is not supported); retrying" in caplog.text


def _blind_once(status, name):
    """The first look for ``name`` sees nothing, as if it was created just after."""
    seen = []

    def look(self, key):
        if key.endswith(f"/{name}") and not seen:
            seen.append(key)
            return None
        return status(self, key)

    return look


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(UnsupportedOption, match=r"'hdfs:' needs the client library of HDFS: pip install 'pyspark-paimon\[hdfs\]'"):
        HdfsFileIO(StorageOptions.of({"dfs.replication": "3"})).read("hdfs://host:1/t")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (
            RuntimeError('RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=x\\n\\tat a.b")'),
            StorageDenied,
            r"refuses \(Permission denied: user=x\)",
        ),
        (
            RuntimeError('RPCError("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "The quota")'),
            OutOfDisk,
            "quota of HDFS is used up",
        ),
        (RuntimeError('GSSAPIError(Failure, 0, "No credentials")'), StorageDenied, "the login to HDFS failed.*kinit"),
        (RuntimeError("NoSASLMechanism"), StorageDenied, "the login to HDFS failed"),
        (NotImplementedError("File encryption"), StorageError, "cannot do that .File encryption"),
        (FileNotFoundError("File does not exist"), FileMissing, "no such file"),
        (FileExistsError("/x"), FileTaken, "exists"),
        (OSError("Connection refused (os error 111)"), StorageError, "HDFS failed .Connection refused"),
        (RuntimeError('RPCError("org.apache.hadoop.fs.PathIsNotEmptyDirectoryException", "is non empty")'), StorageError, "not empty"),
        (
            RuntimeError('RPCError("org.apache.hadoop.fs.ParentNotDirectoryException", "/big (is not a directory)")'),
            FileMissing,
            "no such file",
        ),
        (RuntimeError('OperationFailed("could not complete")'), StorageError, "could not complete"),
    ],
)
def test_errors_of_the_library_are_typed(error, kind, text):
    failure = _Failure.of(error)
    assert failure is not None
    typed = failure.error("hdfs://nn/t")
    assert type(typed).__mro__.index(kind) >= 0
    with pytest.raises(kind, match=text):
        raise typed
    assert str(typed).count("\n") == 0


def test_only_what_does_no_harm_twice_is_repeated():
    broken, busy = _Failure("IOError", "", ""), _Failure("RPCError", "SafeModeException", "")
    assert [broken.may_pass(repeatable=one) for one in (True, False)] == [True, False]
    assert [busy.may_pass(repeatable=one) for one in (True, False)] == [True, True]
    assert not _Failure("RPCError", "AccessControlException", "").may_pass(repeatable=True)
    assert _Failure.of(KeyError("x")) is None
    assert _Failure("IOError", "", "x").error("hdfs://nn/t").errno == errno.EIO


class BreaksAtTheEnd:
    """Takes the parts of a file, and fails to complete it."""

    def __init__(self):
        self.parts, self.deleted = [], []

    def create(self, _, *, overwrite):
        return self

    def write(self, part):
        self.parts.append(part)

    def close(self):
        raise OSError("the data node is gone")

    def failed(self, key, error):
        return StorageError(errno.EIO, str(error), key)

    def delete(self, key):
        self.deleted.append(key)


def test_a_file_that_cannot_be_completed_is_deleted(monkeypatch):
    monkeypatch.setattr(hdfs, "_CHUNK", 4)
    cluster = BreaksAtTheEnd()
    writer = hdfs._Writer(cluster, "key", overwrite=True)
    writer.write(b"123456789")
    with pytest.raises(StorageError, match="the data node is gone"):
        writer.close()
    writer.close()
    assert (cluster.parts, cluster.deleted) == ([b"1234", b"5678", b"9"], ["key"])


def test_options_have_hadoop_s_names():
    given = {"hadoop.dfs.replication": 2, "dfs.client.use.datanode.hostname": "true", "hadoop.security.authentication": "kerberos"}
    options = StorageOptions.of(given)
    assert options.hdfs == {
        "dfs.replication": "2",
        "dfs.client.use.datanode.hostname": "true",
        "hadoop.security.authentication": "kerberos",
    }
    assert "true" not in options.secrets
    assert pickle.loads(pickle.dumps(HdfsFileIO(options))) == HdfsFileIO(options)
    with pytest.raises(UnsupportedOption, match=r"'dfs.client.read.shortcircuit': is an option of Hadoop without effect here"):
        StorageOptions.of({"dfs.client.read.shortcircuit": "true"})
    for name, value in [("dfs.replication", "none"), ("dfs.blocksize", "big"), ("fs.permissions.umask-mode", "999")]:
        with pytest.raises(InvalidArgument, match=name):
            file_io_for("hdfs://nn:1/t", storage_options={name: value})


class OfTheOther:
    """A client of a cluster where another caller's file of the same size and millisecond has replaced ours."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def get_file_info(self, path):
        return SimpleNamespace(path=path, length=len(self.content), modification_time=1, isdir=False)

    def rename(self, source, target, overwrite):
        raise FileNotFoundError(source)

    def delete(self, path, recursive):
        return False

    def read(self, path):
        return SimpleReader(self.content)


class SimpleReader(bytes):
    def read_range(self, start, length):
        return self[start : start + length]


def test_another_file_of_the_same_size_and_millisecond_is_not_ours(monkeypatch):
    monkeypatch.setattr("pyspark_paimon.plugins.hdfs.cluster._connect", lambda *_: (None, OfTheOther(b"8")))
    cluster = HdfsCluster(object_place("hdfs://nn:1/t"), StorageOptions())
    assert not cluster.rename_over("t/.new", "t/consumer-a", b"7")
    assert cluster.rename_over("t/.new", "t/consumer-a", b"8"), "only the answer was lost"


def test_each_caller_has_its_own_retries_and_timeout(monkeypatch):
    monkeypatch.setattr("pyspark_paimon.plugins.hdfs.cluster._open", {})
    monkeypatch.setattr("pyspark_paimon.plugins.hdfs.cluster._connect", lambda *given: given[::2])
    root = f"hdfs://{uuid.uuid4()}:1/t"
    given = [{"storage.max-retries": "0"}, {"storage.timeout": "1 s"}, {"storage.max-retries": "0"}]
    clusters = [HdfsFileIO(StorageOptions.of(one))._at(root)[0] for one in given]
    assert [(one._retries, one._client) for one in clusters] == [(0, 30_000), (8, 1000), (0, 30_000)]
    assert clusters[0] is clusters[2]


def test_a_child_of_a_fork_during_the_first_opening_is_told_too(monkeypatch):
    for name, value in (("_open", {}), ("_forked_from", [])):
        monkeypatch.setattr(f"pyspark_paimon.plugins.hdfs.cluster.{name}", value)
    begun, ends = threading.Event(), threading.Event()
    monkeypatch.setattr("pyspark_paimon.plugins.hdfs.cluster._connect", lambda *_: (begun.set(), ends.wait(60)))
    opening = threading.Thread(target=HdfsFileIO(StorageOptions())._at, args=("hdfs://nn:1/t",))
    opening.start()
    begun.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(20)  # instead of waiting for ever
        try:
            HdfsFileIO(StorageOptions())._at("hdfs://nn:1/t")
        except UnsupportedOption:
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    ends.set()
    opening.join()
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_view_has_a_name():
    given = {"fs.defaultFS": "hdfs://127.0.0.1:1", "fs.viewfs.mounttable.default.link./a": "hdfs://127.0.0.1:2/b"}
    with pytest.raises(InvalidArgument, match="must name its mount table: viewfs://name/path"):
        HdfsFileIO(StorageOptions.of(given)).read("viewfs:///a/f")


def test_no_directory_moves_to_another_cluster():
    with pytest.raises(StorageError, match="is on another cluster") as caught:
        IO.rename_directory("hdfs://a:1/w/t", "hdfs://b:1/w/u")
    assert caught.value.errno == errno.EXDEV


def test_places_name_a_node_a_nameservice_or_neither():
    assert object_place("hdfs://lake/w//t/").uri == "hdfs://lake/w/t"
    assert object_place("viewfs://view/w/../t").uri == "viewfs://view/t"
    assert object_place("hdfs:///w/t").root == "hdfs://"
    with pytest.raises(InvalidArgument, match="cannot contain '@'"):
        object_place("hdfs://me@nn/t")
