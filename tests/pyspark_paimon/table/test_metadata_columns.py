"""Metadata columns: where each row is stored, read only if named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.io.errors import UnsupportedTable
from paimon_base.errors import InvalidArgument, UnknownColumn
from paimon_base.thresholds import Thresholds, use_thresholds
from pyspark_paimon import Table

Create = Callable[..., Table]
PATH, INDEX, PARTITION, BUCKET = "__paimon_file_path", "__paimon_row_index", "__paimon_partition", "__paimon_bucket"
ALL = [PATH, INDEX, PARTITION, BUCKET]
KINDS: dict[str, tuple[list[str], dict[str, str]]] = {
    "append": ([], {"bucket": "-1"}),
    "buckets": ([], {"bucket": "3", "bucket-key": "id"}),
    "append, deletion vectors": ([], {"bucket": "-1", "deletion-vectors.enabled": "true"}),
    "row ids": ([], {"bucket": "-1", "row-tracking.enabled": "true", "deletion-vectors.enabled": "true"}),
    "deletion vectors": (["id", "day"], {"bucket": "2", "deletion-vectors.enabled": "true"}),
    "compacted": (["id", "day"], {"bucket": "2"}),
    "orc": ([], {"bucket": "-1", "file.format": "orc"}),
    "avro": ([], {"bucket": "-1", "file.format": "avro"}),
}


def made(create: Create, kind: str) -> Table:
    keys, options = KINDS[kind]
    columns = "id BIGINT, day STRING, city STRING"
    table = create(columns, primary_keys=keys, partition_keys=["day"], options={**options, "file-index.bitmap.columns": "city"})
    for at in range(3):
        ids = range(at * 30, at * 30 + 40)
        table.write(pa.table({"id": ids, "day": ["ab"[one % 2] for one in ids], "city": [f"c{one % 7}" for one in ids]}))
    if "vectors" in kind or kind == "row ids":
        table.delete("id % 5 = 0")
    if kind in {"compacted", "deletion vectors"}:
        table.compact(full=True)
    if kind == "deletion vectors":
        table.delete("id % 5 = 1")
        table.compact()
    return table


def stored(table: Table) -> dict[str, list[dict[str, Any]]]:
    """The rows of every live data file, as its format's own reader has them."""
    found = {}
    for path in Path(table.path).rglob("data-*"):
        if path.suffix == ".parquet":
            found[str(path)] = pa.parquet.read_table(path).to_pylist()
        elif path.suffix == ".orc":
            from pyarrow import orc

            found[str(path)] = orc.read_table(path).to_pylist()
    return found


@pytest.mark.slow("tiny-deletion vectors")
@pytest.mark.local_files
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tiny", [False, True], ids=["usual", "tiny"])
def test_each_row_is_found_at_its_place(create: Create, kind: str, tiny: bool) -> None:
    with use_thresholds(Thresholds.tiny() if tiny else Thresholds()):
        table = made(create, kind)
        contents = stored(table)
        for wanted in (None, "city = 'c3'", "id > 50 AND day = 'a'"):
            expected = sorted(table.scan(wanted).to_arrow().to_pylist(), key=repr)
            rows = table.scan(wanted, ["city", *ALL, "id", "day"]).to_arrow()
            assert sorted([{name: row[name] for name in ("id", "day", "city")} for row in rows.to_pylist()], key=repr) == expected, wanted
            assert rows.num_rows > 5
            for row in rows.to_pylist():
                assert row[PARTITION] == {"day": row["day"]}
                assert f"/day={row['day']}/bucket-{row[BUCKET]}/" in row[PATH]
                if kind != "avro":
                    there = contents[row[PATH]][row[INDEX]]
                    assert (there["id"], there["city"]) == (row["id"], row["city"])
            places = list(zip(rows[PATH].to_pylist(), rows[INDEX].to_pylist(), strict=True))
            assert len(set(places)) == len(places)


@pytest.mark.parametrize("columns", [[PATH], [INDEX], [PARTITION], [BUCKET], [BUCKET, "id"], [PATH, INDEX]])
def test_any_of_them_is_read_alone(create: Create, columns: list[str]) -> None:
    table = made(create, "append, deletion vectors")
    whole = table.scan(columns=["id", *ALL]).to_arrow()
    found = table.scan(columns=columns)
    assert found.schema.names == columns
    assert found.to_arrow().to_pylist() == whole.select(columns).to_pylist()
    assert found.to_arrow().schema == found.schema == whole.select(columns).schema
    assert found.count() == whole.num_rows
    assert pa.Table.from_batches(found.to_batches()).num_rows == whole.num_rows
    scan = table.scan(columns=["id", *columns[:1]])
    assert sum(batch.num_rows for split in scan.plan().splits for batch in scan.read(split)) == whole.num_rows


def test_they_are_limited_and_sorted(create: Create) -> None:
    table = made(create, "append")
    rows = table.scan(columns=["id", INDEX], order_by="id DESC", limit=3).to_arrow().to_pylist()
    assert [row["id"] for row in rows] == [99, 98, 97]
    assert table.scan(columns=[BUCKET], limit=4).to_arrow().num_rows == 4
    assert table.scan(columns=["id", BUCKET]).projected([BUCKET]).to_arrow().num_rows == 120


def test_rows_with_ids_have_them(create: Create) -> None:
    table = made(create, "row ids")
    rows = table.scan("city = 'c2'", ["id", "_ROW_ID", "_SEQUENCE_NUMBER", INDEX]).to_arrow()
    tracking = Table.open(f"{table.path}$row_tracking").scan("city = 'c2'", ["id", "_ROW_ID", "_SEQUENCE_NUMBER"])
    assert sorted(rows.drop_columns([INDEX]).to_pylist(), key=repr) == sorted(tracking.to_arrow().to_pylist(), key=repr)
    with pytest.raises(UnknownColumn):
        made_keyed(create).scan(columns=["_ROW_ID"])


def made_keyed(create: Create) -> Table:
    table = create("id BIGINT, city STRING", name="keyed", options={"bucket": "1"})
    for at in range(2):
        table.write(pa.table({"id": [1, 2 + at], "city": ["x", "y"]}))
    return table


def test_merged_rows_have_a_bucket_and_no_file(create: Create) -> None:
    table = made_keyed(create)
    assert table.scan(columns=["id", BUCKET]).to_arrow()[BUCKET].to_pylist() == [0, 0, 0]
    for column in (PATH, INDEX):
        with pytest.raises(UnsupportedTable, match=f"rows of bucket 0 are merged from several files, so they have no {column}; compact"):
            table.scan(columns=["id", column]).to_arrow()
    table.compact(full=True)
    assert table.scan(columns=[INDEX]).to_arrow()[INDEX].to_pylist() == [0, 1, 2]
    assert table.scan("id = 2", columns=["city", INDEX]).to_arrow().to_pylist() == [{"city": "y", INDEX: 1}]
    table.write(pa.table({"id": [9], "city": ["z"]}))
    assert table.scan(columns=[INDEX], read_optimized=True).to_arrow().num_rows == 3


def test_they_are_not_read_unless_named(create: Create) -> None:
    table = made_keyed(create)
    assert table.scan().schema.names == ["id", "city"]
    for refused in (
        lambda: table.lookup([1], columns=[BUCKET]),
        lambda: table.scan(f"{BUCKET} = 0"),
        lambda: table.scan(columns=[PARTITION]),
        lambda: table.changelog(0, columns=[BUCKET]),
        lambda: Table.open(f"{table.path}$snapshots").scan(columns=[BUCKET]).to_arrow(),
        lambda: Table.open(f"{table.path}$audit_log").scan(columns=[BUCKET]).to_arrow(),
    ):
        with pytest.raises((UnknownColumn, InvalidArgument)):
            refused()


def test_a_column_of_the_table_hides_them(create: Create) -> None:
    table = create(f"id BIGINT, {BUCKET} STRING", options={"bucket": "1"})
    table.write(pa.table({"id": [1], BUCKET: ["mine"]}))
    assert table.scan(columns=[BUCKET]).to_arrow().to_pylist() == [{BUCKET: "mine"}]


def test_rows_of_another_branch_lie_there(create: Create) -> None:
    table = create("id BIGINT, day STRING", primary_keys=[], partition_keys=["day"], options={"bucket": "-1"})
    table.create_branch("other")
    Table.open(table.path, branch="other").write({"id": [1], "day": ["a"]})
    table.write({"id": [2], "day": ["b"]})
    table.alter_options({"scan.fallback-branch": "other"})
    rows = table.scan(columns=["id", INDEX, PARTITION]).to_arrow().to_pylist()
    assert sorted(row["id"] for row in rows) == [1, 2]
    assert [row[PARTITION]["day"] for row in sorted(rows, key=lambda row: row["id"])] == ["a", "b"]
