"""Types: their schema-file form, their Arrow form, field ids, and column lists as DDL text."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.io.errors import InvalidSchema
from manifest.types.data_type import MAX_LENGTH, DataField, DataType, arrow_schema, from_arrow, highest_id, number_fields
from manifest.types.ddl import parse_ddl, parse_table_ddl
from paimon_base.errors import UnsupportedType
from sparkexpr.values.column_type import Kind

CANONICAL = {
    "CHAR(3)": pa.string(),
    "VARCHAR(10)": pa.string(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "BINARY(4)": pa.binary(),
    "BYTES": pa.binary(),
    "DECIMAL(38, 10)": pa.decimal128(38, 10),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIME(3)": pa.time32("ms"),
    "TIMESTAMP(0)": pa.timestamp("ms"),
    "TIMESTAMP(3)": pa.timestamp("ms"),
    "TIMESTAMP(6)": pa.timestamp("us"),
    "TIMESTAMP(9)": pa.timestamp("ns"),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": pa.timestamp("us", "UTC"),
}
SYNONYMS = {
    "integer": "INT",
    "DEC(5)": "DECIMAL(5, 0)",
    "NUMERIC": "DECIMAL(10, 0)",
    "DECIMAL(10,2)": "DECIMAL(10, 2)",
    "double precision": "DOUBLE",
    "VARCHAR": "VARCHAR(1)",
    "VARBINARY": "VARBINARY(1)",
    f"VARCHAR({MAX_LENGTH})": "STRING",
    f"VARBINARY({MAX_LENGTH})": "BYTES",
    "TIMESTAMP": "TIMESTAMP(6)",
    "TIMESTAMP(3) WITHOUT TIME ZONE": "TIMESTAMP(3)",
    "TIMESTAMP_LTZ(3)": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "TIME": "TIME(0)",
    "INT NULL": "INT",
}


@pytest.mark.parametrize("text", CANONICAL)
@pytest.mark.parametrize("suffix", ["", " NOT NULL"])
def test_canonical_text_survives_a_round_trip(text: str, suffix: str) -> None:
    parsed = DataType.from_json(text + suffix)
    assert parsed.to_json() == text + suffix
    assert parsed.nullable == (not suffix)
    assert parsed.arrow == CANONICAL[text]


@pytest.mark.parametrize(("text", "canonical"), SYNONYMS.items())
def test_synonyms_become_canonical(text: str, canonical: str) -> None:
    assert str(DataType.from_json(text)) == canonical


UNWRITABLE = ["VARIANT", "BLOB", "GEOMETRY(OGC:CRS84)", "GEOMETRY(srid:3857)", "GEOGRAPHY(OGC:CRS84, spherical)"]


@pytest.mark.parametrize("text", UNWRITABLE)
@pytest.mark.parametrize("suffix", ["", " NOT NULL"])
def test_types_that_are_not_built_are_kept_as_they_are(text: str, suffix: str) -> None:
    parsed = DataType.from_json(text + suffix)
    assert parsed.to_json() == text + suffix
    assert DataType.from_json({"type": "ARRAY", "element": text + suffix}).to_json() == {"type": "ARRAY", "element": text + suffix}


def test_vectors_are_kept_with_their_length() -> None:
    json = {"type": "VECTOR NOT NULL", "element": "FLOAT", "length": 3}
    assert DataType.from_json(json).to_json() == json
    assert str(DataType.from_json(json)) == "VECTOR<FLOAT, 3> NOT NULL"


@pytest.mark.parametrize("text", ["GEOMETRY", "GEOGRAPHY"])
def test_columns_of_types_that_are_not_built_have_no_rows(text: str) -> None:
    with pytest.raises(UnsupportedType, match="'place'"):
        arrow_schema([DataField(0, "place", DataType.from_json(text))])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "INTEGER(3)",
        "DECIMAL(39, 0)",
        "DECIMAL(5, 6)",
        "CHAR(0)",
        "TIMESTAMP(10)",
        "TEXT",
        "INT NOT",
        "TIMESTAMP WITH TIME ZONE",
        "INT WITHOUT TIME ZONE",
        "TIME WITH LOCAL TIME ZONE",
        "CHAR(²)",
        "GEOMETRY()",
        "DECIMAL(a)",
        "X" * 999,
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedType):
        DataType.from_json(text)


@pytest.mark.parametrize("json", [None, 3, {}, {"type": "UNION"}, {"type": "MAP", "key": "STRING"}, {"type": "ARRAY NOT NULL"}])
def test_other_json_is_refused(json: object) -> None:
    with pytest.raises(UnsupportedType):
        DataType.from_json(json)


def test_redundant_members_of_other_writers_are_passed_over() -> None:
    parsed = DataType.from_json({"type": "ARRAY NOT NULL", "element": "INT", "nullable": False})
    assert parsed.to_json() == {"type": "ARRAY NOT NULL", "element": "INT"}


def test_nested_fields_are_numbered_after_their_own_children() -> None:
    columns = parse_ddl("c ROW<a ROW<x INT, y ARRAY<ROW<z INT>>>, b INT>, d MAP<INT, ROW<q INT>>, e INT")
    outer = columns[0].type
    inner = outer.fields[0].type
    assert [column.id for column in columns] == [0, 6, 8]
    assert [field.id for field in outer.fields] == [4, 5]
    assert [field.id for field in inner.fields] == [1, 3]
    assert columns[1].type.part("value").fields[0].id == 7
    assert highest_id(columns) == 8


def test_multisets_are_maps_to_counts() -> None:
    arrow = DataType.from_json({"type": "MULTISET", "element": "STRING"}).arrow
    assert arrow.key_type == pa.string()
    assert arrow.item_type == pa.int32()
    assert not arrow.item_field.nullable


def test_arrow_types_of_users_find_their_counterpart() -> None:
    schema = pa.schema(
        [
            ("small", pa.uint8()),
            ("dictionary", pa.dictionary(pa.int32(), pa.large_string())),
            ("view", pa.string_view()),
            ("seconds", pa.timestamp("s")),
            ("zoned", pa.timestamp("ns", "Europe/Oslo")),
            ("list", pa.large_list(pa.int8())),
            ("struct", pa.struct([pa.field("x", pa.float32(), nullable=False)])),
        ]
    )
    fields = from_arrow(schema)
    assert [str(field.type) for field in fields] == [
        "SMALLINT",
        "STRING",
        "STRING",
        "TIMESTAMP(0)",
        "TIMESTAMP(9) WITH LOCAL TIME ZONE",
        "ARRAY<TINYINT>",
        "ROW<x FLOAT NOT NULL>",
    ]


@pytest.mark.parametrize("arrow", [pa.uint64(), pa.duration("s"), pa.decimal256(50, 2), pa.null(), pa.list_(pa.uint64())])
def test_arrow_types_without_counterpart_are_refused_by_column(arrow: pa.DataType) -> None:
    with pytest.raises(UnsupportedType, match="'odd'"):
        from_arrow(pa.schema([("odd", arrow)]))


atomic = st.sampled_from(sorted(CANONICAL)).map(DataType.from_json)
types = st.recursive(
    atomic,
    lambda inner: (
        inner.map(lambda element: DataType(Kind.ARRAY, element=element))
        | st.tuples(atomic, inner).map(lambda pair: DataType(Kind.MAP, key=pair[0].with_nullable(nullable=False), value=pair[1]))
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda parts: DataType(Kind.ROW, fields=tuple(DataField(-1, f"{i}. `f`, {i}", part) for i, part in enumerate(parts)))
        )
    ),
    max_leaves=8,
)


@given(st.lists(types, min_size=1, max_size=4))
def test_types_survive_json_and_ddl(parts: list[DataType]) -> None:
    fields = number_fields([DataField(-1, f"c{i}", part) for i, part in enumerate(parts)])
    assert tuple(DataField.from_json(field.to_json()) for field in fields) == fields
    text = ", ".join(f"{field.name} {field.type}" for field in fields)
    assert parse_ddl(text) == fields
    assert arrow_schema(fields).names == [field.name for field in fields]


@pytest.mark.parametrize("text", ["", "id", "id INT,", "id INT name STRING", "1id INT", "id MAP<INT", "id INT ; drop", "a ARRAY<" * 60])
def test_broken_column_lists_are_refused(text: str) -> None:
    with pytest.raises((InvalidSchema, UnsupportedType)):
        parse_ddl(text)


@pytest.mark.parametrize("around", ["{}", "{} NOT NULL", "ARRAY<{}>", "MAP<STRING, {}>", "STRUCT<f: {}>"])
def test_a_type_of_one_character_is_asked_for(around: str) -> None:
    for text, unbounded in (("VARCHAR", "STRING"), ("char", "STRING"), ("VARBINARY", "BYTES")):
        with pytest.raises(UnsupportedType, match=rf"{text.upper()} needs a length: {text.upper()}\(20\); {unbounded} has none"):
            parse_ddl(f"id INT, c {around.format(text)}")
        assert f"{text.upper()}(3)" in str(parse_ddl(f"c {around.format(text + '(3)')}")[0].type)
    assert parse_ddl(f"c {around.format('BINARY')}") == parse_ddl(f"c {around.format('BYTES')}")
    assert DataType.from_json("VARCHAR") == DataType.from_json("VARCHAR(1)")  # of schema files, as in Paimon


def test_column_lists_take_sparks_spelling() -> None:
    fields = parse_ddl("`my id` long not null comment 'it''s', s struct<a: int, b: array<string>>, t timestamp_ntz")
    assert [f"{field.name} {field.type}" for field in fields] == [
        "my id BIGINT NOT NULL",
        "s ROW<a INT, b ARRAY<STRING>>",
        "t TIMESTAMP(6)",
    ]
    assert fields[0].description == "it's"


@pytest.mark.parametrize(
    "text",
    [
        "id BIGINT, day DATE, PRIMARY KEY (day, id) PARTITIONED BY (day)",
        "id BIGINT, PRIMARY KEY (day, `id`) NOT ENFORCED, day DATE PARTITIONED BY (day)",
        "(id BIGINT, day DATE, primary key (day, id)) partitioned by (day)",
        "CREATE TABLE IF NOT EXISTS `db`.t (id BIGINT, day DATE, PRIMARY KEY (day, id)) PARTITIONED BY (day) COMMENT 'it''s'",
    ],
)
def test_a_column_list_may_name_its_keys(text: str) -> None:
    ddl = parse_table_ddl(text)
    assert sorted(field.name for field in ddl.fields) == ["day", "id"]
    assert (ddl.primary_keys, ddl.partition_keys) == (("day", "id"), ("day",))
    assert ddl.comment == ("it's" if "COMMENT" in text else None)


@pytest.mark.parametrize(
    "text",
    [
        "id INT, PRIMARY KEY",
        "id INT, PRIMARY KEY (id), PRIMARY KEY (id)",
        "id INT, PRIMARY KEY ()",
        "(id INT",
        "CREATE TABLE t",
        "id INT) PARTITIONED BY (id)",
        "(id INT) PARTITIONED BY (id) PARTITIONED BY (id)",
        "(id INT) TBLPROPERTIES (a)",
        "PRIMARY KEY (id)",
    ],
)
def test_broken_tables_are_refused(text: str) -> None:
    with pytest.raises((InvalidSchema, UnsupportedType)):
        parse_table_ddl(text)
