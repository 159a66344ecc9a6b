"""Options of secondary indexes of primary-key tables.

Columns are named by ``pk-<type>.index.columns``. Two types are built here. Those of vectors, texts and elements belong to other engines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from fileindex.sorted_index.build_options import SortedIndexKind

REFUSED_PREFIXES: Final = ("pk-vector", "pk-full-text", "pk-multivalue")
"""Prefixes of keys of index types that are not built."""
COLUMN_OPTIONS: Final = re.compile(r"fields\.(?P<column>.+)\.pk-(?P<kind>[a-z-]+)\.index\.options")
"""Keys of the build options of one column."""

_LISTS = ("vector-field",)
_PREFIXES = (*(f"pk-{kind}" for kind in SortedIndexKind), *REFUSED_PREFIXES)


def is_index_option(key: str) -> bool:
    """Return whether an option defines an index or its payloads.

    >>> is_index_option("pk-btree.index.columns"), is_index_option("bitmap-index.compression"), is_index_option("bucket")
    (True, True, False)
    """
    return key.startswith((*_PREFIXES, *(kind.prefix for kind in SortedIndexKind))) or COLUMN_OPTIONS.fullmatch(key) is not None


def secondary_index_option(options: Mapping[str, str], column: str) -> str | None:
    """Return the first option of an index that names ``column``.

    >>> secondary_index_option({"bucket": "1", "pk-btree.index.columns": "id, n"}, "n")
    'pk-btree.index.columns'
    >>> secondary_index_option({"pk-vector.v.metric": "l2"}, "v")
    'pk-vector.v.metric'
    """
    for key, text in options.items():
        if not key.startswith((*_PREFIXES, *_LISTS)):
            continue
        names = [name.strip() for name in text.split(",")] if key in _LISTS or key.endswith("columns") else key.split(".")[1:]
        if column in names:
            return key
    return None
