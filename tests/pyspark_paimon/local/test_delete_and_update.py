"""Deleting and updating rows by filter, of every kind of table, against a dictionary."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from manifest.entry.index_manifest import DELETION_VECTORS
from manifest.io.errors import CommitConflict, SchemaMismatch, UnmergeableRows
from manifest.snapshot.snapshot import CommitKind
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument, UnknownColumn
from pyspark_paimon import Table
from tests.build import keyed
from tests.examples import some

DDL = "id BIGINT, p INT, n INT, s STRING"
KINDS = {
    "keys": ((), {"bucket": "2"}),
    "keys, vectors": ((), {"bucket": "2", "deletion-vectors.enabled": "true"}),
    "append": ((), {}),
    "append, vectors": ((), {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"}),
    "partitioned": (("p",), {}),
    "partitioned, vectors": (("p",), {"deletion-vectors.enabled": "true"}),
    "bucketed": ((), {"bucket": "2", "bucket-key": "id"}),
    "bucketed, vectors": ((), {"bucket": "2", "bucket-key": "id", "deletion-vectors.enabled": "true"}),
}


def make(path: Path | str, kind: str) -> Table:
    partitions, options = KINDS[kind]
    keys = ("id", *partitions) if kind.startswith("keys") else ()
    return Table.create(f"{path}/t", DDL, primary_keys=keys, partition_keys=partitions, options=options)


def rows_of(rows: list[tuple]) -> pa.Table:
    types = {"id": pa.int64(), "p": pa.int32(), "n": pa.int32(), "s": pa.string()}
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    return pa.table({name: pa.array(list(column), kind) for (name, kind), column in zip(types.items(), columns, strict=True)})


def read(table: Table) -> list[tuple]:
    return sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=repr)


def files(table: Table) -> set[str]:
    return set(table.files()["file_name"].to_pylist())


def dead(table: Table) -> dict[str, int]:
    store = FileStore.open(table.path)
    entries = [entry for entry in store.index_entries(store.snapshots.latest()) if entry.index_type == DELETION_VECTORS]
    return {vector.data_file: vector.cardinality for entry in entries for vector in entry.vectors}


def sample(count: int = 20) -> list[tuple]:
    return [(key, key % 3, key * 10, f"s{key}") for key in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_deleted_rows_are_gone_and_counted(table_root: str, kind: str) -> None:
    table = make(table_root, kind)
    table.write(rows_of(sample()))
    assert table.delete("n >= 100 OR s = 's3'").rows == 11
    assert read(table) == sorted((row for row in sample() if row[2] < 100 and row[3] != "s3"), key=repr)
    assert table.scan().count() == 9
    assert table.delete("n = 12345").snapshot_id is None
    assert table.delete("TRUE").rows == 9
    assert read(table) == []


@pytest.mark.parametrize("kind", KINDS)
def test_updated_rows_have_their_new_values_computed_from_the_old(table_root: str, kind: str) -> None:
    table = make(table_root, kind)
    table.write(rows_of(sample()))
    assert table.update("id < 5", set={"n": pc.field("n") + pc.field("id").cast(pa.int32()), "s": None}).rows == 5
    wanted = [(key, p, n + key, None) if key < 5 else (key, p, n, s) for key, p, n, s in sample()]
    assert read(table) == sorted(wanted, key=repr)
    table.update("id = 7", values={"S": "seven"})
    assert table.scan("s = 'seven'").count() == 1
    assert table.update("id = 99", set={"n": 0}).rows == 0


@pytest.mark.parametrize("kind", ["append, vectors", "partitioned, vectors", "bucketed, vectors"])
def test_with_vectors_no_file_is_rewritten(table_root: str, kind: str) -> None:
    table = make(table_root, kind)
    table.write(rows_of(sample()))
    before = files(table)
    table.delete("id = 3")
    assert files(table) == before
    assert sum(dead(table).values()) == 1
    result = table.update("id IN (4, 5)", set={"n": -1})
    assert before < files(table)
    assert sum(dead(table).values()) == 3
    snapshot = FileStore.open(table.path).snapshots.get(result.snapshot_id)
    assert snapshot.commit_kind is CommitKind.OVERWRITE
    table.compact(full=True)
    assert dead(table) == {}
    assert read(table) == sorted(
        (row[:2] + ((-1,) if row[0] in {4, 5} else (row[2],)) + row[3:] for row in sample() if row[0] != 3), key=repr
    )


def test_without_vectors_only_files_with_such_rows_are_rewritten_and_rows_keep_their_order(table_root: str) -> None:
    table = make(table_root, "append")
    table.write(rows_of(sample(5)))
    table.write(rows_of([(9, 9, 9, "b"), (8, 8, 8, "a")]))
    first = files(table)
    table.update("id = 3", values={"s": "x"})
    assert len(files(table) & first) == 1
    assert sorted(table.scan("p < 5").to_arrow()["s"].to_pylist()) == ["s0", "s1", "s2", "s4", "x"]
    assert len(files(table) - first) == 1
    assert len(read(table)) == 7


def test_a_file_whose_bounds_do_not_tell_that_it_has_no_such_row_stays(table_root: str) -> None:
    table = make(table_root, "append")
    table.write(rows_of(sample(5)))
    first = files(table)
    table.write(rows_of([(0, 0, 0, "a"), (9, 9, 9, "b")]))
    second = files(table) - first
    assert table.delete("id = 3").rows == 1
    assert second <= files(table)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({}, InvalidArgument),
        ({"id": 3}, InvalidArgument),
        ({"nothing": 3}, UnknownColumn),
        ({"n": 1, "N": 2}, InvalidArgument),
        ({"n": "many"}, UnknownColumn),
        ({"n": "'many'"}, SchemaMismatch),
        ({"n": 2**40}, SchemaMismatch),
        ({"n": pc.field("nothing")}, InvalidArgument),
    ],
)
def test_what_cannot_be_set_is_refused(table_root: str, values: dict[str, Any], error: type[Exception]) -> None:
    table = make(table_root, "keys")
    table.write(rows_of(sample(3)))
    with pytest.raises(error):
        table.update("TRUE", set=values)
    assert read(table) == sample(3)


@pytest.mark.parametrize("kind", ["partitioned", "bucketed"])
def test_columns_that_say_where_a_row_lies_are_not_updated(table_root: str, kind: str) -> None:
    table = make(table_root, kind)
    with pytest.raises(InvalidArgument, match="cannot be updated"):
        table.update("TRUE", set={"p" if kind == "partitioned" else "id": 1})


def test_a_change_needs_a_filter(table_root: str) -> None:
    table = make(table_root, "append")
    for change in (lambda: table.delete(None), lambda: table.update(None, set={"n": 1})):
        with pytest.raises(InvalidArgument, match="'TRUE' means every row"):
            change()


def test_null_is_no_value_of_a_not_null_column(table_root: str) -> None:
    table = keyed(f"{table_root}/t", "id BIGINT, n INT NOT NULL")
    with pytest.raises(SchemaMismatch, match="cannot be set to null"):
        table.update("TRUE", set={"n": None})


def test_values_of_every_kind_fit_their_columns(table_root: str) -> None:
    ddl = "id BIGINT, d DATE, t TIMESTAMP(3), m DECIMAL(8, 2), b BOOLEAN, x BYTES, a ARRAY<INT>, k MAP<STRING, INT>"
    table = keyed(f"{table_root}/t", ddl)
    table.write(pa.table({"id": [1, 2]} | {name: pa.nulls(2) for name in "dtmbxak"}))
    values = {
        "d": dt.date(2024, 2, 29),
        "t": dt.datetime.combine(dt.date(2024, 1, 1), dt.time(2, 3, 4, 5000)),
        "m": Decimal("12.50"),
        "b": True,
        "x": b"\x00\x01",
        "a": [1, None],
        "k": [("one", 1)],
    }
    table.update("id = 2", set=values)
    assert table.scan("id = 2").to_arrow().to_pylist() == [{"id": 2, **values}]


def test_a_sum_is_updated_by_what_is_missing_to_it(table_root: str) -> None:
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = Table.create(f"{table_root}/t", "id BIGINT, n INT", primary_keys=["id"], options=options)
    for n in (1, 2**31 - 2):
        table.write(pa.table({"id": [1], "n": pa.array([n], pa.int32())}))
    table.update("id = 1", set={"n": -1})
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "n": -1}]
    with pytest.raises(UnmergeableRows, match="'n': the difference of the new and the old sum does not fit int32"):
        table.update("id = 1", set={"n": 2**31 - 1})


@pytest.mark.parametrize("kind", ["append", "append, vectors", "keys, vectors"])
def test_a_change_that_another_commit_overtook_is_evaluated_again(table_root: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other commit adds a row that the filter finds, too."""
    from manifest.commit.file_store_commit import FileStoreCommit

    table = make(table_root, kind)
    table.write(rows_of(sample(4)))
    name = "replace" if kind == "append" else "commit"
    publish, overtaken = getattr(FileStoreCommit, name), []

    def late(self: FileStoreCommit, messages: Any, *args: Any, **fields: Any) -> Any:
        if "read" in fields and not overtaken:
            overtaken.append(True)
            Table.open(table.path).write(rows_of([(key, 0, 30, "late") for key in range(10, 20)]))
        return publish(self, messages, *args, **fields)

    monkeypatch.setattr(FileStoreCommit, name, late)
    assert table.update("n >= 30", values={"s": "found"}).rows == 11
    assert overtaken
    assert table.scan("s = 'found'").count() == 11
    assert sum(row[3] == "late" for row in read(table)) == 0


@pytest.mark.local_files
def test_endless_races_end_in_a_conflict_and_leave_nothing(table_root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from manifest.commit.file_store_commit import FileStoreCommit

    table = make(table_root, "append, vectors")
    table.write(rows_of(sample(4)))
    before = sorted(str(path) for path in Path(table.path).rglob("*"))

    def beaten(*_: Any, **__: Any) -> None:
        raise CommitConflict("somebody was faster")

    monkeypatch.setattr(FileStoreCommit, "commit", beaten)
    with pytest.raises(CommitConflict):
        table.update("n = 10", values={"s": "x"})
    assert sorted(str(path) for path in Path(table.path).rglob("*")) == sorted({*before, f"{table.path}/index"})


ROW = st.tuples(st.integers(0, 15), st.integers(0, 1), st.integers(0, 9), st.sampled_from(["a", "b", None]))
STEP = st.one_of(
    st.tuples(st.just("write"), st.lists(ROW, max_size=12)),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("update"), st.integers(0, 9)),
    st.tuples(st.just("compact"), st.booleans()),
)


@settings(deadline=None, max_examples=some(6), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.sampled_from(sorted(KINDS)), st.lists(STEP, min_size=2, max_size=10))
def test_any_history_equals_a_list_of_rows(kind: str, steps: list[tuple]) -> None:
    with TemporaryDirectory() as directory:
        table = make(directory, kind)
        model: list[tuple] = []
        for what, value in steps:
            if what == "write":
                table.write(rows_of(value))
                if kind.startswith("keys"):
                    model = list({row[0]: row for row in [*model, *value]}.values())
                else:
                    model += value
            elif what == "delete":
                gone = [row for row in model if row[2] == value]
                assert table.delete(f"n = {value}").rows == len(gone)
                model = [row for row in model if row[2] != value]
            elif what == "update":
                assert table.update(f"n >= {value}", set={"n": pc.field("n") - 1}, values={"s": "u"}).rows == sum(
                    row[2] >= value for row in model
                )
                model = [(*row[:2], row[2] - 1, "u") if row[2] >= value else row for row in model]
            else:
                table.compact(full=value)
            assert read(table) == sorted(model, key=repr)
            assert table.scan().count() == len(model)


def index_files(table: Table) -> dict[str, set[str]]:
    """The data files of each index file."""
    store = FileStore.open(table.path)
    return {entry.file_name: {vector.data_file for vector in entry.vectors} for entry in store.index_entries(store.snapshots.latest())}


def test_index_files_roll_and_only_those_with_other_marks_are_replaced(table_root: str) -> None:
    options = {"deletion-vectors.enabled": "true", "deletion-vector.index-file.target-size": "50 B"}
    table = Table.create(f"{table_root}/t", DDL, options=options)
    for start in range(0, 60, 10):
        table.write(rows_of([(key, 0, key % 10, "") for key in range(start, start + 10)]))
    table.delete("n = 3")
    first = index_files(table)
    assert sorted(map(len, first.values())) == [2, 2, 2]
    table.delete("id = 14")
    second = index_files(table)
    (gone,) = first.keys() - second.keys()
    (made,) = second.keys() - first.keys()
    assert first[gone] == second[made]
    assert sorted(dead(table).values()) == [1, 1, 1, 1, 1, 2]
    assert table.scan().count() == 53


def test_a_bucket_has_one_index_file(table_root: str) -> None:
    table = make(table_root, "bucketed, vectors")
    table.alter_options({"compaction.min.file-num": "100", "compaction.delete-ratio-threshold": "1.0"})
    for start in range(0, 60, 10):
        table.write(rows_of([(key, 0, key % 10, "") for key in range(start, start + 10)]))
        table.delete(f"n = 3 AND id >= {start}")
    assert len(index_files(table)) == 2
    assert sum(dead(table).values()) == 6


def test_compaction_rewrites_a_file_with_too_many_dead_rows(table_root: str) -> None:
    table = make(table_root, "append, vectors")
    table.write(rows_of(sample(1000)))
    table.alter_options({"target-file-size": "1 kb"})  # so that the file is not a small one
    before = files(table)
    table.delete("id < 100")
    table.compact()
    assert files(table) == before
    table.delete("id < 300")
    table.compact()
    assert not files(table) & before
    assert dead(table) == {}
    assert table.scan().count() == 700
