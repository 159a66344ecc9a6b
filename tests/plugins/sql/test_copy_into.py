"""COPY INTO: files are loaded once, and rows that do not fit are handled as the statement says."""

from __future__ import annotations

import gzip
import os
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from paimon_base.errors import CorruptFile, InvalidArgument, PaimonError, UnknownColumn
from pyspark_paimon import Table
from tests.build import ids, tuples
from tests.plugins.sql.test_effects import InProcess, done

COLUMNS = "id BIGINT NOT NULL, day DATE, price DECIMAL(10, 2), name STRING, ok BOOLEAN"


@pytest.fixture
def catalog(tmp_path: Path) -> InProcess:
    made = InProcess(tmp_path / "warehouse")
    made.create_database("db")
    made.create_table("db.t", COLUMNS, primary_keys=["id"], options={"bucket": "1"}).set_default("name", "unnamed")
    return made


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


def load(catalog: InProcess, files: Path, form: str, more: str = "", columns: str = "") -> list[dict[str, Any]]:
    return done(catalog, f"COPY INTO db.t {columns} FROM '{files}' FILE_FORMAT = (TYPE = {form}) {more}").to_pylist()


def rows(catalog: InProcess) -> list[tuple[Any, ...]]:
    return tuples(catalog.table("db.t"))


ONE, TWO = (1, date(2024, 1, 31), Decimal("1.50"), "a,b", True), (2, None, None, "unnamed", False)


def test_csv_files_are_loaded_once(catalog: InProcess, files: Path) -> None:
    (files / "a.csv").write_text('id,day,price,name,ok\n1,2024-01-31,1.50,"a,b",true\n')
    (files / "b.csv").write_text("h\n2,NULL,,NULL,false\n")
    (files / "c.txt").write_text("not a row of the table")
    (files / "_hidden.csv").write_text("x")
    (files / "nested.csv").mkdir()
    form = "CSV, SKIP_HEADER = 1, NULL_IF = ('NULL'), EMPTY_FIELD_AS_NULL = TRUE"
    first = load(catalog, files, form, r"PATTERN = '.*\.csv'")
    assert [(row["file_name"], row["status"], row["rows_loaded"]) for row in first] == [("a.csv", "LOADED", 1), ("b.csv", "LOADED", 1)]
    assert rows(catalog) == [ONE, TWO]
    assert [row["status"] for row in load(catalog, files, form, r"PATTERN = '.*\.csv'")] == ["SKIPPED", "SKIPPED"]
    os.utime(files / "a.csv", (0, 0))
    assert [row["status"] for row in load(catalog, files, form, r"PATTERN = '.*\.csv'")] == ["LOADED", "SKIPPED"]
    assert [row["status"] for row in load(catalog, files, form, r"PATTERN = 'b\.csv' FORCE = TRUE")] == ["LOADED"]
    table = catalog.table("db.t")
    table.expire_snapshots(retain_max=1, retain_min=1)
    again = load(catalog, files, form, r"PATTERN = 'a\.csv'")[0]
    assert again["status"] == "SKIPPED"
    assert "expired" in again["first_error"]


def test_files_that_lack_columns_keep_the_stored_values(catalog: InProcess, files: Path) -> None:
    catalog.table("db.t").write([dict(zip(("id", "day", "price", "name", "ok"), row, strict=True)) for row in (ONE, TWO)])
    (files / "a.json").write_text('{"id": 1, "NAME": "new"}\n{"id": 2, "price": 2.5}\n{"id": 3}\n')
    load(catalog, files, "JSON", "MISSING = KEEP")
    assert rows(catalog) == [(*ONE[:3], "new", True), (2, None, Decimal("2.50"), "unnamed", False), (3, None, None, "unnamed", None)]
    (files / "a.json").unlink()
    pq.write_table(pa.table({"id": [2], "ok": [True]}), files / "b.parquet")
    with pytest.raises(PaimonError, match="missing"):
        load(catalog, files, "PARQUET", "MISSING = REFUSE")
    load(catalog, files, "PARQUET", "MISSING = KEEP")
    assert rows(catalog)[1] == (2, None, Decimal("2.50"), "unnamed", True)
    with pytest.raises(InvalidArgument, match="MISSING must be one of NULL, KEEP, REFUSE, not DROP"):
        load(catalog, files, "PARQUET", "MISSING = DROP")


def test_columns_are_given_by_position_in_csv_and_by_name_elsewhere(catalog: InProcess, files: Path) -> None:
    (files / "a.csv.gz").write_bytes(gzip.compress(b"x|1\n'y|z'|2\n"))
    load(catalog, files, "CSV, FIELD_DELIMITER = '|', QUOTE = \"'\", COMPRESSION = GZIP", columns="(name, ID)")
    assert rows(catalog) == [(1, None, None, "x", None), (2, None, None, "y|z", None)]
    (files / "a.csv.gz").unlink()
    (files / "b.json").write_text('{"name": "n/a", "id": 3, "day": "2024-01-31", "price": "2.25", "other": [1]}\n{"id": 4, "ok": true}\n')
    load(catalog, files, "JSON, NULL_IF = ('n/a')")
    assert rows(catalog)[2:] == [(3, date(2024, 1, 31), Decimal("2.25"), "unnamed", None), (4, None, None, "unnamed", True)]
    (files / "b.json").write_text('{\n "id": 5\n}\n{"id": 6,\n "name": "six"}')
    load(catalog, files, "JSON, MULTI_LINE = TRUE")
    assert [row[:1] + row[3:4] for row in rows(catalog)[4:]] == [(5, "unnamed"), (6, "six")]
    (files / "b.json").unlink()
    pq.write_table(pa.table({"x": [1], "price": [7], "id": pa.array([7], pa.int32()), "ok": [True]}), files / "c.parquet")
    assert load(catalog, files / "c.parquet", "PARQUET")[0]["rows_loaded"] == 1
    assert rows(catalog)[6] == (7, None, Decimal("7.00"), "unnamed", True)


def test_forced_files_are_remembered_too(catalog: InProcess, files: Path) -> None:
    (files / "a.csv").write_text("1,x\n")
    for force in ("FORCE = TRUE", "FORCE = TRUE", ""):
        found = load(catalog, files, "CSV", force, "(id, name)")
        assert [row["status"] for row in found] == ["LOADED" if force else "SKIPPED"]
    assert catalog.table("db.t").snapshots().num_rows == 2


def test_names_in_json_ignore_case_as_in_spark(catalog: InProcess, files: Path) -> None:
    (files / "a.json").write_text('{"ID": 1, "Price": 2.5, "name": "x", "other": {"id": 5}}\n{"ID": 2, "OK": true}\n')
    load(catalog, files, "JSON")
    assert rows(catalog) == [(1, None, Decimal("2.50"), "x", None), (2, None, None, "unnamed", True)]


def test_each_row_of_json_may_spell_names_in_its_own_way(catalog: InProcess, files: Path) -> None:
    text = '{"ID": 1, "NAME": "x", "more": 1}\n{"id": 2, "Name": "y", "more": "a"}\n{"Id": 3, "price": "7", "NAME": null, "name": "z: \\"Id\\":"}\n'
    (files / "a.json").write_text(text)
    load(catalog, files, "JSON", columns="(id, name, price)")
    assert [(row[0], row[3], row[2]) for row in rows(catalog)] == [(1, "x", None), (2, "y", None), (3, 'z: "Id":', Decimal(7))]


def test_continue_leaves_out_nulls_and_long_texts_that_the_table_refuses(catalog: InProcess, files: Path) -> None:
    catalog.create_table("db.short", "id BIGINT NOT NULL, n INT NOT NULL, s VARCHAR(3)", primary_keys=["id"], options={"bucket": "1"})
    (files / "a.csv").write_text("1,1,abc\n2,NULL,x\n3,3,abcd\nNULL,4,y\n5,5,\n")
    found = done(
        catalog, f"COPY INTO db.short FROM '{files}' FILE_FORMAT = (TYPE = CSV, NULL_IF = ('NULL')) ON_ERROR = CONTINUE"
    ).to_pylist()[0]
    assert (found["status"], found["rows_loaded"], found["errors_seen"]) == ("PARTIALLY_LOADED", 2, 3)
    assert found["first_error"] == "column 'n' has a null, but is INT NOT NULL"
    assert ids(catalog.table("db.short")) == [1, 5]


@pytest.mark.parametrize(("text", "errors"), [("1,x\n2,y,z\nthree,t\n4,u\n", 2), ("1,x\n4,u\n", 0)])
def test_rows_that_do_not_fit(catalog: InProcess, files: Path, text: str, errors: int) -> None:
    (files / "a.csv").write_text(text)
    (files / "b.csv").write_text("9,w\n")
    for more in ("", "ON_ERROR = ABORT_STATEMENT"):
        if errors:
            with pytest.raises(PaimonError):
                load(catalog, files, "CSV", more, "(id, name)")
            assert rows(catalog) == []
    found = load(catalog, files, "CSV", "ON_ERROR = SKIP_FILE", "(id, name)")
    assert [row["status"] for row in found] == ["LOAD_FAILED" if errors else "LOADED", "LOADED"]
    assert (found[0]["first_error"] is None) == (not errors)
    found = load(catalog, files, "CSV", "ON_ERROR = CONTINUE", "(id, name)")
    assert [row["status"] for row in found] == ["PARTIALLY_LOADED" if errors else "SKIPPED", "SKIPPED"]
    assert (found[0]["errors_seen"], found[0]["rows_parsed"]) == (errors, 2 + errors if errors else 0)
    assert [row[0] for row in rows(catalog)] == [1, 4, 9]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("COPY INTO '/tmp/x' FROM db.t FILE_FORMAT = (TYPE = CSV)", "COPY INTO 'path' is not supported: "),
        ("COPY INTO db.t FROM '/none/here' FILE_FORMAT = (TYPE = CSV)", "there is no file or directory /none/here"),
        ("COPY INTO db.t FROM '{files}' FILE_FORMAT = (TYPE = AVRO)", "TYPE = CSV, JSON, PARQUET, not 'AVRO'"),
        ("COPY INTO db.t FROM '{files}'", "FILE_FORMAT needs TYPE"),
        ("COPY INTO db.t FROM '{files}' FILE_FORMAT = (TYPE = JSON, QUOTE = 'x')", "FILE_FORMAT of JSON has no option QUOTE"),
        ("COPY INTO db.t FROM '{files}' FILE_FORMAT = (TYPE = CSV, SKIP_HEADER = 2)", "SKIP_HEADER must be 0 or 1"),
        ("COPY INTO db.t FROM '{files}' FILE_FORMAT = (TYPE = CSV, COMPRESSION = ZIP)", "COMPRESSION must be AUTO, NONE, GZIP"),
        ("COPY INTO db.t FROM '{files}' FILE_FORMAT = (TYPE = CSV, SKIP_HEADER = (1))", "SKIP_HEADER must be 0 or 1"),
        ("COPY INTO db.t FROM '{files}' FILE_FORMAT = (TYPE = CSV, FIELD_DELIMITER = '||')", "FIELD_DELIMITER must be one character"),
        ("COPY INTO db.t FROM '{files}' FILE_FORMAT = (TYPE = CSV) FORCE = 1", "FORCE must be TRUE or FALSE"),
        ("COPY INTO db.t FROM '{files}' FILE_FORMAT = (TYPE = CSV) ON_ERROR = SKIP_FILE_3", "ON_ERROR must be one of"),
        ("COPY INTO db.t FROM '{files}' FILE_FORMAT = (TYPE = CSV) PATTERN = '('", "is not a regular expression"),
        ("COPY INTO db.t FROM '{files}' FILE_FORMAT = (TYPE = CSV) PURGE = TRUE", "where ON_ERROR is expected"),
    ],
)
def test_what_is_refused(catalog: InProcess, files: Path, statement: str, words: str) -> None:
    (files / "a.csv").write_text("1,x\n")
    with pytest.raises(InvalidArgument, match=words):
        done(catalog, statement.format(files=files))
    assert catalog.table("db.t").snapshots().num_rows == 0


def test_files_that_are_of_no_format(catalog: InProcess, files: Path) -> None:
    (files / "a").write_text("[1, 2]")
    for form in ("JSON", "PARQUET"):
        with pytest.raises(CorruptFile, match="no row of it was loaded"):
            load(catalog, files, form)
    with pytest.raises(UnknownColumn):
        load(catalog, files, "CSV", columns="(none)")
    pq.write_table(pa.table({"x": [1]}), files / "a")
    with pytest.raises(InvalidArgument, match="has none of the columns"):
        load(catalog, files, "PARQUET")
    assert isinstance(catalog.table("db.t"), Table)


def test_a_file_is_loaded_once_whatever_columns_the_table_has(catalog: InProcess, files: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), files / "a.parquet")
    assert load(catalog, files, "PARQUET")[0]["status"] == "LOADED"
    catalog.table("db.t").add_column("later", "INT")
    assert load(catalog, files, "PARQUET")[0]["status"] == "SKIPPED"
    assert len(rows(catalog)) == 1


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_decimals_are_numbers_or_texts_in_json(catalog: InProcess, files: Path, packed: bool) -> None:
    (files / "a.json").write_text('{"id": 1, "price": 2.25}\n{"id": 2, "price": 7}\n{"id": 3, "price": 0.125}\n{"id": 4, "price": null}\n')
    (files / "b.json").write_text('{"id": 5, "price": "2.25"}\n')
    content = (files / "a.json").read_bytes()
    if packed:
        (files / "a.json").unlink()
        (files / "a.json.gz").write_bytes(gzip.compress(content))
    found = load(catalog, files, "JSON, COMPRESSION = AUTO", "ON_ERROR = CONTINUE")
    assert [(row["status"], row["errors_seen"]) for row in found] == [("PARTIALLY_LOADED", 1), ("LOADED", 0)]
    prices = [(row[0], row[2]) for row in rows(catalog)]
    assert prices == [(1, Decimal("2.25")), (2, Decimal("7.00")), (4, None), (5, Decimal("2.25"))]


def test_empty_files_have_no_rows(catalog: InProcess, files: Path) -> None:
    (files / "a").write_text("")
    for form in ("CSV", "JSON"):
        assert [(row["status"], row["rows_loaded"]) for row in load(catalog, files, form)] == [("LOADED", 0)]
    with pytest.raises(CorruptFile):
        load(catalog, files, "PARQUET")


def test_a_codec_is_found_by_the_name_of_a_file(catalog: InProcess, files: Path) -> None:
    (files / "a.csv.gz").write_bytes(gzip.compress(b"1,x\n"))
    (files / "b.csv").write_text("2,y\n")
    load(catalog, files, "CSV, COMPRESSION = AUTO", columns="(id, name)")
    assert [row[0] for row in rows(catalog)] == [1, 2]
    with pytest.raises(CorruptFile, match=r"b\.csv.*no row of it was loaded"):
        load(catalog, files / "b.csv", "CSV, COMPRESSION = GZIP", "FORCE = TRUE", columns="(id, name)")
    again = load(catalog, files / "b.csv", "CSV, COMPRESSION = GZIP", "FORCE = TRUE ON_ERROR = SKIP_FILE", columns="(id, name)")
    assert again[0]["status"] == "LOAD_FAILED"


def test_a_row_may_be_longer_than_a_block_of_the_reader(catalog: InProcess, files: Path) -> None:
    name = "x" * 3_000_000
    (files / "a").write_text(f"1,{name}\n2,y\n")
    load(catalog, files, "CSV", columns="(id, name)")
    (files / "a").write_text(f'{{"id": 3, "name": "{name}"}}\n{{"id": 4}}\n')
    load(catalog, files, "JSON")
    assert [(row[0], len(row[3])) for row in rows(catalog)] == [(1, 3_000_000), (2, 1), (3, 3_000_000), (4, 7)]


def test_columns_of_parquet_files_are_found_whatever_their_case(catalog: InProcess, files: Path) -> None:
    pq.write_table(pa.table({"NAME": ["x"], "Id": pa.array([7], pa.int32()), "name": ["y"]}), files / "case.parquet")
    assert load(catalog, files / "case.parquet", "PARQUET")[0]["rows_loaded"] == 1
    assert catalog.table("db.t").lookup({"id": 7}).to_pylist()[0]["name"] == "y"
    pq.write_table(pa.table({"NAME": ["z"], "ID": pa.array([8], pa.int32())}), files / "upper.parquet")
    load(catalog, files / "upper.parquet", "PARQUET")
    assert catalog.table("db.t").lookup({"id": 8}).to_pylist()[0]["name"] == "z"
