"""Files of a scan that Spark's own Parquet reader can read.

The server selects files of the pinned snapshot that need no merge and have no deletion vector. The JVM reads them without a Python
worker; our reader reads the other files. A file is selected only if rows, types and values are certain to be the same.

Writers of Paimon tables differ in details: INT96 or INT64 timestamps, with or without a zone, lists of two or three levels. Spark reads
only columns of exactly the form below.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from fileindex.format.container import NGRAMS
from fileindex.predicate.required_texts import columns_required, required_texts
from fileindex.predicate.tree import (
    And,
    ColumnRef,
    Compare,
    ComputedPredicate,
    In,
    Leaf,
    Op,
    Or,
    Predicate,
    StartsWith,
    columns_of,
    computed_predicates,
    conjuncts,
    leaves,
)
from fileindex.query.top_n import RANGE_BITMAP
from lsm.parquet.expected_footer import INTEGER_WIDTHS, PHYSICAL_TYPES, ExpectedFooter
from lsm.parquet.fields import PhysicalType
from lsm.parquet.reader import ParquetDataFile
from lsm.read.row_group import may_have_retracts
from lsm.scan.plan import ScanPlan
from lsm.scan.split_units import units
from lsm.schema.evolution import SchemaMapping, is_same
from lsm.schema.parquet_schema import KIND_FIELD
from manifest.entry.data_file import DataFileMeta
from manifest.io.file_io import FileIO
from manifest.io.threads import map_in_threads
from manifest.schema.metadata_columns import metadata_names
from manifest.schema.table_schema import TableSchema
from manifest.storage.allowed_roots import allowed_roots
from manifest.storage.object_store import ObjectStoreFileIO
from manifest.storage.schemes import scheme_of
from manifest.store import FileStore
from manifest.types.data_type import DataField, DataType
from paimon_base.errors import InvalidArgument, PaimonError
from paimon_base.texts import count_text
from paimon_base.thresholds import thresholds
from pyspark_paimon.frames.spark_functions import quote_name, text_sql
from pyspark_paimon.frames.spark_types import spark_schema, spark_type
from pyspark_paimon.request.operation import OpenTable
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.spark.wire.native_plan import (
    NativeColumn,
    NativeGroup,
    NativePlan,
    result_text,
    source_text,
    widening_text,
)
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, ColumnType, Kind, Plain

_READ_DIFFERENTLY: Mapping[Kind, frozenset[int]] = {
    **dict.fromkeys(TIMESTAMPS, frozenset({PhysicalType.INT96})),
    Kind.DECIMAL: frozenset({PhysicalType.BYTE_ARRAY}),
    **dict.fromkeys(BINARIES, frozenset({PhysicalType.FIXED_LEN_BYTE_ARRAY})),
}
"""Physical types from which Spark's reader makes other values than ours, or none."""
_LEAVES = PHYSICAL_TYPES.keys() - {Kind.TIME, Kind.VARIANT, Kind.BLOB}
"""Kinds of leaves that Spark's reader supports."""
SPARK_STORES = "PYSPARK_PAIMON_SPARK_STORES"
"""Environment variable of a server. ``s3a``: Spark has ``hadoop-aws`` and reaches the same S3 stores as our reader."""
_SCHEMES = {"s3a": frozenset({"s3", "s3a"})}


def is_native(type_: DataType) -> bool:
    """Return whether Spark's own reader and ours give the same Spark type.

    >>> number = DataType(Kind.INT)
    >>> is_native(number), is_native(DataType(Kind.ARRAY, element=number)), is_native(DataType(Kind.MULTISET, element=number))
    (True, True, False)
    """
    # Everything that Spark reads from files is nullable. An expression corrects that for a column, but not inside of one.
    # Spark also skips row groups by minima and maxima of nested floats, which omit NaN.
    match type_.kind:
        case kind if kind in TIMESTAMPS:
            return type_.precision <= 6
        case kind if kind in _LEAVES:
            return True
        case Kind.ARRAY:
            return _is_native_part(type_.part("element"))
        case Kind.MAP:
            key = type_.part("key")
            return not key.is_nested and is_native(key) and _is_native_part(type_.part("value"))
        case Kind.ROW:
            inner = [field.type for field in type_.fields]
            return bool(inner) and all(_is_native_part(part) and not _has_floats(part) for part in inner)
        case _:
            return False


def _is_native_part(type_: DataType) -> bool:
    return type_.nullable and is_native(type_)


def _has_floats(type_: DataType) -> bool:
    return type_.kind in FLOATS or any(_has_floats(child) for child in type_.children)


class Footer:
    """Leaf columns in a footer (``pq.FileMetaData``)."""

    def __init__(self, metadata: Any) -> None:
        schema = metadata.schema
        self._leaves = {leaf.path: leaf for leaf in (schema.column(index) for index in range(metadata.num_columns))}
        tops = {path.partition(".")[0].lower() for path in self._leaves}
        self.is_unambiguous = len(tops) == len({path.partition(".")[0] for path in self._leaves})
        """Whether no two names differ only in case. Spark cannot distinguish such columns."""

    def has(self, field: DataField) -> bool:
        """Return whether Spark reads the file's column as its ``spark_type``."""
        leaves = ((self._leaves.get(path), type_) for path, type_ in _leaves(field.name, field.type))
        return all(leaf is not None and _fits(leaf, type_) for leaf, type_ in leaves)


def _leaves(path: str, type_: DataType) -> Iterator[tuple[str, DataType]]:
    match type_.kind:
        case Kind.ARRAY:
            yield from _leaves(f"{path}.list.element", type_.part("element"))
        case Kind.MAP:
            yield from _leaves(f"{path}.key_value.key", type_.part("key"))
            yield from _leaves(f"{path}.key_value.value", type_.part("value"))
        case Kind.ROW:
            for field in type_.fields:
                yield from _leaves(f"{path}.{field.name}", field.type)
        case _:
            yield path, type_


def _fits(leaf: Any, type_: DataType) -> bool:
    """Return whether a leaf has the physical and logical type of ``type_``."""
    physical_type = getattr(PhysicalType, leaf.physical_type)
    if physical_type not in PHYSICAL_TYPES[type_.kind] - _READ_DIFFERENTLY.get(type_.kind, frozenset()):
        return False
    logical: dict[str, Any] = json.loads(leaf.logical_type.to_json())
    name = logical.get("Type")
    match type_.kind:
        case Kind.DECIMAL:
            return name == "Decimal" and (logical["precision"], logical["scale"]) == (type_.precision, type_.scale)
        case kind if kind in TIMESTAMPS:
            zoned = type_.kind is Kind.TIMESTAMP_LTZ
            return name == "Timestamp" and logical["isAdjustedToUTC"] == zoned and logical["timeUnit"] in {"milliseconds", "microseconds"}
        case Kind.DATE:
            return name == "Date"
        case kind if kind in STRINGS:
            return name == "String"
        case kind if kind in INTEGERS:
            plain = name == "None" and kind in {Kind.INT, Kind.BIGINT}
            return plain or (name == "Int" and bool(logical["isSigned"]) and logical["bitWidth"] == INTEGER_WIDTHS[kind])
        case _:
            return name == "None"


def opens_in_spark(file_io: FileIO, path: str) -> bool:
    """Return whether Spark opens the same file at ``path`` as ``file_io``.

    That is so for a local file, and for a store in ``SPARK_STORES``. Raises ``InvalidArgument`` if the variable has another value.
    """
    if file_io.local_path(path) == path:
        return True
    named = {name for name in os.environ.get(SPARK_STORES, "").replace(",", " ").split() if name}
    if named - set(_SCHEMES):
        raise InvalidArgument(f"{SPARK_STORES} in the server's environment is '{os.environ[SPARK_STORES]}': set it to 's3a' or unset it")
    spark_schemes = {scheme for name in named for scheme in _SCHEMES[name]}
    return isinstance(file_io, ObjectStoreFileIO) and not file_io.options.values and scheme_of(path) in spark_schemes


_LEAST_SHARE = 0.5


"""Minimum share of the scan's bytes for which Spark's own reader is used."""


_THREADS = 8


_GLOB = frozenset("*?[]{}\\")
_MOST_VALUES = 100
"""Values of an IN list that Spark's reader compares with statistics."""


def native_plan(engine: OpenTable, request: ScanRequest) -> NativePlan:
    """Return the files of a scan that Spark can read.

    Without groups, our reader reads all files.

    Raises what planning the scan raises.
    """
    if not engine.reads_files:
        return NativePlan(why="system tables have no files")
    store, plan = engine.store(request.options, request.schema_id), engine.plan(request)
    readable = _readable_files(store, request, plan)
    if isinstance(readable, str):
        return NativePlan(why=readable, file_bytes=plan.file_size)
    return _answer(store, request, plan, readable)


def _readable_files(store: FileStore, request: ScanRequest, plan: ScanPlan) -> list[_Native] | str:
    """Return the files that Spark reads, or the reason why it reads none."""
    reason = _reason_against(store, request)
    if reason:
        return reason
    candidate_files = list(_candidates(store, plan))
    if not candidate_files or len(candidate_files) > thresholds.native_files:
        return (
            f"{len(candidate_files)} files need no merge" if candidate_files else "no file can be read without a merge or deletion vector"
        )
    readable = [file for file in map_in_threads(partial(_check, store, request.columns), candidate_files, _THREADS) if file is not None]
    if sum(file.size for file in readable) < _LEAST_SHARE * max(1, plan.file_size):
        return f"Spark can read {len(readable)} of {count_text(plan.file_count, 'file')}"
    return readable


@dataclass(frozen=True)
class _Candidate:
    """A data file with only current rows, apart from retracting ones."""

    path: str
    file: DataFileMeta


@dataclass(frozen=True)
class _Native:
    """A data file that Spark can read."""

    path: str
    size: int
    schema_id: int
    has_retracts: bool
    """Whether Spark has to filter out retracting rows."""


def _reason_against(store: FileStore, request: ScanRequest) -> str:
    """Return why Spark can read no file of the scan. "": it depends on the files."""
    if allowed_roots() is not None:
        return "the server restricts directories, which Spark's own reader would ignore"
    if request.incremental is not None or not request.columns or (request.order_by and request.limit is not None):
        return "changes, and the first rows of an order, are read by our own reader"
    if metadata_names(request.columns, store.schema):
        return "metadata columns are read by our own reader"
    for name in request.columns:
        type_ = store.schema.field(name).type
        if "." in name or not is_native(type_) or (type_.is_nested and not type_.nullable):
            return f"column '{name}' of type {type_}"
    if len({name.lower() for name in request.columns}) < len(request.columns):
        return "columns whose names differ only in case"
    on_values = not set(columns_of(request.predicate)) <= set(store.schema.partition_keys)
    if request.predicate is not None and on_values and (request.exact or finds_by_index(request.predicate, store.schema)):
        return "a filter on columns: our own reader decodes other columns only for matching rows"
    return ""


def _candidates(store: FileStore, plan: ScanPlan) -> Iterator[_Candidate]:
    """Yield the files that need no merge and have no deletion vector."""
    for unit in (unit for split in plan.splits for unit in units(split, store.schema)):
        if not unit.has_independent_files or unit.deletion_files is not None:
            continue
        file = unit.files[0]
        path = store.physical_files(unit.partition, unit.bucket, file)[0]
        if _is_path_for_spark(store, path):
            yield _Candidate(path, file)


def _is_path_for_spark(store: FileStore, path: str) -> bool:
    """Return whether Spark reads exactly this file for the path."""
    # Spark skips names that begin with "_" or ".", and expands patterns.
    name = PurePosixPath(path).name
    return name.endswith(".parquet") and name[0] not in "_." and not _GLOB & set(path) and opens_in_spark(store.storage, path)


def _check(store: FileStore, column_names: Sequence[str], candidate: _Candidate) -> _Native | None:
    """Return the file if Spark can read it by its footer.

    None: our own reader has to.
    """
    file = candidate.file
    mapping = _mapping(store, file.schema_id)
    if any(_expression(mapping, name) is None for name in column_names):
        return None
    expected = ExpectedFooter(file, store.schemas.get(file.schema_id), store.partition.names)
    try:
        with ParquetDataFile(store.file_io, candidate.path, expected) as data:
            footer = Footer(data.metadata)
            sources = [source for name in column_names if (source := mapping.sources[name]) is not None]
            has_key = store.schema.kind.has_row_kinds
            if not sources or not footer.is_unambiguous or not all(map(footer.has, [*sources, *([KIND_FIELD] if has_key else [])])):
                return None
            return _Native(candidate.path, file.file_size, file.schema_id, has_key and may_have_retracts(data, file.delete_row_count))
    except PaimonError:
        # The file is damaged: our own reader raises the error.
        return None


def _mapping(store: FileStore, schema_id: int) -> SchemaMapping:
    return SchemaMapping.of(store.schema.fields, store.schemas.get(schema_id).fields, schema_id)


def _expression(mapping: SchemaMapping, name: str) -> str | None:
    """Return Spark SQL that reads a table's column from a file.

    None: Spark may convert it differently from us.
    """
    read, source = mapping.read[name].type, mapping.sources[name]
    if source is None:
        is_simple = read.nullable and not read.is_nested
        return f"CAST(NULL AS {spark_type(read).simpleString()})" if is_simple else None
    if "." in source.name or not is_native(source.type):
        return None
    text = source_text(source.name, source.type)
    if _nullable(source.type) == _nullable(read) or is_same(source.type, read):
        return text
    return widening_text(text, source.type, read)


def _nullable(type_: DataType) -> DataType:
    return type_.with_nullable(nullable=True)


def _answer(store: FileStore, request: ScanRequest, plan: ScanPlan, files: Sequence[_Native]) -> NativePlan:
    groups: dict[tuple[int, bool], list[str]] = {}
    for file in files:
        groups.setdefault((file.schema_id, file.has_retracts), []).append(file.path)
    fields = [store.schema.field(name) for name in request.columns]
    return NativePlan(
        groups=tuple(_group(store, request, schema_id, paths, has_retracts=kinds) for (schema_id, kinds), paths in groups.items()),
        columns=tuple(NativeColumn(name=f.name, text=result_text(f.name, f.type), comment=f.description) for f in fields),
        has_rest=len(files) < plan.file_count,
        file_bytes=plan.file_size,
    )


def finds_by_index(predicate: Predicate, schema: TableSchema) -> bool:
    """Return whether the key or an index finds the rows of one of the filter's terms.

    >>> from manifest.schema.validation import build_schema
    >>> schema = build_schema("id INT, s STRING", options={"file-index.bitmap.columns": "id"})
    >>> finds_by_index(Compare(ColumnRef("id"), Op.EQ, 1), schema), finds_by_index(Compare(ColumnRef("s"), Op.EQ, "a"), schema)
    (True, False)
    """
    indexes = {(str(spec.column), spec.index_type) for spec in schema.file_index.specs}
    indexed_columns = {*schema.primary_keys, *(column for column, _ in indexes)}

    def is_found(leaf: Leaf) -> bool:
        selects = isinstance(leaf, In | StartsWith) or (isinstance(leaf, Compare) and leaf.op is Op.EQ)
        return (str(leaf.column), RANGE_BITMAP) in indexes or (str(leaf.column) in indexed_columns and selects)

    def is_searched(computed: ComputedPredicate) -> bool:
        required = required_texts(computed)
        return required is not None and all((str(column), NGRAMS) in indexes for column in columns_required(required))

    def is_served(term: Predicate) -> bool:
        ends, computed = leaves(term), computed_predicates(term)
        return bool(ends or computed) and all(map(is_found, ends)) and all(map(is_searched, computed))

    return any(map(is_served, conjuncts(predicate)))


def filter_text(predicate: Predicate, columns: Mapping[str, str], types: Mapping[str, ColumnType]) -> str | None:
    """Return Spark SQL that is true for all rows that match ``predicate``, for Spark to skip row groups.

    ``columns``: SQL expressions by column. None: no term has a simple text.

    >>> types = {"n": ColumnType(Kind.INT), "s": ColumnType(Kind.VARCHAR)}
    >>> filter_text(And((Compare(ColumnRef("n"), Op.GT, 5), StartsWith(ColumnRef("s"), "a"))), {"n": "`n`"}, types)
    '(`n` > 5)'
    """
    match predicate:
        case And(children):
            child_texts = [text for child in children if (text := filter_text(child, columns, types)) is not None]
            return " AND ".join(f"({text})" for text in child_texts) or None
        case Or(children) if children:
            texts = [filter_text(child, columns, types) for child in children]
            return None if None in texts else " OR ".join(f"({text})" for text in texts)
        case Compare(column, op, value) if (sides := _sides(column, (value,), columns, types)) is not None:
            return f"{sides[0]} {op.value} {sides[1][0]}"
        case In(column, values, False) if len(values) <= _MOST_VALUES and (sides := _sides(column, values, columns, types)) is not None:
            return f"{sides[0]} IN ({', '.join(sides[1])})"
    return None


def _sides(
    column: ColumnRef, values: Iterable[Plain], columns: Mapping[str, str], types: Mapping[str, ColumnType]
) -> tuple[str, list[str]] | None:
    """Return column and values as Spark SQL. None: their types have no simple literals."""
    if column.key is not None or column.name not in columns:
        return None
    match types[column.name].kind:
        case kind if kind in INTEGERS:
            return columns[column.name], [str(value) for value in values]
        case Kind.VARCHAR:
            return columns[column.name], [text_sql(str(value)) for value in values]
        case Kind.DATE:
            return columns[column.name], [f"date_from_unix_date({value!s})" for value in values]
        case _:
            return None


def _group(store: FileStore, request: ScanRequest, schema_id: int, paths: Sequence[str], *, has_retracts: bool) -> NativeGroup:
    mapping = _mapping(store, schema_id)
    expressions = {name: text for name in request.columns if (text := _expression(mapping, name)) is not None}
    sought = None if request.predicate is None else filter_text(request.predicate, expressions, store.schema.column_types)
    kinds = f"{quote_name(KIND_FIELD.name)} IN (0, 2)" if has_retracts else None
    conditions = [text for text in (kinds, sought) if text is not None]
    source_fields = [source for name in request.columns if (source := mapping.sources[name]) is not None]
    sources = [DataField(source.id, source.name, _nullable(source.type)) for source in source_fields]
    return NativeGroup(
        files=tuple(paths),
        file_schema=spark_schema([*sources, *([KIND_FIELD] if has_retracts else [])]).json(),
        condition=" AND ".join(f"({text})" for text in conditions) if len(conditions) > 1 else next(iter(conditions), None),
        columns=tuple(f"{expressions[name]} AS {quote_name(name)}" for name in request.columns),
    )
