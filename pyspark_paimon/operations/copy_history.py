"""Copy of a whole table: snapshots, changelogs, tags, branches, consumers and their files. A repeat copies what is new.

Files other than roots never change, so a name and a size say whether the copy has one. Roots are published after all files that they need.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import ClassVar, Self

from pydantic import PrivateAttr

from manifest.expire.history_change import finish_interrupted
from manifest.io.errors import CommitGaveUp, TableExists, UnsupportedTable
from manifest.io.file_io import FileIO
from manifest.io.output_file import OutputFile
from manifest.io.paths import EARLIEST, EXTERNAL_PATHS, LATEST, MAIN_BRANCH, ROLLBACK, parse_number, split_branch, with_branch
from manifest.io.storage_errors import storage_errors
from manifest.io.threads import map_in_threads
from manifest.storage.owned_paths import OwnedRoots, restrict_to_owned
from manifest.storage.resolve import file_io_for
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, InvalidArgument
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.results.message import Message
from pyspark_paimon.results.state_results import CopyResult

_ROOT = re.compile(r"(branch/branch-[^/]+/)?(schema|tag|consumer|writer|changelog|snapshot)/([^/]+)")
_WITH_FILES = frozenset({"tag", "changelog", "snapshot"})
_ORDER = ("schema", "tag", "consumer", "writer", "changelog", "snapshot")
# A rollback that is finished may leave its file.
_HINTS = frozenset({LATEST, EARLIEST, ROLLBACK})
_SKIPPED = frozenset({"_repair", "metadata"})
"""Directories of the table that are not its state: copies of repaired files, and Iceberg metadata, which has absolute paths."""
_ROUNDS = 5
_CHUNK = 1 << 20


class BesideStorage(Message):
    """Operation on one table that opens another one's files."""

    _beside: FileIO | None = PrivateAttr(default=None)

    @property
    def beside(self) -> FileIO | None:
        """Storage of the other table. None: the process's session knows it."""
        return self._beside

    def with_storage(self, beside: FileIO | None) -> Self:
        """Return the operation with a storage, which its text lacks."""
        self._beside = beside
        return self


class CopyHistory(BesideStorage, Operation[CopyResult]):
    """Copy this table with its history.

    ``target``: directory of the copy. It is empty or has an older copy of this table.
    """

    stage: ClassVar[str] = "copy"

    target: str

    def run(self, table: OpenTable) -> CopyResult:
        """Copy files, then roots; again if an expiry removed a root meanwhile.

        Raises ``TableExists`` for another table, ``CommitGaveUp`` if snapshots expire faster than they are copied.
        """
        started, store = time.perf_counter(), table.store()
        if split_branch(table.path)[1] != MAIN_BRANCH or store.commits is not None or EXTERNAL_PATHS in store.options.raw:
            raise UnsupportedTable(
                f"{table.path}: a copy with history needs a table, not a branch, whose snapshots and files are all in its directory: no "
                f"catalog keeps them, and option '{EXTERNAL_PATHS}' is not set"
            )
        storage, target = file_io_for(self.target, self.beside)
        if target == store.root or target.startswith(f"{store.root}/") or store.root.startswith(f"{target}/"):
            raise InvalidArgument(f"{target}: a copy must lie outside of its table, {store.root}")
        source, copy = _Files(store.storage, store.root), _Files(restrict_to_owned(storage, OwnedRoots(target)), target)
        for branch in (MAIN_BRANCH, *store.snapshots.branch_names()):
            finish_interrupted(FileStore.open(with_branch(store.root, branch), store.storage), "a copy with history")
        copied: dict[str, int] = {}
        for _ in range(_ROUNDS):
            roots = source.roots()
            stored = copy.roots()
            _check_same_table(source, roots, copy, stored)
            copy.write({name: text for name, text in roots.items() if name.startswith("schema/")}, stored)
            copied |= _copy_missing(source, copy, table.threads)
            current = source.roots()
            if all(current.get(name) == text for name, text in roots.items() if _kind(name) in _WITH_FILES):
                break  # deletions begin at roots, so all their files were there until now
        else:
            raise CommitGaveUp(f"{store.root}: snapshots or tags were removed during each of {_ROUNDS} rounds; retain them longer")
        copy.write(roots, stored)
        numbers = _snapshots(roots)
        # A snapshot that the table lost, not expired, stays in the copy.
        lost = {f"snapshot/snapshot-{number}" for number in _snapshots(stored) if number > min(numbers, default=0)}
        copy.delete_roots(stored.keys() - roots.keys() - lost)
        return CopyResult(
            files=len(copied), bytes=sum(copied.values()), snapshot_id=max(numbers, default=None), seconds=time.perf_counter() - started
        )


class _Files:
    """Files of a table by their names from its directory on."""

    def __init__(self, file_io: FileIO, root: str) -> None:
        self.file_io, self.root = file_io, root

    def sizes(self, *, roots: bool = False, below: str = "") -> dict[str, int]:
        """Return the size of each root, or of each other file."""
        return {name: size for name, size in self._walk(below) if (_ROOT.fullmatch(name) is not None) == roots}

    def _walk(self, below: str) -> Iterator[tuple[str, int]]:
        for status in self.file_io.list(f"{self.root}/{below}".rstrip("/")):
            name = f"{below}{status.name}"
            if status.is_dir and name not in _SKIPPED:
                yield from self._walk(f"{name}/")
            elif not (status.is_dir or status.name.startswith(".") or status.name in _HINTS):  # names with a dot are temporary
                yield name, status.size

    def roots(self) -> dict[str, bytes]:
        """Return the content of each root."""
        contents: dict[str, bytes] = {}
        for name in self.sizes(roots=True):
            with suppress(FileNotFoundError):  # expired since it was listed
                contents[name] = self.file_io.read(f"{self.root}/{name}")
        return contents

    def write(self, roots: Mapping[str, bytes], stored: Mapping[str, bytes]) -> None:
        """Write new and changed roots; snapshots last, in their order."""
        for name in sorted(roots, key=_order):
            if stored.get(name) != roots[name]:
                self.file_io.write(f"{self.root}/{name}", roots[name], overwrite=True)

    def delete_roots(self, names: set[str]) -> None:
        """Delete roots, and hints that may name them."""
        for name in sorted(names, key=_order):
            self.file_io.delete(f"{self.root}/{name}")
        for hint in _HINTS:
            self.file_io.delete(f"{self.root}/snapshot/{hint}")


def _kind(name: str) -> str:
    match = _ROOT.fullmatch(name)
    assert match is not None
    return match[2]


def _order(name: str) -> tuple[int, int, str]:
    kind = _kind(name)
    return _ORDER.index(kind), parse_number(name.rpartition("/")[2], f"{kind}-") or 0, name


def _snapshots(roots: Iterable[str]) -> list[int]:
    return [number for name in roots if (number := parse_number(name, "snapshot/snapshot-"))]


def _check_same_table(source: _Files, roots: Mapping[str, bytes], copy: _Files, stored: Mapping[str, bytes]) -> None:
    """Raise ``TableExists`` unless the target is empty or an unchanged older copy."""
    first = min((name for name in roots if name.startswith("schema/")), key=_order)
    changed = sorted(
        name for name, text in stored.items() if re.match(r"(schema|snapshot)/", name) and name in roots and roots[name] != text
    )
    last = max(_snapshots(roots), default=0)
    changed += [f"snapshot/snapshot-{number}" for number in _snapshots(stored) if number > last]
    if changed or (first not in stored and (stored or copy.sizes())):
        reason = f"'{changed[0]}' differs" if changed else "no copy of this table is here"
        raise TableExists(
            f"{copy.root}: {reason}: this is another table, or it or {source.root} was changed or rolled back since the last copy. Nothing "
            "was copied; name another directory"
        )


def _copy_missing(source: _Files, copy: _Files, threads: int) -> dict[str, int]:
    """Copy the files that the target lacks, and return their sizes by name."""
    stored = copy.sizes()
    missing = {name: size for name, size in source.sizes().items() if stored.get(name) != size}

    def work(name: str) -> None:
        if name in stored:  # a copy that was killed, or a file that was being written
            copy.file_io.delete(f"{copy.root}/{name}")
        with suppress(FileNotFoundError):  # an aborted write or an expiry; the roots are compared afterwards
            copy_file(source.file_io, f"{source.root}/{name}", copy.file_io, f"{copy.root}/{name}")

    map_in_threads(work, sorted(missing), threads)
    return missing


def copy_file(source: FileIO, path: str, target: FileIO, new: str, size: int | None = None) -> None:
    """Copy a file durably. Raises ``CorruptFile`` if it has not ``size`` bytes."""
    output = OutputFile(target, new)
    try:
        with storage_errors(path), source.open_input(path) as stream:
            while chunk := stream.read(_CHUNK):
                with storage_errors(new):
                    output.open().write(chunk)
        _check_size(path, output.finish(), size)
    except BaseException:
        output.abort()
        raise


def _check_size(path: str, copied: int, expected: int | None) -> None:
    if expected is not None and copied != expected:
        raise CorruptFile(path, f"has {copied} bytes instead of {expected}; nothing was committed")
