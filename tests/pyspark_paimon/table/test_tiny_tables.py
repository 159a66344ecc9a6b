"""Tables of 100 rows in five writes, with thresholds so small that everything rolls, spills, splits and changes its form."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import partialmethod
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pyarrow as pa
import pytest

from manifest.io.file_cache import SHARED
from paimon_base.thresholds import Thresholds, use_thresholds
from pyspark_paimon import Table
from pyspark_paimon.filter.parse import _cached_condition, bind_filter
from pyspark_paimon.request.requests import ScanRequest
from tests.build import ids, keyed
from tests.tiny import tiny_options

Row = dict[str, Any]
COLUMNS = "id BIGINT NOT NULL, part STRING NOT NULL, city STRING, name STRING, n INT, price DECIMAL(9, 2), data BYTES"
INDEXES = {
    "file-index.bitmap.columns": "city",
    "file-index.bloom-filter.columns": "name,n",
    "file-index.bsi.columns": "n",
    "file-index.range-bitmap.columns": "price",
    "ngram-filter.columns": "name",
}
KINDS: dict[str, dict[str, Any]] = {
    "keyed": {"primary_keys": ["part", "id"], "partition_keys": ["part"], "options": {"bucket": "2", "changelog-producer": "lookup"}},
    "keyed with vectors": {"primary_keys": ["id"], "options": {"bucket": "3", "deletion-vectors.enabled": "true"}},
    "dynamic buckets": {"primary_keys": ["id"], "options": {"dynamic-bucket.target-row-num": "9", "file.format": "avro"}},
    "crossing partitions": {"primary_keys": ["id"], "partition_keys": ["part"], "options": {"dynamic-bucket.target-row-num": "20"}},
    "sums": {
        "primary_keys": ["id"],
        "options": {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "file.format": "orc"},
    },
    "append": {"partition_keys": ["part"], "options": {"bucket": "-1"}},
    "clustered": {"options": {"bucket": "-1", "clustering.columns": "n,id", "clustering.incremental": "true"}},
}


QUICK = {("disk", "append"), ("disk", "keyed with vectors"), ("disk", "crossing partitions")}
"""Kinds that the test of all thresholds leaves out; it also has one in memory, which costs twice as much."""


def _or(row: Row) -> bool:
    return row["n"] == 1 or (row["n"] == 2 and row["city"] == "Rome") or (row["price"] is not None and row["price"] < 1.5)


_TINY, _WORK, _NATIVE = "table/test_tiny_tables.py", "spark/test_tiny_sizes.py", "spark/test_native_plan.py"
ELSEWHERE: dict[str, str] = {
    "answer_bytes": "operations/test_wire_texts.py",
    "blob_batch_bytes": "table/test_evolved_tables.py",
    "blob_batch_rows": "table/test_evolved_tables.py",
    "dense_sets": "table/test_value_counts.py",
    "folded_bytes": "table/test_grouped_aggregate.py",
    "grouped_bytes": "table/test_grouped_aggregate.py",
    "import_block_bytes": "../plugins/cli/test_rows_commands.py",
    "listed_subquery": "../spark/test_spark_subqueries.py",
    "join_keys": "../plugins/sql/test_join_keys.py",
    **dict.fromkeys(["message_bytes", "message_rows"], "../plugins/feeds/test_debezium.py"),
    "shown_values": "../lsm/rows_in/test_requested_cast.py",
    **dict.fromkeys(["index_read_bytes", "posting_rows"], "../fileindex/sorted_index/test_sorted_index_answers.py"),
    **dict.fromkeys(["block_residuals", "counted_files", "deleted_at_once", "listed_keys"], _TINY),
    **dict.fromkeys(["busy_core_bytes", "idle_core_bytes", "piece_cost_bytes", "check_task_bytes"], _WORK),
    **dict.fromkeys(["fetched_merge_bytes", "fetched_merge_rows", "held_merge_bytes", "held_merge_rows"], _WORK),
    **dict.fromkeys(["own_blob_rows", "wire_blob_bytes", "wire_blob_rows", "wire_chunk_bytes", "wire_chunk_rows"], _WORK),
    "broadcast_bytes": "../spark/test_spark_sql_pushdown.py",
    **dict.fromkeys(["driver_bytes", "sent_bytes"], "../spark/test_spark_small_work.py"),
    **dict.fromkeys(["native_files", "open_cost_bytes", "task_bytes"], _NATIVE),
}
"""Thresholds that other tests cross."""
BOTH_SIDES = {
    "batch_bytes",
    "batch_rows",
    "block_rows",
    "block_literals",
    "bloom_few_hashes",
    "bloom_spread_bits",
    "bounds_one_by_one",
    "bucket_keys",
    "bulky",
    "chained_values",
    "clustered_entries",
    "exact_distinct",
    "few_sources",
    "fewest_blocks",
    "fewest_rows",
    "footer_read_bytes",
    "footer_seal_bytes",
    "group_bytes",
    "group_rows",
    "group_table",
    "hash_chunk",
    "held_objects",
    "index_block_rows",
    "index_check_bytes",
    "ngram_blocks",
    "ngram_pending",
    "kept_rows",
    "kept_share",
    "listed_literals",
    "listed_values",
    "long_value_bytes",
    "manifest_head_bytes",
    "many_runs",
    "masked_chunk_bytes",
    "nested_groups",
    "one_thread_rows",
    "open_files",
    "orc_stripe_bytes",
    "paged_rows",
    "piece_bytes",
    "plain_text_rows",
    "plan_files",
    "range_bytes",
    "ranges_one_by_one",
    "records_one_by_one",
    "repeats",
    "route_bytes",
    "route_rows",
    "row_sets",
    "sample_rows",
    "sample_window",
    "shared_entries",
    "short_filter",
    "small_bucket_bytes",
    "small_run_rows",
    "sparse",
    "spill_batch_bytes",
    "spill_fan_in",
    "sum_rounds",
    "text_rows",
    "trial_rows",
    "unasked_bytes",
}
"""Thresholds that values must reach and stay below in the test of all."""
FILTERS: list[tuple[str, Callable[[Row], Any]]] = [
    ("city = 'Oslo'", lambda row: row["city"] == "Oslo"),
    ("name = 'name 7'", lambda row: row["name"] == "name 7"),
    ("name IN ('name 1', 'name 2', 'name 3', 'name 99')", lambda row: row["name"] in {"name 1", "name 2", "name 3", "name 99"}),
    ("name LIKE '%me 2_'", lambda row: row["name"].startswith("name 2") and len(row["name"]) == 7),
    ("n > 3", lambda row: row["n"] is not None and row["n"] > 3),
    ("n >= 0 AND n <= 5 AND city IS NOT NULL", lambda row: row["n"] is not None and 0 <= row["n"] <= 5 and row["city"] is not None),
    ("id = 7 OR id = 8 OR id = 33", lambda row: row["id"] in {7, 8, 33}),
    ("(id IN (1, 5, 9, 13, 44))", lambda row: row["id"] in {1, 5, 9, 13, 44}),
    ("id = 11", lambda row: row["id"] == 11),
    ("((n = 1) OR ((n = 2) AND (city = 'Rome'))) OR price < 1.5", _or),
    ("data IS NULL", lambda row: row["data"] is None),
    ("part = 'b' AND id < 20", lambda row: row["part"] == "b" and row["id"] < 20),
]


def rows_of(write: int) -> list[Row]:
    """Twenty rows; half of their keys were there before, and one value is much longer than the others."""
    return [
        {
            "id": (key := write * 10 + at),
            "part": "abc"[key % 3],
            "city": [None, "Oslo", "Rome", "Lima"][(key + write) % 4],
            "name": f"name {key}" if at else "a long name " * 20,
            "n": None if key % 7 == 3 else key % 6,
            "price": (Decimal(key * (write + 1)) / 4).quantize(Decimal("0.01")),
            "data": bytes([key]) * (key % 5) if key % 11 else None,
        }
        for at in range(20)
    ]


def merged(kind: str, rows: list[Row], new: list[Row]) -> list[Row]:
    """What a table of a kind has after a write."""
    if "primary_keys" not in KINDS[kind]:
        return [*rows, *new]
    found = {row["id"]: row for row in rows}
    for row in new:
        old = found.get(row["id"])
        if kind != "sums" or old is None:
            found[row["id"]] = row
            continue
        known = {name: old[name] if value is None else value for name, value in row.items()}
        found[row["id"]] = {**known, "n": old["n"] if row["n"] is None else row["n"] + (old["n"] or 0)}
    return list(found.values())


def in_order(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


class Limit(int):
    """A threshold that records what comes of comparisons with it, and with what is computed from it."""

    name: str
    notes: Notes

    @classmethod
    def of(cls, value: int, name: str, notes: Notes) -> Limit:
        made = cls(value)
        made.name, made.notes = name, notes
        return made

    def noted(self, found: Any) -> Any:
        if isinstance(found, bool):
            self.notes.outcomes[self.name].add(found)
        elif type(found) is int:
            return Limit.of(found, self.name, self.notes)
        return found

    __hash__ = int.__hash__


for _operator in ["lt", "le", "gt", "ge", "eq", "ne", "mul", "rmul", "add", "radd", "sub", "rsub", "floordiv", "rfloordiv"]:
    setattr(
        Limit, f"__{_operator}__", partialmethod(lambda self, does, other: self.noted(does(self, other)), getattr(int, f"__{_operator}__"))
    )


@dataclass
class Notes:
    """Thresholds that were read, and both sides of the comparisons with them that came out."""

    read: set[str] = field(default_factory=set)
    outcomes: defaultdict[str, set[bool]] = field(default_factory=lambda: defaultdict(set))


def record_reads(notes: Notes) -> Callable[[Thresholds, str], Any]:
    """Return an attribute access of thresholds that notes each read and the outcome of comparisons."""

    def read(values: Thresholds, name: str) -> Any:
        value = object.__getattribute__(values, name)
        if type(value) is not int:
            return value
        notes.read.add(name)
        return Limit.of(value, name, notes)

    return read


@pytest.fixture
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    yield f"memory://{uuid4().hex}" if request.param == "memory" else str(tmp_path)
    SHARED.clear()


def lived(home: str, kind: str) -> None:
    """Fill, change, maintain and read a table; its rows are those of a list all the time."""
    given = KINDS[kind]
    options = tiny_options({**INDEXES, **given["options"]})
    table = Table.create(f"{home}/t", COLUMNS, **{**given, "options": options})
    rows: list[Row] = []
    for number in range(5):
        new = rows_of(number)
        written = pa.Table.from_pylist(new, schema=table.schema)
        table.write(written.to_pandas(integer_object_nulls=True) if number == 1 else written)
        rows = merged(kind, rows, new)
        assert in_order(table.scan().to_arrow().to_pylist()) == in_order(rows)
        if number == 2:
            table.compact(full=True)
            check(table, rows, FILTERS[::2])
    if "primary_keys" in given and kind != "sums":
        gone = [row for row in rows if row["city"] == "Lima"]
        assert table.delete("city = 'Lima'").rows == len(gone)
        rows = [row for row in rows if row["city"] != "Lima"]
        check(table, rows, FILTERS[1::2])
    table.alter_options({"file-index.bitmap.columns": "city,part", "file-index.bitmap.part.index-block-size": "64 b"})
    table.rewrite_file_index()
    assert table.rewrite_file_index().rewritten == 0
    check(table, rows, FILTERS[::2])
    table.compact()
    ordered = table.scan(order_by="price DESC, id", limit=7, columns=["id", "price"]).to_arrow().to_pylist()
    best = sorted((row for row in rows), key=lambda row: (-row["price"], row["id"]))[:7]
    assert ordered == [{"id": row["id"], "price": row["price"]} for row in best]
    table.analyze()
    assert table.fsck("deep").problems == ()
    assert table.snapshots()["snapshot_id"].to_pylist() == list(range(1, table.snapshots().num_rows + 1))
    table.expire_snapshots(retain_min=1, retain_max=1)
    table.compact(full=True)
    check(Table.open(table.path), rows, FILTERS)
    assert table.fsck("deep").problems == ()


def check(table: Table, rows: list[Row], filters: Sequence[tuple[str, Callable[[Row], Any]]]) -> None:
    """Whether reads and counts with and without filters find ``rows``."""
    assert in_order(table.scan().to_arrow().to_pylist()) == in_order(rows)
    for text, holds in filters:
        wanted = sorted(row["id"] for row in rows if holds(row))
        scan = table.scan(text, columns=["id"])
        assert ids(scan) == wanted, text
        assert scan.count() == len(wanted), text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("home", "kind"),
    [pytest.param(home, kind, marks=() if (home, kind) in QUICK else pytest.mark.long) for home in ("disk", "memory") for kind in KINDS],
    indirect=["home"],
)
@pytest.mark.usefixtures("tiny")
def test_a_tiny_table_has_the_rows_of_a_list(home: str, kind: str) -> None:
    lived(home, kind)


@pytest.mark.slow
def test_tiny_tables_cross_all_thresholds(tmp_path: Path) -> None:
    notes = Notes()
    _cached_condition.cache_clear()  # a filter that is held is not read again
    with use_thresholds(Thresholds.tiny()), patch.object(Thresholds, "__getattribute__", record_reads(notes)):
        lived(f"memory://{uuid4().hex}", "keyed")
        for kind in ("dynamic buckets", "sums", "clustered"):
            lived(str(tmp_path / kind), kind)
    unread = {one.name for one in fields(Thresholds)} - notes.read
    # A held answer of another test may spare the Bloom filter of a chunk, or not: its own test reads it.
    assert unread - {"bloom_read_bytes"} == set(ELSEWHERE)
    assert {name for name, found in notes.outcomes.items() if len(found) == 1} & BOTH_SIDES == set()
    assert notes.outcomes.keys() >= BOTH_SIDES


@pytest.mark.parametrize("known", [1, 10**6])
def test_keys_that_move_between_partitions_are_found_one_by_one_or_by_bounds(tmp_path: Path, set_thresholds: Any, known: int) -> None:
    set_thresholds(listed_keys=known)
    table = Table.create(tmp_path / "t", "id INT, part STRING", primary_keys=["id"], partition_keys=["part"], options={"bucket": "-1"})
    for shift in range(3):
        table.write(pa.table({"id": pa.array(range(20), pa.int32()), "part": ["abc"[(at + shift) % 3] for at in range(20)]}))
    assert table.scan(order_by="id").to_arrow().to_pylist() == [{"id": at, "part": "abc"[(at + 2) % 3]} for at in range(20)]


@pytest.mark.parametrize(("files", "found"), [(1, None), (3, 4)])
def test_a_count_asks_few_files_for_their_indexes(tmp_path: Path, set_thresholds: Any, files: int, found: int | None) -> None:
    options = {"bucket": "-1", "write-only": "true", "file-index.bitmap.columns": "city"}
    table = Table.create(tmp_path / "t", "id INT, city STRING", options=options)
    for _ in range(2):
        table.write(pa.table({"id": pa.array(range(9), pa.int32()), "city": ["Oslo", "Rome", "Lima"] * 3}))
    table.delete("id = 0")
    set_thresholds(counted_files=files)
    condition = bind_filter("city = 'Oslo'", table.table_schema.column_types)
    request = ScanRequest(predicate=condition, columns=("id",), snapshot_id=table.scan().snapshot_id)
    assert table._engine.cheap_count(request) == found


@pytest.mark.parametrize("at_once", [1, 2, 1000])
def test_an_expiry_deletes_files_in_groups_of_any_size(tmp_path: Path, set_thresholds: Any, at_once: int) -> None:
    set_thresholds(deleted_at_once=at_once)
    seen: list[Any] = []
    table = keyed(tmp_path / "t", "id INT", {"num-sorted-run.compaction-trigger": "99"})
    table = Table.open(table.path, progress=seen.append)
    for number in range(7):
        table.write(pa.table({"id": pa.array([number], pa.int32())}))
    table.compact(full=True)
    seen.clear()
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert seen
    assert len(list(tmp_path.rglob("data-*"))) == 1
    assert table.count() == 7


@pytest.mark.parametrize("filters", [1, 16])
def test_blocks_of_manifests_are_chosen_by_few_or_many_filters(tmp_path: Path, set_thresholds: Any, filters: int) -> None:
    set_thresholds(block_residuals=filters, narrowed_manifest_bytes=1, fewest_blocks=1, manifest_block_bytes=100, clustered_entries=1)
    table = Table.create(
        tmp_path / "t", "p INT NOT NULL, id INT NOT NULL", primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "2"}
    )
    table.write(pa.table({"p": pa.array([at % 6 for at in range(60)], pa.int32()), "id": pa.array(range(60), pa.int32())}))
    found = table.scan("(p = 1 AND id < 20) OR (p = 2 AND id > 40) OR (p = 3 AND id = 33)").to_arrow()
    assert sorted(found["id"].to_pylist()) == [1, 7, 13, 19, 33, 44, 50, 56]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_thresholds_have_tests_that_set_them(name: str) -> None:
    text = (Path(__file__).parents[1] / ELSEWHERE[name]).read_text()
    assert re.search(rf'\b{name}"?(=|: )', text)
