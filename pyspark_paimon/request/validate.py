"""Validation and conversion of ``Table`` arguments to requests.

An argument of the wrong type would otherwise raise a Python error deep inside the call.
That error would name neither the method nor the argument.
The checks cover plain annotations: texts, numbers, flags, times, mappings, sequences of names.
The code that uses filters, rows, schemas and columns checks them.
"""

from __future__ import annotations

import inspect
import os
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, date, datetime, timedelta
from functools import cache, wraps
from numbers import Integral
from typing import Any, get_args

import pyarrow as pa
from pydantic import ValidationError

from lsm.rows_in.policy import MissingColumns, SchemaMode
from manifest.options.core_options import option_texts
from manifest.options.support import check_call
from manifest.schema.metadata_columns import metadata_fields
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.commit_info import check_properties
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from paimon_base.errors import InvalidArgument
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.request.partition_spec import spec_of
from pyspark_paimon.request.requests import Mode, TravelRequest, WriteRequest
from pyspark_paimon.typing import Time
from sparkexpr.values.time_zone import session_tzinfo, time_zone

_ONE_DAY_MS = 24 * 3600 * 1000
_LONGEST_ID = 64
_SECONDS = 10**9
"""Seconds since the epoch in 2001.

As milliseconds this is a time in 1970, before any table.
"""
Check = Callable[[Any], bool]


def write_request(
    schema: TableSchema,
    mode: Mode | None,
    *,
    partition: Mapping[str, object] | None = None,
    order_by: str | None = None,
    options: Mapping[str, str] | None = None,
    commit_id: str | None = None,
    batch_id: int | None = None,
    properties: Mapping[str, str] | None = None,
    missing: MissingColumns = "refuse",
    schema_mode: SchemaMode | None = None,
) -> WriteRequest:
    """Return the request of ``Table.write``.

    Raises ``InvalidArgument``, ``UnsupportedOption``, ``UnknownColumn``.
    """
    natural = schema.kind.write_mode
    # As in Spark, appending rows with keys writes new versions of the keys.
    write_mode = natural if mode in {None, "append"} else mode
    if write_mode not in {natural, "overwrite"}:
        kind = "a primary-key table" if natural == "upsert" else "a table without primary key"
        modes = ", ".join(f"'{name}'" for name in dict.fromkeys(["append", natural]))
        raise InvalidArgument(f"mode '{write_mode}' is not possible for {kind}; use {modes} or 'overwrite'")
    if partition is not None and write_mode != "overwrite":
        raise InvalidArgument("partition needs mode 'overwrite': in other modes the rows' columns give their partitions")
    if order_by is not None and natural == "append":
        raise InvalidArgument("order_by chooses among rows of one key; the table has no primary key")
    if batch_id is not None and (commit_id is None or type(batch_id) is not int or not 0 <= batch_id < BATCH_IDENTIFIER):
        raise InvalidArgument("batch_id numbers the batches of a job from 0 up; the job's name is given as commit_id")
    if missing not in get_args(MissingColumns):
        raise InvalidArgument(f"missing must be one of {', '.join(get_args(MissingColumns))}, not {missing!r}")
    if missing == "keep" and (natural, write_mode) != ("upsert", "upsert"):
        reason = "the table has no primary key" if natural == "append" else f"mode '{write_mode}' has none"
        raise InvalidArgument(f"missing='keep' keeps stored values of a row's key; {reason}: use missing='null', which sets NULL")
    settings = check_options(options) | schema_options(schema_mode)
    effective = schema.model_copy(update={"options": {**schema.options, **settings}}).core if settings else schema.core
    return WriteRequest(
        commit_id=commit_identity(commit_id),
        first_run=commit_id is None,
        schema_id=schema.id,
        batch_id=batch_id,
        mode=write_mode,
        partition=None if partition is None else spec_of(partition, schema),
        dynamic=bool(schema.partition_keys) and effective.dynamic_partition_overwrite,
        order_by=None if order_by is None else resolve(order_by, schema.column_types),
        missing="refuse" if missing == "refuse" else "null",
        properties=check_properties(properties),
        options=settings,
    )


def schema_options(schema_mode: SchemaMode | None) -> dict[str, str]:
    """Return the options of an argument ``schema_mode``. Raises ``InvalidArgument``."""
    if schema_mode not in {None, "merge"}:
        raise InvalidArgument(f"schema_mode must be 'merge' or None, not {schema_mode!r}; to change other columns, alter the table first")
    return {} if schema_mode is None else {"write.merge-schema": "true"}


def commit_identity(commit_id: object) -> str:
    """Return the caller's commit id, or a new one.

    Raises ``InvalidArgument`` for an id that cannot be part of a file name.

    >>> commit_identity("nightly-2024-01-31")
    'nightly-2024-01-31'
    """
    if commit_id is None:
        return str(uuid.uuid4())
    if (
        not isinstance(commit_id, str)
        or not commit_id
        or len(commit_id) > _LONGEST_ID
        or not all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in commit_id)
    ):
        raise InvalidArgument(f"commit_id {commit_id!r} must be letters, digits, - and _, at most {_LONGEST_ID} of them, as in a UUID")
    return commit_id


def check_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """Check and return options of one call.

    Raises ``UnsupportedOption``.
    """
    settings = option_texts(options)
    if settings:
        check_call(settings)
    return settings


def travel_of(snapshot: int | None, tag: str | None, timestamp: Time | None) -> TravelRequest:
    """Return the snapshot that the arguments of ``scan`` select.

    Raises ``InvalidArgument`` if more than one argument is given.
    """
    if (snapshot, tag, timestamp).count(None) < 2:
        raise InvalidArgument("a scan reads one snapshot: give only one of snapshot, tag and timestamp")
    if snapshot is not None and (isinstance(snapshot, bool) or not isinstance(snapshot, int)):
        raise InvalidArgument(f"snapshot must be an id, not {snapshot!r}")
    return TravelRequest(snapshot_id=snapshot, tag=tag, timestamp_millis=millis_of(timestamp))


def projection(columns: Sequence[str] | None, schema: TableSchema, *, metadata: bool = False) -> tuple[str, ...]:
    """Return columns of a scan in the table's spelling.

    ``columns`` None: all columns. ``metadata``: whether metadata columns may be named.
    Raises ``UnknownColumn``, ``InvalidArgument``.
    """
    if columns is None:
        return schema.names
    if isinstance(columns, str):
        raise InvalidArgument(f"columns must be a list of names: write columns=[{columns!r}]")
    if not isinstance(columns, Iterable):
        raise InvalidArgument(f"columns must be a list of names, not {columns!r}")
    metadata_columns = metadata_fields(schema) if metadata else {}
    names = tuple(name if name in metadata_columns else resolve(name, schema.column_types) for name in columns)
    if len(set(names)) < len(names):
        raise InvalidArgument(f"columns has a name twice: {', '.join(columns)}")
    if not names:
        raise InvalidArgument("columns is empty; use count() for the number of rows")
    return names


def text_columns(dictionaries: object, schema: pa.Schema) -> tuple[str, ...]:
    """Return text columns to read as dictionaries.

    ``dictionaries``: True for all text columns, False for no column, or a list of columns.
    Raises ``InvalidArgument`` for columns that are not text, ``UnknownColumn``.

    >>> text_columns(True, pa.schema({"a": pa.string(), "b": pa.int32()})), text_columns(["a"], pa.schema({"a": pa.string()}))
    (('a',), ('a',))
    """
    texts = tuple(field.name for field in schema if pa.types.is_string(field.type))
    if isinstance(dictionaries, bool):
        return texts if dictionaries else ()
    if isinstance(dictionaries, str) or not isinstance(dictionaries, Iterable):
        raise InvalidArgument(f"dictionaries must be True or a list of columns, not {dictionaries!r:.60}")
    columns = dict(zip(schema.names, schema.types, strict=True))
    for name in (names := tuple(resolve(name, columns) for name in dictionaries)):
        if name not in texts:
            raise InvalidArgument(f"dictionaries: column '{name}' of type {schema.field(name).type} is not text")
    return names


def millis_of(time: Time | None) -> int | None:
    """Convert a time to milliseconds since the epoch.

    Accepts milliseconds, a date, a datetime, or ISO text. Texts and dates without a zone are UTC, as tables of commits show them. A
    datetime without a zone is local time, as in Python: in the zone of a ``time_zone`` block, or of the process.

    >>> from sparkexpr.values.time_zone import time_zone
    >>> with time_zone("Asia/Tokyo"):
    ...     millis_of(datetime(1970, 1, 1, 9, 0, 1))
    1000
    >>> millis_of("1970-01-02")
    86400000
    """
    if isinstance(time, str):
        try:
            parsed = datetime.fromisoformat(time)
            time = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
        except ValueError as error:
            raise InvalidArgument(f"{time!r} is not a time; write it as '2024-01-31' or '2024-01-31T10:00:00+01:00'") from error
    if isinstance(time, date) and not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day, tzinfo=UTC)
    if isinstance(time, datetime):
        aware = time if time.tzinfo is not None else time.replace(tzinfo=session_tzinfo())
        return int(aware.timestamp() * 1000)
    if time is not None and (isinstance(time, bool) or not isinstance(time, int)):
        raise InvalidArgument(f"a time is milliseconds since the epoch, a date, a datetime or ISO text, not {time!r}")
    if time is not None and _SECONDS <= time < 10 * _SECONDS:
        meant = datetime.fromtimestamp(time, UTC)
        raise InvalidArgument(
            f"{time} milliseconds are in {datetime.fromtimestamp(time / 1000, UTC):%B %Y}: are they seconds? Give {time * 1000}, or '{meant:%Y-%m-%dT%H:%M:%S}'"
        )
    return time


def cutoff_of(time: Time | None) -> int:
    """Return the cutoff for orphan files in milliseconds.

    ``time`` None: one day ago.
    """
    cutoff = millis_of(time)
    return int(datetime.now(UTC).timestamp() * 1000) - _ONE_DAY_MS if cutoff is None else cutoff


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}


def _is_int(value: Any) -> bool:
    return isinstance(value, Integral) and not _is_flag(value)


def _is_time(value: Any) -> bool:
    return isinstance(value, date | datetime) and value == value  # noqa: PLR0124 -- pandas' NaT is a datetime, and not itself


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _are_names(value: Any) -> bool:
    """Return whether a value is a name or names.

    Some methods accept one name for a list of one. A one-shot iterator is not checked here.
    """
    return isinstance(value, str) or (
        _is_list(value) and (not isinstance(value, Collection) or all(isinstance(name, str) for name in value))
    )


def _are_mappings(value: Any) -> bool:
    return _is_list(value) and (not isinstance(value, Collection) or all(map(_is_mapping, value)))


def _is_list(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | Mapping)


_KINDS: dict[str, tuple[str, Check]] = {
    "None": ("None", lambda value: value is None),
    "str": ("text", lambda value: isinstance(value, str)),
    "int": ("a whole number", _is_int),
    "bool": ("True or False", _is_flag),
    "datetime": ("a datetime", lambda value: isinstance(value, datetime) and _is_time(value)),
    "timedelta": ("a timedelta", lambda value: isinstance(value, timedelta) and value == value),  # noqa: PLR0124 -- as above
    "Time": ("milliseconds, a date, a datetime or ISO text", lambda value: isinstance(value, str) or _is_int(value) or _is_time(value)),
    "Sequence[str]": ("a list of names", _are_names),
    "Mapping[str, str]": ("a dict", _is_mapping),
    "Mapping[str, object]": ("a dict", _is_mapping),
    "Mapping[str, Any]": ("a dict", _is_mapping),
    "Sequence[Mapping[str, object]]": ("a list of dicts", _are_mappings),
    "tuple[Point, Point]": ("a pair (from, to)", lambda value: isinstance(value, tuple | list)),
    "Progress": ("a function", callable),
    "os.PathLike[str]": ("a path", lambda value: isinstance(value, os.PathLike)),
    "Depth": ("a depth", lambda value: isinstance(value, str)),
    "SchemaMode": ("a mode's name", lambda value: isinstance(value, str)),
    "CastMode": ("True, False or 'round'", lambda value: _is_flag(value) or (isinstance(value, str) and value == "round")),
    "CastErrors": ("text", lambda value: isinstance(value, str)),
    "MissingColumns": ("text", lambda value: isinstance(value, str)),
    "Mode": ("a mode's name", lambda value: isinstance(value, str)),
    "IncrementalModeName": ("a mode's name", lambda value: isinstance(value, str)),
    "ClusterStrategyName": ("a strategy's name", lambda value: isinstance(value, str)),
}
_BETWEEN = re.compile(r"\s*\|\s*(?![^\[]*\])")


def check_arguments(method: Callable[..., Any]) -> Callable[..., Any]:
    """Check the arguments of ``method`` at each call.

    Raises ``InvalidArgument``, also in place of pydantic's ``ValidationError`` for requests.
    """

    @cache
    def wanted_of_it() -> tuple[dict[str, tuple[tuple[str, Check], ...]], list[str]]:
        """Return checks by argument, and positional arguments in order.

        Cached at the first call: most methods are never called.
        """
        parameters = inspect.signature(method).parameters
        checks = {name: type_check for name, parameter in parameters.items() if (type_check := _check_of(parameter.annotation)) is not None}
        return checks, [name for name, parameter in parameters.items() if parameter.kind is not parameter.KEYWORD_ONLY]

    @wraps(method)
    def called(*arguments: Any, **options: Any) -> Any:
        checks, order = wanted_of_it()
        for name, value in (*zip(order, arguments, strict=False), *options.items()):
            if (check := checks.get(name)) is not None and not any(fits(value) for _, fits in check):
                kinds = " or ".join(dict.fromkeys(kind for kind, _ in check))
                raise InvalidArgument(f"{method.__name__}: {name} is {kinds}, not {_shown(name, value)}")
        try:
            with _zone_of(arguments[0]) if arguments else nullcontext():
                return method(*arguments, **options)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "argument"
            raise InvalidArgument(f"{method.__name__}: {where}: {first['msg']}, not {first['input']!r}") from error
        except UnicodeEncodeError as error:
            raise InvalidArgument(
                f"{method.__name__}: {error.object!r} has an unpaired surrogate, which UTF-8 cannot encode: remove it"
            ) from error

    return called


def _zone_of(owner: object) -> AbstractContextManager[None]:
    """Return the context of the object's Spark session time zone.

    Without a session the context changes nothing.
    """
    engine = getattr(owner, "_engine", None)
    spark = getattr(engine, "spark", None)
    if spark is None:
        return nullcontext()
    return time_zone(lambda: str(spark.conf.get("spark.sql.session.timeZone")))


class CheckedMethods:
    """Base class that applies ``check_arguments`` to all public methods."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, member in list(vars(cls).items()):
            if name.startswith("_") and name != "__init__":
                continue
            if isinstance(member, classmethod):
                setattr(cls, name, classmethod(check_arguments(member.__func__)))
            elif inspect.isfunction(member):
                setattr(cls, name, check_arguments(member))


def _check_of(annotation: object) -> tuple[tuple[str, Check], ...] | None:
    """Return the kinds that an annotation allows.

    None: the annotation has a type that other code checks.
    """
    if not isinstance(annotation, str):
        return None
    kinds: list[tuple[str, Check]] = []
    for part in _BETWEEN.split(annotation):
        if part.startswith("Literal["):
            continue
        if part not in _KINDS:
            return None
        kinds.append(_KINDS[part])
    return tuple(kinds) or None


def _shown(name: str, value: object) -> str:
    """Return a value for an error message.

    Options may be secrets: only their type is shown.
    """
    if name.endswith("options"):
        return f"a value of type {type(value).__name__}"
    text = repr(value)
    return f"{text[:60]}..." if len(text) > 60 else text
