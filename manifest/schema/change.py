"""Changes of a schema as values that travel as JSON (``org.apache.paimon.schema.SchemaChange``).

A column is named by its path: ``("address", "city")`` is a field of a ROW, ``element`` and ``value`` stand for the parts of an
ARRAY and a MAP, as in ``("tags", "element", "name")``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Path: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]


class _Change(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class AddColumn(_Change):
    """A new column, null in every row that is there; ``type`` is in the form of schema files, its ids do not count.

    At most one of ``first`` and ``after`` (a sibling's name) is set; neither means the end.
    """

    change: Literal["add"] = "add"
    path: Path
    type: str | dict[str, Any]
    comment: str | None = None
    default: str | None = None
    first: bool = False
    after: str | None = None


class DropColumn(_Change):
    """Forget a column; its id is never used again."""

    change: Literal["drop"] = "drop"
    path: Path


class RenameColumn(_Change):
    """Another name for a column, in keys and options too."""

    change: Literal["rename"] = "rename"
    path: Path
    name: str


class MoveColumn(_Change):
    """Another place among the siblings: ``first``, after ``after``, or last."""

    change: Literal["move"] = "move"
    path: Path
    first: bool = False
    after: str | None = None


class ChangeType(_Change):
    """Another type, nullability as it was; old files are cast when they are read."""

    change: Literal["type"] = "type"
    path: Path
    type: str | dict[str, Any]


class ChangeNullability(_Change):
    """Whether rows may have null."""

    change: Literal["nullability"] = "nullability"
    path: Path
    nullable: bool


class ChangeComment(_Change):
    """The comment of a column or, with path (), of the table; None removes it."""

    change: Literal["comment"] = "comment"
    path: tuple[str, ...] = ()
    comment: str | None


class ChangeDefault(_Change):
    """What writers put for null; None removes it. Rows that are there stay as they are."""

    change: Literal["default"] = "default"
    path: Path
    default: str | None


class ChangeOptions(_Change):
    """Options to set, or for None to remove."""

    change: Literal["options"] = "options"
    options: dict[str, str | None]


SchemaChange: TypeAlias = Annotated[
    AddColumn | DropColumn | RenameColumn | MoveColumn | ChangeType | ChangeNullability | ChangeComment | ChangeDefault | ChangeOptions,
    Field(discriminator="change"),
]

__all__ = [
    "AddColumn",
    "ChangeComment",
    "ChangeDefault",
    "ChangeNullability",
    "ChangeOptions",
    "ChangeType",
    "DropColumn",
    "MoveColumn",
    "RenameColumn",
    "SchemaChange",
]
