"""Writing through ``Table`` in process: inputs, modes, kinds of rows, partitions, answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pyspark_paimon import InvalidArgument, SchemaMismatch, Table, UnknownColumn, UnsupportedOption

ROWS = pa.table({"id": [1, 2, 3], "city": ["Oslo", "Lima", None], "n": pa.array([1, None, 3], pa.int32())})


def rows_of(table: Table, order="id") -> list[dict[str, object]]:
    return table.scan().to_arrow().sort_by(order).to_pylist()


def cities(table: Table) -> dict[int, str]:
    return {row["id"]: row["city"] for row in rows_of(table)}


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        ROWS.to_batches()[0],
        ROWS.to_reader(),
        [ROWS.to_batches()[0]],
        iter([ROWS.slice(0, 1), ROWS.slice(1)]),
        ROWS.to_pandas(),
        ROWS.select(["n", "city", "id"]),
        ROWS.to_pandas().convert_dtypes(),
        pl.from_arrow(ROWS),
        pa.table({"id": ROWS["id"], "city": ROWS["city"].dictionary_encode(), "n": ROWS["n"].cast(pa.int64())}),
    ],
    ids=["table", "batch", "reader", "batches", "tables", "pandas", "other order", "pandas nullable", "polars", "other types"],
)
def test_rows_are_taken_from(create, data) -> None:
    table = create()
    result = table.write(data)
    assert (result.rows, result.files, result.snapshot_id, result.compact_snapshot_id) == (3, 1, 1, None)
    assert rows_of(table) == ROWS.to_pylist()


def test_pandas_objects_become_nested_values(create) -> None:
    table = create("id BIGINT, tags ARRAY<STRING>, attrs MAP<STRING, INT>, price DECIMAL(6, 2), day DATE")
    frame = pd.DataFrame(
        {
            "id": [1, 2],
            "tags": [["a", "b"], None],
            "attrs": [{"x": 1}, None],
            "price": [Decimal("1.50"), None],
            "day": [date(2024, 1, 31), None],
        },
        index=["ignored", "too"],
    )
    table.write(frame)
    first, second = rows_of(table)
    assert first == {"id": 1, "tags": ["a", "b"], "attrs": [("x", 1)], "price": Decimal("1.50"), "day": date(2024, 1, 31)}
    assert second == {"id": 2, "tags": None, "attrs": None, "price": None, "day": None}


def test_an_empty_input_commits_nothing(create) -> None:
    table = create()
    for nothing in (ROWS.slice(0, 0), [], ROWS.to_pandas().head(0)):
        assert table.write(nothing).snapshot_id is None
    assert table.snapshots().num_rows == 0
    assert table.scan().to_arrow().num_rows == table.scan().count() == 0


def test_of_equal_keys_in_one_input_the_last_row_wins(create) -> None:
    table = create()
    table.write(pa.table({"id": [1, 2, 1], "city": ["first", "x", "last"], "n": pa.array([9, 9, 1], pa.int32())}))
    assert cities(table) == {1: "last", 2: "x"}


def test_order_by_chooses_among_equal_keys(create) -> None:
    table = create()
    rows = pa.table({"id": [1, 1, 1, 2], "city": ["a", "b", "c", "d"], "n": pa.array([2, 3, None, 1], pa.int32())})
    table.write(rows, order_by="n")
    assert cities(table) == {1: "b", 2: "d"}
    with pytest.raises(UnknownColumn, match="nn"):
        table.write(rows, order_by="nn")


def test_a_later_write_upserts(create) -> None:
    table = create(options={"bucket": "3"})
    table.write(ROWS)
    table.write(pa.table({"id": [2, 4], "city": ["Rome", "Bonn"], "n": pa.array([None, None], pa.int32())}))
    assert cities(table) == {1: "Oslo", 2: "Rome", 3: None, 4: "Bonn"}
    assert table.scan().count() == 4


def test_row_kinds_insert_update_and_delete(create) -> None:
    table = create()
    table.write(ROWS)
    changes = pa.table(
        {
            "id": [1, 2, 2, 3, 4],
            "city": ["Oslo", "Lima", "Rome", None, "Bonn"],
            "n": pa.array([1, None, 5, 3, 6], pa.int32()),
            "_row_kind": ["-D", "-U", "+U", "-D", "+I"],
        }
    )
    assert table.write(changes).rows == 5
    assert cities(table) == {2: "Rome", 4: "Bonn"}
    assert table.files()["delete_row_count"].to_pylist() == [0, 2]


WHOLE = "id BIGINT, n INT NOT NULL, s STRING NOT NULL, t TIMESTAMP(3) NOT NULL, a ARRAY<INT> NOT NULL, r ROW<x INT, y STRING> NOT NULL, d DECIMAL(10, 2) NOT NULL"
GONE = {"id": [1, 3], "_row_kind": ["-D", "-D"]}
REMOVES = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}


def whole_row(number: int) -> dict[str, object]:
    at = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    return {"id": number, "n": number, "s": "s", "t": at, "a": [1], "r": {"x": 1, "y": "y"}, "d": Decimal("1.50")}


@pytest.mark.parametrize("options", [{}, {"bucket": "-1"}, {"changelog-producer": "lookup"}, REMOVES], ids=str)
@pytest.mark.parametrize("form", [pa.table, pd.DataFrame, lambda rows: [*pa.table(rows).to_pylist(), {**whole_row(9), "_row_kind": "+I"}]])
def test_a_delete_needs_no_more_than_its_key(create, options, form) -> None:
    table = create(WHOLE, options=options)
    table.write([whole_row(number) for number in range(4)])
    data = form(GONE)
    table.write(data)
    for _ in range(2):
        assert rows_of(table) == [whole_row(number) for number in ((0, 2, 9) if isinstance(data, list) else (0, 2))]
        table.compact(full=True)
    with pytest.raises(SchemaMismatch, match="column 'n' is missing"):
        table.write({"id": [0, 2], "_row_kind": ["-D", "+I"]})


def test_a_delete_has_its_kind_in_a_column_and_needs_no_others(create) -> None:
    table = create("id BIGINT, op STRING NOT NULL, n INT NOT NULL", options={"rowkind.field": "op"})
    table.write([{"id": 1, "op": "+I", "n": 1}, {"id": 2, "op": "+I", "n": 2}])
    table.write({"id": [1], "op": ["-D"]})
    assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"sequence.field": "at"}, "'at' is missing: by option 'sequence.field'"),
        ({"changelog-producer": "input"}, "'n' is missing, and is INT NOT NULL"),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}, "'n' is missing, and is INT NOT NULL"),
    ],
    ids=str,
)
def test_a_delete_has_what_somebody_reads_of_it(create, options, told) -> None:
    table = create("id BIGINT, n INT NOT NULL, at BIGINT", options=options)
    with pytest.raises(SchemaMismatch, match=told):
        table.write({"id": [1], "_row_kind": ["-D"]})
    assert table.snapshots().num_rows == 0


@pytest.mark.parametrize("kinds", [pa.array(["+I", "+X"]), pa.array(["+I", None]), pa.array([0, 3])])
def test_unknown_row_kinds_are_refused(create, kinds) -> None:
    table = create("id BIGINT")
    with pytest.raises(SchemaMismatch, match="_row_kind"):
        table.write(pa.table({"id": [1, 2], "_row_kind": kinds}))
    assert table.snapshots().num_rows == 0


def test_an_append_table_keeps_every_row_and_takes_no_kinds(create) -> None:
    table = create("id BIGINT, city STRING", primary_keys=())
    for _ in range(2):
        table.write(pa.table({"id": [1, 1], "city": ["a", "b"]}))
    assert table.scan().count() == 4
    with pytest.raises(InvalidArgument, match="_row_kind"):
        table.write(pa.table({"id": [1], "city": ["a"], "_row_kind": ["-D"]}))


@pytest.mark.parametrize("bucket", ["-1", "2"])
def test_an_append_table_may_have_buckets(create, bucket) -> None:
    options = {"bucket": bucket, **({"bucket-key": "id"} if bucket != "-1" else {})}
    table = create("id BIGINT, city STRING", primary_keys=(), options=options)
    table.write(pa.table({"id": range(100), "city": ["x"] * 100}))
    assert set(table.files()["bucket"].to_pylist()) == ({0} if bucket == "-1" else {0, 1})
    assert table.scan("id = 7").to_arrow().num_rows == 1


@pytest.mark.local_files
def test_directories_of_dates_are_named_by_their_text(tmp_path) -> None:
    def names(columns: str, keys: list[str], **options: str) -> list[str]:
        table = Table.create(tmp_path / str(len(list(tmp_path.iterdir()))), columns, partition_keys=keys, options=options)
        given = {"id": 1, "day": date(2026, 11, 18), "at": datetime.fromisoformat("2026-11-18T09:00")}
        table.write([{name: given[name] for name in table.table_schema.names}])
        assert table.scan("day = DATE '2026-11-18'").count() == 1
        found = sorted(path.name for path in Path(table.path).glob("day=*"))
        table.drop_partitions([{"day": "2026-11-18"}])
        assert table.scan().count() == 0
        return found

    assert names("id INT, day DATE", ["day"]) == ["day=2026-11-18"]
    assert names("id INT, day DATE", ["day"], **{"partition.legacy-name": "true"}) == ["day=20775"]
    # The text of a time may depend on the zone of the process.
    assert names("id INT, day DATE, at TIMESTAMP", ["day", "at"]) == ["day=20775"]


@pytest.mark.parametrize(
    "options", [{"partition.legacy-name": None}, {"partition.legacy-name": "true"}, {"partition.default-name": "none"}]
)
def test_names_of_directories_that_have_files_cannot_change(tmp_path: Path, options: dict[str, str | None]) -> None:
    table = Table.create(tmp_path / "t", "id INT, day DATE", partition_keys=["day"])
    table.write([{"id": 1, "day": date(2024, 1, 31)}, {"id": 2, "day": None}])
    with pytest.raises(UnsupportedOption, match="cannot change once the table exists"):
        table.alter_options(options)
    assert Table.open(table.path).scan().to_arrow().num_rows == 2


def test_append_writes_new_versions_of_keys_as_in_spark(create) -> None:
    table = create()
    table.write({"id": [1, 2], "city": ["Oslo", "Lima"], "n": [1, 2]}, "append")
    done = table.write({"id": [2], "city": ["Rome"], "n": [3]}, mode="append")
    assert done.rows == 1
    assert table.scan(order_by="id").to_arrow()["city"].to_pylist() == ["Oslo", "Rome"]
    assert table.history()["operation"].to_pylist() == ["upsert", "upsert"]


def test_mode_must_go_with_the_table(create) -> None:
    keyed, plain = create(name="keyed"), create("id BIGINT", name="plain", primary_keys=())
    for table, mode, says in ((plain, "upsert", "append"), (keyed, "merge", "'append', 'upsert' or 'overwrite'")):
        with pytest.raises(InvalidArgument, match=says):
            table.write(pa.table({"id": [1]}), mode=mode)
    with pytest.raises(InvalidArgument, match="overwrite"):
        keyed.write(ROWS, partition={"city": "Oslo"})
    with pytest.raises(InvalidArgument, match="primary key"):
        plain.write(pa.table({"id": [1]}), order_by="id")
    with pytest.raises(UnsupportedOption, match="no-such-option"):
        keyed.write(ROWS, options={"no-such-option": "1"})


def test_overwrite_replaces_an_unpartitioned_table(create) -> None:
    table = create()
    table.write(ROWS)
    table.write(ROWS.slice(0, 1), mode="overwrite")
    assert cities(table) == {1: "Oslo"}
    assert table.snapshots()["commit_kind"].to_pylist() == ["APPEND", "OVERWRITE"]
    table.write(ROWS.slice(0, 0), mode="overwrite")
    assert table.scan().count() == 0


@pytest.fixture
def by_day(create) -> Table:
    table = create("id BIGINT, day DATE, hour INT, city STRING", primary_keys=("id", "day", "hour"), partition_keys=("day", "hour"))
    table.write(day_rows([(1, 1, 0), (2, 1, 1), (3, 2, 0)], "old"))
    return table


def day_rows(rows, city) -> pa.Table:
    ids, days, hours = zip(*rows, strict=True)
    return pa.table({"id": ids, "day": [date(2024, 1, d) for d in days], "hour": pa.array(hours, pa.int32()), "city": [city] * len(ids)})


def test_rows_go_to_their_partitions(by_day) -> None:
    assert by_day.files()["partition"].to_pylist() == [f"day=2024-01-0{d}/hour={h}" for d, h in ((1, 0), (1, 1), (2, 0))]
    plan = by_day.scan("day = DATE '2024-01-02'").plan()
    assert [len(split.files) for split in plan.splits] == [1]


def test_overwrite_replaces_the_partitions_of_the_rows(by_day) -> None:
    by_day.write(day_rows([(9, 1, 0)], "new"), mode="overwrite")
    assert cities(by_day) == {2: "old", 3: "old", 9: "new"}


def test_static_overwrite_replaces_what_the_specification_names(by_day) -> None:
    by_day.write(day_rows([(9, 1, 7)], "new"), mode="overwrite", partition={"day": date(2024, 1, 1)})
    assert cities(by_day) == {3: "old", 9: "new"}
    by_day.write(day_rows([(8, 2, 0)], "new"), mode="overwrite", partition={"day": "2024-01-02", "hour": 0})
    assert cities(by_day) == {8: "new", 9: "new"}


def test_overwrite_of_the_whole_table_when_not_dynamic(by_day) -> None:
    by_day.write(day_rows([(9, 1, 0)], "new"), mode="overwrite", options={"dynamic-partition-overwrite": "false"})
    assert cities(by_day) == {9: "new"}


def test_a_row_outside_a_static_overwrite_is_refused(by_day) -> None:
    before = cities(by_day)
    for partition in ({"day": "2024-01-01"}, {"day": "2024-01-01", "hour": 0}):
        with pytest.raises(InvalidArgument, match="outside"):
            by_day.write(day_rows([(9, 1, 0), (9, 2, 0)], "new"), mode="overwrite", partition=partition)
    assert cities(by_day) == before
    assert by_day.list_orphan_files(older_than=2**61) == []


def test_partition_specifications_are_checked(by_day, create) -> None:
    rows = day_rows([(9, 1, 0)], "new")
    with pytest.raises(UnknownColumn, match="city"):
        by_day.write(rows, mode="overwrite", partition={"city": "x"})
    with pytest.raises(InvalidArgument, match="some of its columns"):
        by_day.write(rows, mode="overwrite", partition={})
    with pytest.raises(InvalidArgument, match=r"2\.5"):
        by_day.write(rows, mode="overwrite", partition={"hour": 2.5})
    with pytest.raises(InvalidArgument, match="no partitions"):
        create(name="plain").write(ROWS, mode="overwrite", partition={"id": 1})


def test_a_repeated_commit_id_is_answered_and_not_written_again(create) -> None:
    table = create("id BIGINT", primary_keys=())
    rows = pa.table({"id": [1, 2]})
    first = table.write(rows, commit_id="nightly-1")
    again = table.write(rows, commit_id="nightly-1")
    assert (first.replayed, again.replayed) == (False, True)
    assert again.snapshot_id == first.snapshot_id
    assert table.scan().count() == 2
    assert len(table.list_orphan_files(older_than=2**61)) == 0
    with pytest.raises(InvalidArgument, match="commit_id"):
        table.write(rows, commit_id="../escape")


def test_a_reader_is_streamed_and_spills(create) -> None:
    table = create("id BIGINT, v DOUBLE", options={"bucket": "2", "write-buffer-size": "1 mb", "write-buffer-spillable": "true"})
    pulled = []

    def batches() -> Iterator[pa.RecordBatch]:
        for at in range(40):
            pulled.append(at)
            ids = np.arange(at * 5000, (at + 1) * 5000, dtype=np.int64)[::-1].copy()
            yield pa.record_batch({"id": ids % 60_000, "v": ids.astype(np.float64)})

    schema = pa.schema([("id", pa.int64()), ("v", pa.float64())])
    result = table.write(pa.RecordBatchReader.from_batches(schema, batches()))
    assert result.rows == 200_000
    assert pulled == list(range(40))
    read = table.scan().to_arrow().sort_by("id")
    assert read["id"].to_pylist() == list(range(60_000))
    newest = np.arange(60_000) + np.where(np.arange(60_000) < 20_000, 180_000, 120_000)
    assert np.array_equal(read["v"].to_numpy(), newest.astype(np.float64))


def test_progress_is_told(tmp_path) -> None:
    events = []
    table = Table.create(tmp_path / "t", "id BIGINT", primary_keys=["id"], options={"bucket": "2"}, progress=events.append)
    table.write(iter([pa.table({"id": [1, 2]}), pa.table({"id": [3]})]))
    table.write(pa.table({"id": [1, 2, 3]}))
    table.compact(full=True)
    assert [event.done for event in events if event.stage == "write"] == [2, 3, 3, 3, 3]  # each ends with all of it
    assert sorted({event.done for event in events if event.stage == "compact"}) == [0, 1, 2]


def test_a_column_without_a_single_value_may_have_no_type(create) -> None:
    table = create("id BIGINT, tags ARRAY<STRING NOT NULL>, attrs MAP<STRING, INT NOT NULL>, city STRING")
    table.write(pa.table({"id": [1], "tags": pa.nulls(1), "attrs": pa.nulls(1), "city": pa.nulls(1)}))
    assert rows_of(table) == [{"id": 1, "tags": None, "attrs": None, "city": None}]
