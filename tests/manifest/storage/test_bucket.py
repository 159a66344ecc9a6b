"""Requests to a bucket, on the store that lives in this process."""

from __future__ import annotations

import uuid

import pytest

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
