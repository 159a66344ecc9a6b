"""Views of a Hive metastore.

They are virtual views with one text for all engines, as Paimon's Java engine writes them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from manifest.types.data_type import DataField
from manifest.types.ddl import parse_table_ddl
from pyspark_paimon.plugins.catalogs.hive.metastore import user_name
from pyspark_paimon.plugins.catalogs.hive.tables import (
    COLUMN,
    COLUMN_COMMENT,
    COLUMN_TYPE,
    COLUMNS,
    DATABASE,
    NAME,
    PARAMETERS,
    STORAGE,
    TYPE,
    column_entry,
)
from pyspark_paimon.plugins.catalogs.hive.wire import Struct, Wire, number, properties, record, records, text, value_of

_OWNER, _CREATED, _PARTITIONS, _ORIGINAL, _EXPANDED = 3, 4, 8, 10, 11
_INPUT, _OUTPUT, _SERDE, _LIBRARY = 3, 4, 7, 2
_VIEW: Final = "VIRTUAL_VIEW"
_COMMENT: Final = "comment"
_CLASSES: Final = {
    _INPUT: text("org.apache.hadoop.mapred.SequenceFileInputFormat"),
    _OUTPUT: text("org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat"),
    _SERDE: record({_LIBRARY: text("org.apache.hadoop.hive.serde2.MetadataTypedColumnsetSerDe")}),
}
"""Classes of entries without files. The metastore requires them."""
_FIELD: Final = re.compile(r"([<,])([^:<>,()]+):")
"""Name of a field of a struct."""
_NAME_OR_TYPE: Final = re.compile(r"`(?:[^`]|``)*`|\bbinary\b|\btimestamp\b(?! with)")
_TYPES: Final = {"binary": "bytes", "timestamp": "timestamp(3)"}
"""Hive's names of types that have another meaning in DDL."""


def is_view(table: Struct) -> bool:
    """Return whether an entry is one of a view."""
    return bool(value_of(table, TYPE) == _VIEW)


def view_entry(names: tuple[str, str], fields: Sequence[DataField], query: str, parameters: tuple[Wire, Any]) -> Struct:
    """Return the entry of a new view.

    ``names``: database and view. ``parameters``: result of ``view_parameters``.
    """
    database, name = names
    return {
        NAME: text(name),
        DATABASE: text(database),
        _OWNER: text(user_name()),
        _CREATED: number(int(time.time())),
        STORAGE: record({COLUMNS: records(map(column_entry, fields)), **_CLASSES}),
        _PARTITIONS: records([]),
        PARAMETERS: parameters,
        _ORIGINAL: text(query),
        _EXPANDED: text(query),
        TYPE: text(_VIEW),
    }


def view_parameters(comment: str | None, options: Mapping[str, str]) -> tuple[Wire, Any]:
    """Return the field of a view's properties, which include its comment."""
    return properties({**options, **({} if comment is None else {_COMMENT: comment})})


def fields_of_view(table: Struct) -> tuple[DataField, ...]:
    """Return the columns of a view.

    The metastore has no Paimon types: a TIMESTAMP has milliseconds, as Paimon's Java engine reads it.
    """
    columns = value_of(value_of(table, STORAGE, {}), COLUMNS, [])
    ddl = ", ".join(f"{_quoted(str(value_of(column, COLUMN)))} {_ddl_type(str(value_of(column, COLUMN_TYPE)))}" for column in columns)
    comments = [value_of(column, COLUMN_COMMENT) for column in columns]
    fields = parse_table_ddl(ddl).fields if columns else ()
    return tuple(
        DataField(field_id, column.name, column.type, comment)
        for field_id, (column, comment) in enumerate(zip(fields, comments, strict=True))
    )


def _ddl_type(name: str) -> str:
    named = _FIELD.sub(lambda match: f"{match[1]}{_quoted(match[2])}:", name)
    return _NAME_OR_TYPE.sub(lambda match: _TYPES.get(match[0], match[0]), named)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def text_of_view(table: Struct) -> str:
    """Return the query of a view."""
    return str(value_of(table, _EXPANDED, "") or value_of(table, _ORIGINAL, ""))


def comment_and_options(table: Struct) -> tuple[str | None, dict[str, str]]:
    """Return comment and properties of a view."""
    parameters = {str(key): str(value) for key, value in value_of(table, PARAMETERS, {}).items()}
    return parameters.pop(_COMMENT, None), parameters
