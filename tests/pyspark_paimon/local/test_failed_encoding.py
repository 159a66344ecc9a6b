"""A data file that cannot be finished, in a process of its own: it lives, the error is typed, nothing is left, the next write works."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from textwrap import dedent

import pytest

from tests.children import run_python

CHILD = dedent("""
    import errno, gc, json, resource, sys
    from pathlib import Path
    import numpy as np
    import pyarrow as pa
    from manifest.io.file_io import LocalFileIO
    from pyspark_paimon import Table
    from pyspark_paimon.local.backend import LocalBackend
    from fileindex.base.errors import PaimonError

    path, kind, fault, keyed = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "True"
    ROWS = 300_000
    numbers = np.random.default_rng(7).integers(0, 1 << 60, ROWS)
    moments = numbers % (1 << 50)
    if fault == "value":
        moments[-1] = -1
    rows = pa.table({"id": np.arange(ROWS), "n": numbers, "t": pa.array(moments, pa.timestamp("us"))})
    keys = ["id"] if keyed else []
    # a later file of the same write fails, and a later batch of the same file
    options = {"file.format": kind, "file.compression": "none", "bucket": "1" if keyed else "-1", "target-file-size": "10 mb"}
    options |= {"file.block-size": "64 kb", "write-buffer-size": "2 mb"}
    made = Table.create(path, "id BIGINT, n BIGINT, t TIMESTAMP(6)", primary_keys=keys, options=options)

    full = False

    class Sink:
        closed = False

        def __init__(self, sink):
            self.sink, self.size = sink, 0

        def write(self, data):
            self.size += len(data)
            if full and self.size > 200_000:
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

    table = Table(LocalBackend(path, file_io=Disk())) if fault == "full" else made
    full = fault == "full"
    if fault == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    told = None
    try:
        table.write(rows)
    except PaimonError as error:
        told = [type(error).__name__, getattr(error, "errno", None), str(error)]
    del table
    gc.collect()
    full = False
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    left = [str(found) for found in Path(path).rglob("bucket-*/*") if found.is_file()]
    table = Table.open(path)
    table.write(rows.slice(0, 1000))
    print(json.dumps({"told": told, "left": left, "count": table.scan().count(), "rows": table.scan().to_arrow().num_rows}))
""")


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keys"])
@pytest.mark.parametrize("fault", ["limit", "full", "value"])
@pytest.mark.parametrize("kind", ["orc", "parquet", "avro"])
@pytest.mark.sampled(2)
def test_the_process_lives_and_the_next_write_works(tmp_path: Path, kind: str, fault: str, keyed: bool) -> None:
    if fault == "value" and kind != "orc":
        pytest.skip("only ORC cannot hold a fraction of a second before 1970")
    done = run_python(CHILD, str(tmp_path / "t"), kind, fault, str(keyed), flags=("-X", "faulthandler"))
    found = json.loads(done.stdout.splitlines()[-1])
    name, number, text = found["told"]
    assert (name, number) == {"limit": ("StorageError", errno.EFBIG), "full": ("OutOfDisk", errno.ENOSPC), "value": ("CastFailed", None)}[
        fault
    ]
    assert ("'t'" if fault == "value" else str(tmp_path / "t" / "bucket-0")) in text
    assert found["left"] == []
    assert (found["count"], found["rows"]) == (1000, 1000)
    assert "terminate called" not in done.stderr
    assert "Exception ignored" not in done.stderr
