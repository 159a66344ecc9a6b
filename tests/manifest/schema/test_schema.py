"""Schemas: the file, normalisation and the rules at create and alter, options that exist and options that are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.io.errors import InvalidSchema, SchemaMismatch, TableExists, TableNotFound, UnsupportedTable
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.options.core_options import CoreOptions
from manifest.options.support import check_call, check_settable, check_writable
from manifest.schema.change import ChangeOptions
from manifest.schema.evolution import evolve
from manifest.schema.manager import SchemaManager
from manifest.schema.table_kind import AppendTable, KeyValueTable
from manifest.schema.table_schema import TableSchema
from manifest.schema.validation import build_schema
from paimon_base.errors import CorruptFile, UnsupportedOption

GOLDEN = Path(__file__).parents[2] / "golden"
DDL = "day INT, id BIGINT, name STRING, price DECIMAL(10, 2), attrs MAP<STRING, INT>"
BUCKETS = {"bucket": "2"}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/table/schema/schema-*")), ids=lambda path: f"{path.parts[-4]}-{path.name}")
def test_the_engines_schema_files_survive_a_round_trip(path: Path) -> None:
    schema = TableSchema.from_json(path.read_text(), str(path))
    assert json.loads(schema.to_json()) == json.loads(path.read_text())
    assert list(json.loads(schema.to_json())) == list(json.loads(path.read_text()))


def test_old_file_versions_get_the_options_they_implied() -> None:
    base = {
        "id": 0,
        "fields": [{"id": 0, "name": "k", "type": "INT"}],
        "highestFieldId": 0,
        "partitionKeys": [],
        "primaryKeys": [],
        "options": {},
    }
    assert TableSchema.from_json(json.dumps(base)).options == {"bucket": "1", "file.format": "orc"}
    assert TableSchema.from_json(json.dumps({**base, "version": 2, "options": {"bucket": "9"}})).options == {
        "bucket": "9",
        "file.format": "orc",
    }
    assert TableSchema.from_json(json.dumps({**base, "version": 3})).options == {}


@pytest.mark.parametrize("absent", ["fields", "highestFieldId", "partitionKeys", "primaryKeys", "options"])
def test_a_schema_without_what_every_engine_writes_is_damaged(absent: str) -> None:
    whole = TableSchema(id=0, fields=(), primary_keys=("k",))
    text = whole.to_json().replace(f'"{absent}"', f'"{absent[:-1]}"')
    with pytest.raises(CorruptFile, match=f"has no '{absent}'"):
        TableSchema.from_json(text)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{}", '{"id": "x", "fields": []}', '{"version": 3, "id": 0, "fields": [{"name": "k"}]}', "[" * 100_000]
)
def test_damaged_schema_files_are_named(text: str) -> None:
    with pytest.raises(CorruptFile, match="schema-7"):
        TableSchema.from_json(text, "/t/schema/schema-7")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fields": [("k", 0), ("k", 1)]}, "two columns have the same name"),
        ({"fields": [("k", 0), ("v", 0)]}, "two columns have the same id"),
        ({"primaryKeys": ["j"]}, "primary key names columns that it does not have: j"),
        ({"partitionKeys": ["p", "q"]}, "partition names columns that it does not have: p, q"),
    ],
    ids=str,
)
def test_schemas_whose_columns_nobody_can_tell_are_damaged(wrong: dict[str, Any], message: str) -> None:
    parts = {"fields": [("k", 0)], "primaryKeys": [], "partitionKeys": [], **wrong}
    parts["fields"] = [{"id": number, "name": name, "type": "INT NOT NULL"} for name, number in parts["fields"]]
    text = json.dumps({"version": 3, "id": 0, "highestFieldId": 1, "options": {}, **parts})
    with pytest.raises(CorruptFile, match=f"schema-7.*{message}"):
        TableSchema.from_json(text, "/t/schema/schema-7")


def test_columns_of_unknown_types_are_named_with_the_file() -> None:
    text = TableSchema(id=0, fields=()).to_json().replace('"fields": []', '"fields": [{"id": 0, "name": "place", "type": "HYPERCUBE"}]')
    with pytest.raises(UnsupportedTable, match=r"schema-7: column 'place': 'HYPERCUBE'"):
        TableSchema.from_json(text, "/t/schema/schema-7")


def test_a_new_schema_is_normalised() -> None:
    schema = build_schema(DDL, options={"primary-key": "id, day", "partition": "day", "bucket": "3"}, comment="about")
    assert schema.primary_keys == ("id", "day")
    assert schema.partition_keys == ("day",)
    assert schema.trimmed_primary_keys == schema.bucket_keys == ("id",)
    assert schema.options == BUCKETS | {"bucket": "3"}
    assert not schema.field("id").type.nullable
    assert not schema.field("day").type.nullable
    assert schema.highest_field_id == 4
    assert schema.comment == "about"


def test_the_trimmed_key_keeps_the_keys_order() -> None:
    schema = build_schema("a INT, b INT, c INT", primary_keys=["c", "b", "a"], partition_keys=["b"], options=BUCKETS)
    assert schema.trimmed_primary_keys == ("c", "a")


@pytest.mark.parametrize(
    ("columns", "keys", "partitions", "named"),
    [
        ("a INT, a INT", [], [], "'a'"),
        ("a INT", ["b"], [], "'b'"),
        ("a INT", ["a", "a"], [], "'a'"),
        ("a INT", ["a"], ["a"], "not a partition column"),
        ("a MAP<STRING, INT>, b INT", ["a"], [], "'a'"),
        ("a INT, b ARRAY<INT>", [], ["b"], "'b'"),
        ("_VALUE_KIND INT", [], [], "_VALUE_KIND"),
        ("_KEY_x INT", [], [], "_KEY_x"),
        ("a INT, v GEOMETRY", [], [], "'v'"),
        ("a INT, v ARRAY<GEOMETRY>", [], [], "'v'"),
        ("a INT, v MAP<INT, ROW<x INT, x INT>>", [], [], "'x'"),
        ("a INT, v ROW<>", [], [], "'v'"),
        ("a INT, p BYTES", [], ["p"], "'p'"),
    ],
)
def test_broken_rules_name_the_column(columns: str, keys: list[str], partitions: list[str], named: str) -> None:
    with pytest.raises(InvalidSchema, match=named):
        build_schema(columns, primary_keys=keys, partition_keys=partitions, options=BUCKETS if keys else {})


@pytest.mark.parametrize(
    "options",
    [
        {"bukcet": "4"},
        {"bucket": "0"},
        {"bucket": "many"},
        {"bucket": "-3"},
        {"bucket-key": "name"},
        {"bucket-function.type": "hive"},
        {"bucket-function.type": "mod", "bucket-key": "id,day"},
        {"merge-engine": "newest-row"},
        {"changelog-producer": "sometimes"},
        {"file.format": "text"},
        {"file.format.per.level": "0:csv"},
        {"sequence.field": "nothing"},
        {"sequence.field": "attrs"},
        {"sequence.field": "price", "sequence.field.sort-order": "sideways"},
        {"rowkind.field": "price"},
        {"branch": "other"},
        {"write-buffer-size": "lots"},
        {"snapshot.time-retained": "1 fortnight"},
        {"snapshot.num-retained.min": "0"},
        {"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "4"},
        {"metadata.stats-mode": "truncate(x)"},
        {"fields.nothing.stats-mode": "full"},
        {"fields.nothing.aggregate-function": "sum"},
        {"fields.price.aggregate-function": "rbm64"},
        {"num-levels": "1"},
        {"file-index.bloom-filter.columns": "nothing"},
        {"file-index.bitmap.columns": "attrs"},
        {"file-index.bloom.columns": "id"},
        {"file-index.bloom-filter.name.items": "5"},
        {"file-index.bitmap.columns": "price"},
        {"clustering.columns": "nothing"},
        {"clustering.columns": "attrs"},
        {"primary-key": "id"},
    ],
    ids=str,
)
def test_options_that_are_unknown_or_not_built_are_refused_by_name(options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedOption) as caught:
        build_schema(DDL, primary_keys=["id", "day"], options=BUCKETS | options)
    assert caught.value.option in {*options, "bucket"}


def test_options_are_text() -> None:
    with pytest.raises(UnsupportedOption, match="bucket"):
        check_settable({"bucket": 4})


def test_known_options_are_kept_verbatim() -> None:
    options = BUCKETS | {
        "write-buffer-size": " 64 MB ",
        "parquet.validation": "x",
        "fields.price.stats-mode": "full",
        "sequence.field": "price,id",
    }
    schema = build_schema(DDL, primary_keys=["id"], options=options)
    assert schema.options == options
    assert schema.core.write_buffer_size == 64 << 20
    assert schema.core.sequence_field == ("price", "id")


def test_unknown_options_of_an_open_table_are_kept_and_do_no_harm() -> None:
    core = CoreOptions.of({"made.by": "someone", "bucket": "2"})
    assert core.raw["made.by"] == "someone"
    KeyValueTable(core).check_readable("t")
    check_writable(core, "t")


@pytest.mark.parametrize("options", [{"merge-engine": "newest-row"}, {"sequence.snapshot-ordering": "true"}])
def test_reading_refuses_what_changes_rows(options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedTable, match=next(iter(options))):
        KeyValueTable(CoreOptions.of(options)).check_readable("t")


@pytest.mark.parametrize("options", [{"data-file.external-paths": "s3://b/p"}, {"file.format": "csv"}])
def test_writing_refuses_what_it_cannot_honour(options: dict[str, str]) -> None:
    core = CoreOptions.of({"bucket": "1"} | options)
    KeyValueTable(core).check_readable("t")
    with pytest.raises(UnsupportedTable, match=next(iter(options))):
        check_writable(core, "t")


def manager(tmp_path: Path) -> SchemaManager:
    return SchemaManager(LocalFileIO(), str(tmp_path))


def test_a_table_is_created_once(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound, match=str(tmp_path)):
        manager(tmp_path).require()
    schema = manager(tmp_path).create(build_schema(DDL))
    assert manager(tmp_path).require() == schema
    with pytest.raises(TableExists):
        manager(tmp_path).create(schema)


def test_altered_options_make_a_new_version(tmp_path: Path) -> None:
    schemas = manager(tmp_path)
    schemas.create(build_schema(DDL, primary_keys=["id"], options=BUCKETS | {"write-only": "true"}))
    altered = schemas.alter([ChangeOptions(options={"write-only": None, "file-index.bitmap.columns": "name"})])
    assert altered.id == 1
    assert altered.options == BUCKETS | {"file-index.bitmap.columns": "name"}
    assert manager(tmp_path).require() == altered
    assert schemas.alter([ChangeOptions(options={"write-only": None})]).id == 1
    assert schemas.ids() == [0, 1]


@pytest.mark.parametrize("change", [{"bucket-key": "id"}, {"merge-engine": "first-row"}, {"bucket": "-1"}, {"no.such": "x"}])
def test_options_that_may_not_change_are_refused(tmp_path: Path, change: dict[str, str | None]) -> None:
    manager(tmp_path).create(build_schema(DDL, primary_keys=["id"], options=BUCKETS))
    with pytest.raises(UnsupportedOption, match=next(iter(change))):
        manager(tmp_path).alter([ChangeOptions(options=change)])
    assert manager(tmp_path).ids() == [0]


def test_names_that_are_no_version_are_passed_over(tmp_path: Path) -> None:
    manager(tmp_path).create(build_schema(pa.schema([("a", pa.int32())])))
    (tmp_path / "schema" / "schema-x").write_text("?")
    (tmp_path / "schema" / ".schema-1.tmp").write_text("?")
    assert manager(tmp_path).ids() == [0]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"file.compression.per.level": "0:lzo"}, "file.compression.per.level"),
        ({"manifest.compression": "none"}, "manifest.compression"),
        ({"metadata.iceberg.storage": "rest-catalog"}, "metadata.iceberg.storage"),
        ({"commit.callbacks": "com.example.Callback"}, "commit.callbacks"),
        ({"scan.snapshot-id": "3"}, "scan.snapshot-id"),
        ({"incremental-between": "1,3"}, "incremental-between"),
        ({"pk-vector.index.columns": "v"}, "pk-vector.index.columns"),
        ({"partition": "day"}, "partition"),
        ({"num-levels": "many"}, "num-levels"),
    ],
    ids=str,
)
def test_known_options_that_cannot_be_honoured_are_not_called_unknown(options: dict[str, str], named: str) -> None:
    with pytest.raises(UnsupportedOption) as caught:
        check_settable(options)
    assert caught.value.option == named
    assert "unknown" not in caught.value.reason


@pytest.mark.parametrize(
    "key", ["sort-engine", "lookup.cache-max-memory-size", "page-size", "async-file-write", "scan.manifest.parallelism"]
)
def test_options_that_only_tune_are_taken(key: str) -> None:
    check_settable({key: "4"})


def test_a_call_cannot_change_what_all_files_of_a_table_share() -> None:
    check_call({"target-file-size": "1 mb", "write-only": "true"})
    for key, value in {"bucket": "8", "sequence.field": "price", "data-file.thin-mode": "true", "primary-key": "id"}.items():
        with pytest.raises(UnsupportedOption, match=key):
            check_call({key: value})


@pytest.mark.parametrize(
    "options",
    [
        {"scan.snapshot-id": "3"},
        {"scan.mode": "compacted-full"},
        {"branch": "b"},
        {"type": "format-table"},
    ],
    ids=str,
)
def test_stored_options_that_change_what_a_scan_returns_are_refused(options: dict[str, str]) -> None:
    for kind in (KeyValueTable, AppendTable):
        with pytest.raises(UnsupportedTable, match=next(iter(options))):
            kind(CoreOptions.of(options)).check_readable("t")


def stored(tmp_path: Path, options: dict[str, str]) -> SchemaManager:
    """A table as another engine may have left it: its options were not checked by us."""
    made = build_schema(DDL, primary_keys=["id"], options=BUCKETS)
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "schema-0").write_text(made.model_copy(update={"options": BUCKETS | options}).to_json())
    return manager(tmp_path)


def test_what_others_have_set_does_not_stand_in_the_way_of_a_change(tmp_path: Path) -> None:
    theirs = {"made.by": "someone", "changelog-producer": "input", "fields.price.aggregate-function": "sum"}
    altered = stored(tmp_path, theirs).alter([ChangeOptions(options={"snapshot.num-retained.min": "3", "bucket": "5"})])
    assert altered.options == theirs | {"snapshot.num-retained.min": "3", "bucket": "5"}
    assert manager(tmp_path).alter([ChangeOptions(options={"made.by": None})]).id == 2


@pytest.mark.parametrize(
    "change",
    [
        {"ignore-delete": "false"},
        {"ignore-delete": None},
        {"deletion-vectors.enabled": "false"},
        {"bucket": "-2"},
        {"bucket": "0"},
        {"sequence.field": "nothing"},
        {"num-levels": "1"},
        {"file-index.bitmap.columns": "nothing"},
    ],
    ids=str,
)
def test_changes_that_break_a_promise_or_a_rule_are_refused(tmp_path: Path, change: dict[str, str | None]) -> None:
    schemas = stored(tmp_path, {"ignore-delete": "true", "deletion-vectors.enabled": "true"})
    with pytest.raises(UnsupportedOption, match=next(iter(change))):
        schemas.alter([ChangeOptions(options=change)])
    assert schemas.ids() == [0]


class _Racing(WrappedFileIO):
    """Lets another writer create each schema version first, a number of times."""

    def __init__(self, losses: int) -> None:
        super().__init__(LocalFileIO())
        self.losses = losses

    def create_exclusive(self, path: str, data: bytes, **options: Any) -> bool:
        if self.losses and not path.endswith("schema-0"):
            self.losses -= 1
            number = path.rpartition("-")[2]
            theirs = json.loads(data) | {"options": BUCKETS | {"made.by": f"the winner of {number}"}}
            del theirs["crc32"]  # another engine writes what it knows
            super().create_exclusive(path, json.dumps(theirs).encode())
        return super().create_exclusive(path, data, **options)


def test_a_lost_race_is_run_again_on_the_winners_schema(tmp_path: Path) -> None:
    schemas = SchemaManager(_Racing(2), str(tmp_path))
    schemas.create(build_schema(DDL, primary_keys=["id"], options=BUCKETS))
    altered = schemas.alter([ChangeOptions(options={"write-only": "true"})])
    assert altered.id == 3
    assert altered.options == BUCKETS | {"made.by": "the winner of 2", "write-only": "true"}


class _Dropping(WrappedFileIO):
    """The table is dropped while a second version of its schema is on its way."""

    def create_exclusive(self, path: str, data: bytes, **options: Any) -> bool:
        if not path.endswith("schema-0"):
            shutil.rmtree(Path(path).parent)
        return super().create_exclusive(path, data, **options)


def test_a_change_of_schema_does_not_bring_a_dropped_table_back(tmp_path: Path) -> None:
    schemas = SchemaManager(_Dropping(LocalFileIO()), str(tmp_path))
    schemas.create(build_schema(DDL, primary_keys=["id"], options=BUCKETS))
    with pytest.raises(TableNotFound):
        schemas.alter([ChangeOptions(options={"write-only": "true"})])
    assert schemas.ids() == []


def test_races_without_end_are_given_up(tmp_path: Path) -> None:
    schemas = SchemaManager(_Racing(99), str(tmp_path))
    schemas.create(build_schema(DDL, primary_keys=["id"], options=BUCKETS))
    with pytest.raises(SchemaMismatch, match="changed 10 times"):
        schemas.alter([ChangeOptions(options={"write-only": "true"})])


@given(st.sampled_from(sorted(GOLDEN.glob("*/table/schema/schema-*"))), st.data())
def test_damaged_schemas_are_typed_errors_that_name_the_file(path: Path, data: st.DataObject) -> None:
    text = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        schema = TableSchema.from_json(bytes(text), "the-file")
    except (CorruptFile, UnsupportedTable) as error:
        message = str(error)
    else:
        message = "the-file is whole"
        assert TableSchema.from_json(schema.to_json()) == schema
    assert message.startswith("the-file")


def test_a_former_name_counts_until_the_present_one_is_set() -> None:
    assert CoreOptions.of({"write.compaction-skip": "true"}).write_only
    assert not CoreOptions.of({"write.compaction-skip": "true", "write-only": "false"}).write_only


@pytest.mark.parametrize(
    ("text", "millis"),
    [("1 h", 3_600_000), ("10min", 600_000), ("2 d", 172_800_000), ("250", 250), ("1500 us", 1), ("3 Seconds", 3_000)],
)
def test_durations_are_milliseconds(text: str, millis: int) -> None:
    assert CoreOptions.of({"snapshot.time-retained": text}).snapshot_time_retained == millis


@pytest.mark.parametrize(
    "options",
    [
        {"snapshot.time-retained": "soon"},
        {"snapshot.time-retained": "-1 h"},
        {"target-file-size": "1.5 gb"},
        {"write-only": "yes"},
        {"file.format.per.level": "0=orc"},
        {"num-sorted-run.compaction-trigger": "five"},
        {"metadata.stats-mode.per.level": "x:full"},
    ],
    ids=str,
)
def test_malformed_values_are_refused_by_key(options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedOption) as caught:
        CoreOptions.of(options)
    assert {caught.value.option} == options.keys()


@pytest.mark.parametrize("kind", ["TIMESTAMP(9)", "TIMESTAMP_LTZ(7)", "TIME(6)", "ARRAY<ROW<at TIMESTAMP(9)>>"])
@pytest.mark.parametrize(
    "options", [{"file.format": "avro"}, {"file.format.per.level": "0:orc,5:avro"}, {"changelog-file.format": "avro"}], ids=str
)
def test_times_that_avro_cannot_hold_are_refused_before_a_write(kind: str, options: dict[str, str]) -> None:
    ddl = f"k INT NOT NULL, at {kind}"
    with pytest.raises(InvalidSchema, match=r"column 'at': TIME.* cannot be stored in Avro files"):
        build_schema(ddl, primary_keys=["k"], options=options)
    before = build_schema(ddl, primary_keys=["k"])
    with pytest.raises(InvalidSchema, match=r"column 'at': TIME.* cannot be stored in Avro files"):
        evolve(before, [ChangeOptions(options=options)])
    kept = TableSchema.from_json(json.dumps({**json.loads(before.to_json()), "options": options}), "t")
    assert evolve(kept, [ChangeOptions(options={"target-file-size": "1 mb"})]).options["target-file-size"] == "1 mb"


@pytest.mark.parametrize(
    "options",
    [
        {"file.format": "avro", "file.compression": "lz4"},
        {"file.format.per.level": "0:avro", "file.compression": "lz4"},
        {"file.format": "avro", "file.compression.per.level": "5:lz4"},
        {"changelog-file.format": "avro", "file.compression": "lz4"},
        {"file.format": "avro", "changelog-file.compression": "lz4"},
    ],
    ids=str,
)
def test_codecs_that_avro_lacks_are_refused_before_a_write(options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedOption, match="'lz4' is not a codec of Avro files"):
        build_schema("k INT NOT NULL", primary_keys=["k"], options=options)
    before = build_schema("k INT NOT NULL", primary_keys=["k"])
    for first, second in (list(options.items()), list(options.items())[::-1]):
        half = evolve(before, [ChangeOptions(options=dict([first]))])
        with pytest.raises(UnsupportedOption, match="'lz4' is not a codec of Avro files"):
            evolve(half, [ChangeOptions(options=dict([second]))])


def test_other_levels_of_avro_tables_may_use_lz4() -> None:
    options = {"file.format.per.level": "0:avro", "file.compression.per.level": "0:zstd", "file.compression": "lz4"}
    assert options.items() <= build_schema("k INT NOT NULL", primary_keys=["k"], options=options).options.items()
