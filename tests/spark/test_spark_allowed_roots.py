"""The directories that a server allows, seen from a client; what each method of a store refuses is in tests/manifest."""

from __future__ import annotations

import pyarrow as pa
import pytest

from manifest.io.errors import PathNotAllowed, PathNotOwned
from manifest.storage.allowed_roots import ROOTS
from manifest.store import FileStore
from pyspark_paimon import Catalog, Table
from tests.build import keyed

pytestmark = pytest.mark.timeout(600)  # the first test waits for the cluster and its client


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("way", ["open", "create", "read", "write", "dots", "link", "branch", "sql"])
def test_the_driver_refuses_a_table_elsewhere_by_its_path_alone(told, cluster, way):
    kind, text = told["outside"][way]
    assert kind == "PathNotAllowed", text
    assert cluster.settings[ROOTS] not in text.replace(told["place inside"], "").replace(told["place outside"], "")


@pytest.mark.spark
def test_a_task_refuses_a_file_elsewhere_that_the_driver_did_not_touch(told):
    kind, text = told["task"]
    assert kind == "PathNotAllowed", text
    assert "half/bucket-0" in text


@pytest.mark.spark
def test_no_setting_and_no_option_of_a_client_changes_what_is_allowed(told):
    assert told["modifiable"] == []
    assert told["after settings"][0] in {"PathNotAllowed", "UnsupportedOption"}
    assert told["task"][0] == "PathNotAllowed"  # asked for after the settings


@pytest.mark.spark
def test_nothing_was_made_outside(told):
    assert told["left outside"] == ["bucket-0", "t"]


@pytest.mark.spark
def test_messages_of_the_server_show_no_secrets_and_no_pickle_is_read(told):
    assert told["secret"][0] == "UnsupportedOption"
    assert told["secret option"][0] == "UnsupportedOption"
    assert told["pickle"][0] == "InvalidArgument"
    for case in ("secret", "secret option"):
        assert "hunter2" not in told[case][1]


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A table in the allowed directory and one beside it, made before the directory was named."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for place in (inside, outside):
        table = keyed(place / "t", "id BIGINT, v STRING")
        table.write(pa.table({"id": [1], "v": ["a"]}))
        table.create_branch("dev")
    monkeypatch.setenv(ROOTS, str(inside))
    return inside, outside


def test_in_process_a_table_inside_works_as_ever(places):
    table = Table.open(places[0] / "t")
    table.write(pa.table({"id": [2], "v": ["b"]}))
    table.compact(full=True)
    table.delete("id = 1")
    assert table.scan().to_arrow().to_pylist() == [{"id": 2, "v": "b"}]
    assert Table.open(places[0] / "t", branch="dev").scan().count() >= 0
    assert table.remove_orphan_files() == []


def test_in_process_a_table_outside_is_not_reached(places):
    _, outside = places
    for work in (
        lambda: Table.open(outside / "t"),
        lambda: Table.open(outside / "t", branch="dev"),
        lambda: Table.open(f"file://{outside}/t"),
        lambda: Table.create(outside / "new", "id INT", primary_keys=["id"]),
        lambda: Catalog(outside).list_databases(),
        lambda: FileStore.open(outside / "t"),
    ):
        with pytest.raises(PathNotAllowed, match="outside"):
            work()
    assert not (outside / "new").exists()


def test_data_that_a_manifest_places_elsewhere_is_not_read_and_not_removed(places):
    inside, outside = places
    moved = outside / "bucket-0"
    (inside / "t" / "bucket-0").rename(moved)
    (inside / "t" / "bucket-0").symlink_to(moved)
    files = sorted(path.name for path in moved.iterdir())
    table = Table.open(inside / "t")
    for work in (
        lambda: table.scan().to_arrow(),
        lambda: table.delete("id = 1"),
        table.remove_orphan_files,
        lambda: table.write(pa.table({"id": [9], "v": ["z"]})),
    ):
        with pytest.raises((PathNotAllowed, PathNotOwned)):  # the table's own rule refuses changes behind links everywhere
            work()
    assert sorted(path.name for path in moved.iterdir()) == files
