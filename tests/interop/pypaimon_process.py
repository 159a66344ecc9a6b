"""pypaimon in a process of its own: one JSON request a line on standard input, one JSON answer a line on standard output.

It runs in the peer's virtual environment (other versions of pyarrow and pandas than ours), so it imports nothing of this project. Rows
travel as Arrow IPC files. A request is ``{"op": name, ...}``, an answer ``{"ok": value}`` or ``{"error": type, "message": text}``.
Tables lie in a database directory, ``<warehouse>/<name>.db/<table>``, since the peer's native half opens tables through a catalog only.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import sys
import traceback
from decimal import Decimal
from pathlib import Path

NATIVE = ("read.native.enabled", "scan.native-plan.enabled", "write.native.enabled", "commit.native.enabled")
COMPARISONS = {
    "=": "equal", "!=": "not_equal", "<": "less_than", "<=": "less_or_equal", ">": "greater_than", ">=": "greater_or_equal",
    "starts_with": "startswith", "in": "is_in", "not_in": "is_not_in", "is_null": "is_null", "is_not_null": "is_not_null",
}  # fmt: skip
CALENDAR = {"DATE": dt.date.fromisoformat, "TIMESTAMP": dt.datetime.fromisoformat, "DECIMAL": Decimal}


class Fallbacks(logging.Handler):
    """Collects what the peer says when it leaves its native half and goes on in Python."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.said = []

    def emit(self, record):
        text = record.getMessage()
        if "native" in text.lower() and ("fall" in text.lower() or "using Python" in text):
            self.said.append(text)

    def taken(self):
        said, self.said = self.said, []
        return said


class Peer:
    """The operations; each returns something that JSON knows."""

    def __init__(self, native):
        self.options = dict.fromkeys(NATIVE, "true") if native else {}
        self.storage = {}
        self.fallbacks = Fallbacks()
        for name in ("pypaimon",):
            logger = logging.getLogger(name)
            logger.setLevel(logging.DEBUG)
            logger.propagate = False
            logger.addHandler(self.fallbacks)

    def catalog(self, path):
        from pypaimon import CatalogFactory

        warehouse, database, name = path.rsplit("/", 2)
        options = self.storage if "://" in path else {}
        return CatalogFactory.create({"warehouse": warehouse, **options}), f"{database.removesuffix('.db')}.{name}"

    def reach(self, storage):
        """Options by which tables on object stores are reached from now on."""
        self.storage = storage

    def table(self, path, options=None, branch=None):
        catalog, name = self.catalog(path)
        table = catalog.get_table(name if branch is None else f"{name}$branch_{branch}")
        return table.copy({**self.options, **(options or {})}) if self.options or options else table

    def versions(self):
        from importlib.metadata import version

        return {name: version(name) for name in ("pypaimon", "pyarrow", *(["pypaimon-rust"] if self.options else []))}

    def taken_fallbacks(self):
        return self.fallbacks.taken()

    def create(self, path, schema):
        from pypaimon import Schema
        from pypaimon.schema.data_types import DataField

        catalog, name = self.catalog(path)
        catalog.create_database(name.split(".")[0], ignore_if_exists=True)
        fields = [DataField.from_dict({"id": at, **field}) for at, field in enumerate(schema["fields"])]
        made = Schema(
            fields=fields,
            primary_keys=schema.get("primaryKeys", []),
            partition_keys=schema.get("partitionKeys", []),
            options=schema.get("options", {}),
        )
        catalog.create_table(name, made, ignore_if_exists=False)

    def write(self, path, rows, overwrite=None, options=None, branch=None):
        import pyarrow as pa

        table = self.table(path, options, branch)
        with pa.ipc.open_file(rows) as reader:
            data = reader.read_all()
        wanted = self.arrow_schema(table)
        data = data.select(wanted.names).cast(wanted)
        builder = table.new_batch_write_builder()
        if overwrite is not None:
            builder = builder.overwrite(overwrite)
        writer, commit = builder.new_write(), builder.new_commit()
        try:
            writer.write_arrow(data)
            commit.commit(writer.prepare_commit())
        finally:
            writer.close()
            commit.close()
        return table.snapshot_manager().get_latest_snapshot().id

    def arrow_schema(self, table):
        from pypaimon.schema.data_types import PyarrowFieldParser

        return PyarrowFieldParser.from_paimon_schema(table.table_schema.fields)

    def read(self, path, out, *, filter=None, columns=None, limit=None, options=None, branch=None):  # noqa: A002
        import pyarrow as pa

        table = self.table(path, options, branch)
        builder = table.new_read_builder()
        if columns is not None:
            builder = builder.with_projection(columns)
        if limit is not None:
            builder = builder.with_limit(limit)
        if filter is not None:
            builder = builder.with_filter(self.predicate(table, builder.new_predicate_builder(), filter))
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        with pa.ipc.new_file(out, found.schema) as writer:
            writer.write_table(found)
        return found.num_rows

    def plan(self, path, filter=None, options=None):  # noqa: A002
        table = self.table(path, options)
        builder = table.new_read_builder()
        if filter is not None:
            builder = builder.with_filter(self.predicate(table, builder.new_predicate_builder(), filter))
        return sorted(file.file_name for split in builder.new_scan().plan().splits() for file in split.files)

    def predicate(self, table, builder, form):
        op = form["op"]
        if op in ("and", "or"):
            parts = [self.predicate(table, builder, part) for part in form["args"]]
            return builder.and_predicates(parts) if op == "and" else builder.or_predicates(parts)
        kind = str(next(field.type for field in table.fields if field.name == form["col"]))
        convert = next((made for name, made in CALENDAR.items() if kind.startswith(name)), lambda value: value)
        if op in ("is_null", "is_not_null"):
            return getattr(builder, COMPARISONS[op])(form["col"])
        value = [convert(item) for item in form["values"]] if "values" in form else convert(form["value"])
        if op == "between":
            return builder.between(form["col"], *value)
        return getattr(builder, COMPARISONS[op])(form["col"], value)

    def snapshots(self, path, branch=None):
        manager = self.table(path, branch=branch).snapshot_manager()
        return [{"id": found.id, "kind": found.commit_kind, "rows": found.total_record_count} for found in manager.list_snapshots()]

    def tags(self, path):
        return sorted(getattr(tag, "name", tag) for tag in self.table(path).list_tags())

    def create_tag(self, path, name, snapshot=None):
        self.table(path).create_tag(name, snapshot)

    def delete_tag(self, path, name):
        self.table(path).delete_tag(name)

    def branches(self, path):
        return sorted(self.table(path).branch_manager().branches())

    def create_branch(self, path, name, tag=None):
        self.table(path).branch_manager().create_branch(name, tag)

    def rollback(self, path, target):
        self.table(path).rollback_to(target)

    def alter(self, path, changes):
        """``changes``: lists like ``["add_column", name, type]``, ``["rename_column", a, b]``, ``["set_option", key, value]``."""
        from pypaimon.schema.data_types import DataTypeParser
        from pypaimon.schema.schema_change import SchemaChange

        typed = {"add_column", "update_column_type"}
        made = [
            getattr(SchemaChange, verb)(args[0], DataTypeParser.parse_data_type(args[1]))
            if verb in typed
            else getattr(SchemaChange, verb)(*args)
            for verb, *args in changes
        ]
        catalog, name = self.catalog(path)
        catalog.alter_table(name, made)

    def hold_renames(self, seconds):
        """From now on wait before each rename of a snapshot: the time between the look whether its name is free and the rename over it."""
        import time

        plain = getattr(Path.rename, "plain", Path.rename)

        def rename(source, target):
            if Path(target).name.startswith("snapshot-"):
                time.sleep(seconds)
            return plain(source, target)

        rename.plain = plain
        Path.rename = rename

    def truncate(self, path):
        commit = self.table(path).new_batch_write_builder().new_commit()
        commit.truncate_table()
        commit.close()

    def delete(self, path, filter):  # noqa: A002
        table = self.table(path)
        builder = table.new_batch_write_builder()
        predicate = self.predicate(table, table.new_read_builder().new_predicate_builder(), filter)
        commit = builder.new_commit()
        commit.commit(builder.new_update().delete_by_predicate(predicate))
        commit.close()


def answer(peer, request):
    op = request.pop("op")
    if op.startswith("_") or op not in vars(Peer):
        raise ValueError(f"no operation {op}")
    return getattr(peer, op)(**request)


def main():
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the peer prints must not mix with the answers
    peer = Peer(native="--native" in sys.argv)
    for line in sys.stdin:
        try:
            said = {"ok": answer(peer, json.loads(line))}
        except Exception as error:  # noqa: BLE001  # every failure is an answer
            said = {"error": type(error).__name__, "message": str(error), "trace": traceback.format_exc()}
        channel.write(json.dumps(said) + "\n")
        channel.flush()


if __name__ == "__main__":
    main()
