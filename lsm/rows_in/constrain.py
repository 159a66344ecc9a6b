"""Rules of the schema for values: NOT NULL, lengths, defaults, sequence groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import starmap
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lsm.schema.nested_parts import nested_parts
from manifest.io.errors import NullInKey, SchemaMismatch
from manifest.schema.merge_options import SequenceGroup
from manifest.types.data_type import MAX_LENGTH, DataField, DataType, default_scalar
from paimon_base.log import logger_of
from paimon_base.texts import count_text
from sparkexpr.values.column_type import BINARIES, STRINGS, Kind

_LOG = logger_of(__name__)


def constrain(column: Any, field: DataField) -> Any:
    """Return a column of the field's type with its default in place of null.

    Raises:
        NullInKey: A NOT NULL column, or a NOT NULL part of a nested one, has a null.
        SchemaMismatch: A text or binary value is too long.

    >>> from manifest.types.ddl import parse_ddl
    >>> constrain(pa.array(["Oslo"]), parse_ddl("t VARCHAR(3)")[0])
    Traceback (most recent call last):
    pyspark_paimon.SchemaMismatch: column 't': a value of length 4 does not fit VARCHAR(3); ...
    """
    refuse_nulls(column, field)
    if (overlong := _overlong(column, field.type)) is not None:
        longest, short = overlong
        hint = _shorter_hint(field) if short is field.type else f", a part of {field.type}; cut the value in the rows"
        raise SchemaMismatch(f"column '{field.name}': a value of length {longest} does not fit {short}{hint}")
    if column.null_count and (default := default_scalar(field)) is not None:
        column = pc.fill_null(column, default)
    return column


def refuse_nulls(column: Any, field: DataField) -> None:
    """Raise ``NullInKey`` for a null in a NOT NULL column or part."""
    if _has_null(column, field.type):
        what = "has a null inside" if field.type.nullable else "has a null"
        raise NullInKey(f"column '{field.name}' {what}, but is {field.type}")


def _has_null(column: Any, data_type: DataType) -> bool:
    """Return whether a NOT NULL type has a null.

    Parts of nested types are checked too.
    """
    if not data_type.nullable and column.null_count:
        return True
    if (
        pa.types.is_null(column.type)
        or not data_type.is_nested
        or (data_type.kind is not Kind.VARIANT and all(child.nullable and not child.is_nested for child in data_type.children))
    ):
        return False
    return any(_has_null(part, type_) for part, type_ in nested_parts(column, data_type))


def _overlong(column: Any, data_type: DataType) -> tuple[int, DataType] | None:
    """Return an excessive length, and the type that it exceeds.

    Parts of nested types are checked too. None: all fit.
    """
    if not is_bounded(data_type) or not len(column):
        return None
    if data_type.is_nested:
        return next(filter(None, starmap(_overlong, nested_parts(column, data_type))), None)
    longest = pc.max(lengths(column, data_type)).as_py()
    return (longest, data_type) if longest is not None and longest > data_type.length else None


def lengths(column: Any, data_type: DataType) -> Any:
    """Return the lengths of texts or binaries."""
    return pc.utf8_length(column) if data_type.kind in STRINGS else pc.binary_length(column)


def is_bounded(data_type: DataType) -> bool:
    """Return whether a type, or a part of it, limits lengths."""
    return (data_type.kind in STRINGS | BINARIES and data_type.length < MAX_LENGTH) or any(map(is_bounded, data_type.children))


def _shorter_hint(field: DataField) -> str:
    """Return the hint for too long text or binary values."""
    cut = "utf8_slice_codeunits" if field.type.kind in STRINGS else "binary_slice"
    expression = f"pc.{cut}(rows[{field.name!r}], 0, {field.type.length})"
    return f"; cut it like this: {expression}, or give the column a longer type: table.change_type({field.name!r}, ...)"


@dataclass
class UnorderedValues:
    """Check of written rows for sequence groups without their sequence column.

    Logs one warning for each group.
    """

    table: str
    groups: tuple[SequenceGroup, ...]
    _warned: set[SequenceGroup] = field(default_factory=set)

    def check(self, rows: pa.Table) -> None:
        """Log a warning if ``rows`` have values that the merge ignores."""
        for group in self.groups:
            if group in self._warned or not all(rows.column(name).null_count for name in group.ordering):
                continue
            unordered: Any = True
            for name in group.ordering:
                unordered = pc.and_(unordered, pc.is_null(rows.column(name)))
            has_value: Any = False
            for name in group.protected:
                has_value = pc.or_(has_value, pc.is_valid(rows.column(name)))
            ignored = pc.sum(pc.and_(unordered, has_value)).as_py() or 0
            if ignored:
                self._warned.add(group)
                ordering = ",".join(group.ordering)
                _LOG.warning(
                    "%s: %s have values of the sequence group of '%s' and null there, so a merge ignores these values; set '%s', too "
                    "(fields.%s.sequence-group)",
                    self.table,
                    count_text(ignored, "row"),
                    ordering,
                    ordering,
                    ordering,
                )
