"""Random changes of a source, whose messages come twice, shuffled and after kills, leave the source's rows in the table."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Table, from_debezium
from pyspark_paimon.plugins.feeds.batches import Message
from tests.plugins.feeds.debezium_source import Source

OPTIONS = {
    "bucket": "2",
    "sequence.field": "_position",
    "delete.time-retained": "1 d",
    "write.merge-schema.type-widening": "true",
    "num-sorted-run.compaction-trigger": "3",
}


class Killed(Exception):
    """The process ends here."""


def next_offset(table: Table) -> int:
    """The offset that the newest batch of the feed noted."""
    noted = [dict(properties).get("feed.offset", "0") for properties in table.history()["properties"].to_pylist()]
    return max(map(int, noted), default=0)


def consume(path: str, messages: Sequence[Message], start: int, rng: random.Random, kill: float) -> None:
    """Write all batches from ``start``, or be killed before or after one."""
    table = Table.open(path)
    for batch in from_debezium(messages[start:], table.primary_keys, offset=start):
        if rng.random() < kill:
            raise Killed
        table.write(
            batch.rows, commit_id="shop-t", batch_id=batch.offset, properties=batch.properties, schema_mode="merge", missing=batch.missing
        )
        if rng.random() < kill:
            raise Killed


def run_feed(folder: Path, seed: int, changes: int, *, typed: bool) -> None:
    """Compare source and table after a run with kills, duplicates and shuffled messages."""
    rng = random.Random(seed)
    source = Source(rng, typed=typed)
    for _ in range(changes):
        source.change()
    messages: list[Any] = [message and (message.encode() if rng.random() < 0.5 else message) for message in source.messages]
    messages += rng.sample(messages, rng.randrange(len(messages) + 1))
    if rng.random() < 0.7:
        rng.shuffle(messages)
    table = Table.create(folder / str(seed), "id BIGINT, name STRING, _position BIGINT", primary_keys=["id"], options=OPTIONS)
    kill = 0.15
    while True:
        with use_thresholds(message_rows=rng.randrange(2, 30)):
            start = next_offset(Table.open(table.path)) if rng.random() < 0.8 else 0  # a topic may be read again
            try:
                consume(table.path, messages, start, rng, kill)
            except Killed:
                kill *= 0.9
            else:
                break
    columns = [name for name in source.kinds if name in Table.open(table.path).schema.names]
    rows = Table.open(table.path).scan(columns=columns).to_arrow().to_pylist()
    expected = [{name: row[name] for name in columns} for row in source.rows.values()]
    assert sorted(rows, key=lambda row: row["id"]) == sorted(expected, key=lambda row: row["id"])
    unsent = set(source.kinds) - set(columns)
    assert all(row[name] is None for row in source.rows.values() for name in unsent)


@pytest.mark.parametrize("typed", [True, False])
def test_a_table_equals_its_source(tmp_path_factory: pytest.TempPathFactory, *, typed: bool) -> None:
    @settings(max_examples=3)
    @given(st.integers(0, 2**32), st.integers(1, 12))
    def check(seed: int, changes: int) -> None:
        run_feed(tmp_path_factory.mktemp("feed"), seed, changes, typed=typed)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_a_table_equals_its_source_after_many_changes(tmp_path: Path, seed: int, *, typed: bool) -> None:
    run_feed(tmp_path, seed, 60, typed=typed)
