"""Finding snapshots: hints that lie, time travel, tags, and files that are not what they should be."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifest.io.errors import SnapshotExpired, SnapshotNotFound
from manifest.io.wrapped import WrappedFileIO
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, InvalidArgument
from tests.manifest.commit_kit import committer, data_file, make_table, message, outcome, set_watermark


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return filled(tmp_path_factory.mktemp("snapshots") / "t")


@pytest.fixture
def store(tmp_path):
    return filled(tmp_path / "t")


def filled(path):
    store = make_table(path, options={"write-only": "true"})
    for number in range(5):
        committer(store).commit([message(store, [data_file(store, seq=(number, number))])])
        set_watermark(store, number + 1, 100 * number)
    return store


@pytest.mark.parametrize("hint", [None, b"", b"5", b"2", b"9", b"0", b"-3", b"abc", b"5\n", b"\xff\xfe", b"9" * 40])
def test_the_latest_snapshot_is_found_whatever_the_hint_says(shared, hint):
    if hint is None:
        shared.file_io.delete(shared.paths.latest_hint)
    else:
        shared.file_io.write(shared.paths.latest_hint, hint, overwrite=True)
    assert shared.snapshots.latest_id() == 5
    assert shared.snapshots.latest().id == 5


class Listings(WrappedFileIO):
    """Counts directories that are listed."""

    count = 0

    def list(self, path):
        self.count += 1
        return super().list(path)


@pytest.mark.parametrize(("hint", "listings"), [(b"5", 0), (b"3", 1), (b"9", 2)])  # a tag may be of a lost snapshot up to 9
def test_a_hint_that_is_right_spares_a_listing(store, hint, listings):
    store.file_io.write(store.paths.latest_hint, hint, overwrite=True)
    watched = FileStore.open(store.root, Listings(store.file_io))
    before = watched.storage.count
    assert watched.snapshots.latest().id == 5
    assert watched.storage.count - before == listings


@pytest.mark.parametrize("hint", [None, b"3", b"2", b"1", b"9", b"x"])
def test_the_earliest_snapshot_is_found_whatever_the_hint_says(store, hint):
    for gone in (1, 2):
        store.file_io.delete(store.paths.snapshot_file(gone))
    if hint is not None:
        store.file_io.write(store.paths.earliest_hint, hint, overwrite=True)
    assert store.snapshots.earliest_id() == 3


def test_a_new_table_has_no_snapshot(tmp_path):
    snapshots = make_table(tmp_path / "t").snapshots
    assert (snapshots.latest_id(), snapshots.earliest_id(), snapshots.latest(), snapshots.ids()) == (None, None, None, [])
    with pytest.raises(SnapshotNotFound, match="none"):
        snapshots.get(1)


def test_an_expired_snapshot_is_not_just_missing(store):
    store.file_io.delete(store.paths.snapshot_file(1))
    with pytest.raises(SnapshotExpired, match=r"snapshot\.time-retained"):
        store.snapshots.get(1)
    for never in (0, 6, -1):
        with pytest.raises(SnapshotNotFound) as caught:
            store.snapshots.get(never)
        assert not isinstance(caught.value, SnapshotExpired)


def test_reading_a_snapshot_that_expires_meanwhile_says_so(store):
    pinned = store.snapshots.get(1)
    store.file_io.delete(store.paths.snapshot_file(1))
    store.file_io.delete(store.paths.manifest(pinned.delta_manifest_list))
    with pytest.raises(SnapshotExpired, match="num-retained"):
        FileStore.open(store.root).live_entries(pinned)  # one that holds no manifest in memory


def test_a_missing_manifest_of_a_retained_snapshot_is_corruption(store):
    latest = store.snapshots.latest()
    store.file_io.delete(store.paths.manifest(latest.delta_manifest_list))
    with pytest.raises(CorruptFile, match=latest.delta_manifest_list):
        FileStore.open(store.root).live_entries(latest)  # the committer holds what it has written


def test_time_travel(store):
    snapshots = store.snapshots
    times = [snapshots.get(i).time_millis for i in range(1, 6)]
    snapshots.create_tag("v 1", snapshots.get(2))
    assert snapshots.travel().id == 5
    assert snapshots.travel(snapshot_id=3).id == 3
    assert snapshots.travel(tag="v 1").id == 2
    assert snapshots.travel(watermark=150).id == 3
    assert snapshots.travel(timestamp_millis=times[-1] + 10).id == 5
    assert snapshots.travel(timestamp_millis=times[2]).time_millis == times[2]
    assert [snapshots.travel(version=v).id for v in ("v 1", "4", "watermark-400")] == [2, 4, 5]
    for wish in ({"timestamp_millis": times[0] - 1}, {"tag": "no"}, {"watermark": 401}, {"version": "no"}, {"snapshot_id": 77}):
        with pytest.raises(SnapshotNotFound):
            snapshots.travel(**wish)
    with pytest.raises(InvalidArgument):
        snapshots.travel(snapshot_id=1, tag="v 1")


def test_tags_are_named_once_and_forgotten(store):
    store.snapshots.create_tag("a", store.snapshots.get(1))
    with pytest.raises(InvalidArgument, match="exists"):
        store.snapshots.create_tag("a", store.snapshots.get(2))
    assert {name: tag.id for name, tag in store.snapshots.tags().items()} == {"a": 1}
    assert store.snapshots.delete_tag("a")
    assert not store.snapshots.delete_tag("a")
    for name in ("", " ", "a/b"):
        with pytest.raises(InvalidArgument):
            store.snapshots.create_tag(name, store.snapshots.get(1))


def test_consumers_hold_the_smallest_id(store):
    for name, following in (("a", 4), ("b", 2)):
        store.file_io.write(f"{store.paths.consumers}/consumer-{name}", json.dumps({"nextSnapshot": following}).encode())
    assert store.snapshots.next_for_consumers() == 2
    store.file_io.write(f"{store.paths.consumers}/consumer-c", b"[]")
    with pytest.raises(CorruptFile, match="consumer-c"):
        store.snapshots.next_for_consumers()


@pytest.mark.parametrize(
    "change",
    [
        {"commitKind": "INVENTED"},
        {"id": 4},
        {"id": 0},
        {"baseManifestList": "../../etc/passwd"},
        {"deltaManifestList": ""},
        {"deltaManifestListSize": -1},
        {"timeMillis": "soon"},
        {"commitUser": None},
    ],
)
def test_a_snapshot_that_cannot_be_right_names_its_file(store, change):
    path = store.paths.snapshot_file(5)
    store.file_io.write(path, json.dumps(json.loads(store.file_io.read(path)) | change).encode(), overwrite=True)
    with pytest.raises(CorruptFile, match="snapshot-5"):
        store.snapshots.get(5)


def test_unknown_keys_are_ignored(store):
    text = json.loads(store.file_io.read(store.paths.snapshot_file(5))) | {"logOffsets": {}, "operation": "WRITE"}
    assert Snapshot.from_json(json.dumps(text), "x").operation == "WRITE"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_snapshots_are_read_or_refused_by_name(shared, data):
    raw = bytearray(shared.file_io.read(shared.paths.snapshot_file(3)))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(raw) - 1))
        raw[position] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    snapshot, error = outcome(lambda: Snapshot.from_json(cut, "snapshot-3"))
    if error is None:
        assert "/" not in snapshot.base_manifest_list + snapshot.delta_manifest_list
    else:
        assert error.path == "snapshot-3"
