"""Table schema as in ``schema/schema-N`` (Paimon's ``TableSchema``)."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer, field_validator
from pydantic.alias_generators import to_camel

from manifest.io.checksum import verify_checksum
from manifest.io.errors import UnsupportedTable
from manifest.io.numbers import Count, FieldId, Millis
from manifest.io.paths import POSTPONE_BUCKET
from manifest.options.core_options import CoreOptions
from manifest.schema.table_kind import AppendTable, KeyValueTable, TableKind
from manifest.types.data_type import DataField, DataType, arrow_schema
from paimon_base.errors import CorruptFile, PaimonError, UnknownColumn, UnsupportedOption, UnsupportedType
from sparkexpr.values.column_type import ColumnType

if TYPE_CHECKING:
    from fileindex.build.options import FileIndexOptions


FILE_VERSION = 3
_ALWAYS = (
    "fields",
    "highestFieldId",
    "partitionKeys",
    "primaryKeys",
    "options",
)  # every engine writes them; a file without them is invalid


class TableSchema(BaseModel):
    """One version of a table's schema.

    Fields are in column order.

    >>> schema = TableSchema.from_json(
    ...     '{"version": 3, "id": 0, "fields": [{"id": 0, "name": "k", "type": "INT NOT NULL"}], "highestFieldId": 0, '
    ...     '"partitionKeys": [], "primaryKeys": ["k"], "options": {}}'
    ... )
    >>> schema.trimmed_primary_keys, schema.arrow.field("k").type
    (('k',), DataType(int32))
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, arbitrary_types_allowed=True, defer_build=True
    )

    version: int = FILE_VERSION
    id: Count
    fields: tuple[DataField, ...]
    highest_field_id: FieldId = -1
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: dict[str, str] = Field(default_factory=dict)
    comment: str | None = None
    time_millis: Millis = 0

    @field_validator("fields", mode="before")
    @classmethod
    def _parse_fields(cls, fields: Iterable[Any]) -> tuple[DataField, ...]:
        return tuple(field if isinstance(field, DataField) else DataField.from_json(field) for field in fields)

    @field_serializer("fields")
    def _dump_fields(self, fields: tuple[DataField, ...]) -> list[dict[str, Any]]:
        return [field.to_json() for field in fields]

    @classmethod
    def from_json(cls, text: str | bytes, path: str = "schema") -> TableSchema:
        """Parse a schema file.

        Old file versions get the options they implied. Raises ``CorruptFile`` for ``path`` if it is invalid, ``UnsupportedTable`` for a column of
        an unknown type.
        """
        verify_checksum(path, text)
        try:
            parsed = {**json.loads(text)}
            if absent := [name for name in _ALWAYS if name not in parsed]:
                raise ValueError(f"it has no '{absent[0]}'")  # noqa: TRY301  # reported like any other error of the file
            version = parsed.get("version", 1)
            implied = ({"bucket": "1"} if version <= 1 else {}) | ({"file.format": "orc"} if version <= 2 else {})
            parsed["options"] = implied | parsed.get("options", {})
            return cls.model_validate(parsed).checked()
        except UnsupportedType as error:
            raise UnsupportedTable(f"{path}: {error}") from error
        except (ValueError, ValidationError, TypeError, KeyError, AttributeError, RecursionError, PaimonError) as error:
            raise CorruptFile(path, f"is not a table schema ({error})") from error

    def checked(self) -> TableSchema:
        """Return the schema. Raises ``ValueError`` if it is invalid.

        Checks for duplicate columns and for keys that are not columns.
        """
        for what, of_columns in (("name", self.names), ("id", tuple(field.id for field in self.fields))):
            if len(set(of_columns)) < len(of_columns):
                raise ValueError(f"two columns have the same {what}")
        for what, keys in (("primary key", self.primary_keys), ("partition", self.partition_keys)):
            if missing := [key for key in keys if key not in self.names]:
                raise ValueError(f"its {what} names columns that it does not have: {', '.join(missing)}")
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> TableSchema:
        """Return a copy with other members, without cached values.

        >>> schema = TableSchema(id=0, fields=(), options={"bucket": "4"})
        >>> schema.core.bucket, schema.model_copy(update={"options": {"bucket": "8"}}).core.bucket
        (4, 8)
        """
        copied = super().model_copy(update=update, deep=deep)
        for name in set(copied.__dict__).difference(type(self).model_fields):
            del copied.__dict__[name]
        return copied

    def __getstate__(self) -> dict[Any, Any]:
        """Return the state without cached values."""
        state = super().__getstate__()
        state["__dict__"] = {name: value for name, value in self.__dict__.items() if name in type(self).model_fields}
        return state

    @cached_property
    def derived(self) -> dict[Hashable, Any]:
        """Values that higher layers compute from this schema, by name."""
        # Buckets, files and sections of one table share them: each has thousands in a large write.
        return {}

    def to_json(self) -> str:
        """Return the text of the schema file."""
        return json.dumps(self.model_dump(by_alias=True, exclude_none=True), indent=2, ensure_ascii=False)

    @cached_property
    def core(self) -> CoreOptions:
        """Typed options."""
        return CoreOptions.of(self.options)

    @cached_property
    def file_index(self) -> FileIndexOptions:
        """File index options, without indexes that cannot be built."""
        from fileindex.build.options import FileIndexOptions  # noqa: PLC0415  # loads every format of an index

        return FileIndexOptions.parse(self.options, self.column_types, strict=False)

    @cached_property
    def arrow(self) -> pa.Schema:
        """In-memory Arrow schema.

        Raises ``UnsupportedType`` for a column without Arrow type.
        """
        return arrow_schema(self.fields)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(field.name for field in self.fields)

    @cached_property
    def by_name(self) -> dict[str, DataField]:
        """Columns by name."""
        return {field.name: field for field in self.fields}

    def field(self, name: str) -> DataField:
        """Return a column. Raises ``UnknownColumn``."""
        try:
            return self.by_name[name]
        except KeyError:
            raise UnknownColumn(name, self.names) from None

    def types_of(self, names: Iterable[str]) -> tuple[DataType, ...]:
        """Return the types of the named columns."""
        return tuple([self.field(name).type for name in names])

    @cached_property
    def column_types(self) -> dict[str, ColumnType]:
        """Column types for indexes and filters."""
        return {field.name: field.type.column_type for field in self.fields}

    @cached_property
    def is_primary_key_table(self) -> bool:
        """Whether the table has a primary key."""
        return bool(self.primary_keys)

    @cached_property
    def kind(self) -> TableKind:
        """Kind of table: what a primary key means for files and reads."""
        return (KeyValueTable if self.primary_keys else AppendTable)(self.core)

    def require_primary_key(self, option: str, reason: str) -> None:
        """Raise ``UnsupportedOption`` for a table without primary key."""
        if not self.primary_keys:
            raise UnsupportedOption(option, reason)

    @cached_property
    def bucket_mode(self) -> BucketMode:
        """Assignment of rows to buckets."""
        if self.core.bucket > 0:
            return BucketMode.HASH_FIXED
        if not self.primary_keys:
            return BucketMode.BUCKET_UNAWARE
        if self.core.bucket == POSTPONE_BUCKET:
            return BucketMode.POSTPONE_MODE
        return BucketMode.HASH_DYNAMIC if self.keys_have_partitions else BucketMode.KEY_DYNAMIC

    @property
    def keys_have_partitions(self) -> bool:
        """Whether the primary key has all partition columns.

        Then a key exists in one partition only.
        """
        return all(name in self.primary_keys for name in self.partition_keys)

    @cached_property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """Primary-key columns without partition columns, in key order."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    @cached_property
    def bucket_keys(self) -> tuple[str, ...]:
        """Hashed columns: ``bucket-key``, else the trimmed primary key."""
        return self.core.bucket_key or self.trimmed_primary_keys

    @cached_property
    def partition_types(self) -> tuple[DataType, ...]:
        """Types of the partition columns."""
        return self.types_of(self.partition_keys)

    @cached_property
    def key_types(self) -> tuple[DataType, ...]:
        """Types of the trimmed primary key."""
        return self.types_of(self.trimmed_primary_keys)


class BucketMode(Enum):
    """Assignment of rows to buckets."""

    HASH_FIXED = "hash-fixed"
    """A fixed number of buckets, selected by the hash of the bucket key."""
    HASH_DYNAMIC = "hash-dynamic"
    """Buckets are added on demand. Hash index files map keys to buckets."""
    KEY_DYNAMIC = "key-dynamic"
    """As ``HASH_DYNAMIC``, but a key does not determine its partition: writers find it in the table."""
    BUCKET_UNAWARE = "bucket-unaware"
    """An append table without buckets."""
    POSTPONE_MODE = "postpone"
    """Rows wait without a bucket until a compaction assigns one."""

    @property
    def assigns_keys(self) -> bool:
        """Whether the first write of a key assigns its bucket."""
        return self in {BucketMode.HASH_DYNAMIC, BucketMode.KEY_DYNAMIC}
