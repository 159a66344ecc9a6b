"""Filters and keys that are bound to a table, as requests carry them: objects in a process, text on the wire."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import pyarrow as pa
from pydantic import PlainSerializer, PlainValidator

from fileindex.predicate.tree import Predicate
from lsm.keys.key_set import KeySet

_TREES = 8
"""Filters from the wire that are held parsed: every split of a scan brings its own."""


@lru_cache(maxsize=_TREES)
def _parsed(text: str) -> Predicate:
    from fileindex.predicate.json import from_json  # noqa: PLC0415  # see test_imports

    return from_json(text)


def _as_text(tree: Predicate) -> str:
    from fileindex.predicate.json import to_json  # noqa: PLC0415  # as above

    return to_json(tree)


def _as_tree(given: Any) -> Predicate:
    found: Predicate = _parsed(given) if isinstance(given, str) else given
    if not isinstance(found, Predicate):
        raise ValueError(f"a filter is a predicate or its JSON text, not {type(given).__name__}")  # noqa: TRY004  # pydantic's word
    return found


BoundFilter: TypeAlias = Annotated[Predicate, PlainValidator(_as_tree), PlainSerializer(_as_text, return_type=str)]
"""A predicate, bound to the table's types: a tree in a process, JSON text on the wire."""


def _as_keys(given: Any) -> KeySet:
    if isinstance(given, KeySet):
        return given
    if not isinstance(given, str):
        raise ValueError(f"keys are a set or its text, not {type(given).__name__}")  # noqa: TRY004  # pydantic's word
    with pa.ipc.open_stream(base64.b64decode(given, validate=True)) as stream:
        return KeySet(stream.read_all())


def _keys_text(keys: KeySet) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, keys.rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(keys.rows)
    return base64.b64encode(sink.getvalue()).decode()


BoundKeys: TypeAlias = Annotated[KeySet, PlainValidator(_as_keys), PlainSerializer(_keys_text, return_type=str)]
"""Keys in the types of a table's key columns: a set in a process, an Arrow stream in base64 on the wire."""


__all__ = ["BoundFilter", "BoundKeys"]
