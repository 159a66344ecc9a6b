"""Golden tables of older engines: which versions made which tables, the rows that all of them hold, and how to make them anew.

    python -m tests.interop.old_tables                # all, into tests/golden_old
    python -m tests.interop.old_tables --into /tmp/g

Each version's jars come by Maven; names, times and file ids differ with every run.
"""

from __future__ import annotations

import argparse
import datetime as dt
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

from benchmarks.environments import cache
from benchmarks.java_project import JavaProject

HERE = Path(__file__).parent
OLD = HERE.parent / "golden_old"
MADE = {
    "0.8.2": ("append", "pk", "pk_dv", "pk_dynamic", "pk_changelog", "codec_bzip2", "codec_snappy", "codec_xz", "manifest_orc"),
    "0.9.0": ("pk_part", "codec_snappy", "manifest_parquet"),
    "1.1.1": ("pk_dv", "manifest_orc", "manifest_parquet"),
}
READ_ONLY = {"codec_xz": "manifest.compression"}
"""Tables that are read and not written, and the option by which a write is refused."""
SHOWS = {
    "append": "append",
    "pk": "primary key",
    "pk_part": "primary key, partitions",
    "pk_dv": "deletion vectors",
    "pk_dynamic": "dynamic buckets",
    "pk_changelog": "changelog-producer input",
    "codec_bzip2": "manifests in Avro, bzip2",
    "codec_snappy": "manifests in Avro, snappy",
    "codec_xz": "manifests in Avro, xz",
    "manifest_orc": "manifests in ORC",
    "manifest_parquet": "manifests in Parquet",
}
"""What each table is there for, in the words of the docs."""
TABLES = [(version, name) for version, names in MADE.items() for name in names]
_NEWEST = "1.4.2"
_PACKAGES = ("java.lang", "java.util", "java.nio", "sun.nio.ch")


def rows_of(name: str) -> list[dict[str, object]]:
    """The rows of a table, by key: of keys that came twice the later ones, but where there is no key both."""
    made = [_row(commit * 10 + i, commit) for commit in range(4) for i in range(20)]
    kept = made if name == "append" else list({row["id"]: row for row in made}.values())
    return sorted(kept, key=lambda row: (row["id"], row["n"]))


def _row(key: int, commit: int) -> dict[str, object]:
    return {
        "id": key,
        "day": f"2024-01-0{1 + key % 3}",
        "s": None if key % 5 == 0 else f"s{key}",
        "n": commit,
        "d": Decimal(key * 100 + commit).scaleb(-2),
        "t": dt.datetime(2023, 11, 14, 22, 13, 20) + dt.timedelta(microseconds=key),  # noqa: DTZ001  # TIMESTAMP has no zone
    }


def by_version() -> str:
    """The docs' table of older engines: their versions by what their tables show."""
    lines = [f"| tables of | {' | '.join(MADE)} |", "|---" * (len(MADE) + 1) + "|"]
    for name, shows in SHOWS.items():
        done = "read" if name in READ_ONLY else "read, written, compacted"
        lines.append(f"| {shows} | {' | '.join(done if name in names else '–' for names in MADE.values())} |")
    return "\n".join(lines)


def make(version: str, names: tuple[str, ...], into: Path) -> None:
    """Let the engine of ``version`` write tables below ``into``."""
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "project"
        shutil.copytree(HERE / "old_engine", project)
        pom = (HERE / "engine" / "pom.xml").read_text()
        assert pom.count(_NEWEST) == 1
        (project / "pom.xml").write_text(pom.replace(_NEWEST, version))
        java = JavaProject(f"Paimon {version}", project, cache() / "old-engines")
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _PACKAGES]
        command = [java.java(), "-Duser.timezone=UTC", *opens, "-cp", java.class_path(), "OldTables", str(into), *names]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=OLD)
    target = parser.parse_args().into
    for version, names in MADE.items():
        with tempfile.TemporaryDirectory() as warehouse:
            make(version, names, Path(warehouse))
            shutil.rmtree(target / version, ignore_errors=True)
            shutil.copytree(Path(warehouse) / "db.db", target / version)
        sys.stdout.write(f"{version}: {', '.join(names)}\n")
