"""Upload of a file while it is written, in parts.

Only a few parts are in memory. An aborted upload leaves nothing behind.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Self

import pyarrow as pa

from manifest.io.errors import StorageError
from manifest.io.threads import start_one
from manifest.storage.bucket import PART_BYTES, Bucket

_POLL_SECONDS = 0.5


class _Aborted(Exception):  # not an error: the program ends
    """Makes the client library delete the sent parts."""


class _Upload:
    """File interface for Arrow.

    A file that fits into one part is a single request on close.
    """

    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket = bucket
        self._key = key
        self._pending: list[bytes] = []
        self._held = 0
        self._written = 0
        self._parts: queue.Queue[bytes | None] = queue.Queue(1)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._writer = threading.current_thread()
        self.closed = False

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError("the upload has ended")
        view = memoryview(data).cast("B")
        self._written += len(view)
        rest = view
        while self._held + len(rest) > PART_BYTES:
            room = PART_BYTES - self._held
            self._take(rest[:room])
            rest = rest[room:]
            self._send(self._join_pending())
        self._take(rest)
        return len(view)

    def _take(self, data: memoryview) -> None:
        self._pending.append(bytes(data))
        self._held += len(data)

    def _join_pending(self) -> bytes:
        part = b"".join(self._pending)
        self._pending.clear()
        self._held = 0
        return part

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._thread is None:
            self._bucket.put(self._key, self._join_pending())
        else:
            self._send(self._join_pending())
            self._send(None)
            self._thread.join()
            if self._error is not None:
                raise self._error

    def abort(self) -> None:
        """Abort the upload."""
        if self.closed:
            return
        self.closed = True
        self._pending.clear()
        # Cancelling would leave parts that are being sent. So the upload is completed and the object deleted.
        if self._thread is not None:
            with suppress(Exception):  # the upload has failed and was cancelled
                self._send(None)
            self._thread.join()
            with suppress(StorageError):
                self._bucket.delete([self._key])

    def _send(self, part: bytes | None) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._upload, name="paimon-upload", daemon=True)
            start_one(thread)
            self._thread = thread
        while self._error is None:
            with suppress(queue.Full):
                self._parts.put(part, timeout=_POLL_SECONDS)
                return
        raise self._error

    def _upload(self) -> None:
        try:
            self._bucket.put_stream(self._key, self._next_parts())
        except BaseException as error:  # noqa: BLE001  # raised in the writer's thread
            self._error = error

    def _next_parts(self) -> Iterator[bytes]:
        while True:
            try:
                part = self._parts.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if not self._writer.is_alive() and not threading.main_thread().is_alive():
                    raise _Aborted from None
                continue
            if part is None:
                return
            yield part


class ObjectOutput(pa.PythonFile):  # type: ignore[misc]  # pyarrow ships no types
    """A new object as a writable Arrow file.

    It exists once it is closed, and never if it is aborted.
    """

    _upload: _Upload

    def __new__(cls, bucket: Bucket, key: str) -> Self:
        """Create the object with its file, which Arrow requires here."""
        upload = _Upload(bucket, key)
        created: Self = super().__new__(cls, upload, mode="w")
        created._upload = upload
        return created

    def __init__(self, bucket: Bucket, key: str) -> None:  # noqa: ARG002  # __new__ has them
        super().__init__()

    def abort(self) -> None:
        """Abort the object and delete its parts."""
        self._upload.abort()


__all__ = ["ObjectOutput"]
