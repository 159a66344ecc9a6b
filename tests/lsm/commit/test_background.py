"""Background compaction: a bucket whose round ran since the last commit waits for the next commit to say that it is due."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any

import pytest

from lsm.commit import background
from manifest.commit.conflicts import BucketId

FIRST, SECOND = (b"", 0), (b"", 1)


class Rounds:
    """Rounds that wait until they are released."""

    def __init__(self) -> None:
        self.buckets: list[set[BucketId]] = []
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, _store: Any, _user: str, buckets: Collection[BucketId], *, threads: int) -> None:
        assert threads == 1
        self.buckets.append(set(buckets))
        self.begun.release()
        self.go.acquire()


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    recorded = Rounds()
    monkeypatch.setattr(background, "compact_buckets", recorded)
    return recorded


def test_a_bucket_is_not_compacted_again_for_what_a_commit_saw_before_its_round(rounds: Rounds) -> None:
    compaction = background.BackgroundCompaction("user")
    store: Any = object()
    compaction.begin(store, [FIRST])
    rounds.begun.acquire()
    compaction.begin(store, [FIRST, SECOND])  # during the round
    rounds.go.release(2)
    compaction.wait()
    compaction.begin(store, [FIRST])  # written during the round, committed after it
    compaction.wait()
    assert rounds.buckets == [{FIRST}, {SECOND}]
    rounds.go.release()
    compaction.begin(store, [FIRST])
    compaction.wait()
    assert rounds.buckets == [{FIRST}, {SECOND}, {FIRST}]
    compaction.close()


def test_the_end_compacts_what_no_next_commit_will_name(rounds: Rounds) -> None:
    compaction = background.BackgroundCompaction("user")
    store: Any = object()
    compaction.begin(store, [FIRST])
    rounds.begun.acquire()
    compaction.begin(store, [FIRST])
    rounds.go.release(2)
    compaction.close()
    assert rounds.buckets == [{FIRST}, {FIRST}]
