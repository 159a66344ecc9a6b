"""A compaction that a write does by itself and that fails: the rows are committed, the result says so, the next one does the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from lsm.compaction import rewriter, small_files
from lsm.compaction.changelog import ChangelogWriter
from lsm.compaction.compactor import BucketCompactor
from lsm.data_files.rolling import RollingFileWriter
from manifest.io.errors import EncodeFailed, OutOfMemory, UnmergeableRows
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from pyspark_paimon import Table

EAGER = {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}
VECTORS = {"deletion-vectors.enabled": "true"}
TABLES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "first-row": {"merge-engine": "first-row"},
    "vectors": VECTORS,
    "vectors, sequence": {**VECTORS, "sequence.field": "n"},
    "lookup": {"changelog-producer": "lookup"},
    "input": {"changelog-producer": "input"},
    "full": {"changelog-producer": "full-compaction", "full-compaction.delta-commits": "1"},
    "orc": {"file.format": "orc"},
    "append": {"compaction.min.file-num": "2"},
}
CHANGELOGS = ("lookup", "full")
FIRST_WINS = ("first-row",)


def rows(ids: range, n: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([n] * len(ids), pa.int64())})


def failing_reads(patch: pytest.MonkeyPatch, error: Exception) -> None:
    def reading(*_: Any, **__: Any) -> Iterator[Any]:
        raise error
        yield

    for module in (rewriter, small_files):
        patch.setattr(module, "file_rows", reading)


def failing_encoder(patch: pytest.MonkeyPatch, error: Exception) -> None:
    """The last file of a compaction cannot be finished."""

    def made(original: Callable[..., RollingFileWriter]) -> Callable[..., RollingFileWriter]:
        def writer(*given: Any) -> RollingFileWriter:
            found = original(*given)

            def close() -> None:
                found.abort()
                raise error

            patch.setattr(found, "close", close)
            return found

        return writer

    patch.setattr(rewriter, "key_value_writer", made(rewriter.key_value_writer))
    patch.setattr(small_files, "row_writer", made(small_files.row_writer))


def failing_changelog(patch: pytest.MonkeyPatch, error: Exception) -> None:
    """The data files are there, their changelog cannot be finished."""
    finish, compact = ChangelogWriter.finish, BucketCompactor.compact
    compacted = []

    def compacting(self: BucketCompactor, *, full: bool = False) -> Any:
        compacted.append(full)
        return compact(self, full=full)

    def finishing(self: ChangelogWriter) -> Any:
        if compacted:
            raise error
        return finish(self)

    patch.setattr(BucketCompactor, "compact", compacting)
    patch.setattr(ChangelogWriter, "finish", finishing)


FAULTS = {"reads": failing_reads, "encoder": failing_encoder, "changelog": failing_changelog}
ERRORS = {
    "corrupt": CorruptFile("data-1.parquet", "damaged"),
    "encode": EncodeFailed("data-2.parquet", "n", "no such type"),
    "memory": OutOfMemory("data-3.parquet", "malloc"),
    "untyped": pa.ArrowInvalid("what nobody thought of"),
}
CASES = [
    pytest.param(kind, (fault, error), marks=() if error == "corrupt" or (kind, fault) == ("deduplicate", "reads") else pytest.mark.long)
    for kind in TABLES
    for fault in FAULTS
    for error in ERRORS
    if fault != "changelog" or kind in CHANGELOGS
]


def state(table: Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.slow("input-fault56")
@pytest.mark.parametrize(("kind", "fault"), CASES)
def test_the_rows_are_committed_and_the_compaction_comes_later(tmp_path, monkeypatch, caplog, kind, fault):
    keys = [] if kind == "append" else ["id"]
    bucket_key = {"bucket-key": "id"} if kind == "append" else {}
    table = Table.create(tmp_path / "t", "id BIGINT, n BIGINT", primary_keys=keys, options={**EAGER, **bucket_key, **TABLES[kind]})
    writes = [rows(range(at * 5, at * 5 + 20), at) for at in range(6)]
    expected: list[tuple[int, int]] = []
    lost = []
    for number, written in enumerate(writes):
        with monkeypatch.context() as patch:
            if number in {2, 3, 4}:
                FAULTS[fault[0]](patch, ERRORS[fault[1]])
            result = table.write(written)
        assert result.snapshot_id is not None
        lost.append(result.compact_lost)
        assert (result.compact_error is not None) == result.compact_lost
        if result.compact_error is not None:
            assert str(ERRORS[fault[1]]) in result.compact_error
            assert result.compact_error in str(result)
        new = [(row["id"], row["n"]) for row in written.to_pylist()]
        if kind == "append":
            expected = sorted([*expected, *new])
        else:
            expected = sorted((dict(new) | dict(expected) if kind in FIRST_WINS else dict(expected) | dict(new)).items())
        assert state(table) == expected
    assert any(lost[2:5])
    assert not any(lost[:2] + lost[5:])
    assert "was not compacted" in caplog.text
    table.compact(full=True)
    assert state(table) == expected
    assert table.fsck("deep").problems == ()
    named = set(table.files()["file_name"].to_pylist())
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=2**61)
    assert {file.name for file in (tmp_path / "t").rglob("bucket-0/data-*")} == named, "no file of a failed compaction remains"


def test_a_damaged_file_loses_compactions_but_no_writes_and_an_explicit_compaction_is_typed(tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, n BIGINT", primary_keys=["id"], options={**EAGER, "bucket": "2"})
    table.write(rows(range(50), 0))
    (path,) = (tmp_path / "t" / "bucket-0").glob("data-*.parquet")
    held = path.read_bytes()
    path.write_bytes(bytes(len(held)))
    results = [table.write(rows(range(50), at)) for at in range(1, 9)]
    assert any(result.compact_lost for result in results)
    for result in results:
        assert (path.name in (result.compact_error or "")) == result.compact_lost
        assert "another commit" not in str(result)
    with pytest.raises(CorruptFile, match=path.name):
        table.compact(full=True)
    path.write_bytes(held)
    table.write(rows(range(50), 9))
    assert not table.write(rows(range(50), 10)).compact_lost
    assert state(table) == [(at, 10) for at in range(50)]


def test_rows_that_cannot_be_merged_are_refused_with_the_write(tmp_path):
    options = {**EAGER, "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = Table.create(tmp_path / "t", "id BIGINT, n BIGINT", primary_keys=["id"], options=options)
    table.write(rows(range(3), 2**62))
    before = FileStore.open(table.path).snapshots.latest_id()
    with pytest.raises(UnmergeableRows):
        table.write(rows(range(3), 2**62))
    assert FileStore.open(table.path).snapshots.latest_id() == before
