"""Words for tests: make a small table, write rows, read them, and draw the files that the table has.

A story reads as ``table = keyed(path)``, ``table.write(cities([1, 2], "Oslo"))``, ``assert_tree(table, "...")``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any, Protocol

import pyarrow as pa
import pytest

from manifest.store import FileStore
from paimon_base.plugins import plugin
from pyspark_paimon import Table

COLUMNS = "id BIGINT, city STRING"


class _Scan(Protocol):
    def to_arrow(self) -> pa.Table: ...


Source = Table | _Scan | pa.Table


def keyed(path: str | Path, columns: str = COLUMNS, options: Mapping[str, str] | None = None) -> Table:
    """Make a table of one bucket whose primary key is ``id``."""
    return Table.create(path, columns, primary_keys=["id"], options={"bucket": "1", **(options or {})})


def cities(ids: Iterable[int], city: str = "Oslo") -> pa.Table:
    """Return rows of ``COLUMNS``: ids, and a text of each that tells writes apart.

    >>> cities([1, 2], "Rome").to_pylist()
    [{'id': 1, 'city': 'Rome-1'}, {'id': 2, 'city': 'Rome-2'}]
    """
    numbers = list(ids)
    return pa.table({"id": pa.array(numbers, pa.int64()), "city": [f"{city}-{number}" for number in numbers]})


def events(*rows: tuple[str, int, int]) -> pa.Table:
    """Return changes of a table of ``id BIGINT, city STRING, n INT``: the kind, the id and the number of each.

    >>> events(("-D", 1, 7)).to_pylist()
    [{'id': 1, 'city': 'x', 'n': 7, '_row_kind': '-D'}]
    """
    kinds, ids, numbers = (list(column) for column in zip(*rows, strict=True))
    return pa.table({"id": pa.array(ids, pa.int64()), "city": ["x"] * len(ids), "n": pa.array(numbers, pa.int32()), "_row_kind": kinds})


def _rows(source: Source) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    return (source.scan() if isinstance(source, Table) else source).to_arrow()


def tuples(source: Source) -> list[tuple[Any, ...]]:
    """Return the rows of a table or scan as sorted tuples."""
    return sorted(tuple(row.values()) for row in _rows(source).to_pylist())


def ids(source: Source) -> list[int]:
    """Return the sorted ids of a table or scan."""
    return sorted(_rows(source)["id"].to_pylist())


def drawing(table: Table) -> str:
    """Draw the newest snapshot: a line for each file, below its partition and bucket.

    A line has level, keys, rows, deletes among them, rows that a deletion vector marks, and the file's indexes.
    Files with keys come by level, the newest first; others as the manifests have them.
    """
    store = FileStore.open(table.path)
    latest = store.snapshots.latest()
    if latest is None:
        return "no snapshot"
    marked = {vector.data_file: vector.cardinality for entry in store.index_entries(latest) for vector in entry.vectors}
    indexes: defaultdict[str, list[str]] = defaultdict(list)
    for index in table.file_indexes().to_pylist():
        indexes[Path(index["file_path"]).name].append(f"{index['index_type']}({index['column_name']})")
    operation = table.snapshots()["operation"].to_pylist()[-1]
    lines = [f"snapshot {latest.id}: {operation}"]
    files = table.files().to_pylist()
    groups = sorted({(file["partition"], file["bucket"]) for file in files})
    for partition, bucket in groups:
        inside = [file for file in files if (file["partition"], file["bucket"]) == (partition, bucket)]
        if name := " ".join([*([partition] if partition else []), *([f"bucket {bucket}"] if store.options.bucket > 1 else [])]):
            lines.append(name)
        if table.primary_keys:
            inside.sort(key=lambda file: (file["level"], -file["max_sequence_number"], file["min_key"]))
        for file in inside:
            where = f"L{file['level']} {file['min_key']}..{file['max_key']}" if table.primary_keys else "file"
            lines.append(f"{where}: {', '.join(_facts(file, marked, indexes))}")
    return "\n".join(lines)


def _facts(file: Mapping[str, Any], marked: Mapping[str, int], indexes: Mapping[str, list[str]]) -> Iterator[str]:
    yield f"{file['row_count']} row{'s' * (file['row_count'] != 1)}"
    if deletes := file["delete_row_count"]:
        yield f"{deletes} delete{'s' * (deletes != 1)}"
    if number := marked.get(file["file_name"]):
        yield f"{number} marked"
    yield from sorted(indexes.get(file["file_name"], ()))


def assert_tree(table: Table, expected: str) -> None:
    """Compare the drawing of a table with a text, indentation apart."""
    assert drawing(table) == dedent(expected).strip()


def command_line(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """Run a command in this process. Return what it prints, or what it writes to stderr if it fails as expected."""
    with pytest.raises(SystemExit) as ended:
        plugin("command", "pyspark-paimon")([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert ended.value.code == code, printed.err
    return printed.out if code == 0 else printed.err


def data_files(table: Table) -> int:
    """Count the data files in the table's directory, in use or not."""
    return len(list(Path(table.path).rglob("data-*.parquet")))


__all__ = ["COLUMNS", "assert_tree", "cities", "command_line", "data_files", "drawing", "events", "ids", "keyed", "tuples"]
