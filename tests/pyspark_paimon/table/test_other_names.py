"""Names from other libraries are answered with the call that does the same."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

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
    assert not hasattr(table, "__len__")
    assert pickle.loads(pickle.dumps(table)).path == copy.copy(table).path == table.path


@pytest.mark.parametrize("kind", [str, Path])
def test_the_class_called_with_a_path_names_open_and_create(tmp_path: Path, kind: type) -> None:
    with pytest.raises(InvalidArgument, match=r"Table\.open\(path\), or Table\.create"):
        Table(kind(tmp_path / "t"))
