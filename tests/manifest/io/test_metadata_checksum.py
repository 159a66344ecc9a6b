"""The checksum of our JSON files: every flipped bit is an error that names the file, and files of other engines have none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.io.checksum import verify_checksum, with_checksum
from paimon_base.errors import CorruptFile
from pyspark_paimon import Table


def test_a_flipped_bit_is_seen_or_harms_nothing() -> None:
    text = json.dumps({"id": 17, "options": {"bucket": "4"}})
    whole = with_checksum("schema-0", text)
    assert {**json.loads(whole)}.items() >= json.loads(text).items()
    for at in range(8 * len(whole)):
        bad = bytearray(whole)
        bad[at // 8] ^= 1 << at % 8
        try:
            verify_checksum("schema-0", bytes(bad))
            found = json.loads(bytes(bad))
        except (CorruptFile, ValueError):
            continue
        assert found.items() >= json.loads(text).items()


def test_the_file_of_another_name_is_not_this_one() -> None:
    with pytest.raises(CorruptFile, match="/b/snapshot-2"):
        verify_checksum("/b/snapshot-2", with_checksum("/a/snapshot-1", '{"id": 2}'))
    verify_checksum("/b/snapshot-1", with_checksum("/a/snapshot-1", '{"id": 2}'))  # a table may be moved


def test_a_file_that_was_edited_and_written_anew_is_taken_at_its_word() -> None:
    edited = json.loads(with_checksum("schema-0", '{"id": 0, "options": {}}')) | {"options": {"bucket": "4"}}
    for indent in (None, 1, 2, 4):
        verify_checksum("schema-0", json.dumps(edited, indent=indent))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("schema/schema-0", '"false"', '"ualse"'),
        ("snapshot/snapshot-2", '"totalRecordCount": ?2', '"totalRecordCount": 3'),
        ("tag/tag-t", '"schemaId": ?0', '"schemaId": 1'),
        ("statistics/stat-*", '"mergedRecordCount": ?2', '"mergedRecordCount": 0'),
    ],
)
def test_another_valid_value_is_an_error(tmp_path: Path, file: str, old: str, new: str) -> None:
    table = Table.create(tmp_path / "t", "k INT, v STRING", options={"write-only": "false"})
    table.write(pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    table.analyze()
    table.create_tag("t")
    (path,) = (tmp_path / "t").glob(file)
    text = path.read_text()
    assert re.search(old, text)
    path.write_text(re.sub(old, new, text))
    with pytest.raises(CorruptFile, match=path.name):
        ask_all(tmp_path / "t")


def ask_all(path: Path) -> None:
    table = Table.open(path)
    table.scan(tag="t").to_arrow()
    table.statistics()
