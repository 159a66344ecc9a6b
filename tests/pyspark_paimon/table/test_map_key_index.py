"""A condition on an entry of a map reaches that entry's index from every filter language, whatever became of the column since."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op
from lsm.file_index.locate import index_place
from manifest.store import FileStore

ATTRS = pa.map_(pa.string(), pa.int32())
EMBED, BESIDE = {"file-index.in-manifest-threshold": "1 mb"}, {"file-index.in-manifest-threshold": "1 b"}
BLOOMS = {"file-index.bloom-filter.columns": "attrs[clicks]", "file-index.bloom-filter.attrs.items": "40"}
CLICKS = ColumnRef("attrs", "clicks")
ENTRY = pc.map_lookup(pc.field("attrs"), "clicks", "first")
ROWS = 90


def clicks_of(at):
    """Row ``at``: its map has no clicks, or null ones, or a number of its third of the rows."""
    return None if at % 9 in {3, 4, 5} else at // 30 * 100 + at % 7


def attrs_of(at):
    entries = {3: None, 4: [("price", at)], 5: [("clicks", None), ("price", at)]}
    return entries.get(at % 9, [("clicks", clicks_of(at)), ("price", at)])


def filled(create, options, name="t"):
    """Three files of 30 rows: clicks 0 to 6, 100 to 106, 200 to 206."""
    table = create("id BIGINT, attrs MAP<STRING, INT>", primary_keys=(), options=options, name=name)
    for part in range(3):
        ids = range(part * 30, part * 30 + 30)
        table.write(pa.table({"id": ids, "attrs": pa.array([attrs_of(at) for at in ids], ATTRS)}))
    return table


def matching(condition):
    return [at for at in range(ROWS) if condition(clicks_of(at))]


def index_stages(table, condition):
    """(stage, files dropped) of everything that indexes did."""
    stages = table.scan(condition).explain().stages
    return {stage.name: stage.dropped for stage in stages if stage.name == "embedded index" or stage.name.startswith("index ")}


LANGUAGES = {
    "SQL": "attrs['clicks'] = 104",
    "SQL, element_at": "element_at(attrs, 'clicks') = 104",
    "pyarrow": ENTRY == 104,
    "predicate": Compare(CLICKS, Op.EQ, 104),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("index_type", ["bitmap", "bsi", "range-bitmap", "bloom-filter"])
def test_an_equality_finds_its_file_by_the_index(create, language, index_type) -> None:
    options = BLOOMS if index_type == "bloom-filter" else {f"file-index.{index_type}.columns": "attrs[clicks]"}
    condition = LANGUAGES[language]
    for place, stage in ((EMBED, "embedded index"), (BESIDE, f"index attrs[clicks]: {index_type}")):
        table = filled(create, {**options, **place}, name=f"t-{place is EMBED}")
        assert index_stages(table, condition)[stage] == 2
        assert sorted(table.scan(condition).to_arrow()["id"].to_pylist()) == matching(lambda clicks: clicks == 104)


CONDITIONS = {
    "attrs['clicks'] IN (1, 205, 999)": (In(CLICKS, (1, 205, 999)), lambda clicks: clicks in {1, 205, 999}, 1),
    "attrs['clicks'] NOT IN (1, 205)": (In(CLICKS, (1, 205), True), lambda clicks: clicks is not None and clicks not in {1, 205}, 0),
    "attrs['clicks'] <> 1": (Compare(CLICKS, Op.NE, 1), lambda clicks: clicks is not None and clicks != 1, 0),
    "attrs['clicks'] > 205": (Compare(CLICKS, Op.GT, 205), lambda clicks: clicks is not None and clicks > 205, 2),
    "attrs['clicks'] <= 100": (Compare(CLICKS, Op.LE, 100), lambda clicks: clicks is not None and clicks <= 100, 1),
    "attrs['clicks'] BETWEEN 50 AND 60": (None, lambda clicks: False, 3),
    "attrs['clicks'] IS NULL": (IsNull(CLICKS), lambda clicks: clicks is None, 0),
    "attrs['clicks'] IS NOT NULL": (IsNull(CLICKS, True), lambda clicks: clicks is not None, 0),
    "attrs['clicks'] = 3 OR attrs['clicks'] = 4": (None, lambda clicks: clicks in {3, 4}, 2),
    "NOT attrs['clicks'] < 200": (None, lambda clicks: clicks is not None and clicks >= 200, 2),
}


@pytest.mark.parametrize("text", CONDITIONS)
@pytest.mark.sizes
def test_every_condition_is_answered_as_the_rows_answer_it(create, text) -> None:
    tree, condition, dropped = CONDITIONS[text]
    table = filled(create, {"file-index.range-bitmap.columns": "attrs[clicks]", **EMBED})
    for given in (text, tree) if tree is not None else (text,):
        assert index_stages(table, given)["embedded index"] == dropped
        assert sorted(table.scan(given).to_arrow()["id"].to_pylist()) == matching(condition)
        assert table.scan(given).count() == len(matching(condition))


def test_an_entry_without_index_or_in_no_row_reads_all_files(create) -> None:
    table = filled(create, {"file-index.bitmap.columns": "attrs[clicks]", **EMBED})
    assert index_stages(table, "attrs['price'] = 7").get("embedded index", 0) == 0
    assert table.scan("attrs['price'] = 7").to_arrow()["id"].to_pylist() == [7]
    assert table.scan("attrs['nothing'] = 7").count() == 0
    assert table.scan("attrs['nothing'] IS NULL").count() == ROWS


def test_options_of_the_map_hold_for_its_entries_unless_they_have_their_own(create) -> None:
    options = {
        "file-index.bitmap.columns": "attrs[clicks],attrs[price]",
        "file-index.bitmap.attrs.version": "1",
        "file-index.bitmap.attrs[price].version": "2",
        "file-index.bloom-filter.columns": "attrs[clicks],attrs[price]",
        "file-index.bloom-filter.attrs.items": "2",
        "file-index.bloom-filter.attrs[price].items": "5",
    }
    table = filled(create, {**options, **EMBED})
    store = FileStore.open(table.path)
    place = index_place(store, store.live_entries(store.snapshots.latest()).entries()[0])
    assert place is not None
    versions = {
        index.column: place.container.payload(index).read(0, 1)[0] for index in place.container.entries() if index.index_type == "bitmap"
    }
    assert versions == {"attrs[clicks]": 1, "attrs[price]": 2}
    sizes = {
        row["column_name"]: row["index_size_in_bytes"] for row in table.file_indexes().to_pylist() if row["index_type"] == "bloom-filter"
    }
    assert sizes == {"attrs[clicks]": 4 + 16 // 8, "attrs[price]": 4 + 24 // 8}


@pytest.mark.parametrize("place", [EMBED, BESIDE], ids=["embedded", "beside"])
def test_entries_of_old_files_are_found_after_the_column_was_renamed_or_moved(create, place) -> None:
    table = filled(create, {"file-index.bitmap.columns": "attrs[clicks]", **place})
    table.alter_options({"file-index.bitmap.columns": None})
    table.rename_column("attrs", "extras").add_column("attrs", "MAP<STRING, STRING>", first=True)
    stage = "embedded index" if place is EMBED else "index attrs[clicks]: bitmap"
    assert index_stages(table, "extras['clicks'] = 104")[stage] == 2
    assert sorted(table.scan("extras['clicks'] = 104").to_arrow()["id"].to_pylist()) == matching(lambda clicks: clicks == 104)
    assert table.scan("attrs['clicks'] = '104'").count() == 0


def test_a_rewrite_after_a_rename_reaches_old_and_new_files(create) -> None:
    table = filled(create, {})
    table.rename_column("attrs", "extras")
    table.write(pa.table({"id": [900], "extras": pa.array([[("clicks", 104)]], ATTRS)}))
    table.alter_options({"file-index.bitmap.columns": "extras[clicks]", **EMBED})
    assert table.rewrite_file_index().rewritten == 4
    assert index_stages(table, "extras['clicks'] = 104")["embedded index"] == 2
    assert sorted(table.scan("extras['clicks'] = 104").to_arrow()["id"].to_pylist()) == [*matching(lambda clicks: clicks == 104), 900]


def test_primary_key_tables_ask_the_entries_of_files_that_need_no_merge(create) -> None:
    table = create("id BIGINT, attrs MAP<STRING, INT>", options={"file-index.bitmap.columns": "attrs[clicks]", **EMBED, "bucket": "4"})
    table.write(pa.table({"id": range(ROWS), "attrs": pa.array([attrs_of(at) for at in range(ROWS)], ATTRS)}))
    table.compact(full=True)
    assert index_stages(table, "attrs['clicks'] = 50")["embedded index"] == 4
    assert sorted(table.scan("attrs['clicks'] = 104").to_arrow()["id"].to_pylist()) == matching(lambda clicks: clicks == 104)
