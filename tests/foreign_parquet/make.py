"""Make the Parquet files of other writers anew, each in the version that its name says.

    python -m tests.foreign_parquet.make              # all
    python -m tests.foreign_parquet.make polars-2.1   # some

Python writers run in environments of their own (uv), Paimon's engine and Spark need Java.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = "3.11"
PACKAGES = {
    "pyarrow-10": ["pyarrow==10.0.1", "numpy<2"],
    "pyarrow-14": ["pyarrow==14.0.2", "numpy<2"],
    "pyarrow-17": ["pyarrow==17.0.0", "numpy<2"],
    "pyarrow-26": ["pyarrow==26.0.1"],
    "parquet-rs-arro3-0.9": ["arro3-core==0.9.1", "arro3-io==0.9.1", "pyarrow==26.0.1"],
    "parquet-rs-deltalake-1.6": ["deltalake==1.6.6", "pyarrow==26.0.1"],
    "polars-2.1": ["polars==2.1.0", "pyarrow==26.0.1"],
    "duckdb-2.0": ["duckdb==2.0.1", "pyarrow==26.0.1", "pytz"],
    "spark-4.3": ["pyspark[sql]==4.3.0", "pyarrow==26.0.1"],
    "fastparquet-2026.9": ["fastparquet==2026.9.0"],
}
PAIMON = {"paimon-0.8": "0.8.2", "paimon-1.4": "1.4.2"}


def arrow_table(names):
    import pyarrow as pa
    from rows import columns

    types = {
        "id": pa.int64(),
        "s": pa.string(),
        "t": pa.string(),
        "n": pa.int32(),
        "d": pa.float64(),
        "f": pa.bool_(),
        "day": pa.date32(),
        "ts": pa.timestamp("us"),
        "dec": pa.decimal128(10, 2),
        "l": pa.list_(pa.int64()),
        "m": pa.map_(pa.string(), pa.int64()),
        "r": pa.struct([("a", pa.int64()), ("b", pa.string())]),
    }
    made = columns(names)
    values = {name: [list(one.items()) for one in made[name]] if name == "m" else made[name] for name in names}
    return pa.table({name: pa.array(values[name], types[name]) for name in names})


def pyarrow(path, version):
    import pyarrow.parquet as pq
    from rows import FLAT, GROUP, NESTED

    more = {"write_page_index": True} if int(version) >= 14 else {}
    if int(version) >= 17:
        more["write_page_checksum"] = True
    if int(version) < 14:
        more["data_page_version"] = "2.0"
    pq.write_table(arrow_table(FLAT + NESTED), path, row_group_size=GROUP, data_page_size=256, compression="zstd", **more)


def arro3(path, _):
    import arro3.io
    from rows import FLAT, GROUP, NESTED

    arro3.io.write_parquet(
        arrow_table(FLAT + NESTED),
        path,
        bloom_filter_enabled=True,
        bloom_filter_ndv=40,
        max_row_group_size=GROUP,
        data_page_row_count_limit=64,
        write_batch_size=32,
        compression="zstd(3)",
        skip_arrow_metadata=True,
    )


def deltalake(path, _):
    from deltalake import BloomFilterProperties, ColumnProperties, WriterProperties, write_deltalake
    from rows import BLOOMS, FLAT, GROUP, NESTED

    filters = {name: ColumnProperties(bloom_filter_properties=BloomFilterProperties(True, ndv=40)) for name in BLOOMS}
    properties = WriterProperties(
        max_row_group_size=GROUP, data_page_row_count_limit=64, write_batch_size=32, compression="ZSTD", column_properties=filters
    )
    with tempfile.TemporaryDirectory() as made:
        write_deltalake(made, arrow_table(FLAT + NESTED), writer_properties=properties)
        (file,) = Path(made).glob("*.parquet")
        shutil.copy(file, path)


def polars(path, _):
    import polars as pl
    from rows import GROUP, held

    pl.from_arrow(arrow_table(held(path.stem))).write_parquet(path, row_group_size=GROUP, data_page_size=512, compression="zstd")


def duckdb(path, _):
    import duckdb
    from rows import FLAT, NESTED

    rows = arrow_table(FLAT + NESTED)  # noqa: F841  # the query names it
    duckdb.sql(f"COPY (SELECT * FROM rows) TO '{path}' (FORMAT parquet, COMPRESSION snappy)")


def spark(path, _):
    from pyspark.sql import SparkSession
    from rows import BLOOMS, FLAT, NESTED

    session = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    frame = session.createDataFrame(arrow_table(FLAT + NESTED)).coalesce(1).write
    for name in BLOOMS:
        frame = frame.option(f"parquet.bloom.filter.enabled#{name}", "true").option(f"parquet.bloom.filter.expected.ndv#{name}", "100")
    with tempfile.TemporaryDirectory() as made:
        frame.option("parquet.block.row.count.limit", "128").option("parquet.page.row.count.limit", "40").parquet(f"{made}/t")
        (file,) = Path(made, "t").glob("*.parquet")
        shutil.copy(file, path)


def fastparquet(path, _):
    import fastparquet
    import pandas as pd
    from rows import GROUP, columns, held

    frame = pd.DataFrame(columns(held(path.stem))).astype({"n": "Int32", "s": "object", "t": "object"})
    fastparquet.write(str(path), frame, row_group_offsets=GROUP, compression="SNAPPY", object_encoding="utf8", has_nulls=True)


WRITERS = {
    "pyarrow": pyarrow,
    "parquet-rs-arro3": arro3,
    "parquet-rs-deltalake": deltalake,
    "polars": polars,
    "duckdb": duckdb,
    "spark": spark,
    "fastparquet": fastparquet,
}


def by_engine(name, version):
    from benchmarks.environments import cache
    from benchmarks.java_project import JavaProject

    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "project"
        shutil.copytree(HERE / "engine", project)
        pom = (HERE.parent / "interop" / "engine" / "pom.xml").read_text()
        (project / "pom.xml").write_text(pom.replace("<paimon.version>1.4.2<", f"<paimon.version>{version}<"))
        java = JavaProject(f"Paimon {version}", project, cache() / "foreign-parquet")
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.util", "java.nio", "sun.nio.ch")]
        options = {"file.format": "parquet", "bucket": "-1", "parquet.page.row.count.limit": "40"}
        options |= {"parquet.bloom.filter.enabled#t": "true", "parquet.bloom.filter.expected.ndv#t": "100", "parquet.block.size": "8192"}
        given = [word for option in options.items() for word in option]
        command = [java.java(), "-Duser.timezone=UTC", *opens, "-cp", java.class_path(), "ForeignFile", f"{scratch}/w", "360", *given]
        subprocess.run(command, check=True)
        (file,) = Path(scratch, "w").glob("db.db/t/bucket-0/*.parquet")
        shutil.copy(file, HERE / f"{name}.parquet")


def by_python(name):
    with tempfile.TemporaryDirectory() as made:
        subprocess.run(["uv", "venv", "-q", "--python", PYTHON, made], check=True)
        python = f"{made}/bin/python"
        subprocess.run(["uv", "pip", "install", "-q", "--python", python, *PACKAGES[name]], check=True)
        subprocess.run([python, "make.py", "--here", name], check=True, cwd=HERE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--here", action="store_true", help="write with what is installed here")
    arguments = parser.parse_args()
    for file_name in arguments.names or [*PACKAGES, *PAIMON]:
        if arguments.here:
            library, _, version = file_name.rpartition("-")
            WRITERS[library](HERE / f"{file_name}.parquet", version)
        elif file_name in PAIMON:
            by_engine(file_name, PAIMON[file_name])
        else:
            by_python(file_name)
        sys.stdout.write(f"{file_name}\n")
