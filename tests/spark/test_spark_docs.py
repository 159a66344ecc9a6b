"""The pages that speak to Spark: every block runs on the tests' server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doc_blocks import PAGES, STORE_PAGE, run_page, store_texts, wants_spark, wrong_outputs
from tests.stores.s3_server import S3Server
from tests.test_docs import SERVED

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("page", [page for page in PAGES if wants_spark(page) and page not in SERVED])
def test_blocks_print_what_the_page_shows(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pyspark_paimon.spark_session", lambda *_, **__: spark, raising=False)
    try:
        assert not wrong_outputs(run_page(page, tmp_path, {"__name__": "page", "spark": spark}))
    finally:
        for query in spark.streams.active:
            query.stop()


def test_object_stores(spark, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pyspark_paimon.spark_session", lambda *_, **__: spark, raising=False)
    ran = run_page(STORE_PAGE, tmp_path, {"__name__": "page", "spark": spark}, store_texts(s3))
    assert not wrong_outputs(ran)
