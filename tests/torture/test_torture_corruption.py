"""Some files rot, on every push; ``make torture`` lets thousands."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.torture.corruption import excused, outcomes, replay
from tests.torture.report import leave_case


@pytest.mark.slow
@pytest.mark.parametrize("table", ["append, sidecar indexes", pytest.param("deletion vectors", marks=pytest.mark.long)])
def test_rotten_files_give_right_rows_or_errors_that_name_them(tmp_path: Path, table: str) -> None:
    found = list(islice(outcomes(3, tmp_path, [table]), 12))
    assert not [outcome for outcome in found if not outcome.good]
    assert sum("footer" in outcome.configuration for outcome in found) >= 2


@pytest.mark.long
def test_a_case_is_replayed_from_its_folder(tmp_path: Path) -> None:
    from tests.torture.rotting_tables import make

    make("partitioned", tmp_path / "t")
    (file,) = list((tmp_path / "t" / "snapshot").glob("snapshot-1"))
    name = str(file.relative_to(tmp_path / "t"))
    leave_case(tmp_path, "corruption", table="partitioned", kind="snapshot", file=name, seed=1)
    (tmp_path / "bad").write_bytes(file.read_bytes().replace(b'"totalRecordCount"', b'"totalRecordCounu"'))
    outcome = replay(tmp_path)
    assert outcome.verdict == "typed error", outcome
    assert "snapshot-1" in outcome.detail


def test_only_wrong_rows_of_javas_files_without_a_checksum_are_excused() -> None:
    assert excused("java pk_dv", "data file: footer", "wrong rows")
    assert excused("java pk_dv", "manifest list", "untyped error", "scan: names no file: CorruptFile: manifest-9: is missing")
    assert not excused("deletion vectors", "data file: footer", "wrong rows")
    assert not any(excused("java pk_dv", kind, "wrong rows") for kind in ("data file: pages", "deletion vectors"))
    assert not any(excused("java pk_dv", "manifest", verdict) for verdict in ("abort", "hang", "untyped error"))


def test_a_rotting_table_is_made_again_byte_by_byte(tmp_path: Path) -> None:
    """So that a seed damages the same bytes in every run."""
    from tests.torture.rotting_tables import make

    found = []
    for name in ("one", "other"):
        home = tmp_path / name
        home.mkdir()
        make("append, vectors", home / "t")
        found.append({str(file.relative_to(home)): file.read_bytes() for file in home.rglob("*") if file.is_file()})
    assert found[0] == found[1]
    assert len(found[0]) > 20
