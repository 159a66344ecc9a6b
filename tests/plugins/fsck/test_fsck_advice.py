"""What the advice of a check says is done as it stands, on the damage that made it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from pyspark_paimon import Table
from pyspark_paimon.results.fsck_problem import Problem
from pyspark_paimon.results.fsck_problem import ProblemKind as K
from tests.damaged_tables import Case, Copies, Surgeon, cut
from tests.plugins.fsck import test_fsck_indexes, test_fsck_metadata, test_fsck_rows

pytestmark = [pytest.mark.local_files, pytest.mark.slow]
DAMAGES = {
    **test_fsck_metadata.DAMAGES,
    **test_fsck_rows.DAMAGES,
    **test_fsck_indexes.DAMAGES,
    "a kept changelog is cut short": Case(K.CHANGELOG, "changelogs", "quick", lambda s: cut(s.file("changelog", "changelog-1"))),
}


class Advised(NamedTuple):
    """Damage of one kind, and another shape of table if that of the damage holds old states."""

    damage: str
    shape: str = ""


ADVISED = {
    K.SCHEMA: Advised("an old schema is cut short"),
    K.SNAPSHOT: Advised("a snapshot is cut short"),
    K.SNAPSHOT_GAP: Advised("a snapshot is missing", "written"),
    K.HINT: Advised("a hint names nothing"),
    K.TAG: Advised("a tag is no snapshot"),
    K.CONSUMER: Advised("a consumer is none"),
    K.CHANGELOG: Advised("a kept changelog is cut short"),
    K.STATISTICS_FILE: Advised("statistics are cut short"),
    K.MANIFEST_LIST: Advised("a list is missing"),
    K.MANIFEST: Advised("a manifest is cut short"),
    K.MANIFEST_RANGE: Advised("a list hides buckets"),
    K.RECORD_COUNT: Advised("the new rows are counted wrongly"),
    K.BASE_STATE: Advised("a merged manifest lost a file"),
    K.DOUBLE_ADD: Advised("a file is added twice"),
    K.DELETE_OF_ABSENT: Advised("a file is deleted that is not there"),
    K.ENTRY: Advised("sequence numbers end before they begin"),
    K.LEVEL_OVERLAP: Advised("files of a level overlap"),
    K.MISSING_FILE: Advised("a data file is missing"),
    K.FILE_SIZE: Advised("a data file has another size"),
    K.DATA_FILE: Advised("a page is damaged"),
    K.ROW_COUNT: Advised("rows are missing", "written"),
    K.KEY_ORDER: Advised("rows are swapped"),
    K.DUPLICATE_KEY: Advised("a key is repeated"),
    K.KEY_RANGE: Advised("the smallest key is another"),
    K.SEQUENCE_RANGE: Advised("sequence numbers are others"),
    K.ROW_KIND: Advised("a row has no kind", "written"),
    K.DELETE_COUNT: Advised("a deleted row is not counted"),
    K.COLUMN_STATISTICS: Advised("a minimum is too great"),
    K.NULL_VALUE: Advised("a key is null", "written"),
    K.PARTITION_VALUE: Advised("a row is of another partition", "written"),
    K.WRONG_BUCKET: Advised("rows are in another bucket"),
    K.FILE_INDEX: Advised("a container is cut short"),
    K.FALSE_INDEX: Advised("a bloom filter lies"),
    K.INDEX_MANIFEST: Advised("an index manifest is cut short"),
    K.DELETION_VECTOR: Advised("a vector is damaged"),
    K.HASH_INDEX: Advised("a hash is repeated"),
}
ELSEWHERE = {K.KEY_PARTITION, K.ROW_RANGE}
"""No damage of a file: test_keys_across_partitions. Damage of a table with data evolution: test_evolved_tables."""


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return Copies(tmp_path_factory.mktemp("tables"))


def test_every_kind_of_problem_has_a_damage_whose_advice_is_done() -> None:
    assert ADVISED.keys() | ELSEWHERE == set(K)
    assert all(DAMAGES[advised.damage].kind is kind for kind, advised in ADVISED.items())


def damaged(copies: Copies, home: Path, case: Case) -> tuple[str, Problem]:
    path = copies.copy(case.shape, home)
    case.damage(Surgeon(path))
    return path, next(problem for problem in Table.open(path).fsck(case.depth).problems if problem.kind is case.kind)


def follow(path: str, advice: str, depth: str) -> tuple[Problem, ...]:
    """Make the calls of an advice, in their order, until nothing is wrong. Return what is left."""
    problems: tuple[Problem, ...] = ()
    for call in re.findall("`([^`]+)`", advice):
        exec(call, {"table": Table.open(path)})
        problems = Table.open(path).fsck(depth).problems
        if not problems:
            break
    return problems


@pytest.mark.parametrize("kind", ADVISED, ids=str)
def test_the_advice_is_done_as_it_stands(copies: Copies, tmp_path: Path, kind: K) -> None:
    advised = ADVISED[kind]
    case = DAMAGES[advised.damage]
    case = case._replace(shape=advised.shape or case.shape)
    path, problem = damaged(copies, tmp_path / "calls", case)
    backup = "restore the file from a backup" in problem.advice
    assert backup or "`" in problem.advice or " stay" in problem.advice, "the advice does nothing and does not say what stays"
    problems, told = (problem,), []
    while problems and "`" in problems[0].advice and problems[0].advice not in told:  # older states may have the damage, too
        told.append(problems[0].advice)
        problems = follow(path, problems[0].advice, case.depth)
    assert not told or not problems, (told, problems)
    if backup:
        path, problem = damaged(copies, tmp_path / "backup", case)
        for name in (problem.path, *([f"{path}/manifest/{problem.manifest}"] if problem.manifest else [])):
            shutil.copy(copies.of(case.shape) / Path(name).relative_to(path), name)
        left = Table.open(path).fsck(case.depth).problems
        assert left == (), problem.advice
