"""Whatever the operating system refuses, wherever: a typed error that names the file, and a table that is as it was."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.io.file_cache import SHARED
from pyspark_paimon import Catalog, PaimonError, StorageError, Table
from tests.build import tuples
from tests.os_faults import PLACES, OsFaults

CODES = (errno.EIO, errno.EACCES, errno.EROFS, errno.EMFILE, errno.ENOSPC, errno.ELOOP, errno.ENAMETOOLONG)
OPTIONS = {
    "file-index.bloom-filter.columns": "s",
    "file-index.in-manifest-threshold": "1 b",
    "commit.max-retries": "1",
    "commit.min-retry-wait": "1 ms",
    "commit.max-retry-wait": "1 ms",
}
KINDS = {
    "keys": (("id",), {"bucket": "1"}),
    "append": ((), {"bucket": "-1"}),
    "vectors": (("id",), {"bucket": "1", "deletion-vectors.enabled": "true"}),
}


def rows(count: int, first: int = 0) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array(range(count), pa.int32()), "s": [f"t{i}" for i in ids]})


CALLS: dict[str, Callable[[Table], Any]] = {
    "write": lambda table: table.write(rows(5, 100)),
    "overwrite": lambda table: table.write(rows(5, 100), mode="overwrite"),
    "delete": lambda table: table.delete("id = 3"),
    "update": lambda table: table.update("id = 3", {"n": 7}),
    "compact": lambda table: table.compact(full=True),
    "scan": lambda table: table.scan("s = 't3'").to_arrow(),
    "count": lambda table: table.scan("n >= 3").count(),
    "open": lambda table: Table.open(table.path),
    "create": lambda table: Table.create(f"{Path(table.path).parent}/new", "id INT"),
    "expire": lambda table: table.expire_snapshots(retain_min=1, retain_max=1),
    "tag": lambda table: table.create_tag("b"),
    "delete tag": lambda table: table.delete_tag("a"),
    "branch": lambda table: table.create_branch("x", from_tag="a"),
    "rewrite indexes": lambda table: table.rewrite_file_index(),
    "alter": lambda table: table.alter_options({"target-file-size": "1 mb"}),
    "analyze": lambda table: table.analyze(),
    "files": lambda table: table.files(),
}


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A table of a kind, made once, with a tag, several files and indexes to be rewritten."""
    folder = tmp_path_factory.mktemp("whole")

    def make(kind: str) -> Path:
        path = folder / kind
        if not path.exists():
            keys, options = KINDS[kind]
            table = Table.create(path, "id BIGINT, n INT, s STRING", primary_keys=keys, options={**OPTIONS, **options})
            table.write(rows(20))
            table.create_tag("a")
            table.write(rows(20, 10))
            table.alter_options({"file-index.bitmap.columns": "n"})
        return path

    return make


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("manifest.io.posix._TURN_SECONDS", 0.01)
    yield
    SHARED.clear()


def state(path: Path) -> list[tuple[Any, ...]]:
    SHARED.clear()
    return tuples(Table.open(path))


def check(whole: Path, folder: Path, name: str, place: str, code: int) -> None:
    shutil.copytree(whole, folder / "t")
    before = state(folder / "t")
    table = Table.open(folder / "t")
    SHARED.clear()
    with OsFaults(str(folder), place, lambda: OSError(code, os.strerror(code))).injected():
        try:
            CALLS[name](table)
        except PaimonError as error:
            assert str(folder) in str(error)  # noqa: PT017  # what else it is, the next assertion tells
            failed = True
        else:
            failed = False
    after = state(folder / "t")
    assert after == before or not failed, "the call failed, yet rows have changed"
    table.write(rows(1, 1000))
    assert not table.fsck().problems


def cases(places: int) -> list[Any]:
    """Every call at so many places each, kinds of tables and codes in turn."""
    wanted = [(name, PLACES[(at * 3 + turn * 5) % len(PLACES)]) for at, name in enumerate(CALLS) for turn in range(places)]
    drawn = zip(wanted, cycle(KINDS), cycle(CODES), strict=False)
    return [pytest.param(case, kind, code, id=f"{'-'.join(case)}-{kind}-{errno.errorcode[code]}") for case, kind, code in drawn]


@pytest.mark.parametrize(("call", "kind", "code"), cases(2))
@pytest.mark.sampled(2)
def test_what_the_system_refuses_is_a_typed_error_that_names_a_file(whole, tmp_path, call, kind, code) -> None:
    check(whole(kind), tmp_path, *call, code)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_so_it_is_at_every_place(whole, tmp_path, name, kind) -> None:
    for place in PLACES:
        for code in CODES:
            check(whole(kind), tmp_path / f"{place} {code}", name, place, code)


@pytest.mark.parametrize("place", ["link", "arrow write"])
@pytest.mark.parametrize(
    ("name", "kind"), list(zip(["write", "overwrite", "compact", "branch", "rewrite indexes"], cycle(KINDS), strict=False))
)
def test_an_interrupt_leaves_what_an_error_leaves(whole, tmp_path, name, place, kind) -> None:
    left = []
    for number, fault in enumerate([lambda: OSError(errno.EROFS, "no"), KeyboardInterrupt]):
        folder = tmp_path / str(number)
        shutil.copytree(whole(kind), folder / "t")
        before = {path.name for path in folder.rglob("*")}
        table = Table.open(folder / "t")
        with OsFaults(str(folder), place, fault).injected() as faults:
            try:
                CALLS[name](table)
            except BaseException as error:  # noqa: BLE001  # an interrupt is none of Exception
                assert isinstance(error, PaimonError | KeyboardInterrupt)  # noqa: PT017
        if not faults.hit:
            pytest.skip("the call does not come by here")
        left.append(Counter(path.parent.name for path in folder.rglob("*") if path.is_file() and path.name not in before))
    assert not left[1] - left[0]


def test_a_path_through_a_file_and_one_that_is_too_long_are_named(tmp_path) -> None:
    (tmp_path / "file").write_text("no directory")
    through, long = tmp_path / "file" / "t", tmp_path / ("x" * 300)
    for path in (through, long, tmp_path / "file"):
        for call in (
            lambda path=path: Table.open(path),
            lambda path=path: Table.create(path, "id INT"),
            lambda path=path: Catalog(path).create_database("d"),
            lambda path=path: Catalog(path).table("t"),
        ):
            with pytest.raises(PaimonError, match=str(tmp_path)):
                call()


def test_a_link_to_itself_is_named(tmp_path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for call in (Table.open, lambda path: Table.create(path, "id INT")):
        with pytest.raises(StorageError, match="loop"):
            call(tmp_path / "loop" / "t")
