"""Messages with any part replaced give rows or a typed error."""

from __future__ import annotations

import copy
import json
import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_paimon import PaimonError, from_canal, from_debezium, from_maxwell
from tests.plugins.feeds.debezium_source import Source

PARTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3) | st.sampled_from(["c", "d", "u", "bytes", "struct"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "type", "fields", "field", "after", "x"]), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip


def valid(seed: int) -> list[Any]:
    source = Source(random.Random(seed), typed=True)
    for _ in range(12):
        source.change()
    return [json.loads(message) for message in source.messages if message is not None]


ROW = {"id": 1, "n": "x"}
FEEDS = {
    "debezium": (from_debezium, valid(3)),
    "maxwell": (from_maxwell, [{"database": "d", "table": "t", "type": "update", "data": ROW, "old": {"n": "y"}, "position": "b.1:4"}]),
    "canal": (from_canal, [{"database": "d", "table": "t", "type": "UPDATE", "data": [ROW, ROW], "old": [{"n": "y"}, {}], "es": 1}]),
}


def places(part: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all parts of a message."""
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [path, *(place for name, inner in items for place in places(inner, (*path, name)))]


def replaced(message: Any, path: tuple[Any, ...], part: Any) -> Any:
    if not path:
        return part
    message = copy.deepcopy(message)
    parent = message
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = part
    return message


@pytest.mark.parametrize("name", FEEDS)
def test_a_damaged_message_is_read_or_refused_by_name(name: str) -> None:
    feed, messages = FEEDS[name]

    @given(st.data())
    def check(data: st.DataObject) -> None:
        message = data.draw(st.sampled_from(messages))
        damaged = replaced(message, data.draw(st.sampled_from(places(message))), data.draw(PARTS))
        with suppress(PaimonError):
            for batch in feed([message, damaged], ["id"]):
                batch.rows.validate(full=True)

    check()
