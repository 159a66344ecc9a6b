"""Interleavings that once went wrong, and the choice of stops."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tests.torture.disk import Operation
from tests.torture.footprints import Footprint, relevant_stops
from tests.torture.interleavings import Case, PreparedTable, run_case
from tests.torture.kills import scratch_folder

LOCAL, STORE = "append, partitioned, expiring", "deduplicate, vectors on a store"
PAIRS = [
    (LOCAL, "replace tag", "rollback far"),
    (LOCAL, "replace tag", "untag"),
    (LOCAL, "restore", "rollback far"),
    (LOCAL, "drop column", "drop"),
    (STORE, "rollback", "rollback"),
    (STORE, "rollback far", "tag"),
    (STORE, "rollback far", "branch"),
    (STORE, "fast-forward", "rollback far"),
    (STORE, "branch", "fast-forward"),
    (STORE, "update", "drop column"),
]
EACH = [pytest.param(400, id="one stop"), pytest.param(40, id="more stops", marks=pytest.mark.long)]
"""Of the stops of a pair, one in so many is tried here. ``make torture`` draws from all of them."""


@pytest.fixture(scope="module")
def prepared() -> Iterator[Callable[[str], PreparedTable]]:
    """A table of each kind, made once: it remembers what operations do alone."""
    with scratch_folder() as scratch:
        yield cache(lambda kind: PreparedTable(kind, tempfile.mkdtemp(dir=scratch)))


@pytest.mark.slow
@pytest.mark.parametrize("each", EACH)
@pytest.mark.parametrize(("kind", "first", "second"), PAIRS)
def test_a_pair_that_once_went_wrong_is_serializable(
    prepared: Callable[[str], PreparedTable], kind: str, first: str, second: str, each: int
) -> None:
    table = prepared(kind)
    stops = table.stops(first, second)
    cases = [
        Case(kind, first, (second,), number, kills=kills) for number in stops[min(each, len(stops)) // 2 :: each] for kills in (False, True)
    ]
    assert cases
    wrong = {case: found for case in cases if (found := run_case(table, case))[0] not in {"right", "typed error"}}
    assert wrong == {}


def operations(*steps: tuple[str, str]) -> list[Operation]:
    return [Operation(number, name, path) for number, (name, path) in enumerate(steps, 1)]


COMMIT = operations(
    ("read", "/snapshot/LATEST"),
    ("create", "/bucket-0/data-11111111-1111-1111-1111-111111111111-0.parquet"),
    ("fsync", "/bucket-0"),
    ("link", "/snapshot/snapshot-4"),
    ("replace", "/snapshot/LATEST"),
)


@pytest.mark.parametrize(
    ("other", "stops"),
    [
        ([("read", "/schema/schema-0")], []),
        ([("read", "/snapshot/snapshot-3")], [4]),
        ([("read", "/snapshot/LATEST")], [5]),
        ([("replace", "/snapshot/LATEST")], [1, 5]),
        ([("scandir", "/bucket-0")], [2]),
        # A number in a name stands for any.
        ([("unlink", "/bucket-1/data-22222222-2222-2222-2222-222222222222-7.parquet")], [2]),
        ([("unlink", "/manifest/manifest-22222222-2222-2222-2222-222222222222-7")], []),
        ([("unlink", "/snapshot/snapshot-1"), ("scandir", "/snapshot")], [4, 5]),
    ],
    ids=str,
)
def test_only_file_operations_that_do_not_commute_are_stopped_before(other, stops) -> None:
    assert relevant_stops(COMMIT, [Footprint.of(operations(*other))]) == stops


def test_a_directory_opened_for_its_lock_is_stopped_before() -> None:
    locking = operations(("open", "/snapshot"), ("stat", "/schema/schema-0"))
    syncing = operations(("open", "/snapshot"), ("fsync", "/snapshot"))
    other = Footprint.of(locking)
    assert relevant_stops(locking, [other]) == [1]
    assert relevant_stops(syncing, [other]) == []
