"""Statement CALL sys.procedure(...), with Paimon's procedure names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from manifest.options.durations import parse_duration_millis
from paimon_base.errors import InvalidArgument, PaimonError
from paimon_base.texts import count_text
from pyspark_paimon.catalog.view import SPARK
from pyspark_paimon.plugins.sql.answers import frame_of_result, frame_of_rows
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.table_functions import table_name
from pyspark_paimon.plugins.sql.text.words import TokenCursor, WrittenValue
from pyspark_paimon.request.requests import OrphanFile
from pyspark_paimon.table.table import Table

Arguments = Mapping[str, WrittenValue]
"""Values by argument name, without NULLs."""


def arguments_of(words: TokenCursor, procedure: str, order: list[str]) -> dict[str, WrittenValue]:
    """Parse arguments in parentheses, by name or by position.

    order: Names of all arguments in order.
    Raises ``InvalidArgument`` for unknown and repeated arguments.
    """
    value_by_name: dict[str, WrittenValue] = {}
    for _ in words.items():
        position = len(value_by_name)
        if words.peek(1) == "=>":
            name = words.part().lower()
            words.expect("=>")
        elif position < len(order):
            name = order[position]
        else:
            raise InvalidArgument(f"{procedure} takes {count_text(len(order), 'argument')}: {', '.join(order)}")
        words.take("TIMESTAMP")
        # Paimon writes some arguments as consumerId, others as older_than.
        name = next((argument for argument in order if argument.replace("_", "") == name.replace("_", "")), name)
        if name not in order:
            raise InvalidArgument(f"{procedure} has no argument '{name}'; it takes {', '.join(order)}")
        if name in value_by_name:
            raise InvalidArgument(f"{procedure}: argument '{name}' is given twice")
        value_by_name[name] = words.literal()
    return {name: value for name, value in value_by_name.items() if value is not None}


def required_text(arguments: Arguments, name: str) -> str:
    """Return the text of a required argument."""
    if name not in arguments:
        raise InvalidArgument(f"the procedure needs an argument '{name}'")
    return str(arguments[name])


def _optional_text(arguments: Arguments, name: str) -> str | None:
    return None if name not in arguments else str(arguments[name])


def true_or_false(arguments: Arguments, name: str) -> bool:
    """Return a boolean argument; False if it is absent."""
    text = str(arguments.get(name, False)).lower()
    if text not in {"true", "false"}:
        raise InvalidArgument(f"argument '{name}' must be true or false, not {arguments[name]!r}")
    return text == "true"


def whole_number(arguments: Arguments, name: str) -> int | None:
    """Return an integer argument; None if it is absent."""
    value = arguments.get(name)
    if value is None or type(value) is int:
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    raise InvalidArgument(f"argument '{name}' must be a whole number, not {value!r}")


def parts_of(arguments: Arguments, name: str, separator: str = ",") -> list[str]:
    """Split a text argument; an absent one has no parts."""
    return [part.strip() for part in str(arguments.get(name, "")).split(separator) if part.strip()]


def partitions_of(arguments: Arguments) -> list[dict[str, object]] | None:
    """Parse ``partitions``: ``day=2026-01-01,hour=7;day=2026-01-02``."""
    specs = [dict(_pair(pair, "partitions") for pair in part.split(",")) for part in parts_of(arguments, "partitions", ";")]
    return [{**spec} for spec in specs] or None


def options_of(arguments: Arguments) -> dict[str, str] | None:
    """Parse ``options``: ``name=value`` pairs with commas."""
    return dict(_pair(pair, "options") for pair in parts_of(arguments, "options")) or None


def _pair(text: str, argument: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidArgument(f"argument '{argument}' must have the form name=value, not {text!r}")
    return name.strip(), value.strip().strip("'\"")


def time_of(arguments: Arguments, name: str) -> Any:
    """Return a time argument: a text, or milliseconds."""
    value = arguments.get(name)
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def time_retained(arguments: Arguments) -> timedelta | None:
    """Return the retention time of a tag, or None."""
    return _duration(arguments, "time_retained")


def _duration(arguments: Arguments, name: str) -> timedelta | None:
    value = arguments.get(name)
    if value is None:
        return None
    try:
        return timedelta(milliseconds=parse_duration_millis(str(value), name))
    except OverflowError:
        raise InvalidArgument(f"argument '{name}' must be a shorter time than '{value}'; nothing was changed") from None


NAMESPACE = "sys"
_EXPIRY_OPTIONS = {
    "timestamp_formatter": "partition.timestamp-formatter",
    "timestamp_pattern": "partition.timestamp-pattern",
    "expire_strategy": "partition.expiration-strategy",
    "max_expires": "partition.expiration-max-num",
}


@dataclass(frozen=True)
class Procedure:
    """A procedure on a table.

    arguments: Names of the arguments after ``table``, in Paimon's order, separated by spaces.
    """

    arguments: str
    act: Callable[[Table, Arguments], Any]


def call_procedure(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``CALL [paimon.]sys.name(...)``; None for other procedures."""
    name = words.name()
    if len(name) < 2 or name[-2].lower() != NAMESPACE:
        return None
    called = name[-1].lower()
    if called in UNSUPPORTED:
        raise InvalidArgument(f"procedure '{name[-1]}' is not supported: {UNSUPPORTED[called]}")
    if called in OF_CATALOGS:
        return OF_CATALOGS[called](names, words)
    procedure = PROCEDURES.get(called)
    if procedure is None:
        near = get_close_matches(name[-1].lower(), PROCEDURES, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(PROCEDURES)}"
        raise InvalidArgument(f"unknown procedure '{name[-1]}'; {hint}")
    arguments = arguments_of(words, called, ["table", *procedure.arguments.split()])
    words.end()
    table = arguments.pop("table", None)
    if not isinstance(table, str):
        raise InvalidArgument(f"{name[-1]} needs a table: CALL sys.{name[-1]}(table => 'db.t')")
    if table.endswith(".*") and called == "remove_orphan_files":
        results = [procedure.act(opened, arguments) for _, opened in _tables(names, re.escape(table[:-2]))]
        return frame_of_rows(names.spark, pa.concat_tables(results) if results else _orphan_rows([]))
    result = procedure.act(names.table(table_name(table)), arguments)
    return frame_of_rows(names.spark, result) if isinstance(result, pa.Table) else frame_of_result(names.spark, result)


def _tables(names: KnownTables, databases: str = ".*", including: str = ".*", excluding: str | None = None) -> Iterator[tuple[str, Table]]:
    """Yield the tables of a catalog whose names match.

    Raises ``InvalidArgument`` without a catalog, or for a text that is not a regular expression.
    """
    if names.catalog is None:
        raise InvalidArgument("a procedure on a database needs a catalog: sql(spark, text, catalog=Catalog('/warehouse'))")
    try:
        patterns = [re.compile(pattern) for pattern in (databases, including, excluding or r"(?!)")]
    except re.error as error:
        raise InvalidArgument(f"an argument is not a regular expression: {error}") from error
    for database in names.catalog.list_databases():
        for table in names.catalog.list_tables(database) if patterns[0].fullmatch(database) else ():
            name = f"{database}.{table}"
            if patterns[1].fullmatch(name) and not patterns[2].fullmatch(name):
                yield name, names.catalog.table(name, names.spark)


def _copy(names: KnownTables, words: TokenCursor) -> Any:
    """Copy a table into a new one of the catalog, or at a path."""
    arguments = arguments_of(words, "copy", ["source_table", "target_table", "where"])
    words.end()
    source, target = (table_name(required_text(arguments, name)) for name in ("source_table", "target_table"))
    where, path = _optional_text(arguments, "where"), names.path(target)
    if path is not None:
        return frame_of_result(names.spark, names.table(source).copy_to(path, filter=where))
    catalog, new = names.require_catalog_name(target, "CALL sys.copy: target_table")
    _, old = names.require_catalog_name(source, "CALL sys.copy: source_table")
    return frame_of_result(names.spark, catalog.copy_table(old, new, filter=where, spark=names.spark))


def _compact_database(names: KnownTables, words: TokenCursor) -> Any:
    """Compact the tables of databases. A failure of one is a row of the answer."""
    arguments = arguments_of(words, "compact_database", ["including_databases", "including_tables", "excluding_tables", "options"])
    words.end()
    patterns = (str(arguments.get("including_databases", ".*")), str(arguments.get("including_tables", ".*")))
    rows: list[dict[str, Any]] = []
    for name, table in _tables(names, *patterns, _optional_text(arguments, "excluding_tables")):
        try:
            compacted = table.compact(True, options=options_of(arguments))
            rows.append({"table": name, "files_before": compacted.files_before, "files_after": compacted.files_after, "error": None})
        except PaimonError as error:
            rows.append({"table": name, "files_before": None, "files_after": None, "error": str(error)})
    types = {"table": pa.string(), "files_before": pa.int64(), "files_after": pa.int64(), "error": pa.string()}
    return frame_of_rows(names.spark, pa.Table.from_pylist(rows, pa.schema(list(types.items()))))


def _alter_view_dialect(names: KnownTables, words: TokenCursor) -> Any:
    """Add, update or drop the query of a view for an engine; without one for Spark."""
    arguments = arguments_of(words, "alter_view_dialect", ["view", "action", "engine", "query"])
    words.end()
    action, engine = required_text(arguments, "action").lower(), str(arguments.get("engine") or SPARK)
    if action not in {"add", "update", "drop"}:
        raise InvalidArgument(f"argument 'action' must be add, update or drop, not '{action}'")
    catalog, name = names.require_catalog_name(table_name(required_text(arguments, "view")), "CALL sys.alter_view_dialect: view")
    view = catalog.view(name)
    if (engine in view.dialects) is (action == "add"):
        raise InvalidArgument(f"view {view.name} has {'a' if action == 'add' else 'no'} query for '{engine}'; use another action")
    catalog.alter_view(name, dialects={engine: None if action == "drop" else required_text(arguments, "query")})
    return frame_of_result(names.spark, None)


OF_CATALOGS: dict[str, Callable[[KnownTables, TokenCursor], Any]] = {
    "alter_view_dialect": _alter_view_dialect,
    "compact_database": _compact_database,
    "copy": _copy,
}
"""Procedures on several tables or on views, by name."""


def _compact(table: Table, arguments: Arguments) -> Any:
    strategy = str(arguments.get("order_strategy", "none")).lower()
    order = parts_of(arguments, "order_by") if strategy != "none" else []
    clustering: dict[str, Any] = {"order_by": order, "strategy": strategy} if order else {}
    if not order and "order_by" in arguments:
        raise InvalidArgument("argument 'order_by' needs an order_strategy: order, zorder or hilbert")
    kind = str(arguments.get("compact_strategy", "full")).lower()
    if kind not in {"full", "minor"}:
        raise InvalidArgument(f"argument 'compact_strategy' must be full or minor, not '{kind}'")
    full = kind == "full"
    return table.compact(
        full, partitions_of(arguments), filter=_optional_text(arguments, "where"), options=options_of(arguments), **clustering
    )


def _expire_snapshots(table: Table, arguments: Arguments) -> Any:
    return table.expire_snapshots(
        retain_max=whole_number(arguments, "retain_max"),
        retain_min=whole_number(arguments, "retain_min"),
        older_than=time_of(arguments, "older_than"),
        limit=whole_number(arguments, "max_deletes"),
        options=options_of(arguments),
    )


def _expire_partitions(table: Table, arguments: Arguments) -> Any:
    options = {key: str(arguments[name]) for name, key in _EXPIRY_OPTIONS.items() if name in arguments} | (options_of(arguments) or {})
    age, before = _duration(arguments, "expiration_time"), None
    if age is not None:
        now = datetime.now()  # noqa: DTZ005  # partition values are local times
        before = now - min(age, now - datetime.min)  # noqa: DTZ901  # as above
    return table.expire_partitions(before, options=options)


def _rollback(table: Table, arguments: Arguments) -> Any:
    if len(arguments) != 1:
        raise InvalidArgument("rollback takes exactly one of version, snapshot and tag")
    if "tag" in arguments:
        return table.rollback_to(tag=str(arguments["tag"]))
    if "snapshot" in arguments:
        return table.rollback_to(whole_number(arguments, "snapshot"))
    version = required_text(arguments, "version")
    return table.rollback_to(int(version)) if version.isdecimal() else table.rollback_to(tag=version)


def _number_or_text(arguments: Arguments, name: str) -> int | str:
    """Return milliseconds as a number, a time as its text."""
    text = required_text(arguments, name)
    return int(text) if text.isdecimal() else text


def _restore(table: Table, arguments: Arguments) -> Any:
    version = required_text(arguments, "version")
    return table.restore(int(version)) if version.isdecimal() else table.restore(tag=version)


def _each(arguments: Arguments, name: str, act: Callable[[str], Any]) -> Any:
    """Run ``act`` for each of several names, and return the last result."""
    result = None
    for text in required_text(arguments, name).split(","):
        result = act(text.strip())
    return result


def _mark_done(table: Table, arguments: Arguments) -> Any:
    required_text(arguments, "partitions")
    return table.mark_partitions_done(partitions_of(arguments) or [])


def _orphans(table: Table, arguments: Arguments) -> Any:
    dry = true_or_false(arguments, "dry_run")
    orphans = table.remove_orphan_files(time_of(arguments, "older_than"), dry_run=dry)
    return _orphan_rows(orphans)


def _orphan_rows(orphans: Sequence[OrphanFile]) -> pa.Table:
    return pa.table({"path": pa.array([f.path for f in orphans], pa.string()), "size": pa.array([f.size for f in orphans], pa.int64())})


def _purge(table: Table, arguments: Arguments) -> Any:
    purged = table.purge(required_text(arguments, "where"), dry_run=true_or_false(arguments, "dry_run"))
    members = {
        "gone": purged.gone,
        "rows": purged.rows,
        "files": purged.files,
        "snapshots": purged.snapshots,
        "snapshot_id": purged.snapshot_id,
    }
    types = {name: pa.bool_() if name == "gone" else pa.int64() for name in members}
    columns = [pa.array([value], types[name]) for name, value in members.items()]
    holders = pa.array([[str(holder) for holder in purged.holders]], pa.list_(pa.string()))
    return pa.table([*columns, holders], [*members, "holders"])


def _missing_files(table: Table, arguments: Arguments) -> Any:
    removed = table.remove_unexisting_files(dry_run=true_or_false(arguments, "dry_run"))
    return pa.table({"fileName": pa.array(removed.paths, pa.string())})


def _repair_earliest(table: Table, arguments: Arguments) -> Any:
    snapshot_id = whole_number(arguments, "snapshot_id")
    if snapshot_id is None:
        raise InvalidArgument("the procedure needs an argument 'snapshot_id'")
    return table.repair_earliest_snapshot(snapshot_id)


PROCEDURES: dict[str, Procedure] = {
    "compact": Procedure("partitions compact_strategy order_strategy order_by where options", _compact),
    "rescale": Procedure(
        "bucket_num partitions where",
        lambda t, a: t.rescale(whole_number(a, "bucket_num"), partitions_of(a), filter=_optional_text(a, "where")),
    ),
    "rewrite_file_index": Procedure(
        "where partitions", lambda t, a: t.rewrite_file_index(partitions_of(a), filter=_optional_text(a, "where"))
    ),
    "expire_snapshots": Procedure("retain_max retain_min older_than max_deletes options", _expire_snapshots),
    "expire_partitions": Procedure(
        "expiration_time timestamp_formatter timestamp_pattern expire_strategy max_expires options", _expire_partitions
    ),
    "expire_tags": Procedure("older_than", lambda t, a: t.expire_tags(time_of(a, "older_than"))),
    "compact_manifest": Procedure("", lambda t, _: t.compact_manifests()),
    "clear_consumers": Procedure(
        "including_consumers excluding_consumers",
        lambda t, a: t.clear_consumers(_optional_text(a, "including_consumers"), _optional_text(a, "excluding_consumers")),
    ),
    "mark_partition_done": Procedure("partitions", _mark_done),
    "trigger_tag_automatic_creation": Procedure("", lambda t, _: t.create_due_tags()),
    "create_tag_from_timestamp": Procedure(
        "tag timestamp time_retained",
        lambda t, a: t.create_tag(required_text(a, "tag"), timestamp=_number_or_text(a, "timestamp"), time_retained=time_retained(a)),
    ),
    "create_tag": Procedure(
        "tag snapshot time_retained",
        lambda t, a: t.create_tag(required_text(a, "tag"), whole_number(a, "snapshot"), time_retained=time_retained(a)),
    ),
    "replace_tag": Procedure(
        "tag snapshot time_retained",
        lambda t, a: t.replace_tag(required_text(a, "tag"), whole_number(a, "snapshot"), time_retained=time_retained(a)),
    ),
    "rename_tag": Procedure("tag target_tag", lambda t, a: t.rename_tag(required_text(a, "tag"), required_text(a, "target_tag"))),
    "delete_tag": Procedure("tag", lambda t, a: _each(a, "tag", t.delete_tag)),
    "rollback": Procedure("version snapshot tag", _rollback),
    "rollback_to": Procedure("version snapshot tag", _rollback),
    "rollback_to_timestamp": Procedure("timestamp", lambda t, a: t.rollback_to(timestamp=_number_or_text(a, "timestamp"))),
    "rollback_to_watermark": Procedure("watermark", lambda t, a: t.rollback_to(watermark=int(required_text(a, "watermark")))),
    "restore": Procedure("version", _restore),
    "create_branch": Procedure("branch tag", lambda t, a: t.create_branch(required_text(a, "branch"), _optional_text(a, "tag"))),
    "delete_branch": Procedure("branch", lambda t, a: _each(a, "branch", t.delete_branch)),
    "rename_branch": Procedure(
        "from_branch to_branch", lambda t, a: t.rename_branch(required_text(a, "from_branch"), required_text(a, "to_branch"))
    ),
    "fast_forward": Procedure("branch", lambda t, a: t.fast_forward(required_text(a, "branch"))),
    "reset_consumer": Procedure(
        "consumer_id next_snapshot_id", lambda t, a: t.reset_consumer(required_text(a, "consumer_id"), whole_number(a, "next_snapshot_id"))
    ),
    "remove_orphan_files": Procedure("older_than dry_run parallelism mode", _orphans),
    "purge": Procedure("where dry_run", _purge),
    "purge_files": Procedure("dry_run", lambda t, a: t.purge_files(dry_run=true_or_false(a, "dry_run"))),
    "remove_unexisting_files": Procedure("dry_run parallelism", _missing_files),
    "repair_earliest_snapshot": Procedure("snapshot_id", _repair_earliest),
}
"""Procedures by name. ``restore`` and ``purge`` exist in this package only; ``rollback_to`` is an alias of ``rollback``."""

UNSUPPORTED = {
    "copy_files": "its name is copy: CALL sys.copy(source_table => 'db.t', target_table => 'db.u')",
    "create_function": "functions belong to Spark: CREATE FUNCTION",
    "alter_function": "functions belong to Spark: CREATE OR REPLACE FUNCTION",
    "drop_function": "functions belong to Spark: DROP FUNCTION",
    "create_global_index": "global indexes are not supported; file indexes are made by 'file-index.*' options and rewrite_file_index",
    "drop_global_index": "global indexes are not supported; drop file indexes by their options and rewrite_file_index",
    "compact_chain_table": "chain tables are not supported",
    "materialize_deletion_vectors": "compact does it: CALL sys.compact(table => 'db.t')",
    "merge_branch": "Paimon 1.4.2 has no such procedure; later versions add the files of a branch to an append table. Write its rows: "
    "table.write(Table.open(path, branch='b').scan().to_reader()), or take over its whole history: CALL sys.fast_forward",
    "migrate_database": "tables of Hive are not migrated; write their rows: df.write.format('paimon').save(path)",
    "migrate_table": "tables of Hive are not migrated; write their rows: df.write.format('paimon').save(path)",
    "reassign_row_id": "row ids are never assigned again",
    "repair": "the command 'fsck --repair' repairs a table; catalogs in directories need no repair",
}
"""Paimon's procedures that are refused, and what to do instead."""
