"""A large base on level 0 moves to the deepest level as it is, where the strategy would leave it alone there; nowhere else."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.levels.sorted_runs import Levels, key_decoder
from lsm.levels.universal import EarlyFullCompaction, ForceUpLevel0, UniversalCompaction, trivial_move
from manifest.entry.data_file import DataFileMeta
from manifest.row.binary_row import encode_row
from manifest.types.data_type import DataType
from pyspark_paimon import Table
from sparkexpr.values.column_type import Kind

INT = (DataType(Kind.INT, nullable=False),)
KEY_OF = key_decoder(INT)
MAX_LEVEL, MIN_SIZE = 5, 90
Strategy = UniversalCompaction | ForceUpLevel0


def file(name: str, size: int, keys: tuple[int, int], sequence: tuple[int, int], level: int = 0) -> DataFileMeta:
    low, high = (encode_row((key,), INT) for key in keys)
    return DataFileMeta(
        file_name=name,
        file_size=size,
        row_count=size,
        min_key=low,
        max_key=high,
        level=level,
        min_sequence_number=sequence[0],
        max_sequence_number=sequence[1],
    )


def newest(count: int, *, size: int = 1, first: int = 1000) -> list[DataFileMeta]:
    """Small files over all keys, each newer than the one before."""
    return [file(f"small-{at}", size, (0, 999), (first + at, first + at)) for at in range(count)]


BASE = file("base", 100, (0, 999), (0, 99))


def settled(files: Sequence[DataFileMeta], strategy: Strategy | None = None, max_level: int = MAX_LEVEL) -> list[str] | None:
    asked = strategy or UniversalCompaction()
    run = trivial_move(
        Levels(KEY_OF, list(files), max_level + 1).runs, max_level, KEY_OF, lambda runs: copy.copy(asked).pick(runs, max_level), MIN_SIZE
    )
    return None if run is None else [each.file_name for each in run.files]


def test_a_base_that_the_pick_would_swallow_settles() -> None:
    assert settled([BASE, *newest(5)]) == ["base"]


def test_nothing_settles_while_nothing_is_picked() -> None:
    assert settled([]) is None
    assert settled([BASE]) is None
    assert settled([BASE, *newest(3)]) is None


def test_a_base_that_its_size_draws_into_the_pick_stays_and_is_merged() -> None:
    assert settled([BASE, *newest(5, size=30)]) is None  # 150 beside 100: the ratio takes it on any level
    assert settled([BASE, *newest(5, size=60)]) is None  # 300 are more than twice 100: too much space taken by old versions
    assert settled([BASE, *newest(5, size=19)]) == ["base"]


def test_a_base_of_several_files_settles_as_one_run_in_key_order() -> None:
    base = [file("b", 100, (500, 999), (0, 199)), file("a", 100, (0, 499), (1, 198)), file("tail", 20, (1000, 1001), (2, 197))]
    assert settled([*base, *newest(2)]) == ["a", "b", "tail"]


def test_files_that_overlap_are_no_base_beyond_the_oldest() -> None:
    assert settled([BASE, file("again", 100, (900, 1100), (100, 199)), *newest(5)]) is None
    older = file("older", 10_000, (0, 999), (0, 99))
    assert settled([older, file("again", 100, (900, 1100), (100, 199)), *newest(5)]) == ["older"]


def test_small_files_do_not_settle_beside_each_other() -> None:
    disjoint = [file(f"small-{at}", 1, (1000 + at, 1000 + at), (1000 + at, 1000 + at)) for at in range(5)]
    assert settled([BASE, *disjoint]) == ["base", "small-0"]
    assert settled([BASE.model_copy(update={"file_size": 80}), *disjoint]) == ["base"]


def test_rows_that_are_not_older_than_all_others_stay() -> None:
    late = BASE.model_copy(update={"max_sequence_number": 1001})
    assert settled([late, *newest(5)]) is None


def test_a_bucket_with_deeper_files_has_its_base_already() -> None:
    assert settled([file("deep", 1000, (0, 999), (0, 9), level=5), BASE.model_copy(update={"min_sequence_number": 10}), *newest(5)]) is None


def test_two_levels_have_no_room_between_a_base_and_level_0() -> None:
    assert settled([BASE, *newest(5)], max_level=1) is None


def test_an_early_full_compaction_takes_the_base_too() -> None:
    assert settled([BASE, *newest(5)], UniversalCompaction(early=EarlyFullCompaction(interval_ms=1))) is None
    assert settled([BASE, *newest(5)], UniversalCompaction(early=EarlyFullCompaction(incremental_size_threshold=50))) == ["base"]


def test_asking_is_no_turn_of_gentle_forcing() -> None:
    gentle = ForceUpLevel0(UniversalCompaction(), interval=3)
    few, enough = (Levels(KEY_OF, [BASE, *newest(count)], MAX_LEVEL + 1).runs for count in (1, 2))
    for _ in range(3):
        assert gentle.pick(few, MAX_LEVEL) is None
        assert settled([BASE, *newest(1)], gentle) is None
        assert settled([BASE, *newest(2)], gentle) == ["base"]
    unit = gentle.pick(enough, MAX_LEVEL)
    assert unit is not None
    assert unit.full


SIZES = st.lists(st.tuples(st.sampled_from([1, 2, 30, 95, 400]), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9)


@settings(max_examples=80)
@given(SIZES, st.booleans(), st.integers(1, 5))
def test_what_settles_is_one_run_older_than_the_rest_and_stays_where_it_is(
    sizes: list[tuple[int, int, int]], forced: bool, most: int
) -> None:
    files = [file(f"{at}", size, (min(a, b), max(a, b)), (10 * at, 10 * at + 9)) for at, (size, a, b) in enumerate(sizes)]
    strategy: Strategy = ForceUpLevel0(UniversalCompaction(trigger=3)) if forced else UniversalCompaction(trigger=3)
    names = settled(files, strategy, most)
    before = strategy.pick(Levels(KEY_OF, files, most + 1).runs, most)
    if names is None:
        return
    assert before is not None
    assert before.full
    moved = [each.upgrade(most) if each.file_name in names else each for each in files]
    assert [each.file_name for each in moved if each.level == most] == [f"{at}" for at in range(len(names))]
    after = Levels(KEY_OF, moved, most + 1)  # raises if the files overlap on their level
    unit = strategy.pick(after.runs, most)
    rewritten = [] if unit is None else [each.file_name for each in unit.files]
    assert not set(names) & set(rewritten)
    assert unit is None or 0 < unit.output_level < most


OPTIONS: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "sequence field": {"sequence.field": "n"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "vectors, sequence field": {"deletion-vectors.enabled": "true", "sequence.field": "n"},
    "vectors, aggregation": {"deletion-vectors.enabled": "true", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "input changelog": {"changelog-producer": "input"},
    "lookup changelog": {"changelog-producer": "lookup"},
    "full-compaction changelog": {"changelog-producer": "full-compaction"},
}
MUST_BE_READ = {"lookup changelog", "full-compaction changelog"}
BASE_ROWS = 4000
DEEPEST = 3
Rows = dict[int, int]


def loaded(path: str | Path, options: dict[str, str]) -> tuple[Table, Rows]:
    """A table that a writer without compaction has filled, and whose next writers compact; and what is in it."""
    own = {"bucket": "1", "num-sorted-run.compaction-trigger": str(DEEPEST), "write-only": "true"}
    table = Table.create(f"{path}/t", "id BIGINT, n INT, text STRING", primary_keys=["id"], options=own | options)
    write(table, content := dict.fromkeys(range(BASE_ROWS), 5))
    return table.alter_options({"write-only": "false"}), content


def write(table: Table, content: Rows) -> None:
    texts = [f"{key * 2654435761 % 2**32:08x}" for key in content]
    table.write(pa.table({"id": pa.array(content, pa.int64()), "n": pa.array(content.values(), pa.int32()), "text": texts}))


def merge(name: str, old: int | None, new: int) -> int:
    if old is None:
        return new
    return {"first-row": old, "sequence field": max(old, new), "vectors, sequence field": max(old, new)}.get(
        name, old + new if "aggregation" in name else new
    )


def levels(table: Table) -> dict[str, int]:
    files = table.files()
    return dict(zip(files["file_name"].to_pylist(), files["level"].to_pylist(), strict=True))


def check(table: Table, content: Rows) -> None:
    found = table.scan().to_arrow()
    assert found.num_rows == len(content)
    assert dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True)) == content
    assert table.scan("n <> 5").count() == sum(number != 5 for number in content.values())


@pytest.mark.parametrize("name", OPTIONS)
def test_commits_leave_a_loaded_base_as_it_is_unless_it_has_to_be_read(name: str, tmp_path: Path) -> None:
    table, content = loaded(tmp_path, OPTIONS[name])
    ((base, _),) = levels(table).items()
    for at in range(4):
        new = dict.fromkeys([at, at + 1, BASE_ROWS + at], 6 + at)
        write(table, new)
        content |= {key: merge(name, content.get(key), number) for key, number in new.items()}
    assert levels(table).get(base) == (None if name in MUST_BE_READ else DEEPEST)
    check(table, content)
    assert table.fsck("deep").problems == ()
    table.compact(full=True)
    assert {*levels(table).values()} == {DEEPEST}
    check(table, content)


STEPS = st.lists(
    st.one_of(
        st.dictionaries(st.integers(0, 5) | st.integers(BASE_ROWS - 2, BASE_ROWS + 5), st.integers(3, 8), min_size=1, max_size=5),
        st.sampled_from(["compact", "full", "delete", "stop compacting", "go on"]),
    ),
    min_size=3,
    max_size=10,
)


def run(name: str, steps: Sequence[Rows | str]) -> None:
    with tempfile.TemporaryDirectory() as path:
        table, content = loaded(path, OPTIONS[name])
        for step in steps:
            if not isinstance(step, str):
                write(table, step)
                content |= {key: merge(name, content.get(key), number) for key, number in step.items()}
            elif step == "delete":
                if name in {"deduplicate", "vectors"}:
                    table.delete(f"id IN (0, 1, {BASE_ROWS})")
                    content = {key: number for key, number in content.items() if key not in {0, 1, BASE_ROWS}}
            elif step in {"compact", "full"}:
                table.compact(full=step == "full")
            else:
                table = table.alter_options({"write-only": "true" if step == "stop compacting" else "false"})
        table = table.alter_options({"write-only": "false"})
        table.compact()  # where level 0 is hidden, the rows of writers that did not compact are hidden until then
        check(table, content)
        assert table.fsck("deep").problems == ()


@settings(max_examples=4, deadline=None)
@given(st.sampled_from(list(OPTIONS)), STEPS)
def test_any_order_of_writes_and_compactions_over_a_base_keeps_the_rows(name: str, steps: list[Rows | str]) -> None:
    run(name, steps)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(OPTIONS)), STEPS)
def test_any_order_of_writes_and_compactions_over_a_base_keeps_the_rows_for_long(name: str, steps: list[Rows | str]) -> None:
    run(name, steps)


def test_a_base_with_deletes_does_not_come_to_rest_on_the_deepest_level(tmp_path: Path) -> None:
    table, content = loaded(tmp_path, {"write-only": "true"})
    table = table.alter_options({"write-only": "true"})
    write(table, {BASE_ROWS + at: 5 for at in range(3)})
    table.delete(f"id >= {BASE_ROWS}")
    before = levels(table)
    table = table.alter_options({"write-only": "false"})
    write(table, new := {1: 7})
    assert [level for name, level in levels(table).items() if name in before] == [DEEPEST]  # the base alone
    check(table, content | new)
