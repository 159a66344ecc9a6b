"""Tables written by Paimon's Java engine read as it reads them, and are planned at least as sharply."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest

from fileindex.predicate.tree import Compare, In, leaves
from lsm.read.metrics import ReadReport
from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from manifest.entry.data_file import ORC_UNBOUNDED
from manifest.store import FileStore
from sparkexpr.values.column_type import FLOATS
from tests.golden_rows import ENGINES_VIEW, GOLDEN, expected_rows, golden_predicate, golden_rows

NAMES = [table["table"] for table in json.loads((GOLDEN / "tables.json").read_text())]


def open_golden(name, **options):
    return FileStore.open(GOLDEN / name / "table", dynamic_options={**ENGINES_VIEW, **options})


def scan(store, predicate=None, snapshot=None, columns=None, report=None):
    names = store.schema.names if columns is None else columns
    pinned = snapshot or store.snapshots.latest()
    plan = ScanPlanner(store).plan(predicate, snapshot=pinned)
    batches = [b for split in plan.splits for b in read_split(store, split, columns=names, predicate=predicate, report=report)]
    return plan, pa.Table.from_batches(batches, schema=pa.schema([store.schema.arrow.field(name) for name in names]))


@pytest.mark.parametrize("name", NAMES)
def test_reads_the_rows_that_the_engine_reads(name):
    store = open_golden(name)
    _, table = scan(store)
    assert golden_rows(table, store.schema) == expected_rows(GOLDEN / name / "expected.jsonl", store.schema)


def test_reads_a_tag_as_it_was():
    store = open_golden("tagged")
    _, table = scan(store, snapshot=store.snapshots.tag("v1"))
    assert golden_rows(table, store.schema) == expected_rows(GOLDEN / "tagged" / "expected-v1.jsonl", store.schema)


@pytest.mark.parametrize("name", NAMES)
def test_every_retained_snapshot_has_as_many_rows_as_the_engine_sees(name):
    store = open_golden(name)
    for known in json.loads((GOLDEN / name / "snapshots.json").read_text()):
        snapshot = store.snapshots.get(known["snapshot"])
        past = store.with_schema(store.schemas.get(snapshot.schema_id)).with_options(ENGINES_VIEW)
        _, table = scan(past, snapshot=snapshot)
        assert table.num_rows == known["rows"], known["snapshot"]


def plans(name):
    return json.loads((GOLDEN / name / "plans.json").read_text())


def follows_another_order(predicate, schema):
    """Whether Java's total order of floats, in which 0.0 is no -0.0, answers otherwise than Spark SQL."""
    floats = [leaf for leaf in leaves(predicate) if schema.column_types[leaf.column.name].kind in FLOATS]
    return any((isinstance(leaf, Compare) and leaf.value == 0) or (isinstance(leaf, In) and 0 in leaf.values) for leaf in floats)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(3)
def test_filters_return_the_engines_rows_from_no_more_files(name):
    store = open_golden(name)
    for known in plans(name):
        predicate = golden_predicate(known["filter"], store.schema)
        plan, table = scan(store, predicate)
        if predicate is None or not follows_another_order(predicate, store.schema):
            assert table.num_rows == known["rows"], known["filter"]
        ours = {file.file_name for split in plan.splits for file in split.files}
        theirs = {file["file"] for split in known["splits"] for file in split["files"]}
        assert ours <= theirs or asks_what_orc_does_not_bound(predicate, store.schema, ours - theirs), known["filter"]


def asks_what_orc_does_not_bound(predicate, schema, files):
    """Whether these files are there because the engine believes what ORC's statistics say of floats, which leave NaN out, and of CHAR."""
    unbounded = any(schema.column_types[leaf.column.name].kind in ORC_UNBOUNDED for leaf in leaves(predicate))
    return unbounded and all(name.endswith(".orc") for name in files)


@pytest.mark.parametrize("name", NAMES)
def test_unfiltered_plans_are_the_engines(name):
    store = open_golden(name)
    (known,) = [plan for plan in plans(name) if plan["filter"] is None]
    plan, _ = scan(store)
    ours = sorted((split.bucket, split.total_buckets, split.raw_convertible, *sorted(vectors(split))) for split in plan.splits)
    theirs = sorted(
        (split["bucket"], split["totalBuckets"], split["rawConvertible"], *sorted((f["file"], cardinality(f)) for f in split["files"]))
        for split in known["splits"]
    )
    assert ours == theirs


def vectors(split):
    return [
        (file.file_name, -1 if vector is None else vector.cardinality)
        for file, vector in zip(split.files, split.deletion_files or [None] * len(split.files), strict=True)
    ]


def cardinality(file):
    return -1 if file["deletion"] is None else file["deletion"]["cardinality"]


def test_an_index_beside_the_file_selects_rows_at_read_time():
    store = open_golden("append_idx")
    known = next(plan for plan in plans("append_idx") if plan["filter"] == {"op": "=", "col": "flag", "value": True})
    report = ReadReport()
    _, table = scan(store, golden_predicate(known["filter"], store.schema), report=report)
    assert table.num_rows == known["rows"]
    assert report.index.used["flag: bitmap"] == 3
    assert report.rows_indexed == sum(int(entry["index"].removeprefix("BITMAP:")) for entry in known["index_eval"])
    assert not report.index.warnings


def test_nan_counts_as_greatest_and_zeros_as_equal():
    store = open_golden("edges")
    column = store.schema.names.index("d")
    _, everything = scan(store)
    values = everything.column(column).to_pylist()
    for op, value in (("=", 0.0), (">", 1e300), ("=", math.nan), (">=", math.inf)):
        predicate = golden_predicate({"op": op, "col": "d", "value": value}, store.schema)
        _, table = scan(store, predicate, columns=["d"])
        greater = [v for v in values if v is not None and (math.isnan(v) or (not math.isnan(value) and v > value))]
        equal = [v for v in values if v is not None and (v == value or (math.isnan(v) and math.isnan(value)))]
        expected = {"=": equal, ">": greater, ">=": {id(v): v for v in [*greater, *equal]}.values()}[op]
        assert table.num_rows == len(list(expected)), (op, value)


@pytest.mark.parametrize("name", ["pk_dv", "pk_dv64", "pk_dv_embedded", "pk_first"])
def test_rows_that_wait_for_the_engines_compaction_are_merged(name):
    """An append and the compaction after it read alike: each append of these tables was compacted next, as the engine reads it."""
    store = open_golden(name, **{"deletion-vectors.merge-on-read": "true"})
    rows = {}
    for known in json.loads((GOLDEN / name / "snapshots.json").read_text()):
        plan, table = scan(store, snapshot=store.snapshots.get(known["snapshot"]))
        rows[known["snapshot"]] = golden_rows(table, store.schema)
        if known["kind"] == "COMPACT":
            assert len(rows[known["snapshot"]]) == known["rows"]
            assert rows[known["snapshot"]] == rows.get(known["snapshot"] - 1, rows[known["snapshot"]])
            assert rows[known["snapshot"]] == golden_rows(
                scan(open_golden(name), snapshot=store.snapshots.get(known["snapshot"]))[1], store.schema
            )
        else:
            assert any("not compacted yet" in stage.note for stage in plan.report)
    assert len({len(found) for found in rows.values()}) > 1
