"""Readers of Iceberg see the rows of a table after every kind of commit: PyIceberg reads them, and each file is looked for."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from manifest.store import FileStore
from pyspark_paimon import Table
from tests.iceberg_files import check_files, latest_metadata, manifests, records, versions

ICEBERG = {"metadata.iceberg.storage": "table-location"}
EVERY_TYPE = (
    "id BIGINT NOT NULL, flag BOOLEAN, tiny TINYINT, small SMALLINT, n INT, f FLOAT, d DOUBLE, amount DECIMAL(10, 2), wide DECIMAL(30, 5), "
    "name STRING, code CHAR(3), raw BYTES, day DATE, at TIMESTAMP(6), milli TIMESTAMP(3), zoned TIMESTAMP_LTZ(6), "
    "tags ARRAY<STRING>, m MAP<STRING, INT>, nested ROW<a INT, b ROW<c STRING, list ARRAY<BIGINT>>>, deep ARRAY<ROW<x INT>>"
)


def every_type(first: int, count: int) -> list[dict[str, object]]:
    moment = dt.datetime(2024, 1, 31, 10, 20, 30, 123456)  # noqa: DTZ001
    return [
        {
            "id": at,
            "flag": at % 2 == 0,
            "tiny": at % 100,
            "small": -at,
            "n": at,
            "f": at / 4,
            "d": None if at % 3 == 0 else -at / 8,
            "amount": Decimal(at) / 4,
            "wide": Decimal(at) * 10**20,
            "name": f"name {at}" * 4,
            "code": "abc",
            "raw": bytes([at % 256]),
            "day": dt.date(2024, 1, 1 + at % 28),
            "at": moment,
            "milli": moment.replace(microsecond=5000),
            "zoned": moment.replace(tzinfo=dt.UTC),
            "tags": ["x", None, str(at)],
            "m": [("k", at)],
            "nested": {"a": at, "b": {"c": "deep", "list": [at, None]}},
            "deep": [{"x": at}, {"x": None}],
        }
        for at in range(first, first + count)
    ]


def check(iceberg, table: Table, **request) -> None:
    check_files(table)
    iceberg.check(table, **request)


def rows(first: int, count: int, city: str | None = "Oslo") -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "city": pa.array([city] * count, pa.string()),
            "n": pa.array([first] * count, pa.int32()),
        }
    )


@pytest.fixture
def append(create):
    return create("id BIGINT NOT NULL, city STRING, n INT", primary_keys=(), partition_keys=["city"], options=ICEBERG)


@pytest.mark.local_files
def test_all_types_read_equal(create, iceberg) -> None:
    table = create(EVERY_TYPE, primary_keys=(), options=ICEBERG)
    table.write(pa.Table.from_pylist(every_type(0, 7), table.schema))
    check(iceberg, table)
    table.write(pa.Table.from_pylist([{"id": 100, "deep": []}], table.schema))  # PyIceberg takes a null list of rows for an empty one
    check(iceberg, table)
    for filter_ in (
        "id > 3",
        "amount >= 1.25",
        "wide < 3",
        "name = 'none'",
        "d is null",
        "f <= 0.5",
        "tiny = 2",
        "flag = true",
        "code = 'abc'",
    ):
        check(iceberg, table, filter=filter_)
    for filter_ in (
        "milli <= '2024-01-31T10:20:30.005'",
        "at = '2024-01-31T10:20:30.123456'",
        "zoned >= '2024-01-31T10:20:30.123456+00:00'",
    ):
        assert iceberg.read(table.path, filter=filter_).num_rows == 7
    assert iceberg.read(table.path, filter="day = '2024-01-03'")["id"].to_pylist() == [2]


@pytest.mark.local_files
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("STRING", ["a", None, "ø/=%", ""]),
        ("INT", [1, -1, None]),
        ("SMALLINT", [1, -1, None]),
        ("BIGINT", [2**40, None]),
        ("BOOLEAN", [True, False, None]),
        ("DATE", [dt.date(2024, 1, 31), dt.date(1969, 1, 1)]),
        ("TIMESTAMP(3)", [dt.datetime(2024, 1, 31, 10, 0, 0, 5000), None]),  # noqa: DTZ001
        ("TIMESTAMP(6)", [dt.datetime(2024, 1, 31, 10, 0, 0, 5), dt.datetime(1969, 1, 1)]),  # noqa: DTZ001
        ("DOUBLE", [1.5, -0.5, float("nan")]),
    ],
)
def test_partitions_of_every_type(create, iceberg, kind, values) -> None:
    table = create(f"id BIGINT, p {kind}", primary_keys=(), partition_keys=["p"], options=ICEBERG)
    for _ in range(2):
        table.write(pa.Table.from_pylist([{"id": at, "p": value} for at, value in enumerate(values)], table.schema))
    check(iceberg, table)
    table.delete("id = 0")
    check(iceberg, table)
    table.compact(full=True)
    check(iceberg, table)


@pytest.mark.local_files
def test_every_commit_of_an_append_table(append, iceberg) -> None:
    table = append
    table.write(rows(0, 10))
    table.write(rows(10, 10, "Lima"))
    check(iceberg, table)
    table.delete("id < 5")
    check(iceberg, table)
    table.update("id > 15", {"n": "n + 1"})
    check(iceberg, table, filter="n > 5")
    first = table.snapshots().column("snapshot_id").to_pylist()[-1]
    table.compact(full=True)
    check(iceberg, table)
    table.write(rows(30, 3, "Rome"), mode="overwrite")
    check(iceberg, table)
    table.write(rows(40, 3, None))
    table.drop_partitions([{"city": "Rome"}])
    check(iceberg, table)
    table.restore(snapshot=first)
    check(iceberg, table)
    table.delete("TRUE")
    check(iceberg, table)
    table.write(rows(50, 2))
    table.expire_snapshots(retain_min=1, retain_max=1)
    check(iceberg, table)
    table.write(rows(60, 2))
    check(iceberg, table)


@pytest.mark.local_files
def test_changed_schemas_read_equal(append, iceberg) -> None:
    table = append
    table.write(rows(0, 4))
    table.add_column("extra", "ROW<a INT>")
    table.change_type("n", "BIGINT")
    table.rename_column("n", "amount")
    table.write(pa.Table.from_pylist([{"id": 9, "city": "Oslo", "amount": 2**40, "extra": {"a": 1}}], table.schema))
    check(iceberg, table)
    check(iceberg, table, filter="amount >= 0")
    table.drop_column("amount")
    table.write(pa.Table.from_pylist([{"id": 10, "city": "Lima"}], table.schema))
    check(iceberg, table)
    assert [schema["schema-id"] for schema in latest_metadata(table)["schemas"]] == [0, 1, 2, 3, 4]


@pytest.mark.local_files
def test_key_tables_show_compacted_rows(create, iceberg) -> None:
    table = create("id BIGINT, city STRING", options=ICEBERG)
    table.write(pa.table({"id": [1, 2, 3], "city": ["a", "b", "c"]}))
    table.compact(full=True)
    check(iceberg, table)
    table.write(pa.table({"id": [2], "city": ["new"]}))
    check_files(table)
    assert iceberg.read(table.path).num_rows == 3
    assert "new" not in iceberg.read(table.path)["city"].to_pylist()
    table.delete("id = 1")
    table.compact(full=True)
    check(iceberg, table)


@pytest.mark.local_files
def test_snapshots_and_tags_are_for_time_travel(append, iceberg) -> None:
    table = append
    for at in range(3):
        table.write(rows(at, 1))
        table.create_tag(f"t{at}")
    table.write(rows(9, 1))
    metadata = latest_metadata(table)
    assert {name: ref["snapshot-id"] for name, ref in metadata["refs"].items()} == {"t0": 1, "t1": 2, "t2": 3}
    assert [snapshot["snapshot-id"] for snapshot in metadata["snapshots"]] == [1, 2, 3, 4]
    assert [iceberg.read(table.path, snapshot=at).num_rows for at in (1, 2, 3, 4)] == [1, 2, 3, 4]
    operations = [snapshot["summary"]["operation"] for snapshot in metadata["snapshots"]]
    assert operations == ["append"] * 4
    table.compact(full=True)
    assert latest_metadata(table)["snapshots"][-1]["summary"]["operation"] == "replace"


def test_old_manifests_are_kept_and_small_ones_merged(create) -> None:
    options = {**ICEBERG, "metadata.iceberg.compaction.min.file-num": "4", "metadata.iceberg.compaction.max.file-num": "4"}
    table = create(primary_keys=(), options=options)
    seen = []
    for at in range(9):
        table.write(rows(at, 1))
        check_files(table)
        seen.append([one["manifest_path"] for one in manifests(table)])
    assert [len(paths) for paths in seen] == [1, 2, 3, 1, 2, 3, 1, 2, 3]
    assert seen[1][:1] == seen[0]
    assert seen[5][:2] == seen[4]


def test_only_manifests_with_a_deleted_file_are_rewritten(append) -> None:
    for at, city in enumerate(("Oslo", "Lima", "Rome")):
        append.write(rows(at * 10, 5, city))
    before = [one["manifest_path"] for one in manifests(append)]
    append.delete("id = 10")
    after = manifests(append)
    check_files(append)
    assert [path in {one["manifest_path"] for one in after} for path in before] == [True, False, True]
    assert sum(one["deleted_files_count"] for one in after) == 1


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, [5]),
        ({"metadata.iceberg.previous-versions-max": "2"}, [3, 4, 5]),
        ({"metadata.iceberg.delete-after-commit.enabled": "false"}, [1, 2, 3, 4, 5]),
    ],
)
def test_options_keep_versions(create, options, kept) -> None:
    table = create(primary_keys=(), options={**ICEBERG, **options})
    for at in range(5):
        table.write(rows(at, 1))
    assert versions(table) == kept


def test_expired_snapshots_leave_the_metadata_with_their_files(create) -> None:
    table = create(primary_keys=(), options={**ICEBERG, "snapshot.num-retained.min": "2", "snapshot.num-retained.max": "2"})
    for at in range(6):
        table.write(rows(at, 1))
        table.delete(f"id = {at - 1}")
    metadata = latest_metadata(table)
    assert len(metadata["snapshots"]) == 2
    check_files(table)
    store = FileStore.open(table.path)
    names = {found.name for found in store.file_io.list(f"{store.root}/metadata")}
    needed = {snapshot["manifest-list"] for snapshot in metadata["snapshots"]}
    for path in list(needed):
        needed |= {one["manifest_path"] for one in records(table, path)}
    assert names == {path.rpartition("/")[2] for path in needed} | {
        "version-hint.text",
        f"v{metadata['current-snapshot-id']}.metadata.json",
    }


@pytest.mark.local_files
def test_legacy_names_and_codecs_read_equal(create, iceberg) -> None:
    for at, codec in enumerate(("null", "deflate", "snappy", "zstd")):
        table = create(
            name=f"t{at}",
            primary_keys=(),
            options={**ICEBERG, "metadata.iceberg.manifest-legacy-version": "true", "metadata.iceberg.manifest-compression": codec},
        )
        table.write(rows(0, 3))
        table.write(rows(3, 3))
        assert "added_data_files_count" in manifests(table)[0]
        iceberg.check(table)


@pytest.mark.local_files
def test_a_hadoop_catalog_is_a_directory_beside_the_databases(tmp_path, iceberg) -> None:
    table = Table.create(tmp_path / "sales.db" / "t", "id BIGINT, n INT", options={"metadata.iceberg.storage": "hadoop-catalog"})
    table.write(pa.table({"id": [1, 2], "n": pa.array([3, 4], pa.int32())}))
    found = iceberg.read(str(tmp_path / "iceberg" / "sales" / "t"))
    assert found.to_pylist() == table.scan().to_arrow().to_pylist()
    assert not (tmp_path / "sales.db" / "t" / "metadata").exists()
