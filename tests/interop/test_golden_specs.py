"""The golden tables are those that ``remake_golden`` makes: the same names, columns, keys and options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manifest.schema.validation import build_schema
from manifest.store import FileStore
from manifest.types.data_type import DataField, DataType
from pyspark_paimon import Table
from tests.golden_rows import ENGINES_VIEW, GOLDEN, expected_rows, golden_rows
from tests.interop.engine import Engine
from tests.interop.remake_golden import remade
from tests.interop.specs import Spec
from tests.interop.specs_golden import GOLDEN as SPECS

LISTED = {line["table"]: line for line in json.loads((GOLDEN / "tables.json").read_text(encoding="utf-8"))}


def test_there_is_a_specification_for_every_table() -> None:
    assert {spec.name for spec in SPECS} == {*LISTED} == {path.parent.name for path in GOLDEN.glob("*/table")}


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_specification_says_what_the_table_is(spec: Spec) -> None:
    first = FileStore.open(str(GOLDEN / spec.name / "table")).schemas.get(0)
    fields = [DataField(number, name, DataType.from_json(kind)) for number, (name, kind) in enumerate(spec.fields.items())]
    built = build_schema(fields, primary_keys=spec.keys, partition_keys=spec.partitions, options=dict(spec.options))
    assert (first.fields, first.primary_keys, first.partition_keys) == (built.fields, built.primary_keys, built.partition_keys)
    assert dict(spec.options) == LISTED[spec.name]["options"]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(spec, marks=[pytest.mark.slow] if spec.name == "tagged" else [pytest.mark.interop, pytest.mark.long])  # Java's engine
        for spec in SPECS
    ],
)
def test_a_table_made_again_has_the_form_of_the_one_that_is_there(engine: Engine, spec: Spec, tmp_path: Path) -> None:
    listed = remade(engine, spec, tmp_path)
    assert listed.keys() == LISTED[spec.name].keys()
    old = GOLDEN / spec.name
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in old.iterdir()}
    for name in ("files.json", "plans.json", "snapshots.json"):
        known, new = (json.loads((home / name).read_text(encoding="utf-8")) for home in (old, tmp_path))
        assert {*new[0]} <= {*known[0]}
    table = Table.open(tmp_path / "table")
    assert golden_rows(table.scan(options=ENGINES_VIEW).to_arrow(), table.table_schema) == expected_rows(
        tmp_path / "expected.jsonl", table.table_schema
    )
