"""Tables with deletion vectors as people meet them: visible at once, and pruned by indexes without a full compaction."""

from __future__ import annotations

import pyarrow as pa
import pytest

from manifest.commit.file_store_commit import FileStoreCommit
from pyspark_paimon import Table, UnsupportedOption

VECTORS = {"bucket": "1", "deletion-vectors.enabled": "true"}
ENGINES_VIEW = {"deletion-vectors.merge-on-read": "false"}
INDEXED = {**VECTORS, "file-index.bitmap.columns": "city", "file-index.in-manifest-threshold": "1 B", "metadata.stats-mode": "none"}


def rows(ids: list[int], city: str | list[str]) -> pa.Table:
    return pa.table({"id": ids, "city": city if isinstance(city, list) else [city] * len(ids), "n": pa.array([0] * len(ids), pa.int32())})


def stages(table: Table, filter_: str) -> dict[str, tuple[int, int, str]]:
    return {stage.name: (stage.kept, stage.dropped, stage.note) for stage in table.scan(filter_).explain().stages}


def test_what_a_write_says_are_the_snapshots_that_show_its_rows_to_us_and_to_others(create) -> None:
    table = create(options=VECTORS)
    for name in ("old", "new"):
        result = table.write(rows([1, 2], name))
        assert result.compact_snapshot_id == result.snapshot_id + 1
        for how in ({"snapshot": result.snapshot_id}, {"snapshot": result.compact_snapshot_id, "options": ENGINES_VIEW}):
            assert set(table.scan(**how).to_arrow()["city"].to_pylist()) == {name}
    assert table.delete("id = 2").compact_snapshot_id == table.scan().snapshot_id


def test_an_overwrite_is_visible_at_once(create) -> None:
    table = create(options=VECTORS)
    table.write(rows([1, 2, 3], "old"))
    table.write(rows([1, 1, 5], ["a", "b", "c"]), mode="overwrite")
    assert table.scan(columns=["id", "city"]).to_arrow().sort_by("id").to_pylist() == [{"id": 1, "city": "b"}, {"id": 5, "city": "c"}]


@pytest.mark.parametrize("as_table", [True, False])
def test_a_write_only_table_shows_rows_at_once_and_to_others_once_somebody_compacts(create, as_table) -> None:
    table = create(options={**VECTORS, "write-only": "true", **(ENGINES_VIEW if as_table else {})})
    table.write(rows([1, 2], "a"))
    merged = {"deletion-vectors.merge-on-read": "true"}
    assert table.scan(options=merged).count() == 2
    assert table.scan().count() == (0 if as_table else 2)
    assert table.scan(options=ENGINES_VIEW).count() == 0
    notes = {stage.name: stage.note for stage in table.scan(options=merged).explain().stages}
    assert notes["level"] == "1 file not compacted yet in 1 bucket"
    counts = table.fsck().counts
    assert (counts["files that wait for compaction"], counts["buckets with files that wait for compaction"]) == (1, 1)
    table.compact()
    assert table.scan().count() == table.scan(options=ENGINES_VIEW).count() == 2
    assert "files that wait for compaction" not in table.fsck().counts


def test_after_an_upsert_indexes_skip_files_and_select_rows_without_a_full_compaction(create) -> None:
    table = create(options=INDEXED)
    table.write(rows(list(range(1000)), [f"city {key % 100}" for key in range(1000)]))
    table.compact(full=True)
    table.write(rows([7, 107, 2000], ["moved", "city 7", "moved"]))
    assert sorted(table.files()["level"].to_pylist()) == [4, 5]

    found = stages(table, "city = 'moved'")
    assert found["splits"][2] == "1 raw, 0 merging"
    assert found["file index"][:2] == (1, 1)
    assert found["rows"][0] == 2
    assert sorted(table.scan("city = 'moved'").to_arrow()["id"].to_pylist()) == [7, 2000]

    found = stages(table, "city = 'city 7'")
    assert found["file index"][:2] == (2, 0)
    assert "11 rows selected" in found["index city: bitmap"][2]
    assert sorted(table.scan("city = 'city 7'").to_arrow()["id"].to_pylist()) == [107, *range(207, 1000, 100)]
    assert table.scan("city = 'city 7'").count() == 9


def test_an_embedded_index_skips_the_file_with_the_old_version_and_the_mark_hides_it(create) -> None:
    table = create(options={**INDEXED, "file-index.in-manifest-threshold": "1 MB"})
    table.write(rows([1, 2, 3], ["a", "b", "c"]))
    table.compact(full=True)
    table.write(rows([1], "z"))
    assert stages(table, "city = 'z'")["embedded index"][:2] == (1, 1)
    assert table.scan("city = 'z'", columns=["id"]).to_arrow().to_pylist() == [{"id": 1}]
    assert table.scan("city = 'a'").count() == 0


def test_first_row_has_no_use_for_marks(create) -> None:
    with pytest.raises(UnsupportedOption, match="first-row"):
        create(options={**VECTORS, "merge-engine": "first-row"})


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_engines_that_combine_versions_merge_the_marked_row_into_the_new_one(create, engine) -> None:
    table = create(
        "id BIGINT, n BIGINT, m BIGINT",
        options={**VECTORS, "merge-engine": engine, "fields.n.aggregate-function": "sum"}
        if engine == "aggregation"
        else {**VECTORS, "merge-engine": engine},
    )
    for n, m in ((1, 10), (2, None), (None, 30), (4, None)):
        table.write(pa.table({"id": [1], "n": pa.array([n], pa.int64()), "m": pa.array([m], pa.int64())}))
        table.compact(full=n == 2)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "n": 7 if engine == "aggregation" else 4, "m": 30}]
    assert table.scan().count() == 1


def test_a_repeated_write_shows_rows_that_its_first_call_did_not_come_to_show(create, monkeypatch) -> None:
    table = create(options=VECTORS)
    table.write(rows([1, 2], "old"))

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FileStoreCommit, "_compact", killed)
        with pytest.raises(KeyboardInterrupt):
            table.write(rows([1], "new"), commit_id="nightly")
    assert table.scan("city = 'new'").count() == 1
    assert table.scan("city = 'new'", options=ENGINES_VIEW).count() == 0
    result = table.write(rows([1], "new"), commit_id="nightly")
    assert result.replayed
    assert result.compact_snapshot_id == table.scan().snapshot_id
    assert table.scan("city = 'new'", options=ENGINES_VIEW).count() == 1
    assert table.scan().count() == 2
