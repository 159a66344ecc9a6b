"""What people get wrong, as a table: each call is refused with a typed error that names the thing and says what to do.

``mistakes.txt`` has the rows. All of them share tables, which no mistake changes.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

from paimon_base.errors import PaimonError
from pyspark_paimon import Catalog, Table
from pyspark_paimon.plugins.cli.app import app

LINES = Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8").splitlines()
ROWS = [line.split(" | ", 2) for line in LINES if line and not line.startswith("#")]
COLUMNS = "id BIGINT, city STRING, n INT, price DECIMAL(10, 2), day DATE, seen TIMESTAMP(3), tags ARRAY<STRING>, attrs MAP<STRING, INT>"
ONE = {"bucket": "1"}


class ToldByCommand(Exception):
    """What a command wrote on standard error."""


def command(*arguments: str) -> None:
    """Raises ``ToldByCommand``: the error's type and text, or ``Usage: ...``."""
    done = CliRunner().invoke(app, list(arguments), input="")
    assert done.exit_code, done.output
    raise ToldByCommand(f"{'Usage: ' if 'Usage:' in done.output else ''}{' '.join(done.output.split())}")


def one_row(**values: Any) -> list[dict[str, Any]]:
    return [{"id": 1, "city": "Oslo", "n": 1, "price": None, "day": None, "seen": None, "tags": None, "attrs": None, **values}]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the calls may use."""
    tmp = tmp_path_factory.mktemp("mistakes")
    pk = Table.create(tmp / "pk", COLUMNS, primary_keys=["id"], options=ONE)
    pk.write(one_row())
    pk.write(one_row(id=2))
    pk.create_tag("friday", 1)
    pk.create_branch("trial", "friday")
    ap = Table.create(tmp / "ap", "id BIGINT, city STRING")
    part = Table.create(tmp / "part", "id BIGINT, day STRING", partition_keys=["day"])
    part.write([{"id": 1, "day": "x"}])
    summed = {**ONE, "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    catalog = Catalog(tmp / "w")
    catalog.create_database("sales")
    for name in ("orders", "taken"):
        catalog.create_table(f"sales.{name}", "id INT")
    gone = Table.create(tmp / "gone", "id INT")
    pickled = pickle.dumps(gone)
    shutil.rmtree(tmp / "gone")
    (tmp / "folder").mkdir()
    (tmp / "file.txt").write_text("x")
    return {
        "Table": Table,
        "Catalog": Catalog,
        "pa": pa,
        "pc": pc,
        "pd": pd,
        "pl": pl,
        "np": np,
        "Decimal": Decimal,
        "datetime": datetime,
        "pickle": pickle,
        "pickled_gone": pickled,
        "command": command,
        "rows": one_row,
        "catalog": catalog,
        "TMP": str(tmp),
        "pk": pk,
        "ap": ap,
        "part": part,
        "empty": Table.create(tmp / "empty", "id BIGINT"),
        "dates": Table.create(tmp / "dates", "id BIGINT, day DATE", partition_keys=["day"]),
        "first": Table.create(tmp / "first", "id BIGINT, n INT", primary_keys=["id"], options={**ONE, "merge-engine": "first-row"}),
        "agg": Table.create(tmp / "agg", "id BIGINT, n INT", primary_keys=["id"], options=summed),
        "rest": {field.name: pa.nulls(1, field.type) for field in pk.schema if field.name != "id"},
        "new": str(tmp / "new"),
        "folder": str(tmp / "folder"),
        "file": str(tmp / "file.txt"),
        "warehouse": str(tmp / "w"),
    }


@pytest.mark.parametrize(("call", "error", "words"), ROWS, ids=[row[0][:70] for row in ROWS])
def test_a_mistake_is_typed_named_and_told_what_to_do(names: dict[str, Any], call: str, error: str, words: str) -> None:
    run: Callable[[], object] = eval(f"lambda: {call}", dict(names))
    with pytest.raises((PaimonError, ToldByCommand)) as told:
        run()
    text = str(told.value).replace(names["TMP"], "TMP")
    kind = type(told.value).__name__
    if isinstance(told.value, ToldByCommand):
        kind, _, text = text.partition(": ")
    assert kind == error, text
    assert [word for word in words.split(" ~ ") if word not in text] == [], text
    assert not Path(names["new"]).exists()


def test_there_are_many() -> None:
    assert len({row[0] for row in ROWS}) == len(ROWS) >= 300
