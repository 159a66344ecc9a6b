"""The error of index readers for malformed bytes.

The evaluation answers REMAIN (keep the file) when it is raised.
"""

from __future__ import annotations

from fileindex.base.errors import PaimonError


class CorruptIndex(PaimonError, ValueError):
    """An index container or payload violates its format."""


__all__ = ["CorruptIndex"]
