"""Sorted runs on local disk, as compressed Arrow IPC files.

A sort buffer writes them when memory is short.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import pyarrow as pa

from manifest.io.errors import OutOfMemory, StorageError
from manifest.io.storage_errors import storage_errors
from paimon_base.errors import CorruptFile, PaimonError
from paimon_base.process import in_this_process
from paimon_base.thresholds import thresholds


@dataclass(frozen=True, slots=True)
class SpillFile:
    """One sorted run.

    ``rows`` and ``size`` (bytes on disk) are for reports.
    """

    path: str
    rows: int
    size: int

    def tables(self) -> Iterator[Any]:
        """Yield the batches in order.

        One batch is in memory at a time.
        """
        with _errors(self.path, _not_read):
            source = pa.OSFile(self.path)
        with source:
            with _errors(self.path, _not_read):
                reader = pa.ipc.open_stream(source)
            while True:
                with _errors(self.path, _not_read):
                    batch = next(reader, None)
                if batch is None:
                    return
                yield pa.Table.from_batches([batch])

    def delete(self) -> None:
        """Delete the file. It may be missing."""
        with suppress(FileNotFoundError), storage_errors(self.path):
            os.unlink(self.path)  # noqa: PTH108 - paths are strings here


@dataclass(frozen=True, slots=True)
class SpillSpace:
    """Directory and codec of spill files.

    The directory is created on first use. The codec and level are options ``spill-compression`` and its level. ``batch_bytes`` is the memory
    of a run during a merge.
    """

    directory: str
    codec: str = "zstd"
    level: int | None = 1
    batch_bytes: int = field(default_factory=lambda: thresholds.spill_batch_bytes)

    def write(self, tables: Iterable[Any]) -> SpillFile:
        """Write one sorted run.

        On failure the file is deleted. A full disk raises ``OutOfDisk``.
        """
        with storage_errors(self.directory):
            os.makedirs(self.directory, mode=0o700, exist_ok=True)  # noqa: PTH103 - paths are strings here
            handle, path = tempfile.mkstemp(suffix=".arrow", prefix="spill-", dir=self.directory)
            os.close(handle)
        rows = 0
        try:
            with _errors(path, _not_written), pa.OSFile(path, "wb") as sink:
                writer = None
                for table in tables:
                    writer = writer or pa.ipc.new_stream(sink, table.schema, options=self._options)
                    writer.write_table(table, max_chunksize=batch_rows(table, self.batch_bytes))
                    rows += table.num_rows
                assert writer is not None, "a run has rows"
                writer.close()
                size = sink.tell()
        except BaseException:
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 - paths are strings here
            raise
        return SpillFile(path, rows, size)

    @property
    def _options(self) -> Any:
        codec = None if self.codec == "none" else pa.Codec(self.codec, self.level if self.codec == "zstd" else None)
        return pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)


def _not_written(path: str, error: Exception) -> PaimonError:
    return StorageError(errno.EIO, f"rows cannot be spilled ({error})", path)


def _not_read(path: str, error: Exception) -> PaimonError:
    return CorruptFile(path, f"is a damaged spill file ({error})")


@contextmanager
def _errors(path: str, damaged: Callable[[str, Exception], PaimonError]) -> Iterator[None]:
    """Convert errors of storage, memory and Arrow."""
    try:
        with storage_errors(path):
            yield
    except MemoryError as error:
        raise OutOfMemory(path, str(error)) from error
    except pa.ArrowException as error:
        raise damaged(path, error) from error


class SpillDirectory:
    """Temporary directory (``TMPDIR``), created by the first spill.

    A context manager. ``cleanup`` deletes it, and so does the end of this object. Neither does in a forked child.
    """

    def __init__(self) -> None:
        with storage_errors(os.environ.get("TMPDIR", "/tmp")):  # noqa: S108  # only named in an error
            self.name = f"{tempfile.gettempdir()}/paimon-spill-{uuid.uuid4()}"
        self.cleanup = weakref.finalize(self, in_this_process(shutil.rmtree), self.name, ignore_errors=True)

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.cleanup()


def batch_rows(table: Any, size: int) -> int:
    """Return the rows of ``table`` that have about ``size`` bytes.

    A batch has at least a megabyte or a thousand rows.

    >>> batch_rows(pa.table({"n": [1] * 10}), 1), batch_rows(pa.table({"blob": [bytes(3 << 20)] * 4}), 2 << 20)
    (1024, 1)
    """
    rows, table_bytes = int(table.num_rows), max(1, int(table.nbytes))
    return max(size * rows // table_bytes, min(thresholds.spill_fewest_rows, thresholds.spill_fewest_bytes * rows // table_bytes), 1)
