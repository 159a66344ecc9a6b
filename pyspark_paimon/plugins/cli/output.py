"""Output of the command line: grids, JSON and files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

import typer

from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    from rich import console as consoles
    from rich import table as grids
    from rich.console import Console
else:  # help needs none of them
    pa = LazyModule("pyarrow")
    consoles = LazyModule("rich.console")
    grids = LazyModule("rich.table")

_WIDE = 1 << 20


class Rows(Protocol):
    """Rows to write: a scan, or an Arrow table."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""

    def to_batches(self) -> Iterable[pa.RecordBatch]:
        """Return the rows in batches."""


def print_grid(title: str | None, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under a header.

    None prints as an empty cell.

    A terminal folds long cells. Other outputs get lines of any length, so that no cell is cut.
    """
    grid = grids.Table(title=title, title_justify="left")
    for name in header:
        grid.add_column(_escape(name), overflow="fold")
    for row in rows:
        grid.add_row(*map(_escape, row))
    _console().print(grid)


def print_line(text: str) -> None:
    """Print a line without breaking it."""
    _console().print(text, highlight=False, markup=False, soft_wrap=True)


def print_json(value: object) -> None:
    """Print indented JSON.

    Bytes are hexadecimal digits; times and decimals are texts.
    """
    typer.echo(json.dumps(value, default=json_value, indent=2))


def json_value(value: object) -> object:
    """Convert a value that JSON does not support to text."""
    return value.hex() if isinstance(value, bytes) else str(value)


def _console() -> Console:
    return consoles.Console() if sys.stdout.isatty() else consoles.Console(width=_WIDE)


def _escape(cell: object) -> str:
    return "" if cell is None else str(cell).replace("[", r"\[")


def rows_to_file(scan: Rows, form: str, output: Path | None) -> int:
    """Write the rows of ``scan`` and return their number.

    The file is replaced at the end, so that it is never incomplete. In CSV null is an empty field and an empty text is ``""``.

    form: One of ``FORMATS``.
    output: File to write. None: standard output.
    Raises ``InvalidArgument`` for nested columns in CSV, for Parquet on a terminal, and for a file that cannot be written.
    """
    if form == "csv" and (nested := [field.name for field in scan.schema if pa.types.is_nested(field.type)]):
        raise InvalidArgument(
            f"CSV does not support nested columns ({', '.join(nested)}): select others with --columns, or use another --format"
        )
    if form == "parquet" and output is None and sys.stdout.isatty():
        raise InvalidArgument("Parquet cannot be written to a terminal: give --output")
    with _sink(output) as sink:
        return _WRITERS[form](scan, sink)


def text_to_file(text: str, output: Path) -> None:
    """Write a text file, replacing it at the end, so that it is never incomplete.

    Raises ``InvalidArgument`` for a file that cannot be written.
    """
    with _sink(output) as sink:
        sink.write(text.encode())


def _csv(scan: Rows, sink: BinaryIO) -> int:
    import pyarrow.csv as pa_csv  # noqa: PLC0415  # loaded for this format only

    with pa_csv.CSVWriter(sink, scan.schema) as writer:

        def write(batch: pa.RecordBatch) -> None:
            _refuse_bytes(batch)
            writer.write_batch(batch)

        return _write_batches(scan, write)


def _refuse_bytes(batch: pa.RecordBatch) -> None:
    """Raise ``InvalidArgument`` for bytes that are no text."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type):
            try:
                column.cast(pa.binary()).cast(pa.string())
            except pa.ArrowInvalid as error:
                raise InvalidArgument(
                    f"column '{name}' has bytes that are not UTF-8 text, which CSV cannot hold: use --format jsonl (hexadecimal digits) or parquet"
                ) from error


def _parquet(scan: Rows, sink: BinaryIO) -> int:
    import pyarrow.parquet as pq  # noqa: PLC0415  # as above

    with pq.ParquetWriter(sink, scan.schema) as writer:
        return _write_batches(scan, writer.write_batch)


def _jsonl(scan: Rows, sink: BinaryIO) -> int:
    def write(batch: pa.RecordBatch) -> None:
        sink.write("".join(f"{line}\n" for line in _lines(batch)).encode())

    return _write_batches(scan, write)


def _json(scan: Rows, sink: BinaryIO) -> int:
    before = "[\n"

    def write(batch: pa.RecordBatch) -> None:
        nonlocal before
        if batch.num_rows:
            sink.write((before + ",\n".join(_lines(batch))).encode())
            before = ",\n"

    rows = _write_batches(scan, write)
    sink.write(b"\n]\n" if rows else b"[]\n")
    return rows


def _lines(batch: pa.RecordBatch) -> Iterator[str]:
    return (json.dumps(row, default=json_value, ensure_ascii=False) for row in batch.to_pylist(maps_as_pydicts="lossy"))


def _write_batches(scan: Rows, write: Callable[[pa.RecordBatch], None]) -> int:
    rows = 0
    for batch in scan.to_batches():
        write(batch)
        rows += batch.num_rows
    return rows


@contextmanager
def _sink(output: Path | None) -> Iterator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    part = output.with_name(f"{output.name}.part-{os.getpid()}")
    try:
        with part.open("wb") as sink:
            yield sink
        part.replace(output)
    except OSError as error:
        if error.filename is None or Path(str(error.filename)) not in {part, output}:
            raise
        raise InvalidArgument(f"{output} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


_WRITERS: dict[str, Callable[[Rows, BinaryIO], int]] = {"csv": _csv, "json": _json, "jsonl": _jsonl, "parquet": _parquet}
FORMATS = tuple(_WRITERS)
