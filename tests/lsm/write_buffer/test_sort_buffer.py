"""The write buffer of a bucket, with a merge function that needs every version as well as with one that does not."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lsm.data_files.spill import SpillDirectory, SpillFile, SpillSpace
from lsm.keys.sort import Sorted, SortKey
from lsm.merge.function import Deduplicate, merge_function_for
from lsm.write_buffer.gather import GatheredInput
from lsm.write_buffer.sort_buffer import SortBuffer
from lsm.write_buffer.source import BufferedRows, Source
from manifest.io.errors import OutOfDisk, OutOfMemory, StorageError
from manifest.schema.table_schema import TableSchema
from manifest.types.ddl import parse_ddl
from paimon_base.errors import PaimonError


@dataclass(frozen=True)
class Summing:
    """Adds up the values of a key: no version may be left out early."""

    def fold(self, rows: pa.Table, done: Sorted) -> pa.Table:
        values = rows["v"].to_numpy()[done.order]
        totals = np.add.reduceat(values, done.starts) if len(values) else values
        last = rows.take(pa.array(done.last))
        return last.set_column(last.schema.get_field_index("v"), "v", pa.array(totals))

    def prefilter(self, kinds: object, done: Sorted) -> Sorted:
        return done


def source(ids: list[int], values: list[int], kinds: list[int] | None = None) -> Source:
    return Source(pa.table({"id": ids, "v": values}), None if kinds is None else np.array(kinds, np.int8))


def drained(buffer: SortBuffer, space: SpillSpace) -> pa.Table:
    return pa.concat_tables(buffer.drain(space))


@pytest.mark.parametrize("spills", [0, 1, 3])
def test_a_function_of_all_versions_sees_all_of_them(tmp_path: Path, spills: int) -> None:
    space = SpillSpace(str(tmp_path))
    buffer = SortBuffer(SortKey(("id",)), Summing(), 100)
    for at in range(4):
        buffer.add(source([1, 2, 1], [1, 10, 100]), None)
        if at < spills:
            buffer.spill(space)
    table = drained(buffer, space)
    assert table["id"].to_pylist() == [1, 2]
    assert table["v"].to_pylist() == [404, 40]
    assert table["_SEQUENCE_NUMBER"].to_pylist() == [111, 110]
    assert list(tmp_path.iterdir()) == []


def test_rows_of_shared_tables_are_numbered_in_the_order_of_their_bucket(tmp_path: Path) -> None:
    buffer = SortBuffer(SortKey(("id",)), Deduplicate(), 0)
    shared = source([5, 1, 5, 2, 5], [0, 1, 2, 3, 4], [0, 0, 3, 2, 0])
    buffer.add(shared, np.array([0, 2, 3]))
    buffer.add(shared, np.array([1]))
    assert (buffer.rows, buffer.next_sequence, shared.refcount) == (4, 4, 2)
    table = drained(buffer, SpillSpace(str(tmp_path)))
    assert table.to_pydict() == {"_SEQUENCE_NUMBER": [3, 2, 1], "_VALUE_KIND": [0, 2, 3], "id": [1, 2, 5], "v": [1, 3, 2]}
    assert (shared.refcount, buffer.rows) == (0, 0)


@pytest.mark.parametrize("spills", [0, 1, 3])
def test_partial_updates_keep_the_values_of_all_versions(tmp_path: Path, spills: int) -> None:
    fields = parse_ddl("id BIGINT NOT NULL, a BIGINT, b BIGINT, c BIGINT")
    schema = TableSchema(id=0, fields=fields, primary_keys=("id",), options={"merge-engine": "partial-update"})
    space = SpillSpace(str(tmp_path))
    buffer = SortBuffer(SortKey(("id",)), merge_function_for(schema), 0)
    rows = [(1, 1, None, None), (1, None, 2, None), (2, 7, None, None), (1, None, None, 3), (2, None, 8, None), (1, 4, None, None)]
    for at, some in enumerate((rows[:3], rows[3:5], rows[5:])):
        columns = zip(*some, strict=True)
        buffer.add(Source(pa.table([pa.array(one, pa.int64()) for one in columns], names=["id", "a", "b", "c"]), None), None)
        if at < spills:
            buffer.spill(space)
    table = drained(buffer, space)
    assert table.select(["id", "a", "b", "c"]).to_pylist() == [{"id": 1, "a": 4, "b": 2, "c": 3}, {"id": 2, "a": 7, "b": 8, "c": None}]


def test_spill_files_that_are_merged_into_one_are_deleted_at_once(tmp_path: Path, set_thresholds: Any) -> None:
    set_thresholds(spill_fan_in=3)
    space = SpillSpace(str(tmp_path))
    buffer = SortBuffer(SortKey(("id",)), Deduplicate(), 0)
    for at in range(9):
        buffer.add(source([at], [at]), None)
        buffer.spill(space)
    tables = buffer.drain(space)
    first = next(tables)
    assert len(list(tmp_path.rglob("*.arrow"))) < 4
    assert pa.concat_tables([first, *tables])["id"].to_pylist() == list(range(9))
    assert list(tmp_path.rglob("*.arrow")) == []


def test_gathering_lets_go_of_the_shared_table_and_keeps_the_rows(tmp_path: Path) -> None:
    buffer = SortBuffer(SortKey(("id",)), Deduplicate(), 7)
    shared = source([3, 1, 2], [30, 10, 20], [0, 3, 0])
    buffer.add(shared, np.array([0, 1]))
    buffer.held.gather()
    assert shared.refcount == 0
    buffer.add(source([1], [11]), None)
    assert drained(buffer, SpillSpace(str(tmp_path))).to_pydict() == {
        "_SEQUENCE_NUMBER": [9, 7],
        "_VALUE_KIND": [0, 0],
        "id": [1, 3],
        "v": [11, 30],
    }


@pytest.mark.parametrize("sizes", [[10], [100_000], [70_000, 10, 20, 90_000], [1] * 300])
def test_blocks_of_any_size_give_the_rows_back(sizes: list[int]) -> None:
    held = BufferedRows()
    rng = np.random.default_rng(2)
    everything = []
    for size in sizes:
        values = rng.integers(0, 1000, size)
        everything += values.tolist()
        held.add(source(values.tolist(), values.tolist(), [0] * (size - 1) + [3]), None)
    blocks = held.blocks(lambda table: np.argsort(table["id"].to_numpy(), kind="stable"))
    assert blocks.count == held.count == sum(sizes)
    arrived = np.argsort(blocks.arrivals)
    assert blocks.take(arrived)["v"].to_pylist() == everything
    assert blocks.kinds is not None
    assert (blocks.kinds != 0).sum() == len(sizes)
    chosen = rng.permutation(sum(sizes))[:50]
    assert blocks.take(chosen)["v"].to_pylist() == blocks.columns(["v"])["v"].take(pa.array(chosen)).to_pylist()


def test_a_spill_that_finds_no_room_leaves_no_file(tmp_path: Path) -> None:
    def failing():
        yield pa.table({"a": [1]})
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OutOfDisk):
        SpillSpace(str(tmp_path)).write(failing())
    assert list(tmp_path.iterdir()) == []


def test_a_spill_that_storage_refuses_or_loses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(StorageError, match="file/spills"):
        SpillSpace(str(tmp_path / "file" / "spills")).write([pa.table({"a": [1]})])
    spilled = SpillSpace(str(tmp_path)).write([pa.table({"a": range(100_000)})])
    Path(spilled.path).write_bytes(Path(spilled.path).read_bytes()[:-2000])
    with pytest.raises(PaimonError, match=r"spill-.*\.arrow"):
        list(spilled.tables())
    spilled.delete()
    with pytest.raises(StorageError, match=r"spill-.*\.arrow"):
        list(spilled.tables())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "file"))
    with pytest.raises(StorageError, match="file"), SpillDirectory() as directory:
        SpillSpace(directory).write([pa.table({"a": [1]})])


@pytest.mark.parametrize("codec", ["zstd", "lz4", "none"])
def test_spill_files_give_back_what_they_got_in_small_pieces(tmp_path: Path, codec: str) -> None:
    table = pa.table({"a": np.arange(600_000), "s": ["x"] * 600_000})
    spilled = SpillSpace(str(tmp_path), codec).write([table.slice(0, 10), table.slice(10)])
    pieces = list(spilled.tables())
    assert pa.concat_tables(pieces).equals(table)
    assert max(piece.nbytes for piece in pieces) < 3 << 20
    assert (spilled.rows, spilled.size) == (600_000, Path(spilled.path).stat().st_size)
    spilled.delete()
    spilled.delete()
    assert not Path(spilled.path).exists()
    assert isinstance(spilled, SpillFile)


@pytest.mark.parametrize(("raised", "typed"), [(pa.ArrowInvalid("no"), StorageError), (pa.ArrowMemoryError("malloc failed"), OutOfMemory)])
def test_what_arrow_says_while_it_spills_is_ours_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: Exception, typed: type[PaimonError]
) -> None:
    class Failing:
        def write_table(self, *_: object, **__: object) -> None:
            raise raised

    monkeypatch.setattr(pa.ipc, "new_stream", lambda *_, **__: Failing())
    with pytest.raises(typed, match="spill-"):
        SpillSpace(str(tmp_path)).write([pa.table({"a": [1]})])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("owned", [None, [4, 5, 6, 7], [0, 2, 3, 9]])
@pytest.mark.parametrize("positions", [[0, 1, 2, 3], [1, 2], [3], [2, 0, 1, 3], [0, 2], []])
def test_adjacent_rows_are_taken_without_a_copy(owned: list[int] | None, positions: list[int]) -> None:
    numbers = pa.array([None, 1, 2, 3, 4, 5, 6, 7, 8, 9], pa.int64())
    texts = pa.array([f"text {row}" if row % 3 else None for row in range(10)])
    columns = {"n": numbers, "t": texts, "view": texts.cast(pa.string_view()), "code": texts.fill_null("").dictionary_encode()}
    expected = [row if owned is None else owned[row] for row in positions]
    rows = GatheredInput(columns, None if owned is None else np.array(owned, np.int32))
    for names in (["n", "t"], list(columns)):
        taken = rows.take(np.array(positions, np.int64), names)
        assert taken.to_pydict() == {name: [columns[name][row].as_py() for row in expected] for name in names}
    is_adjacent = bool(expected) and expected == list(range(expected[0], expected[-1] + 1))
    taken_numbers = rows.take(np.array(positions, np.int64), ["n"])["n"].chunk(0)
    assert (taken_numbers.buffers()[1].address == numbers.buffers()[1].address) == is_adjacent
