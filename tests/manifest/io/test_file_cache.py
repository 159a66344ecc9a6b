"""What is held of files that never change: within its bound, for the very file that it was made of, and never in place of an error."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manifest.io.file_io
from manifest.io.file_cache import FileCache, FileParts
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO

IO = LocalFileIO()
UNIQUE = "0b5e2e3c-6f0e-4d6c-8a53-0d9c1f3a2b11"


class User:
    """Owner of cached values. They end with its last reference."""


def count_steps(call):
    """Return the number of byte codes that a call executes, in Python functions of any depth."""
    steps = 0

    def trace(frame, event, _argument):
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return steps


@pytest.fixture
def settled(monkeypatch):
    """Files count as settled at once; ``tick`` lets the clock of the file system go on."""
    monkeypatch.setattr(manifest.io.file_io, "_CLOCK_TICK_NANOS", 0)
    return lambda: time.sleep(0.03)


def load(cache, path, kind="text", io=IO):
    made = []

    def make():
        made.append(path)
        return io.read(str(path))

    return cache.load(io, str(path), kind, make, len), bool(made)


def test_a_file_is_made_something_of_once(tmp_path, settled):
    (tmp_path / "a").write_bytes(b"first")
    cache = FileCache(100)
    assert load(cache, tmp_path / "a") == (b"first", True)
    assert load(cache, tmp_path / "a") == (b"first", False)
    assert load(cache, tmp_path / "a", "other kind") == (b"first", True)


def replace(path):
    (path.parent / "new").write_bytes(b"other")
    (path.parent / "new").replace(path)


def make_anew(path):
    path.unlink()
    path.write_bytes(b"other")


@pytest.mark.parametrize("change", [replace, make_anew, lambda path: path.write_bytes(b"other"), lambda path: path.write_bytes(b"longer")])
def test_another_file_of_the_same_name_or_the_same_one_changed_in_place_is_made_anew(tmp_path, settled, change):
    path = tmp_path / "a"
    path.write_bytes(b"first")
    cache = FileCache(100)
    load(cache, path)
    settled()
    change(path)
    assert load(cache, path) == (path.read_bytes(), True)


def test_parts_of_a_file_are_made_once_and_anew_of_another_file(tmp_path, settled):
    path = tmp_path / "a"
    path.write_bytes(b"first")
    cache = FileCache(100)

    def parts():
        held = FileParts(cache, IO, str(path))
        return [held.load(at, lambda at=at: IO.read(str(path))[at:], len) for at in (0, 2)]

    assert parts() == [b"first", b"rst"]
    cache.put((0, str(path)), (cache.get((0, str(path)))[0], b"held"), 4)
    assert parts() == [b"held", b"rst"]
    settled()
    replace(path)
    assert parts() == [b"other", b"her"]
    path.unlink()
    with pytest.raises(FileNotFoundError):
        parts()


def test_a_file_that_is_gone_is_an_error_although_it_is_held(tmp_path, settled):
    (tmp_path / "a").write_bytes(b"first")
    cache = FileCache(100)
    load(cache, tmp_path / "a")
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError):
        load(cache, tmp_path / "a")


def test_a_file_that_changed_just_now_is_not_held_for_it_can_change_within_the_tick(tmp_path):
    (tmp_path / "a").write_bytes(b"first")
    assert IO.identity(str(tmp_path / "a")) is None
    assert [load(cache := FileCache(100), tmp_path / "a") for _ in range(2)] == [(b"first", True)] * 2
    assert cache.held_bytes == 0


@pytest.mark.parametrize("name", [f"data-{UNIQUE}-0.parquet", f"manifest-{UNIQUE}-12", f"index-c1-{UNIQUE}-0", f"data-{UNIQUE}-3.zstd.orc"])
def test_young_files_of_unique_names_are_held_and_read_again_once_damaged(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"first")
    cache = FileCache(100)
    assert [load(cache, path) for _ in range(2)] == [(b"first", True), (b"first", False)]
    time.sleep(0.03)
    path.write_bytes(b"other")
    assert load(cache, path) == (b"other", True)


@pytest.mark.parametrize(
    "name",
    [
        f"tag-{UNIQUE}-0",
        f"consumer-{UNIQUE}",
        f"consumer-{UNIQUE}-1",
        f"data-{UNIQUE}-0.parquet.index",
        f"{UNIQUE}-0/schema-0",
        "snapshot-1",
    ],
)
def test_young_files_of_names_that_may_come_again_are_not_held(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"first")
    assert IO.identity(str(path)) is None


def test_a_wrapped_store_sees_every_read(tmp_path, settled):
    (tmp_path / "a").write_bytes(b"first")
    cache = FileCache(100)
    assert [load(cache, tmp_path / "a", io=WrappedFileIO(IO))[1] for _ in range(2)] == [True, True]


def test_what_fails_is_tried_again(tmp_path, settled):
    (tmp_path / "a").write_bytes(b"first")
    cache = FileCache(100)

    def fail():
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            cache.load(IO, str(tmp_path / "a"), "text", fail, len)
    assert load(cache, tmp_path / "a") == (b"first", True)


def test_a_cache_of_no_bytes_holds_nothing(tmp_path, settled):
    (tmp_path / "a").write_bytes(b"")
    cache = FileCache(0)
    cache.put("empty", "value", 0)
    assert cache.get("empty") is None
    assert [load(cache, tmp_path / "a")[1] for _ in range(2)] == [True, True]


def test_a_value_may_take_all_of_the_capacity_a_lesser_one_a_quarter(tmp_path, settled):
    (tmp_path / "a").write_bytes(b"12345678")
    cache = FileCache(8)
    assert [load(cache, tmp_path / "a")[1] for _ in range(2)] == [True, False]
    cache.put("all", "value", 8)
    assert cache.get("all") == "value"
    for weight, held in ((2, "part"), (3, None)):
        cache.put("part", "part", weight, lesser=True)
        assert cache.get("part") == held


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.one_of(st.none(), st.integers(0, 14)), st.booleans())))
def test_the_bound_is_kept_and_what_was_not_used_for_longest_goes_first(steps):
    cache, model = FileCache(20), OrderedDict()
    for at, (key, weight, lesser) in enumerate(steps):
        if weight is None:
            assert cache.get(key) == (model[key][0] if key in model else None)
            if key in model:
                model.move_to_end(key)
            continue
        cache.put(key, at, weight, lesser=lesser)
        model.pop(key, None)
        if lesser and weight > 5:
            continue
        model[key] = at, weight, lesser
        while sum(held[1] for held in model.values() if held[2]) > 5:
            del model[next(held for held in model if model[held][2])]
        while sum(held[1] for held in model.values()) > 20:
            model.popitem(last=False)
    assert cache.held_bytes == sum(held[1] for held in model.values()) <= 20
    assert {key: cache.get(key) for key in range(7)} == {key: model[key][0] if key in model else None for key in range(7)}
    cache.clear()
    assert cache.held_bytes == 0


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(st.tuples(st.just("put"), st.integers(0, 4), st.integers(0, 9)), st.tuples(st.just("end"), st.integers(0, 4))),
        max_size=40,
    )
)
def test_values_end_with_their_owner_and_no_others(steps):
    cache, users = FileCache(1000), [User() for _ in range(5)]
    owners, model = [cache.owner(user) for user in users], {("shared", 0)}
    cache.put(("shared", 0), "value", 1)
    for step in steps:
        if step[0] == "put" and users[step[1]] is not None:
            cache.put((owners[step[1]], step[2]), "value", 1)
            model.add((owners[step[1]], step[2]))
        elif step[0] == "end":
            users[step[1]] = None
            cache.put("any", "value", 0)
            model = {key for key in model if key[0] is not owners[step[1]]}
    assert {key for owner in (*owners, "shared") for key in ((owner, number) for number in range(10)) if cache.get(key)} == model
    assert cache.held_bytes == len(model)


@pytest.mark.parametrize("ended", [0, 1, 20])
def test_dropping_the_values_of_ended_owners_costs_as_many_steps_as_they_have_values(ended):
    def steps_of_a_put(values_held):
        cache, users = FileCache(1 << 20), [User() for _ in range(values_held)]
        for number, user in enumerate(users):
            cache.put((cache.owner(user), number), "value", 1)
        del user, users[:ended]
        steps = count_steps(lambda: cache.put("next", "value", 1))
        assert cache.held_bytes == values_held - ended + 1
        return steps

    assert steps_of_a_put(1000) == steps_of_a_put(100)


def test_a_column_evicts_only_what_was_used_before_its_own_last_use():
    cache = FileCache(100)
    start = cache.now()
    assert cache.admit("a", 1, 30, start)
    assert cache.admit("b", 2, 20, start)
    assert not cache.has_room(10, start), "half of the capacity is full, and nothing was used before"
    assert not cache.admit("c", 3, 10, start)
    between = cache.now()
    cache.get("a")
    assert not cache.admit("c", 3, 30, between)
    assert cache.admit("c", 3, 10, between), "b was not used since"
    assert (cache.get("a"), cache.get("b"), cache.get("c"), cache.column_bytes, cache.held_bytes) == (1, None, 3, 40, 40)
    assert not cache.admit("d", 4, 51, cache.now() + 1), "more than all columns may have"


def test_a_column_takes_the_room_of_other_values_that_are_older():
    cache = FileCache(100)
    cache.put("old", 1, 70)
    between = cache.now()
    cache.put("new", 2, 20)
    assert not cache.has_room(50, between - 1)
    assert cache.admit("column", 3, 50, between)
    assert (cache.get("old"), cache.get("new"), cache.get("column"), cache.held_bytes) == (None, 2, 3, 70)
    cache.put("big", 4, 90)
    assert (cache.column_bytes, cache.held_bytes, cache.get("column")) == (0, 90, None)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(["put", "lesser", "admit", "get", "clear"]), st.integers(0, 60)), max_size=40
    )
)
def test_columns_and_all_values_stay_within_their_bytes(steps):
    cache = FileCache(100)
    last: dict[str, int] = {}
    for name, step, weight in steps:
        if step == "admit":
            cache.admit(name, name, weight, last.get(name, 0))
        elif step == "get":
            assert cache.get(name) in {None, name}
        elif step == "clear":
            cache.clear()
        else:
            cache.put(name, name, weight, lesser=step == "lesser")
        last[name] = cache.now()
        uses = dict(cache.uses())
        assert cache.held_bytes == sum(uses.values()) <= 100
        assert cache.column_bytes == sum(uses[key] for key in cache._columns) <= 50
        assert cache.lesser_bytes == sum(uses[key] for key in cache._lesser) <= 25
