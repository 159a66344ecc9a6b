"""The page in a real Chromium, headless: what people see, click and type. Skipped where there is none; ``make test-pages`` installs one."""

from __future__ import annotations

import importlib
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from pyspark_paimon.plugins.page.ui.server import TreeServer

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
BROWSER = (
    os.environ.get("PYSPARK_PAIMON_CHROMIUM")
    or shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
)

NEEDED = os.environ.get("PYSPARK_PAIMON_BROWSER") == "needed"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if NEEDED:
        assert BROWSER, "make test-pages needs a Chromium"
    elif BROWSER is None:
        pytest.skip("no Chromium here: make test-pages installs one")
    playwright = importlib.import_module("playwright.sync_api") if NEEDED else pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that may fetch nothing from elsewhere and whose errors fail the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened.on(
        "request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(("file:", "http://127.0.0.1:", "data:")) else None
    )
    yield opened
    context.close()
    assert not wrong


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Three partitions with two buckets, each with three runs."""
    made = Table.create(
        tmp_path_factory.mktemp("tree") / "t",
        "day INT, id INT, name STRING",
        primary_keys=["day", "id"],
        partition_keys=["day"],
        options={"bucket": "2", "write-only": "true"},
    )
    for low, high in ((0, 200), (0, 50), (150, 200)):
        keys = [(day, key) for day in (1, 2, 10) for key in range(low, high)]
        made.write(
            pa.table(
                {
                    "day": pa.array([day for day, _ in keys], pa.int32()),
                    "id": pa.array([key for _, key in keys], pa.int32()),
                    "name": [f"n{key}" for _, key in keys],
                }
            )
        )
    return made


@pytest.fixture
def served(table: Table) -> Iterator[TreeServer]:
    with TreeServer(table) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def shown(page: Any) -> Any:
    return page.locator("figure:visible")


def test_a_bucket_is_chosen_and_its_boxes_tell_what_they_are(page: Any, table: Table, tmp_path: Path) -> None:
    page.goto(table.report(tmp_path / "t.html").as_uri())
    assert shown(page).count() == 1
    assert page.locator("button[data-tree]").all_text_contents()[-1] == "day=10, bucket 1", "in the order of the values"
    page.get_by_role("button", name="day=2, bucket 1").click()
    assert "day=2, bucket 1" in shown(page).inner_text()
    assert page.get_by_role("button", name="day=2, bucket 1").get_attribute("aria-pressed") == "true"
    boxes = shown(page).locator(".box")
    assert boxes.count() == 3
    boxes.nth(2).hover()
    assert "rows" in page.locator("#tip").inner_text()
    assert "level 0" in page.locator("#tip").inner_text()
    wide, narrow = (boxes.nth(at).locator("rect.body").bounding_box()["width"] for at in (2, 1))
    assert 0.2 < narrow / wide < 0.5, "a quarter of the keys, with more rows there"


def test_the_keyboard_goes_through_the_boxes(page: Any, table: Table, tmp_path: Path) -> None:
    page.goto(table.report(tmp_path / "t.html").as_uri())
    boxes = shown(page).locator(".box")
    boxes.first.focus()
    assert page.locator("#tip").is_visible()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == boxes.nth(1).get_attribute("aria-label")
    page.keyboard.press("End")
    assert boxes.last.get_attribute("tabindex") == "0"
    assert [boxes.nth(at).get_attribute("tabindex") for at in range(2)] == ["-1", "-1"]
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_a_filter_given_at_the_call_fades_what_it_drops(page: Any, table: Table, tmp_path: Path) -> None:
    page.goto(table.report(tmp_path / "t.html", "day = 2 AND id > 180").as_uri())
    assert "of 18 files" in page.get_by_role("status").inner_text()
    kept = shown(page).locator(".box:not(.dropped)")
    assert 0 < kept.count() < 3
    assert shown(page).locator(".box.dropped").first.evaluate("node => Number(getComputedStyle(node).opacity)") < 0.5
    assert page.get_by_role("row", name="partition").is_visible()


def test_a_filter_that_is_typed_is_planned_and_mistakes_are_told(page: Any, served: TreeServer) -> None:
    page.goto(served.url)
    assert "18 of 18 files" in page.get_by_role("status").inner_text()
    page.get_by_label("Filter").fill("day = 10 AND id < 20")
    page.locator(".verdict", has_text="day = 10").wait_for()
    assert shown(page).locator(".box.dropped").count() == 1
    page.get_by_label("Filter").fill("dya = 10")
    page.get_by_role("alert").wait_for()
    assert "did you mean" in page.get_by_role("alert").inner_text()
    page.get_by_label("Filter").fill("")
    page.get_by_text("A read of the whole table").wait_for()
    assert page.get_by_role("alert").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1400])
def test_it_fits_in_light_and_dark_narrow_and_wide(browser: Any, table: Table, tmp_path: Path, scheme: Any, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.goto(table.report(tmp_path / "t.html", "id = 3").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) < 200) == (scheme == "dark")
    context.close()


def test_no_value_becomes_markup(page: Any, tmp_path: Path) -> None:
    evil = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    schema = pa.schema([(evil, pa.string()), ("id", pa.string())])
    table = Table.create(
        tmp_path / "t", schema, primary_keys=[evil, "id"], partition_keys=[evil], options={"bucket": "1", "write-only": "true"}
    )
    table.write(pa.table({evil: [evil] * 2, "id": [evil, "z"]}))
    page.goto(table.report(tmp_path / "t.html", f"`{evil}` = 'x' OR id = 'z'").as_uri())
    page.locator(".box").first.hover()
    assert "<script>" in page.locator("#tip").inner_text()
    assert page.title() != "owned"
    assert page.locator("img").count() == 0
