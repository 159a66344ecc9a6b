"""Columns of every type that may be stored as differences, in every pattern of nulls, for whoever reads them."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa

from lsm.parquet.write.writer import ParquetFileWriter
from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Table

ROWS = 9_001
TYPES = {
    "tiny": ("TINYINT", pa.int8()),
    "small": ("SMALLINT", pa.int16()),
    "int": ("INT", pa.int32()),
    "big": ("BIGINT", pa.int64()),
    "dec9": ("DECIMAL(9,2)", pa.decimal128(9, 2)),
    "dec18": ("DECIMAL(18,4)", pa.decimal128(18, 4)),
    "day": ("DATE", pa.date32()),
    "time": ("TIME(3)", pa.time32("ms")),
    "milli": ("TIMESTAMP(3)", pa.timestamp("ms")),
    "micro": ("TIMESTAMP(6)", pa.timestamp("us")),
    "zoned": ("TIMESTAMP(6) WITH LOCAL TIME ZONE", pa.timestamp("us", tz="UTC")),
}
SPANS = {
    "tiny": (-128, 127),
    "small": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "big": (-(2**63), 2**63 - 1),
    "dec9": (-(10**9) + 1, 10**9 - 1),
    "dec18": (-(10**18) + 1, 10**18 - 1),
    "day": (-700_000, 2_900_000),
    "time": (0, 86_399_999),
    "milli": (-62_135_596_800_000, 253_402_300_799_999),
    "micro": (-62_135_596_800_000_000, 253_402_300_799_999_999),
    "zoned": (-62_135_596_800_000_000, 253_402_300_799_999_999),
}
NULLS = {
    "none": lambda n: np.zeros(n, bool),
    "odd": lambda n: np.arange(n) % 2 == 1,
    "tail": lambda n: np.arange(n) > n // 3,
    "all": lambda n: np.ones(n, bool),
    "one": lambda n: np.arange(n) != n - 2,
}
SMALL_PAGES = {"parquet.page.row.count.limit": "700", "parquet.block.size": "400000", "parquet.enable.dictionary": "false"}
"""Pages and row groups end at rows that no block of differences ends at."""


def column(kind: str, nulls: str, rows: int = ROWS) -> pa.Array:
    """Steps, runs, and leaps from one end of the type to the other."""
    low, high = SPANS[kind]
    draw = np.random.default_rng(len(kind) * 31 + len(nulls))
    values = [low, high] * 40 + [high] * 200
    values += draw.integers(low, high, rows // 3, endpoint=True).tolist()
    rest = rows - len(values)
    step = max(1, (high - low) // rest)
    values += [min(low + at * step, high) for at in range(rest)]
    numbers = pa.array(values, pa.int64(), mask=NULLS[nulls](rows))
    wanted = TYPES[kind][1]
    if pa.types.is_decimal(wanted):
        return numbers.cast(pa.decimal128(19, 0)).view(pa.decimal128(19, wanted.scale)).cast(wanted)
    return (
        numbers.cast(wanted) if wanted.bit_width < 32 else numbers.cast(pa.int32() if wanted.bit_width == 32 else pa.int64()).cast(wanted)
    )


def rows() -> pa.Table:
    """A key and all columns."""
    columns = {f"{kind}_{nulls}": column(kind, nulls) for kind in TYPES for nulls in NULLS}
    table = pa.table({"id": pa.array(range(ROWS), pa.int64()), **columns})
    return table.cast(table.schema.set(0, pa.field("id", pa.int64(), nullable=False)))


def packed_table(path: object, **options: str) -> Table:
    """A primary-key table of them, all stored as differences."""
    ddl = ", ".join(["id BIGINT", *(f"{kind}_{nulls} {TYPES[kind][0]}" for kind in TYPES for nulls in NULLS)])
    table = Table.create(path, ddl, ["id"], options={"bucket": "1", **SMALL_PAGES, **options})
    module, write = "lsm.parquet.write.column_layout", ParquetFileWriter.write

    def in_pieces(writer: ParquetFileWriter, given: pa.Table) -> None:
        for first in range(0, given.num_rows, 1300):
            write(writer, given.slice(first, 1300))

    with (
        patch(f"{module}._AS_SMALL", float("inf")),
        patch(f"{module}._SAVING", -9.0),
        use_thresholds(fewest_rows=1),
        patch.object(ParquetFileWriter, "write", in_pieces),
    ):
        table.write(rows())
    return table
