"""A damaged ORC or Avro file is a typed error that names it; no damage ends the process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_paimon import CorruptFile, Table
from tests.golden_rows import GOLDEN

ROOT = Path(__file__).parents[3]
FORMATS = {"orc": "orc_types", "avro": "avro_types"}


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / FORMATS[request.param] / "table", tmp_path / "table"))


def data_file(table: Path) -> Path:
    return next(path for path in sorted(table.glob("bucket-*/*")) if path.suffix in {".orc", ".avro"})


def flipped(table: Path, seed: int, count: int) -> tuple[int, int]:
    child = [sys.executable, str(Path(__file__).with_name("damaged_files_child.py")), str(table), str(seed), str(count)]
    quiet = {**os.environ, "PYTHONPATH": str(ROOT), "RUST_BACKTRACE": "0"}
    done = subprocess.run(child, env=quiet, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    read, refused = map(int, done.stdout.split())
    return read, refused


@pytest.mark.slow
@pytest.mark.sampled(2)
def test_no_flipped_bit_ends_the_process(table: Path) -> None:
    _, refused = flipped(table, 7, 60)
    assert refused > 15


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_no_flipped_bit_of_many_ends_the_process(table: Path, seed: int) -> None:
    _, refused = flipped(table, seed, 2000)
    assert refused > 500


@pytest.mark.parametrize("damage", ["missing", "empty", "shorter", "another format", "longer"])
def test_a_file_that_is_none_is_named(table: Path, damage: str) -> None:
    file = data_file(table)
    whole = file.read_bytes()
    file.unlink()
    wrong = {"empty": b"", "shorter": whole[:-20], "another format": b"PAR1" * 50, "longer": whole + b"\0"}
    if damage in wrong:
        file.write_bytes(wrong[damage])
    with pytest.raises(CorruptFile, match=file.name):
        Table.open(table).scan().to_arrow()


def test_fsck_tells_which_file_is_damaged(table: Path) -> None:
    whole = Table.open(table).fsck(depth="deep")
    assert (whole.problems, whole.unchecked) == ((), {})
    file = data_file(table)
    content = bytearray(file.read_bytes())
    content[len(content) - 30] ^= 0x10
    content[40] ^= 0x10
    file.unlink()
    file.write_bytes(content)
    assert [Path(problem.path).name for problem in Table.open(table).fsck(depth="deep").problems] == [file.name]
