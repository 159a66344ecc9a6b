"""Texts of counts, sizes and results."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size: int) -> str:
    """Format a number of bytes.

    >>> size_text(512), size_text(1536), size_text(3 << 30)
    ('512 B', '1.5 KiB', '3.0 GiB')
    """
    amount = float(size)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"


def count_text(count: int, noun: str, plural: str | None = None) -> str:
    """Format a count with its noun.

    >>> count_text(1, "row"), count_text(2500, "row"), count_text(0, "index", "indexes")
    ('1 row', '2,500 rows', '0 indexes')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def list_text(*parts: str | None) -> str:
    """Join the parts that are neither None nor empty.

    >>> list_text("1 row", None, "", "snapshot 2")
    '1 row, snapshot 2'
    """
    return ", ".join(part for part in parts if part)
