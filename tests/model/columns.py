"""Columns of a table under test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column. ``ident`` never changes and is the name at creation; ``name`` follows renames."""

    ident: str
    name: str
    type: str
    nullable: bool = True

    @property
    def ddl(self) -> str:
        return f"{self.name} {self.type}{'' if self.nullable else ' NOT NULL'}"
