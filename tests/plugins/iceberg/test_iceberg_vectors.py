"""Deletion vectors in format version 3 of Iceberg: PyIceberg and DuckDB skip the rows that they mark."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from manifest.store import FileStore
from pyspark_paimon import Table
from tests.iceberg_files import check_files, latest_metadata, manifests, records, vectors
from tests.iceberg_reader import DUCKDB, IcebergReader, Unavailable

VECTORS = {
    "metadata.iceberg.storage": "table-location",
    "metadata.iceberg.format-version": "3",
    "deletion-vectors.enabled": "true",
    "deletion-vectors.bitmap64": "true",
}


def rows(first: int, count: int, n: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "n": pa.array([n] * count, pa.int32())})


@pytest.fixture(params=[False, True], ids=["append", "keyed"])
def table(create, request) -> Table:
    return create("id BIGINT NOT NULL, n INT", primary_keys=["id"] if request.param else (), options=VECTORS)


@pytest.fixture(scope="module")
def duckdb() -> Iterator[IcebergReader]:
    try:
        reader = IcebergReader(DUCKDB)
    except Unavailable as error:
        pytest.skip(f"DuckDB {error}")
    yield reader
    reader.stop()


def change(table: Table) -> Iterator[None]:
    """Commits of every kind that set or drop vectors."""
    table.write(rows(0, 10))
    yield
    table.write(rows(10, 10))
    table.delete("id < 3")
    yield
    table.delete("id = 15 OR id = 4")
    yield
    table.update("id = 18", {"n": "n + 1"})
    yield
    table.write(rows(30, 3))
    yield
    table.compact(full=True)
    yield
    table.delete("id = 7")
    yield
    table.write(rows(50, 2), mode="overwrite")
    yield


@pytest.mark.local_files
def test_marked_rows_are_skipped(table, iceberg) -> None:
    for _ in change(table):
        check_files(table)
        iceberg.check(table)


@pytest.mark.long
@pytest.mark.local_files
def test_duckdb_skips_marked_rows(table, duckdb) -> None:
    for _ in change(table):
        duckdb.check(table)


@pytest.mark.long
@pytest.mark.local_files
def test_duckdb_reads_version_two(create, duckdb) -> None:
    options = {"metadata.iceberg.storage": "table-location"}
    table = create("id BIGINT NOT NULL, n INT", primary_keys=(), options=options)
    for _ in change(table):
        duckdb.check(table)
    duckdb.check(table, filter="id >= 50")


def test_a_vector_is_copied_once(create) -> None:
    table = create("id BIGINT NOT NULL, n INT", primary_keys=(), partition_keys=["n"], options=VECTORS)
    for at in range(3):
        table.write(rows(10 * at, 5, at))
    table.delete("id = 0")
    before = vectors(table)
    assert [entry["record_count"] for entry in before.values()] == [1]
    table.delete("id = 10")
    after = vectors(table)
    assert len(after) == 2
    assert {**after, **before} == after, "the vector of another bucket keeps its Puffin file"
    table.write(rows(90, 5))
    assert vectors(table) == after
    kept = [one["manifest_path"] for one in manifests(table) if one["content"] == 1]
    table.write(rows(95, 5))
    assert [one["manifest_path"] for one in manifests(table) if one["content"] == 1] == kept
    table.compact(full=True)
    check_files(table)
    assert set(vectors(table)) <= set(after)


def test_puffin_files_expire_with_the_snapshots_that_need_them(create) -> None:
    options = {**VECTORS, "snapshot.num-retained.min": "2", "snapshot.num-retained.max": "2"}
    table = create("id BIGINT NOT NULL, n INT", primary_keys=(), options=options)
    table.write(rows(0, 30))
    for at in range(6):
        table.delete(f"id = {at}")
    store = FileStore.open(table.path)
    held = {found.name for found in store.file_io.list(f"{store.root}/metadata") if found.name.endswith(".puffin")}
    needed = {
        entry["data_file"]["file_path"].rpartition("/")[2]
        for snapshot in latest_metadata(table)["snapshots"]
        for manifest in records(table, snapshot["manifest-list"])
        if manifest["content"] == 1
        for entry in records(table, manifest["manifest_path"])
    }
    assert held == needed
    assert len(held) == 2


def test_a_purge_deletes_older_puffin_files(create) -> None:
    table = create("id BIGINT NOT NULL, n INT", primary_keys=(), options=VECTORS)
    table.write(rows(0, 10, 1))
    table.delete("id = 1")
    table.write(rows(20, 10, 2))
    table.delete("id = 21")
    assert table.purge("id = 21").gone
    check_files(table)
    store = FileStore.open(table.path)
    held = {found.name for found in store.file_io.list(f"{store.root}/metadata") if found.name.endswith(".puffin")}
    assert held == {entry["file_path"].rpartition("/")[2] for entry in vectors(table).values()}


@pytest.mark.slow
@pytest.mark.local_files
def test_vectors_of_32_bits_are_widened(create, iceberg) -> None:
    table = create("id BIGINT NOT NULL, n INT", primary_keys=(), options={"deletion-vectors.enabled": "true"})
    table.write(rows(0, 140_000))
    table.delete("id % 3 = 0 AND id < 100000")
    table.alter_options({**VECTORS, "deletion-vectors.enabled": "true"})
    table.write(rows(400_000, 2))
    check_files(table)
    iceberg.check(table)
    table.delete("id = 400001")
    iceberg.check(table)


@pytest.mark.local_files
def test_a_table_moves_to_version_three(create, iceberg) -> None:
    table = create("id BIGINT NOT NULL, n INT", primary_keys=(), options={"metadata.iceberg.storage": "table-location"})
    table.write(rows(0, 10))
    before = latest_metadata(table)
    table.alter_options({"metadata.iceberg.format-version": "3"})
    table.write(rows(10, 10))
    after = latest_metadata(table)
    assert (before["format-version"], after["format-version"]) == (2, 3)
    assert before["table-uuid"] == after["table-uuid"]
    assert after["next-row-id"] == 20
    iceberg.check(table)
    table.write(rows(20, 5))
    assert latest_metadata(table)["next-row-id"] == 25
    assert [one["first_row_id"] for one in manifests(table)] == [0, 20]
    iceberg.check(table)
