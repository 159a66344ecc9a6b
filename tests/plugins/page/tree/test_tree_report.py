"""What the picture of a table's tree says is what the metadata say."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.entry.data_file import DataFileMeta
from manifest.schema.table_schema import TableSchema
from pyspark_paimon import InvalidFilter, Table, UnknownColumn
from pyspark_paimon.plugins.page.tree.buckets import TreeFile, bucket_trees
from pyspark_paimon.results.tree_report import TreeReport
from tests.build import keyed


def written(path: Path, spans: list[tuple[int, int]], **options: str) -> Table:
    """A table of one bucket, each span of keys a commit of its own that nothing compacts."""
    table = keyed(path, "id BIGINT, name STRING", {"write-only": "true", **options})
    for low, high in spans:
        table.write(pa.table({"id": range(low, high), "name": [f"n{key}" for key in range(low, high)]}))
    return table


def test_files_lie_by_level_and_key_the_newest_on_top(tmp_path: Path) -> None:
    report = written(tmp_path / "t", [(0, 1000), (0, 100), (900, 1000)]).tree()
    [bucket] = report.buckets
    newest, middle, oldest = bucket.boxes
    assert [box.lane for box in bucket.boxes] == [0, 1, 2]
    assert bucket.lanes == ("L0", "L0", "L0")
    assert [(box.low, box.high, box.rows) for box in bucket.boxes] == [("900", "999", 100), ("0", "99", 100), ("0", "999", 1000)]
    assert (oldest.left, oldest.width) == (0, 1)
    assert middle.left == 0
    assert middle.width == pytest.approx(200 / 1200, abs=0.02)  # twice the rows lie there
    assert newest.left + newest.width == pytest.approx(1, abs=0.001)
    assert bucket.runs == 2, "files that share no keys are one run"
    assert bucket.sections == ()
    assert report.total("rows") == 1200


def test_sections_begin_where_nothing_before_reaches(tmp_path: Path) -> None:
    [bucket] = written(tmp_path / "t", [(0, 10), (5, 20), (100, 110), (200, 210)]).tree().buckets
    lefts = sorted(box.left for box in bucket.boxes)
    assert bucket.sections == pytest.approx((lefts[2], lefts[3]), abs=1e-4)
    assert bucket.runs == 2


def test_a_filter_tells_the_files_that_it_keeps(tmp_path: Path) -> None:
    table = written(tmp_path / "t", [(0, 10), (100, 110), (200, 210)])
    report = table.tree("id = 105")
    assert report.filter_text == "id = 105"
    assert [(box.low, box.kept) for box in report.buckets[0].boxes] == [("200", 0), ("100", 1), ("0", 0)]
    assert [(stage.name, stage.kept, stage.dropped) for stage in report.stages if stage.dropped] != []
    assert report.total("kept") == len({file.file_name for split in table.scan("id = 105").plan().splits for file in split.files}) == 1
    assert table.tree().total("kept") == 3


def test_what_snapshots_brought_and_cost(tmp_path: Path) -> None:
    table = written(tmp_path / "t", [(0, 1000), (0, 1000)])
    table.alter_options({"write-only": "false"}).compact(full=True)
    first, second, compacted = table.tree().history
    assert [(s.kind, s.added_files, s.removed_files) for s in (first, second, compacted)] == [
        ("APPEND", 1, 0),
        ("APPEND", 1, 0),
        ("COMPACT", 1, 2),
    ]
    assert (first.write_amplification, first.space_amplification) == (1, 1)
    assert second.space_amplification == pytest.approx(second.size / max(first.written, second.written))
    assert compacted.space_amplification == 1
    assert compacted.write_amplification == pytest.approx(
        (first.written + second.written + compacted.written) / (first.written + second.written)
    )
    assert compacted.removed == first.written + second.written
    assert compacted.size == table.files()["file_size"].to_pylist()[0] == table.tree().total("size")


def test_a_file_that_only_moves_down_was_not_written(tmp_path: Path) -> None:
    table = written(tmp_path / "t", [(0, 1000)], **{"num-levels": "3"})
    table.alter_options({"write-only": "false"}).compact(full=True)
    history = table.tree().history
    assert history[-1].kind == "COMPACT"
    assert (history[-1].written, history[-1].added_files, history[-1].removed) == (0, 0, 0)
    assert history[-1].write_amplification == 1


def test_history_begins_where_snapshots_are_kept(tmp_path: Path) -> None:
    table = written(tmp_path / "t", [(0, 1000), (0, 10), (5, 20)])
    whole = table.tree().history
    table.expire_snapshots(retain_max=1, retain_min=1)
    [last] = table.tree().history
    assert (last.id, last.files, last.size) == (whole[-1].id, whole[-1].files, whole[-1].size)
    assert last.space_amplification == whole[-1].space_amplification


def test_deleted_rows_of_vectors_and_of_retractions_are_counted(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, name STRING", options={"deletion-vectors.enabled": "true"})
    table.write(pa.table({"id": range(100), "name": ["x"] * 100}))
    table.delete("id < 40")
    report = table.tree()
    assert report.total("deleted") == 40
    assert any("40%" in advice.text and "compact" in advice.call for advice in report.advice)


def test_an_older_snapshot_is_shown_as_it_was(tmp_path: Path) -> None:
    table = written(tmp_path / "t", [(0, 10), (0, 10)])
    assert table.tree(snapshot=1).total("files") == 1
    assert [found.id for found in table.tree(snapshot=1).history] == [1]


def test_an_empty_table_has_a_report_too(tmp_path: Path) -> None:
    report = Table.create(tmp_path / "t", "id INT").tree()
    assert (report.snapshot_id, report.buckets, report.history) == (0, (), ())
    assert [advice.weight for advice in report.advice] == ["fine"]


def test_advice_names_the_reason_and_the_call(tmp_path: Path) -> None:
    table = written(tmp_path / "t", [(0, 50)] * 6)
    assert ("act", "table.compact()") in {(advice.weight, advice.call) for advice in table.tree().advice}
    table.alter_options({"file-index.bloom-filter.columns": "name"})
    assert any("missing for 6 files" in advice.text and advice.call == "table.rewrite_file_index()" for advice in table.tree().advice)
    table.rewrite_file_index()
    report = table.tree()
    assert [(index.column, index.index_type, index.files) for index in report.indexes] == [("name", "bloom-filter", 6)]
    assert not any("missing for" in advice.text for advice in report.advice)


def test_a_filter_that_drops_nothing_is_told_of_an_index(tmp_path: Path) -> None:
    table = written(tmp_path / "t", [(0, 50)] * 8)
    assert any("name" in advice.text and "no file" in advice.text for advice in table.tree("name = 'n1'").advice)
    assert not any("no file" in advice.text for advice in table.tree("name <> 'n1'").advice)
    assert not any("no file" in advice.text for advice in table.tree("name = 'n1' AND id = 1000").advice)


def test_wrong_filters_are_told_as_in_a_scan(tmp_path: Path) -> None:
    table = written(tmp_path / "t", [(0, 5)])
    with pytest.raises(UnknownColumn):
        table.tree("nope = 1")
    with pytest.raises(InvalidFilter):
        table.tree("id = = 1")


def test_the_report_travels_as_json(tmp_path: Path) -> None:
    report = written(tmp_path / "t", [(0, 5)]).tree("id = 1")
    assert TreeReport.model_validate_json(report.model_dump_json()) == report


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1, 500])
def test_very_many_files_stand_together_and_none_is_lost(tmp_path: Path, spread: int) -> None:
    schema: TableSchema = written(tmp_path / "t", [(0, 1)]).table_schema
    key = Table.open(tmp_path / "t").scan().plan().splits[0].files[0].min_key
    keys = [key[:12] + number.to_bytes(8, "little") for number in range(10_000)]  # arity, null bits, the number
    files = [
        TreeFile(
            b"\0" * 12,
            at % spread,
            DataFileMeta(file_name=f"data-w-{at}.parquet", file_size=7, row_count=3, level=5, min_key=k, max_key=k),
            0,
            kept=at % 2 == 0,
        )
        for at, k in enumerate(keys)
    ]
    trees = bucket_trees(files, schema)
    boxes = [box for tree in trees for box in tree.boxes]
    assert len(boxes) <= 5000
    assert sum(tree.files for tree in trees) == sum(box.files for box in boxes) == 10_000
    assert sum(tree.kept for tree in trees) == sum(box.kept for box in boxes) == 5_000
    for tree in trees:
        ends = [(box.left, box.left + box.width) for box in tree.boxes]
        assert all(one[1] <= other[0] + 1e-4 for one, other in pairwise(ends))
