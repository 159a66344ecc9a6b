"""Who can take a turn at a table: we, the engine that owns the format, and the peers, behind one set of moves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_paimon import Table
from tests.golden_rows import ENGINES_VIEW, canonical
from tests.interop.engine import Engine
from tests.interop.features import JAVA
from tests.interop.peers import Peer
from tests.interop.turn_tables import Configuration, Row

OURS = "ours"


class Player(ABC):
    """One engine's hands. What it cannot do is not in ``moves``; ``only_adds``: it writes no row kinds of its own."""

    name: str
    moves: frozenset[str]
    only_adds = False

    @abstractmethod
    def create(self, path: Path, configuration: Configuration) -> None:
        """An empty table of this configuration."""

    @abstractmethod
    def write(self, path: Path, rows: list[Row], *, overwrite: bool = False) -> None:
        """Rows in one commit."""

    @abstractmethod
    def read(self, path: Path, *, tag: str | None = None, branch: str | None = None) -> list[str]:
        """The rows as canonical JSON lines, sorted."""


class Ours(Player):
    name = OURS
    moves = frozenset({"write", "compact", "expire", "tag", "branch", "overwrite", "delete", "alter", "indexes"})

    def create(self, path: Path, configuration: Configuration) -> None:
        schema = configuration.schema
        columns = ", ".join(f"{field['name']} {field['type']}" for field in schema["fields"])
        Table.create(path, columns, schema["primaryKeys"], schema["partitionKeys"], schema["options"])

    def write(self, path: Path, rows: list[Row], *, overwrite: bool = False) -> None:
        table = Table.open(path)
        data = arrow_rows(rows, table)
        if table.table_schema.primary_keys and "rowkind.field" not in table.options:
            data = data.append_column("_row_kind", pa.array([row["_kind"] for row in rows]))
        table.write(data, mode="overwrite" if overwrite else None)

    def read(self, path: Path, *, tag: str | None = None, branch: str | None = None) -> list[str]:
        return lines(Table.open(path, branch=branch or "main").scan(tag=tag, options=ENGINES_VIEW).to_arrow())

    def read_merged(self, path: Path) -> list[str]:
        """As ``read``, with what waits for a compaction."""
        return lines(Table.open(path).scan().to_arrow())

    def compact(self, path: Path, *, full: bool) -> None:
        Table.open(path).compact(full=full)

    def expire(self, path: Path, keep: int) -> None:
        Table.open(path).expire_snapshots(retain_min=keep, retain_max=keep)

    def tag(self, path: Path, name: str) -> None:
        Table.open(path).create_tag(name)

    def branch(self, path: Path, name: str, tag: str) -> None:
        Table.open(path).create_branch(name, from_tag=tag)

    def delete(self, path: Path, column: str, value: int) -> None:
        Table.open(path).delete(f"{column} = {value}")

    def add_column(self, path: Path, name: str, kind: str) -> None:
        Table.open(path).add_column(name, kind)

    def drop_column(self, path: Path, name: str) -> None:
        Table.open(path).drop_column(name)

    def indexes(self, path: Path, options: dict[str, str | None]) -> None:
        Table.open(path).alter_options(options).rewrite_file_index()

    def changelog(self, path: Path, snapshot: int) -> list[str]:
        """The changelog of one snapshot: its rows with ``_kind``, sorted as text."""
        table = Table.open(path)
        rows = table.scan(incremental=(snapshot - 1, snapshot), incremental_mode="changelog").to_arrow()
        kinds = rows["_row_kind"].to_pylist()
        return sorted(
            canonical({"_kind": kind, **row}) for kind, row in zip(kinds, rows.select(table.schema.names).to_pylist(), strict=True)
        )


class Java(Player):
    name = JAVA
    moves = frozenset({"write", "compact", "expire", "tag", "branch", "overwrite", "alter", "delete"})

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def create(self, path: Path, configuration: Configuration) -> None:
        self.engine.ask("create", path, **configuration.schema)

    def write(self, path: Path, rows: list[Row], *, overwrite: bool = False) -> None:
        self.engine.write(path, rows, overwrite={} if overwrite else None)

    def read(self, path: Path, *, tag: str | None = None, branch: str | None = None) -> list[str]:
        options = {} if tag is None else {"scan.tag-name": tag}
        return sorted(canonical(row) for row in self.engine.dump(path, options=options, branch=branch))

    def compact(self, path: Path, *, full: bool) -> None:
        self.engine.compact(path, full=full)

    def expire(self, path: Path, keep: int) -> None:
        self.engine.expire(path, keep=keep)

    def tag(self, path: Path, name: str) -> None:
        self.engine.ask("tag", path, name=name)

    def branch(self, path: Path, name: str, tag: str) -> None:
        self.engine.ask("branch", path, name=name, tag=tag)

    def delete(self, path: Path, column: str, value: int) -> None:
        self.engine.delete(path, {"op": "=", "col": column, "value": value})

    def add_column(self, path: Path, name: str, kind: str) -> None:
        self.engine.alter(path, {"change": "add", "column": name, "type": kind})

    def drop_column(self, path: Path, name: str) -> None:
        self.engine.alter(path, {"change": "drop", "column": name})

    def changelog(self, path: Path, snapshot: int) -> list[str]:
        """As ours."""
        options = {"incremental-between": f"{snapshot - 1},{snapshot}", "incremental-between-scan-mode": "changelog"}
        return sorted(canonical(row) for row in self.engine.dump(path, kinds=True, options=options))


class Python(Player):
    """A peer; of row kinds it writes only those of a ``rowkind.field``."""

    only_adds = True
    moves = frozenset({"write", "tag", "branch", "alter"})

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.name = peer.name

    def create(self, path: Path, configuration: Configuration) -> None:
        self.peer.create(path, configuration.schema)

    def write(self, path: Path, rows: list[Row], *, overwrite: bool = False) -> None:
        self.peer.write(path, arrow_rows(rows, Table.open(path)), overwrite={} if overwrite else None)

    def read(self, path: Path, *, tag: str | None = None, branch: str | None = None) -> list[str]:
        return lines(self.peer.read(path, branch=branch, options=None if tag is None else {"scan.tag-name": tag}))

    def tag(self, path: Path, name: str) -> None:
        self.peer.ask("create_tag", path=str(path), name=name)

    def branch(self, path: Path, name: str, tag: str) -> None:
        self.peer.ask("create_branch", path=str(path), name=name, tag=tag)

    def add_column(self, path: Path, name: str, kind: str) -> None:
        self.alter(path, ["add_column", name, kind])

    def drop_column(self, path: Path, name: str) -> None:
        self.alter(path, ["drop_column", name])

    def alter(self, path: Path, *changes: list[Any]) -> None:
        self.peer.ask("alter", path=str(path), changes=list(changes))


def lines(rows: pa.Table) -> list[str]:
    return sorted(canonical(row) for row in rows.to_pylist())


def arrow_rows(rows: list[Row], table: Table) -> pa.Table:
    """JSON rows as Arrow in the table's schema."""
    names = set(table.schema.names)
    return pa.Table.from_pylist([{name: value for name, value in row.items() if name in names} for row in rows], schema=table.schema)
