"""The range of a stored offset: all index formats have signed 32-bit offsets."""

from __future__ import annotations

MAX_INT = 2**31 - 1


def check_size(what: str, size: int) -> None:
    """Raise ``OverflowError`` if an offset cannot say ``size`` bytes."""
    if size > MAX_INT:
        raise OverflowError(f"{what} of {size} bytes exceeds 2 GiB")
