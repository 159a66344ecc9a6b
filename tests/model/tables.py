"""Which tables are drawn: keys, partitions, columns, merge engine and options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from fileindex.build.options import option_key
from paimon_base.thresholds import Thresholds
from pyspark_paimon import Table
from tests.model.columns import Column
from tests.model.values import KEY_TYPES, NESTED, PARTITION_TYPES, SCALARS

SMALL_OPTIONS: dict[str, list[str]] = {
    "write-buffer-size": ["64 kb", "1 mb"],
    "target-file-size": ["1 kb", "8 kb"],
    "parquet.page.size": ["64", "1024"],
    "parquet.block.size": ["1024"],
    "file.block-size": ["1 kb"],
    "manifest.target-file-size": ["1 kb"],
    "manifest.merge-min-count": ["2"],
    "manifest.full-compaction-threshold-size": ["1 kb"],
    "num-sorted-run.compaction-trigger": ["2", "3"],
    "source.split.target-size": ["1 kb"],
    "source.split.open-file-cost": ["1 b"],
    "compaction.min.file-num": ["2"],
}
"""Options that make sizes small, so that few rows reach every path. ``TableKind.tiny`` does so for the thresholds of the process."""

OTHER_OPTIONS: dict[str, list[str]] = {
    "file.format": ["orc", "avro"],
    "file.format.per.level": ["0:avro", "0:orc,5:avro", "5:orc"],
    "file.compression": ["none", "snappy", "gzip", "lz4"],
    "manifest.format": ["orc", "parquet"],
    "manifest.compression": ["null", "snappy", "deflate"],
    "metadata.stats-mode": ["none", "counts", "full", "truncate(2)"],
    "metadata.stats-dense-store": ["false"],
    "metadata.stats-keep-first-n-columns": ["1"],
    "file-index.in-manifest-threshold": ["1 b", "1 mb"],
    "file-index.read.enabled": ["false"],
    "write-only": ["true"],
    "snapshot.num-retained.min": ["1", "3"],
    "compaction.force-rewrite-all-files": ["true"],
    "compaction.force-up-level-0": ["true"],
    "commit.force-compact": ["true"],
    "deletion-vectors.bitmap64": ["true"],
    "dynamic-partition-overwrite": ["false"],
    "data-file.thin-mode": ["true"],
    "full-compaction.delta-commits": ["2"],
    "compaction.delete-ratio-threshold": ["0.1"],
    "file.suffix.include.compression": ["true"],
    "partition.legacy-name": ["false"],
    "snapshot.clean-empty-directories": ["true"],
    "write-buffer-spillable": ["true"],
    "data-file.path-directory": ["data"],
    "deletion-vector.index-file.target-size": ["1 kb"],
}
INDEX_TYPES = {
    "bloom-filter": [
        "INT",
        "BIGINT",
        "STRING",
        "VARCHAR(20)",
        "DATE",
        "TIMESTAMP(3)",
        "TIMESTAMP(6)",
        "DOUBLE",
        "FLOAT",
        "BYTES",
        "SMALLINT",
        "TINYINT",
    ],
    "bitmap": ["BOOLEAN", "INT", "BIGINT", "STRING", "VARCHAR(20)", "DATE", "TIMESTAMP(3)", "TIMESTAMP(6)", "SMALLINT", "TINYINT"],
    "bsi": ["INT", "BIGINT", "DATE", "TIMESTAMP(3)", "TIMESTAMP(6)", "SMALLINT", "TINYINT", "DECIMAL(18, 3)"],
    "ngram-filter": ["STRING", "VARCHAR(20)"],
    "range-bitmap": [
        "BOOLEAN",
        "INT",
        "BIGINT",
        "STRING",
        "VARCHAR(20)",
        "DATE",
        "TIMESTAMP(3)",
        "TIMESTAMP(6)",
        "DOUBLE",
        "FLOAT",
        "DECIMAL(18, 3)",
    ],
}
SUMS = ["INT", "BIGINT", "SMALLINT", "DECIMAL(38, 10)"]
FUNCTIONS = {
    "BOOLEAN": ["bool_and", "bool_or"],
    **{key: ["max", "min"] for key in SCALARS.keys() - {"BOOLEAN"}},
    "ARRAY<INT>": ["collect"],
    "MAP<STRING, INT>": ["merge_map"],
}
EVERY = ["last_value", "last_non_null_value", "first_value", "first_non_null_value"]


@dataclass(frozen=True)
class TableKind:
    """How a table is made.

    ``engine`` is ``append`` for one without key, ``sums`` are columns of small numbers, ``tiny`` shrinks all thresholds of the process.
    """

    engine: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    partitions: tuple[str, ...]
    options: dict[str, str]
    sums: tuple[str, ...] = ()
    tiny: bool = False

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds.tiny() if self.tiny else Thresholds()

    def create(self, path: str) -> Table:
        return Table.create(path, self.ddl, self.keys, self.partitions, self.options)

    @property
    def ddl(self) -> str:
        return ", ".join(column.ddl for column in self.columns)

    def code(self) -> str:
        lines = ["from paimon_base.thresholds import Thresholds, use_thresholds", "use_thresholds(Thresholds.tiny()).__enter__()"]
        create = f"table = Table.create(path, {self.ddl!r}, {list(self.keys)}, {list(self.partitions)}, {self.options})"
        return "\n".join([*lines, create] if self.tiny else [create])

    def on(self, key: str) -> bool:
        return self.options.get(key) == "true"

    @property
    def sequence(self) -> list[str]:
        return [name for name in self.options.get("sequence.field", "").split(",") if name]

    @property
    def rowkind(self) -> str | None:
        return self.options.get("rowkind.field")

    @property
    def ignores_deletes(self) -> bool:
        return self.on("ignore-delete")

    @property
    def crosses_partitions(self) -> bool:
        return bool(self.keys) and not set(self.partitions) <= set(self.keys)

    @property
    def bucket_keys(self) -> tuple[str, ...]:
        given = self.options.get("bucket-key")
        return tuple(given.split(",")) if given else ()

    @property
    def fixed(self) -> set[str]:
        """Columns that no update may set and no change of the schema may take."""
        groups = {
            name
            for key, value in self.options.items()
            if key.endswith("sequence-group")
            for name in [*key.split(".")[1].split(","), *value.split(",")]
        }
        return {*self.keys, *self.partitions, *self.bucket_keys, *self.sequence, *groups, *([self.rowkind] if self.rowkind else [])}

    @property
    def takes_deletes(self) -> bool:
        """Whether rows may have the kind ``-D``."""
        removing = self.on("partial-update.remove-record-on-delete") or self.on("aggregation.remove-record-on-delete")
        return self.engine == "deduplicate" or self.ignores_deletes or removing


@st.composite
def table_kinds(draw: st.DrawFn) -> TableKind:
    engine = draw(st.sampled_from(["deduplicate", "deduplicate", "partial-update", "aggregation", "first-row", "append", "append"]))
    options: dict[str, str] = {} if engine in {"append", "deduplicate"} else {"merge-engine": engine}
    keys = (
        []
        if engine == "append"
        else [Column(f"k{at}", f"k{at}", draw(st.sampled_from(KEY_TYPES)), nullable=False) for at in range(draw(st.integers(1, 2)))]
    )
    partitions = [
        Column(f"p{at}", f"p{at}", draw(st.sampled_from(PARTITION_TYPES)), nullable=not keys)
        for at in range(draw(st.sampled_from([0, 0, 1, 1, 2])))
    ]
    values = [
        Column(
            f"c{at}",
            f"c{at}",
            draw(st.sampled_from([*SCALARS, *NESTED, *SCALARS])),
            nullable=draw(st.sampled_from([True, True, True, engine in {"append", "deduplicate"}])),
        )
        for at in range(draw(st.integers(1, 4)))
    ]
    crossing = bool(keys and partitions) and draw(st.sampled_from([False, False, False, True]))
    sums: list[str] = []
    if engine == "deduplicate" and not crossing:
        _deduplicate(draw, values, options)
    elif engine == "partial-update":
        _partial_update(draw, values, options, sums)
    elif engine == "aggregation":
        _aggregation(draw, values, options, sums)
    elif engine == "first-row" and draw(st.booleans()):
        options["ignore-delete"] = "true"
    options |= draw(st.sampled_from(_buckets(keys, values, partitions, crossing=crossing)))
    if keys:
        options |= _changelogs(draw, engine)
    if engine != "first-row" and options.get("changelog-producer") != "full-compaction" and draw(st.booleans()):
        options["deletion-vectors.enabled"] = "true"
    if engine == "append" and options["bucket"] == "-1" and draw(st.sampled_from([False, False, False, True])):
        options["row-tracking.enabled"] = "true"
    for name, kinds in INDEX_TYPES.items():
        fit = [column.name for column in [*keys, *values] if column.type in kinds and draw(st.sampled_from([False, False, True]))]
        fit += [
            f"{column.name}[a]"
            for column in values
            if column.type == "MAP<STRING, INT>" and name not in {"bsi", "ngram-filter"} and draw(st.booleans())
        ]
        if fit:
            options[option_key(name, "columns")] = ",".join(fit)
    for table, most in ((SMALL_OPTIONS, 4), (OTHER_OPTIONS, 3)):
        for key in draw(st.lists(st.sampled_from(list(table)), max_size=most, unique=True)):
            options.setdefault(key, draw(st.sampled_from(table[key])))
    if options.get("file.compression") == "lz4" and "avro" in str(options):
        del options["file.compression"]
    if "avro" in str(options):  # Avro here keeps no nanoseconds: writes or compactions of such columns are refused
        values = [replace(column, type="TIMESTAMP(6)") if column.type == "TIMESTAMP(9)" else column for column in values]
    order = [*keys, *partitions, *values] if draw(st.booleans()) else [*values, *partitions, *keys]
    names = tuple(column.name for column in keys) + (() if crossing or not keys else tuple(column.name for column in partitions))
    places = tuple(column.name for column in partitions)
    return TableKind(engine, tuple(order), names, places, options, tuple(sums), tiny=draw(st.booleans()))


def _deduplicate(draw: st.DrawFn, values: list[Column], options: dict[str, str]) -> None:
    chosen = draw(st.sampled_from(["none", "none", "sequence", "rowkind", "ignore"]))
    if chosen == "sequence":
        values.append(Column("seq", "seq", draw(st.sampled_from(["INT", "BIGINT", "TIMESTAMP(3)", "DATE"]))))
        options["sequence.field"] = "seq"
        if draw(st.booleans()):
            options["delete.time-retained"] = "1 d"
    elif chosen == "rowkind":
        values.append(Column("op", "op", "STRING", nullable=False))
        options["rowkind.field"] = "op"
    elif chosen == "ignore":
        options["ignore-delete"] = "true"


def _partial_update(draw: st.DrawFn, values: list[Column], options: dict[str, str], sums: list[str]) -> None:
    chosen = draw(st.sampled_from(["none", "group", "remove", "ignore"]))
    if chosen == "group":
        values += [
            Column("g", "g", draw(st.sampled_from(["INT", "BIGINT", "DATE"]))),
            Column("in_group", "in_group", draw(st.sampled_from(list(SCALARS)))),
        ]
        protected = ["in_group"]
        if draw(st.booleans()):
            values.append(Column("total", "total", draw(st.sampled_from(SUMS))))
            options["fields.total.aggregate-function"] = "sum"
            protected.append("total")
            sums.append("total")
        options["fields.g.sequence-group"] = ",".join(protected)
    elif chosen == "remove":
        options["partial-update.remove-record-on-delete"] = "true"
    elif chosen == "ignore":
        options["ignore-delete"] = "true"


def _aggregation(draw: st.DrawFn, values: list[Column], options: dict[str, str], sums: list[str]) -> None:
    for column in values:
        functions = [*EVERY, *FUNCTIONS.get(column.type, [])]
        options[f"fields.{column.name}.aggregate-function"] = draw(st.sampled_from(functions))
    values.append(Column("total", "total", draw(st.sampled_from(SUMS))))
    options["fields.total.aggregate-function"] = "sum"
    sums.append("total")
    if draw(st.booleans()):
        options["aggregation.remove-record-on-delete"] = "true"


def _buckets(keys: list[Column], values: list[Column], partitions: list[Column], *, crossing: bool) -> list[dict[str, str]]:
    dynamic = {"bucket": "-1", "dynamic-bucket.target-row-num": "3"}
    if crossing:
        return [dynamic]
    if keys:
        return [{"bucket": "1"}, {"bucket": "2"}, {"bucket": "3"}, dynamic, {"bucket": "-2", "postpone.default-bucket-num": "2"}]
    fit = [column.name for column in values if column.type in {"INT", "BIGINT", "STRING", "DATE"}]
    return [{"bucket": "-1"}, *([{"bucket": "2", "bucket-key": fit[0]}] if fit else [])]


def _changelogs(draw: st.DrawFn, engine: str) -> dict[str, Any]:
    producers = ["none", "lookup"] if engine == "first-row" else ["none", "none", "input", "lookup", "full-compaction"]
    producer = draw(st.sampled_from(producers))
    found = {} if producer == "none" else {"changelog-producer": producer}
    if producer in {"lookup", "full-compaction"} and draw(st.booleans()):
        found["changelog-producer.row-deduplicate"] = "true"
    if found and draw(st.sampled_from([False, False, True])):
        found |= {"changelog.num-retained.min": "5", "changelog.num-retained.max": "50"}
    return found
