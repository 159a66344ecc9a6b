"""Damages one file of a table after the other, and asks the table everything; run as a process of its own.

Arguments: the table's directory, the first seed and one past the last, the part of Parquet files that is damaged (``footer`` or ``file``),
a pattern of files, and the kinds of damage, separated by commas. A line is written before each seed and one after it: ``right``, ``error``
(one of the project's that names the file), ``wrong`` or ``untyped`` with what was asked. The parent sees an abort as a signal, a hang as
its alarm.
"""

from __future__ import annotations

import random
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.errors import PaimonError
from manifest.io.file_cache import SHARED
from pyspark_paimon import Table
from tests.damage import damaged, footer_span

MEMORY = 4 << 30
SECONDS = 60
_ASKED_AS = (pa.types.is_integer, pa.types.is_string, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
_VALUES = 1
_FEWER = 20


def shown(rows: Any) -> list[str]:
    """Rows in an order of their own, as text, which tells NaN from null and -0.0 from 0.0."""
    return sorted(map(repr, rows.to_pylist()))


def questions(table: Table) -> Iterator[tuple[str, Callable[[Table], Any]]]:
    """What is asked: everything, counts, and filters on every column by values that it has."""
    rows = table.scan().to_arrow()
    yield "all", lambda t: shown(t.scan().to_arrow())
    yield "count", lambda t: t.scan().count()
    for name in rows.schema.names:
        yield f"{name} alone", lambda t, name=name: shown(t.scan(columns=[name]).to_arrow())
        yield f"{name} IS NULL", lambda t, name=name: shown(t.scan(pc.field(name).is_null()).to_arrow())
        column = rows[name].combine_chunks().drop_null()
        if not any(is_such(column.type) for is_such in _ASKED_AS) or not len(column):
            continue
        known = column.unique()
        for at in range(0, len(known), max(1, len(known) // _VALUES)):
            value = known[at]
            yield f"{name} = {value}", lambda t, name=name, value=value: shown(t.scan(pc.field(name) == value).to_arrow())
            if not pa.types.is_boolean(column.type):
                yield f"{name} >= {value}", lambda t, name=name, value=value: shown(t.scan(pc.field(name) >= value).to_arrow())
                yield f"count of {name} < {value}", lambda t, name=name, value=value: t.scan(pc.field(name) < value).count()


def compacted(path: Path) -> list[str]:
    """The rows after a full compaction of a copy."""
    with tempfile.TemporaryDirectory() as home:
        copy = shutil.copytree(path, Path(home) / "t")
        table = Table.open(str(copy))
        table.compact(full=True)
        return shown(table.scan().to_arrow())


def outcome(path: Path, name: str, asked: list[tuple[str, Callable[[Table], Any], Any]], rows: list[str]) -> str:
    """What became of all the questions."""
    found = "right"
    tasks = [(what, lambda ask=ask: ask(Table.open(str(path))), truth) for what, ask, truth in asked]
    for number, (what, ask, truth) in enumerate([*tasks, ("compaction", lambda: compacted(path), rows)]):
        if found == "error" and number % _FEWER:
            continue  # most likely the same again
        SHARED.clear()
        try:
            if ask() != truth:
                return f"wrong {what}"
        except PaimonError as error:
            if name not in str(error):
                return f"untyped {what}: names no file: {type(error).__name__}: {error}"
            found = "error"
        except Exception as error:  # noqa: BLE001 -- what must not be
            return f"untyped {what}: {type(error).__name__}: {error}"
    return found


def say(line: str) -> None:
    """Tell the parent at once."""
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


def main() -> None:
    path, first, last, part, pattern, kinds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:7]
    table = Table.open(str(path))
    asked = [(what, ask, ask(table)) for what, ask in questions(table)]
    rows = shown(table.scan().to_arrow())
    files = sorted(file for file in path.rglob(pattern) if file.is_file())
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for seed in range(first, last):
        file = random.Random(seed).choice(files)
        say(f"seed {seed} {file.name}")
        whole = file.read_bytes()
        signal.alarm(SECONDS)
        try:
            file.write_bytes(damaged(whole, seed, kinds=tuple(kinds.split(",")), span=footer_span(whole) if part == "footer" else None))
            say(outcome(path, file.name, asked, rows))
        finally:
            signal.alarm(0)
            file.write_bytes(whole)


if __name__ == "__main__":
    main()
