"""What is measured: the steps of a table's life, the states they start from and leave, and what this project demands of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TABLE = {"bucket": "4", "file.format": "parquet", "write-only": "true"}
"""What every Paimon writer takes as zstd of level 1; named in so many words it would forbid ours to lay out columns by sample."""
APPEND = {**TABLE, "bucket": "-1"}
INDEXED_COLUMNS = {"bloom-filter": ["l_comment"], "bitmap": ["l_shipmode", "l_returnflag"], "range-bitmap": ["l_extendedprice"]}

MIB = 1 << 20


def index_options(rows: int) -> dict[str, str]:
    """Paimon's options for the indexes; a bloom filter is told how many values a file will have, with a third to spare."""
    options = {f"file-index.{kind}.columns": ",".join(columns) for kind, columns in INDEXED_COLUMNS.items()}
    items = max(1000, rows // 3)
    return {**options, "file-index.bloom-filter.l_comment.items": str(items), "file-index.bloom-filter.l_comment.fpp": "0.01"}


@dataclass(frozen=True)
class Target:
    """What ours may take at most: a multiple of what a contender took for a workload (or line of one), or a plain number."""

    at_most: float
    contender: str | None = None
    workload: str | None = None
    """Of that contender; the same one if None."""
    growth: bool = False
    """MiB of memory instead of seconds."""


@dataclass(frozen=True)
class Workload:
    """One job. ``source`` is the state that it starts from (None: nothing), ``makes`` the one that it leaves if that is needed later.

    ``truth`` names the rows that the table must hold afterwards, or that a read must find. ``data`` is ``lineitem`` or ``flights``.
    """

    name: str
    title: str
    op: str
    source: str | None = None
    makes: str | None = None
    truth: str | None = None
    inputs: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    keyed: bool = True
    indexed: bool = False
    data: str = "lineitem"
    targets: tuple[Target, ...] = ()
    floor: str | None = None
    """The workload of the floor that it is compared with; its own if None."""
    scales: bool = True
    """Its time grows with the rows: what was measured on a share of them is shown as for all."""


def floor(at_most: float, workload: str | None = None) -> Target:
    return Target(at_most, "floor", workload)


def rust(at_most: float, workload: str | None = None) -> Target:
    return Target(at_most, "pypaimon_rust", workload)


def java(at_most: float, workload: str | None = None) -> Target:
    return Target(at_most, "paimon_java", workload)


def growth(mebibytes: float) -> Target:
    return Target(mebibytes, growth=True)


WORKLOADS = (
    Workload("write", "write {rows} rows, primary key", "write", None, "base", "base", "base", TABLE, targets=(floor(0.6), growth(500))),
    Workload("upsert", "upsert {sixth} rows, half new", "write", "base", "upserted", "upserted", "upsert", targets=(floor(1.6), rust(1.0))),
    Workload("commits", "20 commits of {small} rows", "write", "base", "runs", "runs", "small", targets=(floor(1.0), rust(1.0))),
    Workload(
        "commits_compacting",
        "20 commits, compacting by itself",
        "write",
        "base",
        None,
        "runs",
        "small",
        {"write-only": "false"},
        targets=(java(1.0, "commits"),),
        floor="commits",
    ),
    Workload(
        "compact", "full compaction after the upsert", "compact", "upserted", "compacted", "upserted", targets=(floor(0.7), growth(650))
    ),
    Workload("compact_runs", "compaction of base and 20 runs", "compact", "runs", None, "runs", targets=(floor(1.4),)),
    Workload("read_merged", "merged read to Arrow", "read", "upserted", None, "upserted", targets=(floor(0.4),)),
    Workload("read_compacted", "read after compaction", "read", "compacted", None, "upserted", targets=(floor(0.45),)),
    Workload(
        "write_indexed",
        "write {rows} rows, primary key, 4 indexes",
        "write",
        None,
        None,
        "base",
        "base",
        TABLE,
        indexed=True,
        targets=(rust(0.1),),
        floor="write",
    ),
    Workload(
        "append_indexed",
        "write {rows} rows, append table, 4 indexes",
        "write",
        None,
        None,
        "base",
        "base",
        APPEND,
        keyed=False,
        indexed=True,
        targets=(rust(0.3),),
        floor="write",
    ),
    Workload(
        "compact_indexed",
        "full compaction, 4 indexes",
        "compact",
        "upserted",
        "indexed",
        "upserted",
        indexed=True,
        targets=(java(0.3),),
        floor="compact",
    ),
    Workload("lookup", "lookups", "lookup", "compacted", None, scales=False),
    Workload("lookup_indexed", "lookups with indexes", "lookup", "indexed", None, scales=False),
    Workload("plan", "plan 10,000 files", "plan", "planned", None, scales=False),
    Workload(
        "flights_write",
        "write 336,776 flights",
        "write",
        None,
        "flights",
        "base",
        "base",
        TABLE,
        data="flights",
        targets=(floor(1.2),),
        scales=False,
    ),
    Workload("flights_upsert", "upsert 60,000 flights", "write", "flights", "flights2", "upserted", "upsert", data="flights", scales=False),
    Workload("flights_read", "merged read of flights", "read", "flights2", None, "upserted", data="flights", scales=False),
)
BY_NAME = {workload.name: workload for workload in WORKLOADS}
MAKER = {workload.makes: workload for workload in WORKLOADS if workload.makes}


@dataclass(frozen=True)
class Line:
    """A line of the report: a workload, or one query of it. ``other`` is asked where a contender has no figures for the first."""

    workload: str
    query: str | None
    title: str
    targets: tuple[Target, ...] = ()
    other: str | None = None


def ms(milliseconds: float) -> Target:
    return Target(milliseconds / 1000)


def _lookup(query: str, title: str, *targets: Target) -> Line:
    return Line("lookup_indexed", query, title, targets, "lookup")


def _plan(name: str, cold: float, warm: float) -> list[Line]:
    title = {"none": "no filter", "partition": "partition", "partition + key": "partition and key", "key": "key"}[name]
    return [
        Line("plan", f"{temperature}, {name}", f"plan 10,000 files, {title}, {temperature}", (ms(limit),))
        for temperature, limit in (("cold", cold), ("warm", warm))
    ]


LINES = (
    *(
        Line(each.name, None, each.title, each.targets)
        for each in WORKLOADS
        if each.op in {"write", "compact", "read"} and each.data == "lineitem"
    ),
    _lookup("key hit", "key lookup, hit", rust(0.35)),
    _lookup("key miss", "key lookup, miss", rust(0.2)),
    _lookup("string miss", "string with bloom filter, miss", rust(0.4)),
    _lookup("string hit", "string with bloom filter, hit", rust(0.15)),
    _lookup("two strings", "two bitmaps ANDed, 3.5 % of the rows", rust(0.55)),
    _lookup("two strings, 3 columns", "two bitmaps ANDed, 3 columns", rust(0.35)),
    _lookup("range", "range of 0.1 %, range-bitmap", rust(0.8)),
    _lookup("range, 3 columns", "range of 0.1 %, 3 columns", rust(0.5)),
    _lookup("count of two strings", "count() of two bitmaps", ms(15)),
    *(
        Line("lookup", query, f"{title}, no index")
        for query, title in (
            ("key hit", "key lookup, hit"),
            ("string miss", "string, miss"),
            ("string hit", "string, hit"),
            ("two strings", "two strings ANDed, 3.5 % of the rows"),
            ("range", "range of 0.1 %"),
        )
    ),
    *_plan("none", 200, 40),
    *_plan("partition", 15, 5),
    *_plan("partition + key", 8, 5),
    *_plan("key", 100, 10),
    *(Line(each.name, None, each.title, each.targets) for each in WORKLOADS if each.data == "flights"),
)

__all__ = ["BY_NAME", "INDEXED_COLUMNS", "LINES", "MAKER", "MIB", "TABLE", "WORKLOADS", "Line", "Target", "Workload", "index_options"]
