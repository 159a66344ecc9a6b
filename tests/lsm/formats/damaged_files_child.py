"""Reads many damaged versions of a data file and prints how each ended; run as a process of its own, which a decoder may end.

python damaged_files_child.py TABLE SEED COUNT
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from manifest.io.errors import UnsupportedTable
from manifest.store import FileStore
from pyspark_paimon import CorruptFile


def read(table: Path) -> None:
    """All rows, merged."""
    store = FileStore.open(table)
    for split in ScanPlanner(store).plan(snapshot=store.snapshots.latest()).splits:
        for batch in read_split(store, split, columns=store.schema.names):
            batch.validate(full=True)


def main(table: Path, seed: int, count: int) -> None:
    """Damage the largest data file ``count`` times: a bit anywhere, a bit of its end, or a shorter file."""
    draw = random.Random(seed)
    file = max((path for path in table.glob("bucket-*/*") if path.suffix in {".orc", ".avro"}), key=lambda path: path.stat().st_size)
    whole = file.read_bytes()
    found: Counter[str] = Counter()
    for turn in range(count):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole) - 800 if turn % 2 else 0, len(whole))] ^= 1 << draw.randrange(8)
        file.unlink()
        file.write_bytes(damaged if turn % 10 else whole[: draw.randrange(len(whole))])
        try:
            read(table)
            found["read"] += 1
        except (CorruptFile, UnsupportedTable) as error:
            found["refused" if file.name in str(error) else f"an error without the file's name: {error}"] += 1
    if found.keys() - {"read", "refused"}:
        raise SystemExit(str(found))
    sys.stdout.write(f"{found['read']} {found['refused']}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
