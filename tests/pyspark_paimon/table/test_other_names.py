"""Names from other libraries are answered with the call that does the same."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import InvalidArgument, Table
from pyspark_paimon.table.other_names import CALLS


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_name_of_another_library_is_answered_with_ours(tmp_path: Path, name: str) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT")
    with pytest.raises(AttributeError, match=re.escape(f"'{name}'; use table.{CALLS[name]}")):
        getattr(table, name)
    methods = re.findall(r"(?:^|and |or )(\w+)", CALLS[name])
    assert all(hasattr(Table, method) or method == "pyspark_paimon" for method in methods)


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
