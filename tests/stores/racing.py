"""Processes that write to one table on a server at once, behind a proxy that loses answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from pyspark_paimon import Table
from tests.stores.azure_server import AzureServer
from tests.stores.fault_proxy import DROP, FaultProxy, Request
from tests.stores.s3_server import S3Server

ROOT = Path(__file__).parents[2]
WRITER = """
import json, sys, uuid
import pyarrow as pa
from manifest.storage import faults
from pyspark_paimon import Table
faults._FIRST_WAIT = 0.001
told = json.load(sys.stdin)
table = Table.open(told["path"], storage_options=told["options"])
for number in range(told["commits"]):
    identity = 1000 * told["writer"] + number
    table.write(pa.table({"id": pa.array([identity], pa.int64()), "city": [str(identity)]}), commit_id=str(uuid.uuid4()))
    print(identity, flush=True)
"""


def raced(server: S3Server | AzureServer, proxy: FaultProxy, place: str, processes: int, commits: int) -> None:
    """What processes that write at once are told is what is there, and nothing else, while every third answer to a put-if-absent is lost."""
    path = f"{place}/t"
    options = {"bucket": "1", "commit.max-retries": "200", "snapshot.num-retained.min": "500", "snapshot.num-retained.max": "1000"}
    Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options=options, storage_options=server.options())
    creates: Counter[str] = Counter()

    def rule(request: Request) -> str | None:
        if not request.creates:
            return None
        creates["all"] += 1
        return DROP if creates["all"] % 3 == 0 else None

    proxy.rule = rule
    told = {"path": path, "options": server.options(proxy.port), "commits": commits}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(processes)
    ]
    for number, writer in enumerate(writers):
        assert writer.stdin is not None
        writer.stdin.write(json.dumps(told | {"writer": number}))
        writer.stdin.close()
        writer.stdin = None
    acknowledged: list[int] = []
    for writer in writers:
        out, err = writer.communicate(timeout=800)
        assert writer.returncode == 0, err[-2000:]
        acknowledged += map(int, out.split())
    assert len(acknowledged) == processes * commits
    assert proxy.done[DROP] >= commits
    table = Table.open(path, storage_options=server.options())
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == sorted(acknowledged)
    assert table.fsck("deep").problems == ()
