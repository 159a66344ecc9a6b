"""Rows of JSON texts whose objects have different keys."""

from __future__ import annotations

import json
import re

import pyarrow as pa

from lsm.rows_in.arrow import COLUMN_SET, ArrowRows

_SPACES = re.compile(r"\s*")


def with_column_sets(rows: pa.Table, content: bytes) -> ArrowRows:
    r"""Return parsed rows with the columns that each object has.

    Arrow's parser gives null to keys that an object lacks. ``content``: the JSON text of the rows. Keys ignore case.

    >>> text = b'{"id": 1, "n": null}\n{"id": 2}'
    >>> rows = with_column_sets(pa.table({"id": [1, 2], "n": [None, None]}), text)
    >>> [sorted(names) for names in rows.column_sets], rows.reader.read_all()["_column_set"].to_pylist()
    ([['id', 'n'], ['id']], [0, 1])
    """
    decoder, text, position = json.JSONDecoder(), content.decode(), 0
    number_by_keys: dict[frozenset[str], int] = {}
    numbers: list[int] = []
    while (start := _SPACES.match(text, position).end()) < len(text):  # type: ignore[union-attr]  # matches any text
        item, position = decoder.raw_decode(text, start)
        numbers.append(number_by_keys.setdefault(frozenset(item), len(number_by_keys)))
    lowered = [{key.lower() for key in keys} for keys in number_by_keys]
    sets = tuple(frozenset(name for name in rows.column_names if name.lower() in keys) for keys in lowered)
    numbered = rows.append_column(COLUMN_SET, pa.array(numbers, pa.int32())) if len(sets) > 1 else rows
    return ArrowRows(numbered.to_reader(), sets)
