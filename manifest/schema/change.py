"""Schema changes as JSON-serialisable values (``SchemaChange``).

A path names a column: ``("address", "city")`` is a field of a ROW. ``element`` and ``value`` are the parts of an
ARRAY and a MAP, as in ``("tags", "element", "name")``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Path: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]


class _Change(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class AddColumn(_Change):
    """Add a column, null in existing rows.

    ``type`` is in the form of schema files, without effect of its ids. Set at most one of ``first`` and ``after`` (a sibling's name).
    Neither means the end.
    """

    change: Literal["add"] = "add"
    path: Path
    type: str | dict[str, Any]
    comment: str | None = None
    default: str | None = None
    first: bool = False
    after: str | None = None


class DropColumn(_Change):
    """Drop a column. Its id is never reused."""

    change: Literal["drop"] = "drop"
    path: Path


class RenameColumn(_Change):
    """Rename a column, also in keys and options."""

    change: Literal["rename"] = "rename"
    path: Path
    name: str


class MoveColumn(_Change):
    """Move a column among its siblings.

    To the beginning (``first``), behind ``after``, or to the end.
    """

    change: Literal["move"] = "move"
    path: Path
    first: bool = False
    after: str | None = None


class ChangeType(_Change):
    """Change a column's type but not its nullability.

    Old files are cast when they are read. ``force``: also to a type that does not keep every value.
    """

    change: Literal["type"] = "type"
    path: Path
    type: str | dict[str, Any]
    force: bool = False


class ChangeNullability(_Change):
    """Change whether a column may have nulls."""

    change: Literal["nullability"] = "nullability"
    path: Path
    nullable: bool


class ChangeComment(_Change):
    """Change the comment of a column, or of the table.

    The table has path (). None removes the comment.
    """

    change: Literal["comment"] = "comment"
    path: tuple[str, ...] = ()
    comment: str | None


class ChangeDefault(_Change):
    """Change the value that writers use for null.

    None removes it. Existing rows do not change.
    """

    change: Literal["default"] = "default"
    path: Path
    default: str | None


class ChangeOptions(_Change):
    """Set options, or remove them with None."""

    change: Literal["options"] = "options"
    options: dict[str, str | None]


class ReplaceColumns(_Change):
    """Replace all columns but the keys.

    ``columns``: in the form of schema files. An id that the table has had shows its values again; -1 is a new column, unless the table has one
    of the same name and type.
    """

    change: Literal["replace"] = "replace"
    columns: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)]


SchemaChange: TypeAlias = Annotated[
    AddColumn
    | DropColumn
    | RenameColumn
    | MoveColumn
    | ChangeType
    | ChangeNullability
    | ChangeComment
    | ChangeDefault
    | ChangeOptions
    | ReplaceColumns,
    Field(discriminator="change"),
]
