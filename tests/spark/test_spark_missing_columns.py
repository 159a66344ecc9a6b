"""Missing columns of upserts, and texts in updates, over Spark Connect."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_paimon import InvalidArgument, InvalidFilter, SchemaMismatch, Table, UnknownColumn, sql
from tests.build import tuples

pytestmark = pytest.mark.spark

DDL = "id BIGINT, a INT, b STRING"


def make(spark, path) -> Table:
    table = Table.create(path / "t", DDL, primary_keys=["id"], options={"bucket": "2"}, spark=spark)
    table.write(pa.table({"id": [1, 2], "a": pa.array([10, 20], pa.int32()), "b": ["x", "y"]}))
    return table


def rows(table: Table) -> list[tuple]:
    return tuples(Table.open(table.path))


@pytest.mark.slow
def test_missing_columns_are_refused_null_or_kept(spark, tmp_path):
    table = make(spark, tmp_path)
    frame = spark.createDataFrame([(1, 5), (3, 6)], "id BIGINT, a INT")
    local = pa.table({"id": [1, 3], "a": pa.array([5, 6], pa.int32())})
    for data in (frame, local, [{"id": 1, "a": 5}]):
        with pytest.raises(SchemaMismatch, match=r"column 'b' is missing.*missing='keep'"):
            table.write(data)
    with pytest.raises(Exception, match="column 'b' is missing"):
        frame.write.format("paimon").mode("append").save(table.path)
    with pytest.raises(Exception, match=r"Table.write\(df, missing='keep'\)"):
        frame.write.format("paimon").option("missing", "keep").mode("append").save(table.path)
    assert rows(table) == [(1, 10, "x"), (2, 20, "y")]
    assert table.write(frame, missing="keep").rows == 2
    assert rows(table) == [(1, 5, "x"), (2, 20, "y"), (3, 6, None)]
    assert table.write(pa.table({"id": [2, 2], "a": pa.array([1, 7], pa.int32())}), missing="keep").rows == 1
    assert rows(table) == [(1, 5, "x"), (2, 7, "y"), (3, 6, None)]
    frame.write.format("paimon").option("missing", "null").mode("append").save(table.path)
    assert rows(table) == [(1, 5, None), (2, 7, "y"), (3, 6, None)]
    kinds = spark.createDataFrame([(2, "-D")], "id BIGINT, _row_kind STRING")
    kinds.write.format("paimon").mode("append").save(table.path)
    assert rows(table) == [(1, 5, None), (3, 6, None)]
    sql(spark, f"INSERT INTO paimon.`{table.path}` (id, b) VALUES (9, 'q')")
    assert rows(table) == [(1, 5, None), (3, 6, None), (9, None, "q")]


@pytest.mark.slow
def test_texts_in_updates(spark, tmp_path):
    table = make(spark, tmp_path)
    log = Table.create(tmp_path / "log", DDL, spark=spark)
    log.write(pa.table({"id": [1, 2], "a": pa.array([10, 20], pa.int32()), "b": ["x", "y"]}))
    for one in (table, log):
        one.update("id = 1", set={"b": "upper(b)", "a": "t.a + 1"})
        one.update("id = 2", values={"b": "upper(b)"})
        assert rows(one) == [(1, 11, "X"), (2, 20, "upper(b)")]
        sql(spark, f"UPDATE paimon.`{one.path}` SET b = concat(b, '!'), a = NULL WHERE id = 1")
        assert rows(one) == [(1, None, "X!"), (2, 20, "upper(b)")]
        for text, kind in (("Anna", UnknownColumn), ("New York", InvalidFilter), ("a", SchemaMismatch)):
            with pytest.raises(kind) as refused:
                one.update("id = 1", set={"b": text})
            assert f"values={{'b': {text!r}}}" in str(refused.value)
        with pytest.raises(InvalidArgument, match="has no column"):
            one.delete("1 = 1")
        with pytest.raises(InvalidArgument, match="has no column"):
            sql(spark, f"DELETE FROM paimon.`{one.path}` WHERE 1 = 1")
    table.update("id = 2", set={"b": "soundex(b)"})
    assert rows(table)[1] == (2, 20, "U161"), "Spark computes functions that only it has"


@pytest.mark.slow
def test_new_columns_are_added_by_writes_and_streams(spark, tmp_path):
    table = make(spark, tmp_path)
    frame = spark.createDataFrame([(3, 5, "z", 1.5)], "id BIGINT, a INT, b STRING, c DOUBLE")
    with pytest.raises(SchemaMismatch, match=r"'c' is unknown.*schema_mode='merge'"):
        table.write(frame)
    with pytest.raises(Exception, match=r"'c' is unknown.*write.merge-schema"):
        frame.write.format("paimon").mode("append").save(table.path)
    assert table.write(frame, schema_mode="merge").rows == 1
    more = spark.createDataFrame([(4, 5, "z", 2.5, True)], "id BIGINT, a INT, b STRING, c DOUBLE, d BOOLEAN")
    more.write.format("paimon").option("mergeSchema", "true").mode("append").save(table.path)
    wide = spark.createDataFrame([(5, 2**40, "z", 3.5, True)], "id BIGINT, a BIGINT, b STRING, c DOUBLE, d BOOLEAN")
    options = {"write.merge-schema": "true", "write.merge-schema.type-widening": "true"}
    wide.write.format("paimon").options(**options).mode("append").save(table.path)
    assert rows(table)[2:] == [(3, 5, "z", 1.5, None), (4, 5, "z", 2.5, True), (5, 2**40, "z", 3.5, True)]
    assert [str(field.type) for field in Table.open(table.path).table_schema.fields[1:]] == ["BIGINT", "STRING", "DOUBLE", "BOOLEAN"]
    log = Table.create(tmp_path / "log", "id BIGINT, a BIGINT, b STRING", spark=spark)
    stream = spark.readStream.format("paimon").load(table.path).writeStream.format("paimon").option("mergeSchema", "true")
    started = stream.option("checkpointLocation", f"{tmp_path}/checkpoint").trigger(availableNow=True).start(log.path)
    started.awaitTermination()
    assert rows(log) == rows(table)


@pytest.mark.slow
def test_a_write_creates_the_table_where_it_names_the_keys(spark, tmp_path):
    path = str(tmp_path / "new")
    frame = spark.createDataFrame([(1, "mon", 1.5), (2, "tue", None)], "id BIGINT, day STRING, x DOUBLE")
    with pytest.raises(Exception, match=r"no Paimon table is here.*option\('primary-key'"):
        frame.write.format("paimon").mode("append").save(path)
    write = frame.write.format("paimon").option("primary-key", "day, id").option("partition", "day").option("bucket", "2")
    for _ in range(2):
        write.mode("append").save(path)
    table = Table.open(path)
    assert (table.primary_keys, table.partition_keys, table.options["bucket"]) == (("day", "id"), ("day",), "2")
    assert rows(table) == [(1, "mon", 1.5), (2, "tue", None)]
    with pytest.raises(Exception, match="the table exists with primary-key 'day,id', not 'id'"):
        frame.write.format("paimon").option("primary-key", "id").mode("append").save(path)
    with pytest.raises(Exception, match=r"option 'bucket'"):
        frame.write.format("paimon").option("primary-key", "day, id").option("bucket", "3").mode("append").save(path)
    log = str(tmp_path / "log")
    started = (
        spark.readStream.format("paimon")
        .load(path)
        .writeStream.format("paimon")
        .options(partition="day", checkpointLocation=f"{tmp_path}/checkpoint")
        .trigger(availableNow=True)
        .start(log)
    )
    started.awaitTermination()
    assert Table.open(log).partition_keys == ("day",)
    assert rows(Table.open(log)) == rows(table)
    made = Table.from_data(tmp_path / "frame", frame, ["id"], spark=spark)
    assert (rows(made), made.primary_keys) == (rows(table), ("id",))


def test_keep_in_sequence_groups_and_aggregates(spark, tmp_path):
    group = {"bucket": "2", "merge-engine": "partial-update", "fields.a.sequence-group": "b,c"}
    last = {"bucket": "2", "merge-engine": "aggregation", "fields.b.aggregate-function": "last_value", "fields.a.aggregate-function": "sum"}
    for name, options, expected in (("group", group, 3), ("last", last, 5)):
        table = Table.create(tmp_path / name, "id BIGINT, a INT, b STRING, c INT", primary_keys=["id"], options=options, spark=spark)
        table.write(pa.table({"id": [1], "a": pa.array([2], pa.int32()), "b": ["x"], "c": pa.array([7], pa.int32())}))
        frame = spark.createDataFrame([(1, 3, 8)], "id BIGINT, a INT, c INT")
        with pytest.raises(SchemaMismatch, match=r"column 'b' is missing.*missing='keep'"):
            table.write(frame)
        with pytest.raises(Exception, match="column 'b' is missing"):
            frame.write.format("paimon").mode("append").save(table.path)
        table.write(frame, missing="keep")
        assert rows(table) == [(1, expected, "x", 8)]
    log = Table.create(tmp_path / "log", DDL, spark=spark)
    with pytest.raises(InvalidArgument, match="no primary key"):
        log.write(spark.createDataFrame([(1, 3)], "id BIGINT, a INT"), missing="keep")


@pytest.mark.slow
def test_a_refused_write_leaves_the_schema_as_it_was(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, s VARCHAR(3)", primary_keys=["id"], options={"bucket": "2"}, spark=spark)
    long = spark.createDataFrame([(1, "abcd", 5), (2, "ab", 6)], "id BIGINT, s STRING, fresh INT")
    schema = table.table_schema
    for write in (
        lambda: table.write(long, schema_mode="merge"),
        lambda: table.write(long.toArrow(), schema_mode="merge"),
        lambda: long.write.format("paimon").option("mergeSchema", "true").mode("append").save(table.path),
    ):
        with pytest.raises(Exception, match=r"does not fit VARCHAR\(3\)"):
            write()
        assert Table.open(table.path).table_schema == schema
    log = Table.create(tmp_path / "log", "id BIGINT, s STRING, fresh INT", spark=spark)
    log.write(long)

    def follow(name: str) -> None:
        stream = spark.readStream.format("paimon").load(log.path).writeStream.format("paimon").option("mergeSchema", "true")
        stream.option("checkpointLocation", f"{tmp_path}/{name}").trigger(availableNow=True).start(table.path).awaitTermination()

    with pytest.raises(Exception, match=r"does not fit VARCHAR\(3\)"):
        follow("refused")
    assert Table.open(table.path).table_schema == schema
    log.delete("id = 1")
    follow("taken")
    assert rows(table) == [(2, "ab", 6)]
    log.write(spark.createDataFrame([(3, "c", 7)], "id BIGINT, s STRING, fresh INT"))
    follow("taken")
    assert rows(table) == [(2, "ab", 6), (3, "c", 7)]


def test_statements_store_values_as_spark_does(spark, tmp_path):
    ddl = "id BIGINT, d DOUBLE, n INT, s STRING, b BOOLEAN, at TIMESTAMP(3)"
    table = Table.create(tmp_path / "t", ddl, primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    name = f"paimon.`{table.path}`"
    sql(spark, f"INSERT INTO {name} (id, d, n, s, b) VALUES (1, 2.0, 3, 4, TRUE), (2, 2, 3L, 4L, NULL)")
    for column, value in (("b", "1"), ("b", "1.5"), ("n", "TRUE"), ("d", "current_timestamp()"), ("at", "5L")):
        with pytest.raises(SchemaMismatch, match=rf"column '{column}'.*CAST"):
            sql(spark, f"INSERT INTO {name} (id, {column}) VALUES (9, {value})")
        with pytest.raises((SchemaMismatch, InvalidFilter)) as refused:
            sql(spark, f"UPDATE {name} SET {column} = {value} WHERE id = 1")
        assert "values=" not in str(refused.value)
    sql(spark, f"UPDATE {name} SET d = 2.5, s = 6 WHERE id = 1")
    merge = f"MERGE INTO {name} t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET d = 3.5, s = 7"
    sql(spark, merge)
    assert [row[:5] for row in rows(table)] == [(1, 2.5, 3, "6", True), (2, 3.5, 3, "7", None)]
