"""Loggers of all packages, in one tree below ``pyspark_paimon``.

Each module that logs has its own logger, whichever package it is in. WARNING reports a loss and its consequence, INFO what was done
(committed, compacted, expired, retried), DEBUG the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from paimon_base.redaction import redact

TREE = "pyspark_paimon"
"""Root logger: applications set levels and handlers here."""

logging.getLogger(TREE).addHandler(logging.NullHandler())  # no output unless the application adds a handler


_silent: ContextVar[bool] = ContextVar("silent", default=False)


def _without_secrets(record: logging.LogRecord) -> bool:
    if _silent.get():
        return False
    record.msg, record.args = redact(record.getMessage()), None
    return True


@contextmanager
def silence_logs() -> Iterator[None]:
    """Discard the log records of this thread inside the block.

    For work whose result is discarded, such as a dry run.
    """
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def logger_of(module: str) -> logging.Logger:
    """Return the logger of a module, by its ``__name__``.

    Its records are redacted.

    >>> logger_of("manifest.commit").name, logger_of("pyspark_paimon.jobs").name
    ('pyspark_paimon.manifest.commit', 'pyspark_paimon.jobs')
    """
    log = logging.getLogger(module if module.partition(".")[0] == TREE else f"{TREE}.{module}")
    log.addFilter(_without_secrets)
    return log
