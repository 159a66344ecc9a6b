"""Statements on tags, and other forms that people of Paimon and Flink type; this process runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from manifest.io.errors import SnapshotNotFound
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Table
from tests.plugins.sql.test_effects import InProcess, done


@pytest.fixture
def catalog(tmp_path: Path) -> InProcess:
    made = InProcess(tmp_path / "warehouse")
    made.create_database("db")
    table = made.create_table(
        "db.t", "id BIGINT, day STRING, n INT", primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": "1"}
    )
    for number, day in enumerate("aab"):
        table.write([{"id": number, "day": day, "n": number}])
    return made


def tags(catalog: InProcess) -> dict[str, tuple[int, Any]]:
    found = catalog.table("db.t").tags().to_pylist()
    return {tag["tag_name"]: (tag["snapshot_id"], tag["time_retained"]) for tag in found}


def test_tags_are_created_replaced_renamed_and_deleted(catalog: InProcess) -> None:
    done(catalog, "ALTER TABLE db.t CREATE TAG newest")
    done(catalog, "ALTER TABLE db.t CREATE TAG `old one` AS OF VERSION 1 RETAIN 3 DAYS")
    assert {name: tag[0] for name, tag in tags(catalog).items()} == {"newest": 3, "old one": 1}
    assert tags(catalog)["newest"][1] != tags(catalog)["old one"][1]
    with pytest.raises(InvalidArgument, match="tag 'newest' exists"):
        done(catalog, "ALTER TABLE db.t CREATE TAG newest")
    done(catalog, "ALTER TABLE db.t CREATE TAG IF NOT EXISTS newest AS OF VERSION 1")
    assert tags(catalog)["newest"][0] == 3
    done(catalog, "ALTER TABLE db.t CREATE OR REPLACE TAG newest AS OF VERSION 2 RETAIN 1 HOUR")
    done(catalog, "ALTER TABLE db.t CREATE OR REPLACE TAG another RETAIN 90 minutes")
    done(catalog, "ALTER TABLE db.t REPLACE TAG `old one` AS OF VERSION 2")
    assert {name: tag[0] for name, tag in tags(catalog).items()} == {"newest": 2, "another": 3, "old one": 2}
    done(catalog, "ALTER TABLE db.t RENAME TAG another TO other")
    done(catalog, "ALTER TABLE db.t DELETE TAG newest")
    done(catalog, "ALTER TABLE db.t DELETE TAG IF EXISTS newest")
    with pytest.raises(SnapshotNotFound, match="no tag 'newest'"):
        done(catalog, "ALTER TABLE db.t DELETE TAG newest")
    assert done(catalog, "SHOW TAGS db.t")["tag_name"].to_pylist() == ["old one", "other"]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TAG",
        "CREATE TAG x AS OF 3",
        "CREATE TAG x RETAIN 3 YEARS",
        "CREATE TAG x extra",
        "RENAME TAG x",
        "REPLACE TAG IF x",
        "DELETE TAG x y",
    ],
)
def test_a_wrong_form_changes_nothing(text: str, catalog: InProcess) -> None:
    done(catalog, "ALTER TABLE db.t CREATE TAG x")
    with pytest.raises(InvalidArgument, match="the statement"):
        done(catalog, f"ALTER TABLE db.t {text}")
    assert tags(catalog).keys() == {"x"}


def test_a_partition_is_truncated(catalog: InProcess) -> None:
    done(catalog, "TRUNCATE TABLE db.t PARTITION (day = 'a')")
    assert catalog.table("db.t").scan().to_arrow()["id"].to_pylist() == [2]
    done(catalog, "TRUNCATE TABLE db.t")
    assert catalog.table("db.t").count() == 0


def test_comments_are_set(catalog: InProcess) -> None:
    done(catalog, "COMMENT ON TABLE db.t IS 'rows of days'")
    done(catalog, "COMMENT ON COLUMN db.t.n IS 'a number'")
    schema = catalog.table("db.t").table_schema
    assert (schema.comment, schema.field("n").description) == ("rows of days", "a number")


def test_options_are_set_in_flinks_form(catalog: InProcess) -> None:
    done(catalog, "ALTER TABLE db.t SET ('target-file-size' = '16 mb')")
    assert catalog.table("db.t").options["target-file-size"] == "16 mb"
    done(catalog, "ALTER TABLE db.t RESET ('target-file-size')")
    assert "target-file-size" not in catalog.table("db.t").options


@pytest.mark.parametrize(
    ("text", "keys", "options"),
    [
        ("(id INT PRIMARY KEY NOT ENFORCED, n INT) WITH ('connector' = 'paimon', 'bucket' = '2')", ("id",), {"bucket": "2"}),
        ("(id INT, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2')", ("id",), {"bucket": "2"}),
        ("(id INT, n INT) CLUSTERED BY (id) INTO 4 BUCKETS", (), {"bucket": "4", "bucket-key": "id"}),
        ("(id INT, n INT) USING paimon CLUSTERED BY (id, n) INTO 4 BUCKETS COMMENT 'x'", (), {"bucket": "4", "bucket-key": "id,n"}),
    ],
)
def test_tables_are_created_in_other_engines_forms(text: str, keys: tuple[str, ...], options: dict[str, str], catalog: InProcess) -> None:
    done(catalog, f"CREATE TABLE db.new {text}")
    table: Table = catalog.table("db.new")
    assert table.primary_keys == keys
    assert {key: value for key, value in table.options.items() if key in {"bucket", "bucket-key", "connector"}} == options


def test_a_database_is_dropped_with_its_tables(catalog: InProcess) -> None:
    done(catalog, "DROP DATABASE db CASCADE")
    assert catalog.list_databases() == []


def test_replace_where_names_the_way(catalog: InProcess) -> None:
    with pytest.raises(InvalidArgument, match=r"REPLACE WHERE takes partition columns \(.*for other rows write DELETE FROM t"):
        done(catalog, "INSERT INTO db.t REPLACE WHERE id = 5 VALUES (5, 'a', 3)")
    with pytest.raises(InvalidArgument, match="= NULL is true for no row"):
        done(catalog, "INSERT INTO db.t REPLACE WHERE day = NULL VALUES (5, 'a', 3)")


def test_times_that_no_duration_can_hold_are_refused(catalog: InProcess) -> None:
    with pytest.raises(InvalidArgument, match="RETAIN 99999999999 days is too long"):
        done(catalog, "ALTER TABLE db.t CREATE TAG x RETAIN 99999999999 DAYS")
    with pytest.raises(InvalidArgument, match="'time_retained' must be a shorter time"):
        done(catalog, "CALL sys.create_tag(table => 'db.t', tag => 'x', time_retained => '99999999999 d')")
    assert not tags(catalog)
    done(catalog, "CALL sys.expire_partitions(table => 'db.t', expiration_time => '9999999 d', timestamp_formatter => 'yyyy-MM-dd')")
    assert catalog.table("db.t").count() == 3
