"""The engine's statistics of ORC files pass over NaN, or know nothing else, or are of padded texts: filters find every row all the same."""

from __future__ import annotations

import math

import pytest

from pyspark_paimon import Table
from tests.golden_rows import GOLDEN

ASKED = ["{} = 1.5", "{} < 2", "{} > 1e308", "{} = double('NaN')", "{} >= double('Infinity')"]


@pytest.mark.parametrize("column", ["c_float", "c_double"])
@pytest.mark.parametrize("name", ["orc_types", "orc_types_pk"])
def test_filters_on_floats_find_all_rows(name: str, column: str) -> None:
    table = Table.open(GOLDEN / name / "table")
    values = table.scan(columns=["id", column]).to_arrow().to_pylist()
    assert any(row[column] is not None and math.isnan(row[column]) for row in values)
    known = [row[column] for row in values if row[column] is not None]
    wanted = [
        sum(value == 1.5 for value in known),
        sum(value < 2 for value in known),
        sum(value > 1e308 or math.isnan(value) for value in known),
        sum(math.isnan(value) for value in known),
        sum(value == math.inf or math.isnan(value) for value in known),
    ]
    assert [table.scan(filter=filter_.format(column)).to_arrow().num_rows for filter_ in ASKED] == wanted


@pytest.mark.parametrize("name", ["orc_types", "orc_types_pk"])
def test_filters_on_char_find_all_rows(name: str) -> None:
    """The least value of the statistics is five blanks."""
    table = Table.open(GOLDEN / name / "table")
    values = [row["c_char"] for row in table.scan(columns=["c_char"]).to_arrow().to_pylist()]
    assert 0 < values.count("") == table.scan(filter="c_char = ''").to_arrow().num_rows
