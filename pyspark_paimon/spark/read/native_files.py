"""Which files of a scan Spark's own Parquet reader can read, and how; decided on the server.

A file whose rows are all current and live needs no merging, so the Parquet reader of the JVM can read it without a Python
worker. The answer names the files of a pinned snapshot; whatever else the scan has to read stays with our own reader, which
leaves those files out. Files are given to Spark only where rows, types and values are certain to be the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from fileindex.base.errors import InvalidArgument, PaimonError
from fileindex.base.thresholds import thresholds
from fileindex.predicate.tree import columns_of
from lsm.parquet.footer_promise import FooterPromise
from lsm.parquet.reader import ParquetDataFile
from lsm.read.row_group import may_have_retracts
from lsm.scan.plan import ScanPlan
from lsm.scan.split_units import units
from lsm.schema.evolution import SchemaMapping, is_same
from lsm.schema.parquet_schema import KIND_FIELD
from manifest.entry.data_file import DataFileMeta
from manifest.io.file_io import FileIO
from manifest.io.threads import WorkerPool
from manifest.storage.allowed_roots import allowed_roots
from manifest.storage.object_store import ObjectStoreFileIO
from manifest.storage.schemes import scheme_of
from manifest.store import FileStore
from manifest.types.data_type import DataField, DataType
from pyspark_paimon.frames.spark_types import spark_schema, spark_type
from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.request.backend import ScanRequest
from pyspark_paimon.spark.read.native_footer import Footer, is_native
from pyspark_paimon.spark.wire.native_plan import NativeColumn, NativeGroup, NativePlan
from pyspark_paimon.spark.wire.native_sql import quoted_text, result_text, source_text, widening_text

SPARK_STORES = "PYSPARK_PAIMON_SPARK_STORES"
"""Of a server's environment: ``s3a`` where Spark has ``hadoop-aws`` and reaches by it what our reader reaches by the environment."""
_SCHEMES = {"s3a": frozenset({"s3", "s3a"})}


def is_of_spark(file_io: FileIO, path: str) -> bool:
    """Whether Spark opens the very file at ``path`` that ``file_io`` does: a local one, or one of a store that it reaches itself.

    Raises ``InvalidArgument`` if the server's environment names another scheme.
    """
    if file_io.local_path(path) == path:
        return True
    named = {name for name in os.environ.get(SPARK_STORES, "").replace(",", " ").split() if name}
    if named - set(_SCHEMES):
        raise InvalidArgument(f"{SPARK_STORES} of the server's environment is 's3a' or nothing")
    known = {scheme for name in named for scheme in _SCHEMES[name]}
    return isinstance(file_io, ObjectStoreFileIO) and not file_io.options.values and scheme_of(path) in known


_LEAST_SHARE = 0.5
"""Less than that share of the bytes is not worth a second way of reading."""
_THREADS = 8
_GLOB = frozenset("*?[]{}\\")


def native_plan(backend: LocalBackend, request: ScanRequest) -> NativePlan:
    """The files of a scan that Spark can read by itself; no groups, and why, if our own reader is to read all.

    Raises what planning the scan raises.
    """
    if not backend.reads_files:
        return NativePlan(why="a system table is in no file")
    store = backend.store(request.options, request.schema_id)
    reason = _why_not(store, request)
    if reason:
        return NativePlan(why=reason)
    plan = backend.plan(request)
    found = list(_alone(store, plan))
    if not found or len(found) > thresholds.native_files:
        return NativePlan(why=f"{len(found)} files stand alone" if found else "no file stands alone")
    readable = [file for file in _checked(store, request, found) if file is not None]
    if sum(file.size for file in readable) < _LEAST_SHARE * max(1, plan.file_size):
        return NativePlan(why=f"{len(readable)} of {plan.file_count} files can be read by Spark itself")
    return _answer(store, request, plan, readable)


@dataclass(frozen=True)
class _Alone:
    """A data file whose rows all are in the result, retracting ones apart."""

    path: str
    file: DataFileMeta


@dataclass(frozen=True)
class _Native:
    """A file that Spark can read: the columns as its schema has them, and whether rows that retract must be left out."""

    path: str
    size: int
    schema_id: int
    has_retracts: bool


def _why_not(store: FileStore, request: ScanRequest) -> str:
    """Why nothing of the scan can go the short way; "" if that depends on the files."""
    if allowed_roots() is not None:
        return "the server allows certain directories only, which Spark's own reader would not heed"
    if request.incremental is not None or not request.columns or (request.order_by and request.limit is not None):
        return "changes, and the first rows of an order, are read by our own reader"
    for name in request.columns:
        type_ = store.schema.field(name).type
        if "." in name or not is_native(type_) or (type_.is_nested and not type_.nullable):
            return f"column '{name}' of type {type_}"
    if len({name.lower() for name in request.columns}) < len(request.columns):
        return "names that differ in case only"
    if not set(columns_of(request.predicate)) <= set(store.schema.partition_keys):
        return "a filter on columns: our own reader decodes the rest of a row only where it is true"
    return ""


def _alone(store: FileStore, plan: ScanPlan) -> Iterator[_Alone]:
    """The files that need neither merging nor a deletion vector."""
    for unit in (unit for split in plan.splits for unit in units(split, store.schema)):
        if not unit.has_independent_files or unit.deletion_files is not None:
            continue
        file = unit.files[0]
        path = store.physical_files(unit.partition, unit.bucket, file)[0]
        if _is_plain(store, path):
            yield _Alone(path, file)


def _is_plain(store: FileStore, path: str) -> bool:
    """Whether Spark takes the path for this very file: one that it reaches, no pattern, and no name that it takes for hidden."""
    name = PurePosixPath(path).name
    return name.endswith(".parquet") and name[0] not in "_." and not _GLOB & set(path) and is_of_spark(store.file_io, path)


def _checked(store: FileStore, request: ScanRequest, files: Sequence[_Alone]) -> list[_Native | None]:
    with WorkerPool(min(_THREADS, len(files))) as threads:
        return list(threads.map(partial(_check, store, request.columns), files))


def _check(store: FileStore, wanted: Sequence[str], alone: _Alone) -> _Native | None:
    """What the file's footer says of reading it; None if our own reader must, or the file is broken and it shall say so."""
    file = alone.file
    mapping = _mapping(store, file.schema_id)
    if any(_expression(mapping, name) is None for name in wanted):
        return None
    promise = FooterPromise(file, store.schemas.get(file.schema_id), store.partition.names)
    try:
        with ParquetDataFile(store.file_io, alone.path, promise) as data:
            footer = Footer(data.metadata)
            sources = [source for name in wanted if (source := mapping.sources[name]) is not None]
            has_key = store.schema.is_primary_key_table
            if not sources or not footer.is_unambiguous or not all(map(footer.holds, [*sources, *([KIND_FIELD] if has_key else [])])):
                return None
            return _Native(alone.path, file.file_size, file.schema_id, has_key and may_have_retracts(data, file.delete_row_count))
    except PaimonError:
        return None


def _mapping(store: FileStore, schema_id: int) -> SchemaMapping:
    return SchemaMapping.of(store.schema.fields, store.schemas.get(schema_id).fields, schema_id)


def _expression(mapping: SchemaMapping, name: str) -> str | None:
    """The column of a file's schema as the table's; None if it takes more than Spark and we surely do alike."""
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
    )


def _group(store: FileStore, request: ScanRequest, schema_id: int, paths: Sequence[str], *, has_retracts: bool) -> NativeGroup:
    mapping = _mapping(store, schema_id)
    found = [source for name in request.columns if (source := mapping.sources[name]) is not None]
    sources = [DataField(source.id, source.name, _nullable(source.type)) for source in found]
    return NativeGroup(
        files=tuple(paths),
        file_schema=spark_schema([*sources, *([KIND_FIELD] if has_retracts else [])]).json(),
        condition=f"{quoted_text(KIND_FIELD.name)} IN (0, 2)" if has_retracts else None,
        columns=tuple(f"{_expression(mapping, name)} AS {quoted_text(name)}" for name in request.columns),
    )


__all__ = ["SPARK_STORES", "is_of_spark", "native_plan"]
