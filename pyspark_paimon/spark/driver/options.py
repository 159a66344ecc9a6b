"""Options of ``spark.read``, ``df.write`` and SQL.

The data source receives them with lower-case keys and text values.

Spark passes no options when SQL selects from a catalog table (``CREATE TABLE t USING paimon OPTIONS (path ...)``).
It passes only the stored schema, so the options are stored as metadata of the schema's columns.
An INSERT passes the metadata of the inserted rows' columns, which may belong to another table. There, only options count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from manifest.io.paths import with_branch
from manifest.options.known_keys import RIGHTS
from manifest.options.support import check_call, check_settable
from manifest.snapshot.commit_info import check_properties
from manifest.storage.schemes import scheme_of
from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon.jobs.incremental import MODES, Point
from pyspark_paimon.request.requests import IncrementalModeName, TravelRequest
from pyspark_paimon.request.scan_mode import value_of_place

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PATH = "path"
BRANCH_OPTION = "branch"
COLUMNS = "columns"
FILTER = "filter"
DYNAMIC_OVERWRITE = "dynamic-partition-overwrite"
OVERWRITE_PARTITION = "overwrite-partition"
REPLACE_WHERE = "replacewhere"  # name in Delta, in lower case
PRIMARY_KEY, PARTITION = "primary-key", "partition"
"""Options with the keys of a table that a write creates if the path has none: columns, separated by commas."""
MERGE_SCHEMA = "mergeschema"
"""Delta's and Paimon's short name of ``write.merge-schema``, in lower case."""
MISSING = "missing"
"""Option: columns that the rows leave out are set to ``null``, or the write is refused."""
COMMIT_PROPERTY = "commit.property."
"""Prefix of options that are properties of the snapshot."""
SPARK_OVERWRITE_MODE = "partitionoverwritemode"  # name in Spark's own sources, in lower case
_TRAVEL = {
    "scan.snapshot-id": "snapshot_id",
    "scan.tag-name": "tag",
    "scan.timestamp-millis": "timestamp_millis",
    "scan.timestamp": "timestamp_millis",
    "scan.version": "version",
}
_BETWEEN, _BETWEEN_MODE = "incremental-between", "incremental-between-scan-mode"
_READ = frozenset({PATH, BRANCH_OPTION, COLUMNS, FILTER, *_TRAVEL, _BETWEEN, _BETWEEN_MODE})
_ALSO = {"versionasof": "scan.version", "timestampasof": "scan.timestamp"}
"""Options of other sources, in lower case, that have the same meaning."""
_METADATA = "paimon.options"
_WRITE = frozenset({PATH, BRANCH_OPTION, DYNAMIC_OVERWRITE, MERGE_SCHEMA, MISSING})
_CATALOG = "provider"  # an option only while Spark's catalog creates or loads a table
_SPARKS = frozenset({"owner", "location", "comment", "external", "is_managed_location", _CATALOG})
"""Properties of Spark's catalog; some are also names of Paimon options."""
_OPTION = "option."  # Spark repeats entries of OPTIONS with this prefix, but not table properties
_NO_PATH = (
    "format 'paimon' needs the table's path, which Spark does not pass for INSERT, CREATE TABLE AS SELECT, insertInto and saveAsTable: "
    "write INSERT INTO t WITH (path = '...') ..., or insert into a temporary view USING paimon OPTIONS (path '...'); with DataFrames use "
    ".save(path)"
)
_NO_PATH_KEPT = (
    "Spark's catalog does not keep the path of this table, because it was created with a list of columns, AS SELECT or by saveAsTable: "
    "DROP TABLE it, then CREATE TABLE t USING paimon OPTIONS (path '...') without columns, for a table of Table.create; "
    "or read it by SELECT ... FROM t WITH (path = '...')"
)


def table_path(options: Mapping[str, str]) -> str:
    """Return the path of the table or its branch.

    Option ``branch`` selects the branch. Raises ``InvalidArgument`` if Spark passed no path, or a relative one.
    """
    path = options.get(PATH)
    if not path:
        raise InvalidArgument(_NO_PATH)
    if scheme_of(path) is None and not Path(path).is_absolute():
        # Spark's processes run in a temporary folder of the server, which is removed with its tables.
        raise InvalidArgument(f"path '{path}' is relative to a temporary folder of Spark's server: give an absolute path or a URI")
    return with_branch(path, options[BRANCH_OPTION]) if BRANCH_OPTION in options else path


def is_catalog_request(options: Mapping[str, str]) -> bool:
    """Return whether Spark's catalog creates or loads a table."""
    return _CATALOG in options


def has_stored_options(schema: StructType) -> bool:
    """Return whether the columns come from Spark's catalog."""
    return any(_METADATA in (field.metadata or {}) for field in schema.fields)


def stored_options(schema: StructType) -> dict[str, str] | None:
    """Return the options stored in a catalog table's columns.

    None: the columns do not come from Spark's catalog.
    """
    all_options = [json.loads(field.metadata[_METADATA]) for field in schema.fields if _METADATA in (field.metadata or {})]
    return all_options[0] if all_options else None


def properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return the TBLPROPERTIES of a CREATE TABLE."""
    reader_options = _READ | _SPARKS
    return {
        key: value for key, value in options.items() if not (key in reader_options or key.startswith(_OPTION) or _OPTION + key in options)
    }


def read_options(options: Mapping[str, str], schema: StructType | None = None) -> dict[str, str]:
    """Return the options of a read.

    ``schema`` may contain the options of a catalog table. Options of the query override them. ``versionAsOf`` and ``timestampAsOf``
    become ``scan.version`` and ``scan.timestamp``.

    Raises ``UnsupportedOption`` for an unknown key, unless it is a property of a catalog table.
    Raises ``InvalidArgument`` if ``schema`` has columns, but neither it nor the options contain a path.
    """
    stored: dict[str, str] = {}
    if schema is not None and schema.fields and not options.get(PATH):
        if not has_stored_options(schema):
            raise InvalidArgument(_NO_PATH_KEPT)
        stored = next(json.loads(field.metadata[_METADATA]) for field in schema.fields if _METADATA in (field.metadata or {}))
    reader_options = {key: value for key, value in options.items() if key in _READ or _CATALOG not in options or _OPTION + key in options}
    for key in [key for key in reader_options if key.lower() in _ALSO]:
        also = _ALSO[key.lower()]
        if also in reader_options:
            raise InvalidArgument(f"give only one of {key}, {also}")
        reader_options[also] = reader_options.pop(key)
    check_settable(table_options(reader_options))
    if rights := RIGHTS.intersection(reader_options):
        raise UnsupportedOption(min(rights), "is an option of the whole table, not of one read")
    return stored | reader_options


def table_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the read options that are table options.

    They apply to this read only.
    """
    return {key: value for key, value in options.items() if key not in _READ}


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Add the read options to the metadata of ``schema``.

    Only if Spark's catalog asks. Otherwise ``schema`` is returned unchanged.
    """
    if _CATALOG not in options:
        return schema
    for field in schema.fields:
        field.metadata = {**(field.metadata or {}), _METADATA: json.dumps(read_options(options), sort_keys=True)}
    return schema


def travel(options: Mapping[str, str]) -> TravelRequest:
    """Return the snapshot that the options select.

    Raises ``InvalidArgument`` for more than one of them, or for an invalid number.

    >>> travel({"scan.snapshot-id": "3"}).snapshot_id
    3
    >>> travel({"scan.version": "v1"}).version, travel({"scan.timestamp": "1970-01-01 00:00:01+00:00"}).timestamp_millis
    ('v1', 1000)
    """
    places = [key for key in _TRAVEL if key in options]
    if len(places) > 1:
        raise InvalidArgument(f"give only one of {', '.join(_TRAVEL)}; set are {', '.join(places)}")
    return TravelRequest.model_validate({_TRAVEL[key]: value_of_place(key, options[key]) for key in places})


def between(options: Mapping[str, str]) -> tuple[tuple[Point, Point], IncrementalModeName | None] | None:
    """Return the points and the mode of ``incremental-between``.

    Points are snapshot ids or tag names. Mode None: ``auto``. Result None: the option is not set.
    Raises ``InvalidArgument`` for invalid values.

    >>> between({"incremental-between": "3, v2", "incremental-between-scan-mode": "diff"})
    ((3, 'v2'), 'diff')
    """
    mode = options.get(_BETWEEN_MODE, "auto").strip().lower()
    if mode not in {"auto", *MODES}:
        raise InvalidArgument(f"{_BETWEEN_MODE} must be one of auto, {', '.join(MODES)}, not '{mode}'")
    named_mode = next((mode_name for mode_name in MODES if mode_name == mode), None)
    if _BETWEEN not in options:
        return None
    names = [name.strip() for name in options[_BETWEEN].split(",")]
    if len(names) != 2 or not all(names):
        raise InvalidArgument(f"{_BETWEEN} is '{options[_BETWEEN]}': give two snapshots or tags, like '3,7'")
    if any(option in options for option in _TRAVEL):
        raise InvalidArgument(f"{_BETWEEN} cannot be combined with {', '.join(_TRAVEL)}")
    start, end = (int(name) if name.isdecimal() else name for name in names)
    return (start, end), named_mode


def key_columns(options: Mapping[str, str], key: str) -> tuple[str, ...]:
    """Return the columns that ``primary-key`` or ``partition`` names.

    >>> key_columns({"primary-key": "id, day"}, "primary-key"), key_columns({"primary-key": ""}, "primary-key")
    (('id', 'day'), ())
    """
    return tuple(name.strip() for name in options.get(key, "").split(",") if name.strip())


def columns(options: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the columns that the option ``columns`` names.

    The option is comma separated. None: all columns.

    >>> columns({"columns": "id, city"})
    ('id', 'city')
    """
    text = options.get(COLUMNS)
    return None if text is None else tuple(name.strip() for name in text.split(","))


def flag(options: Mapping[str, str], key: str) -> bool:
    """Return a boolean option, False if absent.

    Raises ``InvalidArgument`` for other values than true and false.

    >>> flag({"dynamic-partition-overwrite": "True"}, "dynamic-partition-overwrite")
    True
    """
    text = options.get(key, "false").lower()
    if text not in {"true", "false"}:
        raise InvalidArgument(f"option '{key}' is true or false, not {text!r}")
    return text == "true"


def own_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a write that are table options, unchecked."""
    writer_options = _WRITE | {PRIMARY_KEY, PARTITION}
    return {key: value for key, value in options.items() if not (key in writer_options or key.startswith(COMMIT_PROPERTY))}


def write_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the table options of one write.

    Omits the options of the data source. Raises ``UnsupportedOption`` for options of a read.

    >>> write_options({"path": "/t", "filter": "id = 1"})
    Traceback (most recent call last):
    pyspark_paimon.UnsupportedOption: option 'filter': is an option of reads: remove it from the write
    """
    for key in sorted(_READ - _WRITE):
        if key in options:
            raise UnsupportedOption(key, "is an option of reads: remove it from the write")
    call_options = own_options(options)
    if MERGE_SCHEMA in options:
        call_options["write.merge-schema"] = str(flag(options, MERGE_SCHEMA)).lower()
    check_call(call_options)
    return call_options


def missing_columns(options: Mapping[str, str]) -> Literal["refuse", "null"]:
    """Return how a write treats missing columns.

    Raises ``InvalidArgument`` for other values than refuse and null.

    >>> missing_columns({"missing": "NULL"})
    'null'
    """
    text = options.get(MISSING, "refuse").lower()
    if text == "keep":
        raise InvalidArgument(f"option '{MISSING}' is 'keep', which merges rows: call Table.write(df, missing='keep'), or MERGE INTO")
    if text not in {"refuse", "null"}:
        raise InvalidArgument(f"option '{MISSING}' is refuse or null, not {text!r}")
    return "null" if text == "null" else "refuse"


def properties_of_commit(options: Mapping[str, str]) -> dict[str, str]:
    """Return the user's properties of the snapshot.

    >>> properties_of_commit({"path": "/t", "commit.property.ticket": "DATA-7"})
    {'ticket': 'DATA-7'}
    """
    commit_values = {key.removeprefix(COMMIT_PROPERTY): value for key, value in options.items() if key.startswith(COMMIT_PROPERTY)}
    return check_properties(commit_values)
