"""Scanning through ``Table`` in process: filters with and without indexes, time travel, terminals, explanations."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyspark_paimon import InvalidArgument, InvalidFilter, SnapshotExpired, SnapshotNotFound, Table, UnknownColumn

COLUMNS = "id BIGINT, city STRING, n INT, price DOUBLE, attrs MAP<STRING, INT>"
INDEXES = {
    "file-index.bloom-filter.columns": "city,attrs[clicks]",
    "file-index.bloom-filter.city.items": "200",
    "file-index.bloom-filter.attrs[clicks].items": "200",
    "file-index.bitmap.columns": "n,attrs[views]",
}
EMBEDDED = {**INDEXES, "file-index.in-manifest-threshold": "1 mb"}
MAP = pa.map_(pa.string(), pa.int32())
FILTERS = {
    "city = 'city-7'": lambda r: r["city"] == "city-7",
    "city = 'nowhere'": lambda r: False,
    "city IN ('city-1', 'city-2') AND n > 3": lambda r: r["city"] in {"city-1", "city-2"} and r["n"] is not None and r["n"] > 3,
    "city LIKE 'city-1%'": lambda r: r["city"] is not None and r["city"].startswith("city-1"),
    "n = 5": lambda r: r["n"] == 5,
    "n <> 5": lambda r: r["n"] is not None and r["n"] != 5,
    "n IS NULL": lambda r: r["n"] is None,
    "n NOT IN (1, 2) OR city IS NULL": lambda r: (r["n"] is not None and r["n"] not in {1, 2}) or r["city"] is None,
    "attrs['clicks'] = 3": lambda r: dict(r["attrs"] or []).get("clicks") == 3,
    "attrs['views'] = 3": lambda r: dict(r["attrs"] or []).get("views") == 3,
    "attrs['views'] IS NULL": lambda r: dict(r["attrs"] or []).get("views") is None,
    "attrs['other'] = 1": lambda r: False,
    "price BETWEEN 10 AND 20.5": lambda r: 10 <= r["price"] <= 20.5,
    "id = 77": lambda r: r["id"] == 77,
    "id IN (1, 50, 5000)": lambda r: r["id"] in {1, 50, 5000},
    "NOT (id > 10 OR n = 1)": lambda r: r["id"] <= 10 and r["n"] is not None and r["n"] != 1,
    "id > 1e9": lambda r: False,
    "TRUE": lambda r: True,
}


def made(first: int, count: int, generation: int) -> pa.Table:
    ids = np.arange(first, first + count)
    return pa.table(
        {
            "id": ids,
            "city": [None if i % 11 == 0 else f"city-{(i + generation) % 13}" for i in ids.tolist()],
            "n": pa.array([None if i % 7 == 0 else (i * 5 + generation) % 9 for i in ids.tolist()], pa.int32()),
            "price": ids * 0.5 + generation,
            "attrs": pa.array([None if i % 5 == 0 else [("clicks", i % 4), ("views", (i + generation) % 6)] for i in ids.tolist()], MAP),
        }
    )


@pytest.fixture(
    params=[
        pytest.param((("id",), {"bucket": "2"}, 0), id="keys, not compacted"),
        pytest.param((("id",), {"bucket": "2", **INDEXES}, 0), id="keys, indexes, not compacted"),
        pytest.param((("id",), {"bucket": "2", **INDEXES}, 1), id="keys, indexes, compacted in between"),
        pytest.param((("id",), {"bucket": "1", **EMBEDDED}, 2), id="keys, embedded indexes, compacted"),
        pytest.param(((), {**INDEXES}, 0), id="append, indexes"),
        pytest.param(((), {"bucket": "2", "bucket-key": "id", **EMBEDDED}, 2), id="append buckets, embedded indexes, compacted"),
    ]
)
def filled(request, create):
    """A table written twice, the second time over a part of the first, and the rows that it holds."""
    keys, options, compactions = request.param
    table = create(COLUMNS, primary_keys=keys, options=options)
    old, new = made(0, 120, 0), made(80, 80, 1)
    table.write(old)
    if compactions:
        table.compact(full=True)
    table.write(new)
    if compactions > 1:
        table.compact(full=True)
    kept = old.filter(pc.less(old["id"], 80)) if keys else old
    return table, pa.concat_tables([kept, new]).to_pylist()


def in_order(rows: list[dict]) -> list[dict]:
    return sorted(rows, key=lambda row: (row["id"], row["price"]))


def test_every_filter_gives_the_rows_of_a_full_scan(filled) -> None:
    table, rows = filled
    for text, wanted in FILTERS.items():
        expected = in_order([row for row in rows if wanted(row)])
        scan = table.scan(text)
        assert in_order(scan.to_arrow().to_pylist()) == expected, text
        assert scan.count() == len(expected), text
    projected = table.scan("n = 5", columns=["price", "id"]).to_arrow()
    assert projected.column_names == ["price", "id"]
    assert sorted(projected["id"].to_pylist()) == sorted(row["id"] for row in rows if row["n"] == 5)


def test_indexes_skip_files_and_say_so(create) -> None:
    table = create(COLUMNS, options={"bucket": "1", **INDEXES})
    rows = made(0, 100, 0).set_column(1, "city", pa.array([f"city-{i % 50 * 2:02}" for i in range(100)]))
    table.write(rows)
    explanation = table.scan("city = 'city-33'").explain()
    stage = next(stage for stage in explanation.stages if stage.name == "file index")
    assert (stage.kept, stage.dropped) == (0, 1)
    line = next(stage for stage in explanation.stages if stage.name == "index city: bloom-filter")
    assert (line.kept, line.dropped) == (0, 1)
    assert "read" in line.note
    assert "bloom-filter" in str(explanation)
    assert "<table>" in explanation._repr_html_()


def test_embedded_indexes_drop_files_while_planning(create) -> None:
    table = create(COLUMNS, options={"bucket": "1", **EMBEDDED})
    table.write(made(0, 100, 0).set_column(1, "city", pa.array([f"city-{i % 50 * 2:02}" for i in range(100)])))
    assert table.files()["file_index"].to_pylist() == ["embedded"]
    assert table.scan("city = 'city-33'").plan().splits == ()


def test_a_limit_bounds_the_rows(filled) -> None:
    table, rows = filled
    for limit in (0, 1, 50, 10_000):
        expected = min(limit, len(rows))
        scan = table.scan(limit=limit)
        assert scan.to_arrow().num_rows == scan.count() == expected
    assert table.scan("n = 5", limit=2).to_arrow()["n"].to_pylist() == [5, 5]


def test_a_scan_is_pinned_when_it_is_made(create) -> None:
    table = create()
    empty = table.scan()
    table.write(pa.table({"id": [1], "city": ["a"], "n": pa.array([1], pa.int32())}))
    pinned = table.scan()
    table.write(pa.table({"id": [2], "city": ["b"], "n": pa.array([2], pa.int32())}))
    assert (empty.snapshot_id, pinned.snapshot_id, table.scan().snapshot_id) == (None, 1, 2)
    assert (empty.count(), pinned.count(), table.scan().count()) == (0, 1, 2)
    assert pinned.to_pandas()["city"].tolist() == ["a"]


def test_time_travel_by_id_and_time(create) -> None:
    table = create()
    before = datetime.now(UTC)
    for n in range(3):
        time.sleep(0.005)
        table.write(pa.table({"id": [n], "city": ["a"], "n": pa.array([n], pa.int32())}))
    times = table.snapshots()["commit_time"].to_pylist()
    assert table.scan(snapshot=2).count() == 2
    assert table.scan(timestamp=times[1]).count() == 2
    assert table.scan(timestamp=int(times[0].timestamp() * 1000)).count() == 1
    with pytest.raises(SnapshotNotFound):
        table.scan(timestamp=before.replace(year=2000))
    with pytest.raises(SnapshotNotFound, match="9"):
        table.scan(snapshot=9)
    with pytest.raises(SnapshotNotFound, match="release"):
        table.scan(tag="release")
    with pytest.raises(InvalidArgument, match="one of"):
        table.scan(snapshot=1, tag="release")


def test_an_expired_scan_names_the_option_that_keeps_snapshots(create) -> None:
    table = create()
    row = pa.table({"id": [1], "city": ["a"], "n": pa.array([1], pa.int32())})
    table.write(row)
    pinned = table.scan()
    table.write(row, mode="overwrite")
    assert table.expire_snapshots(retain_min=1, retain_max=1).snapshots == 1
    for terminal in (pinned.to_arrow, pinned.count, pinned.plan):
        with pytest.raises(SnapshotExpired, match=r"snapshot\.(num|time)-retained"):
            terminal()
    assert table.scan().count() == 1


def test_arrow_and_sql_filters_agree(filled) -> None:
    table, _ = filled
    by_text = table.scan("n >= 3 AND city = 'city-7'").to_arrow()
    by_expression = table.scan((pc.field("n") >= 3) & (pc.field("city") == "city-7")).to_arrow()
    assert by_text.equals(by_expression)


def test_other_libraries_take_a_scan_as_a_stream(create) -> None:
    table = create()
    table.write(pa.table({"id": [1, 2], "city": ["a", None], "n": pa.array([1, 2], pa.int32())}))
    assert pl.DataFrame(table.scan("id = 2", columns=["id"])).to_dicts() == [{"id": 2}]
    assert pa.table(table.scan()).num_rows == 2


def test_batches_have_the_schema_of_the_scan(filled) -> None:
    table, _ = filled
    scan = table.scan(columns=["attrs", "city"])
    batches = list(scan.to_batches())
    assert batches
    assert all(batch.schema.equals(scan.schema) for batch in batches)


def test_names_ignore_case_and_unknown_ones_are_refused(create) -> None:
    table = create()
    assert table.scan("CITY = 'x'", columns=["ID"]).schema.names == ["id"]
    with pytest.raises(UnknownColumn, match="did you mean 'city'"):
        table.scan("citty = 'x'")
    with pytest.raises(UnknownColumn, match="nope"):
        table.scan(columns=["nope"])
    for columns in ("id", [], ["id", "ID"]):
        with pytest.raises(InvalidArgument, match="columns"):
            table.scan(columns=columns)
    for limit in (-1, True, 2.5):
        with pytest.raises(InvalidArgument, match="limit"):
            table.scan(limit=limit)
    with pytest.raises(InvalidFilter, match="line 1"):
        table.scan("city = = 'x'")


def test_a_scan_and_a_table_describe_themselves(create) -> None:
    table = create()
    assert repr(table.scan("id = 1", columns=["id"], limit=3)).endswith("snapshot=None, filter='id = 1', columns=['id'], limit=3)")
    assert "id BIGINT NOT NULL, city STRING, n INT, primary_keys=['id']" in repr(table)


def test_reading_stops_when_the_consumer_does(create) -> None:
    table = create(options={"bucket": "4"})
    table.write(pa.table({"id": range(1000), "city": ["x"] * 1000, "n": pa.array(range(1000), pa.int32())}))
    batches = table.scan().to_batches()
    assert next(batches).num_rows > 0
    batches.close()


def test_old_snapshots_are_read_by_their_own_schema(create, tmp_path) -> None:
    table: Table = create()
    table.write(pa.table({"id": [1], "city": ["a"], "n": pa.array([1], pa.int32())}))
    table.alter_options({"target-file-size": "64 mb"})
    table.write(pa.table({"id": [2], "city": ["b"], "n": pa.array([1], pa.int32())}))
    assert [table.scan(snapshot=at).table_schema.id for at in (1, 2)] == [0, 1]
    assert table.scan().count() == 2
