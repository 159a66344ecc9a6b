"""Writer of output files: CSV, JSON, JSON lines and Parquet."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.cli.output import json_value
from pyspark_paimon.table.scan import Scan


def rows_to_file(scan: Scan, form: str, output: Path | None) -> int:
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


def _csv(scan: Scan, sink: BinaryIO) -> int:
    import pyarrow.csv as pa_csv  # noqa: PLC0415  # loaded for this format only

    with pa_csv.CSVWriter(sink, scan.schema) as writer:
        return _write_batches(scan, writer.write_batch)


def _parquet(scan: Scan, sink: BinaryIO) -> int:
    import pyarrow.parquet as pq  # noqa: PLC0415  # as above

    with pq.ParquetWriter(sink, scan.schema) as writer:
        return _write_batches(scan, writer.write_batch)


def _jsonl(scan: Scan, sink: BinaryIO) -> int:
    def write(batch: pa.RecordBatch) -> None:
        sink.write("".join(f"{line}\n" for line in _lines(batch)).encode())

    return _write_batches(scan, write)


def _json(scan: Scan, sink: BinaryIO) -> int:
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


def _write_batches(scan: Scan, write: Callable[[pa.RecordBatch], None]) -> int:
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


_WRITERS: dict[str, Callable[[Scan, BinaryIO], int]] = {"csv": _csv, "json": _json, "jsonl": _jsonl, "parquet": _parquet}
FORMATS = tuple(_WRITERS)


__all__ = ["FORMATS", "rows_to_file"]
