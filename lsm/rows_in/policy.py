"""Arguments that decide what happens to rows that do not fit."""

from __future__ import annotations

from typing import Literal, TypeAlias

MissingColumns: TypeAlias = Literal["refuse", "null", "keep"]
SchemaMode: TypeAlias = Literal["merge"]
CastMode: TypeAlias = bool | Literal["round"]
CastErrors: TypeAlias = Literal["raise", "null", "collect"]
