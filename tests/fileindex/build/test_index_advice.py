"""A bitmap of a column that is nearly unique is told about, with its bytes, when it is asked for and when it is built; others are not."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

from pyspark_paimon import Table

ROWS = pa.table({"id": range(5000), "city": [f"c{at % 7}" for at in range(5000)], "token": [f"t{at}" for at in range(5000)]})


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def create(path: str, columns: str) -> Table:
    options = {"bucket": "1", "file-index.bitmap.columns": columns, "file-index.bloom-filter.columns": "id"}
    return Table.create(path, "id BIGINT, city STRING, token STRING", ["id"], options=options)


def test_a_build_tells_once_what_a_bitmap_of_nearly_unique_values_costs(tmp_path, caplog):
    table = create(f"{tmp_path}/t", "token,city")
    assert told(caplog) == []
    for _ in range(2):
        table.write(ROWS)
    (line,) = told(caplog)
    assert "bitmap of 'token'" in line
    assert "5,000 of 5,000 rows" in line
    size = int(line.partition(" takes ")[2].partition(" bytes")[0].replace(",", ""))
    assert size > 5000 * len("t4999")
    assert "bloom-filter" in line


def test_who_asks_for_a_bitmap_of_a_key_is_told_before_anything_is_written(tmp_path, caplog):
    table = create(f"{tmp_path}/t", "id")
    (line,) = told(caplog)
    assert "'id'" in line
    caplog.clear()
    table.add_column("more", "INT")
    assert told(caplog) == []
    table.alter_options({"file-index.bitmap.columns": "city"})
    assert told(caplog) == []
    table.alter_options({"file-index.bitmap.columns": "id,city"})
    assert len(told(caplog)) == 1
