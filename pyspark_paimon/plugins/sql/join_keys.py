"""Keys of a small table that filter a large one, before Spark joins them.

Spark prunes no partitions and files of a Python data source by the other side of a join. So ``sql`` reads the keys of the filtered
small table first. The large table reads only rows that have one of them. The rows that this leaves out have no partner in the join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from paimon_base.thresholds import thresholds
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.plugins.sql.pushdown import is_truncated, parse_query, renames_columns, terms
from pyspark_paimon.table.scan import Scan
from sparkexpr.values.column_type import FLOATS

_INNER = frozenset({"", "INNER", "CROSS"})


@dataclass(frozen=True)
class Place:
    """Column of a table of a query.

    table: Position of the table's name in the text.
    """

    table: int
    column: str


@dataclass(frozen=True)
class TableScan:
    """Scan of a table of a query.

    filtered: The query has a condition on that table alone.
    exact: The scan applies all conditions of the query.
    """

    scan: Scan
    filtered: bool
    exact: bool = False


def prune_joins(text: str, scans: Mapping[int, TableScan]) -> dict[int, TableScan]:
    """Return the scans of a query, large ones filtered by the join keys of small ones.

    ``scans``: by the position of the table's name in the text. They are pinned to their snapshots.
    """
    pruned_scans = dict(scans)
    for left, right in join_keys(text) if len(scans) > 1 else ():
        ways = [(small, large) for small, large in ((left, right), (right, left)) if _can_prune(pruned_scans, small, large)]
        sizes = [pruned_scans[small.table].scan.plan().file_size for small, _ in ways]
        if not ways or min(sizes) > thresholds.broadcast_bytes:
            continue
        small, large = ways[sizes.index(min(sizes))]
        keys = _distinct(pruned_scans[small.table].scan, small.column)
        if len(keys) <= thresholds.join_keys:
            scan = pruned_scans[large.table].scan
            predicate = bind_filter(
                f"{quote_name(_name(scan, large.column))} IN :keys" if len(keys) else "FALSE",
                scan.table_schema.column_types,
                {"keys": keys} if len(keys) else None,
            )
            pruned_scans[large.table] = replace(pruned_scans[large.table], scan=scan.narrowed(predicate))
    return pruned_scans


def _can_prune(scans: Mapping[int, TableScan], small: Place, large: Place) -> bool:
    """Return whether keys of ``small`` may prune ``large``.

    ``large`` is partitioned or sorted by them, and the types are the same.
    """
    if small.table not in scans or large.table not in scans or not scans[small.table].filtered:
        return False
    types = []
    for side in (small, large):
        schema, name = scans[side.table].scan.table_schema, _name(scans[side.table].scan, side.column)
        if not name or schema.column_types[name].kind in FLOATS or is_truncated(schema.column_types[name]):
            return False
        types.append(schema.column_types[name])
    schema = scans[large.table].scan.table_schema
    return types[0] == types[1] and _name(scans[large.table].scan, large.column) in {*schema.partition_keys, *schema.primary_keys}


def _name(scan: Scan, column: str) -> str:
    """Return the name of a column as the table spells it.

    "": the table has no such column, or several that differ in case.
    """
    same = [name for name in scan.table_schema.names if name.upper() == column.upper()]
    return same[0] if len(same) == 1 else ""


def _distinct(scan: Scan, column: str) -> pa.Array:
    return scan.projected([_name(scan, column)]).to_arrow().column(0).unique().drop_null()


def join_keys(text: str) -> list[tuple[Place, Place]]:
    """Return the pairs of columns that inner and left semi joins of a query require to be equal.

    >>> [(one.column, other.column) for one, other in join_keys("SELECT * FROM f JOIN d ON f.day = d.day AND f.n > d.n")]
    [('day', 'day')]
    >>> join_keys("SELECT * FROM f LEFT JOIN d ON f.day = d.day")
    []
    """
    query = parse_query(text)
    return [] if query is None else [pair for select in query.tree.find_all(exp.Select) for pair in _equalities(select)]


def _equalities(select: exp.Select) -> Iterator[tuple[Place, Place]]:
    joins = select.args.get("joins") or []
    inner = all(join.kind in _INNER and not join.side for join in joins)
    if not joins or any(select.args.get(part) for part in ("laterals", "sample")) or not all(map(_keeps_matches, joins)):
        return
    source = select.args.get("from_") or select.args.get("from")
    tables = [node.this for node in (source, *joins) if node is not None and isinstance(node.this, exp.Table)]
    starts = {table.alias_or_name.lower(): start for table in tables if (start := _start(table)) is not None}
    if len(starts) < len(tables):  # two tables of one name, or one that cannot be filtered
        starts = {name: start for name, start in starts.items() if sum(each.alias_or_name.lower() == name for each in tables) == 1}
    for join in joins:
        using = join.args.get("using") or []
        if using and len(joins) == 1 and len(starts) == 2:
            first, other = starts.values()
            yield from ((Place(first, column.name), Place(other, column.name)) for column in using)
    conditions = [join.args["on"] for join in joins if join.args.get("on") is not None]
    if inner and select.args.get("where") is not None:
        conditions.append(select.args["where"].this)
    for term in (term for condition in conditions for term in terms(condition)):
        sides = (term.this, term.expression) if isinstance(term, exp.EQ) else ()
        places = [
            Place(starts[side.table.lower()], side.name)
            for side in sides
            if isinstance(side, exp.Column) and side.table.lower() in starts and not side.args.get("db")
        ]
        if len(places) == 2 and places[0].table != places[1].table:
            yield places[0], places[1]


def _keeps_matches(join: exp.Join) -> bool:
    """Return whether a join returns only rows that have a partner."""
    semi = join.kind == "SEMI" and join.side in {"", "LEFT"}
    return join.args.get("method") in {None, ""} and (semi or (join.kind in _INNER and not join.side))


def _start(table: exp.Table) -> int | None:
    """Return the position of a table's name. None: its rows must not be filtered, or its columns have other names."""
    first = next((part for part in table.parts if isinstance(part, exp.Identifier)), None)
    if first is None or table.args.get("pivots") or table.args.get("sample") or renames_columns(table):
        return None
    start: int | None = first.meta.get("start")
    return start
