from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from manifest.io.errors import PathNotAllowed
from manifest.io.file_io import FileIO, LocalFileIO
from manifest.storage.allowed_roots import ROOTS, ROOTS_FILE, AllowedRoots, GuardedFileIO, allowed_roots, guard_file_io
from manifest.storage.resolve import file_io_for
from paimon_base.errors import InvalidArgument


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """The one allowed directory; ``tmp_path / "outside"`` is beside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    root = tmp_path / "warehouse"
    root.mkdir()
    monkeypatch.setenv(ROOTS, str(root))
    return root


WAYS = {
    "read": lambda io, path: io.read(path),
    "read_range": lambda io, path: io.read_range(path, 0, 1),
    "read_many": lambda io, path: io.read_many([path]),
    "is_directory": lambda io, path: io.is_directory(path),
    "start_write": lambda io, path: io.start_write(path, b"x"),
    "delete_many": lambda io, path: io.delete_many([path]),
    "publish_directory": lambda io, path: io.publish_directory(path, {f"{path}/a": b"x"}),
    "retire_directory": lambda io, path: io.retire_directory(path, [f"{path}/a"]),
    "open_ranges": lambda io, path: io.open_ranges(path),
    "size": lambda io, path: io.size(path),
    "identity": lambda io, path: io.identity(path),
    "exists": lambda io, path: io.exists(path),
    "list": lambda io, path: io.list(path),
    "mkdirs": lambda io, path: io.mkdirs(path),
    "write": lambda io, path: io.write(path, b"x", overwrite=True),
    "write_hint": lambda io, path: io.write_hint(path, b"x", lambda: True),
    "create_exclusive": lambda io, path: io.create_exclusive(path, b"x"),
    "cancel_creates": lambda io, path: io.cancel_creates(path, lambda name: True),
    "replace": lambda io, path: io.replace(path, b"secret", b"x"),
    "delete": lambda io, path: io.delete(path),
    "delete_directory": lambda io, path: io.delete_directory(path, recursive=True),
    "rename_directory": lambda io, path: io.rename_directory(path, path + ".moved"),
    "open_output": lambda io, path: io.open_output(path),
    "open_input": lambda io, path: io.open_input(path),
    "sync": lambda io, path: io.sync(path),
    "lock": lambda io, path: io.lock(path),
    "fair_lock": lambda io, path: io.fair_lock(path),
    "local_path": lambda io, path: io.local_path(path),
}


def test_every_method_of_the_protocol_is_checked():
    assert {name for name in vars(FileIO) if not name.startswith("_")} - {"max_concurrency", "run_parallel", "cancels_creates"} == set(WAYS)
    assert all(name in vars(GuardedFileIO) for name in WAYS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "path", ["{outside}/secret", "{inside}/../outside/secret", "{inside}/link/secret", "{inside}/t/../../outside/secret"]
)
def test_what_is_not_in_an_allowed_directory_is_reached_by_no_method(inside, tmp_path, way, path):
    (inside / "link").symlink_to(tmp_path / "outside")
    io, _ = file_io_for(inside / "t")
    before = sorted((tmp_path / "outside").iterdir())
    with pytest.raises(PathNotAllowed) as caught:
        WAYS[way](io, path.format(inside=inside, outside=tmp_path / "outside"))
    assert sorted((tmp_path / "outside").iterdir()) == before
    assert (tmp_path / "outside" / "secret").read_bytes() == b"secret"
    assert str(inside) not in str(caught.value).replace(path.format(inside=inside, outside=tmp_path / "outside"), "")


def test_a_neighbour_whose_name_begins_like_the_directory_is_outside(inside):
    io, _ = file_io_for(inside)
    with pytest.raises(PathNotAllowed):
        io.read(f"{inside}-2/secret")


def test_what_is_inside_works_as_ever_also_through_links(inside, tmp_path):
    (inside / "a").mkdir()
    (inside / "b").symlink_to(inside / "a")
    (tmp_path / "way-in").symlink_to(inside)
    io, _ = file_io_for(tmp_path / "way-in" / "t")
    io.write(f"{inside}/b/x", b"data")
    assert (inside / "a" / "x").read_bytes() == b"data"
    assert io.read(f"{tmp_path}/way-in/b/x") == b"data"
    assert io.local_path(f"{tmp_path}/way-in/b/x") == str(inside / "a" / "x"), "what was checked is what is opened"
    assert io.create_exclusive(f"{inside}/a/y", b"1")
    assert not io.create_exclusive(f"{inside}/a/y", b"2")
    with io.open_output(f"{inside}/new/z") as out:
        out.write(b"z")
    with io.open_input(f"{inside}/new/z") as read:
        assert read.read() == b"z"
    assert sorted(entry.name for entry in io.list(str(inside))) == ["a", "b", "new"]


def test_deleting_a_link_deletes_the_link(inside, tmp_path):
    (inside / "link").symlink_to(tmp_path / "outside" / "secret")
    io, _ = file_io_for(inside)
    assert io.delete(f"{inside}/link")
    assert (tmp_path / "outside" / "secret").exists()
    assert not (inside / "link").is_symlink()


def test_a_file_names_directories_too_and_comments(inside, tmp_path, monkeypatch):
    listed = tmp_path / "roots"
    listed.write_text(f"# warehouses\n\n  {tmp_path}/one\nfile://{tmp_path}/two\n")
    monkeypatch.setenv(ROOTS_FILE, str(listed))
    assert allowed_roots() == AllowedRoots((str(inside), f"{tmp_path}/one", f"{tmp_path}/two"))
    monkeypatch.delenv(ROOTS)
    assert allowed_roots() == AllowedRoots((f"{tmp_path}/one", f"{tmp_path}/two"))


def test_a_mistake_in_the_setting_opens_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(ROOTS, "warehouse")
    with pytest.raises(InvalidArgument, match="'warehouse' is not an absolute directory"):
        file_io_for(tmp_path)
    monkeypatch.setenv(ROOTS, "s3://")
    with pytest.raises(InvalidArgument, match="s3://bucket/path"):
        file_io_for(tmp_path)
    monkeypatch.delenv(ROOTS)
    monkeypatch.setenv(ROOTS_FILE, str(tmp_path / "nowhere"))
    with pytest.raises(InvalidArgument, match="cannot be read"):
        file_io_for(tmp_path)
    (tmp_path / "empty").write_text("# nothing\n")
    monkeypatch.setenv(ROOTS_FILE, str(tmp_path / "empty"))
    with pytest.raises(PathNotAllowed):
        file_io_for(tmp_path)[0].exists(str(tmp_path))


def test_without_a_setting_nothing_is_wrapped(tmp_path, monkeypatch):
    monkeypatch.delenv(ROOTS, raising=False)
    monkeypatch.setenv(ROOTS_FILE, "")
    assert file_io_for(tmp_path)[0] == LocalFileIO()


def test_a_store_that_travels_keeps_its_directories_and_takes_those_of_where_it_arrives(inside, tmp_path, monkeypatch):
    sent = pickle.dumps(guard_file_io(LocalFileIO()))
    monkeypatch.delenv(ROOTS)
    with pytest.raises(PathNotAllowed):
        pickle.loads(sent).read(f"{tmp_path}/outside/secret")
    monkeypatch.setenv(ROOTS, str(tmp_path / "outside"))
    arrived = pickle.loads(sent)
    for path in (f"{tmp_path}/outside/secret", f"{inside}/x"):
        with pytest.raises(PathNotAllowed):
            arrived.exists(path)


def test_a_given_store_is_kept_to_the_directories_too(inside, tmp_path):
    io, _ = file_io_for(inside / "t", LocalFileIO())
    with pytest.raises(PathNotAllowed):
        io.read(f"{tmp_path}/outside/secret")


def test_a_zero_byte_is_refused_before_the_system_sees_it(inside):
    with pytest.raises(InvalidArgument, match="zero byte"):
        file_io_for(f"{inside}/t\0")
    with pytest.raises(PathNotAllowed):
        guard_file_io(LocalFileIO()).exists(f"{inside}/t\0")


def test_the_error_travels(inside):
    again = pickle.loads(pickle.dumps(PathNotAllowed("/x")))
    assert (again.path, str(again)) == ("/x", str(PathNotAllowed("/x")))
    assert not isinstance(again, OSError), "who takes errors of the disk for damaged files must not take this for one"


def test_arrow_reads_what_the_guard_opened(inside):
    io, _ = file_io_for(inside)
    table = pa.table({"id": [1, 2]})
    with io.open_output(f"{inside}/t.arrow") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with io.open_input(f"{inside}/t.arrow") as source:
        assert pa.ipc.open_file(source).read_all() == table


def test_prefixes_of_object_stores_stand_beside_directories(inside, monkeypatch):
    monkeypatch.setenv(ROOTS, f"memory://bucket/warehouse:{inside}:s3://other")
    assert allowed_roots() == AllowedRoots(("memory://bucket/warehouse", str(inside), "s3://other"))
    io, root = file_io_for("memory://bucket/warehouse/db.db/t")
    io.write(f"{root}/a", b"x")
    assert io.read("memory://bucket//warehouse/db.db/./t/a") == b"x"
    assert allowed_roots().resolve("s3a://other/t") == "s3a://other/t", "another spelling of the scheme"
    assert io.max_concurrency > 1
    for path in (
        "memory://bucket/warehouse-2/t",
        "memory://bucket/warehouse/../t",
        "memory://bucket",
        "s3://bucket/warehouse/t",
        "/etc/passwd",
    ):
        with pytest.raises(PathNotAllowed):
            io.read(path)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_outside_of_a_prefix_is_reached_by_no_method(monkeypatch, way):
    monkeypatch.setenv(ROOTS, "memory://bucket/warehouse")
    io, _ = file_io_for("memory://bucket/warehouse/t")
    with pytest.raises(PathNotAllowed):
        WAYS[way](io, "memory://bucket/warehouse/../outside")


def test_a_port_ends_no_directory(monkeypatch):
    monkeypatch.setenv(ROOTS, "/a:hdfs://nn:8020/w:s3://b/p:hdfs://nn:9000:/c")
    monkeypatch.delenv(ROOTS_FILE, raising=False)
    assert allowed_roots().directories == ("/a", "hdfs://nn:8020/w", "s3://b/p", "hdfs://nn:9000", "/c")
