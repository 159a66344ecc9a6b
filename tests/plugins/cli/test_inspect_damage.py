"""``inspect`` shows what can be read, and names what cannot."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from pyspark_paimon import Table
from pyspark_paimon.plugins.cli.app import app


def test_a_damaged_snapshot_is_named_and_the_others_are_shown(tmp_path) -> None:
    table = Table.create(tmp_path / "t", "id INT, PRIMARY KEY (id)", options={"bucket": 1, "write-only": True})
    for turn in range(3):
        table.write([{"id": turn}])
    (tmp_path / "t" / "snapshot" / "snapshot-2").write_text("{")
    done = CliRunner().invoke(app, ["inspect", table.path, "--json"])
    known = json.loads(done.stdout)
    assert done.exit_code == 1
    assert [row["snapshot_id"] for row in known["snapshots"]] == [1, 3]
    assert list(known["unreadable"]) == ["snapshot 2"]
    assert "snapshot-2" in known["unreadable"]["snapshot 2"]
    assert (known["levels_of_snapshot"], known["levels"][0]["rows"]) == (3, 3)


def test_a_damaged_manifest_list_leaves_the_state_before(tmp_path) -> None:
    table = Table.create(tmp_path / "t", "id INT, PRIMARY KEY (id)", options={"bucket": 1, "write-only": True})
    for turn in range(2):
        table.write([{"id": turn}])
    newest = json.loads((tmp_path / "t" / "snapshot" / "snapshot-2").read_text())
    (tmp_path / "t" / "manifest" / newest["deltaManifestList"]).write_bytes(b"damaged")
    done = CliRunner().invoke(app, ["inspect", table.path])
    assert done.exit_code == 1
    assert "LSM levels of snapshot 1" in done.stdout
    assert newest["deltaManifestList"] in done.stdout
    assert "id" in done.stdout
