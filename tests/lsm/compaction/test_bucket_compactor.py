"""What a compaction rewrites and what it only moves; expected outcomes are those of Paimon's own tests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from lsm.compaction.compactor import BucketCompactor, CompactIncrement, CompactionContext
from lsm.compaction.policy import CompactionPolicy
from lsm.compaction.rewriter import CompactResult, Merge
from lsm.levels.sorted_runs import LevelRun, Levels, key_decoder
from lsm.levels.universal import CompactUnit, UniversalCompaction
from manifest.entry.data_file import DataFileMeta
from manifest.options.core_options import CoreOptions
from manifest.row.binary_row import encode_row
from manifest.schema.table_kind import KeyValueTable
from manifest.types.data_type import DataType
from sparkexpr.values.column_type import Kind

INT = (DataType(Kind.INT, nullable=False),)
KEY_OF = key_decoder(INT)


def files(text: str, deletes: int = 0) -> list[DataFileMeta]:
    """``0[1,3] 2[4,5]``: level and key range; the i-th file has max sequence i, and as many bytes as keys."""
    made = []
    for at, (level, low, high) in enumerate(re.findall(r"(\d+)\[(\d+),(\d+)\]", text)):
        keys = [encode_row((int(key),), INT) for key in (low, high)]
        size = int(high) - int(low) + 1
        made.append(
            DataFileMeta(
                file_name=f"{at}",
                file_size=size,
                row_count=size,
                min_key=keys[0],
                max_key=keys[1],
                level=int(level),
                max_sequence_number=at,
                delete_row_count=deletes,
            )
        )
    return made


def text(made: list[DataFileMeta]) -> str:
    bounds = [(f.level, KEY_OF(f.min_key)[0][1], KEY_OF(f.max_key)[0][1]) for f in made]
    return " ".join(f"{level}[{low},{high}]" for level, low, high in sorted(bounds))


@dataclass
class FakeRewriter:
    """Rewrites key ranges only."""

    drops: list[bool] = field(default_factory=list)
    made: list[DataFileMeta] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    fail_at: int = -1

    def rewrite(self, rewrite: Merge, output_level: int, *, drop_delete: bool) -> list[DataFileMeta]:
        if len(self.made) == self.fail_at:
            raise OSError("no space")
        self.drops.append(drop_delete)
        inputs = list(rewrite.files)
        low, high = min(inputs, key=lambda f: KEY_OF(f.min_key)), max(inputs, key=lambda f: KEY_OF(f.max_key))
        size = KEY_OF(high.max_key)[0][1] - KEY_OF(low.min_key)[0][1] + 1
        update = {
            "file_name": f"new-{len(self.made)}",
            "max_key": high.max_key,
            "level": output_level,
            "file_size": size,
            "delete_row_count": 0,
        }
        self.made.append(low.model_copy(update=update))
        return self.made[-1:]

    def upgrade(self, file: DataFileMeta, output_level: int) -> bool:
        return True

    def can_upgrade(self, file: DataFileMeta, output_level: int) -> bool:
        return True

    def discard(self, file: DataFileMeta) -> None:
        self.discarded.append(file.file_name)


@dataclass(frozen=True)
class FirstRuns:
    """A strategy that always picks the first runs, all of them if ``count`` is 0."""

    level: int
    count: int = 0

    def pick(self, runs: list[LevelRun], max_level: int, **_: object) -> CompactUnit | None:
        chosen = runs[: self.count or len(runs)]
        return CompactUnit.of(self.level, chosen, full=len(chosen) == len(runs))


@dataclass
class FailingChangelog:
    """Its files cannot be finished."""

    aborted: bool = False

    def finish(self) -> list[DataFileMeta]:
        raise OSError("no space")

    def abort(self) -> None:
        self.aborted = True


def compactor_of(
    made: list[DataFileMeta],
    strategy: object,
    rewriter: FakeRewriter,
    *,
    force_rewrite: bool = False,
    changelog: FailingChangelog | None = None,
) -> BucketCompactor:
    policy = CompactionPolicy(strategy, 3, 2, force_rewrite=force_rewrite)
    context = CompactionContext(policy=policy, rewriter=rewriter, rewrite_file=lambda file: [file], changelog=changelog)
    return BucketCompactor(context, Levels(KEY_OF, made, policy.number_of_levels))


def compactor(text_of_files: str, strategy: object, rewriter: FakeRewriter, *, deletes: int = 0) -> BucketCompactor:
    return compactor_of(files(text_of_files, deletes), strategy, rewriter)


@pytest.mark.parametrize(
    ("given", "strategy", "expected", "drop"),
    [
        ("0[1,3] 0[1,5] 0[1,8]", FirstRuns(0, 2), "0[1,3] 0[1,8]", False),
        ("0[1,3] 0[1,5] 2[1,7]", FirstRuns(1, 2), "1[1,5] 2[1,7]", False),
        ("0[1,3] 1[1,5] 1[6,7]", FirstRuns(2), "2[1,5] 2[6,7]", True),
        ("0[1,3] 0[1,5] 0[6,8]", FirstRuns(2), "2[1,5] 2[6,8]", True),
        ("0[1,1] 0[2,2]", FirstRuns(2), "2[1,2]", True),
        ("0[1,5] 0[6,6] 1[7,8] 1[9,10]", FirstRuns(2), "2[1,5] 2[6,6] 2[7,8] 2[9,10]", None),
        ("0[1,5] 0[6,6] 1[7,7] 1[9,10]", FirstRuns(2), "2[1,5] 2[6,7] 2[9,10]", True),
        ("0[1,5] 0[6,6] 1[1,4] 1[6,8] 1[10,11] 2[1,3] 2[4,6]", FirstRuns(2), "2[1,8] 2[10,11]", True),
        ("0[1,5] 0[6,6] 1[1,4] 1[6,8] 1[10,10] 2[1,3] 2[4,6]", FirstRuns(2), "2[1,10]", True),
    ],
)
def test_compaction(given: str, strategy: FirstRuns, expected: str, drop: bool | None) -> None:
    rewriter = FakeRewriter()
    subject = compactor(given, strategy, rewriter)
    result = subject.compact()
    assert result is not None
    assert text(subject.levels.files) == expected
    assert rewriter.drops == ([] if drop is None else [drop])


def test_a_file_that_is_on_its_level_already_is_left_alone() -> None:
    subject = compactor("3[1,3]", FirstRuns(3), FakeRewriter())
    assert subject.compact() is None
    assert subject.compact(full=True) is None
    assert text(subject.levels.files) == "3[1,3]"


def test_an_upgraded_file_keeps_its_name_and_is_in_before_and_after() -> None:
    result = compactor("0[1,5] 1[6,9]", FirstRuns(2), FakeRewriter()).compact()
    assert result is not None
    assert [f.file_name for f in result.before] == [f.file_name for f in result.after] == ["0", "1"]
    assert not result.new_files


@pytest.mark.parametrize(("level", "rewritten"), [(1, False), (2, True)])
def test_deletes_do_not_come_to_rest_on_the_deepest_level(level: int, rewritten: bool) -> None:
    rewriter = FakeRewriter()
    result = compactor("0[1,5]", FirstRuns(level), rewriter, deletes=1).compact()
    assert result is not None
    assert bool(rewriter.made) is rewritten


def test_an_unknown_delete_count_is_rewritten_too() -> None:
    rewriter = FakeRewriter()
    unknown = [files("0[1,5]")[0].model_copy(update={"delete_row_count": None})]
    compactor_of(unknown, FirstRuns(2), rewriter).compact()
    assert len(rewriter.made) == 1


def test_forcing_a_rewrite_moves_nothing() -> None:
    rewriter = FakeRewriter()
    compactor_of(files("2[1,5] 2[6,9]"), UniversalCompaction(), rewriter, force_rewrite=True).compact(full=True)
    assert len(rewriter.made) == 2


def test_a_failed_compaction_discards_what_it_made_and_leaves_the_levels() -> None:
    rewriter = FakeRewriter(fail_at=1)
    subject = compactor("0[1,5] 0[2,6] 1[7,9] 0[10,12] 0[11,13]", FirstRuns(2), rewriter)
    before = text(subject.levels.files)
    with pytest.raises(OSError, match="no space"):
        subject.compact()
    assert rewriter.discarded == ["new-0"]
    assert text(subject.levels.files) == before


def test_a_changelog_that_fails_leaves_the_levels_and_nothing_to_commit() -> None:
    rewriter, changelog = FakeRewriter(), FailingChangelog()
    subject = compactor_of(files("0[1,5] 0[2,6]"), FirstRuns(2), rewriter, changelog=changelog)
    before = text(subject.levels.files)
    with pytest.raises(OSError, match="no space"):
        subject.compact()
    assert (rewriter.discarded, changelog.aborted, text(subject.levels.files)) == (["new-0"], True, before)
    assert subject.drain() == ([], [], [])


def test_the_policy_follows_the_tables_options() -> None:
    policy = CompactionPolicy.of(KeyValueTable(CoreOptions.of({"num-sorted-run.compaction-trigger": "3", "target-file-size": "100 mb"})))
    assert policy == CompactionPolicy(policy.strategy, 4, 70 * 2**20, stop_trigger=6)
    assert isinstance(policy.strategy, UniversalCompaction)
    assert policy.strategy.trigger == 3
    assert policy.strategy.early is None
    assert policy.strategy.growth is None, "an explicit trigger means what it means in Paimon"
    assert CompactionPolicy.of(KeyValueTable(CoreOptions.of({"num-levels": "7"}))).number_of_levels == 7


def named(*names: str) -> list[DataFileMeta]:
    return [DataFileMeta(file_name=name, file_size=1, row_count=1) for name in names]


def test_a_file_made_and_replaced_in_one_cycle_is_discarded_and_never_committed() -> None:
    discarded: list[str] = []
    increment = CompactIncrement(lambda f: discarded.append(f.file_name))
    increment.add(CompactResult(named("a", "b"), named("ab")))
    increment.add(CompactResult(named("ab", "c"), named("abc")))
    before, after = increment.drain()
    assert ([f.file_name for f in before], [f.file_name for f in after], discarded) == (["a", "b", "c"], ["abc"], ["ab"])
    assert increment.drain() == ([], [])


def test_an_upgraded_file_that_is_rewritten_later_is_not_deleted_for_older_snapshots_have_it() -> None:
    discarded: list[str] = []
    increment = CompactIncrement(lambda f: discarded.append(f.file_name))
    increment.add(CompactResult(named("a"), [named("a")[0].upgrade(3)]))
    increment.add(CompactResult([named("a")[0].upgrade(3)], named("new")))
    before, after = increment.drain()
    assert [(f.file_name, f.level) for f in before] == [("a", 0)]
    assert [f.file_name for f in after] == ["new"]
    assert discarded == []


def test_undoing_discards_new_files_only() -> None:
    discarded: list[str] = []
    increment = CompactIncrement(lambda f: discarded.append(f.file_name))
    increment.add(CompactResult(named("a", "b"), [*named("ab"), named("b")[0].upgrade(2)]))
    increment.undo()
    assert discarded == ["ab"]
