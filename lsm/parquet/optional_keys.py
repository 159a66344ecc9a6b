"""Maps whose keys are marked as optional, as Paimon up to 0.8 writes them. Arrow refuses such maps, so they are read as lists of entries."""

from __future__ import annotations

from typing import Any

from lsm.parquet.fields import ConvertedType, FieldRepetitionType, FileMetaData, LogicalType, SchemaElement, value, value_or
from lsm.parquet.thrift import I32, STRUCT, Struct

_TO_KEY = 2
"""Elements from a map to its key: the repeated group lies between."""


def maps_as_lists(footer: Struct) -> Struct | None:
    """Return a footer whose maps with optional keys are lists of (key, value). None if it has no such map."""
    kind, elements = footer[FileMetaData.SCHEMA][1]
    changed = [_as_list(element) if _has_optional_key(elements, at) else element for at, element in enumerate(elements)]
    if all(new is old for new, old in zip(changed, elements, strict=True)):
        return None
    return {**footer, FileMetaData.SCHEMA: (footer[FileMetaData.SCHEMA][0], (kind, changed))}


def _has_optional_key(elements: Any, at: int) -> bool:
    element: Struct = elements[at]
    is_map = (
        LogicalType.MAP in value_or(element, SchemaElement.LOGICAL_TYPE, {})
        or value_or(element, SchemaElement.CONVERTED_TYPE, None) == ConvertedType.MAP
    )
    if not is_map or at + _TO_KEY >= len(elements) or value_or(elements[at + 1], SchemaElement.NUM_CHILDREN, 0) != 2:
        return False
    return bool(value(elements[at + _TO_KEY], SchemaElement.REPETITION_TYPE) == FieldRepetitionType.OPTIONAL)


def _as_list(element: Struct) -> Struct:
    annotation: Struct = {SchemaElement.CONVERTED_TYPE: (I32, ConvertedType.LIST)}
    if SchemaElement.LOGICAL_TYPE in element:
        annotation[SchemaElement.LOGICAL_TYPE] = (STRUCT, {LogicalType.LIST: (STRUCT, {})})
    return dict(sorted({**element, **annotation}.items()))


__all__ = ["maps_as_lists"]
