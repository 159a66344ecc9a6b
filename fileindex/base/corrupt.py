"""What an index reader raises for bytes that do not hold together; the evaluation then answers REMAIN."""

from __future__ import annotations

from fileindex.base.errors import PaimonError


class CorruptIndex(PaimonError, ValueError):
    """Bytes of an index container or payload are not what their format says."""


__all__ = ["CorruptIndex"]
