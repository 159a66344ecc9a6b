"""Keys in all forms that people give them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pyspark_paimon import InvalidArgument, Table

ONE: dict[str, Callable[[list[int]], Any]] = {
    "list": list,
    "tuple": tuple,
    "range": lambda values: range(values[0], values[-1] + 1),
    "set": set,
    "numpy": np.array,
    "Arrow array": pa.array,
    "chunked": lambda values: pa.chunked_array([values[:1], values[1:]]),
    "pandas": pd.Series,
    "pandas index": pd.Index,
    "polars": pl.Series,
    "dict": lambda values: {"id": values},
    "dicts": lambda values: [{"id": value} for value in values],
    "numbers of numpy": lambda values: [np.int64(value) for value in values],
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table.create(tmp_path / "t", "id BIGINT, name STRING", primary_keys=["id"], options={"bucket": "2"})
    table.write({"id": [1, 2, 3, 4], "name": ["a", "b", "c", "d"]})
    return table


@pytest.mark.parametrize("form", ONE)
def test_values_of_a_single_key_column(table: Table, form: str) -> None:
    assert table.lookup(ONE[form]([2, 3]), columns=["name"]).to_pydict() == {"name": ["b", "c"]}
    assert table.delete(keys=ONE[form]([2, 3])).rows == 2
    assert table.count() == 2


@pytest.mark.parametrize("empty", [[], (), set(), np.array([], np.int64), pa.array([], pa.int64()), {"id": []}])
def test_no_keys_give_no_rows(table: Table, empty: Any) -> None:
    assert table.lookup(empty).num_rows == 0


def test_one_key_as_a_dict_of_values(table: Table) -> None:
    assert table.lookup({"id": 3}).to_pylist() == [{"id": 3, "name": "c"}]
    assert table.lookup({"id": np.int64(3)}).num_rows == 1
    assert table.lookup({"id": 9}, missing="null").to_pylist() == [{"id": 9, "name": None}]


def test_tuples_of_a_key_of_several_columns(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "u", "v INT, a INT, b STRING", primary_keys=["b", "a"], options={"bucket": "1"})
    table.write({"a": [1, 1, 2], "b": ["x", "y", "x"], "v": [10, 20, 30]})
    assert table.lookup([("x", 2), ("y", 1)])["v"].to_pylist() == [30, 20]
    assert table.lookup({"a": 1, "b": "x"})["v"].to_pylist() == [10]
    for wrong in ([1, 2], [("x",)], [("x", 1), ("x", 1, 2)]):
        with pytest.raises(InvalidArgument, match=r"\[\(b, a\), \.\.\.\]"):
            table.lookup(wrong)


def test_texts_are_no_lists_of_letters(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "s", "name STRING, n INT", primary_keys=["name"], options={"bucket": "1"})
    table.write({"name": ["ab", "a", "b"], "n": [1, 2, 3]})
    assert table.lookup(["ab"])["n"].to_pylist() == [1]
    assert table.lookup({"name": "ab"})["n"].to_pylist() == [1]
    with pytest.raises(InvalidArgument, match="keys must be"):
        table.lookup("ab")
