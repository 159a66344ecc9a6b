"""An object store in a local directory, which forked processes share.

Put-if-absent and compare-and-swap are atomic, nothing can be renamed, and an upload cannot be cancelled. Each request is one operation
that can be counted, stopped before, or killed before.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from obstore.exceptions import AlreadyExistsError, PreconditionError

import manifest.storage.bucket
from manifest.storage.bucket import WRITER
from tests.torture.disk import Act, Disk, Operation
from tests.torture.tables import ON_STORE

T = TypeVar("T")
BUCKET = "torture"
_HEAD = 64
"""Bytes before an object's content: the name of its writer."""


def url_of(directory: str, kind: str) -> str:
    """Return the path by which a table of ``kind`` is opened: ``directory``, or its URI on the store."""
    return f"{DirectoryStore().install()}{directory}" if kind.endswith(ON_STORE) else directory


def watch(act: Act, directory: str, url: str) -> None:
    """Install ``act`` on the disk or the store of this process."""
    if url == directory:
        Disk(directory, act).install()
    else:
        DirectoryStore(act).install()


class Found:
    """An object, or a range of one, as the client library returns it."""

    def __init__(self, data: bytes, meta: dict[str, Any], writer: str, start: int = 0) -> None:
        self.meta = meta
        self.attributes = {WRITER: writer} if writer else {}
        self.range = (start, start + len(data))
        self._data = data

    def bytes(self) -> bytes:
        return self._data


class DirectoryStore:
    """A bucket whose keys are the absolute paths of local files, without the first slash."""

    def __init__(self, act: Act | None = None) -> None:
        self._act = act
        self._number = 0
        self._lock = threading.Lock()

    def install(self) -> str:
        """Make this process use the store. Returns the URI of ``/``."""
        manifest.storage.bucket.forget_buckets([f"memory://{BUCKET}"])
        manifest.storage.bucket._memory[BUCKET] = self
        return f"memory://{BUCKET}"

    def _do(self, name: str, key: str, perform: Callable[[], T]) -> T:
        if self._act is None or not self._act.watches(name):
            return perform()
        with self._lock:
            self._number += 1
            operation = Operation(self._number, name, f"/{key}")
        result: T = self._act(operation, perform, None)
        return result

    def get(self, key: str, *, options: Mapping[str, Any] | None = None) -> Found:
        return self._do("read", key, lambda: self._get(key, (options or {}).get("range")))

    def _get(self, key: str, wanted: Any) -> Found:
        with _opened(key) as file:
            content = file.read()
            meta = _meta(key, os.fstat(file.fileno()))
        writer, data = content[:_HEAD].rstrip().decode(), content[_HEAD:]
        if wanted is None:
            return Found(data, meta, writer)
        start, end = (max(0, len(data) - wanted["suffix"]), len(data)) if isinstance(wanted, Mapping) else wanted
        return Found(data[start:end], meta, writer, start)

    def get_ranges(self, key: str, *, starts: Sequence[int], lengths: Sequence[int], coalesce: int) -> list[bytes]:
        data = self.get(key).bytes()
        return [data[start : start + length] for start, length in zip(starts, lengths, strict=True)]

    def head(self, key: str) -> dict[str, Any]:
        def look() -> dict[str, Any]:
            with _opened(key) as file:
                return _meta(key, os.fstat(file.fileno()))

        return self._do("stat", key, look)

    def put(self, key: str, data: Any, *, mode: Any = "overwrite", attributes: Mapping[str, str] | None = None, **_: Any) -> None:
        """Write an object. ``mode``: "overwrite", "create", or the version to replace."""
        whole = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"".join(data)
        content = (attributes or {}).get(WRITER, "").encode().ljust(_HEAD) + whole
        self._do("link" if mode == "create" else "replace", key, lambda: self._put(key, content, mode))

    def _put(self, key: str, content: bytes, mode: Any) -> None:
        path = Path(f"/{key}")
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".put-{uuid.uuid4()}"
        temporary.write_bytes(content)
        try:
            if mode == "create":
                os.link(temporary, path)
            elif mode == "overwrite":
                temporary.rename(path)
            else:
                _replace(temporary, path, mode)
        except FileExistsError as error:
            raise AlreadyExistsError(f"{key} exists") from error
        finally:
            temporary.unlink(missing_ok=True)

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._do("unlink", key, lambda key=key: Path(f"/{key}").unlink(missing_ok=True))

    def list_with_delimiter(self, prefix: str | None) -> dict[str, Any]:
        """Return the objects in a directory and the directories below it that hold any."""

        def look() -> dict[str, Any]:
            below = [found for found in _objects(prefix or "") if _is_below(found["path"], prefix)]
            depth = len((prefix or "").split("/")) + 1 if prefix else 1
            objects = [found for found in below if found["path"].count("/") + 1 == depth]
            prefixes = {"/".join(found["path"].split("/")[:depth]) for found in below if found["path"].count("/") + 1 > depth}
            return {"common_prefixes": sorted(prefixes), "objects": objects}

        return self._do("scandir", prefix or "", look)

    def list(self, prefix: str | None, *, chunk_size: int) -> Iterator[list[dict[str, Any]]]:
        found = self._do("scandir", prefix or "", lambda: list(_objects(prefix or "")))
        for start in range(0, len(found), chunk_size):
            yield found[start : start + chunk_size]


def _opened(key: str) -> Any:
    try:
        return Path(f"/{key}").open("rb")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise FileNotFoundError(errno.ENOENT, f"Object at location {key} not found", key) from error


def _replace(temporary: Path, path: Path, version: Mapping[str, str]) -> None:
    with Path("/dev/shm/.torture-store").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "Object not found", str(path))
        if _meta("", path.stat())["e_tag"] != version["e_tag"]:
            raise PreconditionError(f"{path} has another version")
        temporary.rename(path)


def _objects(prefix: str) -> Iterator[dict[str, Any]]:
    for directory, _, names in os.walk(f"/{prefix}"):
        for name in sorted(names):
            if name.startswith(".put-"):
                continue
            path = f"{directory}/{name}"
            try:
                yield _meta(path[1:], Path(path).stat())
            except FileNotFoundError:  # deleted since it was listed
                continue


def _is_below(path: str, prefix: str | None) -> bool:
    return not prefix or path.startswith(f"{prefix}/")


def _meta(key: str, status: os.stat_result) -> dict[str, Any]:
    return {
        "path": key,
        "size": status.st_size - _HEAD,
        "e_tag": f"{status.st_ino}-{status.st_mtime_ns}",
        "last_modified": datetime.fromtimestamp(status.st_mtime, UTC),
    }
