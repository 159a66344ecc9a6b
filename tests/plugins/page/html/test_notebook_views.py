"""What notebooks show: sentences first, counters on a click, and no traceback where a sentence says what to do."""

from __future__ import annotations

import re

import pytest

from pyspark_paimon import InvalidArgument, PaimonError, Table, example


@pytest.fixture
def cities() -> Table:
    return example.cities()


def title(html: str) -> str:
    [text] = re.findall("<b>(.*?)</b>", html)
    return str(text)


def test_a_result_is_its_sentence_and_folds_its_counters(cities: Table) -> None:
    result = cities.compact(full=True)
    html = result._repr_html_()
    assert title(html) == f"CompactResult: {result}"
    before, folded = html.split("<details>")
    assert "bytes_read" in folded.split("</details>")[0]
    assert "bytes_read" not in before


def test_a_whole_table_is_clean_in_a_notebook(cities: Table) -> None:
    assert title(cities.fsck()._repr_html_()).startswith("FsckResult: clean ")


def test_a_report_is_read_in_two_lines(cities: Table) -> None:
    report = cities.tree("id = 99")
    assert str(report).splitlines() == [
        f"{cities.path}: 0 of 1 file kept, 3 rows, 1 bucket, snapshot 1",
        "There is nothing to do.",
    ]
    html = report._repr_html_()
    assert "There is nothing to do." in html
    assert "boxes" not in html
    assert len(html) < 20_000


def test_a_reader_and_a_writer_say_what_they_are(cities: Table) -> None:
    assert repr(cities.reader()) == f"TableReader({cities.path}: snapshot 1)"
    with cities.writer() as writer:
        assert repr(writer) == f"TableWriter({cities.path}: open, next commit 0)"
    assert repr(writer) == f"TableWriter({cities.path}: closed, next commit 0)"


def test_a_typo_is_one_line(cities: Table) -> None:
    with pytest.raises(PaimonError) as caught:
        cities.scan("ctiy = 'Oslo'")
    [line] = caught.value._render_traceback_()
    assert line.startswith("UnknownColumn: unknown column 'ctiy', did you mean 'city'")
    assert "\n" not in line


def test_a_stage_is_found_by_its_name(cities: Table) -> None:
    explained = cities.scan("id > 1").explain()
    assert explained.stage("rows").kept == 2
    with pytest.raises(InvalidArgument, match=r"there is no stage 'row'; there are 'snapshot', .*'rows'"):
        explained.stage("row")
