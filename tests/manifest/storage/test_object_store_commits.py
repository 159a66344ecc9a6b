"""Put-if-absent on a real server, with a proxy that loses the answers to what succeeded."""

from __future__ import annotations

import time
import uuid

import pytest

from manifest.expire.branches import create_branch
from manifest.expire.tags import replace_tag
from manifest.io.errors import CommitConflict, CredentialsRefused, FileMissing, StorageDenied, StorageError, TableExists, UnsafeFileIO
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.schema.manager import SchemaManager
from manifest.schema.validation import build_schema
from manifest.storage import faults
from manifest.storage.bucket import WRITER, forget_buckets, open_bucket
from manifest.storage.object_store import ObjectStoreFileIO
from manifest.storage.resolve import file_io_for
from manifest.storage.schemes import object_place
from manifest.storage.storage_options import StorageOptions
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument
from tests.manifest.commit_kit import committer, data_file, live_names, message
from tests.stores.fault_proxy import BUSY, DROP, EXPIRED, LOSE, TRUNCATE, UNCONDITIONAL
from tests.stores.s3_server import BUCKET


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(faults, "_FIRST_WAIT", 0.001)
    faults.RETRIED.clear()


@pytest.fixture
def through(s3, proxy):
    """The store behind the proxy."""
    return ObjectStoreFileIO(StorageOptions.of(s3.options(proxy.port)))


def table(file_io, path, columns="id INT NOT NULL, part STRING"):
    schema = build_schema(columns, primary_keys=["id"], options={"bucket": "1"})
    SchemaManager(file_io, path).create(schema)
    return FileStore.open(path, file_io)


def lost_creates(part=""):
    """The answer to the first try of every put-if-absent below a name."""
    return lambda request: DROP if request.creates and request.number == 1 and part in request.path else None


def test_a_lost_answer_to_a_commit_is_no_lost_race(through, proxy, warehouse):
    store = table(through, f"{warehouse()}/t")
    proxy.rule = lost_creates("/snapshot/")
    for number in range(3):
        result = committer(store).commit(
            [message(store, [data_file(store, name=f"data-{number}.parquet", seq=(10 * number, 10 * number + 9))])]
        )
        assert result.snapshot_id == number + 1
    assert proxy.done[DROP] == 3
    assert sum(faults.RETRIED.values()) == 3, "retries are told"
    assert live_names(store) == [f"data-{number}.parquet" for number in range(3)]


def test_a_taken_snapshot_is_a_lost_race_whatever_answers_are_lost(through, proxy, warehouse):
    store = table(through, f"{warehouse()}/t")
    committer(store).commit([message(store, [data_file(store, name="data-0.parquet")])])
    taken = store.snapshots.get(1).model_copy(update={"commit_user": "another"})
    proxy.rule = lost_creates()
    assert store.snapshots.try_create(taken) is False
    assert store.snapshots.get(1).commit_user != "another"


def test_schemas_that_are_equal_by_chance_have_one_maker(through, s3, proxy, warehouse):
    path = f"{warehouse()}/t"
    table(ObjectStoreFileIO(StorageOptions.of(s3.options())), path)
    schema = FileStore.open(path, through).schema
    proxy.rule = lost_creates("/schema/schema-")
    assert SchemaManager(through, path)._put(schema) is False, "the very bytes are there, and another has written them"
    with pytest.raises(TableExists):
        SchemaManager(through, path).create(schema)
    other = f"{warehouse()}/t"
    assert SchemaManager(through, other).create(schema) is schema, "made, and not told so at first"
    assert proxy.done[DROP] == 1


def test_tags_that_are_equal_by_chance_have_one_maker(through, proxy, warehouse):
    store = table(through, f"{warehouse()}/t")
    committer(store).commit([message(store, [data_file(store, name="data-0.parquet")])])
    proxy.rule = lost_creates("/tag/")
    store.snapshots.create_tag("a", store.snapshots.get(1))
    assert proxy.done[DROP] == 1
    with pytest.raises(InvalidArgument, match="tag 'a' exists"):
        store.snapshots.create_tag("a", store.snapshots.get(1))
    assert store.snapshots.delete_tag("a")
    assert not store.snapshots.delete_tag("a")


class Rival(WrappedFileIO):
    """Has another write to a file just before it is replaced, once."""

    def __init__(self, inner, rival):
        super().__init__(inner)
        self.rival = rival

    def replace(self, path, old, data):
        rival, self.rival = self.rival, None
        if rival is not None:
            rival()
        return super().replace(path, old, data)


def tagged_table(file_io, path):
    """A table of two snapshots, the first of which has a tag."""
    store = table(file_io, path)
    for number in range(2):
        committer(store).commit([message(store, [data_file(store, name=f"data-{number}.parquet", seq=(10 * number, 10 * number + 9))])])
    store.snapshots.create_tag("a", store.snapshots.get(1))
    return store


def _place(request, tmp_path, place):
    if place == "local":
        return LocalFileIO(), str(tmp_path)
    return request.getfixturevalue("through"), request.getfixturevalue("warehouse")()


@pytest.mark.slow("s3")  # its server is a JVM
@pytest.mark.parametrize("place", ["s3", "local"])
def test_of_two_who_replace_a_tag_one_is_told(request, tmp_path, place):
    file_io, root = _place(request, tmp_path, place)
    store = tagged_table(file_io, f"{root}/t")
    racing = FileStore.open(store.root, Rival(file_io, lambda: replace_tag(store, "a", store.snapshots.get(2), None)))
    with pytest.raises(CommitConflict, match="tag 'a' was replaced or deleted by another"):
        replace_tag(racing, "a", store.snapshots.get(1), None)
    assert store.snapshots.tag("a").id == 2, "the other one's stands"
    replace_tag(racing, "a", store.snapshots.get(1), None)
    assert store.snapshots.tag("a").id == 1
    deleting = FileStore.open(store.root, Rival(file_io, lambda: store.snapshots.delete_tag("a")))
    with pytest.raises(CommitConflict):
        replace_tag(deleting, "a", store.snapshots.get(1), None)
    assert store.snapshots.tags() == {}


def test_a_lost_answer_to_a_replacement_is_no_lost_race(through, proxy, warehouse):
    store = tagged_table(through, f"{warehouse()}/t")
    lost = set()

    def lose_the_first(asked):
        if "if-match" not in asked.headers or "/tag/tag-" not in asked.path or lost:
            return None
        lost.add(asked.path)
        return DROP

    proxy.rule = lose_the_first
    replace_tag(store, "a", store.snapshots.get(2), None)
    assert proxy.done[DROP] == 1
    assert store.snapshots.tag("a").id == 2


def test_a_store_that_does_not_compare_replaces_no_tag_and_goes_on_with_consumers(through, proxy, warehouse):
    store = tagged_table(through, f"{warehouse()}/t")
    store.snapshots.record_consumer("c", 1)
    forget_buckets([f"s3://{BUCKET}"])
    proxy.rule = lambda asked: UNCONDITIONAL if "if-match" in asked.headers else None
    with pytest.raises(UnsafeFileIO, match="If-Match"):
        replace_tag(store, "a", store.snapshots.get(2), None)
    assert store.snapshots.tag("a").id == 1
    assert store.snapshots.advance_consumer("c", 2, lambda found: found["nextSnapshot"] > 2)
    assert not store.snapshots.advance_consumer("c", 1, lambda found: found["nextSnapshot"] > 1)
    assert store.snapshots.consumers() == {"c": 2}
    forget_buckets([f"s3://{BUCKET}"])


@pytest.mark.slow("s3")  # its server is a JVM
@pytest.mark.parametrize("place", ["s3", "local"])
def test_a_consumer_does_not_go_back_by_a_race(request, tmp_path, place):
    file_io, root = _place(request, tmp_path, place)
    store = table(file_io, f"{root}/t")

    def advanced(consumers, following):
        return consumers.advance_consumer("c", following, lambda found: found["nextSnapshot"] > following)

    assert advanced(store.snapshots, 3)
    slow = FileStore.open(store.root, Rival(file_io, lambda: advanced(store.snapshots, 7)))
    assert not advanced(slow.snapshots, 5), "the other one was farther when this one was to record"
    assert store.snapshots.consumers() == {"c": 7}
    slow.storage.rival = lambda: advanced(store.snapshots, 8)
    assert advanced(slow.snapshots, 9)
    assert store.snapshots.consumers() == {"c": 9}


def test_branches_are_whole_with_their_schema_and_made_once(through, proxy, warehouse):
    store = table(through, f"{warehouse()}/t")
    committer(store).commit([message(store, [data_file(store, name="data-0.parquet")])])
    store.snapshots.create_tag("a", store.snapshots.get(1))
    proxy.rule = lost_creates("/branch/")
    create_branch(store, "dev", "a")
    assert proxy.done[DROP] >= 5, "claim, snapshot, tag, hints and schema"
    branch = FileStore.open(f"{store.root}$branch_dev", through)
    assert live_names(branch) == ["data-0.parquet"]
    with pytest.raises(InvalidArgument, match="exists"):
        create_branch(store, "dev", "a")


def test_a_branch_whose_making_is_cut_off_is_none_and_is_cleared_up(through, proxy, warehouse):
    from manifest.expire.branches import delete_branch

    store = table(through, f"{warehouse()}/t")
    proxy.rule = lambda request: EXPIRED if request.method in {"PUT", "DELETE", "POST"} and "branch-dev/schema" in request.path else None
    through.create_exclusive(f"{store.paths.for_branch('dev').metadata_root}/.claim", b"of somebody who was killed")
    assert store.snapshots.branch_names() == []
    with pytest.raises(InvalidArgument, match="Call delete_branch"):
        create_branch(store, "dev")
    delete_branch(store, "dev")
    proxy.rule = lambda _: None
    create_branch(store, "dev")
    assert store.snapshots.branch_names() == ["dev"]


def test_a_store_that_ignores_the_condition_is_refused_before_the_first_commit(s3, proxy, warehouse):
    proxy.rule = lambda request: UNCONDITIONAL if request.creates else None
    file_io, path = ObjectStoreFileIO(StorageOptions.of(s3.options(proxy.port))), f"{warehouse()}/t"
    with pytest.raises(UnsafeFileIO, match=r"ignores the condition.*nothing was committed"):
        table(file_io, path)
    assert file_io.list(path) == []
    assert not file_io.is_directory(path), "nor is the probe"
    proxy.rule = lambda _: None
    table(file_io, path)
    before = proxy.requests["PUT"]
    table(file_io, f"{path}-2")
    assert proxy.requests["PUT"] == before + 1, "probed once for a bucket"


def test_metadata_that_a_store_forgets_leaves_the_bytes_to_compare(through, s3, warehouse):
    bucket = open_bucket(object_place(f"s3://{BUCKET}"), through.options)
    key = warehouse().partition(BUCKET)[2].strip("/") + "/a"
    bucket.put(key, b"mine")
    assert bucket._is_ours(key, b"mine", "a name")
    assert not bucket._is_ours(key, b"other", "a name")
    bucket.create(f"{key}2", b"mine")
    assert not bucket._is_ours(f"{key}2", b"mine", "a name"), f"{WRITER} says whose it is"
    with pytest.raises(StorageError, match="its creator is unknown"):
        bucket._is_ours(f"{key}3", b"mine", "a name")


@pytest.mark.parametrize("fault", [BUSY, LOSE, TRUNCATE, DROP])
def test_what_passes_is_tried_again_and_told(through, proxy, warehouse, fault, caplog):
    path = f"{warehouse()}/a"
    proxy.rule = lambda request: fault if request.number <= 2 else None
    through.write(path, b"content" * 1000)
    assert through.read(path) == b"content" * 1000
    assert through.read_range(path, 7, 7) == b"content"
    assert through.size(path) == 7000
    assert [status.name for status in through.list(path.rpartition("/")[0])] == ["a"]
    assert proxy.done[fault] >= 4
    assert faults.RETRIED
    assert "retrying in" in caplog.text


def test_what_does_not_pass_is_an_error_after_a_bounded_number_of_tries(s3, proxy, warehouse):
    options = s3.options(proxy.port) | {"storage.max-retries": "3"}
    file_io, path = ObjectStoreFileIO(StorageOptions.of(options)), f"{warehouse()}/a"
    proxy.rule = lambda request: BUSY
    with pytest.raises(StorageError, match="503 SlowDown") as caught:
        file_io.read(path)
    assert caught.value.filename == path
    assert proxy.done[BUSY] == 4


@pytest.mark.parametrize(
    ("fault", "least", "most"),
    [
        (faults.Fault("503 SlowDown", 503, "SlowDown"), [1, 2, 4, 8, 16, 20, 20, 20], 30),
        (faults.Fault("429", 429, ""), [1, 2, 4, 8, 16, 20, 20, 20], 30),
        (faults.Fault("no answer", None, ""), [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.5, 2.5], 6),
    ],
    ids=["SlowDown", "429", "no answer"],
)
def test_one_waits_longer_each_time_by_a_random_part_and_a_second_at_least_for_a_store_that_throttles(monkeypatch, fault, least, most):
    monkeypatch.setattr(faults, "_FIRST_WAIT", 0.1)
    waits = [fault.wait_seconds(attempt) for attempt in range(8)]
    assert all(low <= seconds <= most for low, seconds in zip(least, waits, strict=True)), waits
    assert waits != [fault.wait_seconds(attempt) for attempt in range(8)]


def test_clocks_that_differ_by_days_decide_no_commit(monkeypatch):
    """Whose clock is behind commits after whose is ahead; ids alone tell the order, and the younger one finds all that is there."""
    store = table(*file_io_for(f"memory://{uuid.uuid4().hex}/t"))
    now, day = time.time_ns(), 86_400 * 10**9
    for number, clock in enumerate((now, now + 2 * day, now - 2 * day, now)):
        monkeypatch.setattr(time, "time_ns", lambda clock=clock: clock)
        file = data_file(store, name=f"data-{number}.parquet", seq=(10 * number, 10 * number + 9))
        assert committer(store).commit([message(store, [file])]).snapshot_id == number + 1
    assert live_names(store) == [f"data-{number}.parquet" for number in range(4)]
    # The times never go back: time travel searches by them.
    assert [store.snapshots.get(number).time_millis // 1000 for number in (1, 2, 3)] == [
        clock // 10**9 for clock in (now, now + 2 * day, now + 2 * day)
    ]


def test_credentials_are_told_from_permissions_and_from_missing_buckets(s3, through, proxy, warehouse):
    path = f"{warehouse()}/a"
    proxy.rule = lambda request: EXPIRED
    with pytest.raises(CredentialsRefused, match="ExpiredToken") as caught:
        through.read(path)
    assert proxy.done[EXPIRED] == 1, "no use to ask again"
    assert isinstance(caught.value, StorageDenied)
    wrong = s3.options() | {"s3.secret-key": "quite-another-secret"}
    for attempt in (lambda io: io.read(path), lambda io: io.list(path), lambda io: io.write(path, b"x"), lambda io: io.exists(path)):
        with pytest.raises(StorageDenied) as caught:
            attempt(ObjectStoreFileIO(StorageOptions.of(wrong)))
        assert "quite-another-secret" not in str(caught.value)
    io = ObjectStoreFileIO(StorageOptions.of(s3.options()))
    with pytest.raises(FileMissing, match="no such bucket"):
        io.read("s3://there-is-no-such-bucket/a")
    with pytest.raises(StorageError, match="no such bucket"):
        io.list("s3://there-is-no-such-bucket/a")


def test_a_bucket_is_opened_once_for_each_way_of_reaching_it(s3):
    place = object_place(f"s3://{BUCKET}/a")
    one = open_bucket(place, StorageOptions.of(s3.options()))
    assert open_bucket(object_place(f"s3://{BUCKET}/b"), StorageOptions.of(s3.options())) is one
    other = open_bucket(place, StorageOptions.of(s3.options() | {"s3.access-key": "another"}))
    assert other is not one
    assert other.fingerprint != one.fingerprint
    forget_buckets([place.root])
    assert open_bucket(place, StorageOptions.of(s3.options())) is not one
