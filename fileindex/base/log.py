"""The one tree of loggers: ``pyspark_paimon``, and below it a logger for each module that logs, whichever room it is in.

WARNING tells what was lost and what comes of it, INFO what was done (committed, compacted, expired, retried), DEBUG why.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from fileindex.base.redaction import redacted

TREE = "pyspark_paimon"
"""The name under which an application sets levels and handlers for all of it."""

logging.getLogger(TREE).addHandler(logging.NullHandler())  # where nobody listens nothing is said, as libraries do


_silent: ContextVar[bool] = ContextVar("silent", default=False)


def _without_secrets(record: logging.LogRecord) -> bool:
    if _silent.get():
        return False
    record.msg, record.args = redacted(record.getMessage()), None
    return True


@contextmanager
def unlogged() -> Iterator[None]:
    """Say nothing of what this thread does in the block, because nothing comes of it."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def logger_of(module: str) -> logging.Logger:
    """The logger of a module, by its ``__name__``; what it says is without secrets.

    >>> logger_of("manifest.commit").name, logger_of("pyspark_paimon.jobs").name
    ('pyspark_paimon.manifest.commit', 'pyspark_paimon.jobs')
    """
    log = logging.getLogger(module if module.partition(".")[0] == TREE else f"{TREE}.{module}")
    log.addFilter(_without_secrets)
    return log


__all__ = ["TREE", "logger_of", "unlogged"]
