"""The pages that speak to Spark: every block runs on the tests' server, which ``spark_session()`` returns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doc_blocks import PAGES, run_page, served, wants_spark, wrong_outputs

pytestmark = pytest.mark.spark


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", [page for page in PAGES if wants_spark(page)])
def test_blocks_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    monkeypatch.chdir(tmp_path)
    with served(page):
        assert not wrong_outputs(run_page(page, tmp_path)), f"run python -m tests.doc_blocks --write {page}"
