"""Every golden table goes on living here: indexed, written, compacted, deleted from and checked, with the rows of a model."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fileindex.build.options import index_option, option_key
from manifest.types.data_type import DataField
from pyspark_paimon import Table, UnsupportedTable
from sparkexpr.values.column_type import FLOATS, Kind
from tests.golden_rows import expected_rows, golden_rows, to_golden
from tests.interop.old_tables import READ_ONLY
from tests.model.tables import INDEX_TYPES

TESTS = Path(__file__).parents[2]
HOMES = sorted({found.parent for found in TESTS.glob("golden*/**/snapshot")})
ONLY_READ = {f"golden_old/0.8.2/{name}" for name in READ_ONLY}
NAMES = [name for name in (home.relative_to(TESTS).as_posix() for home in HOMES) if name not in ONLY_READ]
KEPT_IDS = "row-tracking.enabled"
"""Tables with this option have no rows deleted: rows keep their ids. Those with ``EVOLVES`` are compacted."""
EVOLVES, MARKS = "data-evolution.enabled", "deletion-vectors.enabled"


def lines(table: Table, rows: pa.Table) -> list[str]:
    """Rows as sorted text."""
    fields = table.table_schema.fields  # read once: each access reads the schema
    columns = [[to_golden(value, field.type) for value in rows.column(field.name)] for field in fields]
    return sorted(map(repr, zip(*columns, strict=True)))


def index_options(table: Table) -> dict[str, str | None]:
    """Options of every index type on every column that it takes."""
    options: dict[str, str | None] = {key: None for key in table.options if index_option(key) is not None}
    for kind, types in INDEX_TYPES.items():
        names = [field.name for field in table.table_schema.fields if _plain(field) in types and field.name not in table.partition_keys]
        if "attrs" in table.schema.names and kind not in {"bsi", "ngram-filter"}:
            names.append("attrs[clicks]")
        if names:
            options[option_key(kind, "columns")] = ",".join(names)
    return options


def _plain(field: DataField) -> str:
    return re.sub(r"VARCHAR\(\d+\)", "VARCHAR(20)", str(field.type).removesuffix(" NOT NULL"))


def check(table: Table, model: pa.Table) -> None:
    """Compare rows and the answers of filters with the model, and check every file."""
    assert lines(table, table.scan().to_arrow()) == lines(table, model)
    assert table.fsck("deep").problems == ()
    for field in table.table_schema.fields:
        column = model.column(field.name)
        questions = {f"{field.name} IS NULL": (None, pc.is_null(column))}
        if (
            field.type.kind not in FLOATS | {Kind.TIMESTAMP_LTZ, Kind.VARIANT, Kind.BLOB}
            and not field.type.is_nested
            and field.type.precision < 9
        ):
            values = pc.unique(column).drop_null()
            for value in values[len(values) // 2 :][:1]:
                questions[f"{field.name} = :v"] = ({"v": value.as_py()}, pc.fill_null(pc.equal(column, value), fill_value=False))
        for text, (params, mask) in questions.items():
            found = table.scan(text, columns=["id"], params=params).to_arrow()
            assert sorted(found.column(0).to_pylist()) == sorted(model.filter(mask).column("id").to_pylist()), text


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(18)
def test_a_golden_table_keeps_the_rows_of_a_model(tmp_path: Path, name: str) -> None:
    table = Table.open(shutil.copytree(TESTS / name, tmp_path / "t"))
    if name.startswith("golden_postponed"):
        table.compact()  # its rows wait for a bucket
    model = table.scan().to_arrow()
    known = TESTS / Path(name).parent / "expected.jsonl"
    if name.startswith("golden/"):
        visible = table.scan(options={"deletion-vectors.merge-on-read": "false"}).to_arrow()
        assert golden_rows(visible, table.table_schema) == expected_rows(known, table.table_schema)
    table = table.alter_options(index_options(table))
    table.rewrite_file_index()
    check(table, model)
    new = model.slice(0, 10)
    if table.primary_keys:
        at = new.schema.get_field_index("id")
        ids = pc.add(new.column(at), pa.scalar(1_000_000, new.schema.field(at).type))
        new = new.set_column(at, new.schema.field(at), ids)
    table.write(new)
    model = pa.concat_tables([model, new])
    check(table, model)
    if EVOLVES in table.options and MARKS not in table.options:
        table.compact(full=True)
        check(table, model)
        return
    if KEPT_IDS in table.options:
        with pytest.raises(UnsupportedTable, match=f"{re.escape(KEPT_IDS)}|{re.escape(EVOLVES)}"):
            table.compact(full=True)
        return
    table.compact(full=True)
    check(table, model)
    gone = pc.is_in(model.column("id"), model.column("id").slice(0, 2))
    try:
        table.delete("id IN (:a, :b)", params=dict(zip("ab", model.column("id").slice(0, 2).to_pylist(), strict=True)))
    except UnsupportedTable as refusal:
        assert re.search("ignore-delete|merge-engine", str(refusal))  # noqa: PT017
        return
    model = model.filter(pc.invert(gone))
    check(table, model)
    table.compact(full=True)
    check(table, model)


@pytest.mark.parametrize("name", sorted(ONLY_READ))
def test_a_write_of_a_table_that_is_only_read_is_refused(tmp_path: Path, name: str) -> None:
    table = Table.open(shutil.copytree(TESTS / name, tmp_path / "t"))
    with pytest.raises(UnsupportedTable):
        table.write(table.scan().to_arrow())
