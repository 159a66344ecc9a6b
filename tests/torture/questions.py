"""What a table is asked: plain values, so that a process which never saw the table whole can ask the same."""

from __future__ import annotations

import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from manifest.io.file_cache import SHARED
from manifest.io.file_io import LocalFileIO
from paimon_base.errors import PaimonError
from pyspark_paimon import Table
from tests.torture.rotting_tables import REPEATED

_ASKED_AS = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
)
_FEW = 20


@dataclass(frozen=True)
class Question:
    """A call, and what goes with it; ``ask`` gives an answer that can be compared."""

    call: str
    column: str = ""
    op: str = ""
    value: Any = None

    def __str__(self) -> str:
        return " ".join(str(part) for part in (self.call, self.column, self.op, self.value) if part not in {"", None})

    def ask(self, path: Path) -> Any:
        """The answer; what writes does so in a copy."""
        SHARED.clear()
        if self.call not in _COPIED:
            return getattr(self, f"_{self.call}")(path)
        with tempfile.TemporaryDirectory(dir=path.parent) as home:
            return getattr(self, f"_{self.call}")(Path(shutil.copytree(path, Path(home) / "t")))

    @property
    def _filter(self) -> Any:
        field = pc.field(self.column)
        match self.op:
            case "":
                return None
            case "is null":
                return field.is_null()
            case "in":
                return field.isin(self.value)
            case "starts with":
                return f"{self.column} LIKE '{self.value}%'"
            case "=":
                return field == self.value
            case ">=":
                return field >= self.value
            case _:
                return field < self.value

    def _scan(self, path: Path) -> Any:
        return shown(Table.open(path).scan(self._filter).to_arrow())

    def _column(self, path: Path) -> Any:
        return shown(Table.open(path).scan(columns=[self.column]).to_arrow())

    def _count(self, path: Path) -> Any:
        return Table.open(path).scan(self._filter).count()

    def _first(self, path: Path) -> Any:
        found = Table.open(path).scan(order_by=f"{self.column} DESC", limit=5, columns=[self.column]).to_arrow()
        return list(map(repr, found.to_pylist()))

    def _lookup(self, path: Path) -> Any:
        wanted = None
        for column, value in self.value:
            one = pc.field(column) == value
            wanted = one if wanted is None else wanted & one
        return shown(Table.open(path).scan(wanted).to_arrow())

    def _tag(self, path: Path) -> Any:
        return shown(Table.open(path).scan(tag=self.value).to_arrow())

    def _snapshot(self, path: Path) -> Any:
        return shown(Table.open(path).scan(snapshot=self.value).to_arrow())

    def _branch(self, path: Path) -> Any:
        return shown(Table.open(path, branch=self.value).scan().to_arrow())

    def _changes(self, path: Path) -> Any:
        return shown(Table.open(path).changelog(self.value).to_arrow())

    def _statistics(self, path: Path) -> Any:
        return shown(Table.open(path).statistics())

    def _follow(self, path: Path) -> Any:
        return sorted(line for batch in Table.open(path).follow(consumer=self.value) for line in shown(batch.rows))

    def _compact(self, path: Path) -> Any:
        Table.open(path).compact(full=True)
        return shown(Table.open(path).scan().to_arrow())

    def _write(self, path: Path) -> Any:
        """The first rows once more, as the next write."""
        table = Table.open(path)
        some = table.scan(columns=list(table.schema.names)).to_arrow().sort_by(table.schema.names[0]).slice(0, 3)
        table.write(some)
        return shown(Table.open(path).scan().to_arrow())

    def _repeat(self, path: Path) -> Any:
        """A write that was done, by its id."""
        table = Table.open(path)
        done = table.write(table.schema.empty_table(), commit_id=REPEATED)
        return done.replayed, shown(Table.open(path).scan().to_arrow())

    def _batch(self, path: Path) -> Any:
        """A batch that was done, by its number."""
        table = Table.open(path)
        some = table.scan().to_arrow().sort_by(table.schema.names[0]).slice(0, 1)
        done = table.write(some, commit_id="job", batch_id=1)
        return done.replayed, shown(Table.open(path).scan().to_arrow())


_COPIED = frozenset({"compact", "write", "repeat", "batch", "follow"})


def shown(rows: Any) -> list[str]:
    """Rows in an order of their own, as text, which tells NaN from null and -0.0 from 0.0; of many only a digest a column."""
    if len(rows) > 2_000:
        ordered = rows.sort_by(rows.schema.names[0])
        return [str(len(rows)), *(f"{name}: {_digest(ordered[name])}" for name in rows.schema.names)]
    return sorted(map(repr, rows.to_pylist()))


def _digest(column: Any) -> str:
    """Of a flat column: where its nulls are, and its values bit by bit."""
    filled = column.combine_chunks()
    batches = [pa.record_batch([part], names=[""]) for part in (filled.is_null(), filled.drop_null())]
    return " ".join(f"{zlib.crc32(batch.serialize()):08x}" for batch in batches)


def questions(path: Path) -> Iterator[Question]:
    """All that is asked of the table at ``path``, which is whole."""
    table = Table.open(path)
    rows = table.scan().to_arrow()
    yield from (Question("scan"), Question("count"), Question("compact"), Question("write"))
    for name in rows.schema.names:
        yield Question("column", name)
        yield Question("scan", name, "is null")
        column = rows[name].combine_chunks().drop_null()
        if not any(is_such(column.type) for is_such in _ASKED_AS) or not len(column):
            continue
        known = column.unique()
        values = [known[at].as_py() for at in {0, len(known) // 2, len(known) - 1}]
        yield Question("first", name)
        yield Question("scan", name, "in", tuple(values))
        yield from (Question("scan", name, "=", value) for value in values)
        if not pa.types.is_boolean(column.type):
            yield Question("scan", name, ">=", values[len(values) // 2])
            yield Question("count", name, "<", values[-1])
        if pa.types.is_string(column.type):
            yield Question("scan", name, "starts with", values[-1][:5])
    for row in rows.slice(0, 2).to_pylist():
        if table.primary_keys:
            yield Question("lookup", value=tuple((key, row[key]) for key in table.primary_keys))
    yield from _of_history(table, path)


def _of_history(table: Table, path: Path) -> Iterator[Question]:
    snapshots = table.snapshots()["snapshot_id"].to_pylist()
    yield from (Question("tag", value=name) for name in table.tags()["tag_name"].to_pylist())
    yield from (Question("snapshot", value=number) for number in sorted(snapshots)[:-1][:3])
    yield from (Question("branch", value=name) for name in table.branches()["branch_name"].to_pylist())
    yield from (Question("changes", value=number) for number in (min(snapshots), max(snapshots) - 1))
    yield from (Question("statistics"), Question("follow"), Question("repeat"))
    if (path / "consumer").exists():
        yield Question("follow", value="reader")
    if (path / "writer").exists():
        yield Question("batch")


@dataclass(frozen=True)
class Answer:
    """What a question gives while the table is whole, and the files that are read for it, from the table's directory on."""

    question: Question
    answer: Any
    files: frozenset[str]


def truth(path: Path) -> list[Answer]:
    """All questions that the table answers, with their answers."""
    found = []
    with _Reads(path) as reads:
        for question in questions(path):
            reads.files.clear()
            with suppress(PaimonError):
                answer = question.ask(path)
                found.append(Answer(question, answer, frozenset(reads.files)))
    return found


class _Reads:
    """Notes the files of a table that are read, in it or in a copy."""

    _CALLS = ("read", "read_range", "open_input")

    def __init__(self, path: Path) -> None:
        self.files: set[str] = set()
        self._home, self._name = str(path.parent) + "/", path.name
        self._whole = {name: getattr(LocalFileIO, name) for name in self._CALLS}

    def __enter__(self) -> Self:
        for name, call in self._whole.items():
            setattr(LocalFileIO, name, self._noted(call))
        return self

    def __exit__(self, *_: object) -> None:
        for name, call in self._whole.items():
            setattr(LocalFileIO, name, call)

    def _noted(self, call: Any) -> Any:
        def noted(file_io: Any, path: str, *arguments: Any) -> Any:
            _, _, inside = path.removeprefix(self._home).partition(f"{self._name}/")  # of the table, or of a copy
            self.files.add(inside)
            return call(file_io, path, *arguments)

        return noted
