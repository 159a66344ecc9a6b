"""A data file that cannot be finished, in a process of its own: it lives, the error is typed, nothing is left, the next write works."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.children import run_python

CHILD = dedent("""
    import errno, gc, json, resource, sys
    from pathlib import Path
    import numpy as np
    import pyarrow as pa
    from manifest.io.file_io import LocalFileIO
    from pyspark_paimon import Table
    from pyspark_paimon.local.engine import LocalEngine
    from paimon_base.errors import PaimonError

    ROWS = 60_000
    full = False

    class Sink:
        closed = False

        def __init__(self, sink):
            self.sink, self.size = sink, 0

        def write(self, data):
            self.size += len(data)
            if full and self.size > 100_000:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.sink.write(data)

        def tell(self):
            return self.sink.tell()

        def flush(self):
            self.sink.flush()

        def close(self):
            self.closed = True
            self.sink.close()

    class Disk(LocalFileIO):
        def open_output(self, path):
            return Sink(super().open_output(path))

    def attempt(path, kind, fault, keyed):
        global full
        numbers = np.random.default_rng(7).integers(0, 1 << 60, ROWS)
        moments = numbers % (1 << 50)
        if fault == "value":
            moments[-1] = -1
        rows = pa.table({"id": np.arange(ROWS), "n": numbers, "t": pa.array(moments, pa.timestamp("us"))})
        # a later file of the same write fails, and a later batch of the same file
        options = {"file.format": kind, "file.compression": "none", "bucket": "1" if keyed else "-1", "target-file-size": "1 mb"}
        options |= {"file.block-size": "64 kb", "write-buffer-size": "512 kb"}
        made = Table.create(path, "id BIGINT, n BIGINT, t TIMESTAMP(6)", primary_keys=["id"] if keyed else [], options=options)
        table = Table(LocalEngine(path, file_io=Disk())) if fault == "full" else made
        full = fault == "full"
        if fault == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        raised = None
        try:
            table.write(rows)
        except PaimonError as error:
            raised = [type(error).__name__, getattr(error, "errno", None), str(error)]
        del table
        gc.collect()
        full = False
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        left = [str(file) for file in Path(path).rglob("bucket-*/*") if file.is_file()]
        table = Table.open(path)
        table.write(rows.slice(0, 1000))
        return {"raised": raised, "left": left, "count": table.scan().count(), "rows": table.scan().to_arrow().num_rows}

    for case in json.loads(sys.argv[1]):
        print(json.dumps(attempt(*case)), flush=True)
""")
CASES = [
    (kind, fault, keyed)
    for kind in ("orc", "parquet", "avro")
    for fault in ("limit", "full", "value")
    for keyed in (False, True)
    if kind == "orc" or fault != "value"  # only ORC cannot hold a fraction of a second before 1970
]
RAISED = {"limit": ("StorageError", errno.EFBIG), "full": ("OutOfDisk", errno.ENOSPC), "value": ("CastFailed", None)}


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[tuple[str, str, bool], tuple[Path, dict[str, Any]]], str]:
    """Paths and outcomes of all cases, of one process that lives through them, and what it wrote to stderr."""
    home = tmp_path_factory.mktemp("failed")
    paths = [home / f"t{number}" for number in range(len(CASES))]
    arguments = [(str(path), *case) for path, case in zip(paths, CASES, strict=True)]
    done = run_python(CHILD, json.dumps(arguments), flags=("-X", "faulthandler"))
    outcomes = map(json.loads, done.stdout.splitlines())
    return dict(zip(CASES, zip(paths, outcomes, strict=True), strict=True)), done.stderr


@pytest.mark.parametrize(("kind", "fault", "keyed"), CASES)
def test_the_process_lives_and_the_next_write_works(attempts: Any, kind: str, fault: str, keyed: bool) -> None:
    outcomes, stderr = attempts
    path, outcome = outcomes[kind, fault, keyed]
    name, number, text = outcome["raised"]
    assert (name, number) == RAISED[fault]
    assert ("column 't'" if fault == "value" else str(path / "bucket-0")) in text
    assert outcome["left"] == []
    assert (outcome["count"], outcome["rows"]) == (1000, 1000)
    assert "terminate called" not in stderr
    assert "Exception ignored" not in stderr
