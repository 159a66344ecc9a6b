"""What readers of Iceberg wait for is said, every option of Paimon is known, and every reader can decode the manifests."""

from __future__ import annotations

import logging
from pathlib import Path

import fastavro
import pytest

from pyspark_paimon import Table
from tests.build import keyed

ICEBERG = {"bucket": "1", "metadata.iceberg.storage": "table-location"}
VECTORS = {"metadata.iceberg.format-version": "3", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"}
WITHOUT_EFFECT = ("uri", "hive-conf-dir", "hadoop-conf-dir", "hive-client-class", "database", "table", "glue.skip-archive", "hive-skip-update-stats")  # fmt: skip
HONOURED = {
    "storage": "table-location",
    "storage-location": "table-location",
    "format-version": "2",
    "compaction.min.file-num": "10",
    "compaction.max.file-num": "50",
    "delete-after-commit.enabled": "true",
    "previous-versions-max": "0",
    "manifest-compression": "snappy",
    "manifest-legacy-version": "false",
}


@pytest.mark.parametrize(("options", "waits"), [(ICEBERG, True), (ICEBERG | VECTORS, False), (ICEBERG | {"full-compaction.delta-commits": "1"}, False), ({"bucket": "1"}, False)])  # fmt: skip
def test_a_view_that_waits_for_compactions_is_announced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, options: dict[str, str], *, waits: bool
) -> None:
    with caplog.at_level(logging.WARNING, "pyspark_paimon"):
        table = keyed(tmp_path / "t", "id INT", options)
    assert ("Iceberg readers will see only fully compacted rows" in caplog.text) == waits
    table.write([{"id": 1}])
    assert ("iceberg" in table.maintenance(orphans=False).steps) == waits


def test_a_change_of_options_that_makes_a_view_wait_is_announced_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = keyed(tmp_path / "t", "id INT", {"bucket": "1"})
    with caplog.at_level(logging.WARNING, "pyspark_paimon"):
        table.alter_options({"metadata.iceberg.storage": "table-location"})
        assert caplog.text.count("Iceberg readers will see only fully compacted rows") == 1
        table.alter_options({"metadata.iceberg.compaction.min.file-num": "20"})
        table.add_column("n", "INT")
    assert caplog.text.count("Iceberg readers will see only fully compacted rows") == 1


def test_maintenance_says_how_old_the_view_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed(tmp_path / "t", "id INT", ICEBERG)
    assert table.maintenance(orphans=False, dry_run=True).iceberg == "Iceberg readers see all rows"
    for key in range(2):
        table.write([{"id": key}])
    from pyspark_paimon.operations import maintenance

    now = maintenance.wall_clock_millis() + 7_200_000
    monkeypatch.setattr(maintenance, "wall_clock_millis", lambda: now)
    done = table.maintenance(compact=False, orphans=False)
    assert done.iceberg is not None
    assert done.iceberg.startswith("Iceberg readers do not see the rows of 2 files, written up to 2:00:0")
    assert f"iceberg: {done.iceberg}" in str(done)
    assert table.maintenance(full=True, orphans=False).iceberg == "Iceberg readers see all rows"


def test_every_option_of_paimon_is_known(tmp_path: Path) -> None:
    options = {f"metadata.iceberg.{name}": value for name, value in {**HONOURED, **dict.fromkeys(WITHOUT_EFFECT, "true")}.items()}
    assert len(options) == 17
    table = Table.create(tmp_path / "t", "id INT", options=options)
    effects = {row["option"].removeprefix("metadata.iceberg."): row["effect"] for row in table.option_effects().to_pylist()}
    assert effects == {**dict.fromkeys(HONOURED, "honoured"), **dict.fromkeys(WITHOUT_EFFECT, "none")}


def test_manifests_have_a_codec_of_every_reader(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id INT", options={"metadata.iceberg.storage": "table-location"})
    table.write([{"id": 1}])
    files = list((tmp_path / "t" / "metadata").glob("*.avro"))
    assert files
    for path in files:
        with path.open("rb") as file:
            assert fastavro.reader(file).codec == "deflate"
