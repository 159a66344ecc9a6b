"""Retries of Spark Connect calls, bounded in seconds, and connections that are made again at once.

Spark's own policy (4.3) counts attempts: a call waits ten minutes for a server that is gone.
gRPC waits up to two minutes before it connects to an address again, and channels of one process share that wait.
This module imports Spark, so ``session`` imports it when a session is made.
"""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql.connect.client.core import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

from pyspark_paimon.spark.wire.errors import session_lost

_LONGEST_PAUSE_MILLIS = 1000
_CHANNEL = (
    ("grpc.use_local_subchannel_pool", 1),  # a new session does not wait because an older one failed
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", _LONGEST_PAUSE_MILLIS),
)


def channel_to(url: str) -> DefaultChannelBuilder:
    """Return the builder of a channel that connects again within a second after its server is back."""
    return DefaultChannelBuilder(url, list(_CHANNEL))


class BoundedRetries(DefaultPolicy):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Policy that retries what Spark retries, for a number of seconds.

    A call that still fails raises ``SessionLost``, also if Spark's own methods make it.

    >>> BoundedRetries(5).seconds
    5
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(max_retries=None, max_backoff=_LONGEST_PAUSE_MILLIS)
        self.seconds = seconds

    def to_state(self) -> RetryPolicyState:
        """Return the state of one call."""
        return _BoundedState(self)


class _BoundedState(RetryPolicyState):  # type: ignore[misc]  # as above
    """State of one call: its first failure begins the time."""

    def __init__(self, policy: BoundedRetries) -> None:
        super().__init__(policy)
        self._seconds = policy.seconds
        self._started: float | None = None

    def next_attempt(self, *arguments: Any) -> int:
        """Return the milliseconds until the next attempt. Raises ``SessionLost``."""
        now = time.monotonic()
        if self._started is None:
            self._started = now
        left = self._seconds - (now - self._started)
        if left <= 0:
            raise session_lost(f"no answer for {self._seconds:g} s")
        return min(int(super().next_attempt(*arguments)), round(left * 1000) + 1)
