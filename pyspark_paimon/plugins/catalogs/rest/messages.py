"""Requests and responses of the API.

Names are those in ``rest-catalog-open-api.yaml``. Unused members are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import PartitionStatistics, Snapshot


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore", coerce_numbers_to_str=True)


def _or_empty(value: object) -> object:
    return {} if value is None else value


Texts = Annotated[dict[str, str], BeforeValidator(_or_empty), Field(default_factory=dict)]


class Identifier(_Message):
    """A table. ``object`` may end in ``$branch_<name>``."""

    database: str
    object: str

    @property
    def full_name(self) -> str:
        """``<database>.<object>``."""
        return f"{self.database}.{self.object}"


class Configuration(_Message):
    """The server's options: suggested defaults and mandatory overrides."""

    defaults: Texts
    overrides: Texts


class Page(_Message):
    """One page of names and a token for the next."""

    databases: Sequence[str] | None = None
    tables: Sequence[str] | None = None
    views: Sequence[str] | None = None
    branches: Sequence[str] | None = None
    next_page_token: str | None = None

    @property
    def names(self) -> Sequence[str]:
        """Names of databases, tables, views or branches."""
        return self.databases or self.tables or self.views or self.branches or ()


class DatabaseAnswer(_Message):
    """A database."""

    name: str | None = None
    location: str | None = None
    options: Texts


class ColumnsAndKeys(_Message):
    """A schema without version number.

    ``fields`` have the form of schema files.
    """

    fields: list[dict[str, Any]]
    partition_keys: list[str] = Field(default_factory=list)
    primary_keys: list[str] = Field(default_factory=list)
    options: Texts
    comment: str | None = None

    @classmethod
    def of(cls, schema: TableSchema) -> ColumnsAndKeys:
        """Return the request form of a new table's schema."""
        return cls.model_validate(schema.model_dump(by_alias=True))


class TableAnswer(_Message):
    """A table.

    ``id`` distinguishes it from other tables that had its name.
    """

    id: str | None = None
    path: str | None = None
    is_external: bool = False
    schema_id: int = 0
    columns: ColumnsAndKeys | None = Field(default=None, alias="schema")


class CreateTableRequest(_Message):
    """Request to create a table."""

    identifier: Identifier
    columns: ColumnsAndKeys = Field(alias="schema")


class RenameRequest(_Message):
    """Request to rename a table or a view."""

    source: Identifier
    destination: Identifier


class ViewDefinition(_Message):
    """Columns and queries of a view.

    ``query`` is the default, ``dialects`` has those of engines. ``fields`` have the form of schema files.
    """

    fields: list[dict[str, Any]] = Field(default_factory=list)
    query: str
    dialects: Texts
    comment: str | None = None
    options: Texts


class ViewAnswer(_Message):
    """A view."""

    definition: ViewDefinition = Field(alias="schema")


class CreateViewRequest(_Message):
    """Request to create a view."""

    identifier: Identifier
    definition: ViewDefinition = Field(alias="schema")


class CommitRequest(_Message):
    """Request to commit a snapshot."""

    table_id: str | None
    snapshot: Snapshot
    statistics: Sequence[PartitionStatistics]


class CommitAnswer(_Message):
    """Whether the snapshot was committed."""

    success: bool


class VersionAnswer(_Message):
    """A snapshot by its id."""

    snapshot: Snapshot


class _Counted(_Message):
    snapshot: Snapshot


class NewestAnswer(_Message):
    """The newest snapshot, with counts of the whole table."""

    counted: _Counted = Field(alias="snapshot")


class TokenAnswer(_Message):
    """Temporary options of a store."""

    token: Texts
    expires_at_millis: int = 0
