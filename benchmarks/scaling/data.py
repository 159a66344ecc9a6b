"""The rows of the scaling workloads: lineitem in parts, made without ever holding more than two million rows.

Each part that the generator makes is shuffled and dealt out to all files, those of its rows with ``l_orderkey % 4 = n`` to the files whose
number leaves that remainder: a writer meets every range of keys in every file, and the floor finds its buckets ready.
An upsert has a sixth of the rows, half of them under new keys; upserted rows have ``l_partkey = 0``, so that sums tell whether they won.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.inputs import generator

CLASSES = 4
KEY = ("l_orderkey", "l_linenumber")
ROWS_OF_SCALE_1 = 6_001_215
_PART = 1_000_000
_FREE_KEYS = 8


@dataclass(frozen=True)
class Sums:
    """What a table must hold: the number of rows, and two sums that tell keys and versions."""

    rows: int
    orderkeys: int
    partkeys: int

    @classmethod
    def of(cls, rows: pa.Table) -> Sums:
        """Of a table or batch that has the columns."""
        return cls(rows.num_rows, *(pc.sum(rows.column(name)).as_py() or 0 for name in ("l_orderkey", "l_partkey")))

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.rows + other.rows, self.orderkeys + other.orderkeys, self.partkeys + other.partkeys)


@dataclass(frozen=True)
class Data:
    """The files of one size."""

    base: list[str]
    upsert: list[str]
    written: Sums
    upserted: Sums
    """Of the table after the upsert."""


def lineitem(folder: Path, rows: int) -> Data:
    """About so many rows, made if they are not there."""
    told = folder / "data.json"
    if not told.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        told.write_text(json.dumps(asdict(_make(folder, rows))), encoding="utf-8")
    form = json.loads(told.read_text(encoding="utf-8"))
    return Data(form["base"], form["upsert"], Sums(**form["written"]), Sums(**form["upserted"]))


def _make(folder: Path, rows: int) -> Data:
    parts = max(1, round(rows / _PART))
    files = CLASSES * -(-parts // CLASSES)
    base, upsert = ([str(folder / f"{name}-{at:03d}.parquet") for at in range(files)] for name in ("base", "upsert"))
    written, added, replaced = Sums(0, 0, 0), Sums(0, 0, 0), Sums(0, 0, 0)
    with ExitStack() as stack:
        writers: dict[str, pq.ParquetWriter] = {}
        for part in range(parts):
            for at, dealt in _dealt(_part(folder, rows, part, parts), files, seed=part):
                half = dealt.num_rows // 12
                new = _replaced(dealt.slice(half, half), _FREE_KEYS)
                old = dealt.slice(0, half)
                written, added = written + Sums.of(dealt), added + Sums.of(new)
                replaced += Sums(0, 0, Sums.of(old).partkeys)
                for path, each in ((base[at], dealt), (upsert[at], pa.concat_tables([_replaced(old, 0), new]))):
                    if path not in writers:
                        writers[path] = stack.enter_context(pq.ParquetWriter(path, dealt.schema, compression="lz4"))
                    writers[path].write_table(each)
    upserted = Sums(written.rows + added.rows, written.orderkeys + added.orderkeys, written.partkeys - replaced.partkeys)
    return Data(base, upsert, written, upserted)


def _part(folder: Path, rows: int, part: int, parts: int) -> pa.Table:
    """One part of the generator's rows, with columns that every reader knows."""
    raw = folder / "raw"
    which = ["--parts", str(parts), "--part", str(part + 1)] if parts > 1 else []
    scale = f"{rows / ROWS_OF_SCALE_1:.6f}"
    command = [generator(), "parquet", "-s", scale, "--tables=lineitem", *which, f"--output-dir={raw}", "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    table = pq.read_table(next(found for found in sorted(raw.rglob("*.parquet")) if found.is_file()))
    shutil.rmtree(raw)
    fields = [pa.field(field.name, _plain(field.type), nullable=field.name not in KEY) for field in table.schema]
    return table.cast(pa.schema(fields))


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) else kind


def _dealt(rows: pa.Table, files: int, seed: int) -> Iterator[tuple[int, pa.Table]]:
    order = np.random.default_rng(seed).permutation(rows.num_rows)
    remainder = rows["l_orderkey"].to_numpy()[order] % CLASSES
    for wanted in range(CLASSES):
        mine = np.array_split(order[remainder == wanted], files // CLASSES)
        for at, places in enumerate(mine):
            yield at * CLASSES + wanted, rows.take(pa.array(places)).combine_chunks()


def _replaced(rows: pa.Table, distance: int) -> pa.Table:
    """Newer versions of rows, under keys that are ``distance`` greater."""
    keys = pc.add(rows["l_orderkey"], pa.scalar(distance, pa.int64()))
    return versions(rows.set_column(rows.schema.get_field_index("l_orderkey"), rows.schema.field("l_orderkey"), keys), 0)


def versions(rows: pa.Table, number: int) -> pa.Table:
    """The rows with a number as ``l_partkey``."""
    numbers = pa.array(np.full(rows.num_rows, number, np.int64)).cast(rows.schema.field("l_partkey").type)
    return rows.set_column(rows.schema.get_field_index("l_partkey"), rows.schema.field("l_partkey"), numbers)


def chosen(commit: int, rows: int, size: int) -> npt.NDArray[np.int64]:
    """The places of the base's rows that a commit replaces: distinct ones."""
    return np.random.default_rng(1000 + commit).choice(rows, size, replace=False)


def after_commits(base: pa.Table, commits: int, size: int) -> Sums:
    """What the table holds after commits 1 to ``commits``."""
    newest = base["l_partkey"].to_numpy().astype(np.int64)
    for commit in range(1, commits + 1):
        newest[chosen(commit, base.num_rows, size)] = commit
    return Sums(base.num_rows, Sums.of(base).orderkeys, int(newest.sum()))


__all__ = ["CLASSES", "KEY", "Data", "Sums", "after_commits", "chosen", "lineitem", "versions"]
