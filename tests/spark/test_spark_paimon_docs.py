"""Statements in the forms of Paimon's documentation run, or are refused with a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paimon_documentation import FORMS, docs_table

import pyspark_paimon
from pyspark_paimon import Catalog, PaimonError
from pyspark_paimon.spark.wire.errors import typed_error

PAGE = Path(__file__).parent.parent.parent / "docs" / "spark" / "paimon-statements.md"


@pytest.mark.slow
@pytest.mark.spark
def test_each_documented_form_runs_or_is_refused_with_a_reason(spark, tmp_path) -> None:
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_database("default")
    for folder, name, text in (("csv", "a.csv", "a,c\n7,x\nno,y\n"), ("json", "b.json", '{\n"a": 8, "c": "z"}\n')):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text if folder == "json" else text.replace("no,y\n", ""))
    wrong = []
    for form in FORMS:
        sql = form.sql.format(folder=tmp_path)
        try:
            pyspark_paimon.sql(spark, sql, catalog=catalog).collect()
            told = ""
        except Exception as error:  # noqa: BLE001  # of Spark's many classes; the text is judged below
            typed = error if isinstance(error, PaimonError) else typed_error(str(error))
            told = f"{type(typed).__name__}: {typed}" if typed is not None else str(error) or "an error without a text"
        if bool(told) != bool(form.refused) or not re.search(form.refused, told, re.DOTALL):
            wrong.append(f"{sql}\n    {told[:600] or 'was not refused'}")
    for name in ("outside", "again"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_docs_list_exactly_these_forms() -> None:
    text = PAGE.read_text()
    shown = text[text.index("<!-- forms:begin -->") : text.index("<!-- forms:end -->") + len("<!-- forms:end -->")]
    assert shown == docs_table()


def test_every_refusal_says_what_to_do_instead() -> None:
    assert all(form.instead for form in FORMS if form.refused)
