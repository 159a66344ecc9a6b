"""What notebooks show: every value escaped, in bounds, without a look at rows, and an error where the table is damaged."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import pyspark_paimon
from manifest.entry.manifest_list import ManifestList
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.plugins.page.html.card import MOST_ROWS, Grid, card, or_error
from pyspark_paimon.plugins.page.html.ipython import arrow_card
from pyspark_paimon.results.fsck_depth import Depth
from pyspark_paimon.results.fsck_problem import Problem, ProblemKind
from pyspark_paimon.results.results import ExpireResult, MaintenanceResult, Removal, WriteResult
from pyspark_paimon.results.state_results import FsckResult, TableChangeResult

EVIL = "<script>alert('1')</script>"


class Seen(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())


@pytest.fixture
def evil(tmp_path: Path) -> Table:
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field(EVIL, pa.string())]
    table = Table.create(tmp_path / "t", pa.schema(fields), ["id"], options={"bucket": "1"}, comment=EVIL)
    table.write(pa.table({"id": [1, 2], EVIL: [EVIL, None]}))
    return table


def test_everything_that_draws_itself_escapes_it(evil: Table) -> None:
    problem = Problem(kind=ProblemKind.HINT, path=EVIL, message=EVIL)
    scan = evil.scan("id > 0", columns=[EVIL])
    drawn = [
        evil,
        scan,
        scan.plan(),
        scan.explain(),
        evil.write(pa.table({"id": [3], EVIL: [EVIL]})),
        evil.compact(full=True),
        FsckResult(depth=Depth.QUICK, problems=(problem,), problem_count=1),
        TableChangeResult(tags=(EVIL,), removal=Removal(partitions=(EVIL,))),
        MaintenanceResult(errors={"expired": EVIL}),
        ExpireResult(snapshots=1, data_files=2, manifests=3),
    ]
    for value in drawn:
        text = value._repr_html_()
        assert "script" not in Seen(text).tags, text
        assert Seen(text).tags.count("table") >= 1
    assert EVIL in Seen(drawn[0]._repr_html_()).words
    assert problem.advice in Seen(drawn[6]._repr_html_()).words


def test_a_table_tells_of_its_newest_snapshot_and_reads_nothing_else(evil: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(ManifestList, "read", refused)
    monkeypatch.setattr(LocalEngine, "read", refused)
    words = Seen(evil._repr_html_()).words
    assert "2 in files, +2 by this snapshot" in words
    assert "primary key" in words


@pytest.mark.parametrize("file", ["snapshot/snapshot-1", "schema/schema-0"])
def test_a_damaged_table_shows_its_error(evil: Table, file: str) -> None:
    Path(evil.path, file).write_text("{")
    text = Table(evil._engine)._repr_html_()
    assert "CorruptFile" in text
    assert file in text
    if file.startswith("snapshot"):
        assert "primary key" in text, "what the schema says is shown all the same"


def test_cards_are_bounded() -> None:
    grid = Grid.of(["a"], [["x" * 10_000]] * 10_000, "many")
    text = card("t", [("long", "y" * 10_000)], [grid])
    assert len(text) < MOST_ROWS * 700
    assert f"and {10_000 - MOST_ROWS} more" in text
    problem = Problem(kind=ProblemKind.HINT, path="p", message="m")
    many = FsckResult(depth=Depth.QUICK, problems=(problem,) * 1000, problem_count=1000)._repr_html_()
    assert "problems: 1,000" in many
    assert f"and {1000 - MOST_ROWS} more" in many


def test_what_fails_to_be_drawn_is_drawn_as_its_error() -> None:
    assert "ValueError: invalid literal for int() with base 10: &#39;&lt;b&gt;&#39;" in or_error("t", lambda: str(int("<b>")))


def test_results_show_what_is_there() -> None:
    words = Seen(WriteResult(rows=1234, files=1, snapshot_id=7, removal=Removal(rows=5))._repr_html_()).words
    assert {"WriteResult: dry run: would remove 5 rows", "1,234", "removal rows", "5"} <= set(words)
    assert "compact_snapshot_id" not in words


def test_a_check_is_a_table_for_programs() -> None:
    problem = Problem(kind=ProblemKind.HINT, path="p", message="m")
    found = FsckResult(depth=Depth.QUICK, problems=(problem,), problem_count=1).to_arrow()
    assert found.to_pylist() == [{"repaired": False, "kind": "hint", "path": "p", "message": "m", "advice": problem.advice, "copies": None}]


def test_arrow_tables_are_drawn_bounded_and_escaped() -> None:
    words = Seen(arrow_card(pa.table({"<i>": list(range(10_000)), "text": ["<script>"] * 10_000}))).words
    assert {"10,000", "<i>", "<script>"} <= set(" ".join(words).split()) | set(words)
    assert len(arrow_card(pa.table({"text": ["x" * 10_000] * 10_000}))) < MOST_ROWS * 700
    assert "0 rows" in arrow_card(pa.table({}))
    assert "0 rows" in arrow_card(pa.table({"a": pa.array([], pa.int32())}))


def test_a_notebook_draws_arrow_tables_while_the_extension_is_loaded() -> None:
    formatter = SimpleNamespace(deferred_printers={}, type_printers={})
    formatter.for_type_by_name = lambda module, name, draw: formatter.deferred_printers.update({(module, name): draw})
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": formatter}))
    pyspark_paimon.load_ipython_extension(shell)
    assert formatter.deferred_printers == {(pa.Table.__module__, pa.Table.__name__): arrow_card}
    formatter.type_printers[pa.Table] = arrow_card
    pyspark_paimon.unload_ipython_extension(shell)
    assert (formatter.deferred_printers, formatter.type_printers) == ({}, {})
