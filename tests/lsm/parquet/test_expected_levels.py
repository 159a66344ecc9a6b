"""Levels and names that a footer must have are those that the encoder writes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lsm.parquet.expected_footer import _expected_leaves as expected_leaves
from manifest.schema.validation import build_schema

TYPES = [
    "INT",
    "INT NOT NULL",
    "ARRAY<STRING>",
    "ARRAY<STRING NOT NULL> NOT NULL",
    "ARRAY<ARRAY<INT>>",
    "MAP<STRING, INT>",
    "MAP<INT, ARRAY<INT NOT NULL>> NOT NULL",
    "MULTISET<STRING>",
    "ROW<a INT, b STRING NOT NULL>",
    "ROW<a INT NOT NULL> NOT NULL",
    "ARRAY<ROW<a INT, b MAP<STRING, ROW<c INT NOT NULL>>>>",
    "ROW<a ROW<b ROW<c ARRAY<INT>>>, d MAP<INT, ROW<e INT>>>",
]


@pytest.mark.parametrize("text", TYPES)
def test_the_levels_of_every_leaf_are_those_that_are_written(text: str) -> None:
    (field,) = build_schema(f"v {text}").fields
    arrow = pa.schema([pa.field("v", field.type.arrow, nullable=field.type.nullable)])
    sink = pa.BufferOutputStream()
    pq.write_table(arrow.empty_table(), sink)
    written = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    leaves = [written.column(number) for number in range(len(written))]
    found = list(expected_leaves(field.type, (), 0, 0))
    assert [(definition, repetition) for _, _, definition, repetition in found] == [
        (leaf.max_definition_level, leaf.max_repetition_level) for leaf in leaves
    ]
    for (_, names, _, _), leaf in zip(found, leaves, strict=True):
        path = leaf.path.split(".")[1:]
        assert len(names) == len(path)
        assert all(name in {None, part} for name, part in zip(names, path, strict=True))
