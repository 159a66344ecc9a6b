"""The engine that owns the format, Paimon's Java core, as a process that answers in milliseconds.

``Engine.start()`` builds it if need be (``engine_build``) and runs it; each method is one question about a table directory.

Protocol, both ways one JSON object a line, in UTF-8:

* request ``{"verb": ..., "table": PATH, ...}``; every verb takes ``options`` (dynamic table options, strings), ``branch``, and for the path
  of an object store ``storage`` (how it is reached, strings);
* answer ``{"ok": ...}`` or ``{"error": {"type", "message", "cause", "trace"}}``, raised here as ``EngineError``.

=============  ====================================================================================================================
verb          fields -> answer
=============  ====================================================================================================================
create        fields [{name, type, description?, defaultValue?}], primaryKeys, partitionKeys, options, comment -> schema
alter         changes [{change: add|drop|rename|type|nullable|comment|default|move|set|remove, column (name or path), ...}] -> schema
schema        id? -> schema, as in the schema file
write         batches [[row..]..], user?, identifier?, overwrite {partition}?, replay? -> {snapshot, committed, rows}
delete        filter -> {snapshot, rows}; deletion vectors on an append table
compact       full? -> {snapshot}; write-only tables too
dump          filter?, columns?, kinds? -> [row..] after merging; the filter is pushed down and checked again
follow        -> [row..] with their kinds, that a stream gives from where ``scan.mode`` begins to the newest snapshot
raw           filter? -> {rows}: how many rows are left by skipping alone
plan          filter? -> [split..] with files and their deletion files
files         snapshot? -> [file..]: manifest entries with decoded bounds
snapshots     -> [snapshot..], as in the snapshot files
cluster       full? -> [{partition, outputLevel, files}..]: what incremental clustering would sort now
indexes       -> [{file, embedded, columns {column: {type: bytes}}}..]
index_eval    filter -> [{file, bucket, rowCount, index, positions?, evaluated}..]: SKIP, REMAIN or BITMAP:n
tag, branch   do: create|delete|rename / create|delete|fast_forward, name, ... -> names
rollback      snapshot or tag -> {snapshot}
expire        keep, keepMax?, millis? -> {expired}
system        name -> {columns [{name, type}], primaryKeys, rows [row..]}: a table about the table, such as ``snapshots``
system_tables -> their names
fsck          -> {snapshots, dataFiles, problems [text..], notes [text..]}: every file of every snapshot and tag is read
=============  ====================================================================================================================

A row is an object by column name; rows to write may have ``_kind``: ``+I -U +U -D``, and dumped ones have it if asked for. Values:
text, booleans and integers as JSON; FLOAT and DOUBLE as numbers or ``"NaN"``, ``"Infinity"``, ``"-Infinity"``; bytes in hex; DECIMAL as
text with the scale's digits; DATE ``yyyy-mm-dd``; TIME ``hh:mm:ss.mmm``; TIMESTAMP ISO with 6 digits (9 above precision 6), local-zoned
ones end in ``Z``; ARRAY a list; MAP and MULTISET pairs sorted by the key's text; ROW an object. ``tests/golden_rows.py`` turns Arrow
into the same form. Filters: ``{"op": "=|!=|<|<=|>|>=|starts_with", "col", "value"}``, ``{"op": "in|not_in|between", "col", "values"}``,
``{"op": "is_null|is_not_null", "col"}``, ``{"op": "and|or", "args"}``; a map entry is the column ``m[key]``, which the engine never pushes
into its scan. Times are UTC.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.interop.engine_build import ENGINE

Row = Mapping[str, Any]
Filter = Mapping[str, Any]
_HEAP = "512m"
_OPENED = ("java.lang", "java.util", "java.nio", "sun.nio.ch")


class EngineError(Exception):
    """What the engine threw: ``type`` and ``cause`` name the Java exceptions."""

    def __init__(self, verb: str, error: Mapping[str, Any]) -> None:
        self.type, self.cause = str(error["type"]), str(error["cause"])
        super().__init__(f"{verb}: {self.type}: {error['message']} (cause: {self.cause})\n  " + "\n  ".join(error["trace"]))


class Engine:
    """A running engine. Not to be shared between threads."""

    def __init__(self, process: subprocess.Popen[str], log: Any) -> None:
        self._process, self._log = process, log

    @classmethod
    def start(cls, *more: Path) -> Engine:
        """Run the engine, with ``more`` jars; raises ``EngineUnavailable`` where it cannot be."""
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        flags = [
            f"-Xmx{_HEAP}",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Xshare:auto",
            "-Duser.timezone=UTC",
            "-Dfile.encoding=UTF-8",
        ]
        command = [ENGINE.java(), *flags, *opened, "-cp", os.pathsep.join([ENGINE.class_path(), *map(str, more)]), "interop.Main"]
        log = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8")
        return cls(process, log)

    def stop(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def ask(self, verb: str, table: str | os.PathLike[str], **fields: Any) -> Any:
        """One request and its answer; fields that are None are left out."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"verb": verb, "table": os.fspath(table), **{name: value for name, value in fields.items() if value is not None}}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise RuntimeError(f"the engine ended during {verb}: {self._log.read()[-4000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(verb, answer["error"])
        return answer["ok"]

    def create(
        self,
        table: Path | str,
        fields: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Create a table; ``fields`` are columns in full, or types by name."""
        columns = [{"name": name, "type": kind} for name, kind in fields.items()] if isinstance(fields, Mapping) else list(fields)
        keys = {"primaryKeys": list(primary_keys), "partitionKeys": list(partition_keys)}
        return self.ask("create", table, fields=columns, **keys, options=dict(options or {}), **more)

    def alter(self, table: Path | str, *changes: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Change the schema."""
        return self.ask("alter", table, changes=list(changes), **more)

    def write(self, table: Path | str, *batches: Iterable[Row], **more: Any) -> dict[str, Any]:
        """Commit rows; each batch becomes files of its own. ``overwrite={}`` replaces, ``identifier`` and ``user`` name the commit."""
        return self.ask("write", table, batches=[list(batch) for batch in batches], **more)

    def delete(self, table: Path | str, filter: Filter, **more: Any) -> dict[str, Any]:  # noqa: A002  # SQL's word
        """Mark the rows of an append table that match as deleted."""
        return self.ask("delete", table, filter=filter, **more)

    def compact(self, table: Path | str, *, full: bool = False, **more: Any) -> dict[str, Any]:
        """Compact every bucket."""
        return self.ask("compact", table, full=full, **more)

    def dump(self, table: Path | str, filter: Filter | None = None, **more: Any) -> list[dict[str, Any]]:  # noqa: A002  # as above
        """Rows after merging."""
        return self.ask("dump", table, filter=filter, **more)

    def follow(self, table: Path | str, **more: Any) -> list[dict[str, Any]]:
        """The rows of a stream up to now, with their kinds; ``options`` say where it begins."""
        return self.ask("follow", table, **more)

    def raw(self, table: Path | str, filter: Filter | None = None, **more: Any) -> int:  # noqa: A002  # as above
        """How many rows skipping alone leaves."""
        return self.ask("raw", table, filter=filter, **more)["rows"]

    def plan(self, table: Path | str, filter: Filter | None = None, **more: Any) -> list[dict[str, Any]]:  # noqa: A002  # as above
        """The splits of a scan."""
        return self.ask("plan", table, filter=filter, **more)

    def files(self, table: Path | str, **more: Any) -> list[dict[str, Any]]:
        """Live files with their metadata."""
        return self.ask("files", table, **more)

    def snapshots(self, table: Path | str, **more: Any) -> list[dict[str, Any]]:
        """The snapshots that are kept."""
        return self.ask("snapshots", table, **more)

    def cluster(self, table: Path | str, *, full: bool = False, **more: Any) -> list[dict[str, Any]]:
        """What incremental clustering would sort now: by partition the files, and the level for what comes out."""
        return self.ask("cluster", table, full=full, **more)

    def indexes(self, table: Path | str, **more: Any) -> list[dict[str, Any]]:
        """What the index containers hold."""
        return self.ask("indexes", table, **more)

    def index_eval(self, table: Path | str, filter: Filter, **more: Any) -> list[dict[str, Any]]:  # noqa: A002  # as above
        """What the index of each file answers."""
        return self.ask("index_eval", table, filter=filter, **more)

    def tag(self, table: Path | str, name: str, **more: Any) -> list[str]:
        """Create a tag of a ``snapshot`` or the newest one, or with ``do`` ``delete`` or ``rename`` (``to``) it; all tags."""
        return self.ask("tag", table, name=name, **more)

    def branch(self, table: Path | str, name: str, **more: Any) -> list[str]:
        """Create a branch, from a ``tag`` or empty, or with ``do`` ``delete`` or ``fast_forward`` it; all branches."""
        return self.ask("branch", table, name=name, **more)

    def rollback(self, table: Path | str, **more: Any) -> int:
        """Go back to a ``snapshot`` or a ``tag``; the newest snapshot now."""
        return self.ask("rollback", table, **more)["snapshot"]

    def expire(self, table: Path | str, keep: int = 1, **more: Any) -> int:
        """Expire all but the newest ``keep`` snapshots; how many went."""
        return self.ask("expire", table, keep=keep, **more)["expired"]

    def system(self, table: Path | str, name: str, **more: Any) -> dict[str, Any]:
        """The columns and rows of one of its system tables."""
        return self.ask("system", table, name=name, **more)

    def fsck(self, table: Path | str, **more: Any) -> list[str]:
        """What is wrong with the table, in words; empty for nothing."""
        return self.ask("fsck", table, **more)["problems"]
