"""Options of secondary indexes that other engines build."""

from __future__ import annotations

from collections.abc import Mapping

from manifest.options.known_keys import REFUSED_PREFIXES

_PREFIXES = ("pk-btree", *REFUSED_PREFIXES)
_LISTS = ("vector-field",)


def foreign_index_option(options: Mapping[str, str], column: str) -> str | None:
    """Return the first option of such an index that names ``column``.

    >>> foreign_index_option({"bucket": "1", "pk-btree.index.columns": "id, n"}, "n")
    'pk-btree.index.columns'
    >>> foreign_index_option({"pk-vector.v.metric": "l2"}, "v")
    'pk-vector.v.metric'
    """
    for key, text in options.items():
        if not key.startswith((*_PREFIXES, *_LISTS)):
            continue
        names = [name.strip() for name in text.split(",")] if key in _LISTS or key.endswith("columns") else key.split(".")[1:]
        if column in names:
            return key
    return None
