"""Tables of a REST catalog, read and changed by the processes of a Spark server."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pyspark_paimon import (
    Catalog,
    CatalogUnavailable,
    InvalidArgument,
    InvalidSchema,
    SystemTableReadOnly,
    Table,
    TableExists,
    TableNotFound,
    UnknownColumn,
    UnsupportedType,
    sql,
)
from tests.build import tuples
from tests.catalogs.server import TOKEN, CatalogServer, lent

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def server(tmp_path):
    with CatalogServer(tmp_path / "warehouse") as running:
        yield running


@pytest.fixture
def catalog(server):
    return Catalog.create(server.options())


def commits(server):
    """The operations that the catalog's server committed, by snapshot id."""
    posts = [body["snapshot"] for method, path, _, body in server.requests if method == "POST" and path.endswith("/commit")]
    return [(snapshot["id"], snapshot["commitKind"]) for snapshot in posts]


def found(table, where=None):
    return tuples(table.scan(where, columns=["id", "v"]))


@pytest.mark.slow
def test_rows_are_read_written_and_changed(spark, server, catalog):
    catalog.create_table("t", "id BIGINT, v STRING, p INT", primary_keys=["id", "p"], partition_keys=["p"], options={"bucket": "2"})
    table = catalog.table("t", spark)
    assert table.path.startswith("rest://127.0.0.1-")
    table.write(pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"], "p": pa.array([0, 0, 1], pa.int32())}))
    frame = spark.range(10, 20).selectExpr("id", "concat('s', id) AS v", "CAST(id % 2 AS INT) AS p")
    assert table.write(frame).rows == 10
    assert table.count() == 13
    assert found(table, "id < 3 AND p = 0") == [(1, "a"), (2, "b")]
    assert table.lookup([{"id": 3, "p": 1}]).column("v").to_pylist() == ["c"]
    assert table.scan("id >= 15").to_spark().count() == 5
    table.update("id = 1", values={"v": "z"})
    table.delete("id > 12")
    source = spark.createDataFrame([(2, "m", 0), (9, "n", 1)], "id BIGINT, v STRING, p INT")
    table.merge(source, on=["id", "p"]).when_matched_update_all().when_not_matched_insert_all().execute()
    assert found(table) == [(1, "z"), (2, "m"), (3, "c"), (9, "n"), (10, "s10"), (11, "s11"), (12, "s12")]
    assert table.scan().to_spark().where("p = 1").count() == 3
    table.write(spark.range(1).selectExpr("id", "'o' AS v", "1 AS p"), mode="overwrite", partition={"p": 1})
    table.compact(full=True)
    local = catalog.table("t")
    assert found(local) == found(table) == [(0, "o"), (1, "z"), (2, "m"), (10, "s10"), (12, "s12")]
    assert [number for number, _ in commits(server)] == list(range(1, local.scan().snapshot_id + 1)), "each snapshot is the catalog's"
    assert not table.fsck().problems
    assert local.scan("id > 9").to_spark(spark).count() == 2


def test_a_repeated_commit_id_writes_once_also_after_a_lost_answer(spark, server, catalog):
    catalog.create_table("once", "id BIGINT, v STRING", options={"bucket": "1", "bucket-key": "id"})
    table = catalog.table("once", spark)
    frame = spark.range(5).selectExpr("id", "'x' AS v")
    lost = []

    def answers(method, path):
        if method == "POST" and path.endswith("/commit") and not lost:
            lost.append(path)
            server.answers = lambda *_: None
            body = server.requests[-1][3]
            server.answer(method, path, {"authorization": f"Bearer {TOKEN}"}, body)
            return 503, {"message": "lost"}
        return None

    server.answers = answers
    commit_id = "9f6c9d4e-6a3c-4d55-8f0e-3b9c8a7d6e5f"
    first = table.write(frame, commit_id=commit_id)
    assert lost
    again = table.write(frame, commit_id=commit_id)
    assert (again.snapshot_id, table.count()) == (first.snapshot_id, 5)
    assert commits(server) == [(1, "APPEND")]


def test_schema_tags_branches_and_system_tables_are_the_servers(spark, server, catalog):
    catalog.create_table("t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
    table = catalog.table("t", spark)
    table.write({"id": [1], "v": ["a"]})
    table.add_column("w", "INT")
    table.create_tag("one")
    table.create_branch("trial", "one")
    branch = catalog.table("t$branch_trial", spark)
    branch.write({"id": [2], "v": ["b"]})
    assert (table.count(), branch.count()) == (1, 2)
    assert Table.open(table.path, spark, branch="trial").count() == 2
    assert catalog.table("t$snapshots", spark).count() == 1
    assert [row["tag_name"] for row in catalog.table("t$tags", spark).scan().to_arrow().to_pylist()] == ["one"]
    with pytest.raises(SystemTableReadOnly):
        catalog.table("t$files", spark).delete("true")
    with pytest.raises(UnknownColumn):
        table.drop_column("none")
    changed = [path.rpartition("/")[2] for method, path, _, body in server.requests if method == "POST" and "/tables/t" in path]
    assert {"t", "tags", "branches", "commit"} <= set(changed)
    with pytest.raises(TableNotFound):
        catalog.table("none", spark)


def test_a_dropped_table_is_not_mistaken_for_its_successor(spark, catalog):
    made = {"primary_keys": ["id"], "options": {"bucket": "1"}}
    catalog.create_table("t", "id BIGINT, v STRING", **made)
    table = catalog.table("t", spark)
    catalog.drop_table("t")
    catalog.create_table("t", "id BIGINT, v STRING", **made)
    with pytest.raises(TableNotFound, match="another one has its name"):
        table.write({"id": [1], "v": ["a"]})
    assert catalog.table("t").scan().snapshot_id is None


@pytest.mark.slow
def test_statements_name_tables_of_the_catalog(spark, catalog):
    run = lambda text: sql(spark, text, catalog=catalog)  # noqa: E731
    run("CREATE TABLE orders (id BIGINT NOT NULL, v STRING, PRIMARY KEY (id) NOT ENFORCED) TBLPROPERTIES ('bucket' = '1')")
    run("INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    run("UPDATE default.orders SET v = 'z' WHERE id = 1")
    run("DELETE FROM orders WHERE id = 2")
    run("MERGE INTO orders t USING (SELECT 4L AS id, 'd' AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
    run("ALTER TABLE orders ADD COLUMN w INT")
    run("CALL sys.create_tag(table => 'orders', tag => 'v1')")
    assert [tuple(row) for row in run("SELECT id, v FROM orders ORDER BY id").collect()] == [(1, "z"), (3, "c"), (4, "d")]
    assert run("SELECT count(*) FROM orders$snapshots").first()[0] == 4
    assert run("SELECT max(id) FROM orders VERSION AS OF 'v1'").first()[0] == 4
    assert run("WITH orders AS (SELECT id FROM orders WHERE id > 1) SELECT min(orders.id) FROM orders").first()[0] == 3
    assert [row[0] for row in run("SELECT orders.id FROM orders GROUP BY orders.id ORDER BY orders.id DESC").collect()] == [4, 3, 1]
    run("DROP TABLE orders")
    assert catalog.list_tables() == []


@pytest.mark.slow
def test_plain_readers_and_writers_open_the_path_and_streams_are_refused(spark, catalog, tmp_path):
    catalog.create_table("t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
    table = catalog.table("t", spark)
    spark.range(3).selectExpr("id", "'a' AS v").write.format("paimon").mode("append").save(table.path)
    assert spark.read.format("paimon").load(table.path).count() == 3
    now = {"checkpointLocation": str(tmp_path / "checkpoint")}
    source = spark.readStream.format("paimon").load(table.path)
    with pytest.raises(Exception, match="foreachBatch"):
        source.writeStream.format("noop").options(**now).trigger(availableNow=True).start().awaitTermination()
    rates = spark.readStream.format("rate").load().selectExpr("value AS id", "'r' AS v")
    with pytest.raises(Exception, match="foreachBatch"):
        rates.writeStream.format("paimon").options(**now).start(table.path).awaitTermination()
    assert table.count() == 3


def test_the_token_is_in_no_plan_option_or_error(spark, server, catalog):
    catalog.create_table("t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
    table = catalog.table("t", spark)
    frame = table.scan().to_spark()
    shown = [table.path, repr(table), frame._jdf.toString() if hasattr(frame, "_jdf") else str(frame._plan.to_proto(spark.client))]
    server.answers = lambda method, path: (401, {"message": f"{TOKEN} is wrong", "code": 401}) if "/tables/" in path else None
    with pytest.raises(Exception, match="401") as refused:
        table.count()
    shown.append(repr(refused.value) + str(refused.value) + json.dumps(getattr(refused.value, "__notes__", [])))
    assert type(refused.value).__name__ == "NotAuthorized"
    assert not [text for text in shown if TOKEN in text]
    stranger = spark.newSession()
    server.answers = lambda *_: None
    with pytest.raises(InvalidArgument, match="no options of that catalog"):
        Table.open(table.path, stranger)


@pytest.mark.slow
def test_each_process_fetches_lent_keys(spark, s3, warehouse, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with CatalogServer(warehouse(), storage=s3.options(), lends=lambda table: lent(s3.options(), 3600 * 6)) as server:
        server.overrides["data-token.enabled"] = "true"
        catalog = Catalog.create(server.options())
        catalog.create_table("t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
        table = catalog.table("t", spark)
        assert table.write(spark.range(10).selectExpr("id", "'a' AS v")).rows == 10
        asked = len([path for _, path, *_ in server.requests if path.endswith("/token")])
        assert table.scan("id < 5").to_spark().count() == 5
        assert len([path for _, path, *_ in server.requests if path.endswith("/token")]) > asked
        sent = [body for _, path, _, body in server.requests if "/token" not in path]
        assert s3.options()["s3.secret-key"] not in json.dumps(sent)


@pytest.mark.slow
def test_views_are_made_read_and_dropped(spark, catalog):
    catalog.create_database("sales")
    run = lambda text: sql(spark, text, catalog=catalog)  # noqa: E731
    rows = lambda text: [tuple(row) for row in run(text).collect()]  # noqa: E731
    run("CREATE TABLE orders (id BIGINT NOT NULL, v STRING, PRIMARY KEY (id) NOT ENFORCED) TBLPROPERTIES ('bucket' = '1')")
    run("INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    run(
        "CREATE VIEW sales.large (key COMMENT 'of the order', word) COMMENT 'not one' TBLPROPERTIES ('o' = 'us') AS SELECT * FROM orders WHERE id > 1"
    )
    view = catalog.view("sales.large")
    assert [(field.name, field.description) for field in view.fields] == [("key", "of the order"), ("word", None)]
    assert "`default`.`orders`" in view.text(), "names keep their meaning in other databases"
    run("CREATE VIEW words AS SELECT word, count(*) AS n FROM sales.large GROUP BY word")
    assert rows("SELECT key, word FROM sales.large ORDER BY key") == [(2, "b"), (3, "c")]
    assert rows("SELECT l.key, w.n FROM sales.large l JOIN words w ON l.word = w.word WHERE l.key = 3") == [(3, 1)]
    assert rows("WITH orders AS (SELECT 1 AS x) SELECT count(*) FROM sales.large, orders") == [(2,)]
    shown = rows("SHOW CREATE TABLE sales.large")[0][0]
    run("DROP VIEW sales.large")
    run(shown)
    assert catalog.view("sales.large") == view
    run("ALTER TABLE orders ADD COLUMN w INT")
    assert run("SELECT * FROM sales.large").columns == ["key", "word"], "the view keeps its columns"
    run("INSERT INTO orders SELECT key + 10, word, 0 FROM sales.large")
    assert rows("SELECT count(*) FROM sales.large") == [(4,)]
    assert rows("SHOW VIEWS IN sales") == [("sales", "large", False)]
    assert rows("SHOW VIEWS IN sales LIKE 'x*'") == []
    assert rows("DESCRIBE sales.large")[0] == ("key", "bigint", "of the order")
    with pytest.raises(TableNotFound, match="is a view"):
        run("DELETE FROM sales.large")
    with pytest.raises(TableExists, match="OR REPLACE"):
        run("CREATE VIEW sales.large AS SELECT 1 AS key")
    with pytest.raises(InvalidArgument, match="reads the view itself"):
        run("CREATE OR REPLACE VIEW sales.large AS SELECT word AS key FROM words")
    run("CREATE OR REPLACE VIEW sales.large AS SELECT id AS key FROM orders")
    run("ALTER VIEW sales.large AS SELECT id + 1 AS key FROM orders")
    run("ALTER VIEW sales.large SET TBLPROPERTIES ('a' = 'b')")
    run("ALTER VIEW sales.large RENAME TO sales.small")
    assert rows("SELECT max(key) FROM sales.small") == [(14,)]
    assert catalog.view("sales.small").options == {"a": "b"}
    run("CREATE TEMPORARY VIEW passing AS SELECT key FROM sales.small")
    assert spark.table("passing").count() == 5
    spark.catalog.dropTempView("passing")
    run("DROP DATABASE sales CASCADE")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows("SELECT * FROM sales.small")


@pytest.mark.slow
def test_a_view_is_replaced_only_where_the_statement_says_so_and_the_new_one_is_valid(spark, server, catalog):
    run = lambda text: sql(spark, text, catalog=catalog)  # noqa: E731
    catalog.create_database("default")
    run("CREATE VIEW v AS SELECT 1L AS id")
    for text in ("-- replace the old one\nCREATE VIEW v AS SELECT 2 AS id", "/* a temporary one? */ CREATE VIEW v AS SELECT 2 AS id"):
        with pytest.raises(TableExists, match="OR REPLACE"):
            run(text)
    for query in ("SELECT NULL AS id", "SELECT 1 AS id, 2 AS id"):
        with pytest.raises((UnsupportedType, InvalidSchema)):
            run(f"CREATE OR REPLACE VIEW v AS {query}")
    assert catalog.view("v").text() == "SELECT 1L AS id"
    server.answers = lambda method, path: (503, {"message": "lost"}) if method == "DELETE" else None
    with pytest.raises(CatalogUnavailable) as lost:
        run("CREATE OR REPLACE VIEW v AS SELECT 2L AS id")
    assert "its query was: SELECT 1L AS id" in lost.value.__notes__[-1]
    server.answers = lambda *_: None
    with pytest.raises(InvalidArgument, match="the query has the columns id string, and the view id bigint"):
        run("ALTER VIEW v AS SELECT 'x' AS id")
    run("CREATE TABLE t (a BIGINT, b BIGINT)")
    run("INSERT INTO t VALUES (1, 2)")
    run("CREATE VIEW star AS SELECT * FROM t")
    with pytest.raises(InvalidArgument, match="names of columns in place"):
        run("CREATE VIEW turned (b, a) AS SELECT * FROM t")
    run("ALTER TABLE t ADD COLUMN c BIGINT")
    assert [tuple(row) for row in run("SELECT star.a, b FROM star ORDER BY star.a").collect()] == [(1, 2)]
    run("ALTER TABLE t ADD COLUMN d BIGINT FIRST")
    with pytest.raises(InvalidArgument, match="whose column 1 is 'd', and the view's is 'a'"):
        run("SELECT * FROM star")


def test_temporary_views_are_sparks_also_beside_a_view_of_the_catalog(spark, catalog):
    run = lambda text: sql(spark, text, catalog=catalog)  # noqa: E731
    run("CREATE TABLE t (id BIGINT)")
    run("INSERT INTO t VALUES (1)")
    run("CREATE VIEW w AS SELECT id FROM t TIMESTAMP AS OF '2999-01-01' WHERE id = 1")
    run("CREATE TEMPORARY VIEW w AS SELECT id + 1 AS id FROM t")
    assert [tuple(row) for row in run("SELECT w.id FROM w ORDER BY w.id").collect()] == [(2,)], "a temporary view comes first, as in Spark"
    assert run("SELECT default.w.id + default.t.id AS id FROM default.w JOIN t ON default.w.id = default.t.id").first()[0] == 2
    run("DROP VIEW w")
    assert catalog.list_views() == ["w"], "only the temporary view is gone"
    run("DROP VIEW w")
    assert catalog.list_views() == []
    spark.range(3).createOrReplaceTempView("`a.b`")
    assert run("SELECT count(*) FROM `a.b`").first()[0] == 3
    spark.catalog.dropTempView("`a.b`")
