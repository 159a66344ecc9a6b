"""Statement CALL sys.procedure(...), with Paimon's procedure names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from manifest.options.durations import parse_duration_millis
from pyspark_paimon.statements.answers import frame_of_result, frame_of_rows
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.words import TokenCursor, WrittenValue
from pyspark_paimon.table.table import Table

Arguments = Mapping[str, WrittenValue]
"""Values by argument name, without NULLs."""


def arguments_of(words: TokenCursor, procedure: str, order: list[str]) -> dict[str, WrittenValue]:
    """Parse arguments in parentheses, by name or by position.

    order: Names of all arguments in order.
    Raises ``InvalidArgument`` for unknown and repeated arguments.
    """
    found: dict[str, WrittenValue] = {}
    for _ in words.items():
        place = len(found)
        if words.peek(1) == "=>":
            name = words.part().lower()
            words.expect("=>")
        elif place < len(order):
            name = order[place]
        else:
            raise InvalidArgument(f"{procedure} takes {len(order)} arguments: {', '.join(order)}")
        words.take("TIMESTAMP")
        if name not in order:
            raise InvalidArgument(f"{procedure} has no argument '{name}'; it takes {', '.join(order)}")
        if name in found:
            raise InvalidArgument(f"{procedure}: argument '{name}' is given twice")
        found[name] = words.literal()
    return {name: value for name, value in found.items() if value is not None}


def required_text(given: Arguments, name: str) -> str:
    """Return the text of a required argument."""
    if name not in given:
        raise InvalidArgument(f"the procedure needs an argument '{name}'")
    return str(given[name])


def true_or_false(given: Arguments, name: str) -> bool:
    """Return a boolean argument; False if it is absent."""
    text = str(given.get(name, False)).lower()
    if text not in {"true", "false"}:
        raise InvalidArgument(f"argument '{name}' must be true or false, not {given[name]!r}")
    return text == "true"


def whole_number(given: Arguments, name: str) -> int | None:
    """Return an integer argument; None if it is absent."""
    value = given.get(name)
    if value is None or type(value) is int:
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    raise InvalidArgument(f"argument '{name}' must be a whole number, not {value!r}")


def parts_of(given: Arguments, name: str, separator: str = ",") -> list[str]:
    """Split a text argument; an absent one has no parts."""
    return [part.strip() for part in str(given.get(name, "")).split(separator) if part.strip()]


def partitions_of(given: Arguments) -> list[dict[str, object]] | None:
    """Parse ``partitions``: ``day=2026-01-01,hour=7;day=2026-01-02``."""
    found = [dict(_pair(pair, "partitions") for pair in part.split(",")) for part in parts_of(given, "partitions", ";")]
    return [{**spec} for spec in found] or None


def options_of(given: Arguments) -> dict[str, str] | None:
    """Parse ``options``: ``name=value`` pairs with commas."""
    return dict(_pair(pair, "options") for pair in parts_of(given, "options")) or None


def _pair(text: str, argument: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidArgument(f"argument '{argument}' must have the form name=value, not {text!r}")
    return name.strip(), value.strip().strip("'\"")


def time_of(given: Arguments, name: str) -> Any:
    """Return a time argument: a text, or milliseconds."""
    value = given.get(name)
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def time_retained(given: Arguments) -> timedelta | None:
    """Return the retention time of a tag, or None."""
    value = given.get("time_retained")
    return None if value is None else timedelta(milliseconds=parse_duration_millis(str(value), "time_retained"))


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
    if len(name) < 2 or name[-2].lower() != "sys":
        return None
    procedure = PROCEDURES.get(name[-1].lower())
    if procedure is None:
        near = get_close_matches(name[-1].lower(), PROCEDURES, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(PROCEDURES)}"
        raise InvalidArgument(f"unknown procedure '{name[-1]}'; {hint}")
    given = arguments_of(words, name[-1].lower(), ["table", *procedure.arguments.split()])
    words.end()
    table = given.pop("table", None)
    if not isinstance(table, str):
        raise InvalidArgument(f"{name[-1]} needs a table: CALL sys.{name[-1]}(table => 'db.t')")
    done = procedure.act(names.table(_table_name(table)), given)
    return frame_of_rows(names.spark, done) if isinstance(done, pa.Table) else frame_of_result(names.spark, done)


def _table_name(text: str) -> tuple[str, ...]:
    """Parse the ``table`` argument: a path, or a dotted name."""
    if text.startswith("/") or "://" in text:
        return ("paimon", text)
    words = TokenCursor(text)
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
        raise InvalidArgument(f"argument 'compact_strategy' must be full or minor, not '{kind}'")
    full = kind == "full"
    where = given.get("where")
    return table.compact(full, partitions_of(given), filter=None if where is None else str(where), options=options_of(given), **chosen)


def _expire_snapshots(table: Table, given: Arguments) -> Any:
    return table.expire_snapshots(
        retain_max=whole_number(given, "retain_max"),
        retain_min=whole_number(given, "retain_min"),
        older_than=time_of(given, "older_than"),
        limit=whole_number(given, "max_deletes"),
    )


def _expire_partitions(table: Table, given: Arguments) -> Any:
    age = given.get("expiration_time")
    if age is None:
        return table.expire_partitions()
    now = datetime.now()  # noqa: DTZ005  # partition values are local times
    return table.expire_partitions(now - timedelta(milliseconds=parse_duration_millis(str(age), "expiration_time")))


def _rollback(table: Table, given: Arguments) -> Any:
    version = required_text(given, "version")
    return table.rollback_to(int(version)) if version.isdecimal() else table.rollback_to(tag=version)


def _number_or_text(given: Arguments, name: str) -> int | str:
    """Return milliseconds as a number, a time as its text."""
    text = required_text(given, name)
    return int(text) if text.isdecimal() else text


def _restore(table: Table, given: Arguments) -> Any:
    version = required_text(given, "version")
    return table.restore(int(version)) if version.isdecimal() else table.restore(tag=version)


def _delete_tag(table: Table, given: Arguments) -> Any:
    done = None
    for tag in required_text(given, "tag").split(","):
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
        "tag snapshot time_retained",
        lambda t, a: t.create_tag(required_text(a, "tag"), whole_number(a, "snapshot"), time_retained=time_retained(a)),
    ),
    "replace_tag": Procedure(
        "tag snapshot time_retained",
        lambda t, a: t.replace_tag(required_text(a, "tag"), whole_number(a, "snapshot"), time_retained=time_retained(a)),
    ),
    "rename_tag": Procedure("tag target_tag", lambda t, a: t.rename_tag(required_text(a, "tag"), required_text(a, "target_tag"))),
    "delete_tag": Procedure("tag", _delete_tag),
    "rollback": Procedure("version", _rollback),
    "rollback_to": Procedure("version", _rollback),
    "rollback_to_timestamp": Procedure("timestamp", lambda t, a: t.rollback_to(timestamp=_number_or_text(a, "timestamp"))),
    "rollback_to_watermark": Procedure("watermark", lambda t, a: t.rollback_to(watermark=int(required_text(a, "watermark")))),
    "restore": Procedure("version", _restore),
    "create_branch": Procedure(
        "branch tag", lambda t, a: t.create_branch(required_text(a, "branch"), None if "tag" not in a else str(a["tag"]))
    ),
    "delete_branch": Procedure("branch", lambda t, a: t.delete_branch(required_text(a, "branch"))),
    "fast_forward": Procedure("branch", lambda t, a: t.fast_forward(required_text(a, "branch"))),
    "reset_consumer": Procedure(
        "consumer_id next_snapshot_id", lambda t, a: t.reset_consumer(required_text(a, "consumer_id"), whole_number(a, "next_snapshot_id"))
    ),
    "remove_orphan_files": Procedure("older_than dry_run", _orphans),
}
"""Procedures by name. ``restore`` exists in this package only; ``rollback_to`` is an alias of ``rollback``."""


__all__ = [
    "PROCEDURES",
    "Arguments",
    "Procedure",
    "arguments_of",
    "call_procedure",
    "options_of",
    "partitions_of",
    "parts_of",
    "required_text",
    "time_of",
    "time_retained",
    "true_or_false",
    "whole_number",
]
