"""Upserts that leave out columns: refused, null, or the stored values."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_paimon import InvalidArgument, NullInKey, SchemaMismatch, Table
from tests.build import keyed, tuples

DDL = "id BIGINT, a INT, b STRING, c INT NOT NULL"
FULL = {"id": [1, 2], "a": [10, 20], "b": ["x", "y"], "c": [7, 8]}


def make(root, ddl=DDL, **options: str) -> Table:
    return Table.create(
        f"{root}/t", ddl, primary_keys=["id"], options={"bucket": "1"} | {k.replace("_", "-"): v for k, v in options.items()}
    )


@pytest.fixture
def table(table_root) -> Table:
    made = make(table_root, "id BIGINT, a INT, b STRING")
    made.write({"id": [1, 2], "a": [10, 20], "b": ["x", "y"]})
    return made


def test_an_upsert_without_columns_is_refused(table):
    for data in ({"id": [1], "a": [5]}, pd.DataFrame({"id": [1], "a": [5]}), pa.table({"id": [1], "a": [5]}), [{"id": 1, "a": 5}]):
        with pytest.raises(SchemaMismatch) as refused:
            table.write(data)
        text = str(refused.value)
        assert "column 'b' is missing" in text
        assert "nothing was committed" in text
        for way in ("missing='keep'", "missing='null'", "update()", "merge()", "partial-update"):
            assert way in text
    with pytest.raises(SchemaMismatch, match="columns 'a', 'b' are missing"):
        table.write({"id": [1]})
    assert tuples(table) == [(1, 10, "x"), (2, 20, "y")]
    assert table.snapshots().num_rows == 1


def test_missing_columns_become_null_on_demand(table):
    table.write({"id": [1, 3], "a": [5, 6]}, missing="null")
    assert tuples(table) == [(1, 5, None), (2, 20, "y"), (3, 6, None)]


def test_missing_columns_keep_stored_values_in_one_commit(table):
    done = table.write({"id": [1, 3], "a": [5, 6]}, missing="keep", properties={"ticket": "1"})
    assert (done.rows, done.snapshot_id) == (2, 2)
    assert tuples(table) == [(1, 5, "x"), (2, 20, "y"), (3, 6, None)]
    assert table.history(1)["properties"].to_pylist() == [[("ticket", "1")]]
    assert table.write({"id": [2, 9]}, missing="keep").rows == 1, "a key alone is inserted, and changes nothing of a stored row"
    assert tuples(table) == [(1, 5, "x"), (2, 20, "y"), (3, 6, None), (9, None, None)]


def test_the_last_row_of_a_key_wins_with_keep(table):
    table.write({"id": [1, 3, 1, 3], "a": [5, 6, 7, 8]}, missing="keep")
    assert tuples(table) == [(1, 7, "x"), (2, 20, "y"), (3, 8, None)]


def test_kinds_with_keep(table):
    changes = {"id": [1, 2, 3, 4], "a": [5, None, 6, None], "_row_kind": ["+U", "-D", "+I", "-D"]}
    table.write(changes, missing="keep")
    assert tuples(table) == [(1, 5, "x"), (3, 6, None)]


def test_whole_rows_with_keep_are_a_plain_upsert(table):
    table.write({"id": [1], "a": [5], "b": [None]}, missing="keep")
    assert tuples(table) == [(1, 5, None), (2, 20, "y")]
    assert table.history(1)["operation"].to_pylist() == ["upsert"]


def test_a_repeated_keep_writes_once(table):
    first = table.write({"id": [1], "a": [5]}, missing="keep", commit_id="job-1")
    again = table.write({"id": [1], "a": [6]}, missing="keep", commit_id="job-1")
    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    assert tuples(table) == [(1, 5, "x"), (2, 20, "y")]


def test_deletes_need_only_their_key(table):
    table.write({"id": [1], "_row_kind": ["-D"]})
    assert tuples(table) == [(2, 20, "y")]
    with pytest.raises(SchemaMismatch, match="'b' is missing"):
        table.write({"id": [2, 3], "a": [1, 1], "_row_kind": ["-D", "+I"]})
    assert tuples(table) == [(2, 20, "y")]


def test_columns_with_a_default_may_be_left_out(table_root):
    table = make(table_root, "id BIGINT, b STRING").add_column("a", "INT", after="id", default="5")
    table.write({"id": [1], "b": ["x"]})
    assert tuples(table) == [(1, 5, "x")]
    table.write({"id": [1, 2], "a": [6, 7], "b": ["x", "y"]})
    table.write({"id": [1, 3], "b": ["z", "z"]}, missing="keep")
    assert tuples(table) == [(1, 6, "z"), (2, 7, "y"), (3, 5, "z")]


def test_not_null_columns_may_be_left_out_of_existing_rows(table_root):
    table = make(table_root)
    table.write(FULL)
    table.write({"id": [1], "a": [1]}, missing="keep")
    assert tuples(table) == [(1, 1, "x", 7), (2, 20, "y", 8)]
    for missing in ("keep", "null", "refuse"):
        with pytest.raises(SchemaMismatch, match="'c' is missing"):
            table.write({"id": [9], "a": [1], "b": ["z"]}, missing=missing)
    assert tuples(table) == [(1, 1, "x", 7), (2, 20, "y", 8)]


@pytest.mark.parametrize("engine", ["partial-update", "aggregation", "first-row"])
def test_other_engines_take_any_columns(table_root, engine):
    options = {"fields.a.aggregate-function": "sum"} if engine == "aggregation" else {}
    table = make(table_root, "id BIGINT, a INT, b STRING", merge_engine=engine, **options)
    for missing in ("refuse", "null", "keep"):
        table.write({"id": [1], "a": [5]}, missing=missing)
        table.write({"id": [1], "b": ["x"]}, missing=missing)
    expected = {"partial-update": (1, 5, "x"), "aggregation": (1, 15, "x"), "first-row": (1, 5, None)}[engine]
    table.compact()
    assert tuples(table) == [expected]


def test_append_tables_and_overwrites_take_any_columns(table, tmp_path):
    log = Table.create(tmp_path / "log", "id BIGINT, a INT, b STRING")
    log.write({"id": [1]})
    assert tuples(log) == [(1, None, None)]
    table.write({"id": [5]}, "overwrite")
    assert tuples(table) == [(5, None, None)]


def test_dicts_with_other_keys_are_refused(table):
    ragged = [{"id": 1, "a": 5, "b": "z"}, {"id": 2, "a": 6}]
    with pytest.raises(SchemaMismatch, match=r"other keys: column 'b' is missing"):
        table.write(ragged)
    with table.writer() as writer, pytest.raises(SchemaMismatch, match="other keys"):
        writer.write(ragged)
    table.write([{"id": 1, "_row_kind": "-D"}, {"id": 3, "a": 1, "b": "n", "_row_kind": "+I"}])
    assert tuples(table) == [(2, 20, "y"), (3, 1, "n")]
    table.write(ragged, missing="null")
    assert tuples(table) == [(1, 5, "z"), (2, 6, None), (3, 1, "n")]


def test_a_writer_refuses_or_fills(table):
    with table.writer() as writer, pytest.raises(SchemaMismatch, match="'b' is missing"):
        writer.write({"id": [1], "a": [5]})
    with table.writer(missing="null") as writer:
        writer.write({"id": [1], "a": [5]})
    assert tuples(table) == [(1, 5, None), (2, 20, "y")]
    with table.writer(missing="keep", cast=True, schema_mode="merge") as writer:
        writer.write([{"id": "1", "b": "z"}, {"id": "5"}])
        writer.write([{"id": 2, "a": "21", "fresh": 1.5}])
        done = writer.commit()
        assert (done.rows, done.snapshot_id) == (3, 3)
    assert tuples(table) == [(1, 5, "z", None), (2, 21, "y", 1.5), (5, None, None, None)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"missing": "drop"}, "must be one of refuse, null, keep"),
        ({"missing": "keep", "mode": "overwrite"}, "mode 'overwrite'"),
        ({"missing": "keep", "order_by": "a"}, "order_by cannot"),
    ],
)
def test_arguments_that_do_not_fit(table, arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        table.write({"id": [1], "a": [5]}, **arguments)
    assert tuples(table) == [(1, 10, "x"), (2, 20, "y")]


def test_keep_checks_columns_and_keys(table):
    with pytest.raises(SchemaMismatch, match="'z' is unknown"):
        table.write({"id": [1], "z": [5]}, missing="keep")
    with pytest.raises(SchemaMismatch, match="'id' is missing"):
        table.write({"a": [5]}, missing="keep")
    with pytest.raises(SchemaMismatch, match="cannot become INT"):
        table.write({"id": [1], "a": pa.array(["x"])}, missing="keep")
    with pytest.raises(NullInKey):
        table.write({"id": [None], "a": [5]}, missing="keep")
    assert tuples(table) == [(1, 10, "x"), (2, 20, "y")]


ENGINES = {
    "deduplicate": {},
    "deduplicate by sequence": {"sequence.field": "g"},
    "partial-update": {"merge-engine": "partial-update"},
    "sequence group": {
        "merge-engine": "partial-update",
        "fields.g.sequence-group": "a,b",
        "fields.b.aggregate-function": "sum",
    },
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.a.aggregate-function": "last_value",
        "fields.b.aggregate-function": "sum",
        "fields.c.aggregate-function": "max",
        "fields.g.aggregate-function": "last_value",
    },
    "first-row": {"merge-engine": "first-row"},
}
"""Options of tables with the columns id, a, b, c, g."""


def folded(engine: str, old: dict[str, int | None] | None, row: dict[str, int | None]) -> dict[str, int | None]:
    """Return a stored row after a write that keeps the columns that ``row`` lacks."""
    if old is None:
        return {**dict.fromkeys("abcg"), **row}
    late = row.get("g", old["g"]) is None or (old["g"] is not None and row.get("g", old["g"]) < old["g"])
    match engine:
        case "deduplicate":
            return {**old, **row}
        case "deduplicate by sequence":
            order = [-100 if value is None else value for value in (old["g"], row.get("g", old["g"]))]
            return {**old, **row} if order[1] >= order[0] else old
        case "partial-update":
            return {**old, **{name: value for name, value in row.items() if value is not None}}
        case "sequence group":
            new = {**old, **({"c": row["c"]} if row.get("c") is not None else {})}
            if "g" in row and not late:
                new |= {name: row[name] for name in ("a", "g") if name in row}
            if "g" in row and row["g"] is not None and row.get("b") is not None:
                new["b"] = (old["b"] or 0) + row["b"]
            return new
        case "aggregation":
            new = {**old, **{name: row[name] for name in ("a", "g") if name in row}}
            if row.get("b") is not None:
                new["b"] = (old["b"] or 0) + row["b"]
            if row.get("c") is not None:
                new["c"] = row["c"] if old["c"] is None else max(row["c"], old["c"])
            return new
    return old


def erases(engine: str, names: set[str]) -> bool:
    """Return whether a plain row with the columns ``names`` clears or ignores values."""
    match engine:
        case "deduplicate" | "deduplicate by sequence":
            return not names >= set("abcg")
        case "sequence group":
            return "a" not in names if "g" in names else bool(names & {"a", "b"})
        case "aggregation":
            return not names >= {"a", "g"}
    return False


ROADS = ("dicts", "arrow", "writer", "two rows of a key")


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), engine=st.sampled_from(sorted(ENGINES)), missing=st.sampled_from(["refuse", "keep"]))
def test_no_engine_and_no_road_clears_a_column_that_a_row_lacks(data, engine, missing, tmp_path_factory):
    path = tmp_path_factory.mktemp("lacks") / "t"
    table = keyed(path, "id INT, a INT, b INT, c INT, g INT", ENGINES[engine])
    value = st.integers(1, 4)
    stored: dict[int, dict[str, int | None]] = {}
    first = {key: {name: data.draw(value) for name in "abcg"} for key in (1, 2)}
    table.write([{"id": key, **row} for key, row in first.items()])
    stored |= {key: folded(engine, None, row) for key, row in first.items()}
    for _ in range(data.draw(st.integers(1, 3))):
        names = data.draw(st.sets(st.sampled_from("abcg"), min_size=1))
        keys = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3, unique=True))
        road = data.draw(st.sampled_from(ROADS))
        if road == "two rows of a key":
            keys = [keys[0], *keys]
        given_rows = [{"id": key, **{name: data.draw(value) for name in sorted(names)}} for key in keys]
        before = tuples(table)
        written = pa.Table.from_pylist(given_rows, schema=pa.schema([("id", pa.int32()), *((name, pa.int32()) for name in sorted(names))]))
        try:
            if road == "writer":
                with table.writer(missing=missing) as writer:
                    writer.write(written)
            else:
                table.write(written if road == "arrow" else given_rows, missing=missing)
        except SchemaMismatch as error:
            text = str(error)
            assert tuples(table) == before
            assert missing == "refuse" or engine == "sequence group"
            assert erases(engine, names)
            assert "nothing was committed" in text
            continue
        assert missing == "keep" or not erases(engine, names)
        for row in given_rows:
            stored[row["id"]] = folded(engine, stored.get(row["id"]), {name: row[name] for name in names})
        assert tuples(table) == sorted((key, *(row[name] for name in "abcg")) for key, row in stored.items())
    table.compact(full=True)
    assert tuples(table) == sorted((key, *(row[name] for name in "abcg")) for key, row in stored.items())


def test_keep_needs_a_key(tmp_path):
    log = Table.create(tmp_path / "log", "id BIGINT, a INT, b STRING")
    for row in ({"id": 1}, {"id": 1, "a": 1, "b": "x"}):
        with pytest.raises(InvalidArgument, match=r"missing='keep'.*no primary key"):
            log.write([row], missing="keep")
    assert log.count() == 0


def test_keep_with_defaults_and_not_null_columns_in_every_engine(tmp_path):
    for name, options in ENGINES.items():
        if name == "first-row":
            continue
        table = keyed(tmp_path / name, "id INT, a INT, b INT NOT NULL, c INT, g INT", options)
        table = table.set_default("c", "9")
        table.write([{"id": 1, "a": 1, "b": 2, "c": 3, "g": 4}])
        table.write([{"id": 1, "a": 5, "g": 5}], missing="keep")
        assert tuples(table) == [(1, 5, 2, 3, 5)], name


_ROW = st.fixed_dictionaries(
    {"id": st.integers(0, 4)},
    optional={
        "a": st.none() | st.integers(-3, 3),
        "b": st.none() | st.integers(-3, 3),
        "p": st.none() | st.integers(-3, 3),
        "_row_kind": st.sampled_from(["+I", "-U", "+U", "-D"]),
    },
)
_FEEDS = st.lists(st.tuples(st.sampled_from(["dicts", "tables", "writer"]), st.lists(_ROW, min_size=1, max_size=6)), min_size=1, max_size=4)


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(feeds=_FEEDS, partitioned=st.booleans())
def test_keep_is_an_update_of_a_dict(feeds, partitioned, tmp_path_factory):
    path, keys = tmp_path_factory.mktemp("keep") / "t", ["id", "day"] if partitioned else ["id"]
    ddl = "id BIGINT, a BIGINT, b BIGINT, p BIGINT, day BIGINT"
    table = Table.create(path, ddl, primary_keys=keys, partition_keys=["day"] if partitioned else [], options={"bucket": "1"})
    stored: dict[int, dict[str, int | None]] = {}
    for batch, (road, rows) in enumerate(feeds):
        given_rows = [{**row, "day": row["id"] % 2} for row in rows]
        for number, row in enumerate(rows):
            kind = row.get("_row_kind", "+I")
            more = kind == "-U" and any(other["id"] == row["id"] for other in rows[number + 1 :])  # its new row follows
            if kind in {"-U", "-D"} and not more:
                stored.pop(row["id"], None)
            elif not more:
                stored.setdefault(row["id"], dict.fromkeys("abp")).update({name: row[name] for name in "abp" if name in row})
        for repeated in (False, True):
            name = {"commit_id": "feed", "batch_id": batch}
            if road == "writer":
                with table.writer(missing="keep", commit_id="feed") as writer:
                    for row in given_rows:
                        writer.write([row])
                    done = writer.commit(batch)
            elif road == "tables":
                schema = pa.schema([("_row_kind", pa.string()), *((column, pa.int64()) for column in ("id", "day", *"abp"))])
                tables = [pa.Table.from_pylist([row], pa.schema([schema.field(column) for column in row])) for row in given_rows]
                done = table.write(iter(tables), missing="keep", **name)
            else:
                done = table.write(given_rows, missing="keep", **name)
            assert done.replayed is (repeated and done.snapshot_id is not None), "only a commit is remembered"
        assert [row[:4] for row in tuples(table)] == sorted((key, *row.values()) for key, row in stored.items())


def test_rows_of_different_columns_in_every_engine(tmp_path):
    for name, options in ENGINES.items():
        table = keyed(tmp_path / name, "id INT, a INT, b INT, c INT, g INT", options)
        first = {key: dict.fromkeys("abcg", key) for key in (1, 2, 3)}
        table.write([{"id": key, **row} for key, row in first.items()])
        changes = {1: {"c": 5}, 2: {"a": 6, "g": 7}, 4: {"g": 8, "b": 1}}
        table.write([{"id": key, **row} for key, row in changes.items()], missing="keep")
        wanted = first | {key: folded(name, first.get(key), row) for key, row in changes.items()}
        assert tuples(table) == [(key, *(wanted[key][column] for column in "abcg")) for key in sorted(wanted)], name
        twice = [{"id": 1, "a": 9, "g": 9}, {"id": 1, "c": 9}]
        if name not in {"deduplicate by sequence", "aggregation"}:
            table.write(twice, missing="keep")
        else:
            with pytest.raises(InvalidArgument, match="several rows have one key"):
                table.write(twice, missing="keep")


def test_kinds_that_do_not_exist_are_refused_with_keep(table):
    for kind in ("D", None):
        with pytest.raises(SchemaMismatch, match="use one of"):
            table.write([{"id": 1, "a": 2, "_row_kind": kind}], missing="keep")
    assert tuples(table) == [(1, 10, "x"), (2, 20, "y")]


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
@pytest.mark.parametrize("missing", ["refuse", "keep", "null"])
def test_a_row_without_the_sequence_field_is_not_ignored_in_silence(tmp_path, engine, missing):
    options = {"bucket": "1", "merge-engine": engine, "sequence.field": "ts"}
    if engine == "aggregation":
        options["fields.n.aggregate-function"] = "sum"
    table = Table.create(tmp_path / "t", "id INT, v INT, n INT, ts INT", primary_keys=["id"], options=options)
    table.write({"id": [1], "v": [1], "n": [1], "ts": [5]})
    stored = {"id": 1, "v": 1, "n": 1, "ts": 5}
    if missing == "null":
        table.write({"id": [1], "v": [9]}, missing=missing)
    else:
        with pytest.raises(SchemaMismatch, match="'ts' is missing, which orders the versions of a key"):
            table.write({"id": [1], "v": [9]}, missing=missing)
    assert table.scan().to_arrow().to_pylist() == [stored]
    table.write({"id": [1], "v": [9], "ts": [6]}, missing=missing)
    if engine == "aggregation":
        table.write({"id": [1], "n": [2]}, missing=missing)  # a sum needs no order
    assert table.scan().to_arrow().to_pylist() == [{**stored, "v": 9, "n": 3 if engine == "aggregation" else 1, "ts": 6}]
