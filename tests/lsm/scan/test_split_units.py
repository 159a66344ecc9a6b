from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import ColumnRef, Compare, Op
from lsm.scan.split_units import units
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from tests.examples import some

WRITE_ONLY = {"bucket": "1", "write-only": "true"}


def rows(ids, text: str) -> pa.Table:
    return pa.table({"id": pa.array(list(ids), pa.int64()), "v": [f"{text} {i}" for i in ids]})


def cut(table: Table, **scan) -> list:
    engine = LocalEngine(table.path)
    plan = engine.plan(table.scan(**scan)._request)
    return [unit for split in plan.splits for unit in units(split, table.table_schema)]


def read(table: Table, parts) -> list[tuple]:
    engine, request = LocalEngine(table.path), table.scan()._request
    batches = [batch for part in parts for batch in engine.read_split(request, part)]
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def test_files_whose_keys_no_other_file_has_are_parts_of_their_own_and_overlapping_ones_stay_together(tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, v STRING", primary_keys=["id"], options=WRITE_ONLY)
    for ids in (range(10), range(20, 30), range(25, 40), range(50, 60)):
        table.write(rows(ids, "a"))
    parts = cut(table)
    assert [(len(part.files), part.raw_convertible) for part in parts] == [(1, True), (2, False), (1, True)]
    assert [row[0] for row in read(table, parts)] == [*range(10), *range(20, 40), *range(50, 60)]
    assert [row[0] for row in read(table, parts[1:2])] == list(range(20, 40))


def test_each_part_keeps_the_deletion_vector_of_its_file(tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, v STRING", options={"deletion-vectors.enabled": "true"})
    table.write(rows(range(10), "a"))
    table.write(rows(range(10, 20), "b"))
    table.delete("id = 13")
    parts = cut(table)
    assert [part.deletion_files is not None for part in parts] == [False, True]
    assert [row[0] for row in read(table, parts[1:])] == [10, 11, 12, *range(14, 20)]


def test_parts_of_a_filtered_plan_are_whole(tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, v STRING", primary_keys=["id"], options=WRITE_ONLY)
    table.write(rows(range(10), "old"))
    table.write(rows(range(5, 15), "new"))
    engine = LocalEngine(table.path)
    request = table.scan()._request
    plan = engine.plan(request.model_copy(update={"predicate": None}))
    narrow = engine.plan(type(request)(predicate=Compare(ColumnRef("v"), Op.EQ, "old 7"), columns=("id", "v"), snapshot_id=2))
    assert [len(unit.files) for split in narrow.splits for unit in units(split, table.table_schema)] in ([], [2])
    assert len(plan.splits) == 1


@settings(max_examples=some(10), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 15)), min_size=1, max_size=6))
def test_parts_read_apart_have_the_rows_of_the_whole(tmp_path_factory, writes):
    table = Table.create(tmp_path_factory.mktemp("u") / "t", "id BIGINT, v STRING", primary_keys=["id"], options=WRITE_ONLY)
    model = {}
    for number, (start, count) in enumerate(writes):
        table.write(rows(range(start, start + count), str(number)))
        model |= {i: f"{number} {i}" for i in range(start, start + count)}
    parts = cut(table)
    assert read(table, parts) == sorted(model.items())
    names = [file.file_name for part in parts for file in part.files]
    assert len(names) == len(set(names)) == len(writes)
