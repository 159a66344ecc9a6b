"""Searches for parts of texts with and without n-gram filters: processor time, and pages that are decoded.

    python -m benchmarks.text_search                      # a million messages of a log

The messages have a path, a number, a user and a time each; 300 neighbours end with one error, and five anywhere with another. Times are processor
time, the best of three. The last columns are pages that a plain scan decodes, and pages that remain with filters of each kind.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time

import numpy as np
import pyarrow as pa

from pyspark_paimon import Table

KINDS = {
    "none": {},
    "3 bytes, 2,000 rows": {"ngram-filter.columns": "message"},
    "5 bytes, 500 rows": {"ngram-filter.columns": "message", "ngram-filter.message.size": "5", "ngram-filter.message.block-rows": "500"},
}
TURNS = 3


def messages(rows: int) -> pa.Table:
    """Lines of a web server's log."""
    rng = np.random.default_rng(7)
    names = [
        f"{first}{last}"
        for first in ["al", "be", "ca", "do", "el", "fi", "ga", "ha", "iv", "jo"]
        for last in ["na", "ria", "son", "tte", "ckson", "lino", "mir", "vek"]
    ]
    pick = {
        "verb": rng.choice(["GET", "POST", "PUT", "DELETE"], rows, p=[0.7, 0.2, 0.08, 0.02]),
        "path": rng.choice(["items", "orders", "invoices", "carts", "search", "login", "profiles", "reports"], rows),
        "number": rng.integers(10**6, 10**7, rows),
        "user": rng.choice([f"{first}.{last}{at}" for first in names for last in names[::3] for at in range(40)], rows),
        "status": rng.choice([200, 201, 404, 500], rows, p=[0.9, 0.05, 0.04, 0.01]),
        "millis": rng.integers(1, 900, rows),
    }
    texts = [
        f"{verb} /api/v2/{path}/{number}?user={user} {status} in {millis} ms"
        for verb, path, number, user, status, millis in zip(*pick.values(), strict=True)
    ]
    for at in range(rows // 2, rows // 2 + 3000, 10):
        texts[at] += " OutOfMemoryError: Java heap space"
    for at in rng.integers(0, rows, 5):
        texts[at] += " checksum mismatch in block"
    return pa.table({"id": range(rows), "message": texts})


def filters(rows: pa.Table) -> list[str]:
    """Ten searches, from rare to frequent texts."""
    number = rows["message"][1234].as_py().split("?")[0][-7:]
    user = rows["message"][7].as_py().split("user=")[1].split()[0]
    return [
        "message LIKE '%Timeout%'",
        "message LIKE '%OutOfMemory%'",
        "lower(message) LIKE '%outofmemory%'",
        "message LIKE '%checksum mismatch%'",
        "message RLIKE '(?i)CHECKSUM +mismatch'",
        "message RLIKE 'Java heap|checksum'",
        f"message LIKE '%{number}%'",
        f"contains(message, '{user} ')",
        "endswith(message, ' in 7 ms')",
        "message LIKE '%GET /api%'",
    ]


def timed(scan: object) -> tuple[float, int]:
    """Return the least processor time of a scan in milliseconds, and its rows."""
    best, found = float("inf"), 0
    for _ in range(TURNS):
        started = time.process_time()
        found = scan.to_arrow().num_rows  # type: ignore[attr-defined]
        best = min(best, time.process_time() - started)
    return 1000 * best, found


def pages_of(scan: object) -> tuple[int, int]:
    """Return the decoded and the skipped pages of a scan."""
    found = re.search(r"^pages +([\d,]+) +([\d,]+)", str(scan.explain()), re.MULTILINE)  # type: ignore[attr-defined]
    return tuple(int(text.replace(",", "")) for text in found.groups()) if found else (0, 0)  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = messages(parser.parse_args().rows)
    with tempfile.TemporaryDirectory() as root:
        tables = {}
        for name, options in KINDS.items():
            best = float("inf")
            for turn in range(TURNS):
                table = Table.create(f"{root}/{len(tables)}-{turn}", "id BIGINT, message STRING", options=options)
                started = time.process_time()
                table.write(rows)
                best = min(best, time.process_time() - started)
            tables[name] = table
            size = sum(table.file_indexes()["index_size_in_bytes"].to_pylist())
            print(f"filters: {name}: written in {best:.2f} CPU s, {size:,} of {sum(table.files()['file_size'].to_pylist()):,} bytes")
        for condition in filters(rows):
            cells = []
            for table in tables.values():
                scan = table.scan(condition)
                millis, found = timed(scan)
                kept, _ = pages_of(scan)
                cells.append(f"{millis:.0f} ms, {kept} pages")
            print(f"| `{condition}` | {found:,} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
