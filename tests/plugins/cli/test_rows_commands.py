"""Rows from files and into files: ``create``, ``write``, ``merge``, ``scan``."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pyspark_paimon import Table
from pyspark_paimon.plugins.cli.app import app
from tests.build import keyed

DDL = "(id BIGINT, city STRING, price DECIMAL(10, 2), day DATE, seen TIMESTAMP(3), ok BOOLEAN, score DOUBLE, raw BYTES, PRIMARY KEY (id))"
ROWS = [
    {
        "id": 1,
        "city": "",
        "price": Decimal("1.50"),
        "day": date(2024, 1, 31),
        "seen": datetime(2024, 1, 31, 10, 0, 0, 5000),  # noqa: DTZ001  # a wall clock
        "ok": True,
        "score": 0.5,
        "raw": b"\x01a",
    },
    {"id": 2, "city": 'a "b",\nc', "price": None, "day": None, "seen": None, "ok": None, "score": None, "raw": None},
    {"id": 3, "city": None, "price": Decimal("-2.00"), "day": date(1969, 1, 1), "seen": None, "ok": False, "score": -1e300, "raw": b""},
]


def told(*arguments: object, code: int = 0, given: str | bytes | None = None) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], input=given)
    assert done.exit_code == code, done.output or done.exception
    return done.stdout if code == 0 else done.output


@pytest.fixture
def table(tmp_path) -> Table:
    made = json.loads(told("create", tmp_path / "t", DDL, "-O", "bucket=1", "--comment", "places", "--json"))
    assert (made["primary_keys"], made["options"]["bucket"], made["created"]) == (["id"], "1", True)
    opened = Table.open(tmp_path / "t")
    opened.write(ROWS)
    return opened


def rows_of(path) -> list[dict[str, object]]:
    return sorted(Table.open(path).scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def test_a_table_is_created_once(table, tmp_path) -> None:
    assert "TableExists" in told("create", table.path, DDL, code=1)
    assert "exists already" in told("create", table.path, DDL, "--if-not-exists")
    assert "the DDL is empty" in told("create", tmp_path / "u", "-", code=1, given="  ")
    assert "id BIGINT NOT NULL" in told("create", tmp_path / "u", "-", given=DDL)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "json"])
def test_what_is_written_to_a_file_is_read_from_it(table, tmp_path, form) -> None:
    out = tmp_path / f"rows.{form}"
    assert "3 rows of snapshot 1" in told("scan", table.path, "-o", out)
    assert not list(tmp_path.glob("*.part*"))
    if form == "json":
        assert len(json.loads(out.read_text())) == 3
        return
    copy = Table.create(tmp_path / "copy", DDL)
    assert "3 rows in 1 file" in told("write", copy.path, out)
    assert rows_of(copy.path) == ROWS


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_file_is_read_in_blocks_of_any_size(tmp_path, set_thresholds, form) -> None:
    rows = [{"id": at, "city": f"city {at}" * (at % 5)} for at in range(200)]
    source = Table.create(tmp_path / "source", "id BIGINT, city STRING")
    source.write(rows)
    told("scan", source.path, "-o", tmp_path / f"rows.{form}")
    set_thresholds(import_block_bytes=256)
    copy = Table.create(tmp_path / "copy", "id BIGINT, city STRING")
    told("write", copy.path, tmp_path / f"rows.{form}")
    assert rows_of(copy.path) == rows


def test_standard_output_is_whole_and_alone(table) -> None:
    assert told("scan", table.path, "--format", "csv", "-c", "id,city", "--order-by", "id") == '"id","city"\n1,""\n2,"a ""b"",\nc"\n3,\n'
    assert [row["id"] for row in json.loads(told("scan", table.path, "--format", "json", "--order-by", "id DESC"))] == [3, 2, 1]
    assert json.loads(told("scan", table.path, "--format", "json", "-f", "id = 9")) == []
    assert told("scan", table.path, "--count").strip() == "3"
    assert json.loads(told("scan", table.path, "--count", "--json", "-f", "id > 1")) == {"rows": 2, "snapshot_id": 1}


def test_a_table_that_is_piped_is_whole(table) -> None:
    table.write([{**ROWS[0], "city": "x" * 300}])
    told_rows = told("scan", table.path)
    assert "x" * 300 in told_rows
    assert "…" not in told_rows


def test_scans_travel(table) -> None:
    table.create_tag("first")
    table.create_branch("trial", "first")
    table.write([{**ROWS[0], "id": 4}])
    for given, rows in ((("--tag", "first"), 3), (("--branch", "trial"), 3), (("--timestamp", datetime.now(UTC).isoformat()), 4)):
        assert json.loads(told("scan", table.path, "--count", "--json", *given))["rows"] == rows
    assert len(told("scan", table.path, "--json", "--limit", 2).splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "xml"], "'xml' is not a file format"),
        (["-o", "rows.txt"], "is not a known format"),
        (["-o", "/no/such/folder/rows.csv"], "/no/such/folder/rows.csv cannot be written: No such file"),
        (["--json", "--format", "csv"], "remove one of them"),
        (["--tag", "a", "--snapshot", "1"], "one snapshot"),
    ],
)
def test_what_a_scan_cannot_give_is_told(table, arguments, says) -> None:
    assert says in told("scan", table.path, *arguments, code=1)


def test_several_files_and_standard_input_are_one_commit(table, tmp_path) -> None:
    for name, rows in (("a", [10, 11]), ("b", [12])):
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(json.dumps({"id": row, "day": "2024-02-01", "price": "1.10"}) + "\n" for row in rows)
        )
    assert "3 rows in 1 file" in told("write", table.path, tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert "2 rows" in told(
        "write", table.path, "-", "--format", "csv", given=b"id,city,price,day,seen,ok,score,raw\n20,x,1.5,,,,,\n21,,,,,,,\n"
    )
    assert table.snapshots().num_rows == 3
    assert [row["id"] for row in rows_of(table.path)] == [1, 2, 3, 10, 11, 12, 20, 21]


def test_maps_are_objects_in_json_lines(tmp_path) -> None:
    table = Table.create(tmp_path / "m", "id INT, attrs MAP<STRING, INT>, day DATE")
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "attrs": {"a": 1}, "day": "2024-01-31"}\n\n{"id": 2}\n')
    told("write", table.path, tmp_path / "rows.jsonl")
    assert rows_of(table.path) == [
        {"id": 1, "attrs": [("a", 1)], "day": date(2024, 1, 31)},
        {"id": 2, "attrs": None, "day": None},
    ]
    assert json.loads(told("scan", table.path, "--json", "-f", "id = 1"))["attrs"] == {"a": 1}
    assert "does not support nested columns (attrs)" in told("scan", table.path, "--format", "csv", code=1)
    (tmp_path / "rows.csv").write_text("id,attrs,day\n1,{},\n")
    assert "nested columns attrs" in told("write", table.path, tmp_path / "rows.csv", code=1)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.csv", None, "none.csv cannot be read as csv: No such file"),
        ("empty.csv", "", "empty.csv cannot be read as csv"),
        ("wrong.csv", "id,price\nx,1\n", "wrong.csv: row 0: column 'id': 'x' is not a valid BIGINT"),
        ("wrong.jsonl", "{no json\n", "wrong.jsonl cannot be read as jsonl"),
        ("wrong.parquet", "PAR1", "wrong.parquet cannot be read as parquet"),
        ("rows.txt", "id\n1\n", "the extension of"),
        ("other.jsonl", '{"id": 9, "citi": "x"}\n', "citi"),
        ("day.jsonl", '{"id": 9, "day": "yesterday"}\n', "column 'day': 'yesterday' is not a valid DATE"),
    ],
)
def test_a_file_that_cannot_be_written_is_named_and_nothing_is_committed(table, tmp_path, name, content, says) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    assert says in told("write", table.path, tmp_path / name, code=1)
    assert table.snapshots().num_rows == 1


def test_files_of_other_columns_are_refused_together(table, tmp_path) -> None:
    pq.write_table(pa.table({"id": [5]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["6"]}), tmp_path / "b.parquet")
    assert "b.parquet has the columns (id string)" in told(
        "write", table.path, tmp_path / "a.parquet", tmp_path / "b.parquet", "--missing", "null", code=1
    )


def test_each_json_object_keeps_what_it_lacks_and_a_batch_counts_once(tmp_path) -> None:
    path = Table.create(tmp_path / "t", "id BIGINT, n INT, day DATE", primary_keys=["id"], options={"bucket": "1"}).path
    day = date(2024, 1, 31)
    Table.open(path).write({"id": [1, 2, 3], "n": [1, 2, 3], "day": [day] * 3})
    (tmp_path / "a.jsonl").write_text('{"id": 1, "n": 10}\n{"id": 2, "day": null}\n\n{"id": 3, "_row_kind": "-D"}\n')
    (tmp_path / "b.csv").write_text("id,n\n4,40\n")
    for command in ("write", "merge"):
        told(command, path, tmp_path / "a.jsonl", tmp_path / "b.csv", "--missing", "keep", "--commit-id", "feed", "--batch-id", 7)
        assert [tuple(row.values()) for row in rows_of(path)] == [(1, 10, day), (2, 2, None), (4, 40, None)]
    assert Table.open(path).snapshots().num_rows == 2
    (tmp_path / "wide.jsonl").write_text('{"id": 1, "n": 5000000000, "more": "x"}\n')
    told("write", path, tmp_path / "wide.jsonl", "--missing", "keep", "--widen-types")
    assert rows_of(path)[0] == {"id": 1, "n": 5_000_000_000, "day": day, "more": "x"}
    (tmp_path / "wide.csv").write_text("id,n\n2,2.5\n")
    told("merge", path, tmp_path / "wide.csv", "--missing", "keep", code=1)


def test_an_overwrite_asks_and_a_repetition_is_told(table, tmp_path) -> None:
    out = tmp_path / "rows.parquet"
    told("scan", table.path, "-f", "id = 1", "-o", out)
    assert "there is no terminal to ask" in told("write", table.path, out, "--mode", "overwrite", code=1)
    assert "reads rows from standard input" in told(
        "write", table.path, "-", "--format", "csv", "--mode", "overwrite", code=1, given="id\n1\n"
    )
    assert json.loads(told("write", table.path, out, "--mode", "overwrite", "--dry-run", "--json"))["rows"] == 1
    told("write", table.path, out, "--mode", "overwrite", "--yes", "--commit-id", "once")
    assert [row["id"] for row in rows_of(table.path)] == [1]
    assert "already committed" in told("write", table.path, out, "--mode", "overwrite", "--yes", "--commit-id", "once")
    assert "unknown mode 'replace'" in told("write", table.path, out, "--mode", "replace", code=1)


@pytest.mark.parametrize(
    ("matched", "not_matched", "after"),
    [
        ("update", "insert", {1: "new", 2: 'a "b",\nc', 3: "new", 7: "new"}),
        ("update", "ignore", {1: "new", 2: 'a "b",\nc', 3: "new"}),
        ("ignore", "insert", {1: "", 2: 'a "b",\nc', 3: None, 7: "new"}),
        ("delete", "insert", {2: 'a "b",\nc', 7: "new"}),
        ("delete", "ignore", {2: 'a "b",\nc'}),
    ],
)
def test_rows_are_merged_by_key_in_one_commit(table, tmp_path, matched, not_matched, after) -> None:
    rows = pa.Table.from_pylist([{**ROWS[0], "id": key, "city": "new"} for key in (1, 7, 3)], table.schema)
    pq.write_table(rows, tmp_path / "rows.parquet")
    given = ("merge", table.path, tmp_path / "rows.parquet", "--when-matched", matched, "--when-not-matched", not_matched, "--json")
    before = json.loads(told(*given, "--dry-run"))
    done = json.loads(told(*given, "--on", "id", "--yes"))
    assert {row["id"]: row["city"] for row in rows_of(table.path)} == after
    assert (before["matched"], before["not_matched"]) == (2, 1)
    assert done["snapshot_id"] == 2
    if (matched, not_matched) != ("update", "insert"):
        assert (done["updated"], done["deleted"], done["inserted"]) == (
            2 * (matched == "update"),
            2 * (matched == "delete"),
            int(not_matched == "insert"),
        )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--on", "city"], "merge matches by the primary key: give --on id, not city"),
        (["--when-matched", "upsert"], "--when-matched takes update, delete, ignore, not 'upsert'"),
        (["--when-not-matched", "delete"], "--when-not-matched takes insert, ignore, not 'delete'"),
        (["--when-matched", "ignore", "--when-not-matched", "ignore"], "there is nothing to do"),
        (["--when-matched", "delete"], "no column 'id', which is part of the primary key"),
    ],
)
def test_a_merge_that_cannot_be_is_refused(table, tmp_path, arguments, says) -> None:
    pq.write_table(pa.table({"city": ["x"]}), tmp_path / "rows.parquet")
    assert says in told("merge", table.path, tmp_path / "rows.parquet", *arguments, "--yes", code=1)
    assert table.snapshots().num_rows == 1


def test_a_table_without_key_is_not_merged_into(tmp_path) -> None:
    table = Table.create(tmp_path / "a", "id INT")
    assert "has no primary key" in told("merge", table.path, "-", "--format", "csv", code=1)


def test_tables_are_named_in_catalogs_and_options_are_not_told(tmp_path) -> None:
    where = ("--warehouse", tmp_path / "w")
    told("create", "orders", DDL, *where)
    assert "3 rows" in told("write", "orders", "-", "--format", "jsonl", *where, given="".join(f'{{"id": {i}}}\n' for i in range(3)))
    assert Table.open(tmp_path / "w" / "default.db" / "orders").count() == 3
    assert "no database 'sales'; known databases: default" in told("scan", "sales.orders", *where, code=1)
    for option in ("--storage-option", "--catalog-option"):
        refused = told("scan", tmp_path / "t", option, "hunter2", code=1)
        assert f"{option} takes KEY=VALUE; number 1 has another form" in refused
        assert "hunter2" not in refused
    assert "hunter2" not in told("scan", "s3://b/t", "--storage-option", "s3.no-such=hunter2", code=1)


def test_what_is_not_utf8_on_standard_input_is_told(table) -> None:
    assert "standard input cannot be read as csv" in told(
        "write", table.path, "-", "--format", "csv", code=1, given=io.BytesIO(b"id,city\n1,\xff\n").read()
    )


def test_properties_are_shown_in_the_history(tmp_path) -> None:
    path = tmp_path / "t"
    keyed(path, "id BIGINT, n INT")
    file = tmp_path / "rows.csv"
    file.write_text("id,n\n1,1\n2,2\n")
    told("write", path, file, "--property", "ticket=DATA-7")
    told("delete", path, "--filter", "id = 1", "--yes", "--property", "ticket=DATA-8")
    told("merge", path, file, "--when-matched", "ignore", "--property", "ticket=DATA-9")
    told("compact", path, "--full", "--property", "by=me")
    shown = json.loads(told("history", path, "--json"))
    noted = [(row["operation"], row["properties"]) for row in shown]
    assert noted == [
        ("compact", {"by": "me"}),
        ("merge", {"ticket": "DATA-9"}),
        ("delete", {"ticket": "DATA-8"}),
        ("upsert", {"ticket": "DATA-7"}),
    ]
    assert "DATA-7" in told("history", path)
    assert "upsert" in told("inspect", path)


def test_texts_that_do_not_fit_are_null_or_collected(tmp_path) -> None:
    path = tmp_path / "t"
    keyed(path, "id BIGINT, day DATE, n INT")
    file = tmp_path / "rows.csv"
    file.write_text("id,day,n\n1,2024-01-31, 7\n2,2024-02-31,x\n3,,\n")
    assert "rows.csv: row 1: column 'day'" in told("write", path, file, code=1)
    shown = CliRunner().invoke(app, ["write", str(path), str(file), "--errors", "collect"])
    assert "1 row rejected" in shown.stdout
    assert "rejected: column 'day': '2024-02-31' is not a valid DATE; column 'n': 'x' is not a valid INT" in shown.stderr
    assert rows_of(path) == [{"id": 1, "day": date(2024, 1, 31), "n": 7}, {"id": 3, "day": None, "n": None}]
    told("merge", path, file, "--errors", "null")
    assert rows_of(path)[1] == {"id": 2, "day": None, "n": None}
    assert "--errors takes raise, null, collect" in told("write", path, file, "--errors", "skip", code=1)


def test_a_table_is_created_from_a_file_with_its_rows(table, tmp_path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,city,day\n1,Oslo,2024-01-31\n2,,2024-02-01\n")
    made = json.loads(told("create", tmp_path / "new", "--from", file, "-k", "id", "-O", "bucket=1", "--json"))
    assert (made["columns"], made["primary_keys"], made["rows"]) == (["id BIGINT NOT NULL", "city STRING", "day DATE"], ["id"], 2)
    assert rows_of(tmp_path / "new")[1] == {"id": 2, "city": None, "day": date(2024, 2, 1)}
    assert "exists already" in told("create", tmp_path / "new", "--from", file, "-k", "id", "--if-not-exists")
    assert len(rows_of(tmp_path / "new")) == 2
    copy = tmp_path / "rows.parquet"
    told("scan", tmp_path / "new", "-o", copy)
    told("create", tmp_path / "log", "--from", copy, "--partition", "day")
    assert Table.open(tmp_path / "log").partition_keys == ("day",)
    assert rows_of(tmp_path / "log") == rows_of(tmp_path / "new")
    for arguments in ((), ("id INT", "--from", file)):
        assert "give the columns as DDL" in told("create", tmp_path / "other", *arguments, code=1)
    assert not (tmp_path / "other").exists()


def test_rows_are_updated_and_looked_up(tmp_path) -> None:
    path = tmp_path / "t"
    made = Table.create(path, "id BIGINT, day DATE, s STRING, n INT", primary_keys=["id", "day"], options={"bucket": "1"})
    made.write({"id": [1, 2], "day": [date(2024, 1, 31)] * 2, "s": ["a", "b"], "n": [1, 2]})
    assert "2 rows would be updated" in told("update", path, "-f", "n > 0", "--set", "n=n+1", "--dry-run")
    assert "there is no terminal" in told("update", path, "-f", "n > 0", "--set", "n=n+1", code=1)
    shown = told("update", path, "-f", "id = 1", "--set", "n=n * 10", "--value", "s=a=b 'c'", "--yes", "--property", "ticket=7")
    assert "1 row updated, snapshot 2" in shown
    found = json.loads(told("lookup", path, "1,2024-01-31", "9,2024-01-31", "--json"))
    assert found == [{"id": 1, "day": "2024-01-31", "s": "a=b 'c'", "n": 10}]
    assert "1 row, 1 key not found" in told("lookup", path, "2,2024-01-31", "9,2024-01-31", "-c", "n")
    assert "values={'s': 'Anna'}" in told("update", path, "-f", "id = 1", "--set", "s=Anna", "--yes", code=1)
    assert "'x' is not a valid INT" in told("update", path, "-f", "id = 1", "--value", "n=x", "--yes", code=1)
    assert "the primary key is (id, day)" in told("lookup", path, "1", code=1)
    assert "no row was updated" in told("update", path, "-f", "id = 9", "--set", "n=1", "--yes")


NESTED = (
    "(id INT, at TIMESTAMP(6), l ARRAY<TIMESTAMP(6)>, r ROW<d DATE, t TIME(3), b BYTES, z TIMESTAMP(3) WITH LOCAL TIME ZONE>, "
    "m MAP<STRING, DATE>, n ARRAY<ROW<b BYTES, m MAP<STRING, TIME(3)>>>, v VARIANT, w ARRAY<VARIANT>)"
)


def test_nested_times_bytes_and_variants_are_read_back_from_json_lines(tmp_path) -> None:
    moment, day = datetime.fromisoformat("2024-01-31T10:00:00.000005"), date(2024, 5, 6)
    full = {
        "id": 1,
        "at": moment,
        "l": [moment, None],
        "r": {"d": day, "t": time(1, 2, 3), "b": b"\xff\x01", "z": datetime(2024, 1, 1, tzinfo=UTC)},
        "m": {"k": day},
        "n": [{"b": b"", "m": {"x": time(4, 5)}}, {"b": None, "m": None}, None],
        "v": {"a": [1, "x", None], "value": "y"},
        "w": [{"b": 1.5}, None, "t"],
    }
    for number, row in enumerate((full, dict.fromkeys(full, None))):
        told("create", tmp_path / f"from{number}", NESTED)
        told("create", tmp_path / f"to{number}", NESTED)
        Table.open(tmp_path / f"from{number}").write([row])
        told("scan", tmp_path / f"from{number}", "-o", tmp_path / "rows.jsonl")
        told("write", tmp_path / f"to{number}", tmp_path / "rows.jsonl")
        assert rows_of(tmp_path / f"to{number}") == rows_of(tmp_path / f"from{number}")


def test_bytes_that_are_no_text_are_refused_in_csv(tmp_path) -> None:
    table = Table.create(tmp_path / "t", "id INT, b BYTES")
    table.write([{"id": 1, "b": b"ab,\n"}, {"id": 2, "b": None}, {"id": 3, "b": b""}])
    told("scan", table.path, "-o", tmp_path / "rows.csv")
    told("create", tmp_path / "u", "(id INT, b BYTES)")
    told("write", tmp_path / "u", tmp_path / "rows.csv")
    assert rows_of(tmp_path / "u") == rows_of(table.path)
    table.write([{"id": 4, "b": b"\xff"}])
    before = (tmp_path / "rows.csv").read_bytes()
    assert "column 'b' has bytes that are not UTF-8 text" in told("scan", table.path, "-o", tmp_path / "rows.csv", code=1)
    assert (tmp_path / "rows.csv").read_bytes() == before


def test_line_breaks_in_fields_of_csv_may_lie_anywhere(tmp_path, set_thresholds) -> None:
    set_thresholds(import_block_bytes=64)
    table = Table.create(tmp_path / "t", "id INT, s STRING")
    table.write([{"id": number, "s": "a\n" * (number % 13) + '"\r\n'} for number in range(100)])
    told("scan", table.path, "-o", tmp_path / "rows.csv")
    told("create", tmp_path / "u", "(id INT, s STRING)")
    told("write", tmp_path / "u", tmp_path / "rows.csv")
    assert rows_of(tmp_path / "u") == rows_of(table.path)
