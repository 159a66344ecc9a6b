"""Requests to a bucket, on the store that lives in this process."""

from __future__ import annotations

import errno
import uuid

import pytest

from manifest.io.errors import StorageError
from manifest.storage import object_store
from manifest.storage.object_store import ObjectStoreFileIO
from manifest.storage.storage_options import StorageOptions

DATA = bytes(range(100))


@pytest.mark.parametrize("asked_by_end", [True, False], ids=["suffix", "start"])
@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, 10, DATA[:10]),
        (1, 10, DATA[1:11]),
        (95, 10, DATA[95:]),
        (-1, 10, DATA[-10:]),
        (-1, 1000, DATA),
    ],
)
def test_a_part_is_read_from_its_start_or_from_the_end(start: int, length: int, expected: bytes, asked_by_end: bool) -> None:
    pytest.importorskip("obstore", reason="object stores need the extra 'objectstore'")
    root = f"memory://{uuid.uuid4().hex}"
    io = ObjectStoreFileIO(StorageOptions.of({}))
    io.write(f"{root}/a", DATA)
    bucket, key = io._at(f"{root}/a")
    bucket._ends = asked_by_end
    assert bucket.get_part(key, start, length) == (expected, len(DATA))


def test_each_caller_has_its_own_retries_and_timeout() -> None:
    pytest.importorskip("obstore", reason="object stores need the extra 'objectstore'")
    root = f"memory://{uuid.uuid4().hex}"
    buckets = [ObjectStoreFileIO(StorageOptions.of({"storage.max-retries": str(most)}))._at(f"{root}/a")[0] for most in (0, 7, 0)]
    assert [bucket._retries.max_retries for bucket in buckets] == [0, 7, 0]
    assert buckets[0] is buckets[2]


class FailsAtTheEnd:
    """Takes all parts of an upload, and fails to finish it."""

    def put_stream(self, key, parts):
        self.taken = list(parts)
        raise StorageError(errno.EIO, "cannot be finished", key)


def test_an_upload_that_fails_at_its_end_is_not_closed_as_if_it_were_whole(monkeypatch):
    monkeypatch.setattr(object_store, "PART_BYTES", 4)
    bucket = FailsAtTheEnd()
    output = object_store._Upload(bucket, "key")
    output.write(b"123456789")
    with pytest.raises(StorageError, match="cannot be finished"):
        output.close()
    assert bucket.taken == [b"1234", b"5678", b"9"]
