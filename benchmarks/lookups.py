"""Cost of lookups by key: one process, a fresh process, and a small web service.

    python -m benchmarks.lookups                         # 2 million rows, 6 columns, 4 buckets
    python -m benchmarks.lookups --rows 200000 --table /tmp/lookups     # kept, and used again

Figures of one process are processor milliseconds of all threads, with one lookup at a time. Latencies of the service are of the wall clock,
over HTTP, with as many clients as named. The load of the machine is printed, because both depend on it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.machine import cpu_seconds, machine_class
from pyspark_paimon import Table
from pyspark_paimon.table.reader import TableReader

SCHEMA = "id BIGINT, city STRING, amount DOUBLE, day DATE, quantity INT, note STRING"
BUCKETS, RUNS, UPSERTED = 4, 20, 2_000
FRESH = "import sys; from pyspark_paimon import Table; Table.open(sys.argv[1]).lookup({'id': [int(sys.argv[2])]})"


def rows(ids: Sequence[int], seed: int) -> pa.Table:
    """Return rows with these keys, and values drawn at random."""
    draw, count = np.random.default_rng(seed), len(ids)
    cities, notes = pa.array([f"city {number}" for number in range(1000)]), pa.array([f"note number {number}" for number in range(50_000)])
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "city": cities.take(pa.array(draw.integers(0, len(cities), count))),
            "amount": draw.random(count),
            "day": pa.array(draw.integers(18_000, 20_000, count), pa.int32()).cast(pa.date32()),
            "quantity": pa.array(draw.integers(0, 1_000_000, count), pa.int32()),
            "note": notes.take(pa.array(draw.integers(0, len(notes), count))),
        }
    )


def tables(folder: Path, total: int) -> tuple[Table, Table]:
    """Return a compacted table, and one with 20 sorted runs in each bucket."""
    found = []
    for name, upserts in (("compacted", 0), ("runs", RUNS - 1)):
        if not (folder / name).exists():
            table = Table.create(folder / name, SCHEMA, ["id"], options={"bucket": str(BUCKETS), "write-only": "true"})
            table.write(rows(np.random.default_rng(0).permutation(total).tolist(), 0))
            table.compact(full=True)
            for seed in range(1, upserts + 1):
                table.write(rows(np.random.default_rng(seed).choice(total, min(total, UPSERTED), replace=False).tolist(), seed))
        found.append(Table.open(str(folder / name)))
    return found[0], found[1]


def spread(times: Sequence[float]) -> str:
    """Return median and upper percentiles as cells of a table."""
    ordered = sorted(times)
    return " | ".join(f"{ordered[min(len(ordered) - 1, len(ordered) * part // 100)]:.2f}" for part in (50, 95, 99))


def millis(work: Callable[[], object], turns: int) -> list[float]:
    """Return processor milliseconds of each turn."""
    return [1000 * cpu_seconds(work) for _ in range(turns)]


def in_process(compacted: Table, runs: Table, total: int) -> Iterator[tuple[str, list[float]]]:
    """Yield the cost of each kind of lookup."""
    draw = random.Random(0)

    def one(table: Table) -> None:
        assert table.lookup({"id": [draw.randrange(total)]}).num_rows == 1

    for table in (compacted, runs):
        for _ in range(300):
            one(table)
    yield "key hit, table kept open", millis(lambda: one(compacted), 300)
    yield "key hit, table opened again", millis(lambda: one(Table.open(compacted.path)), 300)
    yield "equality on the key, table kept open", millis(lambda: compacted.scan(f"id = {draw.randrange(total)}").to_arrow(), 300)
    yield "key that is missing", millis(lambda: compacted.lookup({"id": [draw.randrange(total, 2 * total)]}), 300)
    yield f"key hit in a bucket of {RUNS} runs", millis(lambda: one(runs), 300)
    thousand = min(1000, total)
    yield "1,000 keys at once", millis(lambda: compacted.lookup({"id": draw.sample(range(total), thousand)}), 9)
    yield f"1,000 keys at once, {RUNS} runs", millis(lambda: runs.lookup({"id": draw.sample(range(total), thousand)}), 9)
    reader = compacted.reader()
    yield "warm() of a reader", millis(reader.warm, 1)
    yield "key hit, warm reader", millis(lambda: reader.lookup({"id": [draw.randrange(total)]}), 300)
    yield "open and look at the newest snapshot", millis(lambda: Table.open(compacted.path).scan().snapshot_id, 300)


def fresh_process(table: Table, total: int) -> list[float]:
    """Return processor milliseconds of a new process that imports, opens and looks up once."""

    def spent() -> float:
        before = os.times()
        subprocess.run([sys.executable, "-c", FRESH, table.path, str(total // 2)], check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    spent()  # compiles modules
    return [1000 * spent() for _ in range(5)]


@contextmanager
def service(reader: TableReader) -> Iterator[int]:
    """Run a web service that answers ``/?id=...`` with a row; yield its port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body waits for the acknowledgement of the head

        def do_GET(self) -> None:
            found = reader.lookup({"id": [int(self.path.rpartition("=")[2])]})
            body = json.dumps(found.to_pylist(), default=str).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
            """Write nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def latencies(port: int, total: int, clients: int, requests: int) -> list[float]:
    """Return ascending milliseconds of requests of several clients."""
    found: list[float] = []

    def ask(seed: int) -> None:
        draw, connection = random.Random(seed), http.client.HTTPConnection("127.0.0.1", port)
        own = []
        for _ in range(requests // clients):
            start = time.perf_counter()
            connection.request("GET", f"/?id={draw.randrange(total)}")
            assert len(json.loads(connection.getresponse().read())) == 1
            own.append(1000 * (time.perf_counter() - start))
        found.extend(own)
        connection.close()

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found)


def served(table: Table, total: int, requests: int) -> Iterator[tuple[str, int, list[float]]]:
    """Yield latencies of the web service, for one and for 32 clients."""
    reader = table.reader()
    reader.warm()
    # The clients have a process of their own: they would share the interpreter with the service.
    with service(reader) as port, ProcessPoolExecutor(1, get_context("spawn")) as others:
        others.submit(latencies, port, total, 1, min(200, requests)).result()
        for clients in (1, 32):
            yield (
                f"{clients} clients" if clients > 1 else "1 client",
                clients,
                others.submit(latencies, port, total, clients, requests).result(),
            )


def measure(folder: Path, total: int, requests: int) -> None:
    """Print all figures as Markdown tables."""
    compacted, runs = tables(folder, total)
    print(f"{machine_class()}; load {', '.join(f'{load:.1f}' for load in os.getloadavg())}; {total:,} rows, {BUCKETS} buckets\n")
    print("| processor milliseconds | p50 | p95 | p99 |\n|---|---|---|---|")
    for name, times in in_process(compacted, runs, total):
        print(f"| {name} | {spread(times)} |", flush=True)
    print(f"| fresh process: import, open, one lookup | {spread(fresh_process(compacted, total))} |\n")
    print("| service | requests/s | p50 ms | p95 ms | p99 ms |\n|---|---|---|---|---|")
    for name, clients, times in served(compacted, total, requests):
        print(f"| {name} | {1000 * clients / statistics.mean(times):.0f} | {spread(times)} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure tables of the given size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--requests", type=int, default=3_200, help="requests of each service figure")
    parser.add_argument("--table", type=Path, help="folder of the tables, kept and used again")
    chosen = parser.parse_args(arguments)
    folder = chosen.table or Path(tempfile.mkdtemp())
    try:
        measure(folder, chosen.rows, chosen.requests)
    finally:
        if chosen.table is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
