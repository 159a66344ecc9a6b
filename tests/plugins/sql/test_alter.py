"""A statement that is not understood to its last word changes nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from paimon_base.errors import PaimonError
from pyspark_paimon import Table
from pyspark_paimon.plugins.sql.alter import alter_table
from pyspark_paimon.plugins.sql.text.words import TokenCursor
from tests.build import keyed


def altered(tmp_path, change: str) -> Table:
    table = keyed(tmp_path / "t", "id BIGINT, n INT")
    words = TokenCursor(f"ALTER TABLE t {change}")
    words.take("ALTER", "TABLE")
    names = SimpleNamespace(find=lambda _: table, renew=lambda _: None, spark=SimpleNamespace(createDataFrame=lambda _: None))
    try:
        alter_table(names, words)  # type: ignore[arg-type]
    except PaimonError as error:
        assert table.table_schema.id == 0
        raise error from None
    return table


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ("ADD COLUMNS (a INT, b INT COMMENT 'two' AFTER id)", ("id", "b", "n", "a")),
        ("ADD COLUMN a INT FIRST, b INT", ("a", "id", "n", "b")),
        ("DROP COLUMNS (n)", ("id",)),
        ("ADD COLUMNS (m MAP<STRING, ARRAY<ROW<x INT NOT NULL COMMENT 'x', y INT>>> AFTER id, s STRUCT<a: INT>)", ("id", "m", "n", "s")),
        ("SET TBLPROPERTIES ('comment' = 'told', 'target-file-size' = '1 mb')", ("id", "n")),
    ],
)
def test_a_statement_is_one_version_of_the_schema(tmp_path, change, columns) -> None:
    schema = altered(tmp_path, change).table_schema
    assert (schema.id, schema.names) == (1, columns)


@pytest.mark.parametrize(
    "change",
    [
        "DROP COLUMN n junk",
        "ADD COLUMNS (x INT, y INT",
        "ADD COLUMN x INT, y",
        "RENAME COLUMN n TO m and more",
        "ALTER COLUMN n TYPE BIGINT COMMENT",
        "SET TBLPROPERTIES ('a' = 'b') more",
        "ADD COLUMNS (x INT, n INT)",
        "DROP COLUMNS (n, y)",
    ],
)
def test_what_is_wrong_in_one_place_changes_nothing(tmp_path, change) -> None:
    with pytest.raises(PaimonError):
        altered(tmp_path, change)
