"""Columns of incoming rows that the table does not have: refused, or added by the write."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Barrier

import pandas as pd
import pyarrow as pa
import pytest

from manifest.schema.merge_on_write import MergeRules, is_wider, merge_changes
from manifest.schema.table_schema import TableSchema
from manifest.types.ddl import parse_ddl
from pyspark_paimon import InvalidArgument, PaimonError, SchemaMismatch, Table, UnknownColumn, UnsupportedType
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.operations.alter import AlterSchema

WIDEN = {"write.merge-schema.type-widening": "true"}
BIG = 5_000_000_000
CAST = {**WIDEN, "write.merge-schema.explicit-cast": "true"}


@pytest.fixture(params=["keyed", "append"])
def table(request, table_root) -> Table:
    keys = {"primary_keys": ["id"], "options": {"bucket": "1"}} if request.param == "keyed" else {}
    made = Table.create(f"{table_root}/t", "id BIGINT, n INT", **keys)
    made.write({"id": [1], "n": [10]})
    return made


def types(table: Table) -> dict[str, str]:
    return {field.name: str(field.type.with_nullable(nullable=True)) for field in table.table_schema.fields}


def rows(table: Table) -> list[dict]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def test_unknown_columns_are_refused_and_the_error_names_the_way(table):
    with pytest.raises(SchemaMismatch, match=r"'s' is unknown.*schema_mode='merge'.*write.merge-schema.*add_column"):
        table.write({"id": [2], "n": [1], "s": ["x"]})
    with pytest.raises(SchemaMismatch) as refused:
        table.write({"id": [2], "N": [1]})
    assert "schema_mode" not in str(refused.value), "another case is a mistake"
    with pytest.raises(SchemaMismatch, match="'N' is unknown"):
        table.write({"id": [2], "n": [1], "N": [1]}, schema_mode="merge")
    assert types(table) == {"id": "BIGINT", "n": "INT"}
    assert table.schemas().num_rows == 1


def test_new_columns_are_added_in_one_version(table):
    day = dt.date(2024, 1, 31)
    frame = pd.DataFrame({"id": [2], "n": [20], "s": ["x"], "price": [Decimal("1.50")], "d": [day]})
    done = table.write(frame, schema_mode="merge")
    assert done.rows == 1
    assert table.schemas().num_rows == 2
    assert types(table) == {"id": "BIGINT", "n": "INT", "s": "STRING", "price": "DECIMAL(38, 2)", "d": "DATE"}
    assert rows(table) == [
        {"id": 1, "n": 10, "s": None, "price": None, "d": None},
        {"id": 2, "n": 20, "s": "x", "price": Decimal("1.50"), "d": day},
    ]
    table.write(frame.assign(id=3), schema_mode="merge")
    assert table.schemas().num_rows == 2, "rows that fit change no schema"
    assert table.scan(snapshot=1).to_arrow().column_names == ["id", "n"]


def test_the_option_of_the_table_and_of_the_call(table):
    table.write({"id": [2], "n": [1], "a": [True]}, options={"write.merge-schema": "true"})
    table.alter_options({"write.merge-schema": "true"})
    table.write({"id": [3], "n": [1], "a": [True], "b": ["x"]})
    with table.writer() as writer:
        writer.write({"id": [4], "n": [1], "a": [True], "b": ["x"], "c": [1.5]})
        with pytest.raises(InvalidArgument, match=r"call commit\(\)"):
            writer.write({"id": [5], "n": [1], "a": [True], "b": ["x"], "c": [1.5], "d": [2]})
    with table.writer() as writer:
        writer.write({"id": [5], "n": [1], "a": [True], "b": ["x"], "c": [1.5], "d": [2]})
    assert types(table) == {"id": "BIGINT", "n": "INT", "a": "BOOLEAN", "b": "STRING", "c": "DOUBLE", "d": "BIGINT"}
    with pytest.raises(SchemaMismatch, match="'e' is unknown"):
        table.write({"id": [5], "n": [1], "a": [True], "b": ["x"], "c": [1.5], "d": [2], "e": [1]}, options={"write.merge-schema": "false"})


def test_nested_fields_are_added(table):
    inner = pa.struct([("a", pa.int32())])
    outer = pa.struct([("r", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))])
    table.write(
        pa.table(
            {"id": [2], "n": pa.array([1], pa.int32()), "x": pa.array([{"r": {"a": 1}, "l": [{"a": 1}], "m": [("k", {"a": 1})]}], outer)}
        ),
        schema_mode="merge",
    )
    more = pa.struct([("a", pa.int32()), ("b", pa.string())])
    wide = pa.struct([("r", more), ("l", pa.list_(more)), ("m", pa.map_(pa.string(), more)), ("z", pa.int32())])
    value = {"r": {"a": 2, "b": "r"}, "l": [{"a": 2, "b": "l"}], "m": [("k", {"a": 2, "b": "m"})], "z": 5}
    table.write(pa.table({"id": [3], "n": pa.array([1], pa.int32()), "x": pa.array([value], wide)}), schema_mode="merge")
    assert table.schemas().num_rows == 3
    assert rows(table)[2]["x"] == value
    assert rows(table)[1]["x"] == {"r": {"a": 1, "b": None}, "l": [{"a": 1, "b": None}], "m": [("k", {"a": 1, "b": None})], "z": None}


def test_existing_types_stay_unless_widening_is_on(table):
    table.write(pa.table({"id": [2], "n": pa.array([5], pa.int64())}), schema_mode="merge")
    assert types(table)["n"] == "INT"
    big = pa.table({"id": [3], "n": pa.array([2**40], pa.int64())})
    with pytest.raises(SchemaMismatch, match="does not fit"):
        table.write(big, schema_mode="merge")
    table.write(big, schema_mode="merge", options=WIDEN)
    assert types(table)["n"] == "BIGINT"
    assert [row["n"] for row in rows(table)] == [10, 5, 2**40]
    with pytest.raises(SchemaMismatch, match="cannot become BIGINT"):
        table.write(pa.table({"id": [4], "n": ["x"]}), schema_mode="merge", options=WIDEN)
    table.write(pa.table({"id": [4], "n": ["x"]}), schema_mode="merge", options=CAST)
    assert types(table)["n"] == "STRING"
    assert [row["n"] for row in rows(table)] == ["10", "5", str(2**40), "x"]


def test_nothing_is_added_where_the_type_is_unknown_or_unsupported(table):
    with pytest.raises(SchemaMismatch, match="'z' is unknown"):
        table.write({"id": [2], "n": [1], "z": [None]}, schema_mode="merge")
    with pytest.raises(UnsupportedType, match="'z'"):
        table.write(pa.table({"id": [2], "n": pa.array([1], pa.int32()), "z": pa.array([1], pa.uint64())}), schema_mode="merge")
    with pytest.raises(InvalidArgument, match="schema_mode must be 'merge'"):
        table.write({"id": [2], "n": [1]}, schema_mode="overwrite")
    assert types(table) == {"id": "BIGINT", "n": "INT"}


def test_kinds_and_kept_columns_with_new_columns(table_root):
    table = Table.create(f"{table_root}/t", "id BIGINT, n INT", primary_keys=["id"], options={"bucket": "1"})
    table.write({"id": [1, 2], "n": [1, 2]})
    changes = {"id": [1, 2], "n": [5, None], "s": ["x", None], "_row_kind": ["+U", "-D"]}
    table.write(changes, schema_mode="merge")
    assert rows(table) == [{"id": 1, "n": 5, "s": "x"}]
    table.write({"id": [1, 3], "t": ["y", "z"]}, schema_mode="merge", missing="keep")
    assert rows(table) == [{"id": 1, "n": 5, "s": "x", "t": "y"}, {"id": 3, "n": None, "s": None, "t": "z"}]


@pytest.mark.parametrize("place", ["table", "call", "argument"])
def test_a_merge_adds_columns_and_widens_types(table, place):
    options = {"write.merge-schema": "true", **WIDEN}
    if place == "table":
        table.alter_options(options)
    given = {"call": {"options": options}, "argument": {"options": WIDEN, "schema_mode": "merge"}, "table": {}}[place]
    source = pa.table({"id": [1, 2], "N": [2**40, 6], "fresh": ["x", "y"], "r": [{"a": 1}, None]})
    done = table.merge(source, on="id", **given).when_matched_update_all().when_not_matched_insert_all().execute()
    assert (done.updated, done.inserted, table.schemas().num_rows) == (1, 1, 2 + (place == "table"))
    assert types(table) == {"id": "BIGINT", "n": "BIGINT", "fresh": "STRING", "r": "ROW<a BIGINT>"}
    assert rows(table) == [{"id": 1, "n": 2**40, "fresh": "x", "r": {"a": 1}}, {"id": 2, "n": 6, "fresh": "y", "r": None}]
    nested = pa.table({"id": [1, 3], "r": pa.array([{"a": 1, "b": 2}] * 2)})
    merge = table.merge(nested, on="id", **given)
    merge.when_matched_update({"r.b": "s.r.b + 1"}).when_not_matched_insert_all().execute()
    assert [row["r"] for row in rows(table)] == [{"a": 1, "b": 3}, None, {"a": 1, "b": 2}]
    table.merge(nested, on="id", **given).when_matched_update_all().execute()
    assert rows(table)[0] == {"id": 1, "n": 2**40, "fresh": "x", "r": {"a": 1, "b": 2}}, "columns that the source lacks keep their values"


def test_a_merge_adds_only_what_its_clauses_take(table):
    source = pa.table({"id": [1, 2], "other": [1, 2], "extra": [3, 4]})
    merge = table.merge(source, on="id", schema_mode="merge")
    merge.when_matched_update({"extra": "s.extra + s.other"}).when_not_matched_insert({"id": "s.id"}).execute()
    assert types(table) == {"id": "BIGINT", "n": "INT", "extra": "BIGINT"}
    assert rows(table) == [{"id": 1, "n": 10, "extra": 4}, {"id": 2, "n": None, "extra": None}]
    with pytest.raises(UnknownColumn, match="nowhere"):
        merge.when_matched_update({"nowhere": 5})
    with pytest.raises(InvalidArgument, match="differ only in case"):
        table.merge({"id": [1], "x": [1], "X": [2]}, on="id", schema_mode="merge").when_not_matched_insert_all()
    table.merge(source, on="id").when_matched_delete().when_not_matched_insert_all().execute()
    assert types(table) == {"id": "BIGINT", "n": "INT", "extra": "BIGINT"}, "without the option columns that the table lacks are left out"


def test_a_refused_merge_leaves_the_schema(table):
    source = pa.table({"id": [1, 1], "fresh": [1, 2]})
    merge = table.merge(source, on="id", schema_mode="merge").when_matched_update_all()
    with pytest.raises(InvalidArgument, match="two rows of the source"):
        merge.execute()
    with pytest.raises(SchemaMismatch, match="does not fit"):
        table.merge({"id": [1], "n": [2**40], "fresh": [1]}, on="id", schema_mode="merge").when_matched_update_all().execute()
    assert table.schemas().num_rows == 1
    assert rows(table) == [{"id": 1, "n": 10}]
    files = {path.name for path in Path(table.path).rglob("*.parquet")} if Path(table.path).exists() else set()
    assert len(files) <= 1, "files of a refused merge are deleted"


def test_merges_that_add_columns_at_once_all_succeed(table):
    together = Barrier(3)

    def merge(number: int) -> None:
        built = Table.open(table.path).merge({"id": [number], "n": [number], f"c{number % 2}": ["x"]}, on="id", schema_mode="merge")
        built = built.when_matched_update_all().when_not_matched_insert_all()
        together.wait()
        built.execute()

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(merge, (2, 3, 4)))
    assert [row["id"] for row in rows(table)] == [1, 2, 3, 4]
    assert types(table).keys() == {"id", "n", "c0", "c1"}


def test_a_merge_of_a_used_commit_id_adds_nothing(table):
    merge = table.merge({"id": [1], "fresh": [5]}, on="id", schema_mode="merge", commit_id="once").when_matched_update_all()
    first, again = merge.execute(), merge.execute()
    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    assert table.schemas().num_rows == 2


def test_the_page_lists_the_pairs_that_widen():
    page = (Path(__file__).parents[3] / "docs" / "values.md").read_text("utf-8")
    listed = dict(re.findall(r"\| `(\w+)` \| (.*) \|", page.partition("| a column of | widens to |")[2].partition("\n\n")[0]))
    kinds = ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"]
    data_types = {kind: parse_ddl(f"v {kind}")[0].type for kind in [*kinds, "DECIMAL(38, 0)"]}
    for kind in kinds:
        wider = [other.partition("(")[0] for other in data_types if is_wider(data_types[kind], data_types[other])]
        assert re.findall(r"`(\w+)`", listed.get(kind, "")) == wider, kind


@pytest.mark.parametrize("cast", [False, True])
@pytest.mark.parametrize("source", ["dicts", "arrow", "writer", "pandas"])
def test_types_inside_of_columns_widen_and_get_fields(tmp_path, cast, source):
    ddl = "id INT, r STRUCT<a INT, b INT>, l ARRAY<INT>, m MAP<STRING, STRUCT<x FLOAT>>"
    options = {"bucket": "1", "write.merge-schema": "true", **WIDEN}
    table = Table.create(tmp_path / "t", ddl, primary_keys=["id"], options=options)
    first = {"id": 1, "r": {"a": 1, "b": 2}, "l": [1], "m": {"k": {"x": 1.0}}}
    table.write([first])
    row = {"id": 2, "r": {"a": BIG, "b": 2, "c": "new"}, "l": [BIG, None], "m": {"k": {"x": 0.1, "y": 7}}}
    if source == "arrow":
        item = pa.struct([("x", pa.float64()), ("y", pa.int64())])
        kind = pa.struct([("a", pa.int64()), ("b", pa.int32()), ("c", pa.string())])
        fields = [("id", pa.int32()), ("r", kind), ("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), item))]
        table.write(pa.Table.from_pylist([{**row, "m": list(row["m"].items())}], pa.schema(fields)), cast=cast)
    elif source == "writer":
        with table.writer(cast=cast) as writer:
            writer.write([row])
    else:
        table.write([row] if source == "dicts" else pd.DataFrame([row]), cast=cast)
    assert types(table) == {
        "id": "INT",
        "r": "ROW<a BIGINT, b INT, c STRING>",
        "l": "ARRAY<BIGINT>",
        "m": "MAP<STRING NOT NULL, ROW<x DOUBLE, y BIGINT>>",
    }
    stored = [{**first, "r": {"a": 1, "b": 2, "c": None}, "m": [("k", {"x": 1.0, "y": None})]}, {**row, "m": [("k", {"x": 0.1, "y": 7})]}]
    assert rows(table) == stored
    with pytest.raises(SchemaMismatch, match="field 'd' is unknown"):
        table.write([{**row, "r": {"a": 1, "d": None}}], cast=cast)
    with pytest.raises(SchemaMismatch, match="field 'd' is unknown"):
        table.write([{**row, "r": {"a": 1, "d": 5}}], cast=cast, options={"write.merge-schema": "false"})


@pytest.mark.parametrize("value", [BIG, 2.5, Decimal("2.5")])
@pytest.mark.parametrize("road", ["dicts", "arrow", "cast"])
def test_a_number_that_does_not_fit_is_no_reason_to_round_first(table, value, road):
    data = [{"id": 2, "n": value}]
    with pytest.raises(SchemaMismatch) as refused:
        table.write(pa.Table.from_pylist(data) if road == "arrow" else data, cast=road == "cast")
    text = str(refused.value)
    way = text.index("table.change_type('n'")
    assert way < text.index("write.merge-schema.type-widening")
    assert way < min((text.find(word) for word in ("pc.round", "errors=", "cast='round'", "int(value)") if word in text), default=len(text))


SOURCES = {
    "dicts": lambda value: [{"id": 5, "n": value}],
    "columns": lambda value: {"id": [5], "n": [value]},
    "pandas": lambda value: pd.DataFrame({"id": [5], "n": pd.Series([value], dtype=object)}),
    "arrow": lambda value: pa.table({"id": [5], "n": pa.array([value])}),
    "stream": lambda value: pa.table({"id": [5], "n": pa.array([value])}).to_reader(),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("road", ["write", "writer", "cast", "round", "cast text"])
@pytest.mark.parametrize(
    "change",
    [
        ("TINYINT", 300, "SMALLINT"),
        ("SMALLINT", 70_000, "INT"),
        ("INT", BIG, "BIGINT"),
        ("BIGINT", 2**70, "DECIMAL(38, 0)"),
        ("INT", 2.5, "DOUBLE"),
        ("FLOAT", 1e300, "DOUBLE"),
        ("DECIMAL(5, 2)", Decimal("12345.67"), "DECIMAL(38, 2)"),
    ],
)
def test_numbers_widen_whatever_source_and_road(tmp_path, source, road, change):
    stored, value, expected = change
    table = Table.create(tmp_path / "t", f"id BIGINT, n {stored}", primary_keys=["id"], options={"bucket": "1"})
    table.write({"id": [1], "n": [1]})
    data = SOURCES[source](str(value) if road == "cast text" else Decimal(value) if value == 2**70 else value)
    options = {"write.merge-schema": "true", **WIDEN}
    if road == "writer":
        with table.writer(options=options) as writer:
            writer.write(data)
    else:
        cast = {"write": False, "round": "round"}.get(road, True)
        table.write(data, options=options, cast=cast)
    if road == "round" and value == 2.5:
        assert [row["n"] for row in rows(table)] == [1, 3]
        return
    assert [row["n"] for row in rows(table)] == [1, value]
    kinds = {expected.partition("(")[0], *(["BIGINT"] if value in {300, 70_000} else [])}  # rows of another type widen to that one
    assert types(table)["n"].partition("(")[0] in kinds


def test_numbers_that_fit_widen_nothing_and_keys_keep_their_type(table):
    options = {"write.merge-schema": "true", **WIDEN}
    for cast in (False, True, "round"):
        table.write([{"id": 2, "n": 5}], options=options, cast=cast)
        with pytest.raises(SchemaMismatch, match="'n'"):
            table.write([{"id": 2, "n": "x"}], options=options, cast=cast)
    assert types(table) == {"id": "BIGINT", "n": "INT"}
    keyed = Table.create(f"{table.path}-keyed", "id INT, n INT", primary_keys=["id"], options={"bucket": "1"})
    for cast in (False, True):
        with pytest.raises(SchemaMismatch, match="'id'"):
            keyed.write([{"id": BIG, "n": 1}], options=options, cast=cast)


@pytest.mark.parametrize("arguments", [{}, {"schema_mode": "merge"}, {"schema_mode": "merge", "cast": True}])
@pytest.mark.parametrize("data", [pa.table({"id": [2], "z": pa.nulls(1)}), {"id": [2], "z": [None]}, [{"id": 2, "z": None}]])
def test_a_column_without_a_type_gets_advice_that_helps(table, data, arguments):
    with pytest.raises(SchemaMismatch, match=r"'z'.*no type.*leave it out, or call add_column\('z'") as refused:
        table.write(data, missing="null" if table.primary_keys else "refuse", **arguments)
    assert "schema_mode" not in str(refused.value)
    table.add_column("z", "INT")
    table.write(data, missing="null" if table.primary_keys else "refuse", **arguments)
    assert rows(table)[-1] == {"id": 2, "n": None, "z": None}


REFUSED = {
    "type": ({"n": ["many"]}, {}),
    "range": ({"n": pa.array([2**40], pa.int64())}, {}),
    "null": ({"s": [None]}, {}),
    "length": ({"s": ["abcd"]}, {}),
    "missing": ({"s": None}, {}),
    "cast": ({"n": ["x"]}, {"cast": True}),
    "kind": ({"_row_kind": ["+X"]}, {}),
    "overflow": ({"total": [2**31 - 1]}, {}),
    "later batch": ({"s": ["ok", "ok", "abcd"]}, {}),
}
"""Columns and arguments that make a write be refused."""


@pytest.mark.parametrize("road", ["arrow", "reader", "writer", "keep", "dicts"])
@pytest.mark.parametrize("reason", REFUSED)
def test_a_refused_write_leaves_the_schema_as_it_was(tmp_path, reason, road):
    engine = {"merge-engine": "aggregation", "fields.total.aggregate-function": "sum"} if reason == "overflow" else {}
    table = Table.create(
        tmp_path / "t",
        "id BIGINT, n INT, s VARCHAR(3) NOT NULL, total INT, kept INT",
        primary_keys=["id"],
        options={"bucket": "1", **engine},
    )
    table.write({"id": [1], "n": [1], "s": ["a"], "total": [5], "kept": [7]})
    before = table.table_schema
    change, arguments = REFUSED[reason]
    count = max((len(values) for values in change.values() if values is not None), default=1)
    columns = {"id": [1] * count, "n": [2] * count, "s": ["b"] * count, "total": [1] * count, "fresh": ["x"] * count, **change}
    if reason == "overflow":
        columns = {name: values * 2 for name, values in columns.items()}
    if road != "keep":
        columns["kept"] = [7] * len(columns["id"])
    data = pa.table({name: values for name, values in columns.items() if values is not None})
    if road == "keep" and reason in {"missing", "overflow"}:
        return  # a kept column is not missing, and a merge folds no two rows of the source
    if road == "reader":
        data = pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=1))

    def write() -> None:
        if road == "writer" and not arguments:  # a writer casts no rows
            with table.writer(options={"write.merge-schema": "true"}) as writer:
                writer.write(data)
        else:
            written = data.to_pylist() if road == "dicts" else data
            table.write(written, schema_mode="merge", missing="keep" if road == "keep" else "refuse", **arguments)

    with pytest.raises(PaimonError):
        write()
    assert Table.open(table.path).table_schema == before
    assert table.schemas().num_rows == 1
    assert rows(table) == [{"id": 1, "n": 1, "s": "a", "total": 5, "kept": 7}]
    table.write({"id": [2], "n": [2], "s": ["b"], "total": [1], "kept": [7], "fresh": ["x"]}, schema_mode="merge")
    assert rows(table)[1]["fresh"] == "x"
    assert table.fsck("deep").problems == ()


def test_a_write_with_new_columns_compacts_and_repeats_like_others(tmp_path):
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "2", "changelog-producer": "lookup", "deletion-vectors.enabled": "true"}
    table = Table.create(tmp_path / "t", "id BIGINT, n INT", primary_keys=["id"], options=options)
    for number in range(4):
        data = {"id": [1, number], "n": [number, number], f"c{number}": [number, number]}
        first = table.write(data, schema_mode="merge", missing="null", commit_id=f"job-{number}")
        again = table.write(data, schema_mode="merge", missing="null", commit_id=f"job-{number}")
        assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    assert [row["c3"] for row in rows(table)] == [None, 3, None, 3]
    assert table.schemas().num_rows == 5
    assert table.fsck("deep").problems == ()


def test_a_stream_is_not_read_twice_after_a_lost_race(table, monkeypatch):
    run = LocalEngine.run

    def first_another(self, operation):
        if isinstance(operation, AlterSchema):
            monkeypatch.setattr(LocalEngine, "run", run)
            Table.open(table.path).add_column("other", "INT")
        return run(self, operation)

    monkeypatch.setattr(LocalEngine, "run", first_another)
    data = pa.table({"id": [2], "n": pa.array([1], pa.int32()), "t": ["y"]})
    with pytest.raises(SchemaMismatch, match="schema changed while this write added columns; nothing was committed"):
        table.write(data.to_reader(), schema_mode="merge", missing="null")
    assert rows(table) == [{"id": 1, "n": 10, **dict.fromkeys(list(types(table))[2:])}]


def test_writers_that_add_columns_at_once_all_succeed(table):
    start = Barrier(4)

    def write(number: int) -> None:
        start.wait()
        shared = {"shared": ["x"], f"own{number}": [number]}
        Table.open(table.path).write({"id": [100 + number], "n": [1], **shared}, schema_mode="merge", missing="null")

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(write, number) for number in range(4)]:
            done.result()
    assert set(types(table)) == {"id", "n", "shared", *(f"own{number}" for number in range(4))}
    assert [row["shared"] for row in rows(table)] == [None, "x", "x", "x", "x"]


def test_a_column_that_another_writer_adds_first_is_used(table, monkeypatch):
    run = LocalEngine.run

    def first_another(self, operation):
        if isinstance(operation, AlterSchema):
            monkeypatch.setattr(LocalEngine, "run", run)
            Table.open(table.path).add_column("s", "STRING").add_column("other", "INT")
        return run(self, operation)

    monkeypatch.setattr(LocalEngine, "run", first_another)
    table.write({"id": [2], "n": [1], "s": ["x"], "t": ["y"]}, schema_mode="merge", missing="null")
    assert list(types(table)) == ["id", "n", "s", "other", "t"]
    assert rows(table)[1] == {"id": 2, "n": 1, "s": "x", "other": None, "t": "y"}


@pytest.mark.parametrize(
    ("stored", "given", "rules", "expected"),
    [
        ("INT", "BIGINT", MergeRules(widens=True), "BIGINT"),
        ("BIGINT", "INT", MergeRules(widens=True), None),
        ("INT", "BIGINT", MergeRules(), None),
        ("INT", "DOUBLE", MergeRules(widens=True), "DOUBLE"),
        ("BIGINT", "DOUBLE", MergeRules(widens=True), None),
        ("BIGINT", "DOUBLE", MergeRules(casts=True), "DOUBLE"),
        ("FLOAT", "DOUBLE", MergeRules(widens=True), "DOUBLE"),
        ("INT", "FLOAT", MergeRules(widens=True), None),
        ("SMALLINT", "FLOAT", MergeRules(widens=True), "FLOAT"),
        ("INT", "DECIMAL(12, 2)", MergeRules(widens=True), "DECIMAL(12, 2)"),
        ("INT", "DECIMAL(10, 2)", MergeRules(widens=True), None),
        ("DECIMAL(10, 2)", "DECIMAL(12, 2)", MergeRules(widens=True), "DECIMAL(12, 2)"),
        ("DECIMAL(10, 2)", "DECIMAL(10, 4)", MergeRules(widens=True), None),
        ("VARCHAR(5)", "STRING", MergeRules(widens=True, casts=True), None),
        ("TIMESTAMP(3)", "TIMESTAMP(9)", MergeRules(widens=True, casts=True), None),
        ("STRING", "DATE", MergeRules(widens=True, casts=True), "DATE"),
        ("DATE", "DOUBLE", MergeRules(widens=True, casts=True), None),
        ("ARRAY<INT>", "ARRAY<BIGINT>", MergeRules(widens=True), "BIGINT"),
        ("ARRAY<INT>", "INT", MergeRules(widens=True, casts=True), None),
        ("INT NOT NULL", "BIGINT", MergeRules(widens=True), "BIGINT NOT NULL"),
    ],
)
def test_types_that_rows_may_change(stored, given, rules, expected):
    schema = TableSchema(id=0, fields=parse_ddl(f"id BIGINT, v {stored}"), primary_keys=("id",))
    changes = merge_changes(schema, parse_ddl(f"id INT, v {given}"), rules)
    assert [change.type for change in changes] == ([] if expected is None else [expected])


def test_keys_keep_their_types():
    schema = TableSchema(
        id=0, fields=parse_ddl("id INT, p INT, b INT, n INT"), primary_keys=("id", "p"), partition_keys=("p",), options={"bucket-key": "id"}
    )
    given = parse_ddl("id BIGINT, p BIGINT, b BIGINT, n BIGINT")
    assert [change.path for change in merge_changes(schema, given, MergeRules(widens=True))] == [("b",), ("n",)]


def test_a_repeated_write_adds_no_column(tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT", primary_keys=["id"], options={"bucket": "1"})
    job = str(uuid.uuid4())
    first = table.write({"id": [1]}, commit_id=job)
    files = sorted((tmp_path / "t" / "bucket-0").iterdir())
    again = table.write({"id": [1], "z": [1]}, commit_id=job, schema_mode="merge")
    assert (again.snapshot_id, table.table_schema.names) == (first.snapshot_id, ("id",))
    assert sorted((tmp_path / "t" / "bucket-0").iterdir()) == files


def test_a_write_that_loses_its_columns_leaves_no_file(tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT", primary_keys=["id"], options={"bucket": "1"})
    with table.writer(options={"write.merge-schema": "true"}) as writer:
        writer.write({"id": [1], "z": [1]})
        table.add_column("z", "STRING")
        with pytest.raises(SchemaMismatch, match="nothing was committed"):
            writer.commit()
    assert not [path for path in tmp_path.rglob("data-*") if path.is_file()]
    assert not table.scan().count()
