"""Asks thousands of damaged containers everything, and prints by how many bytes the process grew; run as a process of its own.

The parent sees a crash of the C library as a signal, a hang as a timeout, an exception as a traceback.
"""

from __future__ import annotations

import random
import resource
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from fileindex.build.options import FileIndexOptions, option_key
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ContainerReader, write_index_container
from fileindex.format.registry import INDEX_TYPES
from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op
from fileindex.query.evaluate import evaluate
from fileindex.query.metrics import IndexMetrics
from fileindex.query.top_n import top_n
from fileindex.rowset.result import REMAIN, SKIP, RowSet
from fileindex.verify.health import payload_health
from paimon_base.errors import CorruptIndex
from sparkexpr.values.column_type import ColumnType, Kind

A, B = ColumnRef("a"), ColumnRef("b")
TYPES = {"a": ColumnType(Kind.INT), "b": ColumnType(Kind.VARCHAR)}
ROWS = 70_000
LEAVES = [
    Compare(A, Op.EQ, 3),
    Compare(A, Op.NE, 3),
    Compare(A, Op.GE, -5),
    In(A, (1, 2, 3), negated=True),
    IsNull(A),
    Compare(B, Op.EQ, "3"),
    Compare(B, Op.LT, "2"),
    In(B, ("1", "-1")),
]
ABSURD = [struct.pack(">i", number) for number in (-1, -(2**31), 2**31 - 1, 2**30, 2**24, 65536, 0)] + [
    b"\xff\xff\x3b\x30",
    b"\x3a\x30\xff\xff",
]


def payloads() -> Iterator[tuple[str, str, bytes]]:
    """One of every index type and column, bitmaps in both versions."""
    numbers = np.random.default_rng(9).integers(-20, 20, ROWS).astype(np.int32)
    table = pa.table({"a": pa.array(numbers, mask=numbers == 7), "b": pa.array(numbers).cast(pa.string())})
    for name, index_type in INDEX_TYPES.items():
        for column in (column for column, kind in TYPES.items() if index_type.supports(kind)):
            for options in ({}, {"version": "1"}) if name == "bitmap" else ({},):
                raw = {option_key(name, "columns"): column} | {option_key(name, column, key): text for key, text in options.items()}
                if name == "bloom-filter":
                    raw[f"file-index.{name}.{column}.items"] = "60"
                writer = DataFileIndexWriter.create(FileIndexOptions.parse(raw, TYPES), TYPES)
                assert writer is not None
                writer.write(table)
                container = ContainerReader.of(write_index_container(writer.finish()))
                yield column, name, container.payload(container.entries()[0]).whole()


def damaged(data: bytes, rng: random.Random, times: int) -> Iterator[bytes]:
    """Absurd numbers at every place of the head; then bits flipped, bytes cut off, put in, or taken out anywhere."""
    for at in range(0, min(len(data), 100), 2):
        yield data[:at] + rng.choice(ABSURD) + data[at + 4 :]
    for _ in range(times):
        at = rng.choice([rng.randrange(len(data)), rng.randrange(min(len(data), 300))])
        match rng.randrange(4):
            case 0:
                yield data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
            case 1:
                yield data[:at]
            case 2:
                yield data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]
            case _:
                yield data[:at] + data[at + rng.randrange(1, 9) :]


def ask(column: str, name: str, container: bytes) -> int:
    """Everything that can be asked of one container; the number of warnings."""
    notes = IndexMetrics()
    for leaf in LEAVES:
        if leaf.column.name == column:
            result = evaluate(leaf, ContainerReader.of(container), TYPES, ROWS, notes)
            assert result is REMAIN or result is SKIP or (isinstance(result, RowSet) and (not result.rows or result.rows.max() < ROWS)), (
                result
            )
    how = {"ascending": True, "nulls_first": False, "strict": False, "candidates": BitMap(range(50, ROWS))}
    top_n(ContainerReader.of(container), ColumnRef(column), TYPES, 3, row_count=ROWS, notes=notes, **how)
    reader = ContainerReader.of(container)
    with suppress(CorruptIndex):
        for entry in reader.entries():
            payload_health(name, reader.payload(entry), TYPES[column], ROWS)
    return notes.warnings.total()


def main() -> None:
    rng = random.Random(int(sys.argv[1]))
    sound = list(payloads())
    for column, name, payload in sound:
        assert ask(column, name, write_index_container([(column, name, payload)])) == 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    asked = warned = 0
    for column, name, payload in sound:
        for bad in damaged(payload, rng, int(sys.argv[2])):
            warned += ask(column, name, write_index_container([(column, name, bad)])) > 0
            asked += 1
        for bad in damaged(write_index_container([(column, name, payload)]), rng, 10):
            warned += ask(column, name, bad) > 0
            asked += 1
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    sys.stdout.write(f"{asked} {warned} {grown}\n")


if __name__ == "__main__":
    main()
