"""Crafted manifests: a small file is refused, and not at the cost of gigabytes."""

from __future__ import annotations

import bz2
import io
import lzma
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from pyarrow import orc
from pyarrow import parquet as pq

from manifest.avro.codecs import compressor, decompressor
from manifest.avro.container import read_container, write_avro
from manifest.avro.schemas import MANIFEST_ENTRY
from manifest.avro.wire import encode_long

MOST_BYTES = 1 << 30
"""Address space that reading may add."""
CHILD = """
import resource, sys
from pathlib import Path
import pyarrow.dataset, pyarrow.orc, pyarrow.parquet
from paimon_base.errors import CorruptFile
from manifest.avro.container import read_container

data = Path(sys.argv[1]).read_bytes()
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    read_container(sys.argv[1], data)
except CorruptFile as error:
    print(f"refused: {error}")
"""


def zeros(megabytes: int) -> Iterator[bytes]:
    return (bytes(1 << 20) for _ in range(megabytes))


def packed(codec: str, megabytes: int) -> bytes:
    """Return compressed zeros without holding them."""
    if codec == "snappy":  # one literal zero, then copies of 64 bytes from one byte before
        size, prefix = megabytes << 20, bytearray()
        while size > 0x7F:
            prefix.append(size & 0x7F | 0x80)
            size >>= 7
        prefix.append(size)
        return bytes(prefix) + b"\0\0" + b"\xfe\1\0" * ((2 << 20) // 3) + bytes(4)
    stream = {
        "deflate": lambda: zlib.compressobj(wbits=-15),
        "bzip2": bz2.BZ2Compressor,
        "xz": lambda: lzma.LZMACompressor(preset=0),
        "zstandard": lambda: zstandard.ZstdCompressor(level=1).compressobj(),
    }[codec]()
    return b"".join([*map(stream.compress, zeros(megabytes)), stream.flush()])


def with_block(codec: str, records: int, content: bytes) -> bytes:
    """Return a container with one compressed block."""
    header = write_avro(MANIFEST_ENTRY, [], codec=codec, level=1).replace(b"crc32", b"other")
    return header + encode_long(records) + encode_long(len(content)) + content + header[-16:]


def parquet_of(rows: int, value_bytes: int) -> bytes:
    column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([bytes(value_bytes)]))
    sink = io.BytesIO()
    pq.write_table(pa.table({"_FILE": column}), sink, compression="zstd", dictionary_pagesize_limit=1 << 30, store_schema=False)
    return sink.getvalue()


def orc_of(rows: int) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.table({"_VERSION": pa.array([0] * rows, pa.int32())}), sink, compression="zstd")
    return sink.getvalue()


CRAFTED: dict[str, Callable[[], bytes]] = {
    **{codec: lambda codec=codec: with_block(codec, 1, packed(codec, 1000)) for codec in ("deflate", "bzip2", "xz", "zstandard", "snappy")},
    "zstandard, many small records": lambda: with_block("zstandard", 200 << 20, packed("zstandard", 200)),
    "Parquet, many rows": lambda: parquet_of(30_000_000, 1),
    "Parquet, one large value": lambda: parquet_of(50_000, 1 << 20),
    "ORC, many rows": lambda: orc_of(30_000_000),
}


@pytest.mark.slow
@pytest.mark.local_files
@pytest.mark.parametrize("kind", CRAFTED)
def test_a_crafted_manifest_is_refused_without_gigabytes(tmp_path: Path, kind: str) -> None:
    data = CRAFTED[kind]()
    assert len(data) < 3 << 20
    path = tmp_path / "manifest-1"
    path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(MOST_BYTES)],
        capture_output=True,
        text=True,
        check=False,
        env={"ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.stdout.startswith("refused: "), f"{done.stdout} {done.stderr[-2000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz"])
def test_large_blocks_are_decompressed_in_steps(codec: str) -> None:
    content = bytes(range(256)) * (5 << 12)
    data = write_avro(MANIFEST_ENTRY, [(1, content)], codec=codec, level=1)
    assert read_container("m", data).payload == content
    block = compressor(codec, 1)(content)
    for end in (len(block) // 2, len(block) - 1):
        with pytest.raises((ValueError, EOFError, OSError)):
            decompressor("m", codec)(block[:end], 1 << 30)
