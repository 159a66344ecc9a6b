"""Typed errors of file encoders, with file and column."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any

from manifest.io.errors import EncodeFailed, OutOfMemory
from manifest.io.storage_errors import is_out_of_memory
from paimon_base.errors import PaimonError


class encode_errors(AbstractContextManager[None]):  # noqa: N801  # used like a function
    """Convert encoder errors to ``EncodeFailed`` or ``OutOfMemory``.

    Args:
        path: Written file.
        column: Converted column. None: call ``culprit``.
        culprit: Returns the column that cannot be encoded, or None. Called after a failure only.

    >>> with encode_errors("/warehouse/t/bucket-0/data-1.orc", "price"):
    ...     raise TypeError("no such type")
    Traceback (most recent call last):
    ...
    pyspark_paimon.EncodeFailed: /warehouse/t/bucket-0/data-1.orc: column 'price' cannot be encoded (no such type); ...
    """

    def __init__(self, path: str, column: str | None = None, culprit: Callable[[], str | None] | None = None) -> None:
        self._path, self._column, self._culprit = path, column, culprit

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Raise the typed error.

        Typed errors, storage errors and interrupts are not converted.
        """
        if not isinstance(error, Exception) or isinstance(error, PaimonError | OSError):
            return
        if is_out_of_memory(error):
            raise OutOfMemory(self._path, str(error)) from error
        column = self._column
        if column is None and self._culprit is not None:
            with suppress(Exception):  # the first error is the one to report
                column = self._culprit()
        raise EncodeFailed(self._path, column, str(error) or type(error).__name__) from error


def failing_column(rows: Any, encode: Callable[[Any], object]) -> str | None:
    """Return the first column that ``encode`` cannot encode alone.

    None: every column can be encoded.
    """
    for name in rows.schema.names:
        try:
            encode(rows.select([name]))
        except Exception:  # noqa: BLE001 -- any error identifies the column
            return str(name)
    return None
