"""Altering a schema: what may change, how ids are given, and which options follow a column."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from manifest.io.errors import InvalidSchema
from manifest.io.file_io import LocalFileIO
from manifest.options.parquet_options import OF_COLUMNS
from manifest.schema.change import (
    AddColumn,
    ChangeComment,
    ChangeDefault,
    ChangeNullability,
    ChangeOptions,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    ReplaceColumns,
    SchemaChange,
)
from manifest.schema.evolution import evolve, options_naming, rename_in_options
from manifest.schema.manager import SchemaManager
from manifest.schema.table_schema import TableSchema
from manifest.schema.validation import build_schema
from paimon_base.errors import UnknownColumn, UnsupportedOption

NESTED = "id BIGINT, day DATE, qty INT, who ROW<name STRING, age INT>, tags ARRAY<ROW<k STRING>>, attrs MAP<STRING, INT>"


@pytest.fixture
def schema():
    return build_schema(NESTED, primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": "2"})


def ids(schema):
    return {field.name: field.id for field in schema.fields}


def test_a_new_column_takes_the_next_id_and_its_nested_fields_the_ones_after(schema):
    assert (ids(schema)["attrs"], schema.highest_field_id) == (8, 8)
    after = evolve(schema, [AddColumn(path=("geo",), type={"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]})])
    assert ids(after)["geo"] == 9
    assert after.field("geo").type.fields[0].id == 10
    assert (after.id, after.highest_field_id) == (1, 10)
    again = evolve(evolve(after, [DropColumn(path=("geo",))]), [AddColumn(path=("geo",), type="INT")])
    assert ids(again)["geo"] == 11


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({}, ["id", "day", "qty", "who", "tags", "attrs", "x"]),
        ({"first": True}, ["x", "id", "day", "qty", "who", "tags", "attrs"]),
        ({"after": "id"}, ["id", "x", "day", "qty", "who", "tags", "attrs"]),
    ],
)
def test_a_column_is_added_where_it_is_wanted(schema, place, expected):
    assert list(evolve(schema, [AddColumn(path=("x",), type="INT", **place)]).names) == expected


def test_a_table_may_want_new_columns_before_its_partition_columns(schema):
    early = evolve(schema, [ChangeOptions(options={"add-column-before-partition": "true"}), AddColumn(path=("x",), type="INT")])
    assert early.names[:3] == ("id", "x", "day")


def test_fields_of_rows_change_by_path_even_inside_arrays(schema):
    after = evolve(
        schema,
        [
            AddColumn(path=("who", "mail"), type="STRING", first=True),
            RenameColumn(path=("who", "age"), name="years"),
            ChangeType(path=("who", "years"), type="BIGINT"),
            AddColumn(path=("tags", "element", "v"), type="DOUBLE"),
            ChangeType(path=("attrs", "value"), type="BIGINT"),
            ChangeComment(path=("who", "name"), comment="full"),
        ],
    )
    assert [str(field.type) for field in after.fields[3:]] == [
        "ROW<mail STRING, name STRING, years BIGINT>",
        "ARRAY<ROW<k STRING, v DOUBLE>>",
        "MAP<STRING NOT NULL, BIGINT>",
    ]
    assert after.field("who").type.fields[1].description == "full"
    assert after.highest_field_id == 10


def test_a_key_may_be_renamed_and_what_names_it_follows():
    before = build_schema(
        "id BIGINT, n INT, at TIMESTAMP(3), m MAP<STRING, INT>",
        primary_keys=["id"],
        options={
            "bucket": "2",
            "bucket-key": "id",
            "sequence.field": "at,n",
            "fields.n.stats-mode": "full",
            "file-index.bitmap.columns": "n,m[k]",
            "file-index.bitmap.n.version": "2",
            "file-index.bitmap.m[k].version": "1",
        },
    )
    after = evolve(before, [RenameColumn(path=(a,), name=b) for a, b in (("id", "key"), ("n", "number"), ("m", "map"))])
    assert after.primary_keys == ("key",)
    assert after.options == {
        "bucket": "2",
        "bucket-key": "key",
        "sequence.field": "at,number",
        "fields.number.stats-mode": "full",
        "file-index.bitmap.columns": "number,map[k]",
        "file-index.bitmap.number.version": "2",
        "file-index.bitmap.map[k].version": "1",
    }
    assert [str(spec.column) for spec in after.file_index.specs] == ["number", "map[k]"]


def test_options_name_columns_in_groups_and_as_their_values():
    options = {"fields.a,b.sequence-group": "c,d", "fields.c.aggregate-function": "sum", "rowkind.field": "c", "target-file-size": "c"}
    assert options_naming(options, "c") == ["fields.a,b.sequence-group", "fields.c.aggregate-function", "rowkind.field"]
    assert "fields.a,x.sequence-group" in rename_in_options(options, "b", "x")
    assert rename_in_options(options, "z", "y") == options


@pytest.mark.parametrize("key", sorted(OF_COLUMNS))
def test_parquet_options_of_a_column_follow_it(key):
    options = {f"{key}#n": "zstd", f"{key}#m": "none", key: "zstd"}
    assert rename_in_options(options, "n", "x") == {f"{key}#x": "zstd", f"{key}#m": "none", key: "zstd"}
    assert options_naming(options, "n") == [f"{key}#n"]


REFUSED = [
    (DropColumn(path=("id",)), "primary-key column"),
    (DropColumn(path=("day",)), "cannot be dropped"),
    (RenameColumn(path=("day",), name="d"), "partition column"),
    (RenameColumn(path=("qty",), name="id"), "'id' exists already"),
    (RenameColumn(path=("qty",), name="_KEY_x"), "reserved"),
    (RenameColumn(path=("who", "age"), name="name"), "'who.name' exists already"),
    (AddColumn(path=("qty",), type="INT"), "'qty' exists already"),
    (AddColumn(path=("x",), type="INT NOT NULL"), "cannot be INT NOT NULL"),
    (AddColumn(path=("x",), type="INT", first=True, after="id"), "not both"),
    (AddColumn(path=("x",), type="INT", default="many"), "default value 'many'"),
    (AddColumn(path=("who", "x"), type="INT", default="1"), "only a whole column"),
    (AddColumn(path=("x",), type="GEOMETRY"), "not supported"),
    (AddColumn(path=("qty", "x"), type="INT"), "has no fields"),
    (ChangeType(path=("id",), type="INT"), "primary-key column and keeps its type"),
    (ChangeType(path=("day",), type="STRING"), "keeps its type"),
    (ChangeType(path=("qty",), type="DATE"), "INT cannot become DATE"),
    (ChangeType(path=("attrs",), type={"type": "MAP", "key": "INT NOT NULL", "value": "INT"}), "type of a map's keys"),
    (ChangeType(path=("attrs", "key"), type="INT"), "no part 'key', only 'value'"),
    (ChangeType(path=("tags",), type="STRING"), "cannot become"),
    (ChangeNullability(path=("id",), nullable=True), "stays NOT NULL"),
    (ChangeNullability(path=("qty",), nullable=False), "alter-column-null-to-not-null.disabled"),
    (MoveColumn(path=("qty",), after="qty"), "after itself"),
    (ChangeDefault(path=("who", "age"), default="3"), "only a whole column"),
]


@pytest.mark.parametrize(("change", "reason"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_may_not_change_is_refused_by_name(schema, change, reason):
    with pytest.raises(InvalidSchema, match=reason):
        evolve(schema, [change])


@pytest.mark.parametrize("option", ["pk-btree.index.columns", "pk-bitmap.index.columns", "pk-full-text.index.columns", "vector-field"])
@pytest.mark.parametrize(
    "change",
    [
        DropColumn(path=("qty",)),
        RenameColumn(path=("qty",), name="many"),
        ChangeType(path=("qty",), type="BIGINT"),
        ReplaceColumns(columns=({"id": -1, "name": "id", "type": "BIGINT NOT NULL"}, {"id": -1, "name": "day", "type": "DATE NOT NULL"})),
        DropColumn(path=("who", "age")),
        RenameColumn(path=("who", "age"), name="years"),
        ChangeType(path=("who", "age"), type="BIGINT"),
    ],
)
def test_columns_of_a_secondary_index_stay(schema, option, change):
    indexed = schema.model_copy(update={"options": {**schema.options, option: "day, qty,who"}})
    with pytest.raises(InvalidSchema, match=rf"is named by option '{re.escape(option)}': its index has the values"):
        evolve(indexed, [change])
    other = schema.model_copy(update={"options": {**schema.options, option: "tags"}})
    assert "qty" not in evolve(other, [DropColumn(path=("qty",))]).names


def test_unknown_columns_and_fixed_options_are_refused(schema):
    for change in (DropColumn(path=("x",)), MoveColumn(path=("qty",), after="x"), RenameColumn(path=("who", "x"), name="y")):
        with pytest.raises(UnknownColumn, match="'x'"):
            evolve(schema, [change])
    with pytest.raises(UnsupportedOption, match="bucket-key"):
        evolve(schema, [ChangeOptions(options={"bucket-key": "id"})])


def test_the_last_column_and_a_column_that_an_option_names_cannot_be_dropped():
    with pytest.raises(InvalidSchema, match="only one"):
        evolve(build_schema("a INT", options={}), [DropColumn(path=("a",))])
    indexed = build_schema("a INT, b INT", options={"file-index.bloom-filter.columns": "b"})
    with pytest.raises(InvalidSchema, match=r"'b' is named by option 'file-index\.bloom-filter\.columns'"):
        evolve(indexed, [DropColumn(path=("b",))])
    freed = [ChangeOptions(options={"file-index.bloom-filter.columns": None}), DropColumn(path=("b",))]
    assert evolve(indexed, freed).names == ("a",)


def test_a_type_that_its_index_cannot_hold_is_refused():
    indexed = build_schema("a INT, b INT", options={"file-index.bsi.columns": "b"})
    with pytest.raises(InvalidSchema, match="bsi"):
        evolve(indexed, [ChangeType(path=("b",), type="STRING")])


def test_an_append_tables_bucket_key_keeps_its_type():
    bucketed = build_schema("a INT, b INT", options={"bucket": "2", "bucket-key": "a"})
    with pytest.raises(InvalidSchema, match="bucket-key column"):
        evolve(bucketed, [ChangeType(path=("a",), type="BIGINT")])


def test_casts_with_a_loss_and_not_null_depend_on_options(schema):
    strict = evolve(schema, [ChangeOptions(options={"disable-explicit-type-casting": "true"})])
    assert evolve(strict, [ChangeType(path=("qty",), type="BIGINT")]).field("qty").type.nullable
    with pytest.raises(InvalidSchema, match="disable-explicit-type-casting"):
        evolve(strict, [ChangeType(path=("qty",), type="SMALLINT")])
    trusting = evolve(schema, [ChangeOptions(options={"alter-column-null-to-not-null.disabled": "false"})])
    required = evolve(trusting, [ChangeNullability(path=("qty",), nullable=False)])
    assert not required.field("qty").type.nullable
    assert evolve(required, [ChangeNullability(path=("qty",), nullable=True)]).field("qty").type.nullable


def test_nothing_changes_without_a_change(schema):
    assert evolve(schema, [MoveColumn(path=("attrs",)), ChangeOptions(options={"bucket": "2"})]) is schema


def test_all_changes_or_none(schema, tmp_path):
    manager = SchemaManager(LocalFileIO(), str(tmp_path))
    manager.create(schema)
    with pytest.raises(InvalidSchema):
        manager.alter([AddColumn(path=("x",), type="INT"), DropColumn(path=("id",))])
    assert manager.ids() == [0]


def test_changes_travel_as_json_and_schemas_come_back_from_their_file(schema):
    changes = [change for change, _ in REFUSED]
    adapter = TypeAdapter(list[SchemaChange])
    assert adapter.validate_json(adapter.dump_json(changes)) == changes
    after = evolve(schema, [AddColumn(path=("x",), type="INT", default="7", comment="c"), ChangeComment(comment="table")])
    again = TableSchema.from_json(after.to_json())
    assert again == after
    assert (again.field("x").default_value, again.comment) == ("7", "table")


def test_racing_alters_all_take_effect_one_after_the_other(schema, tmp_path):
    SchemaManager(LocalFileIO(), str(tmp_path)).create(schema)
    errors: list[Exception] = []

    def alter(number):
        try:
            SchemaManager(LocalFileIO(), str(tmp_path)).alter([AddColumn(path=(f"c{number}",), type="INT")])
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=alter, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    manager = SchemaManager(LocalFileIO(), str(tmp_path))
    assert manager.ids() == list(range(7))
    newest = manager.require()
    assert {f"c{number}" for number in range(6)} < set(newest.names)
    assert len({field.id for field in newest.fields}) == len(newest.fields)


def replaced(schema: TableSchema, columns: str, **ids: int) -> TableSchema:
    fields = [replace(field, id=ids.get(field.name, -1)) for field in build_schema(columns).fields]
    return evolve(schema, [ReplaceColumns(columns=tuple(field.to_json() for field in fields))])


def test_replaced_columns_have_the_ids_of_their_values() -> None:
    before = build_schema("id BIGINT, s ROW<a INT, b INT>, c STRING", primary_keys=["id"])
    after = replaced(before, "c STRING NOT NULL, s ROW<a INT, b BIGINT>, id BIGINT NOT NULL, n INT")
    assert [(field.name, field.id) for field in after.fields] == [("c", 4), ("s", 5), ("id", 0), ("n", 8)]
    assert [field.id for field in after.field("s").type.fields] == [6, 7]
    assert (after.highest_field_id, after.id) == (8, 1)
    back = evolve(after, [ReplaceColumns(columns=tuple(field.to_json() for field in before.fields))])
    assert (back.fields, back.highest_field_id, back.id) == (before.fields, 8, 2)


@pytest.mark.parametrize(
    ("columns", "ids", "reason"),
    [
        ("c STRING", {}, "column 'id' is a primary-key column and must stay, as BIGINT NOT NULL"),
        ("id INT NOT NULL", {}, "must stay, as BIGINT NOT NULL"),
        ("id BIGINT NOT NULL", {}, "column 'c' is named by option 'sequence.field'"),
        ("id BIGINT NOT NULL, c STRING, n INT", {"n": 9}, "the table has had no column with id 9"),
    ],
)
def test_columns_that_cannot_be_replaced(columns: str, ids: dict[str, int], reason: str) -> None:
    before = build_schema("id BIGINT, c STRING", primary_keys=["id"], options={"sequence.field": "c"})
    with pytest.raises(InvalidSchema, match=reason):
        replaced(before, columns, **ids)


def test_columns_of_the_bucket_key_stay() -> None:
    before = build_schema("id BIGINT, c STRING", options={"bucket": "2", "bucket-key": "c"})
    with pytest.raises(InvalidSchema, match="column 'c' is a bucket-key column and must stay, as STRING"):
        replaced(before, "id BIGINT, c INT")
