"""An object store as a ``FileIO``: on a real server, and what uploads leave behind."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from manifest.io.errors import FileMissing, FileTaken
from manifest.storage.bucket import PART_BYTES
from manifest.storage.object_store import ObjectStoreFileIO
from manifest.storage.ranges import ObjectRanges
from manifest.storage.storage_options import StorageOptions
from paimon_base.errors import CorruptFile, UnsupportedOption


@pytest.fixture
def io(s3):
    return ObjectStoreFileIO(StorageOptions.of(s3.options()))


@pytest.mark.parametrize(
    "name", ["plain", "dt=10%3A30/bucket-0/x", "a b/é.parquet", "t$branch_dev/#1", ".hidden/.x", "[q]/{z}|`", "~/a*b", "a+b&c/d;e,f"]
)
def test_names_come_back_as_they_went(io, warehouse, name):
    root = warehouse()
    io.write(f"{root}/{name}", name.encode())
    assert io.read(f"{root}/{name}") == name.encode()
    folder, _, last = f"{root}/{name}".rpartition("/")
    assert [(status.name, status.size, status.is_dir) for status in io.list(folder)] == [(last, len(name.encode()), False)]


def test_the_protocol_on_a_store(io, warehouse):
    root = warehouse()
    io.write(f"{root}/d/a", b"first")
    with pytest.raises(FileTaken):
        io.write(f"{root}/d/a", b"other")
    io.write(f"{root}/d/a", b"second", overwrite=True)
    done = io.start_write(f"{root}/d/b", b"third")
    done()
    assert list(io.read_many([f"{root}/d/a", f"{root}/d/b"])) == [b"second", b"third"]
    assert (io.exists(f"{root}/d/a"), io.exists(f"{root}/d"), io.is_directory(f"{root}/d"), io.is_directory(f"{root}/e")) == (
        True,
        False,
        True,
        False,
    )
    listed = {status.name: status for status in io.list(root)}
    assert (listed["d"].is_dir, set(listed)) == (True, {"d"})
    for missing in (io.read, io.size, io.identity, lambda path: io.open_input(path).size(), lambda path: io.read_range(path, 0, 1)):
        with pytest.raises(FileMissing):
            missing(f"{root}/nothing")
    assert io.read_range(f"{root}/d/a", 1, 3) == b"eco"
    for offset, length in ((0, 7), (5, 2), (9, 1), (-1, 2)):
        with pytest.raises(CorruptFile):
            io.read_range(f"{root}/d/a", offset, length)
    with pytest.raises(UnsupportedOption, match="an object store has no renames"):
        io.rename_directory(f"{root}/d", f"{root}/e")
    io.mkdirs(f"{root}/empty.db")
    assert {status.name for status in io.list(root)} == {"d", "empty.db"}
    assert io.list(f"{root}/empty.db") == [], "its marker is nobody's business"
    assert io.delete_many([f"{root}/d/a", f"{root}/d/b", f"{root}/d/c"]) == 3
    assert not io.is_directory(f"{root}/d")
    assert io.delete_directory(f"{root}/empty.db", recursive=True)
    assert io.list(root) == []


def test_names_that_are_given_once_need_no_question_and_others_are_told_by_their_tag(io, warehouse, s3):
    root = warehouse()
    unique = f"{root}/manifest-01234567-89ab-cdef-0123-456789abcdef-0"
    assert io.identity(unique) == io.identity(unique), "asked for nothing: it is not even there"
    other = ObjectStoreFileIO(StorageOptions.of(s3.options() | {"s3.access-key": "somebody else"}))
    assert other.identity(unique) != io.identity(unique), "what one may read is not shown to another"
    io.write(f"{root}/schema-0", b"one")
    first = io.identity(f"{root}/schema-0")
    assert first == io.list(root)[0].identity
    io.write(f"{root}/schema-0", b"two", overwrite=True)
    assert io.identity(f"{root}/schema-0") not in {first, None}


def test_a_large_file_is_sent_while_it_is_written_and_small_ones_at_once(io, warehouse, proxy, s3):
    io = ObjectStoreFileIO(StorageOptions.of(s3.options(proxy.port)))
    root, block = warehouse(), bytes(range(256)) * 4096
    with io.open_output(f"{root}/small") as small:
        small.write(block)
    assert dict(proxy.requests) == {"PUT": 1}
    with io.open_output(f"{root}/large") as large:
        for _ in range(40):
            large.write(block)
        assert large.tell() == 40 * len(block)
        assert proxy.requests["PUT"] > 2, "parts are on their way before it is closed"
    assert io.size(f"{root}/large") == 40 * len(block)
    assert io.read_range(f"{root}/large", 30 * len(block) - 1, 2) == b"\xff\x00"
    io.write(f"{root}/whole", block * 6)
    assert io.read(f"{root}/whole") == block * 6


def test_an_upload_holds_a_few_parts_whatever_the_size(io, warehouse):
    path, block = f"{warehouse()}/a", bytes(1 << 20)
    tracemalloc.start()
    with io.open_output(path) as output:
        for _ in range(24 * PART_BYTES // len(block)):
            output.write(block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 9 * PART_BYTES
    assert io.size(path) == 24 * PART_BYTES


def test_an_upload_that_is_given_up_leaves_nothing(io, warehouse, s3):
    root = warehouse()
    before = s3.objects()
    output = io.open_output(f"{root}/a")
    output.write(bytes(4 * PART_BYTES))
    output.abort()
    output.close()
    assert io.list(root) == []
    deadline = time.monotonic() + 10
    while s3.objects() != before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert s3.objects() == before, "nor do its parts"


def test_an_upload_whose_last_answer_is_lost_is_there(io, warehouse, proxy, s3):
    from tests.stores.fault_proxy import DROP

    behind = ObjectStoreFileIO(StorageOptions.of(s3.options(proxy.port)))
    root = warehouse()
    proxy.rule = lambda request: DROP if request.method == "POST" and "uploadId" in request.path and request.number == 1 else None
    with behind.open_output(f"{root}/a") as output:
        output.write(bytes(3 * PART_BYTES))
    assert proxy.done[DROP] == 1
    assert io.size(f"{root}/a") == 3 * PART_BYTES


@pytest.mark.sizes
def test_ranges_bring_the_end_along_and_join_neighbours(io, warehouse, proxy, s3):
    behind = ObjectStoreFileIO(StorageOptions.of(s3.options(proxy.port)))
    root, data = warehouse(), bytes(range(256)) * 2048
    io.write(f"{root}/a", data)
    source = behind.open_input(f"{root}/a", len(data))
    assert source.read_at(8, len(data) - 8) == data[-8:]
    assert source.read_at(4000, len(data) - 4000) == data[-4000:]
    assert proxy.requests["GET"] == 1, "the size was known and the tail is held"
    source.prefetch([(0, 100), (200, 100), (1000, 5000), (7, 0)])
    assert proxy.requests["GET"] == 2
    source.seek(1000)
    assert source.read(5000) == data[1000:6000]
    assert proxy.requests["GET"] == 2
    assert source.read_at(100, 150) == data[150:250], "what was not told is asked for"
    ranges = behind.open_ranges(f"{root}/a")
    assert (ranges.size(), ranges.read(0, 16), ranges.read(300_000, 16)) == (len(data), data[:16], data[300_000:300_016])
    assert proxy.requests == {"GET": 4}, "one brings size and content of what is small"
    wrong = behind.open_input(f"{root}/a", len(data) - 1)
    with pytest.raises(CorruptFile, match=f"has {len(data)} bytes where the metadata say {len(data) - 1}"):
        wrong.read_at(8, len(data) - 9)


def test_what_is_held_of_one_object_is_bounded(io, warehouse, set_thresholds):
    root = warehouse()
    io.write(f"{root}/a", bytes(10_000))
    set_thresholds(object_held_bytes=3000)
    bucket, key = io._at(f"{root}/a")
    ranges = ObjectRanges(bucket, key, 10_000, tail=False)
    for start in range(0, 8000, 1000):
        ranges.prefetch([(start, 1000)])
    assert sum(map(len, ranges._parts.values())) <= 3000
    ranges.prefetch([(0, 9000)])
    assert sum(map(len, ranges._parts.values())) <= 3000, "more than is held is not got ahead"
