"""The pages that speak to Spark: every block runs on the tests' server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doc_blocks import PAGES, run_page, wants_spark
from tests.stores.s3_server import BUCKET, S3Server
from tests.test_docs import SERVED

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("page", [page for page in PAGES if wants_spark(page) and page not in SERVED])
def test_the_blocks_of_a_page_run(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pyspark_paimon.spark_session", lambda *_, **__: spark, raising=False)
    try:
        assert run_page(page, tmp_path, {"__name__": "page", "spark": spark}) > 1
    finally:
        for query in spark.streams.active:
            query.stop()


def test_object_stores(spark, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pyspark_paimon.spark_session", lambda *_, **__: spark, raising=False)
    told = s3.options()
    replaced = {
        "https://s3.example.com": f"http://127.0.0.1:{s3.port}",
        '"s3.access-key": "..."': f'"s3.access-key": "{told["s3.access-key"]}"',
        '"s3.secret-key": "..."': f'"s3.secret-key": "{told["s3.secret-key"]}"',
        "s3://bucket/": f"s3://{BUCKET}/docs/",
    }
    assert run_page("docs/object-stores.md", tmp_path, {"__name__": "page", "spark": spark}, replaced) > 1
