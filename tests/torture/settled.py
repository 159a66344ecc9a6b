"""A world without chance: names, times and random bytes come from a seed, so that a table is made again byte by byte."""

from __future__ import annotations

import datetime as dt
import os
import random
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import manifest.snapshot.snapshot

_NOW = 1_760_000_000
"""Seconds since 1970 at which everything is made."""


class _Still(dt.datetime):
    """A clock that stands."""

    @classmethod
    def now(cls, tz: Any = None) -> _Still:
        return cls.fromtimestamp(_NOW, tz)


@contextmanager
def settled(seed: int | str) -> Iterator[None]:
    """Inside, in this process, whatever is made is the same for the same ``seed``."""
    dice = random.Random(seed)
    with ExitStack() as stack:
        for owner, name, value in (
            (uuid, "uuid4", lambda: uuid.UUID(int=dice.getrandbits(128), version=4)),
            (os, "urandom", dice.randbytes),
            (time, "time", lambda: float(_NOW)),
            (time, "time_ns", lambda: _NOW * 10**9),
            (manifest.snapshot.snapshot, "datetime", _Still),
        ):
            stack.enter_context(patch.object(owner, name, value))
        yield


__all__ = ["settled"]
