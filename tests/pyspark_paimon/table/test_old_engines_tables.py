"""Tables of older engines are read, checked and written as those of today; what we cannot write there is refused by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table, UnsupportedTable
from tests.interop.old_tables import OLD, READ_ONLY, TABLES, by_version, rows_of

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"


@pytest.mark.parametrize(("version", "name"), TABLES)
@pytest.mark.sampled(3)
def test_the_rows_of_an_old_table_are_read_and_pruned(version: str, name: str) -> None:
    table = Table.open(OLD / version / name)
    assert table.scan().to_arrow().sort_by([("id", "ascending"), ("n", "ascending")]).to_pylist() == rows_of(name)
    assert table.scan("id = 17 AND n = 1").to_arrow()["s"].to_pylist() == ["s17"]
    assert table.scan("id < 0").plan().splits == ()
    assert table.scan().count() == len(rows_of(name))
    assert table.fsck("deep").problems == ()


@pytest.mark.parametrize(("version", "name"), [(version, name) for version, name in TABLES if name not in READ_ONLY])
@pytest.mark.sampled(3)
def test_an_old_table_is_written_and_compacted(tmp_path, version: str, name: str) -> None:
    shutil.copytree(OLD / version / name, tmp_path / "t")
    table = Table.open(tmp_path / "t")
    row = rows_of(name)[5] | {"s": "new", "n": 9}
    table.write(pa.Table.from_pylist([row, row | {"id": 1000}], table.schema))
    table.delete("id = 7")
    table.compact(full=True)
    old = [kept for kept in rows_of(name) if kept["id"] != 7 and (name == "append" or kept["id"] != row["id"])]
    found = table.scan().to_arrow().sort_by([("id", "ascending"), ("n", "ascending")]).to_pylist()
    assert found == sorted([*old, row, row | {"id": 1000}], key=lambda kept: (kept["id"], kept["n"]))
    assert table.fsck("deep").problems == ()


@pytest.mark.parametrize(("version", "name"), [(version, name) for version, name in TABLES if name in READ_ONLY])
def test_what_is_only_read_is_refused_with_the_options_name(tmp_path, version: str, name: str) -> None:
    shutil.copytree(OLD / version / name, tmp_path / "t")
    table = Table.open(tmp_path / "t")
    with pytest.raises(UnsupportedTable, match=READ_ONLY[name]):
        table.write(pa.Table.from_pylist(rows_of(name)[:1], table.schema))
    assert table.scan().count() == len(rows_of(name))


def test_the_docs_say_what_is_done_with_tables_of_which_engine() -> None:
    assert by_version() in PAGE.read_text(encoding="utf-8")
