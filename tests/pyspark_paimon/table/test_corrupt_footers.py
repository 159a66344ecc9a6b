"""A Parquet footer that breaks what the metadata promise of its file is an error, never a column of nulls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paimon_base.errors import CorruptFile


def renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) > 1
    return data.replace(old, new)


def retyped(data: bytes) -> bytes:
    at = data.rindex(b"_VALUE_KIND", 0, data.index(b"_VALUE_KIND", len(data) // 2) + 20)
    return data[:at] + b"_VALUE_KINE" + data[at + 11 :]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: renamed(data, b"city", b"citz"), "has no column 'city'"),
        (lambda data: data[:-20] + data[-20:].replace(b"PAR1", b"PAR2"), "does not end"),
        (lambda data: data + b"\0", "does not end"),
        (retyped, "where the schema has another column"),
    ],
)
@pytest.mark.local_files
def test_a_footer_that_breaks_a_promise_is_no_column_of_nulls(create: Any, tmp_path: Path, damage: Any, reason: str) -> None:
    table = create()
    table.write(pa.table({"id": [1, 2], "city": ["a", "b"], "n": pa.array([1, 2], pa.int32())}))
    (file,) = (tmp_path / "t").rglob("*.parquet")
    whole = file.read_bytes().replace(b"PPS1", b"PPS0")  # as of an engine that gives its footers no checksum
    file.write_bytes(damage(whole))
    with pytest.raises(CorruptFile, match=reason) as error:
        table.scan().to_arrow()
    assert file.name in str(error.value)
