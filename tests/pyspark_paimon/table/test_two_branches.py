"""Two branches read as one table: of each partition the rows of the one that comes first, the other's where it has none."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table, UnsupportedTable

DDL = "day STRING, id INT, n INT"


def rows(*triples):
    return pa.table(
        {name: [row[at] for row in triples] for at, name in enumerate(("day", "id", "n"))},
        pa.schema([("day", pa.string()), ("id", pa.int32()), ("n", pa.int32())]),
    )


def with_option(path, key, value, **changed):
    """The table as another engine leaves it that has set an option and ``changed`` members of the schema."""
    newest = max(Path(path, "schema").iterdir(), key=lambda file: int(file.name.rpartition("-")[2]))
    schema = json.loads(newest.read_text())
    number = schema["id"] + 1
    known = ("version", "id", "fields", "highestFieldId", "partitionKeys", "primaryKeys", "options", "comment", "timeMillis")
    plain = {name: schema[name] for name in known if name in schema} | {
        "id": number,
        "options": {**schema["options"], key: value},
        **changed,
    }
    Path(path, "schema", f"schema-{number}").write_text(json.dumps(plain))


@pytest.fixture(params=[(), ("day", "id")], ids=["append", "keys"])
def table(request, tmp_path):
    """The table has days 1 and 2, its branch 2 and 3; of day 2 other rows."""
    options = {"bucket": "1"} if request.param else {"file-index.bitmap.columns": "n"}
    table = Table.create(tmp_path / "t", DDL, primary_keys=request.param, partition_keys=["day"], options=options)
    table.create_branch("b")
    branch = Table.open(tmp_path / "t", branch="b")
    table.write(rows(("1", 1, 10), ("2", 2, 20)))
    branch.write(rows(("2", 2, 200), ("2", 3, 300), ("3", 4, 400)))
    branch.write(rows(("3", 5, 500), ("3", 4, 401)))
    return table


def read(table, *arguments, **options):
    found = table.scan(*arguments, **options).to_arrow()
    return sorted((row["day"], row["id"], row["n"]) for row in found.to_pylist())


def test_partitions_of_the_branch_fill_in(table):
    with_option(table.path, "scan.fallback-branch", "b")
    found = Table.open(table.path)
    of_three = [("3", 4, 401), ("3", 5, 500)] if found.primary_keys else [("3", 4, 400), ("3", 4, 401), ("3", 5, 500)]
    assert read(found) == [("1", 1, 10), ("2", 2, 20), *of_three]
    assert found.count() == 2 + len(of_three) == found.scan().aggregate({"rows": "count"})["rows"][0].as_py()
    assert read(found, "n >= 300") == [row for row in of_three if row[2] >= 300]
    assert read(found, "day = '2'") == [("2", 2, 20)], "what the table has of a partition hides the branch's"
    assert found.scan("day = '2' AND n > 100").count() == 0
    assert [row["n"] for row in found.scan(order_by="n DESC", limit=1).to_arrow().to_pylist()] == [500]
    assert found.scan().aggregate({"n": ["max", "sum"]}).to_pylist() == [{"n_max": 500, "n_sum": 30 + sum(row[2] for row in of_three)}]
    if found.primary_keys:
        assert [row["n"] for row in found.lookup([{"day": "3", "id": 5}, {"day": "2", "id": 2}]).to_pylist()] == [500, 20]
    assert len(found.scan(limit=3).to_arrow()) == 3
    splits = found.scan().plan().splits
    assert {split.branch for split in splits} == {None, "b"}
    ids = [row["id"] for split in splits for batch in found.scan().read(split.to_json()) for row in batch.to_pylist()]
    assert sorted(ids) == sorted(row[1] for row in read(found))


@pytest.mark.parametrize("order", ["n", "n DESC", "day DESC, n"])
def test_the_first_rows_are_those_of_both_branches(table, order):
    wider = rows(*(("4", at, 37 * at % 100) for at in range(100)))
    Table.open(table.path, branch="b").write(wider)
    with_option(table.path, "scan.fallback-branch", "b")
    found = Table.open(table.path)
    everything = found.scan().to_arrow().to_pylist()
    key = {"n": lambda row: row["n"], "n DESC": lambda row: -row["n"], "day DESC, n": lambda row: (-int(row["day"]), row["n"])}[order]
    expected = [row["n"] for row in sorted(everything, key=key)]
    for limit in (1, 2, 7, len(everything)):
        assert [row["n"] for row in found.scan(order_by=order, limit=limit).to_arrow().to_pylist()] == expected[:limit]
    some = [row["n"] for row in sorted(everything, key=key) if 15 < row["n"] < 350]
    assert [row["n"] for row in found.scan("n > 15 AND n < 350", order_by=order, limit=5).to_arrow().to_pylist()] == some[:5]


def test_partitions_of_the_branch_come_first(table):
    with_option(table.path, "scan.primary-branch", "b")
    found = Table.open(table.path)
    assert [row for row in read(found) if row[0] != "3"] == [("1", 1, 10), ("2", 2, 200), ("2", 3, 300)]


def test_the_branch_alone_is_itself_and_an_older_snapshot_sees_what_was_there(table):
    first = table.scan().snapshot_id
    table.write(rows(("3", 9, 9)))
    with_option(table.path, "scan.fallback-branch", "b")
    found = Table.open(table.path)
    assert [row for row in read(found) if row[0] == "3"] == [("3", 9, 9)]
    assert {row[0] for row in read(found, snapshot=first)} >= {"1", "2"}
    assert ("2", 3, 300) in read(Table.open(table.path, branch="b"))


def test_a_branch_that_is_not_there_is_told_and_one_with_other_columns_refused(table, caplog):
    with_option(table.path, "scan.fallback-branch", "none")
    assert len(read(Table.open(table.path))) == 2
    assert "'none'" in caplog.text
    Table.open(table.path, branch="b").add_column("more", "INT")
    with_option(table.path, "scan.fallback-branch", "b")
    with pytest.raises(UnsupportedTable, match="other columns"):
        read(Table.open(table.path))


def test_rows_of_both_are_counted_where_one_was_analyzed_or_is_empty(table):
    table.analyze()
    with_option(table.path, "scan.fallback-branch", "b")
    assert Table.open(table.path).count() == len(read(Table.open(table.path))) > 2


def test_a_table_without_a_snapshot_has_what_the_branch_has(tmp_path):
    table = Table.create(tmp_path / "t", DDL, partition_keys=["day"])
    table.create_branch("b")
    Table.open(tmp_path / "t", branch="b").write(rows(("3", 4, 400)))
    with_option(table.path, "scan.fallback-branch", "b")
    found = Table.open(tmp_path / "t")
    assert read(found) == [("3", 4, 400)]
    assert found.count() == 1


@pytest.mark.slow("append-scan.fallback-branch")
@pytest.mark.parametrize("option", ["scan.fallback-branch", "scan.primary-branch"])
def test_rows_are_written_and_changed_in_the_branch_that_was_opened(table, option):
    of_branch = read(Table.open(table.path, branch="b"))
    found = table.alter_options({option: "b"})
    found.write(rows(("1", 9, 90), ("4", 9, 94)))
    alone = found.scan(options={option: ""})
    assert sorted((row["day"], row["id"], row["n"]) for row in alone.to_arrow().to_pylist()) == [
        ("1", 1, 10),
        ("1", 9, 90),
        ("2", 2, 20),
        ("4", 9, 94),
    ]
    assert found.delete("n >= 90", dry_run=True).rows == 2
    assert found.delete("n = 94 OR n = 400 OR n = 401").rows == 1
    assert found.update("n >= 20", {"n": 21}).rows == 2
    source = rows(("2", 2, 22), ("3", 4, 5))
    found.merge(source, on=["day", "id"]).when_matched_update_all().execute()
    found.analyze()
    kept = [row for row in read(found) if row[0] == "3"]
    assert kept == [row for row in of_branch if row[0] == "3"], "the partition of the branch is as it was, and still read"
    assert read(Table.open(table.path, branch="b")) == of_branch
    own = found.scan(options={option: ""}).to_arrow().to_pylist()
    assert sorted((row["day"], row["id"], row["n"]) for row in own) == [("1", 1, 10), ("1", 9, 21), ("2", 2, 22)]
    found.compact(full=True)
    found.write(rows(("3", 1, 1)))
    by_table = option == "scan.fallback-branch"
    assert [row for row in read(found) if row[0] == "3"] == ([("3", 1, 1)] if by_table else kept)
    assert found.fsck(depth="deep").problems == ()


def test_schemas_of_the_same_id_are_those_of_their_branch(tmp_path):
    """The table has no key, its branch has one; both are at schema 1."""
    path = tmp_path / "t"
    table = Table.create(path, DDL, partition_keys=["day"])
    table.create_branch("b")
    with_option(path / "branch/branch-b", "bucket", "2", primaryKeys=["day", "id"])
    with_option(path, "scan.fallback-branch", "b")
    Table.open(path, branch="b").write(rows(("2", 2, 200), ("2", 2, 300), ("3", 4, 400)))
    Table.open(path).write(rows(("1", 1, 10), ("1", 1, 10)))
    for _ in range(2):
        found = Table.open(path)
        assert read(found) == [("1", 1, 10), ("1", 1, 10), ("2", 2, 300), ("3", 4, 400)]
        assert read(found, "n >= 300") == [("2", 2, 300), ("3", 4, 400)]
        assert read(Table.open(path, branch="b")) == [("2", 2, 300), ("3", 4, 400)]
