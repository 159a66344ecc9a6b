"""Demo on real data: flights from New York in 2013, written by Spark Connect.

``make demo`` writes two half years, merges corrections into the first, compacts the table and looks up rows by indexes.
``PAIMON_DEMO_STORE=s3 make demo`` starts an S3 server and creates the table there.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from paimon_base.texts import count_text
from pyspark_paimon import PaimonError, Table
from pyspark_paimon.example import flights

FLIGHTS_SCHEMA = """
  month INT NOT NULL, day INT NOT NULL, carrier STRING NOT NULL, flight INT NOT NULL, origin STRING NOT NULL,
  tailnum STRING, dest STRING, status STRING, scheduled TIMESTAMP(3), distance INT, measures MAP<STRING, INT>
"""
PRIMARY_KEYS = ["month", "day", "carrier", "flight", "origin"]
OPTIONS = {
    "bucket": "2",
    "file-index.bloom-filter.columns": "tailnum",
    "file-index.bloom-filter.tailnum.items": "5000",
    "file-index.bloom-filter.tailnum.fpp": "0.01",
    "file-index.bitmap.columns": "carrier,origin,measures[dep_delay]",
}
MEASURES = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]
LOOKUPS = {
    "one aircraft, by its tail number (bloom filter)": "tailnum = 'N840MQ' AND dest = 'XNA'",
    "a carrier at an airport (two bitmaps)": "carrier = 'OO' AND origin = 'LGA'",
    "an exact delay, a key of the map column (bitmap on a map key)": "measures['dep_delay'] = 1301",
}

screen = Console()


def print_text(text: str) -> None:
    """Print text without markup and line breaks."""
    screen.print(text, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def step(text: str, note: str = "") -> Iterator[None]:
    """Show ``text`` and a spinner while the block runs, then its seconds.

    ``note``: what the step shows, in one sentence.
    """
    start = time.perf_counter()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as progress:
        progress.add_task(text)
        yield
    screen.print(f"[green]✓[/green] {text} [dim]{time.perf_counter() - start:.1f} s[/dim]")
    if note:
        screen.print(f"  [dim]{note}[/dim]")


def stage_flights(folder: Path) -> Path:
    """Write 336,776 flights as one Parquet file, the job's input."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "flights.parquet"
    pq.write_table(flights(), target, coerce_timestamps="us")
    return target


def to_table_rows(raw: Any) -> Any:
    """Return raw flights as rows of the table.

    Floats become integers, and the known measures of a flight become a map.
    """
    from pyspark.sql import functions as sf  # noqa: PLC0415 - no Spark until the demo runs

    pairs = [sf.struct(sf.lit(name).alias("key"), sf.col(name).cast("int").alias("value")) for name in MEASURES]
    measures = sf.map_from_entries(sf.filter(sf.array(*pairs), lambda pair: pair["value"].isNotNull()))
    columns = [sf.col(name).cast("int").alias(name) for name in ("month", "day", "flight", "distance")]
    return raw.select(
        *columns,
        "carrier",
        "origin",
        "tailnum",
        "dest",
        sf.lit("scheduled").alias("status"),
        sf.to_timestamp("time_hour").cast("timestamp_ntz").alias("scheduled"),
        measures.alias("measures"),
    )


def corrections(flights: Any) -> Any:
    """Return cancelled flights of the first half year with their new status."""
    from pyspark.sql import functions as sf  # noqa: PLC0415 - no Spark until the demo runs

    return flights.where("month <= 6 AND measures['dep_time'] IS NULL").withColumn("status", sf.lit("cancelled"))


def show_levels(table: Table, title: str) -> None:
    """Print the files, rows and bytes of each LSM level."""
    files = table.files()
    levels = files.group_by("level").aggregate([("file_name", "count"), ("row_count", "sum"), ("file_size", "sum")]).sort_by("level")
    grid = Grid("level", "files", "rows", "KiB", title=title, title_justify="left", min_width=46)
    for level, count, rows, size in zip(*(levels[name].to_pylist() for name in levels.column_names), strict=True):
        grid.add_row(str(level), f"{count:,}", f"{rows:,}", f"{size // 1024:,}")
    screen.print(grid)


def show_lookups(table: Table, path: str) -> None:
    """Print each lookup over Spark and in this process, and what was pruned."""
    local = Table.open(path)
    for what, text in LOOKUPS.items():
        rows, over_spark = _timed(table, text)
        _, in_process = _timed(local, text)
        screen.rule(f"[bold]{what}", align="left")
        print_text(f"{text}   →   {count_text(rows, 'row')} in {over_spark:,.0f} ms over Spark, {in_process:,.0f} ms in this process")
        show_pruning(local, text)


def _timed(table: Table, text: str) -> tuple[int, float]:
    """Return rows and milliseconds of a lookup, the second time."""
    columns = ["month", "day", "carrier", "flight", "origin", "dest", "tailnum", "status", "measures"]
    table.scan(text, columns=columns).to_arrow()
    start = time.perf_counter()
    rows = table.scan(text, columns=columns).to_arrow().num_rows
    return rows, (time.perf_counter() - start) * 1000


def show_pruning(table: Table, text: str) -> None:
    """Print the pruning stages that dropped something."""
    grid = Grid("stage", "kept", "dropped", min_width=46)
    for stage in table.scan(text).explain().stages:
        if stage.dropped:
            grid.add_row(stage.name, f"{stage.kept:,}", f"{stage.dropped:,}")
    screen.print(grid)


def read_in_process(path: str) -> None:
    """Read the table in this process by pandas, without Spark and JVM."""
    frame = Table.open(path).scan("status = 'cancelled'", columns=["month", "carrier"]).to_pandas()
    screen.print(frame.groupby("carrier").size().sort_values(ascending=False).head(5).to_frame("cancelled, Jan to Jun").to_string())


def run(folder: Path, path: str) -> None:
    """Run the demo.

    Args:
        folder: Directory of the staged input.
        path: Path of the new table.
    """
    from pyspark_paimon.spark.client.session import spark_session  # noqa: PLC0415 - no Spark until the demo runs

    with step("stage 336,776 real flights as Parquet"):
        staged = stage_flights(folder / "staged")
    with step("start an embedded Spark Connect server", "A JVM starts in the background; a client of a running server skips this step."):
        spark = spark_session(app_name="pyspark-paimon demo", master="local[2]")
    with step(
        "create the table: primary key, partitions by month, bloom and bitmap indexes",
        "The first command of a session starts Spark's Python workers, which takes most of this time.",
    ):
        table = Table.create(path, FLIGHTS_SCHEMA, primary_keys=PRIMARY_KEYS, partition_keys=["month"], options=OPTIONS, spark=spark)
    flights = to_table_rows(spark.read.parquet(str(staged)))
    with step("write January to June from Spark", "Each Spark task sorts its rows and writes level-0 files with their indexes."):
        first = table.write(flights.where("month <= 6"))
    with step("write July to December", "It goes into other partitions, so no file of the first half is touched."):
        second = table.write(flights.where("month > 6"))
    with step("merge corrections into the first half", "New versions of the changed rows lie above the old ones until a compaction."):
        merged = table.merge(corrections(flights), on=PRIMARY_KEYS).when_matched_update({"status": "s.status"}).execute()
    screen.print(
        f"{first.rows:,} + {count_text(second.rows, 'row')} written, {merged.updated:,} corrected, {table.scan().count():,} flights in the table"
    )
    show_levels(table, "LSM levels before compaction")
    with step(
        "compact every bucket (a Spark job in which no row crosses the JVM)", "One sorted run is left in each bucket, on the highest level."
    ):
        compacted = table.compact(full=True)
    screen.print(f"{count_text(compacted.files_before, 'file')} became {compacted.files_after}")
    show_levels(table, "LSM levels after compaction")
    show_lookups(table, path)
    with step("read it in this process by pandas, without Spark", "The same files, read by Arrow without a JVM."):
        read_in_process(path)
    with step("draw the tree as a page", "The page shows each file of the LSM tree, and which ones a lookup skips."):
        page = table.report(folder / "report.html", LOOKUPS["one aircraft, by its tail number (bloom filter)"])
    spark.stop()
    print_text(f"\nThe Paimon table is at {path}. A page with its LSM tree and the files of a lookup: {page.as_uri()}\nNext:")
    print_text(f"  .venv/bin/pyspark-paimon ui {path}")
    print_text(f"  .venv/bin/pyspark-paimon inspect {path}")
    print_text(f"  .venv/bin/pyspark-paimon explain {path} --filter \"tailnum = 'N14228'\"")
    print_text(f"  .venv/bin/python -c \"from pyspark_paimon import Table; print(Table.open('{path}').scan(limit=5).to_pandas())\"")


def main() -> None:
    """Parse the command line and run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path("demo-data"), help="directory of the input and the table; the old table is deleted"
    )
    parser.add_argument("--table", help="another path of the table, such as s3://bucket/flights; credentials come from the environment")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if (folder / "flights").exists():
        shutil.rmtree(folder)
    try:
        run(folder, arguments.table or str(folder / "flights"))
    except PaimonError as error:
        screen.print(f"[red]{type(error).__name__}[/red]: {error}", highlight=False)
        sys.exit(1)


if __name__ == "__main__":
    main()
