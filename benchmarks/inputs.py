"""The rows that contenders write: TPC-H's lineitem in random order, upserts and small batches of it, and a year of flights.

Everything is made once from fixed seeds and kept as Parquet files in a folder: ``base``, ``upsert`` (a sixth of the base, half of it
with existing keys) and ``small-NN`` (half of each with existing keys, too).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_base.errors import InvalidArgument
from pyspark_paimon import example

_FREE_KEYS = 8
"""TPC-H uses the first 8 of each 32 order keys: adding 8, 16 or 24 to a key gives one that nothing has."""


@dataclass(frozen=True)
class Inputs:
    """Files of one data set."""

    folder: Path
    primary_key: tuple[str, ...]
    smalls: int = 0

    @property
    def base(self) -> str:
        return str(self.folder / "base.parquet")

    @property
    def upsert(self) -> str:
        return str(self.folder / "upsert.parquet")

    @property
    def small(self) -> list[str]:
        return [str(self.folder / f"small-{at:03d}.parquet") for at in range(self.smalls)]

    def files(self, name: str) -> list[str]:
        """Of ``base``, ``upsert`` or ``small``."""
        return self.small if name == "small" else [str(self.folder / f"{name}.parquet")]

    @property
    def rows(self) -> int:
        """Of the base."""
        return int(pq.read_metadata(self.base).num_rows)

    def warm(self) -> None:
        """Bring the files into the page cache."""
        for path in self.folder.glob("*.parquet"):
            warm(path)


def warm(path: Path) -> None:
    """Read a file and forget it."""
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 22):
            pass


def lineitem(folder: Path, scale: float, *, share: float = 1.0, smalls: int = 20, small_rows: int | None = None) -> Inputs:
    """Lineitem of a TPC-H scale factor, or a share of its rows; small batches have a 120th of the rows unless told otherwise."""
    made = Inputs(folder, ("l_orderkey", "l_linenumber"), smalls)
    if (folder / "complete").exists():
        return made
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    raw = folder / "raw"
    subprocess.run([generator(), "parquet", "-s", str(scale), "--tables=lineitem", f"--output-dir={raw}"], check=True, capture_output=True)
    rows = pq.read_table(next(found for found in sorted(raw.rglob("lineitem*.parquet")) if found.is_file()))
    shutil.rmtree(raw)
    rows = rows.cast(pa.schema([_plain(field, made.primary_key) for field in rows.schema])).combine_chunks()
    order = np.random.default_rng(7).permutation(len(rows))[: round(len(rows) * share)]
    store_changes(made, rows.take(pa.array(order)), small_rows or round(len(rows) * share) // 120)
    return made


def store_changes(made: Inputs, rows: pa.Table, small_rows: int) -> None:
    """Lineitem's rows, and the upsert and small batches that are made from them."""
    rows = rows.combine_chunks()
    _store(rows, made.base)
    _store(_changed(rows, len(rows) // 6, 1, _FREE_KEYS), made.upsert)
    for at, path in enumerate(made.small):
        _store(_changed(rows, min(small_rows, len(rows)), 100 + at, 2 * _FREE_KEYS), path)
    (made.folder / "complete").touch()


def flights(folder: Path) -> Inputs | None:
    """336,776 flights with a number as key, and 60,000 upserts; None where the package with the data is missing."""
    made = Inputs(folder, ("flight_id",))
    if not (folder / "complete").exists():
        try:
            rows = example.flights().drop_columns("time_hour")
        except InvalidArgument:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        rows = rows.cast(pa.schema([_plain(field, ()) for field in rows.schema]))
        number = pa.array(np.random.default_rng(3).permutation(len(rows)).astype(np.int64))
        rows = rows.add_column(0, pa.field("flight_id", pa.int64(), nullable=False), number)
        _store(rows, made.base)
        late = rows.slice(0, 60_000)
        moved = np.where(np.arange(len(late)) % 2 == 0, late["flight_id"].to_numpy(), late["flight_id"].to_numpy() + len(rows))
        _store(late.set_column(0, rows.schema.field(0), pa.array(moved)), made.upsert)
        (folder / "complete").touch()
    return made


def generator() -> str:
    """The path of ``tpchgen-cli``."""
    beside = Path(sys.executable).parent / "tpchgen-cli"
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise SystemExit("tpchgen-cli is missing: pip install 'pyspark-paimon[bench]'")
    return found


def _plain(field: pa.Field, keys: tuple[str, ...]) -> pa.Field:
    """Columns that every contender knows: texts instead of views of them; keys are never null."""
    kind = pa.string() if pa.types.is_string_view(field.type) or pa.types.is_large_string(field.type) else field.type
    return pa.field(field.name, kind, nullable=field.name not in keys)


def _changed(rows: pa.Table, count: int, seed: int, distance: int) -> pa.Table:
    """Some of the rows with new comments; the second half of them under new keys."""
    make = np.random.default_rng(seed)
    part = rows.take(pa.array(make.choice(len(rows), count, replace=False)))
    key = part["l_orderkey"].to_numpy().copy()
    key[count // 2 :] += distance
    comments = np.char.add(f"upsert {seed} ", make.integers(0, 10**9, count).astype(str))
    for name, values in (("l_orderkey", pa.array(key)), ("l_comment", pa.array(comments, pa.string()))):
        part = part.set_column(part.schema.get_field_index(name), rows.schema.field(name), values)
    return part


def _store(rows: pa.Table, path: str) -> None:
    pq.write_table(rows.combine_chunks(), path, compression="zstd")


__all__ = ["Inputs", "flights", "lineitem", "store_changes", "warm"]
