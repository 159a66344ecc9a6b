"""The error inside the index readers; the evaluation turns it into 'no information'."""

from __future__ import annotations

from fileindex.base.errors import PaimonError


class CorruptIndex(PaimonError, ValueError):
    """Bytes of an index container or payload are not what their format says."""


__all__ = ["CorruptIndex"]
