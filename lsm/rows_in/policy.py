"""Decisions about rows that differ from the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, get_args

from manifest.options.core_options import CoreOptions
from paimon_base.errors import InvalidArgument

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema

MissingColumns: TypeAlias = Literal["refuse", "null", "keep"]
SchemaMode: TypeAlias = Literal["merge"]
CastMode: TypeAlias = bool | Literal["round"]
CastErrors: TypeAlias = Literal["raise", "null", "collect"]


@dataclass(frozen=True)
class RowPolicy:
    """What happens to rows that do not have the columns and types of the table.

    Args:
        cast: Convert values to the types of the table. ``round``: round numbers, too. False: take values only if none changes.
        errors: Treatment of values that cannot be cast.
        missing: Treatment of missing columns where null would clear or ignore values.
        merges: Add columns that the table lacks.
        widens: Give columns of numbers the wider type of the rows. Needs ``merges``.
        retypes: Give columns the type of the rows although stored values may change. Needs ``merges``.
    """

    cast: CastMode = False
    errors: CastErrors = "raise"
    missing: MissingColumns = "null"
    merges: bool = False
    widens: bool = False
    retypes: bool = False

    @classmethod
    def of(
        cls,
        schema: TableSchema,
        options: Mapping[str, str] | None = None,
        *,
        cast: CastMode = False,
        errors: CastErrors = "raise",
        missing: MissingColumns = "null",
    ) -> Self:
        """Resolve the policy of a call.

        ``options``: those of the call and the session. They take precedence over the options of the table.

        Raises:
            InvalidArgument: ``errors`` is unknown, or given without ``cast``.

        >>> from manifest.schema.table_schema import TableSchema
        >>> from manifest.types.ddl import parse_ddl
        >>> schema = TableSchema(id=0, fields=parse_ddl("n INT"), options={"write.merge-schema": "true"})
        >>> RowPolicy.of(schema).merges, RowPolicy.of(schema, {"write.merge-schema": "false"}).merges
        (True, False)
        """
        if errors != "raise" and not cast:
            raise InvalidArgument(f"errors={errors!r} is for casts; give cast=True, too")
        if errors not in get_args(CastErrors):
            raise InvalidArgument(f"errors must be one of {', '.join(get_args(CastErrors))}, not {errors!r}")
        core = CoreOptions.of({**schema.options, **options}) if options else schema.core
        merges = core.write_merge_schema
        return cls(
            cast=cast,
            errors=errors,
            missing=missing,
            merges=merges,
            widens=merges and core.write_merge_schema_type_widening,
            retypes=merges and core.write_merge_schema_explicit_cast,
        )

    @property
    def rounds(self) -> bool:
        """Whether a cast rounds numbers and cuts off fractions of seconds."""
        return self.cast == "round"

    @property
    def fills_null(self) -> bool:
        """Whether missing columns become null in any case."""
        return self.missing != "refuse"


DEFAULT_POLICY = RowPolicy()
"""Policy for rows that were cast before: no value changes, and columns may be missing."""


def wider_hint(column: str) -> str:
    """Return the advice for numbers that a column cannot have."""
    return (
        f"; to keep such numbers, give the column a wider type: table.change_type({column!r}, ...), or write with schema_mode='merge' and "
        "option write.merge-schema.type-widening"
    )
