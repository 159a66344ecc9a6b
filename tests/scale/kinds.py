"""Which tables are drawn: size, engine, key, columns, format, codec, indexes and options."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pyspark_paimon import Table
from tests.scale.columns import ORDINARY, Column, Dice, wide
from tests.tiny import tiny_options


@dataclass(frozen=True)
class Size:
    """How many rows the largest write has, and options that make row groups of them.

    ``bytes`` are those of wide texts of a write, ``columns`` the most columns, ``share`` how often it is drawn, ``steps`` those after the
    first write.
    """

    name: str
    rows: int
    bytes: int
    columns: int
    share: float
    options: tuple[tuple[str, str], ...] = ()
    steps: int = 9

    @property
    def tiny(self) -> bool:
        return self.name == "tiny"


SIZES = (
    Size("tiny", 80, 3_000, 5, 0.65, tuple(tiny_options().items())),
    Size("one group", 40_000, 8 << 20, 6, 0.2),
    Size("three groups", 1_300_000, 0, 4, 0.03, steps=6),
    Size("three wide groups", 60_000, 150 << 20, 4, 0.03, steps=6),
    Size("twenty groups", 120_000, 16 << 20, 6, 0.08, (("file.block-size", "1 mb"), ("target-file-size", "16 mb"))),
    Size("twenty long groups", 10_600_000, 0, 1, 0.01, steps=3),
)
"""All but tiny ones have the usual thresholds; those of twenty groups say how large a group is, or are long and narrow."""
ENGINES = ("deduplicate", "deduplicate", "deduplicate", "partial-update", "aggregation", "first-row", "append", "append", "append")
CODECS = ("none", "snappy", "gzip", "lz4", "zstd")


@dataclass(frozen=True)
class Kind:
    """How a table is made."""

    size: Size
    engine: str
    keys: tuple[str, ...]
    partitioned: bool
    columns: tuple[Column, ...]
    options: dict[str, str]

    @property
    def name(self) -> str:
        """The line of the figures that it counts for."""
        return f"{self.size.name}, {self.options.get('file.format', 'parquet')}"

    @property
    def ddl(self) -> str:
        fixed = [
            "id BIGINT NOT NULL",
            *(["ks STRING NOT NULL"] if "ks" in self.keys else []),
            *(["p STRING NOT NULL"] if self.partitioned else []),
        ]
        return ", ".join([*fixed, *(column.ddl for column in self.columns)])

    def create(self, path: str) -> Table:
        return Table.create(path, self.ddl, self.keys, ["p"] if self.partitioned else [], self.options)


def _wide(dice: Dice, size: Size) -> Column:
    """A column of wide texts: some of kilobytes, some of a megabyte, which are beyond what has bounds."""
    least, most = (1, 60) if size.tiny else ((1 << 10, 16 << 10), (1 << 10, 16 << 10), (500_000, 1_200_000))[dice.integers(0, 3)]
    return Column("w", "STRING", wide(least, most, size.bytes), ("bloom-filter", "bitmap", "range-bitmap"))


def draw_kind(dice: Dice, sizes: tuple[Size, ...] = SIZES) -> Kind:
    shares = np.array([size.share for size in sizes])
    size = sizes[dice.choice(len(sizes), p=shares / shares.sum())]
    engine = str(dice.choice(ENGINES))
    count = int(dice.integers(1, size.columns + 1))
    columns = [ORDINARY[at] for at in dice.choice(len(ORDINARY), count, replace=False)]
    if not any(column.name in {"t", "u"} for column in columns):
        columns[0] = ORDINARY[9]
    if engine == "aggregation" and not any(column.name == "n" for column in columns):
        columns.append(ORDINARY[0])
    if size.bytes and dice.random() < 0.6:
        columns.append(_wide(dice, size))
    options = {**dict(size.options), **_options(dice, size, engine)}
    keys: tuple[str, ...] = () if engine == "append" else (("id",), ("id",), ("ks",), ("ks", "id"))[dice.integers(0, 4)]
    partitioned = bool(dice.random() < 0.25)
    keys = (*keys, "p") if keys and partitioned else keys
    options |= index_options(dice, columns)
    if options.get("file.format") == "avro" and options.get("file.compression") == "lz4":
        del options["file.compression"]
    return Kind(size, engine, keys, partitioned, tuple(columns), options)


def _options(dice: Dice, size: Size, engine: str) -> dict[str, str]:
    options: dict[str, str] = {}
    if engine == "append":
        options["bucket"] = "-1"
        if dice.random() < 0.3:
            options |= {"bucket": "2", "bucket-key": "id"}
    else:
        options["bucket"] = str(dice.choice(["1", "2", "-1"]))
    if engine not in {"append", "deduplicate"}:
        options["merge-engine"] = engine
    if engine == "aggregation":
        options |= {"fields.n.aggregate-function": "sum", "fields.default-aggregate-function": "last_non_null_value"}
    if engine != "first-row" and dice.random() < 0.4:
        options["deletion-vectors.enabled"] = "true"
    if engine not in {"append", "first-row"} and dice.random() < 0.15:
        options["changelog-producer"] = "lookup"
    form = dice.random()
    if form < 0.4:
        options["file.format"] = str(dice.choice(["orc", "avro"]))
    elif form < 0.5 and engine != "append":
        options["file.format.per.level"] = str(dice.choice(["0:avro", "0:orc,5:avro", "5:orc"]))
    if dice.random() < 0.6:
        options["file.compression"] = str(dice.choice(CODECS[: 3 if "file.format.per.level" in options else None]))
    if dice.random() < 0.3:
        options["metadata.stats-mode"] = str(dice.choice(["none", "counts", "full", "truncate(4)"]))
    if dice.random() < 0.2:
        options["write-only"] = "true"
    if dice.random() < 0.3:
        options["num-sorted-run.compaction-trigger"] = "2"
    if engine != "append" and dice.random() < 0.2 and not size.tiny and size.rows < 1_000_000:
        options["write-buffer-size"] = "8 mb"  # rows spill
    return options


def index_options(dice: Dice, columns: list[Column]) -> dict[str, str]:
    """Options of indexes on about half of the columns, beside the files or in manifests."""
    options = {}
    for kind in ("bloom-filter", "bitmap", "range-bitmap", "bsi"):
        names = [column.name for column in columns if kind in column.indexes and dice.random() < 0.4]
        if names:
            options[f"file-index.{kind}.columns"] = ",".join(names)
    options["file-index.in-manifest-threshold"] = str(dice.choice(["1 b", "500 b", "1 mb"]))
    return options


def new_column(dice: Dice, number: int) -> Column:
    """A column that comes with a write."""
    column = ORDINARY[int(dice.integers(0, len(ORDINARY)))]
    return replace(column, name=f"new{number}")
