"""A scan whose filter is too long for several questions at once is explained by one question after the other."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark_paimon.request.scan_questions import PlanScan
from pyspark_paimon.spark import server
from pyspark_paimon.spark.client.scan_engine import SparkScans
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.system.opened import local_engine
from tests.build import keyed


@pytest.mark.parametrize(("share", "round_trips"), [(10, 1), (1.5, 3)])
def test_a_long_filter_is_explained_by_shorter_requests(tmp_path, monkeypatch, share, round_trips):
    table = keyed(tmp_path / "t", "id STRING")
    table.write([{"id": "a rather long key 7"}, {"id": "other"}])
    request = table.scan(" OR ".join(f"id = 'a rather long key {at}'" for at in range(500)))._request
    monkeypatch.setattr(rpc, "LONGEST", int(len(PlanScan(request=request).to_text()) * share))
    asked = []

    class Served(SparkScans):
        def _ask(self, question, spark=None):
            asked.append(text := question.to_text())
            return question.answer_of(server._answer(local_engine(self.path), rpc.parse_question(text)))

    found = Served(table.path, None).explain(request, analyze=True)
    assert (len(found.plan.splits), found.stages[-1].kept, found.readers[:11]) == (1, 1, "to_spark():")
    assert len(asked) == round_trips
    assert max(map(len, asked)) <= rpc.LONGEST
