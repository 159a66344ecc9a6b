"""CALL sys.procedure(...): Paimon's procedures by its names, their arguments by name or by place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from manifest.options.durations import parse_duration_millis
from pyspark_paimon.statements.answers import frame_of_result, frame_of_rows
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.procedure_arguments import (
    Arguments,
    arguments_of,
    needed,
    options_given,
    partitions_of,
    parts_of,
    time_of,
    time_retained,
    true_or_false,
    whole,
)
from pyspark_paimon.statements.words import Words
from pyspark_paimon.table.table import Table


@dataclass(frozen=True)
class Procedure:
    """A procedure of a table: the names of its arguments in Paimon's order, behind the table, and what it does."""

    arguments: str
    act: Callable[[Table, Arguments], Any]


def call_procedure(names: KnownTables, words: Words) -> Any:
    """``CALL [paimon.]sys.name(...)``; None for another catalog's procedure."""
    name = words.name()
    if len(name) < 2 or name[-2].lower() != "sys":
        return None
    procedure = PROCEDURES.get(name[-1].lower())
    if procedure is None:
        near = get_close_matches(name[-1].lower(), PROCEDURES, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(PROCEDURES)}"
        raise InvalidArgument(f"no procedure '{name[-1]}' is built; {hint}")
    given = arguments_of(words, name[-1].lower(), ["table", *procedure.arguments.split()])
    words.end()
    table = given.pop("table", None)
    if not isinstance(table, str):
        raise InvalidArgument(f"{name[-1]} needs a table: CALL sys.{name[-1]}(table => 'db.t')")
    done = procedure.act(names.table(_table_name(table)), given)
    return frame_of_rows(names.spark, done) if isinstance(done, pa.Table) else frame_of_result(names.spark, done)


def _table_name(text: str) -> tuple[str, ...]:
    """The name in an argument: a path, or parts with dots."""
    if text.startswith("/") or "://" in text:
        return ("paimon", text)
    words = Words(text)
    name = words.name()
    words.end()
    return name


def _compact(table: Table, given: Arguments) -> Any:
    strategy = str(given.get("order_strategy", "none")).lower()
    order = parts_of(given, "order_by") if strategy != "none" else []
    chosen: dict[str, Any] = {"order_by": order, "strategy": strategy} if order else {}
    if not order and "order_by" in given:
        raise InvalidArgument("argument 'order_by' needs an order_strategy: order, zorder or hilbert")
    kind = str(given.get("compact_strategy", "full")).lower()
    if kind not in {"full", "minor"}:
        raise InvalidArgument(f"argument 'compact_strategy' is full or minor, not '{kind}'")
    full = kind == "full"
    where = given.get("where")
    return table.compact(full, partitions_of(given), filter=None if where is None else str(where), options=options_given(given), **chosen)


def _expire_snapshots(table: Table, given: Arguments) -> Any:
    return table.expire_snapshots(
        retain_max=whole(given, "retain_max"),
        retain_min=whole(given, "retain_min"),
        older_than=time_of(given, "older_than"),
        limit=whole(given, "max_deletes"),
    )


def _expire_partitions(table: Table, given: Arguments) -> Any:
    age = given.get("expiration_time")
    if age is None:
        return table.expire_partitions()
    now = datetime.now()  # noqa: DTZ005  # partitions are told by the local wall clock
    return table.expire_partitions(now - timedelta(milliseconds=parse_duration_millis(str(age), "expiration_time")))


def _rollback(table: Table, given: Arguments) -> Any:
    version = needed(given, "version")
    return table.rollback_to(int(version)) if version.isdecimal() else table.rollback_to(tag=version)


def _number_or_text(given: Arguments, name: str) -> int | str:
    """Return milliseconds as a number, a time as its text."""
    text = needed(given, name)
    return int(text) if text.isdecimal() else text


def _restore(table: Table, given: Arguments) -> Any:
    version = needed(given, "version")
    return table.restore(int(version)) if version.isdecimal() else table.restore(tag=version)


def _delete_tag(table: Table, given: Arguments) -> Any:
    done = None
    for tag in needed(given, "tag").split(","):
        done = table.delete_tag(tag.strip())
    return done


def _orphans(table: Table, given: Arguments) -> Any:
    dry = true_or_false(given, "dry_run")
    found = table.remove_orphan_files(time_of(given, "older_than"), dry_run=dry)
    return pa.table({"path": pa.array([f.path for f in found], pa.string()), "size": pa.array([f.size for f in found], pa.int64())})


PROCEDURES: dict[str, Procedure] = {
    "compact": Procedure("partitions compact_strategy order_strategy order_by where options", _compact),
    "rewrite_file_index": Procedure("partitions", lambda t, a: t.rewrite_file_index(partitions_of(a))),
    "expire_snapshots": Procedure("retain_max retain_min older_than max_deletes", _expire_snapshots),
    "expire_partitions": Procedure("expiration_time", _expire_partitions),
    "expire_tags": Procedure("", lambda t, _: t.expire_tags()),
    "create_tag": Procedure(
        "tag snapshot time_retained", lambda t, a: t.create_tag(needed(a, "tag"), whole(a, "snapshot"), time_retained=time_retained(a))
    ),
    "replace_tag": Procedure(
        "tag snapshot time_retained", lambda t, a: t.replace_tag(needed(a, "tag"), whole(a, "snapshot"), time_retained=time_retained(a))
    ),
    "rename_tag": Procedure("tag target_tag", lambda t, a: t.rename_tag(needed(a, "tag"), needed(a, "target_tag"))),
    "delete_tag": Procedure("tag", _delete_tag),
    "rollback": Procedure("version", _rollback),
    "rollback_to": Procedure("version", _rollback),
    "rollback_to_timestamp": Procedure("timestamp", lambda t, a: t.rollback_to(timestamp=_number_or_text(a, "timestamp"))),
    "rollback_to_watermark": Procedure("watermark", lambda t, a: t.rollback_to(watermark=int(needed(a, "watermark")))),
    "restore": Procedure("version", _restore),
    "create_branch": Procedure("branch tag", lambda t, a: t.create_branch(needed(a, "branch"), None if "tag" not in a else str(a["tag"]))),
    "delete_branch": Procedure("branch", lambda t, a: t.delete_branch(needed(a, "branch"))),
    "fast_forward": Procedure("branch", lambda t, a: t.fast_forward(needed(a, "branch"))),
    "reset_consumer": Procedure(
        "consumer_id next_snapshot_id", lambda t, a: t.reset_consumer(needed(a, "consumer_id"), whole(a, "next_snapshot_id"))
    ),
    "remove_orphan_files": Procedure("older_than dry_run", _orphans),
}
"""By name; ``restore`` is ours, and ``rollback_to`` another name of ``rollback``."""


__all__ = ["PROCEDURES", "Procedure", "call_procedure"]
