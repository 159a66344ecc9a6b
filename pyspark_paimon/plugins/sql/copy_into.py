"""Statement COPY INTO: rows of CSV, JSON and Parquet files, read by Arrow in this process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, get_args

import pyarrow as pa
from pyarrow import csv, json, parquet

from lsm.arrow.csv_source import CsvSource
from lsm.rows_in.arrow import ArrowRows
from lsm.rows_in.json_rows import with_column_sets
from lsm.rows_in.policy import MissingColumns
from manifest.io.errors import CommitReplayed
from manifest.io.file_io import FileIO, FileStatus
from manifest.schema.table_schema import TableSchema
from manifest.storage.resolve import file_io_for
from paimon_base.errors import CorruptFile, InvalidArgument, PaimonError
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.plugins.sql.answers import frame_of_rows
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.text.words import TokenCursor, WrittenValue
from pyspark_paimon.results.results import WriteResult
from pyspark_paimon.table.table import Table

_ON_ERROR = ("ABORT_STATEMENT", "CONTINUE", "SKIP_FILE")
_PLAIN_JSON = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string, pa.types.is_nested)
"""Types that Arrow reads from JSON. Others are read as texts, and cast."""
_WIDEST = pa.decimal256(76, 38)
"""Type of decimals that are numbers in JSON: the writer casts them, and reports those that do not fit."""
_BLOCK = 1 << 24
"""Bytes that a row may have."""
_SUFFIXES = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4", "br": "brotli"}
"""Codecs of COMPRESSION = AUTO by the end of a file's name."""
Option = WrittenValue | list[WrittenValue]


@dataclass
class _Copy:
    """A parsed statement.

    columns: Columns of the table that the files have, in order.
    """

    table: Table
    columns: list[str]
    path: str = ""
    form: dict[str, Option] = field(default_factory=dict)
    pattern: re.Pattern[str] = re.compile(".*")
    force: bool = False
    on_error: str = _ON_ERROR[0]
    missing: MissingColumns = "null"

    @property
    def kind(self) -> str:
        """Type of the files, in upper case."""
        return str(self.form.get("TYPE", "")).upper()

    @property
    def schema(self) -> TableSchema:
        return self.table.table_schema


def copy_into(names: KnownTables, words: TokenCursor) -> Any:
    """Run COPY INTO; None for a table that is not Paimon's.

    Syntax: ``COPY INTO t [(columns)] FROM 'path' FILE_FORMAT = (TYPE = CSV | JSON | PARQUET, ...) [PATTERN = 'regex'] [FORCE = TRUE]
    [ON_ERROR = ABORT_STATEMENT | CONTINUE | SKIP_FILE] [MISSING = NULL | KEEP | REFUSE]``.
    Each file is a commit of its own, whose id has the file's path, size and time: a file is loaded once, or again with ``FORCE``.
    """
    if words.peek() == "":
        raise InvalidArgument(
            "COPY INTO 'path' is not supported: write files by df.write.format('csv').save(path), or by the command 'scan TABLE --output FILE'"
        )
    table = names.find(words.name())
    if table is None:
        return None
    schema = table.table_schema
    listed = [resolve(words.part(), schema.column_types) for _ in words.items()] if words.peek() == "(" else list(schema.names)
    copy = _Copy(table, listed)
    words.expect("FROM")
    copy.path = str(words.literal())
    _read_clauses(copy, words)
    file_io, root = file_io_for(copy.path)
    rows = [_load(copy, file_io, path, status) for path, status in _files(file_io, root, copy.pattern)]
    counts = ("rows_loaded", "rows_parsed", "errors_seen")
    types = {"file_name": pa.string(), "status": pa.string(), **dict.fromkeys(counts, pa.int64()), "first_error": pa.string()}
    return frame_of_rows(names.spark, pa.Table.from_pylist(rows, pa.schema(list(types.items()))))


def _read_clauses(copy: _Copy, words: TokenCursor) -> None:
    while not words.done:
        if words.take("FILE_FORMAT"):
            words.expect("=")
            copy.form = dict(_options(words))
        elif words.take("PATTERN"):
            words.expect("=")
            try:
                copy.pattern = re.compile(str(words.literal()))
            except re.error as error:
                raise InvalidArgument(f"COPY INTO: PATTERN is not a regular expression: {error}") from error
        elif words.take("FORCE"):
            words.expect("=")
            copy.force = _flag("FORCE", words.literal())
        elif words.take("MISSING"):
            words.expect("=")
            value = words.literal()
            missing = "null" if value is None else str(value).lower()
            if missing not in get_args(MissingColumns):
                raise InvalidArgument(f"COPY INTO: MISSING must be one of NULL, KEEP, REFUSE, not {value}")
            copy.missing = cast("MissingColumns", missing)
        else:
            words.expect("ON_ERROR")
            words.expect("=")
            copy.on_error = str(words.literal()).upper()
            if copy.on_error not in _ON_ERROR:
                raise InvalidArgument(f"COPY INTO: ON_ERROR must be one of {', '.join(_ON_ERROR)}, not {copy.on_error}")
    kind = copy.kind
    if kind not in _FORMATS:
        raise InvalidArgument(f"COPY INTO: FILE_FORMAT needs TYPE = {', '.join(_FORMATS)}, not '{kind}'")
    if unknown := sorted(copy.form.keys() - {"TYPE", *_FORMATS[kind].options}):
        raise InvalidArgument(
            f"COPY INTO: FILE_FORMAT of {kind} has no option {unknown[0]}; it takes TYPE, {', '.join(_FORMATS[kind].options)}"
        )


def _options(words: TokenCursor) -> Iterator[tuple[str, Option]]:
    for _ in words.items():
        name = words.part().upper()
        words.expect("=")
        yield name, [words.literal() for _ in words.items()] if words.peek() == "(" else words.literal()


def _flag(name: str, value: Option) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(f"COPY INTO: {name} must be TRUE or FALSE, not {value!r}")
    return value


def _files(file_io: FileIO, root: str, pattern: re.Pattern[str]) -> list[tuple[str, FileStatus]]:
    """Return the files of a directory, or one file. Names with ``.`` or ``_`` in front are hidden."""
    folder, _, name = root.rpartition("/")
    listed = [(f"{root}/{status.name}", status) for status in file_io.list(root)] if file_io.is_directory(root) else []
    if not listed:
        listed = [(root, status) for status in file_io.list(folder) if status.name == name]
    if not listed:
        raise InvalidArgument(f"COPY INTO: there is no file or directory {root}")
    files = [(path, status) for path, status in listed if not status.is_dir and not status.name.startswith((".", "_"))]
    return sorted([(path, status) for path, status in files if pattern.fullmatch(status.name)], key=lambda file: file[0])


def _load(copy: _Copy, file_io: FileIO, path: str, status: FileStatus) -> dict[str, Any]:
    """Write the rows of a file, and return the row that reports it."""
    identity = hashlib.sha256("\n".join([path, str(status.size), str(status.mtime_ms)]).encode()).hexdigest()[:32]
    skipped: list[str] = []
    row: dict[str, Any] = {"file_name": status.name, "rows_loaded": 0, "rows_parsed": 0, "errors_seen": 0, "first_error": None}
    if not status.size and copy.kind != "PARQUET":
        return {**row, "status": "LOADED"}

    def write(commit_id: str | None) -> WriteResult:
        skipped.clear()
        with file_io.open_input(path) as stream:
            return copy.table.write(
                _FORMATS[copy.kind].read(copy, stream, path, skipped),
                cast=True,
                errors="collect" if copy.on_error == "CONTINUE" else "raise",
                missing=copy.missing,
                commit_id=commit_id,
            )

    try:
        try:
            result = write(f"copy-into-{identity}")
        except CommitReplayed as error:
            if not copy.force:
                return {**row, "status": "SKIPPED", "first_error": str(error)}
            result = write(None)
        else:
            result = write(None) if result.replayed and copy.force else result
    except (PaimonError, pa.ArrowException) as error:
        if copy.on_error != "SKIP_FILE":
            raise (
                error if isinstance(error, PaimonError) else CorruptFile(path, f"cannot be read ({error}); no row of it was loaded")
            ) from error
        return {**row, "status": "LOAD_FAILED", "errors_seen": 1, "first_error": str(error)}
    if result.replayed:
        return {**row, "status": "SKIPPED"}
    rejected = [] if result.rejected is None else result.rejected["_error"].to_pylist()
    errors = [*skipped, *rejected]
    counted = {"rows_loaded": result.rows, "rows_parsed": result.rows + len(errors), "errors_seen": len(errors)}
    return {**row, **counted, "status": "PARTIALLY_LOADED" if errors else "LOADED", "first_error": next(iter(errors), None)}


def _nulls(form: Mapping[str, Option]) -> list[str]:
    texts = form.get("NULL_IF", [])
    nulls = [str(text) for text in (texts if isinstance(texts, list) else [texts])]
    return [*nulls, ""] if _flag("EMPTY_FIELD_AS_NULL", form.get("EMPTY_FIELD_AS_NULL", False)) else nulls


class _Decompressed:
    """A stream whose file may not be of its codec."""

    closed = False

    def __init__(self, path: str, stream: Any, codec: str) -> None:
        self._path, self._stream = path, pa.CompressedInputStream(stream, codec)

    def read(self, size: int = -1) -> bytes:
        """Read bytes. Raises ``CorruptFile`` if they cannot be decompressed."""
        try:
            return bytes(self._stream.read(None if size < 0 else size))
        except OSError as error:
            raise CorruptFile(self._path, f"cannot be read ({error}); no row of it was loaded") from error

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


def _decompressed(form: Mapping[str, Option], stream: Any, path: str) -> Any:
    codec = str(form.get("COMPRESSION", "NONE")).lower()
    if codec == "auto":
        codec = _SUFFIXES.get(path.rpartition(".")[2].lower(), "none")
    if codec == "none":
        return stream
    try:
        return _Decompressed(path, stream, codec)
    except ValueError as error:
        raise InvalidArgument(
            f"COPY INTO: COMPRESSION must be AUTO, NONE, {', '.join(map(str.upper, _SUFFIXES.values()))}, not {codec.upper()}"
        ) from error


def _character(form: Mapping[str, Option], name: str, default: str) -> str:
    text = form.get(name, default)
    if not isinstance(text, str) or len(text) != 1:
        raise InvalidArgument(f"COPY INTO: {name} must be one character, not {text!r}")
    return text


def _read_csv(copy: _Copy, stream: Any, path: str, skipped: list[str]) -> pa.RecordBatchReader:
    form = copy.form
    header = form.get("SKIP_HEADER", 0)
    if header not in (0, 1):
        raise InvalidArgument(f"COPY INTO: SKIP_HEADER must be 0 or 1, not {header}")

    def invalid(row: Any) -> str:
        text = f"{path}: a row has {row.actual_columns} columns instead of {row.expected_columns}: {row.text[:80]}"
        if copy.on_error != "CONTINUE":
            return "error"
        skipped.append(text)
        return "skip"

    nulls = _nulls(form)
    return csv.open_csv(
        CsvSource(_decompressed(form, stream, path)),
        csv.ReadOptions(column_names=copy.columns, skip_rows=int(header), use_threads=False, block_size=_BLOCK),
        csv.ParseOptions(
            delimiter=_character(form, "FIELD_DELIMITER", ","),
            quote_char=_character(form, "QUOTE", '"'),
            escape_char=_character(form, "ESCAPE", "\\"),
            newlines_in_values=True,
            invalid_row_handler=invalid,
        ),
        csv.ConvertOptions(
            column_types=dict.fromkeys(copy.columns, pa.string()),
            null_values=nulls,
            strings_can_be_null=bool(nulls),
            quoted_strings_can_be_null=bool(nulls),
        ),
    )


def _read_json(copy: _Copy, stream: Any, path: str, skipped: list[str]) -> pa.Table | ArrowRows:
    del skipped
    types = {column: copy.schema.arrow.field(column).type for column in copy.columns}
    plain = {name: kind if any(is_plain(kind) for is_plain in _PLAIN_JSON) else pa.string() for name, kind in types.items()}
    numbers = {name: _WIDEST for name, kind in types.items() if pa.types.is_decimal(kind)}
    content = pa.py_buffer(_decompressed(copy.form, stream, path).read())
    rows = _parse_json(copy, content, plain, numbers)
    gaps = [name for name in types if rows.column(name).null_count]
    if gaps and (spelled := _spellings(content, gaps, types)):
        type_choices = [{**kinds, **{other: kinds[name] for other, name in spelled.items() if name in kinds}} for kinds in (plain, numbers)]
        spelled_rows = _parse_json(copy, content, *type_choices)
        for name in dict.fromkeys(spelled.values()):
            parts = [spelled_rows.column(part) for part in (name, *(other for other, same in spelled.items() if same == name))]
            rows = rows.set_column(rows.schema.get_field_index(name), name, pa.compute.coalesce(*parts))
    nulls = _nulls(copy.form)
    for index, column in enumerate(rows.schema) if nulls else ():
        if pa.types.is_string(column.type):
            values = rows.column(index)
            is_null = pa.compute.is_in(values, pa.array(nulls, pa.string()))
            rows = rows.set_column(index, column.name, pa.compute.if_else(is_null, pa.scalar(None, pa.string()), values))
    return with_column_sets(rows, content.to_pybytes()) if copy.missing == "keep" else rows


def _parse_json(copy: _Copy, content: pa.Buffer, types: Mapping[str, pa.DataType], numbers: Mapping[str, pa.DataType]) -> pa.Table:
    """Return the columns of ``types``; those of ``numbers`` may be written as numbers."""
    try:
        return _parse_columns(copy, content, types)
    except pa.ArrowInvalid:
        if not numbers:
            raise
        return _parse_columns(copy, content, {**types, **numbers})


def _spellings(content: pa.Buffer, names: Sequence[str], columns: Collection[str]) -> dict[str, str]:
    """Return other spellings of columns in the file, and which columns they are: as in Spark, names ignore case."""
    longest = max(len(form.encode()) for name in names for form in (name, name.lower(), name.upper()))
    keys = re.finditer(rb'"([^"\\]{1,%d})"\s*:' % longest, memoryview(content))
    spellings = {key.decode(errors="replace") for key in {bytes(match[1]) for match in keys}}
    name_by_lower = {name.lower(): name for name in names}
    return {key: name_by_lower[key.lower()] for key in sorted(spellings) if key not in columns and key.lower() in name_by_lower}


def _parse_columns(copy: _Copy, content: pa.Buffer, types: Mapping[str, pa.DataType]) -> pa.Table:
    return json.read_json(
        pa.BufferReader(content),
        json.ReadOptions(use_threads=False, block_size=_BLOCK),
        json.ParseOptions(
            explicit_schema=pa.schema(list(types.items())),
            unexpected_field_behavior="ignore",
            newlines_in_values=_flag("MULTI_LINE", copy.form.get("MULTI_LINE", False)),
        ),
    )


def _read_parquet(copy: _Copy, stream: Any, path: str, skipped: list[str]) -> pa.RecordBatchReader:
    del path, skipped
    file = parquet.ParquetFile(stream)
    stored = {name.lower(): name for name in file.schema_arrow.names}  # as in Spark, names ignore case
    sources = {name: name if name in file.schema_arrow.names else stored.get(name.lower()) for name in copy.columns}
    present = {name: source for name, source in sources.items() if source is not None}
    if not present:
        raise InvalidArgument(f"COPY INTO: the file has none of the columns {', '.join(copy.columns)}")
    schema = pa.schema([file.schema_arrow.field(source).with_name(name) for name, source in present.items()])
    read = file.iter_batches(columns=list(present.values()))
    return pa.RecordBatchReader.from_batches(
        schema, (pa.RecordBatch.from_arrays([batch.column(source) for source in present.values()], schema=schema) for batch in read)
    )


@dataclass(frozen=True)
class _Format:
    """Options of a format, and its reader."""

    options: Sequence[str]
    read: Callable[[_Copy, Any, str, list[str]], Any]


_TEXT = ("NULL_IF", "EMPTY_FIELD_AS_NULL", "COMPRESSION")
_FORMATS: dict[str, _Format] = {
    "CSV": _Format(("FIELD_DELIMITER", "SKIP_HEADER", "QUOTE", "ESCAPE", *_TEXT), _read_csv),
    "JSON": _Format(("MULTI_LINE", *_TEXT), _read_json),
    "PARQUET": _Format(("COMPRESSION",), _read_parquet),
}
