"""Names from other libraries are answered with the call that does the same."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import InvalidArgument, Table
from pyspark_paimon.table.other_names import CALLS, SCAN_CALLS
from pyspark_paimon.table.scan import Scan


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_name_of_another_library_is_answered_with_ours(tmp_path: Path, name: str) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT")
    with pytest.raises(AttributeError, match=re.escape(f"'{name}'; use table.{CALLS[name]}")):
        getattr(table, name)
    methods = re.findall(r"(?:^|and |or )(\w+)", CALLS[name])
    assert all(hasattr(Table, method) or method == "pyspark_paimon" for method in methods)


@pytest.mark.parametrize("name", sorted(SCAN_CALLS))
def test_a_scan_answers_names_of_other_libraries_and_a_table_by_its_scan(tmp_path: Path, name: str) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT")
    with pytest.raises(AttributeError, match=re.escape(f"Scan has no '{name}'; use scan.{SCAN_CALLS[name]}")):
        getattr(table.scan(), name)
    if not hasattr(Table, name):
        with pytest.raises(AttributeError, match=re.escape(f"Table has no '{name}'; use table.")):
            getattr(table, name)
    methods = re.findall(r"(?:^| or )(?!pyarrow)(\w+)", SCAN_CALLS[name])
    assert methods
    assert all(hasattr(Scan, method) for method in methods)


def test_names_of_the_other_class_and_typos_are_answered(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT")
    for name in dir(Scan):
        if not name.startswith("_") and not hasattr(table, name):
            with pytest.raises(AttributeError, match=f"Table has no '{name}'; use table\\."):
                getattr(table, name)
    for name in ("write", "compact", "lookup", "history", "insert"):
        with pytest.raises(AttributeError, match=rf"Scan has no '{name}'; use table\."):
            getattr(table.scan(), name)
    with pytest.raises(AttributeError, match=r"^Scan has no 'to_pandsa', did you mean 'to_pandas'$"):
        table.scan().to_pandsa  # noqa: B018
    with pytest.raises(AttributeError, match=r"^Scan has no 'order_by'; use table\.scan\(filter, order_by"):
        table.scan().order_by  # noqa: B018
    assert pickle.loads(pickle.dumps(table.scan())).count() == copy.copy(table.scan()).count() == 0


def test_unknown_names_and_copies_are_as_usual(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT")
    with pytest.raises(AttributeError, match=r"^Table has no 'moon'$"):
        table.moon  # noqa: B018
    assert pickle.loads(pickle.dumps(table)).path == copy.copy(table).path == table.path


def test_length_and_items_name_the_method(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT")
    table.write({"id": [1, 2]})
    with pytest.raises(TypeError, match=re.escape("Table has no len(); use table.count()")):
        len(table)
    for item in ("id", 0, slice(3), ["id"]):
        with pytest.raises(TypeError, match=r"use table\.scan\(filter, columns=\[\.\.\.\]\) or table\.lookup\(keys\)"):
            table[item]
    assert table
    assert [batch.num_rows for batch in table] == [2]
    assert pa.table(table).num_rows == 2


@pytest.mark.parametrize("kind", [str, Path])
def test_the_class_called_with_a_path_names_open_and_create(tmp_path: Path, kind: type) -> None:
    with pytest.raises(InvalidArgument, match=r"Table\.open\(path\), or Table\.create"):
        Table(kind(tmp_path / "t"))
