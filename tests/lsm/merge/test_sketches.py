"""Sketches united by their own library: the bytes are those that Java's engine makes of the same sketches."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.io.errors import UnmergeableRows, UnsupportedTable
from manifest.options.aggregate_functions import FUNCTIONS
from paimon_base.errors import UnsupportedOption
from pyspark_paimon import Table

pytest.importorskip("_datasketches", reason="the package 'datasketches' has no wheel for this Python")

UNIONS = json.loads((Path(__file__).parents[2] / "golden_sketches.json").read_text())
"""By function triples of two sketches and what the engine made of them, in hex."""


def made(path: Path, function: str) -> Table:
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.s.aggregate-function": function}
    return Table.create(path, "id INT, s BYTES", primary_keys=["id"], options=options)


def put(table: Table, sketches: list[bytes | None]) -> None:
    table.write(pa.table({"id": pa.array(range(len(sketches)), pa.int32()), "s": pa.array(sketches, pa.binary())}))


@pytest.mark.parametrize("function", ["theta_sketch", "hll_sketch"])
def test_unions_have_the_bytes_that_java_gives_them(tmp_path: Path, function: str) -> None:
    triples = [tuple(map(bytes.fromhex, triple)) for triple in UNIONS[function]]
    table = made(tmp_path / "t", function)
    put(table, [*(first for first, _, _ in triples), None, triples[0][0]])
    put(table, [*(second for _, second, _ in triples), triples[0][0], None])
    wanted = [*(union for _, _, union in triples), triples[0][0], triples[0][0]]
    assert table.scan(order_by="id").to_arrow()["s"].to_pylist() == wanted
    table.compact(full=True)
    assert table.scan(order_by="id").to_arrow()["s"].to_pylist() == wanted


@pytest.mark.parametrize("function", ["theta_sketch", "hll_sketch"])
def test_what_is_no_sketch_is_refused(tmp_path: Path, function: str) -> None:
    table = made(tmp_path / "t", function)
    put(table, [b"none"])
    put(table, [b"either"])
    with pytest.raises(UnmergeableRows, match=f"column 's': a value is not a sketch of '{function}'"):
        table.scan().to_arrow()


def test_without_the_library_sketches_are_refused_with_the_way_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t", "hll_sketch")
    put(table, [bytes.fromhex(UNIONS["hll_sketch"][2][0])])
    put(table, [bytes.fromhex(UNIONS["hll_sketch"][2][1])])
    monkeypatch.setitem(sys.modules, "_datasketches", None)
    monkeypatch.setattr("manifest.options.aggregate_functions.find_spec", lambda _: None)
    assert "pyspark-paimon[sketches]" in str(FUNCTIONS.reason("theta_sketch"))
    with pytest.raises(UnsupportedOption, match="sketches"):
        made(tmp_path / "u", "theta_sketch")
    with pytest.raises(UnsupportedTable, match="sketches"):
        Table.open(tmp_path / "t").scan().to_arrow()
