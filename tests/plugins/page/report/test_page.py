"""The page of a tree: whole in one file, everything in it escaped, and small for very many files."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa

from pyspark_paimon import Table
from pyspark_paimon.plugins.page.report.page import render_page
from tests.build import keyed

EVIL = "<script>alert('x')</script>"
BREAKS = "</script><img src=x onerror=alert(1)>\"'&"


class Elements(HTMLParser):
    """Elements with their attributes, texts, and the contents of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        else:
            self.text += data


def hostile(path: Path) -> Table:
    table = Table.create(
        path / "<b>warehouse" / "t",
        pa.schema([(EVIL, pa.string()), ("id", pa.string()), (BREAKS, pa.int32())]),
        primary_keys=[EVIL, "id"],
        partition_keys=[EVIL],
        options={"bucket": "1", "write-only": "true"},
    )
    table.write(pa.table({EVIL: [EVIL, BREAKS], "id": [BREAKS, EVIL], BREAKS: pa.array([1, 2], pa.int32())}))
    return table


def test_values_names_paths_and_filters_are_escaped(tmp_path: Path) -> None:
    table = hostile(tmp_path)
    page = Elements(table.report(tmp_path / "t.html", f"id = '{EVIL.replace(chr(39), chr(39) * 2)}'").read_text())
    assert EVIL in page.text
    assert BREAKS in page.text
    assert [tag for tag, _ in page.found if tag in {"img", "iframe", "object", "embed", "link"}] == []
    assert len(page.scripts) == 2, "the page's own data and its own code"
    assert not any(name.startswith("on") for _, attributes in page.found for name in attributes)
    data = json.loads(page.scripts[0])
    assert {bucket["partition"] for bucket in data["buckets"]} == {f"{EVIL}={EVIL}", f"{EVIL}={BREAKS}"}
    assert "<" not in page.scripts[0]
    assert "alert" not in page.scripts[1]


def test_a_plan_in_a_notebook_is_escaped_and_drawn(tmp_path: Path) -> None:
    shown = Elements(hostile(tmp_path).scan().plan()._repr_html_())
    assert not any(tag in {"script", "img"} for tag, _ in shown.found)
    boxes = [attributes for tag, attributes in shown.found if tag == "g" and "box" in (attributes.get("class") or "")]
    assert len(boxes) == 2
    assert "key range" in shown.text


def test_nothing_is_fetched_and_only_the_pages_own_script_may_run(tmp_path: Path) -> None:
    text = hostile(tmp_path).report(tmp_path / "t.html").read_text()
    assert re.findall(r"(?:src|href)=\"(?!#)", text) == []
    assert re.findall(r"url\(|@import|https?://", text) == []
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert "default-src &#39;none&#39;" in policy[1] or "default-src 'none'" in policy[1]
    assert "'unsafe-inline'" not in policy[1].split("script-src")[1].split(";")[0]


def test_every_box_is_told_in_words_and_one_of_them_can_be_tabbed_to(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "id INT, s STRING", {"write-only": "true"})
    for low in (0, 5, 50):
        table.write(pa.table({"id": pa.array(range(low, low + 10), pa.int32()), "s": ["x"] * 10}))
    page = Elements(table.report(tmp_path / "t.html", "id = 55").read_text())
    boxes = [attributes for tag, attributes in page.found if tag == "g" and "box" in (attributes.get("class") or "")]
    labels = [attributes["aria-label"] or "" for attributes in boxes]
    assert [attributes["tabindex"] for attributes in boxes] == ["0", "-1", "-1"]
    assert ["dropped by the plan" in label for label in labels] == [False, True, True]
    assert all("10 rows" in label and "keys " in label and "level 0" in label for label in labels)
    names = table.files()["file_name"].to_pylist()
    assert all(page.text.count(name) >= 1 for name in names), "the table beside the picture names each file"


def test_a_page_of_ten_thousand_files_stays_small(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "id INT")
    table.write(pa.table({"id": pa.array([1], pa.int32())}))
    report = table.tree()
    [bucket] = report.buckets
    many = [bucket.model_copy(update={"bucket": number, "boxes": bucket.boxes * 10 if number < 400 else ()}) for number in range(2000)]
    page = render_page(report.model_copy(update={"buckets": tuple(many)}))
    assert len(page) < 5_000_000
    assert "400 of 2,000 buckets are drawn" in page


def test_a_report_of_an_empty_table_says_so(tmp_path: Path) -> None:
    page = Table.create(tmp_path / "t", "id INT").report(tmp_path / "new folder" / "t.html")
    assert page == (tmp_path / "new folder" / "t.html").resolve()
    assert "the table has no rows" in page.read_text()
