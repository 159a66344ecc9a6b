"""The stages of an explanation add up."""

from __future__ import annotations

from itertools import pairwise

from pyspark_paimon import Table


def test_a_deleted_file_of_a_skipped_manifest_is_counted_by_no_stage(tmp_path):
    table = Table.create(f"{tmp_path}/t", "id INT, v INT", options={"bucket": "-1"})
    table.write({"id": [1, 2], "v": [1, 2]})
    table.update("v = 1", {"v": 9})
    stages = {stage.name: stage for stage in table.scan("v = 9").explain().stages}
    assert stages["manifest ranges"].dropped == 1
    counted = [stages[name] for name in ("partition", "bucket", "level", "key range", "value stats", "embedded index")]
    assert all(later.kept + later.dropped == earlier.kept for earlier, later in pairwise(counted))
    assert counted[0].kept == 1
