"""Cursors beside changes of history: each row reaches the stream, or the stream ends with an error that says how to go on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from manifest.store import FileStore
from pyspark_paimon import SnapshotNotFound, Table
from pyspark_paimon.stream.follow import StreamBatch

_SCHEMA = "id BIGINT, n INT"
_NUMBERS = itertools.count(1)
"""Numbers of rows: no two writes write the same row."""


def _create(path: str, *, keyed: bool) -> Table:
    return Table.create(path, _SCHEMA, primary_keys=["id"] if keyed else (), options={"bucket": "2", "bucket-key": "id"})


def _write(table: Table) -> None:
    table.write([{"id": next(_NUMBERS), "n": 0} for _ in range(24)])  # enough for both buckets


def _history(table: Table) -> None:
    """Four snapshots of two files each. The tag 'base' is of the second one, and branch 'b' begins there."""
    for number in range(4):
        _write(table)
        if number == 1:
            table.create_tag("base")
            table.create_branch("b", "base")
    _write(Table.open(table.path, branch="b"))


def _roll_back(table: Table) -> None:
    table.rollback_to(tag="base")


def _fast_forward(table: Table) -> None:
    table.fast_forward("b")


def _restore(table: Table) -> None:
    table.restore(tag="base")


def _create_again(table: Table) -> None:
    keyed = table.table_schema.is_primary_key_table
    store = FileStore.open(table.path)
    store.storage.retire_directory(table.path, [store.paths.schema_file(schema_id) for schema_id in store.schemas.ids()])
    _history(_create(table.path, keyed=keyed))


_CHANGES = {"write": _write, "rollback": _roll_back, "fast-forward": _fast_forward, "restore": _restore, "create again": _create_again}


def _visible(table: Table) -> dict[int, int]:
    return {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}


def _apply(rows: dict[int, int], batches: Iterable[StreamBatch]) -> dict[int, int]:
    """The state of a reader that applies the changes of batches."""
    state = dict(rows)
    for batch in batches:
        for row in batch.rows.to_pylist():
            if row["_row_kind"] in {"+I", "+U"}:
                state[row["id"]] = row["n"]
            else:
                state.pop(row["id"], None)
    return state


def _cursors(table: Table) -> Iterator[tuple[dict[str, Any], dict[int, int]]]:
    """Arguments of ``follow`` that continue, and the rows read before: a cursor after each file, in states and in changes."""
    for start in ({}, {"start": "from-snapshot", "snapshot": 1}):
        state: dict[int, int] = {}
        for batch in table.follow(max_rows=1, **start):
            state = _apply(state, [batch])
            yield {"offset": batch.offset}, state
    yield {"consumer": "c"}, _apply({}, table.follow(consumer="c"))


def _check(table: Table, names: Iterable[str], *, expires: bool = False) -> int:
    """Continue each cursor after the changes, and return how many are refused."""
    _history(table)
    cursors = list(_cursors(table))
    for name in names:
        _CHANGES[name](Table.open(table.path))
    for _ in range(3):
        _write(Table.open(table.path))
        if expires:
            Table.open(table.path).expire_snapshots(retain_min=1, retain_max=1)
    if expires:  # what holds no snapshots may have lost its place
        cursors = [cursor for cursor in cursors if "consumer" in cursor[0]]
    return sum(_continue(table, arguments, state) for arguments, state in cursors)


def _continue(table: Table, arguments: dict[str, Any], state: dict[int, int]) -> bool:
    """Continue a cursor and check the rows, or start again where it is refused. Return whether it is."""
    table = Table.open(table.path)
    is_consumer = "consumer" in arguments
    before = {} if is_consumer and not table.consumers().num_rows else state  # a new table has no consumers
    try:
        after, refused = _apply(before, table.follow(**arguments)), None
    except SnapshotNotFound as error:
        refused = str(error)
        if is_consumer:
            table.reset_consumer("c")
        after = _apply({}, table.follow(**(arguments if is_consumer else {})))
    assert after == _visible(table), arguments
    assert refused is None or "Start again" in refused
    return refused is not None


@pytest.mark.slow("rollback-fast-forward")
@pytest.mark.parametrize("first", _CHANGES)
@pytest.mark.parametrize("second", _CHANGES)
def test_no_cursor_skips_rows_of_a_replaced_history(table_root, first, second) -> None:
    refused = _check(_create(f"{table_root}/t", keyed=True), [first, second])
    assert (refused == 0) == (first == second == "write"), "a cursor goes on where nothing was replaced"


@pytest.mark.parametrize("name", _CHANGES)
def test_no_consumer_skips_rows_of_a_replaced_history_that_expires(table_root, name) -> None:
    refused = _check(_create(f"{table_root}/t", keyed=True), [name], expires=True)
    assert (refused == 0) == (name in {"write", "create again"}), "a new table has no consumers"


def test_a_caught_up_consumer_holds_no_snapshot_that_it_has_read(table_root) -> None:
    table = _create(f"{table_root}/t", keyed=True)
    _history(table)
    list(table.follow(consumer="c"))
    _write(table)
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert table.snapshots()["snapshot_id"].to_pylist()[0] == table.consumers()["next_snapshot_id"].to_pylist()[0]


@pytest.mark.parametrize("name", _CHANGES)
def test_no_cursor_of_an_append_table_skips_rows(table_root, name) -> None:
    _check(_create(f"{table_root}/t", keyed=False), [name])


@pytest.mark.parametrize("change", [_roll_back, _fast_forward, _create_again])
def test_a_follower_in_the_middle_of_its_batches_ends_when_the_history_is_replaced(table_root, change: Callable[[Table], None]) -> None:
    table = _create(f"{table_root}/t", keyed=True)
    _history(table)
    stream = table.follow(start="from-snapshot", snapshot=1, max_rows=1)
    for _ in range(7):
        next(stream)
    change(table)
    for _ in range(3):
        _write(Table.open(table.path))
    with pytest.raises(SnapshotNotFound, match="Start again"):
        next(stream)


@pytest.mark.parametrize("change", [_roll_back, _fast_forward, _create_again])
def test_a_scan_of_changes_ends_when_its_range_is_replaced(table_root, change: Callable[[Table], None]) -> None:
    table = _create(f"{table_root}/t", keyed=True)
    _history(table)
    scans = [table.changelog(3, 4, mode=mode) for mode in ("delta", "diff")] + [table.changelog("base", 4)]
    change(table)
    for _ in range(3):
        _write(Table.open(table.path))
    for scan in scans:
        with pytest.raises(SnapshotNotFound):
            scan.to_arrow()


def test_a_cursor_goes_on_where_the_replaced_snapshots_are_newer(table_root) -> None:
    table = _create(f"{table_root}/t", keyed=True)
    _write(table)
    [batch] = table.follow()
    _write(table)
    _write(table)
    table.rollback_to(2)
    _write(Table.open(table.path))
    assert _apply(_apply({}, [batch]), Table.open(table.path).follow(batch.offset)) == _visible(Table.open(table.path))
