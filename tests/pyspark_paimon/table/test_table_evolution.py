"""Altering tables that have rows: every old row reads as its columns are now, whatever was altered, written and merged between."""

from __future__ import annotations

import datetime as dt
from contextlib import ExitStack
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.snapshot.snapshot import ReadState
from manifest.store import FileStore
from paimon_base.thresholds import Thresholds, use_thresholds
from pyspark_paimon import CastFailed, CommitConflict, InvalidArgument, InvalidSchema, Table
from tests.build import ids
from tests.tiny import tiny_options

OPTIONS = {"bucket": "1", "num-sorted-run.compaction-trigger": "3"}


@pytest.fixture
def table(table_root) -> Table:
    table = Table.create(f"{table_root}/t", "id BIGINT, a INT, b STRING", primary_keys=["id"], options=OPTIONS)
    table.write(pa.table({"id": [1, 2], "a": pa.array([10, None], pa.int32()), "b": ["x", "y"]}))
    return table


def rows(table, where=None):
    return table.scan(where).to_arrow().sort_by("id").to_pylist()


def test_the_engines_own_sequence_of_changes(table):
    table.rename_column("a", "a2").change_type("a2", "BIGINT").add_column("c", "STRING").drop_column("b").add_column("b", pa.int32())
    assert rows(table, "id = 1") == [{"id": 1, "a2": 10, "c": None, "b": None}]
    assert [field.id for field in table.table_schema.fields] == [0, 1, 3, 4]
    table.write(pa.table({"id": [1], "a2": [2**40], "c": ["new"], "b": pa.array([5], pa.int32())}))
    table.compact(full=True)
    assert rows(table) == [{"id": 1, "a2": 2**40, "c": "new", "b": 5}, {"id": 2, "a2": None, "c": None, "b": None}]
    assert rows(table, "a2 > 10000000000 AND b = 5")[0]["id"] == 1


def test_older_snapshots_read_by_their_own_schema(table):
    table.rename_column("a", "z").drop_column("b")
    table.write(pa.table({"id": [3], "z": pa.array([7], pa.int32())}))
    assert table.scan(snapshot=1).to_arrow().column_names == ["id", "a", "b"]
    assert table.scan(snapshot=2).to_arrow().column_names == ["id", "z"]


def test_a_filter_after_a_cast_without_order_finds_every_row(table_root):
    table = Table.create(f"{table_root}/t", "id INT, n INT", options={"file-index.bitmap.columns": "n"})
    for values in ([1, 2, 3], [9, 10, 11], [100, 1000, None]):
        table.write(pa.table({"id": pa.array(values, pa.int32()), "n": pa.array(values, pa.int32())}))
    table.change_type("n", "STRING")
    assert rows(table, "n = '10'") == [{"id": 10, "n": "10"}]
    assert [row["id"] for row in rows(table, "n > '1' AND n < '11'")] == [10, 100, 1000]
    assert rows(table, "n IS NULL") == [{"id": None, "n": None}]
    table.alter_options({"file-index.bitmap.columns": None}).change_type("n", "DECIMAL(2, 0)", force=True)
    assert [row["n"] for row in rows(table, "n IS NOT NULL")] == [Decimal(value) for value in (1, 2, 3, 9, 10, 11)]
    assert sorted(row["id"] or 0 for row in rows(table, "n IS NULL")) == [0, 100, 1000]


def test_text_that_becomes_a_number_fails_where_it_is_none(table):
    table.change_type("b", "INT", force=True)
    with pytest.raises(CastFailed, match=r"column 'b': 'x' is no INT"):
        rows(table)
    assert table.scan(columns=["id", "a"]).count() == 2
    table.change_type("b", "STRING")
    assert rows(table)[0]["b"] == "x"


def test_cut_text_and_padded_text_come_from_old_files(table):
    table.write(pa.table({"id": [3], "a": pa.array([1], pa.int32()), "b": ["longer"]}))
    table.change_type("b", "CHAR(3)", force=True)
    assert [row["b"] for row in rows(table)] == ["x  ", "y  ", "lon"]
    assert [row["id"] for row in rows(table, "b = 'lon'")] == [3]


def test_a_renamed_key_stays_the_key(table):
    table.rename_column("id", "key")
    table.write(pa.table({"key": [2], "a": pa.array([20], pa.int32()), "b": ["new"]}))
    table.compact(full=True)
    assert table.primary_keys == ("key",)
    assert table.scan("key = 2").to_arrow().to_pylist() == [{"key": 2, "a": 20, "b": "new"}]
    assert table.scan().count() == 2


def test_defaults_are_written_from_now_on_and_old_rows_stay_null(table):
    table.add_column("n", "INT", default=7).add_column("day", "DATE", default=dt.date(2024, 1, 31))
    fresh = {"id": [3], "a": pa.nulls(1, pa.int32()), "b": ["z"], "n": pa.nulls(1, pa.int32()), "day": pa.nulls(1, pa.date32())}
    table.write(pa.table(fresh))
    assert [(row["n"], row["day"]) for row in rows(table)] == [(None, None), (None, None), (7, dt.date(2024, 1, 31))]
    table.set_default("n", None)
    table.write(pa.table({**fresh, "id": [4]}))
    assert rows(table, "id = 4")[0]["n"] is None


def test_nested_columns_evolve_in_place(table_root):
    table = Table.create(f"{table_root}/t", "id INT, who ROW<name STRING, age INT>, tags ARRAY<ROW<k STRING>>", options={})
    old = pa.table({"id": [1], "who": [{"name": "Ann", "age": 30}], "tags": [[{"k": "a"}]]}, schema=table.schema)
    table.write(old)
    table.rename_column(["who", "age"], "years").change_type(["who", "years"], "BIGINT").add_column(["who", "mail"], "STRING", first=True)
    table.add_column(["tags", "element", "v"], "DOUBLE").drop_column(["who", "name"])
    assert rows(table) == [{"id": 1, "who": {"mail": None, "years": 30}, "tags": [{"k": "a", "v": None}]}]
    table.write(pa.table({"id": [2], "who": [{"mail": "m", "years": 2**40}], "tags": [[]]}, schema=table.schema))
    assert rows(table)[1]["who"] == {"mail": "m", "years": 2**40}


def test_a_writer_that_opened_before_the_change_is_still_right(table):
    store = FileStore.open(table.path)
    with TableWrite(store, WriteJob(commit_id="early")) as write:
        write.write(pa.table({"id": [9], "a": pa.array([90], pa.int32()), "b": ["early"]}))
        table.rename_column("a", "z").add_column("c", "INT").drop_column("b")
        messages = write.prepare_commit()
        FileStoreCommit(store, "early").commit(messages)
    assert {file["schema_id"] for file in table.files().to_pylist()} == {0}
    assert table.snapshots().to_pylist()[-1]["schema_id"] == 3
    assert rows(table, "id = 9") == [{"id": 9, "z": 90, "c": None}]


def test_a_writer_that_opened_before_the_change_never_rewrites_newer_files(table):
    store = FileStore.open(table.path)
    table.add_column("c", "INT")
    for key in (3, 4, 5):
        table.write(
            pa.table({"id": [key], "a": pa.nulls(1, pa.int32()), "b": [""], "c": pa.array([key], pa.int32())}),
            options={"write-only": "true"},
        )
    with TableWrite(store, WriteJob(commit_id="early")) as write:
        write.write(pa.table({"id": [9], "a": pa.array([90], pa.int32()), "b": ["early"]}))
        FileStoreCommit(store, "early").commit(write.prepare_commit())
    assert [row["c"] for row in rows(table)] == [None, None, 3, 4, 5, None]


def test_rows_computed_before_the_change_conflict(table):
    store = FileStore.open(table.path)
    with TableWrite(store, WriteJob(commit_id="computed")) as write:
        write.write(pa.table({"id": [1], "a": pa.array([0], pa.int32()), "b": ["x"]}))
        messages = write.prepare_commit()
    table.add_column("c", "INT")
    table.write(pa.table({"id": [7], "a": pa.nulls(1, pa.int32()), "b": [""], "c": pa.array([1], pa.int32())}))
    with pytest.raises(CommitConflict, match="schema changed"):
        FileStoreCommit(store, "computed").commit(messages, read=ReadState(store.snapshots.get(1).key))


def test_types_and_defaults_may_be_given_in_any_form(table):
    table.add_column("d", pa.decimal128(9, 3), default=Decimal("1.5")).add_column("flag", "BOOLEAN", default=True)
    fields = {field.name: field for field in table.table_schema.fields}
    assert (str(fields["d"].type), fields["d"].default_value, fields["flag"].default_value) == ("DECIMAL(9, 3)", "1.5", "true")
    for bad in ([], "", ["a", ""]):
        with pytest.raises(InvalidArgument, match="a name or a list of names"):
            table.drop_column(bad)
    with pytest.raises(InvalidArgument, match="a type must be"):
        table.change_type("a", 3)
    with pytest.raises(InvalidArgument, match="default value"):
        table.set_default("a", [1])
    with pytest.raises(InvalidSchema):
        table.set_nullable("id")


class Evolving(RuleBasedStateMachine):
    """Random changes and writes against rows kept as dicts by column id."""

    tiny = False

    def __init__(self):
        super().__init__()
        self.limits = ExitStack()
        if self.tiny:
            self.limits.enter_context(use_thresholds(Thresholds.tiny()))

    def teardown(self):
        self.limits.close()

    @initialize(keyed=st.booleans())
    def make(self, keyed):
        import tempfile

        indexes = {"file-index.bitmap.columns": "c0,c1", "file-index.bloom-filter.columns": "c1"}
        keys = {"primary_keys": ["id"], "options": {**OPTIONS, **indexes}} if keyed else {"options": {"bucket": "-1", **indexes}}
        self.keyed = keyed
        if self.tiny:
            keys["options"] = tiny_options(keys["options"])
        self.table = Table.create(f"{tempfile.mkdtemp()}/t", "id BIGINT, c0 INT, c1 STRING", **keys)
        self.rows: list[dict[int, object]] = []
        self.next_key = 0
        self.names = 2

    def columns(self):
        return {field.name: field for field in self.table.table_schema.fields if field.name != "id"}

    def name(self, data):
        return data.draw(st.sampled_from(sorted(self.columns())))

    @rule(data=st.data(), kind=st.sampled_from(["INT", "STRING", "DOUBLE", "BIGINT"]), first=st.booleans())
    def add(self, data, kind, first):
        self.table.add_column(f"c{self.names}", kind, first=first)
        self.names += 1

    @precondition(lambda self: len(self.columns()) > 1)
    @rule(data=st.data())
    def drop(self, data):
        gone = self.name(data)
        field = self.columns()[gone]
        if any(gone in self.table.options.get(f"file-index.{kind}.columns", "").split(",") for kind in ("bitmap", "bloom-filter")):
            with pytest.raises(InvalidSchema, match="named by option"):
                self.table.drop_column(gone)
            return
        self.table.drop_column(gone)
        for row in self.rows:
            row.pop(field.id, None)

    @rule(data=st.data())
    def rename(self, data):
        self.table.rename_column(self.name(data), f"c{self.names}")
        self.names += 1

    @rule(data=st.data())
    def move(self, data):
        name = self.name(data)
        others = sorted({"id", *self.columns()} - {name})
        self.table.move_column(name, after=data.draw(st.sampled_from(others)))

    @rule(data=st.data())
    def widen(self, data):
        name = self.name(data)
        field = self.columns()[name]
        target = {"INT": "BIGINT", "BIGINT": "STRING"}.get(str(field.type))
        if target is not None:
            self.table.change_type(name, target)
            for row in self.rows:
                if target == "STRING" and row.get(field.id) is not None:
                    row[field.id] = str(row[field.id])

    @precondition(lambda self: self.tiny)
    @rule(data=st.data(), count=st.integers(5, 9))
    def write_many(self, data, count):
        self.write(data, count)

    @rule(data=st.data(), count=st.integers(1, 4))
    def write(self, data, count):
        values = {
            "INT": st.integers(-99, 99),
            "BIGINT": st.integers(-(2**40), 2**40),
            "STRING": st.text("ab\0", max_size=2),
            "DOUBLE": st.floats(-9, 9),
        }
        keys = data.draw(st.lists(st.integers(0, 9), min_size=count, max_size=count, unique=True))
        fresh = []
        for key in keys:
            row = {0: key}
            for field in self.columns().values():
                row[field.id] = data.draw(st.none() | values[str(field.type)])
            fresh.append(row)
        by_name = [{field.name: row[field.id] for field in self.table.table_schema.fields} for row in fresh]
        self.table.write(pa.Table.from_pylist(by_name, self.table.schema))
        if self.keyed:
            self.rows = [row for row in self.rows if row[0] not in keys]
        self.rows += fresh

    @rule()
    def compact(self):
        self.table.compact(full=True)

    @rule(data=st.data(), compare=st.sampled_from(["=", "<", ">=", "<>"]))
    def filter(self, data, compare):
        name = self.name(data)
        field = self.columns()[name]
        known = sorted({row[field.id] for row in self.rows if row.get(field.id) is not None})
        if str(field.type) == "DOUBLE" or not known:
            return
        value = data.draw(st.sampled_from(known))
        literal = f"'{value}'" if isinstance(value, str) else str(value)
        holds = {"=": value.__eq__, "<": value.__gt__, ">=": value.__le__, "<>": value.__ne__}[compare]
        expected = [row[0] for row in self.rows if row.get(field.id) is not None and holds(row[field.id])]
        assert ids(self.table.scan(f"{name} {compare} {literal}")) == sorted(expected)
        missing = [row[0] for row in self.rows if row.get(field.id) is None]
        assert ids(self.table.scan(f"{name} IS NULL")) == sorted(missing)
        assert self.table.scan(f"{name} {compare} {literal}").count() == len(expected)

    @invariant()
    def reads_what_was_written(self):
        if not hasattr(self, "table"):
            return
        fields = self.table.table_schema.fields
        expected = [{field.name: row.get(field.id) for field in fields} for row in self.rows]
        found = self.table.scan().to_arrow().to_pylist()
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


class TinyEvolving(Evolving):
    """The same with thresholds that few rows cross."""

    tiny = True


for _machine in (Evolving, TinyEvolving):
    _machine.TestCase.settings = settings(max_examples=12, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck))
TestRandomChanges = Evolving.TestCase
TestRandomTinyChanges = TinyEvolving.TestCase
