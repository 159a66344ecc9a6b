"""Paths of ``variant_get``: ``$.a[0]['b c']``."""

from __future__ import annotations

import re
from functools import lru_cache

from sparkexpr.errors import InvalidFilter

_STEP = re.compile(r"""\.([^.\[]+)|\[(\d+)\]|\['([^'?]+)'\]|\["([^"?]+)"\]""")
_PLAIN = re.compile(r"[^.\[\]'\"?]+")


@lru_cache(maxsize=256)
def parse_path(path: str) -> tuple[str | int, ...]:
    """Return the keys and indexes of a path.

    Raises ``InvalidFilter``.

    >>> parse_path("$.a[0]['b c']"), parse_path("$")
    (('a', 0, 'b c'), ())
    """
    steps: list[str | int] = []
    position = 1
    while path[:1] == "$" and position < len(path) and (step_match := _STEP.match(path, position)) is not None:
        steps.append(int(step_match[2]) if step_match[2] is not None else step_match[1] or step_match[3] or step_match[4])
        position = step_match.end()
    if path[:1] != "$" or position < len(path) or any(isinstance(step, int) and step >= 1 << 31 for step in steps):
        raise InvalidFilter(f"'{path}' is not a path into a VARIANT; write it as $.key[0]['other key']")
    return tuple(steps)


def path_text(steps: tuple[str | int, ...]) -> str:
    """Return the path with these keys and indexes.

    Raises ``InvalidFilter`` for a key that no path can name.

    >>> path_text(("a", 0, "b.c"))
    "$.a[0]['b.c']"
    """
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else _key_text(step) for step in steps)


def _key_text(key: str) -> str:
    if _PLAIN.fullmatch(key):
        return f".{key}"
    quote = '"' if "'" in key else "'"
    if not key or "?" in key or quote in key:
        raise InvalidFilter(f"the key {key!r} cannot be named in a path of a VARIANT; read the column and decode it")
    return f"[{quote}{key}{quote}]"
