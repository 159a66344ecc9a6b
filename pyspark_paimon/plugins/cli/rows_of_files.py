"""Reader of input files: Parquet, CSV and JSON lines.

``-`` is standard input.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from lsm.arrow.csv_source import CsvSource
from lsm.arrow.leaf_types import with_leaves
from lsm.rows_in.arrow import ArrowRows, arrow_rows, joined_rows
from lsm.rows_in.json_rows import with_column_sets
from lsm.rows_in.policy import DEFAULT_POLICY, RowPolicy
from lsm.rows_in.requested_cast import cast_rows
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument, PaimonError
from paimon_base.thresholds import thresholds
from pyspark_paimon.plugins.cli.target import STANDARD_INPUT
from sparkexpr.values.variant_type import is_variant_type

_ENDINGS = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
}


def rows_of_files(files: Sequence[str], form: str | None, schema: TableSchema, policy: RowPolicy) -> ArrowRows:
    """Read the rows of all files in batches.

    CSV files have names in the first line; an empty field is null, ``""`` an empty text. Texts are cast to the types of
    ``schema``, as by ``Table.write(cast=True)``.

    With ``missing="keep"`` all rows are held, and know which columns their JSON objects have.

    form: Format of all files. None: by the extension of each file.
    Raises ``InvalidArgument`` for a file that cannot be read, and ``SchemaMismatch`` for files with different columns.
    """
    rejected = list[pa.Table]()

    def open_file(file: str) -> ArrowRows:
        file_format = _format(file, form)
        rows = _open_file(file, file_format, schema.arrow, policy)
        if file_format == "parquet":
            return rows
        cast = cast_rows(replace(rows, rejected=rejected), schema, policy)
        return replace(cast, reader=pa.RecordBatchReader.from_batches(cast.schema, _name_file(file, cast.reader)))

    first = open_file(files[0])
    if policy.missing == "keep":
        return joined_rows([first, *map(open_file, files[1:])])

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.reader
        for file in files[1:]:
            more = open_file(file)
            if more.schema.names != first.schema.names or not more.schema.equals(first.schema):
                raise SchemaMismatch(
                    f"{file} has the columns ({_columns_text(more.schema)}), {files[0]} ({_columns_text(first.schema)}); write them one by one"
                )
            yield from more.reader

    return ArrowRows(pa.RecordBatchReader.from_batches(first.schema, batches()), rejected=rejected)


def typed_rows(file: str, form: str | None) -> pa.RecordBatchReader:
    """Read the rows of a file with the types that its values suggest.

    Raises ``InvalidArgument`` for a file that cannot be read.
    """
    return _open_file(file, _format(file, form), pa.schema([])).reader


def _name_file(file: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the file to errors of values."""
    try:
        yield from batches
    except SchemaMismatch as error:
        raise SchemaMismatch(f"{file}: {error}") from error


def _format(file: str, form: str | None) -> str:
    file_format = form or _ENDINGS.get(Path(file).suffix.lower())
    if file_format not in _READERS:
        problem = (
            f"unknown format '{form}'"
            if form
            else f"the extension of {file} is not a known format"
            if file != STANDARD_INPUT
            else "standard input has no file extension"
        )
        raise InvalidArgument(f"{problem}: give --format {' | '.join(_READERS)}")
    if file == STANDARD_INPUT and file_format == "parquet":
        raise InvalidArgument("Parquet cannot be read from standard input: give a file, or use csv or jsonl")
    return file_format


def _open_file(file: str, form: str, schema: pa.Schema, policy: RowPolicy = DEFAULT_POLICY) -> ArrowRows:
    try:
        source: Any = sys.stdin.buffer if file == STANDARD_INPUT else pa.OSFile(str(Path(file).expanduser()), "rb")
        if policy.widens and form == "jsonl":  # Arrow refuses numbers that do not fit the type it is given
            schema = pa.schema([field.with_type(with_leaves(field.type, _widest)) for field in schema])
        if policy.missing == "keep" and form == "jsonl":
            content = source.read()
            file_schema, batches = _jsonl(io.BytesIO(content), schema)
            return with_column_sets(pa.Table.from_batches(_name_errors(file, form, batches), file_schema), content)
        file_schema, batches = _READERS[form](source, schema)
    except PaimonError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(file, form, error) from error
    return ArrowRows(pa.RecordBatchReader.from_batches(file_schema, _name_errors(file, form, batches)))


def _widest(leaf: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(leaf) else pa.float64() if pa.types.is_floating(leaf) else leaf


def _name_errors(file: str, form: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except PaimonError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(file, form, error) from error


def _unreadable(file: str, form: str, error: Exception) -> InvalidArgument:
    cause = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return InvalidArgument(f"{'standard input' if file == STANDARD_INPUT else file} cannot be read as {form}: {cause}")


def _parquet(source: BinaryIO, _: pa.Schema) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow.parquet as pq  # noqa: PLC0415  # loaded for this format only

    file = pq.ParquetFile(source)
    return file.schema_arrow, file.iter_batches()


def _csv(source: BinaryIO, schema: pa.Schema) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow.csv as pa_csv  # noqa: PLC0415  # as above

    read_as = {field.name: field.type if _is_bytes(field.type) else pa.string() for field in schema if not pa.types.is_nested(field.type)}
    convert = pa_csv.ConvertOptions(
        column_types=read_as, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False, include_missing_columns=False
    )
    reader = pa_csv.open_csv(
        CsvSource(source),
        read_options=pa_csv.ReadOptions(block_size=thresholds.import_block_bytes),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),  # else a field with line breaks ends where its block ends
        convert_options=convert,
    )
    if nested := [field.name for field in schema if pa.types.is_nested(field.type) and field.name in reader.schema.names]:
        raise InvalidArgument(f"CSV does not support the nested columns {', '.join(nested)}: use jsonl or Parquet")
    return reader.schema, iter(reader)


def _jsonl(source: BinaryIO, schema: pa.Schema) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Read JSON lines.

    Times are ISO texts, bytes hexadecimal digits, also inside nested values. The caller casts times.
    """
    # Arrow's reader accepts neither objects as maps nor texts as bytes inside: parse tables with them in Python.
    texts = {field.name for field in schema if _is_text_in_json(field.type)}
    read_as = pa.schema(
        [field.with_type(pa.string() if field.name in texts else with_leaves(field.type, _without_times)) for field in schema]
    )
    parsed, batches = (_json_objects if any(_needs_objects(field.type) for field in schema) else _json_by_arrow)(source, read_as)
    binary = {name for name in texts if _is_bytes(schema.field(name).type)}
    typed_schema = pa.schema([pa.field(field.name, schema.field(field.name).type) if field.name in binary else field for field in parsed])

    def typed() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [
                _from_digits(name, batch.column(name), typed_schema.field(name).type) if name in binary else batch.column(name)
                for name in typed_schema.names
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=typed_schema)

    return typed_schema, typed()


def _json_by_arrow(source: BinaryIO, read_as: pa.Schema) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow.json as pa_json  # noqa: PLC0415  # as above

    reader = pa_json.open_json(
        source,
        read_options=pa_json.ReadOptions(block_size=thresholds.import_block_bytes),
        parse_options=pa_json.ParseOptions(explicit_schema=read_as),
    )
    return reader.schema, iter(reader)


def _from_digits(name: str, column: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    try:
        return pa.array([None if digits is None else bytes.fromhex(digits) for digits in column.to_pylist()], arrow_type)
    except (pa.ArrowException, ValueError) as error:
        raise SchemaMismatch(f"column '{name}' cannot be converted to {arrow_type}: {error}") from error


def _without_times(leaf: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_temporal(leaf) else leaf


def _needs_objects(kind: pa.DataType) -> bool:
    """Return whether a nested type has maps or bytes."""
    child_types = [kind.field(index).type for index in range(kind.num_fields)]
    return bool(pa.types.is_map(kind)) or any(_is_bytes(part) or _needs_objects(part) for part in child_types)


def _with_bytes(value: Any, kind: pa.DataType) -> Any:
    """Return a nested JSON value with bytes for hexadecimal digits."""
    if value is None or not (_is_bytes(kind) or _needs_objects(kind)):
        return value
    if _is_bytes(kind):
        return bytes.fromhex(value)
    if is_variant_type(kind):
        is_encoded = isinstance(value, dict) and value.keys() == {"value", "metadata"}
        return {name: bytes.fromhex(digits) for name, digits in value.items()} if is_encoded else value
    if pa.types.is_struct(kind) and isinstance(value, dict):
        return {name: _with_bytes(part, kind.field(name).type) if kind.get_field_index(name) >= 0 else part for name, part in value.items()}
    if pa.types.is_map(kind) and isinstance(value, dict):
        return {key: _with_bytes(part, kind.item_type) for key, part in value.items()}
    return [_with_bytes(part, kind.value_type) for part in value] if isinstance(value, list) else value


def _is_text_in_json(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind)) or _is_bytes(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _json_objects(source: BinaryIO, schema: pa.Schema) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Read lines as dicts, one block at a time.

    All batches have the columns of the table, and further columns of the first block.
    """
    binary = {field.name: field.type for field in schema if _needs_objects(field.type)}

    def blocks() -> Iterator[pa.Table]:
        for lines in _line_blocks(source):
            rows = [json.loads(line) for line in lines if line.strip()]
            for name, kind in binary.items():
                for row in rows:
                    if name in row:
                        row[name] = _with_bytes(row[name], kind)
            yield arrow_rows(rows, schema).reader.read_all()

    parts = blocks()
    first = next(parts, schema.empty_table())
    extra = [first.schema.field(name) for name in first.schema.names if name not in schema.names]
    all_columns = pa.schema([*schema, *extra])

    def batches() -> Iterator[pa.RecordBatch]:
        for part in chain([first], parts):
            if unknown := [name for name in part.schema.names if name not in all_columns.names]:
                raise SchemaMismatch(
                    f"a line has the column '{unknown[0]}', which is not in the table; the table has {', '.join(schema.names)}"
                )
            columns = [_column(part, field) for field in all_columns]
            yield from pa.Table.from_arrays(columns, schema=all_columns).to_batches()

    return all_columns, batches()


def _line_blocks(source: BinaryIO) -> Iterator[list[bytes]]:
    rest = b""
    while block := source.read(thresholds.import_block_bytes):
        complete_lines, newline, rest = (rest + block).rpartition(b"\n")
        if newline:
            yield complete_lines.split(b"\n")
    if rest:
        yield [rest]


def _column(part: pa.Table, field: pa.Field) -> Any:
    return part[field.name] if field.name in part.schema.names else pa.nulls(part.num_rows, field.type)


def _columns_text(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


_READERS: dict[str, Callable[[Any, pa.Schema], tuple[pa.Schema, Iterator[pa.RecordBatch]]]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
