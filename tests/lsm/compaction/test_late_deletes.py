"""Deletes that compactions retain: an event that arrives after the delete of its key, but is older, stays without effect."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

import pytest

from lsm.write.table_write import _WARNED
from paimon_base.errors import UnsupportedOption
from paimon_base.thresholds import Thresholds, use_thresholds
from pyspark_paimon import Table
from tests.examples import some
from tests.tiny import tiny_options

ORDERED = {"bucket": "1", "sequence.field": "ts"}
RETAINED = {**ORDERED, "delete.time-retained": "1 d"}
LAYOUTS: dict[str, dict[str, str]] = {
    "plain": {},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "compacted rows only": {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "false"},
    "lookup": {"changelog-producer": "lookup"},
    "forced lookup": {"force-lookup": "true"},
    "full compactions": {"changelog-producer": "full-compaction"},
    "input": {"changelog-producer": "input"},
    "descending": {"sequence.field.sort-order": "descending"},
    "two buckets": {"bucket": "2", "full-compaction.delta-commits": "1"},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "5"},
    "forced up": {"compaction.force-up-level-0": "true", "num-levels": "3"},
    "rewritten": {"compaction.force-rewrite-all-files": "true"},
    "orc": {"file.format": "orc"},
}


def keyed(path: Path, **options: str) -> Table:
    return Table.create(path, "id BIGINT, v BIGINT, ts BIGINT", primary_keys=["id"], options={**RETAINED, **options})


def event(key: int, ts: int, v: int | None = None, kind: str = "+I") -> dict[str, Any]:
    return {"id": key, "v": ts if v is None else v, "ts": ts, "_row_kind": kind}


def deleted(table: Table) -> list[int]:
    """Deletes stored in each file."""
    return sorted(table.files()["delete_row_count"].to_pylist())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.sampled(5)
def test_shuffled_events_leave_the_newest_of_each_key(tmp_path: Path, layout: str, seed: int) -> None:
    """The model keeps every event; the table is compacted at any time."""
    rng = random.Random(f"{layout}/{seed}")
    descending = layout == "descending"
    with use_thresholds(Thresholds.tiny()):
        table = keyed(tmp_path / "t", **tiny_options(LAYOUTS[layout]))
        events = [event(rng.randrange(25), 1 + at // 2, at, rng.choice(["+I", "+I", "-D"])) for at in range(some(40))]
        rng.shuffle(events)
        seen: list[dict[str, Any]] = []
        while events:
            batch = [events.pop() for _ in range(min(len(events), rng.randrange(1, 20)))]
            table.write(batch)
            seen += batch
            if rng.random() < 0.6:
                table.compact(full=rng.random() < 0.5)
            if layout == "compacted rows only":
                table.compact(full=True)
            newest: dict[int, dict[str, Any]] = {}
            for each in seen:  # of equal times the last to arrive wins
                order = -1 if descending else 1
                if each["id"] not in newest or order * each["ts"] >= order * newest[each["id"]]["ts"]:
                    newest[each["id"]] = each
            rows = {key: each["v"] for key, each in newest.items() if each["_row_kind"] == "+I"}
            check(table, rows, rng.randrange(40))
        assert table.fsck(depth="deep").problems == ()


def check(table: Table, rows: dict[int, int], bound: int) -> None:
    """Every way of reading must return ``rows``."""
    assert {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()} == rows
    assert table.scan().count() == len(rows)
    matching = {key for key, v in rows.items() if v < bound}
    assert set(table.scan(f"v < {bound}", columns=["id"]).to_arrow()["id"].to_pylist()) == matching
    assert table.scan(f"v < {bound}").count() == len(matching)
    assert {row["id"] for row in table.lookup(list(range(25))).to_pylist()} == set(rows)
    smallest = table.scan(order_by="v", limit=3).to_arrow()["v"].to_pylist()
    assert smallest == sorted(rows.values())[:3]
    found = table.scan().aggregate({"v": ["min", "max", "count"]})
    assert list(found.to_pylist()[0].values()) == [min(rows.values(), default=None), max(rows.values(), default=None), len(rows)]


@pytest.mark.parametrize("layout", ["plain", "deletion vectors", "lookup", "full compactions"])
def test_the_changelog_has_neither_the_retained_delete_nor_the_late_event(tmp_path: Path, layout: str) -> None:
    table = keyed(tmp_path / "t", **LAYOUTS[layout])
    table.write([event(1, 1), event(2, 1)])
    table.write([event(1, 10, kind="-D")])
    table.compact(full=True)
    before = table.snapshots()["snapshot_id"].to_pylist()[-1]
    table.write([event(1, 5)])
    table.compact(full=True)
    if LAYOUTS[layout].get("changelog-producer"):
        assert table.changelog(before).to_arrow().num_rows == 0
    assert [row["id"] for row in table.scan().to_arrow().to_pylist()] == [2]
    assert deleted(table) == [1]


@pytest.mark.parametrize("layout", ["plain", "deletion vectors", "lookup", "full compactions"])
def test_a_compaction_after_the_time_drops_the_deletes(tmp_path: Path, layout: str) -> None:
    table = keyed(tmp_path / "t", **LAYOUTS[layout])
    table.write([event(1, 1), event(2, 1)])
    table.write([event(1, 10, kind="-D")])
    table.compact(full=True)
    assert deleted(table) == [1]
    assert table.compact(full=True).snapshot_id is None, "nothing is due before the time"
    table.alter_options({"delete.time-retained": "1 ms"})
    table.compact(full=True)
    assert deleted(table) == [0]
    assert [row["id"] for row in table.scan().to_arrow().to_pylist()] == [2]


def test_one_merge_drops_old_deletes_and_keeps_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed(tmp_path / "t")
    table.write([event(key, 1) for key in range(4)])
    table.write([event(1, 10, kind="-D")])
    table.compact(full=True)
    old = table.files()["file_name"].to_pylist()
    table.write([event(2, 10, kind="-D")])
    monkeypatch.setattr("lsm.compaction.delete_retention.DeleteRetention.is_over", lambda _, file: file.file_name in old)
    table.compact(full=True)
    assert deleted(table) == [1]
    table.write([event(1, 5), event(2, 5)])
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [0, 1, 3]


@pytest.mark.parametrize("layout", ["plain", "deletion vectors", "two buckets", "dynamic"])
def test_a_restored_state_keeps_its_deletes(tmp_path: Path, layout: str) -> None:
    table = keyed(tmp_path / "t", **LAYOUTS[layout])
    table.write([event(key, 1) for key in range(4)])
    table.write([event(1, 10, kind="-D")])
    table.compact(full=True)
    table.create_tag("before")
    table.write([event(1, 20), event(2, 20, kind="-D")])
    table.restore(tag="before")
    table.write([event(1, 5)])
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [0, 2, 3]
    table.compact(full=True)
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [0, 2, 3]
    assert table.fsck(depth="deep").problems == ()


def test_rescaled_rows_keep_their_deletes(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write([event(key, 1) for key in range(8)])
    table.write([event(key, 10, kind="-D") for key in range(0, 8, 2)])
    table.compact(full=True)
    table.rescale(3)
    table.write([event(key, 5) for key in range(8)])
    table.compact(full=True)
    assert {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()} == {1: 5, 3: 5, 5: 5, 7: 5}
    assert set(table.files()["bucket"].to_pylist()) == {0, 1, 2}
    assert table.fsck(depth="deep").problems == ()


@pytest.mark.parametrize("layout", ["full compactions", "compacted rows only"])
@pytest.mark.parametrize("way", ["rescale", "restore"])
def test_copied_rows_are_visible_at_once_and_logged_once(tmp_path: Path, layout: str, way: str) -> None:
    table = keyed(tmp_path / "t", **LAYOUTS[layout])
    table.write([event(key, 1) for key in range(4)])
    table.write([event(1, 10, kind="-D")])
    table.compact(full=True)
    table.alter_options({"write-only": "true"})
    table.create_tag("before")
    if way == "rescale":
        table.rescale(2)
    else:
        table.write([event(9, 1)])
        table.restore(tag="before")
    copied = table.snapshots()["snapshot_id"].to_pylist()[-1]
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [0, 2, 3]
    assert set(table.files()["level"].to_pylist()) == {5}
    table.compact(full=True)
    assert table.changelog(copied).to_arrow().num_rows == 0
    table.write([event(1, 5)])
    table.compact(full=True)
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [0, 2, 3]


def test_without_the_option_a_full_compaction_drops_all_deletes(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write([event(1, 1), event(2, 1)])
    table.write([event(1, 10, kind="-D")])
    table.compact(full=True)
    table.alter_options({"delete.time-retained": None})
    table.compact(full=True)
    assert deleted(table) == [0]
    table.write([event(1, 5)])
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [1, 2]


def test_explain_shows_retained_deletes(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write([event(1, 1), event(2, 1)])
    table.write([event(1, 10, kind="-D")])
    assert "retained delete " not in str(table.scan().explain())
    table.compact(full=True)
    explanation = str(table.scan().explain())
    assert "1 retained delete above level 0" in explanation
    assert "(1 to merge)" in explanation, "a file with deletes must not be read as it is"


REFUSALS: list[tuple[dict[str, str], str]] = [
    ({"sequence.field": ""}, "needs 'sequence.field'"),
    ({"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}, "merge-engine 'partial-update'"),
    ({"merge-engine": "aggregation", "aggregation.remove-record-on-delete": "true"}, "merge-engine 'aggregation'"),
    ({"ignore-delete": "true"}, "'ignore-delete'"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSALS, ids=[reason for _, reason in REFUSALS])
def test_options_that_make_retention_useless_are_refused(tmp_path: Path, options: dict[str, str], reason: str) -> None:
    settings = {key: value for key, value in {**RETAINED, **options}.items() if value}
    with pytest.raises(UnsupportedOption, match=r"delete\.time-retained") as caught:
        Table.create(tmp_path / "t", "id BIGINT, v BIGINT, ts BIGINT", primary_keys=["id"], options=settings)
    assert reason in str(caught.value)


def test_a_call_cannot_set_it_and_append_tables_refuse_it(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOption, match="holds for the whole table"):
        keyed(tmp_path / "t").compact(full=True, options={"delete.time-retained": "1 s"})
    with pytest.raises(UnsupportedOption, match=r"delete\.time-retained"):
        Table.create(tmp_path / "a", "id BIGINT", options={"delete.time-retained": "1 d"})


def test_the_first_delete_of_a_process_is_warned_about_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, v BIGINT, ts BIGINT", primary_keys=["id"], options=ORDERED)
    with caplog.at_level(logging.WARNING, "pyspark_paimon"):
        table.write([event(1, 1)])
        assert not caplog.records
        table.write([event(1, 2, kind="-D")])
        table.write([event(2, 2, kind="-D")])
        keyed(tmp_path / "retained").write([event(1, 2, kind="-D")])
    (record,) = caplog.records
    assert "set 'delete.time-retained'" in record.getMessage()
    assert record.getMessage().startswith(table.path)
    _WARNED.discard(table.path)
