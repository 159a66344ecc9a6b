"""Texts of views in place of their names: columns, aliases, databases, and views that read themselves."""

from __future__ import annotations

import pytest

from manifest.schema.validation import build_schema
from manifest.types.data_type import DataField
from pyspark_paimon import InvalidArgument, TableNotFound, View
from pyspark_paimon.catalog.catalog_base import AnyCatalog
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.view_text import expand_views, qualify_names, views_read_by


def fields(ddl: str) -> tuple[DataField, ...]:
    return build_schema(ddl).fields


class Views(AnyCatalog):
    """A catalog of views by name, whose tables are named ``t`` or ``u``."""

    has_views = True

    def __init__(self, **views: View) -> None:
        self.known = {view.name: view for view in views.values()}
        self.asked: list[str] = []

    def view(self, name):
        self.asked.append(name)
        if name not in self.known:
            raise TableNotFound(name)
        return self.known[name]

    def table_exists(self, name):
        return name.rpartition(".")[2] in {"t", "u"}

    def _of_no_use(self, *_: object, **__: object):
        raise AssertionError

    list_databases = create_database = list_tables = _create_table = table = rename_table = _of_no_use
    _drop_empty = _drop_table = _new_place = _of_no_use


def made(text, columns="id INT", name="default.v"):
    return View(name, fields(columns), text)


def expanded(text, *views, columns=()):
    asked = []

    def columns_of(query):
        asked.append(query)
        return list(columns)

    found = expand_views(KnownTables(None, Views(**{str(at): view for at, view in enumerate(views)})), text, columns_of)
    return found, asked


def test_a_view_becomes_a_subquery_under_its_name():
    view = made("SELECT id FROM db.t WHERE x > 1")
    assert expanded("SELECT * FROM v WHERE id = 2", view) == ("SELECT * FROM (SELECT id FROM db.t WHERE x > 1) AS `v` WHERE id = 2", [])
    assert expanded("SELECT a.id FROM default.v AS a JOIN v b ON a.id = b.id", view)[0] == (
        "SELECT a.id FROM (SELECT id FROM db.t WHERE x > 1) AS a JOIN (SELECT id FROM db.t WHERE x > 1) b ON a.id = b.id"
    )
    assert expanded("SELECT * FROM v TABLESAMPLE (5 ROWS)", view)[0].endswith("TABLESAMPLE (5 ROWS) AS `v`")
    assert expanded("SELECT * FROM (SELECT id FROM v) x, db.t", view)[0].startswith("SELECT * FROM (SELECT id FROM (SELECT id FROM db.t")


def test_columns_have_the_names_of_the_view_and_later_ones_stay_out():
    renamed = made("SELECT id, x FROM db.t", "a INT, b INT")
    assert expanded("SELECT * FROM v", renamed) == (
        "SELECT * FROM (SELECT `a`, `b` FROM (SELECT id, x FROM db.t) AS `v`(`a`, `b`)) AS `v`",
        [],
    )
    star = made("SELECT * FROM db.t", "a INT, b INT")
    text, asked = expanded("SELECT * FROM v", star, columns=("a", "b", "new"))
    assert text == "SELECT * FROM (SELECT `a`, `b` FROM (SELECT * FROM db.t) AS `v`(`a`, `b`, `__paimon_column_2`)) AS `v`"
    assert asked == ["SELECT * FROM db.t"]
    assert expanded("SELECT * FROM v", star, columns=("a", "b"))[0] == "SELECT * FROM (SELECT * FROM db.t) AS `v`"
    with pytest.raises(InvalidArgument, match="has 2 columns, and its query 1: a"):
        expanded("SELECT * FROM v", star, columns=("a",))


def test_the_text_for_spark_wins():
    view = View("default.v", fields("id INT"), "SELECT id FROM db.flink", {"spark": "SELECT id FROM db.spark"})
    assert "db.spark" in expanded("SELECT * FROM v", view)[0]


def test_views_read_views_and_a_circle_is_named():
    outer, inner = made("SELECT id FROM w"), made("SELECT id FROM db.t", name="default.w")
    assert expanded("SELECT * FROM v", outer, inner)[0] == "SELECT * FROM (SELECT id FROM (SELECT id FROM db.t) AS `w`) AS `v`"
    assert views_read_by(KnownTables(None, Views(a=outer, b=inner)), "SELECT * FROM v") == {"default.v", "default.w"}
    circle = made("SELECT id FROM v", name="default.w")
    with pytest.raises(InvalidArgument, match=r"reads itself: default\.v -> default\.w -> default\.v"):
        expanded("SELECT * FROM v", outer, circle)


def test_a_common_table_hides_a_view_and_captures_no_table_of_a_view():
    view = made("SELECT id FROM t")
    assert expanded("WITH v AS (SELECT 1 AS id) SELECT * FROM v", view)[0] == "WITH v AS (SELECT 1 AS id) SELECT * FROM v"
    text = expanded("WITH t AS (SELECT 1 AS id) SELECT * FROM v, t, u", view)[0]
    assert text == "WITH t AS (SELECT 1 AS id) SELECT * FROM (SELECT id FROM `default`.`t` AS `t`) AS `v`, t, `default`.`u` AS `u`"


def test_a_query_without_views_stays_and_asks_once_for_each_name():
    catalog = Views()
    names = KnownTables(None, catalog)
    text = "SELECT * FROM t JOIN t s JOIN t$files JOIN range(3) JOIN paimon.`/w/db.db/x`"
    for _ in range(2):
        assert expand_views(names, text, list) == text
    assert catalog.asked == ["default.t"]


def test_a_view_has_no_versions():
    for travel in ("VERSION AS OF 1", "TIMESTAMP AS OF '2026-01-01'", "FOR VERSION AS OF 1"):
        with pytest.raises(InvalidArgument, match="is a view, which has no versions"):
            expanded(f"SELECT * FROM v {travel}", made("SELECT id FROM db.t"))


def test_names_of_the_catalog_get_their_database():
    names = KnownTables(None, Views(v=made("SELECT 1 AS id")))
    text = qualify_names(names, "WITH c AS (SELECT 1) SELECT x.id FROM t x, v, c, other, db.u")
    assert text == "WITH c AS (SELECT 1) SELECT x.id FROM `default`.`t` x, `default`.`v` AS `v`, c, other, db.u"


@pytest.mark.parametrize("clause", ["ORDER BY v.id", "GROUP BY v.id", "SORT BY v.id", "CLUSTER BY v.id", "DISTRIBUTE BY v.id"])
def test_a_clause_is_no_alias(clause):
    text, _ = expanded(f"SELECT v.id FROM v {clause}", made("SELECT id FROM db.t"))
    assert text == f"SELECT v.id FROM (SELECT id FROM db.t) AS `v` {clause}"
    assert qualify_names(KnownTables(None, Views()), f"SELECT t.id FROM t {clause}").endswith(f"`default`.`t` AS `t` {clause}")


def test_a_star_whose_columns_moved_is_refused_instead_of_giving_values_of_others():
    star = made("SELECT * FROM db.t", "a INT, b INT")
    for columns in (("new", "a", "b"), ("b", "new"), ("A", "new", "B"), ("b", "a")):
        with pytest.raises(InvalidArgument, match=r"column . is '.*', and the view's is '[ab]'"):
            expanded("SELECT * FROM v", star, columns=columns)
    assert "(`a`, `b`)" in expanded("SELECT * FROM v", star, columns=("x", "B"))[0], "a renamed column stays"
    named = made("SELECT b, a FROM db.t", "a INT, b INT")
    assert "`v`(`a`, `b`)" in expanded("SELECT * FROM v", named)[0], "names of the text keep their positions"


@pytest.mark.parametrize("end", ["-- all", ";", " ; -- all", "/* all */"])
def test_a_comment_or_semicolon_at_the_end_of_a_text_stays_out(end):
    assert expanded("SELECT * FROM v", made(f"SELECT id FROM db.t{end}"))[0] == "SELECT * FROM (SELECT id FROM db.t) AS `v`"


def test_a_common_table_hides_names_where_its_query_reads_it():
    view, inline = made("SELECT id FROM db.t"), "(SELECT id FROM db.t) AS `v`"
    for text, wanted in (
        ("WITH v AS (SELECT * FROM v) SELECT * FROM v", "WITH v AS (SELECT * FROM {}) SELECT * FROM v"),
        (
            "WITH v (id) AS (SELECT * FROM v) SELECT (SELECT max(id) FROM v)",
            "WITH v (id) AS (SELECT * FROM {}) SELECT (SELECT max(id) FROM v)",
        ),
        (
            "WITH a AS (SELECT 1 FROM v), v AS (SELECT 1) SELECT 1 FROM v, a",
            "WITH a AS (SELECT 1 FROM {}), v AS (SELECT 1) SELECT 1 FROM v, a",
        ),
        ("WITH v AS (SELECT 1), a AS (SELECT 1 FROM v) SELECT 1 FROM a", "WITH v AS (SELECT 1), a AS (SELECT 1 FROM v) SELECT 1 FROM a"),
        (
            "SELECT 1 FROM v WHERE id IN (WITH v AS (SELECT 1 AS id) SELECT id FROM v)",
            "SELECT 1 FROM {} WHERE id IN (WITH v AS (SELECT 1 AS id) SELECT id FROM v)",
        ),
        ("SELECT '(', id FROM v WINDOW v AS (PARTITION BY id)", "SELECT '(', id FROM {} WINDOW v AS (PARTITION BY id)"),
        ("WITH RECURSIVE v AS (SELECT 1 AS id UNION ALL SELECT id FROM v) SELECT 1 FROM v", None),
    ):
        assert expanded(text, view)[0] == (text if wanted is None else wanted.format(inline))


@pytest.mark.parametrize(
    "time", ["TIMESTAMP AS OF '2026-01-01'", "FOR SYSTEM_TIME AS OF '2026-01-01' AS x", "VERSION AS OF 1", "FOR VERSION AS OF 1"]
)
def test_a_version_or_time_stays_next_to_its_table(time):
    names = KnownTables(None, Views())
    assert qualify_names(names, f"SELECT * FROM t {time} WHERE id = 1") == f"SELECT * FROM `default`.`t` {time} WHERE id = 1"
    assert f", `default`.`t` {time}" in expanded(f"SELECT * FROM v, t {time}", made("SELECT id FROM db.t"))[0]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT db.x.id, default.V.* FROM db.x, default.v", "SELECT `x`.id, `v`.* FROM db.x, {}"),
        ("SELECT default.v.id FROM v GROUP BY default.v.id", "SELECT `v`.id FROM {} GROUP BY `v`.id"),
        ("SELECT db.v.id FROM default.v JOIN db.v", "SELECT db.v.id FROM {} JOIN db.v"),
        ("SELECT db.x.id FROM db.x, v, d.x VERSION AS OF 1", "SELECT db.x.id FROM db.x, {}, d.x VERSION AS OF 1"),
        ("SELECT db.x.id FROM db.x, (SELECT 1) x, v", "SELECT db.x.id FROM db.x, (SELECT 1) x, {}"),
        ("SELECT db.x.id FROM db.x y, v WHERE a = 'v'", "SELECT db.x.id FROM db.x y, {} WHERE a = 'v'"),
    ],
)
def test_a_column_may_name_the_database_where_one_table_is_meant(text, wanted):
    assert expanded(text, made("SELECT id FROM db.t"))[0] == wanted.format("(SELECT id FROM db.t) AS `v`")


def test_table_words_read_views_and_tables() -> None:
    view = made("TABLE t")
    found, _ = expanded("WITH c AS (TABLE v) TABLE c", view, columns=["id"])
    assert found == "WITH c AS (SELECT * FROM (SELECT * FROM `default`.`t` AS `t`) AS `v`) SELECT * FROM c"
    names = KnownTables(None, Views(v=view))
    assert qualify_names(names, "TABLE t") == "SELECT * FROM `default`.`t` AS `t`"
    assert views_read_by(names, "SELECT 1 WHERE 1 IN (TABLE v)") == {"default.v"}
