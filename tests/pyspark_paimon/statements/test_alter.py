"""A statement that is not understood to its last word changes nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from fileindex.base.errors import PaimonError
from pyspark_paimon import Table
from pyspark_paimon.statements.alter import alter_table
from pyspark_paimon.statements.words import Words


@pytest.mark.parametrize(
    "change",
    [
        "DROP COLUMN n junk",
        "ADD COLUMNS (x INT, y INT",
        "ADD COLUMN x INT, y",
        "RENAME COLUMN n TO m and more",
        "ALTER COLUMN n TYPE BIGINT COMMENT",
        "SET TBLPROPERTIES ('a' = 'b') more",
    ],
)
def test_what_is_read_to_its_half_changes_nothing(tmp_path, change) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, n INT", primary_keys=["id"], options={"bucket": "1"})
    words = Words(f"ALTER TABLE t {change}")
    words.take("ALTER", "TABLE")
    with pytest.raises(PaimonError):
        alter_table(SimpleNamespace(find=lambda _: table), words)  # type: ignore[arg-type]
    assert table.table_schema.id == 0
