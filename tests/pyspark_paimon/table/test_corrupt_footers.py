"""A damaged Parquet footer gives the right rows or an error that names the file: never other rows, an abort, a hang or a bare exception."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fileindex.base.errors import CorruptFile
from pyspark_paimon import Table

ROOT = Path(__file__).parents[3]
DDL = (
    "id BIGINT NOT NULL, s STRING, n INT, d DOUBLE, p DECIMAL(20,2), ts TIMESTAMP(6), day DATE, b BOOLEAN, "
    "a ARRAY<INT>, m MAP<STRING, INT>, r ROW<x SMALLINT, y BYTES>"
)
TABLES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "merged on read": (("id",), {"bucket": "1", "write-only": "true"}),
    "compacted": (("id",), {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}),
    "deletion vectors": (("id",), {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "append": ((), {}),
    "changelog": (("id",), {"bucket": "2", "changelog-producer": "input", "merge-engine": "partial-update"}),
}


def rows(schema: pa.Schema, first: int, last: int, version: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": i,
                "s": None if i % 7 == 0 else f"text {i % 11}{'x' * (i % 20)}",
                "n": None if i % 5 == 0 else i * version,
                "d": float("nan") if i % 9 == 0 else i / 4,
                "p": Decimal(i * version).scaleb(-2),
                "ts": dt.datetime(2024, 1, 1) + dt.timedelta(seconds=i),  # noqa: DTZ001 -- a zoneless type
                "day": dt.date(2024, 1, 1) + dt.timedelta(i),
                "b": i % 2 == 0,
                "a": [i, None] if i % 3 else None,
                "m": [(str(i), i)],
                "r": {"x": i, "y": bytes([i])} if i % 4 else None,
            }
            for i in range(first, last)
        ],
        schema=schema,
    )


def made(path: Path, kind: str) -> Table:
    keys, options = TABLES[kind]
    table = Table.create(path, DDL, primary_keys=keys, options=options)
    for version, (first, last) in enumerate([(0, 40), (20, 60), (55, 90)], 1):
        table.write(rows(table.schema, first, last, version))
    return table


def outcomes(path: Path, first: int, last: int, *arguments: str) -> tuple[Counter[str], list[str]]:
    """How often what came of the seeds, and what must not have come of one; a child that dies is started again behind its seed."""
    counts: Counter[str] = Counter()
    bad: list[str] = []
    while first < last:
        child = [sys.executable, "-m", "tests.corruption_child", str(path), str(first), str(last), *arguments]
        done = subprocess.run(child, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        assert lines, done.stderr
        for seed, said in zip(lines[::2], lines[1::2], strict=False):
            counts[said.split()[0]] += 1
            bad += [f"{seed}: {said}"] * (said.split()[0] not in {"right", "error"})
        if done.returncode:
            counts["dead"] += 1
            bad.append(f"{lines[-1]}: ended with {done.returncode}: {done.stderr[-300:]}")
        first += (len(lines) + 1) // 2
    return counts, bad


@pytest.mark.parametrize("kind", TABLES)
def test_flipped_bits_in_footers(tmp_path: Path, kind: str) -> None:
    made(tmp_path / "t", kind)
    counts, bad = outcomes(tmp_path / "t", 0, 20, "footer", "*.parquet", "flip")
    assert not bad, bad
    assert counts["error"] > 5


@pytest.mark.long
@pytest.mark.parametrize("kind", TABLES)
def test_many_damaged_footers(tmp_path: Path, kind: str) -> None:
    made(tmp_path / "t", kind)
    counts, bad = outcomes(tmp_path / "t", 1000, 1800, "footer", "*.parquet", "flip,flip,flip,cut,double,zero")
    assert not bad, bad
    assert counts["error"] > 400


def renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) > 1
    return data.replace(old, new)


def retyped(data: bytes) -> bytes:
    at = data.rindex(b"_VALUE_KIND", 0, data.index(b"_VALUE_KIND", len(data) // 2) + 20)
    return data[:at] + b"_VALUE_KINE" + data[at + 11 :]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: renamed(data, b"city", b"citz"), "has no column 'city'"),
        (lambda data: data[:-20] + data[-20:].replace(b"PAR1", b"PAR2"), "does not end"),
        (lambda data: data + b"\0", "does not end"),
        (retyped, "where its schema has another column"),
    ],
)
def test_a_footer_that_breaks_a_promise_is_no_column_of_nulls(create: Any, tmp_path: Path, damage: Any, reason: str) -> None:
    table = create()
    table.write(pa.table({"id": [1, 2], "city": ["a", "b"], "n": pa.array([1, 2], pa.int32())}))
    (file,) = (tmp_path / "t").rglob("*.parquet")
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CorruptFile, match=reason) as error:
        table.scan().to_arrow()
    assert file.name in str(error.value)
