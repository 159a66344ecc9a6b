"""A dry run sees what the operation would see, tells what it would delete, and changes nothing."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from manifest.expire.dry_run import DryRunFileIO
from manifest.io.file_io import LocalFileIO

NAMES = ("a", "b", "d/c", "f/g")
START = {"a": b"a", "d/c": b"cc", "f/g": b""}
DATA = st.binary(max_size=3)
NAME = st.sampled_from(NAMES)
STEPS = st.one_of(
    st.tuples(st.sampled_from(["read", "size", "exists", "delete"]), NAME),
    st.tuples(st.sampled_from(["write", "overwrite", "start_write", "create", "guarded", "hint"]), NAME, DATA),
    st.tuples(st.just("replace"), NAME, st.sampled_from([*START.values(), b"x"]), DATA),
    st.tuples(st.just("delete_many"), st.sets(NAME).map(sorted)),
    st.tuples(st.just("delete_directory"), st.sampled_from(["d", "f"])),
)


def done(io, root: str, step: tuple) -> object:
    """What a step answers, or the kind of its error."""
    kind, name, *rest = step
    path = [f"{root}/{one}" for one in name] if kind == "delete_many" else f"{root}/{name}"
    calls = {
        "overwrite": lambda: io.write(path, rest[0], overwrite=True),
        "start_write": lambda: [io.start_write(path, rest[0])()],
        "create": lambda: io.create_exclusive(path, rest[0]),
        "guarded": lambda: io.create_exclusive(path, rest[0], guard=lambda: len(rest[0]) > 1),
        "hint": lambda: io.write_hint(path, rest[0], lambda: True),
        "delete_directory": lambda: [io.delete_directory(f"{root}/{name}", recursive=True), io.mkdirs(f"{root}/{name}")][1:],
    }
    try:
        return calls.get(kind, lambda: getattr(io, kind)(path, *rest))()
    except OSError as error:
        return type(error)


def listed(io, root: str) -> set[tuple[str, int]]:
    return {(f"{path}/{one.name}", one.size) for path in ("", "/d", "/f") for one in io.list(f"{root}{path}") if not one.is_dir}


def state(io, root: str) -> object:
    files = {name: io.read(f"{root}/{name}") for name in NAMES if io.exists(f"{root}/{name}")}
    return files, {name: io.read_range(f"{root}/{name}", 0, len(data)) for name, data in files.items()}, listed(io, root)


def filled(root: Path) -> str:
    for name, data in START.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return str(root)


@given(st.lists(STEPS, max_size=12))
@example([("delete", "a"), ("create", "a", b"x")])
@example([("delete", "a"), ("overwrite", "a", b"x"), ("delete", "a"), ("delete", "a")])
def test_a_dry_run_answers_as_the_operation_does(steps: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = filled(Path(folder, "tried"))
        other = shutil.copytree(root, Path(folder, "done")).as_posix()
        dry, real = DryRunFileIO(LocalFileIO()), LocalFileIO()
        for step in steps:
            assert done(dry, root, step) == done(real, other, step), step
        assert state(dry, root) == state(real, other)
        gone = {f"{root}/{name}": len(data) for name, data in START.items() if not Path(other, name).exists()}
        assert dry.deleted == gone
        assert {name: Path(root, name).read_bytes() for name in NAMES if Path(root, name).exists()} == START


def test_directories_are_there_while_something_is_in_them(tmp_path: Path) -> None:
    dry, root = DryRunFileIO(LocalFileIO()), filled(tmp_path)
    (tmp_path / "empty").mkdir()
    assert [dry.is_directory(f"{root}/{name}") for name in ("d", "empty", "new")] == [True, True, False]
    dry.delete(f"{root}/d/c")
    dry.write(f"{root}/new/x", b"1")
    assert [dry.is_directory(f"{root}/{name}") for name in ("d", "empty", "new")] == [False, True, True]
    names = {one.name for one in dry.list(root)}
    assert {"a", "f", "empty"} <= names
    assert "d" not in names


def test_a_published_directory_must_be_new(tmp_path: Path) -> None:
    dry, root = DryRunFileIO(LocalFileIO()), filled(tmp_path)
    with pytest.raises(FileExistsError):
        dry.publish_directory(f"{root}/d", {f"{root}/d/x": b"1"})
    dry.publish_directory(f"{root}/n", {f"{root}/n/x": b"1"})
    assert (dry.read(f"{root}/n/x"), dry.local_path(f"{root}/n/x")) == (b"1", None)
    dry.retire_directory(f"{root}/d", ())
    assert (set(dry.deleted), dry.local_path(f"{root}/d/c"), dry.local_path(f"{root}/a")) == ({f"{root}/d/c"}, None, f"{root}/a")


def test_what_a_dry_run_cannot_do_is_refused(tmp_path: Path) -> None:
    dry = DryRunFileIO(LocalFileIO())
    for call in (lambda: dry.open_output(str(tmp_path / "data")), lambda: dry.rename_directory(str(tmp_path), str(tmp_path / "b"))):
        with pytest.raises(NotImplementedError):
            call()
    with dry.fair_lock(str(tmp_path)), dry.lock(str(tmp_path)) as alone:
        assert alone
    assert list(tmp_path.iterdir()) == []
