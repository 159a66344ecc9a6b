"""Secondary indexes of primary-key tables: built by compactions, used by reads, right whatever happens around them."""

from __future__ import annotations

import math
import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from fileindex.sorted_index.index_meta import SourceMeta
from lsm.secondary_index.answers import _FileRows
from manifest.entry.index_manifest import IndexManifestEntry
from pyspark_paimon import InvalidSchema, Table, UnsupportedOption

OFF = {"global-index.enabled": "false"}
VECTORS = {"deletion-vectors.enabled": "true"}
INDEXED = {
    **VECTORS,
    "bucket": "2",
    "pk-btree.index.columns": "city,price",
    "pk-bitmap.index.columns": "country",
    "num-sorted-run.compaction-trigger": "3",
}
COLUMNS = "id BIGINT, city STRING, country STRING, price DOUBLE, day DATE"
FILTERS = (
    "city = 'c7'",
    "city IN ('c1', 'c2', 'nowhere')",
    "city LIKE 'c1%'",
    "city LIKE '%3'",
    "city IS NULL",
    "city IS NOT NULL AND price > 40",
    "city <> 'c7'",
    "city NOT IN ('c7', 'c8')",
    "price BETWEEN 10 AND 20",
    "price >= 30 AND price < 31 AND country = 'NO'",
    "price = 0",
    "price < -1 OR country = 'PE'",
    "country = 'NO' AND id < 100",
    "country = 'NO' OR id = 3",
    "NOT (country = 'NO' OR price > 5)",
    "country IS NULL",
    "upper(city) = 'C7' AND country = 'NO'",
)


def rows(draw: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": draw.randrange(400),
            "city": draw.choice([None, *(f"c{number}" for number in range(30))]),
            "country": draw.choice([None, "NO", "PE", "IT"]),
            "price": draw.choice([None, 0.0, -0.0, math.nan, math.inf, -math.inf, *map(float, range(50))]),
            "day": date(2024, 1, draw.randrange(1, 28)),
        }
        for _ in range(count)
    ]


def entries(table: Table) -> list[IndexManifestEntry]:
    store = table._engine.store()
    return [entry for entry in store.index_entries(store.snapshots.latest()) if entry.indexed is not None]


def sources(table: Table) -> dict[tuple[int, int, int], SourceMeta]:
    """What each payload covers, by bucket, field and level."""
    found = {}
    for entry in entries(table):
        source = SourceMeta.parse(entry.indexed.source_meta)
        where = entry.bucket, entry.indexed.field_id, source.level
        assert where not in found
        found[where] = source
    return found


def stage(table: Table, filter_: str, **options: Any) -> Any:
    return next(stage for stage in table.scan(filter_, **options).explain().stages if stage.name == "secondary index")


def text(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def check(table: Table) -> None:
    for filter_ in FILTERS:
        scan, plain = table.scan(filter_), table.scan(filter_, options=OFF)
        assert text(scan.to_arrow()) == text(plain.to_arrow()), filter_
        assert scan.count() == plain.count(), filter_
    merged = table._engine.store()
    for (bucket, _, level), source in sources(table).items():
        files = [
            (entry.file.file_name, entry.file.row_count)
            for entry in merged.live_entries(merged.snapshots.latest()).entries()
            if entry.bucket == bucket and entry.file.level == level and entry.file.file_source == 1
        ]
        assert [(file.name, file.row_count) for file in source.files] == sorted(files)
    assert table.fsck("deep").problems == ()


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
@pytest.mark.slow
def test_answers_are_those_without_the_index_through_writes_compactions_and_deletes(create, engine) -> None:
    draw = random.Random(engine)
    table = create(COLUMNS, options={**INDEXED, "merge-engine": engine})
    for number in range(8):
        table.write(pa.Table.from_pylist(rows(draw, 150), schema=table.schema))
        if engine == "deduplicate" and number % 3 == 1:
            table.delete("city = 'c7'")
            table.update("price BETWEEN 10 AND 12", set={"country": "'PE'"})
        if number % 4 == 3:
            table.compact(full=True)
            assert len(sources(table)) == 6
        check(table)


def loaded(create: Any, count: int = 1000, **options: str) -> Table:
    """A bulk load, which a full compaction only moves."""
    table = create(COLUMNS, options={**INDEXED, **options})
    at = range(count)
    table.write(
        pa.table(
            {
                "id": at,
                "city": [f"c{number % 100}" for number in at],
                "country": [["NO", "PE"][number % 2] for number in at],
                "price": [number / 10 for number in at],
                "day": [date(2024, 1, 1)] * count,
            }
        )
    )
    table.compact(full=True)
    return table


def test_a_bulk_load_is_indexed_although_its_files_only_move(create) -> None:
    table = loaded(create)
    assert {entry.file.file_source for entry in table._engine.store().live_entries(table._engine.store().snapshots.latest()).entries()} == {
        1
    }
    assert stage(table, "city = 'c7'").note.startswith("2 levels of buckets, payloads of ")
    assert stage(table, "city = 'c7'").note.endswith("2 blocks read, 10 rows selected")
    assert table.scan("city = 'c7'").count() == 10


@pytest.mark.parametrize("engine", ["btree", "bitmap"])
def test_a_level_larger_than_the_write_buffer_is_sorted_on_disk(create, engine) -> None:
    options = {"bucket": "1", f"pk-{engine}.index.columns": "city,price,country", "write-buffer-size": "2 kb"}
    table, plain = (
        create(COLUMNS, name=name, options={**VECTORS, **more})
        for name, more in (("t", options), ("p", {**options, "write-buffer-size": "64 mb"}))
    )
    at = rows(random.Random(7), 600)
    for each in (table, plain):
        each.write(pa.Table.from_pylist(at, schema=each.schema))
        each.compact(full=True)
    payloads = [
        [each._engine.store().file_io.read(each._engine.store().paths.index(entry.file_name)) for entry in entries(each)]
        for each in (table, plain)
    ]
    assert payloads[0] == payloads[1]
    assert len(payloads[0]) == 3


def test_a_split_travels_with_its_rows_and_is_hashable(create) -> None:
    table = loaded(create)
    values = ", ".join(f"'c{number}'" for number in range(5, 4000))
    split, *_ = table.scan(f"city IN ({values})").plan().splits
    assert split.index_selection is not None
    assert len(split.to_json()) < 10_000
    assert type(split).from_json(split.to_json()) == split
    assert hash(split) == hash(split.model_copy())


@pytest.mark.slow
def test_the_files_of_a_level_have_their_own_rows(create) -> None:
    options = {"bucket": "1", "target-file-size": "1 b", "num-sorted-run.compaction-trigger": "9"}
    table = create(COLUMNS, options={**INDEXED, **options})
    draw = random.Random(3)
    for first, last in ((0, 50), (40, 45), (45, 400)):
        each = [{**row, "id": number} for number, row in zip(range(first, last), rows(draw, last - first), strict=True)]
        table.write(pa.Table.from_pylist(each, schema=table.schema))
    table.compact(full=True)
    counts = [[file.row_count for file in source.files] for source in sources(table).values()]
    assert any(each != each[::-1] for each in counts)
    check(table)


@pytest.mark.parametrize("order", ["price DESC", "price ASC NULLS LAST", "city DESC"])
def test_the_first_rows_of_an_order_are_alive(create, order) -> None:
    table = loaded(create)
    table.delete("id >= 900 OR id < 50")
    store = table._engine.store()
    assert any(entry.index_type == "DELETION_VECTORS" for entry in store.index_entries(store.snapshots.latest()))
    scan, plain = (table.scan(order_by=order, limit=20, options=options).to_arrow() for options in (None, OFF))
    column = order.split()[0]
    assert scan[column].to_pylist() == plain[column].to_pylist()
    assert scan.num_rows == 20


def test_rows_that_two_payloads_select_are_those_of_both() -> None:
    both = _FileRows(BitMap([1, 2]), frozenset({0})).and_(_FileRows(BitMap([2, 3]), frozenset({1})))
    assert both == _FileRows(BitMap([2]), frozenset({0, 1}))


def test_a_value_that_is_nowhere_leaves_no_file(create) -> None:
    table = loaded(create)
    found = stage(table, "city = 'c50000'")
    assert (found.kept, found.dropped) == (0, 2)


def test_a_count_reads_no_data_file(create) -> None:
    table = loaded(create)
    table.delete("id < 20")
    table.compact(full=True)
    store = table._engine.store()
    for entry in store.live_entries(store.snapshots.latest()).entries():
        store.file_io.delete(store.physical_files(entry.partition, entry.bucket, entry.file)[0])
    assert table.scan("country = 'NO' AND city = 'c92'").count() == 10
    assert table.scan("country = 'NO'").count() == 490


def test_the_option_turns_it_off_for_a_table_or_a_scan(create) -> None:
    table = loaded(create)
    assert "secondary index" not in [stage.name for stage in table.scan("city = 'c7'", options=OFF).explain().stages]
    table.alter_options(OFF)
    assert "secondary index" not in [stage.name for stage in table.scan("city = 'c7'").explain().stages]


def test_an_index_of_an_existing_table_is_built_by_a_full_compaction_and_dropped_by_the_next_one(create) -> None:
    table = loaded(create, **{"pk-bitmap.index.columns": "day"})
    assert len(sources(table)) == 6
    table.alter_options({"pk-bitmap.index.columns": "country", "pk-btree.index.columns": None})
    table.compact(full=True)
    assert {entry.index_type for entry in entries(table)} == {"bitmap"}
    assert {entry.indexed.field_id for entry in entries(table)} == {2}
    table.alter_options({"pk-bitmap.index.columns": None})
    table.compact(full=True)
    assert entries(table) == []


def test_files_from_before_the_index_are_rewritten_once_if_they_were_only_moved(create) -> None:
    table = create(COLUMNS, options={"bucket": "1", "deletion-vectors.enabled": "true"})
    table.write([{"id": 1, "city": "a"}, {"id": 2, "city": "b"}], missing="null")
    table.compact(full=True)
    table.alter_options({"pk-btree.index.columns": "city"})
    assert table.compact(full=True).snapshot_id is not None
    assert stage(table, "city = 'b'").note.endswith("1 row selected")
    assert table.compact(full=True).snapshot_id is None


def damage(table: Table) -> None:
    for entry in entries(table):
        path = table._engine.store().paths.index(entry.file_name)
        data = bytearray(table._engine.store().file_io.read(path))
        data[: len(data) - 20] = bytes(len(data) - 20)
        table._engine.store().file_io.write(path, bytes(data), overwrite=True)


def test_a_damaged_payload_is_ignored_counted_and_reported(create, caplog) -> None:
    table = loaded(create)
    damage(table)
    assert table.scan("city = 'c7' AND country = 'PE'").count() == 10
    assert "not usable" in stage(table, "city = 'c7'").note
    assert "its files are read instead" in caplog.text
    messages = [problem.message for problem in table.fsck().problems]
    assert len(messages) == 6
    assert all("cannot be read" in message for message in messages)


def test_a_missing_payload_is_ignored(create) -> None:
    table = loaded(create)
    for entry in entries(table):
        table._engine.store().file_io.delete(table._engine.store().paths.index(entry.file_name))
    assert table.scan("city = 'c7'").count() == 10


def test_purge_leaves_no_payload_with_the_value(create) -> None:
    table = loaded(create)
    assert table.purge("city = 'c7'").gone
    assert entries(table) == []
    table.compact(full=True)
    assert len(sources(table)) == 6
    check(table)


@pytest.mark.parametrize(
    ("columns", "keys", "options", "why"),
    [
        ("id INT, v INT", ["id"], {"bucket": "1", "pk-btree.index.columns": "v"}, "needs 'deletion-vectors.enabled'"),
        ("id INT, v INT", [], {"pk-btree.index.columns": "v"}, "primary-key"),
        ("id INT, v INT", ["id"], {**INDEXED, "bucket": "-1", "pk-btree.index.columns": "v"}, "fixed number of buckets"),
        ("id INT, v INT", ["id"], {**INDEXED, "pk-btree.index.columns": "w"}, "'w'"),
        ("id INT, v INT", ["id"], {**INDEXED, "pk-btree.index.columns": "v,"}, "''"),
        ("id INT, v INT", ["id"], {**INDEXED, "pk-btree.index.columns": "v,v", "pk-bitmap.index.columns": "id"}, "named twice"),
        ("id INT, v INT", ["id"], {**INDEXED, "pk-btree.index.columns": "v", "pk-bitmap.index.columns": "v"}, "named twice"),
        ("id INT, v BYTES", ["id"], {**INDEXED, "pk-btree.index.columns": "v", "pk-bitmap.index.columns": "id"}, "no index orders"),
        ("id INT, v INT", ["id"], {**INDEXED, "pk-btree.index.columns": "v", "deletion-vectors.merge-on-read": "true"}, "merge-on-read"),
        ("id INT, v INT", ["id"], {"bucket": "1", "pk-vector.index.columns": "v"}, "pk-vector"),
    ],
)
def test_what_paimon_refuses_is_refused_with_the_option(create, columns, keys, options, why) -> None:
    with pytest.raises(UnsupportedOption, match=why):
        create(columns, primary_keys=keys, options=options)


def test_indexed_columns_keep_name_and_type(create) -> None:
    table = loaded(create, 10)
    for change in (
        lambda: table.rename_column("city", "town"),
        lambda: table.drop_column("country"),
        lambda: table.change_type("price", "STRING"),
    ):
        with pytest.raises(InvalidSchema, match=r"index\.columns"):
            change()
    table.add_column("more", "INT")
    assert table.scan("city = 'c7'").count() == 1


def test_a_payload_from_before_a_change_of_type_does_not_answer(create) -> None:
    options = {**INDEXED, "pk-btree.index.columns": "n", "pk-bitmap.index.columns": "id"}
    table = create("id INT, n DECIMAL(10, 2)", options=options)
    table.write([{"id": number, "n": Decimal(number) / 4} for number in range(100)])
    table.compact(full=True)
    table.alter_options({"pk-btree.index.columns": None})
    table.change_type("n", "DECIMAL(20, 2)")
    table.alter_options({"pk-btree.index.columns": "n"})
    assert stage(table, "n = 1.25").note == "no payload covers these files"
    assert table.scan("n = 1.25").count() == 1
    table.compact(full=True)
    assert stage(table, "n = 1.25").note.endswith("1 row selected")
    assert table.scan("n = 1.25").count() == 1


def test_a_column_added_later_is_null_in_older_files(create) -> None:
    table = loaded(create, 10)
    table.add_column("more", "TIMESTAMP(6)")
    table.alter_options({"pk-btree.index.columns": "city,more"})
    table.write([{"id": 1000, "more": datetime(2024, 1, 1)}], missing="null")  # noqa: DTZ001
    table.compact(full=True)
    assert (table.scan("more IS NULL").count(), table.scan("more = TIMESTAMP '2024-01-01 00:00:00'").count()) == (10, 1)
    assert stage(table, "more IS NOT NULL").note.endswith("1 row selected")


def test_partitions_and_their_columns(create) -> None:
    options = {**INDEXED, "pk-btree.index.columns": "city", "pk-bitmap.index.columns": "p", "bucket": "1"}
    table = create("p INT, id INT, city STRING", primary_keys=["p", "id"], partition_keys=["p"], options=options)
    table.write([{"p": number % 3, "id": number, "city": f"c{number % 10}"} for number in range(300)])
    table.compact(full=True)
    for filter_ in ("city = 'c3' AND p = 1", "city = 'c3' OR p = 1", "p = 1 OR (p = 2 AND city = 'c4')", "p <> 0 AND city <> 'c5'"):
        assert text(table.scan(filter_).to_arrow()) == text(table.scan(filter_, options=OFF).to_arrow())
        assert table.scan(filter_).count() == table.scan(filter_, options=OFF).count()
    table.drop_partitions([{"p": 1}])
    assert {entry.partition for entry in entries(table)} == {table._engine.store().partition.encode((number,)) for number in (0, 2)}


def test_history_and_branches_use_their_own_payloads(create) -> None:
    table = loaded(create)
    table.create_tag("loaded")
    table.create_branch("other", from_tag="loaded")
    table.update("id < 100", set={"city": "'c7'"})
    table.compact(full=True)
    assert table.scan("city = 'c7'").count() == 109
    assert table.scan("city = 'c7'", tag="loaded").count() == 10
    assert stage(table, "city = 'c7'", tag="loaded").note.endswith("10 rows selected")
    other = Table.open(table.path, branch="other")
    assert other.scan("city = 'c7'").count() == 10
    other.write([{"id": 5000, "city": "c7"}], missing="null")
    other.compact(full=True)
    assert other.scan("city = 'c7'").count() == 11
    table.rollback_to(tag="loaded")
    assert table.scan("city = 'c7'").count() == 10
    check(table)


def test_a_decimal_and_a_narrow_row_group(create) -> None:
    table = create("id INT, n DECIMAL(20, 2)", options={**INDEXED, "pk-btree.index.columns": "n", "pk-bitmap.index.columns": "id"})
    table.write([{"id": number, "n": Decimal(number) / 4} for number in range(-50, 50)])
    table.compact(full=True)
    assert (
        table.scan("n > 0.2 AND n <= 1").to_arrow()["id"].to_pylist()
        == table.scan("n > 0.2 AND n <= 1", options=OFF).to_arrow()["id"].to_pylist()
    )
    assert stage(table, "n = -1.25").note.endswith("1 row selected")


def test_advice_measures_secondary_indexes_beside_file_indexes(create) -> None:
    table = loaded(create)
    advice = table.index_advice(["city = 'c7'", "country = 'NO' AND price > 90"]).to_pylist()
    by_kind = {(row["filter"], row["column_name"], row["index_type"]): row for row in advice}
    btree = by_kind["city = 'c7'", "city", "pk-btree"]
    assert (btree["option"], btree["is_declared"], btree["is_exact"]) == ("pk-btree.index.columns", True, True)
    assert btree["rows_skipped"] == pytest.approx(0.99)
    bitmap = by_kind["country = 'NO' AND price > 90", "country", "pk-bitmap"]
    assert (bitmap["is_declared"], bitmap["is_exact"]) == (True, False)
    assert ("city = 'c7'", "city", "bitmap") in by_kind


def test_health_says_which_files_are_outside(create) -> None:
    table = loaded(create, **{"write-only": "true"})
    table.write(table.scan("id < 5").to_arrow())
    notes = {(row["column_name"], row["note"]) for row in table.index_health().to_pylist()}
    assert ("city", "covers 1 file on level 3") in notes
    assert ("city", "1 file outside on level 0; compact() covers them") in notes
