"""``Table.diff``: two states compared, whatever lies between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_paimon import InvalidArgument, SnapshotNotFound, Table, UnsupportedTable
from tests.build import keyed

_STEPS = st.lists(
    st.dictionaries(st.integers(0, 4), st.none() | st.integers(0, 2), min_size=1, max_size=4) | st.sampled_from(["compact", "overwrite"]),
    min_size=2,
    max_size=5,
)
"""New value by key (None: a delete), or another change."""


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
@settings(deadline=None, max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_two_states_differ_in_the_same_rows_whoever_writes_the_changelog(steps, producer, tmp_path_factory) -> None:
    table = keyed(tmp_path_factory.mktemp("diff") / "t", "id BIGINT, n INT", {"changelog-producer": producer})
    table.write([{"id": 7, "n": 7}])
    states: dict[int, dict[int, int]] = {0: {}, 1: {7: 7}}
    state = {7: 7}
    for step in steps:
        if step == "compact":
            table.compact(full=True)
        elif step == "overwrite":
            table.write([{"id": 9, "n": 9}], mode="overwrite")
            state = {9: 9}
        else:
            table.write([{"id": key, "n": n, "_row_kind": "-D" if n is None else "+U"} for key, n in step.items()])
            state = {key: n for key, n in (state | step).items() if n is not None}
        states[table.snapshots()["snapshot_id"].to_pylist()[-1]] = state
    for first, last in [*pairwise(states), (0, max(states)), (min(set(states) - {0}), max(states))]:
        before, after = states[first], states[last]
        expected = [(key, before[key], "-U" if key in after else "-D") for key in before if before[key] != after.get(key)]
        expected += [(key, after[key], "+U" if key in before else "+I") for key in after if before.get(key) != after[key]]
        answers = table.diff(first, last).to_arrow().to_pylist()
        assert sorted((row["id"], row["n"], row["_row_kind"]) for row in answers) == sorted(expected)


def test_states_are_snapshots_tags_and_times(create) -> None:
    table = create("id BIGINT, n INT", options={"changelog-producer": "input"})
    table.write([{"id": 1, "n": 1}])
    table.create_tag("first")
    table.write([{"id": 1, "n": 2}])
    second = table.snapshots()["commit_time"].to_pylist()[-1]
    table.write([{"id": 1, "n": 3}])
    table.write([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    assert table.diff("first", columns=["id"]).to_arrow().to_pylist() == [{"id": 2, "_row_kind": "+I"}]
    assert table.changelog(1).count() == 4, "a changelog has every write"
    now = datetime.now(UTC) + timedelta(seconds=1)
    for after in (2, second):
        assert [row["n"] for row in table.diff(1, after).to_arrow().to_pylist()] == [1, 2]
    assert table.diff("first", now, "id = 1").count() == 0
    assert table.diff(3, now, columns=["n"]).to_arrow()["n"].to_pylist() == [3, 1, 2]
    with pytest.raises(SnapshotNotFound):
        table.diff(datetime(2001, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidArgument, match=r"names of tags, dates or datetimes, not by 1\.5"):
        table.diff(1.5)
    with pytest.raises(InvalidArgument, match="forward in time"):
        table.diff(3, 1)


def test_a_table_without_key_has_no_rows_to_compare(tmp_path) -> None:
    log = Table.create(tmp_path / "log", "id BIGINT")
    log.write([{"id": 1}])
    with pytest.raises(UnsupportedTable, match="has no primary key"):
        log.diff(0).count()
