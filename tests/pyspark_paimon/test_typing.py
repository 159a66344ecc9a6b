"""What a type checker says of user code: one run of mypy, with pandas, polars and Spark typed and pyarrow not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_paimon import typing as public_types

ROOT = Path(__file__).parent.parent.parent
USER_CODE = """
from collections.abc import Iterator
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyspark.pandas as ps
import pyspark.sql as spark
from pyspark.sql import types as st

from pyspark_paimon import Catalog, Scan, Table
from pyspark_paimon.pandas import read_paimon
from pyspark_paimon.typing import Data, Filter, Keys, Schema


def writes(table: Table, batches: Iterator[pa.RecordBatch], scan: Scan, frame: spark.DataFrame, on_spark: "ps.DataFrame[int]") -> None:
    columns = {"id": [1], "city": ["Oslo"]}
    rows = [{"id": 1, "city": "Oslo"}]
    good: list[Data] = [pa.table(columns), batches, scan, frame, on_spark, columns, rows, pd.DataFrame(columns), pl.DataFrame(columns)]
    for data in good:
        table.write(data)
    table.write(pl.LazyFrame(columns), mode="overwrite", partition={"city": "Oslo"})
    table.write({"id": np.array([1]), "city": pd.Series(["Oslo"])})
    table.write(row for row in rows)
    table.write([])
    table.write(5)  # error
    table.write("Oslo")  # error
    table.write(None)  # error
    table.write([1, 2])  # error
    table.write(columns, mode="insert")  # error
    with table.writer() as writer:
        writer.write(rows)
        writer.write(5)  # error


def reads(table: Table, column: spark.Column, session: spark.SparkSession) -> int:
    filters: list[Filter] = ["id > 3", None, pc.field("id") > 3, column > 3]
    for wanted in filters:
        table.scan(wanted).narrowed(wanted)
    table.scan("id = :id", ["id"], params={"id": 3}, timestamp=datetime.now())
    table.scan(5)  # error
    table.scan(pl.col("id") > 3)
    table.scan(pd.Series([True]))  # error
    table.scan(lambda row: True)  # error
    table.scan("id > 3", columns=5)  # error
    table.scan("id > 3", timestamp=3.5)  # error
    table.scan().to_spark("local")  # error
    frame: spark.DataFrame = table.scan().to_spark(session)
    read_paimon("/t", spark=session, filter="id > 3").head()
    read_paimon("/t", filter=5)  # error
    return table.scan().to_pandas().shape[0] + frame.count() + table.scan().to_polars().height


def changes(table: Table, keys: Keys, column: spark.Column) -> None:
    table.lookup({"id": [1]})
    table.lookup(pl.DataFrame({"id": [1]}))
    table.delete(keys=keys)
    table.lookup(5)  # error
    table.lookup([1, 2])
    table.delete(5)  # error
    table.update("id = 1", set={"n": pc.field("n") + 1, "m": column + 1}, values={"city": "Oslo"})
    table.update("id = 1", ["city"])  # error
    table.update(True, values={"city": "Oslo"})  # error
    merge = table.merge([{"id": 1}], on="id").when_matched_delete(column > 3).when_not_matched_insert_all("s.id > 3")
    merge.when_matched_delete(5)  # error
    table.merge(5, on="id")  # error
    table.merge([{"id": 1}], on=5)  # error
    done: int = merge.execute().updated
    table.compact(filter=5)  # error


def creates(catalog: Catalog, struct: st.StructType, session: spark.SparkSession) -> Table:
    schemas: list[Schema] = ["id BIGINT", pa.schema([("id", pa.int64())]), struct]
    for schema in schemas:
        catalog.create_table("t", schema, primary_keys=["id"])
    Table.create("/t", 5)  # error
    Table.create("/t", ["id"])  # error
    Table.open("/t", "local")  # error
    table = Table.open("/t", session).add_column("n", "INT").add_column(["a", "b"], pa.int32()).change_type("n", st.LongType())
    table.add_column("n", int)  # error
    return table.rename_column(5, "m")  # error
"""


@pytest.mark.long
def test_a_type_checker_accepts_good_calls_and_reports_wrong_ones(tmp_path: Path) -> None:
    code = tmp_path / "user_code.py"
    code.write_text(USER_CODE)
    options = ["--strict", "--ignore-missing-imports", "--follow-imports=silent", "--cache-dir", str(ROOT / ".mypy_cache" / "user_code")]
    command = [sys.executable, "-m", "mypy", "--config-file=", *options, str(code)]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert not done.stderr
    reported = {int(line): message for line, message in re.findall(r"user_code\.py:(\d+): error: (.*)", done.stdout)}
    wrong = {number: line for number, line in enumerate(USER_CODE.splitlines(), 1) if line.endswith("# error")}
    assert {number: message for number, message in reported.items() if number not in wrong} == {}
    assert {number: line for number, line in wrong.items() if number not in reported} == {}


@pytest.mark.parametrize("name", public_types.__all__)
def test_types_exist_at_run_time_and_say_what_they_are(name: str) -> None:
    found = getattr(public_types, name)
    assert not isinstance(found, str)
    assert re.search(rf'(?m)^class {name}\(Protocol\):\n    """\S|^{name}: TypeAlias = .*\n"""\S', Path(public_types.__file__).read_text())
