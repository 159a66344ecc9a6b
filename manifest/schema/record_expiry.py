"""Validation of record-level expiry (``record-level.expire-time``)."""

from __future__ import annotations

from fileindex.base.column_type import TIMESTAMPS, Kind
from fileindex.base.errors import UnsupportedOption
from manifest.schema.table_schema import TableSchema

EXPIRE_TIME, TIME_FIELD = "record-level.expire-time", "record-level.time-field"
_TIMES = TIMESTAMPS | {Kind.INT, Kind.BIGINT}


def check_record_expiry(schema: TableSchema) -> None:
    """Raise ``UnsupportedOption`` for invalid options of record expiry.

    >>> from manifest.schema.validation import build_schema
    >>> options = {"record-level.expire-time": "1 d", "record-level.time-field": "day"}
    >>> build_schema("id BIGINT, day DATE", primary_keys=["id"], options=options)
    Traceback (most recent call last):
    ...
    pyspark_paimon.UnsupportedOption: option 'record-level.time-field': 'day' is DATE; a time is INT or BIGINT (seconds, or in BIGINT \
milliseconds) or a TIMESTAMP
    """
    core = schema.core
    if core.record_level_expire_time is None and core.record_level_time_field is None:
        return
    if not schema.is_primary_key_table:
        raise UnsupportedOption(EXPIRE_TIME, "needs a primary key: rows expire when a merge tree is compacted")
    problem = expiry_problem(schema)
    if problem is not None:
        raise UnsupportedOption(TIME_FIELD if core.record_level_time_field else EXPIRE_TIME, problem)


def expiry_problem(schema: TableSchema) -> str | None:
    """Return why rows cannot expire, None if they can."""
    name = schema.core.record_level_time_field
    if name is None:
        return f"needs '{TIME_FIELD}', the column with a row's time"
    if name not in schema.names:
        return f"'{name}' is not a column; columns are: {', '.join(schema.names)}"
    data_type = schema.field(name).type
    if data_type.kind not in _TIMES:
        return f"'{name}' is {data_type}; a time is INT or BIGINT (seconds, or in BIGINT milliseconds) or a TIMESTAMP"
    return None


__all__ = ["EXPIRE_TIME", "TIME_FIELD", "check_record_expiry", "expiry_problem"]
