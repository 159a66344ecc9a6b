"""What Spark's SQL can do with a table, statement by statement: run by the tests, and shown as a table in docs/spark/sql-reference.md.

``{t}`` is a table of Spark's catalog made over the Paimon table at ``{path}`` (id BIGINT key, city STRING; rows 1 Oslo, 2 Lima, 3 NULL),
``{d}`` and ``{days}`` the same for a partitioned one (day DATE, id INT, v STRING; a row in each of the first two days of 2026), ``{v}`` a
temporary view over ``{path}``, ``{parquet}`` a view of Parquet files (id 1 and 2, land NO and PE), ``{new}`` a name that is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from pyspark_paimon.plugins.sql.procedures import OF_CATALOGS, PROCEDURES

ALL = [(1, "Oslo"), (2, "Lima"), (3, None)]
D1, D2 = "2026-01-01", "2026-01-02"
DAY1, DAY2 = date.fromisoformat(D1), date.fromisoformat(D2)


@dataclass(frozen=True)
class Example:
    """A statement and what comes of it: the rows it returns, the rows of a table afterwards, or what its refusal says."""

    sql: str
    returns: list[tuple] | None = None
    leaves: list[tuple] | None = None
    leaves_days: list[tuple] | None = None
    refused: str | None = None


@dataclass(frozen=True)
class Feature:
    """A row of the docs' table."""

    shown: str
    answer: str
    examples: tuple[Example, ...]


WORKS = (
    Feature(
        "`CREATE TABLE t USING paimon OPTIONS (path '...')`",
        "names a table that exists in Spark's catalog; over a path without one it is refused, and `Table.create` makes it",
        (
            Example("CREATE TABLE {new} USING paimon LOCATION '{path}'"),
            Example("DROP TABLE {new}", leaves=ALL),
            Example("CREATE TABLE {new} USING paimon OPTIONS (path '{path}/missing')", refused="TableNotFound.*Table.create"),
            Example(
                "CREATE TABLE {new} USING paimon OPTIONS (path '{path}') TBLPROPERTIES ('bucket' = '9')",
                refused="UnsupportedOption.*'bucket'",
            ),
            Example("CREATE TABLE {new} USING paimon OPTIONS (path '{path}', nonsense '9')", refused="UnsupportedOption.*'nonsense'"),
            Example("CREATE TABLE {new} USING paimon OPTIONS (path '{path}') TBLPROPERTIES ('primary-key' = 'id', 'team' = 'a')"),
        ),
    ),
    Feature(
        "`CREATE TEMPORARY VIEW v USING paimon OPTIONS (path '...', filter '...')`",
        "names a scan of the snapshot that is the newest one now; any read option",
        (
            Example("SELECT * FROM {v}", returns=ALL),
            Example(
                "CREATE TEMPORARY VIEW {new}_v USING paimon OPTIONS (path '{path}', filter 'id > 1 AND city IS NOT NULL', columns 'city')"
            ),
            Example("SELECT * FROM {new}_v", returns=[("Lima",)]),
            Example("INSERT INTO {new}_v VALUES ('x')", refused="UnsupportedOption.*'columns'"),
        ),
    ),
    Feature(
        "`SELECT ...` with joins, subqueries, views, `CACHE TABLE`",
        "reads the newest snapshot; names of columns ignore case",
        (
            Example("SELECT ID, City FROM {t} WHERE iD < 3", returns=[(1, "Oslo"), (2, "Lima")]),
            Example(
                "SELECT a.id, p.land, d.v FROM {t} a JOIN {parquet} p ON a.id = p.id LEFT JOIN {d} d ON d.id = a.id",
                returns=[(1, "NO", "b"), (2, "PE", None)],
            ),
            Example(
                "SELECT count(*) FROM {t} WHERE id IN (SELECT id FROM {parquet}) AND EXISTS (SELECT 1 FROM {v} WHERE city = 'Oslo')",
                returns=[(2,)],
            ),
            Example("CACHE TABLE {new}_c AS SELECT max(id) AS m FROM {t}"),
            Example("SELECT * FROM {new}_c", returns=[(3,)]),
        ),
    ),
    Feature(
        "``SELECT ... FROM t WITH (`scan.snapshot-id` = '7')``",
        "travels in time, as `scan.tag-name`, `scan.timestamp-millis` and `incremental-between` do; `filter` prunes by indexes",
        (
            Example("SELECT * FROM {t} WITH (`scan.snapshot-id` = '1')", returns=ALL),
            Example("SELECT * FROM {t} WITH (filter = 'id = 2')", returns=[(2, "Lima")]),
            Example("SELECT * FROM {t} WITH (`scan.snapshot-id` = '99')", refused="SnapshotNotFound"),
        ),
    ),
    Feature(
        "`INSERT INTO t WITH (path = '...') ...`",
        "upserts `VALUES` or a query, by position, `BY NAME` or with a list of columns; columns left out become NULL",
        (
            Example("INSERT INTO {t} WITH (path = '{path}') VALUES (1, 'Rome')", leaves=[(1, "Rome"), *ALL[1:]]),
            Example("INSERT INTO {t} WITH (path = '{path}') (CITY, Id) SELECT 'Pisa', 4", leaves=[*ALL, (4, "Pisa")]),
            Example("INSERT INTO {t} WITH (path = '{path}') BY NAME SELECT 'Bari' AS City, 4L AS ID", leaves=[*ALL, (4, "Bari")]),
            Example("INSERT INTO {t} WITH (path = '{path}') (id) VALUES (2)", leaves=[ALL[0], (2, None), ALL[2]]),
            Example("INSERT INTO {t} WITH (path = '{path}') SELECT 'four', 'x'", leaves=ALL, refused="CANNOT_SAFELY_CAST"),
            Example(
                "INSERT INTO {t} WITH (path = '{path}') SELECT CAST(NULL AS BIGINT), 'x'", leaves=ALL, refused="NOT_NULL_ASSERT_VIOLATION"
            ),
        ),
    ),
    Feature(
        "`INSERT INTO v ...`",
        "the same through a temporary view, which brings its path",
        (Example("INSERT INTO {v} VALUES (4, 'Rome')", leaves=[*ALL, (4, "Rome")]),),
    ),
    Feature(
        "`INSERT OVERWRITE t WITH (path = '...') ...`",
        "replaces the whole table",
        (Example("INSERT OVERWRITE {t} WITH (path = '{path}') SELECT id, land FROM {parquet}", leaves=[(1, "NO"), (2, "PE")]),),
    ),
    Feature(
        "``INSERT OVERWRITE t WITH (path = '...', `overwrite-partition` = 'day=2026-01-31') ...``",
        "replaces that partition; `` `dynamic-partition-overwrite` = 'true' `` replaces the partitions of the rows",
        (
            Example(
                "INSERT OVERWRITE {d} WITH (path = '{days}', `overwrite-partition` = 'day=2026-01-01') VALUES (DATE'2026-01-01', 7, 'new')",
                leaves_days=[(D1, 7, "new"), (D2, 5, "a")],
            ),
            Example(
                "INSERT OVERWRITE {d} WITH (path = '{days}', `dynamic-partition-overwrite` = 'true') VALUES (DATE'2026-01-02', 7, 'new')",
                leaves_days=[(D1, 1, "b"), (D2, 7, "new")],
            ),
            Example(
                "INSERT OVERWRITE {d} WITH (path = '{days}', `overwrite-partition` = 'hour=1') VALUES (DATE'2026-01-02', 7, 'new')",
                refused="UnknownColumn.*hour",
            ),
        ),
    ),
    Feature(
        "`DESCRIBE t`, `EXPLAIN ...`, `SHOW CREATE TABLE t`",
        "show the columns; Spark shows neither `USING` nor the path",
        (
            Example("DESCRIBE {t}", returns=[("city", "string", None), ("id", "bigint", None)]),
            Example(
                "SHOW CREATE TABLE {t}",
                returns=[("CREATE TABLE spark_catalog.default.{t} (\n  id BIGINT NOT NULL,\n  city STRING COLLATE UTF8_BINARY)\n",)],
            ),
        ),
    ),
    Feature(
        "`DROP TABLE t`",
        "forgets the name; the Paimon table stays",
        (Example("DROP TABLE {t} PURGE", leaves=ALL),),
    ),
)

REFUSED = (
    Feature(
        "`CREATE TABLE t (id BIGINT, ...) USING paimon ...`",
        "`pyspark_paimon.sql`, or `Table.create(path, columns, primary_keys=[...])`, then `CREATE TABLE` without columns",
        (
            Example("CREATE TABLE {new} (id BIGINT, city STRING) USING paimon OPTIONS (path '{path}')"),
            Example("SELECT * FROM {new}", refused="InvalidArgument.*does not keep the path"),
            Example("SELECT * FROM {new} WITH (path = '{path}')", returns=ALL),
            Example("DROP TABLE {new}", leaves=ALL),
        ),
    ),
    Feature(
        "`CREATE TABLE t USING paimon ... AS SELECT`",
        "`pyspark_paimon.sql`, or `Table.create(...)`, then `INSERT` or `table.write(df)`",
        (
            Example(
                "CREATE TABLE {new} USING paimon OPTIONS (path '{path}') AS SELECT 9L AS id, 'x' AS city",
                leaves=ALL,
                refused="InvalidArgument.*CREATE TABLE AS SELECT",
            ),
        ),
    ),
    Feature(
        "`INSERT INTO t` without `WITH`",
        "Spark does not say which table is meant: `WITH (path = '...')`, or a temporary view",
        (
            Example("INSERT INTO {t} VALUES (4, 'Rome')", leaves=ALL, refused=r"InvalidArgument.*WITH \(path"),
            Example("INSERT INTO {t} SELECT * FROM {t}", leaves=ALL, refused=r"InvalidArgument.*WITH \(path"),
        ),
    ),
    Feature(
        "`INSERT OVERWRITE t PARTITION (...)`, `INSERT INTO t REPLACE WHERE ...`",
        '`` `overwrite-partition` ``, or `table.write(df, mode="overwrite", partition={...})`',
        (
            Example("INSERT OVERWRITE {d} PARTITION (day = DATE'2026-01-01') SELECT 7, 'new'", refused="NON_PARTITION_COLUMN"),
            Example("INSERT INTO {t} REPLACE WHERE id = 1 SELECT 1L, 'x'", leaves=ALL, refused="does not support overwrite by filter"),
        ),
    ),
    Feature(
        "`UPDATE`, `DELETE FROM`, `TRUNCATE TABLE`",
        '`table.update(filter, set={...})`, `table.delete(filter)`, `table.delete("TRUE")`',
        (
            Example("UPDATE {t} SET city = 'x' WHERE id = 1", leaves=ALL, refused="does not support UPDATE TABLE"),
            Example("DELETE FROM {t} WHERE id = 1", leaves=ALL, refused="does not support deletes"),
            Example("TRUNCATE TABLE {t}", leaves=ALL, refused="does not support truncates"),
        ),
    ),
    Feature(
        "`MERGE INTO`",
        "`pyspark_paimon.sql`, or `table.merge(df, on)`; `INSERT` and `table.write(df)` upsert by key",
        (
            Example(
                "MERGE INTO {t} USING {parquet} s ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET city = land",
                leaves=ALL,
                refused="does not support MERGE INTO TABLE",
            ),
        ),
    ),
    Feature(
        "`ALTER TABLE t ...`",
        "changes Spark's copy of the columns, which the next read or write refuses: `table.add_column` and the like, then "
        "`DROP TABLE` and `CREATE TABLE` again; options: `table.alter_options`",
        (
            Example("ALTER TABLE {t} RENAME COLUMN city TO town"),
            Example("SELECT * FROM {t}", refused="SchemaMismatch.*'town'.*Table.add_column"),
            Example(
                "INSERT INTO {t} WITH (path = '{path}') VALUES (4, 'x')", leaves=ALL, refused="SchemaMismatch.*'town'.*Table.add_column"
            ),
        ),
    ),
    Feature(
        "`VERSION AS OF`, `TIMESTAMP AS OF`",
        "`` WITH (`scan.snapshot-id` = '...') ``, or `table.scan(snapshot=..., tag=..., timestamp=...)`",
        (
            Example("SELECT * FROM {t} VERSION AS OF 1", refused="UNSUPPORTED_FEATURE.TIME_TRAVEL"),
            Example("SELECT * FROM {t} TIMESTAMP AS OF '2026-01-01'", refused="UNSUPPORTED_FEATURE.TIME_TRAVEL"),
        ),
    ),
    Feature(
        "``SELECT ... FROM paimon.`/path` ``",
        'a temporary view, or `spark.read.format("paimon").load(path)`',
        (Example("SELECT * FROM paimon.`{path}`", refused="UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"),),
    ),
    Feature(
        "`ANALYZE TABLE`, `SHOW PARTITIONS`, `CALL sys.compact(...)`",
        "`table.analyze()`, `table.partitions()`, `table.compact()` and the other methods of `Table`",
        (
            Example("ANALYZE TABLE {t} COMPUTE STATISTICS", refused="NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
            Example("SHOW PARTITIONS {d}", refused="PARTITION_MANAGEMENT_IS_UNSUPPORTED"),
            Example("CALL sys.compact('{t}')", refused="UNRESOLVED_ROUTINE"),
        ),
    ),
)


SHOWN = """CREATE TABLE `db`.`{new}` (
  `id` BIGINT NOT NULL,
  `d` DATE COMMENT 'a\\'b',
  PRIMARY KEY (`id`) NOT ENFORCED)
USING paimon
TBLPROPERTIES (
  'bucket' = '1')
"""
OURS = (
    Feature(
        "`CREATE TABLE db.t (id BIGINT NOT NULL, ..., PRIMARY KEY (id) NOT ENFORCED)` `PARTITIONED BY (...)` `TBLPROPERTIES (...)`",
        "creates the table in the catalog, or at paimon.`/path`; with `OPTIONS (path '...')` Spark's catalog names it, too. Keys may be `'primary-key'`",
        (
            Example(
                "CREATE TABLE db.{new} (id BIGINT NOT NULL COMMENT 'its number', city STRING DEFAULT 'x', at TIMESTAMP, "
                "PRIMARY KEY (id) NOT ENFORCED) USING paimon TBLPROPERTIES ('bucket' = '2')"
            ),
            Example("CREATE TABLE IF NOT EXISTS db.{new} (id INT)"),
            Example("INSERT INTO db.{new} (id) VALUES (1)"),
            Example("SELECT t.* FROM db.{new} t WHERE '{{a}}' = '{{a}}'", returns=[(1, "x", None)]),
            Example("CREATE TABLE db.{new}_c (id INT, `a.b` MAP<STRING, LONG>, bytes BINARY) PARTITIONED BY (day DATE)"),
            Example("CREATE TABLE db.{new}_d LIKE db.{new}_c"),
            Example("WITH a AS (SELECT 1 AS id) INSERT INTO db.{new}_d SELECT id, map('a', 2), X'0102', DATE'2026-01-01' FROM a"),
            Example("SELECT id, `a.b`['a'], hex(bytes) FROM db.{new}_d", returns=[(1, 2, "0102")]),
            Example("CREATE TABLE {new} (id INT NOT NULL) USING paimon OPTIONS (path '{path}_x', 'primary-key' = 'id', 'bucket' = '1')"),
            Example("SELECT count(*) FROM {new}", returns=[(0,)]),
        ),
    ),
    Feature(
        "`CREATE TABLE db.t TBLPROPERTIES (...) AS SELECT ...`, `[CREATE OR] REPLACE TABLE db.t ...`, `DROP TABLE db.t`",
        "a table of the query's columns and rows, in the catalog. Replaced, it has the new columns and rows, and its history; keys, partitions and "
        "buckets must stay. Dropped, it is deleted",
        (
            Example("CREATE TABLE db.{new} TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1') AS SELECT id, city FROM paimon.`{path}`"),
            Example("SELECT * FROM db.{new}", returns=ALL),
            Example(
                "CREATE OR REPLACE TABLE db.{new} TBLPROPERTIES ('primary-key' = 'id') AS SELECT id, city FROM paimon.`{path}` WHERE id = 2"
            ),
            Example("SELECT * FROM db.{new}", returns=[(2, "Lima")]),
            Example(
                "CREATE OR REPLACE TABLE db.{new} (id BIGINT NOT NULL, n INT)",
                refused="InvalidArgument.*primary key.*nothing was changed.*DROP TABLE",
            ),
            Example("CREATE OR REPLACE TABLE db.{new} (n INT, id BIGINT NOT NULL, PRIMARY KEY (id))"),
            Example("SELECT * FROM db.{new}", returns=[]),
            Example(
                "CREATE OR REPLACE TABLE db.{new} TBLPROPERTIES ('primary-key' = 'id') AS SELECT id, 'x' AS word FROM {t} WHERE id = 1"
            ),
            Example("SELECT * FROM db.{new}", returns=[(1, "x")]),
            Example("SELECT count(*) FROM db.{new} VERSION AS OF 1", returns=[(3,)]),
            Example("DROP TABLE db.{new}"),
            Example("SELECT * FROM db.{new}", refused="TABLE_OR_VIEW_NOT_FOUND"),
        ),
    ),
    Feature(
        "`SHOW TABLES [IN db]`, `SHOW TABLE EXTENDED [IN db] LIKE 't*' [PARTITION (...)]`, `SHOW DATABASES`, `CREATE | DROP DATABASE db`, "
        "`USE db`, `SHOW CREATE TABLE t`, `SHOW COLUMNS IN t`, `DESCRIBE EXTENDED t`, `REFRESH TABLE t`",
        "those of the catalog, without a name beside Spark's; the statement that makes such a table. After `USE db` names without a database "
        "are of that one. A refresh has nothing to do: each statement reads the newest state",
        (
            Example("CREATE DATABASE IF NOT EXISTS more"),
            Example("SHOW DATABASES LIKE 'm*|d*'", returns=[("db",), ("default",), ("more",)]),
            Example("DROP DATABASE more"),
            Example("CREATE TABLE db.{new} (id BIGINT NOT NULL, d DATE COMMENT 'a''b', PRIMARY KEY (id)) TBLPROPERTIES ('bucket' = '1')"),
            Example("SHOW TABLES IN db", returns=[("db", "{new}", False)]),
            Example("SHOW TABLES FROM db LIKE 'x*'", returns=[]),
            Example(
                "SHOW CREATE TABLE db.{new}",
                returns=[(SHOWN,)],
            ),
            Example("SHOW COLUMNS IN db.{new}", returns=[("id",), ("d",)]),
            Example("DESCRIBE EXTENDED db.{new}"),
            Example("DROP DATABASE db", refused="InvalidArgument.*has tables"),
            Example("USE db", returns=[(True,)]),
            Example("SHOW TABLE EXTENDED LIKE 'none*'", returns=[]),
            Example("REFRESH TABLE {t}", returns=[(True,)]),
            Example("USE default"),
        ),
    ),
    Feature(
        "`INSERT INTO t`, `INSERT OVERWRITE t [PARTITION (...)]`, `INSERT INTO t REPLACE WHERE day = '...'`, `BY NAME`, `(columns)`, `VALUES (1, DEFAULT)`",
        "upserts, or replaces, by position or by name; the table is known by its name. `DEFAULT` is the default of the column, in `UPDATE` "
        "and `MERGE INTO`, too",
        (
            Example("INSERT INTO {t} VALUES (4, 'Rome')", leaves=[*ALL, (4, "Rome")]),
            Example("INSERT OVERWRITE {d} PARTITION (day = DATE'2026-01-01') SELECT 7, 'new'", leaves_days=[(D1, 7, "new"), (D2, 5, "a")]),
            Example(
                "INSERT INTO {d} REPLACE WHERE day = DATE'2026-01-01' SELECT day, 8, 'more' FROM {d}", refused="outside the partitions"
            ),
            Example(
                "INSERT INTO {d} REPLACE WHERE day = DATE'2026-01-01' VALUES (DATE'2026-01-01', 8, 'more')",
                leaves_days=[(D1, 8, "more"), (D2, 5, "a")],
            ),
            Example("INSERT INTO {d} REPLACE WHERE id > 1 SELECT 1", refused="InvalidArgument.*partition columns .day."),
            Example("ALTER TABLE {t} ALTER COLUMN city SET DEFAULT 'Rome'"),
            Example("INSERT INTO {t} VALUES (4, DEFAULT), (5, 'DEFAULT')", leaves=[*ALL, (4, "Rome"), (5, "DEFAULT")]),
            Example("INSERT INTO {t} SELECT 1", refused="SchemaMismatch.*1 columns"),
        ),
    ),
    Feature(
        "`COPY INTO t [(columns)] FROM 'path' FILE_FORMAT = (TYPE = CSV | JSON | PARQUET, ...)` `PATTERN`, `FORCE`, `ON_ERROR`, `MISSING = NULL | KEEP | REFUSE`",
        "loads files that the process of `sql` reaches, each once and by a commit of its own: a repeat skips it for as long as "
        "`commit-id.time-retained`. `COPY INTO 'path'` is refused",
        (
            Example("COPY INTO {t} FROM '/none/here' FILE_FORMAT = (TYPE = CSV)", refused="InvalidArgument.*no file or directory"),
            Example("COPY INTO '/tmp/x' FROM {t} FILE_FORMAT = (TYPE = CSV)", refused="InvalidArgument.*df.write"),
        ),
    ),
    Feature(
        "`UPDATE t SET ... WHERE`, `DELETE FROM t WHERE`, `TRUNCATE TABLE t [PARTITION (...)]`",
        "as `table.update` and `table.delete`; of rows with keys Spark computes the new values",
        (
            Example(
                "UPDATE {t} AS x SET city = concat(x.city, '!') WHERE x.id < 3",
                leaves=[(1, "Oslo!"), (2, "Lima!"), (3, None)],
            ),
            Example("DELETE FROM {t} WHERE city IS NULL", leaves=ALL[:2]),
            Example("TRUNCATE TABLE paimon.`{path}`", leaves=[]),
            Example("UPDATE {t} SET", refused="InvalidArgument.*column"),
            Example("UPDATE {t} SET city.x = 'a'", refused="InvalidFilter.*column 'city' of type VARCHAR is not a MAP"),
        ),
    ),
    Feature(
        "`MERGE [WITH SCHEMA EVOLUTION] INTO t USING s ON ... WHEN [NOT] MATCHED [BY SOURCE] [AND ...] THEN ...`",
        "as `table.merge`; `UPDATE SET *`, `INSERT *`, a query or a table as source",
        (
            Example(
                "MERGE INTO {t} a USING (SELECT id + 1 AS id, land FROM {parquet}) b ON a.id = b.id "
                "WHEN MATCHED AND b.land = 'PE' THEN DELETE WHEN MATCHED THEN UPDATE SET a.city = concat(a.city, b.land) "
                "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET city = 'gone'",
                leaves=[(1, "gone"), (2, "LimaNO")],
            ),
            Example(
                "WITH b AS (SELECT id, land FROM {parquet}) MERGE INTO paimon.`{path}` AS date USING b ON date.id = b.id AND date.city = 'Lima' "
                "WHEN MATCHED THEN UPDATE SET date.city = b.land",
                leaves=[(1, "Oslo"), (2, "PE"), (3, None)],
            ),
            Example("MERGE INTO {t} USING {t} ON {t}.id = {t}.id WHEN MATCHED THEN DELETE", refused="InvalidArgument.*both named"),
        ),
    ),
    Feature(
        "`ALTER TABLE t ADD | DROP | RENAME | ALTER COLUMN ...`, `SET | UNSET TBLPROPERTIES`, `DROP PARTITION (...)`",
        "changes the table; the entry in Spark's catalog is recreated",
        (
            Example("ALTER TABLE {t} ADD COLUMNS (n INT COMMENT 'c' AFTER id)"),
            Example("ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT"),
            Example("ALTER TABLE {t} RENAME COLUMN n TO m"),
            Example("SELECT id, m FROM {t} WHERE id = 1", returns=[(1, None)]),
            Example("ALTER TABLE {t} DROP COLUMN m", leaves=ALL),
            Example("ALTER TABLE {t} SET TBLPROPERTIES ('snapshot.num-retained.max' = '20')"),
            Example("ALTER TABLE {d} DROP PARTITION (day = '2026-01-01')", leaves_days=[(D2, 5, "a")]),
            Example("TRUNCATE TABLE {d} PARTITION (day = '2026-01-01')", leaves_days=[(D2, 5, "a")]),
            Example("ALTER TABLE {t} SHRINK", refused="InvalidArgument.*line 1.*ADD COLUMNS"),
        ),
    ),
    Feature(
        "`VERSION AS OF 3`, `VERSION AS OF 'tag'`, `TIMESTAMP AS OF '...'`, `` t$snapshots ``, ``paimon.`/path` ``",
        "in queries and temporary views, of names of every kind",
        (
            Example("CREATE OR REPLACE TEMP VIEW {v} AS SELECT id FROM paimon.`{path}` WHERE id = 2"),
            Example("SELECT * FROM {v}", returns=[(2,)]),
            Example("SELECT count(*) FROM {t} VERSION AS OF 1 WHERE id > 1", returns=[(2,)]),
            Example(
                "WITH a AS (SELECT id FROM paimon.`{path}` TIMESTAMP AS OF '2100-01-01') SELECT b.id FROM a, {t} b WHERE a.id = b.id",
                returns=[(1,), (2,), (3,)],
            ),
            Example("SELECT snapshot_id FROM {t}$snapshots WHERE snapshot_id = 1", returns=[(1,)]),
            Example("SELECT id FROM {t} TIMESTAMP AS OF date_add(current_date(), 2) - INTERVAL '1' HOUR x WHERE x.id = 2", returns=[(2,)]),
        ),
    ),
    Feature(
        "`CREATE [OR REPLACE] VIEW db.v [(columns)] [COMMENT '...'] AS SELECT`, `ALTER VIEW`, `DROP VIEW`, `SHOW VIEWS [IN db]`",
        "views of a REST or Hive catalog, as Paimon's Spark stores them; queries read them, also from one another. Names without a database get the "
        "current one. `SHOW CREATE TABLE` and `DESCRIBE` show them",
        (
            Example("CREATE VIEW {new} AS SELECT id FROM paimon.`{path}`", refused="InvalidArgument.*TEMPORARY VIEW"),
            Example("CREATE OR REPLACE VIEW {new} AS SELECT id FROM paimon.`{path}`", refused="InvalidArgument.*REST or Hive catalog"),
        ),
    ),
    Feature(
        "`SELECT *, __paimon_file_path, __paimon_row_index, __paimon_partition, __paimon_bucket FROM t`, `_ROW_ID`, `_SEQUENCE_NUMBER`",
        "where each row is stored, if they are named: `*` does not have them. Rows of a merge have no file and no index, until they are "
        "compacted; ids are those of `row-tracking.enabled`",
        (
            Example(
                "SELECT *, __paimon_row_index, __paimon_partition.day FROM {d}", returns=[(DAY1, 1, "b", 0, DAY1), (DAY2, 5, "a", 0, DAY2)]
            ),
            Example(
                "SELECT x.* FROM {d} x WHERE x.__paimon_bucket = 0 AND __paimon_file_path LIKE '%day=2026-01-01%'", returns=[(DAY1, 1, "b")]
            ),
            Example("SELECT count(*), max(__paimon_bucket) FROM paimon.`{days}`", returns=[(2, 0)]),
            Example("SELECT a.__paimon_bucket, b.id FROM {d} a JOIN {t} b ON a.id = b.id", returns=[(0, 1)]),
            Example("SELECT * FROM (SELECT __paimon_bucket FROM {d})", refused="InvalidArgument.*name the columns instead of '\\*'"),
            Example("SELECT _ROW_ID FROM {d}", refused="UNRESOLVED_COLUMN"),
        ),
    ),
    Feature(
        "`paimon_incremental_query('t', 1, 3)`, `paimon_incremental_between_timestamp`, `paimon_incremental_to_auto_tag`, `sys.max_pt('t')`",
        "Paimon's functions: in `FROM` the new and changed rows between two snapshots, tags or times, without deletes; the greatest value of the "
        "first partition column, by which files are skipped",
        (
            Example("INSERT INTO {t} VALUES (4, 'Rome')"),
            Example("DELETE FROM {t} WHERE id = 1"),
            Example("SELECT * FROM paimon_incremental_query('{t}', 1, 2)", returns=[(4, "Rome")]),
            Example("SELECT c.id FROM paimon_incremental_query('{path}', '0', '3') c JOIN {t} USING (id) WHERE c.id > 2", returns=[(4,)]),
            Example(
                "SELECT count(*) FROM paimon_incremental_between_timestamp('{t}', '2020-01-01 00:00:00', '2100-01-01 00:00:00')",
                returns=[(1,)],
            ),
            Example("SELECT * FROM paimon_incremental_to_auto_tag('{t}', '2024-01-31')", returns=[]),
            Example("SELECT id FROM {d} WHERE day = sys.max_pt('{d}')", returns=[(5,)]),
            Example("SELECT * FROM paimon_incremental_query('{t}', 1)", refused="InvalidArgument.*takes a table and start, end"),
            Example("SELECT sys.max_pt('{t}')", refused="InvalidArgument.*has no partitions"),
            Example("INSERT INTO {t} VALUES (1, 'Oslo')"),
            Example("DELETE FROM {t} WHERE id = 4", leaves=ALL),
        ),
    ),
    Feature(
        "`CALL sys.compact(table => 'db.t')`, " + ", ".join(f"`{name}`" for name in [*list(PROCEDURES)[1:], *OF_CATALOGS]),
        "Paimon's procedures, arguments by name or in its order",
        (
            Example("CALL sys.create_tag('{t}', 'v1')"),
            Example("SELECT count(*) FROM {t} VERSION AS OF 'v1'", returns=[(3,)]),
            Example("CALL paimon.sys.compact(table => '{path}', compact_strategy => 'full')"),
            Example("CALL sys.remove_orphan_files(table => '{t}', dry_run => true)", returns=[]),
            Example("CALL sys.purge(table => '{t}', where => 'id = 99')", returns=[(True, 0, 0, 1, 2, [])]),
            Example(
                "CALL sys.purge('{t}', 'id = 2', dry_run => true)",
                returns=[(False, 1, 0, 0, None, ["tag 'v1' (1 file)", "snapshot '2' (1 file)"])],
            ),
            Example("CALL sys.compactt('{t}')", refused="InvalidArgument.*did you mean 'compact'"),
            Example("CALL sys.create_tag('{t}', name => 'v1')", refused="InvalidArgument.*takes table, tag, snapshot, time_retained"),
        ),
    ),
    Feature(
        "`ALTER TABLE t CREATE [OR REPLACE] TAG`, `REPLACE TAG`, `RENAME TAG`, `DELETE TAG`, `SHOW TAGS t`, `COMMENT ON TABLE t IS '...'`",
        "`AS OF VERSION 3 RETAIN 7 DAYS` as in Paimon; `COMMENT ON COLUMN t.c`, too",
        (
            Example("ALTER TABLE {t} CREATE TAG v7 RETAIN 7 DAYS"),
            Example("ALTER TABLE {t} RENAME TAG v7 TO v8"),
            Example("SELECT count(*) FROM {t} VERSION AS OF 'v8'", returns=[(3,)]),
            Example("ALTER TABLE {t} DELETE TAG v8"),
            Example("SHOW TAGS {t}", returns=[]),
            Example("ALTER TABLE {t} CREATE TAG v7 RETAIN 7 YEARS", refused="InvalidArgument.*DAYS, HOURS or MINUTES"),
        ),
    ),
    Feature(
        "`SHOW PARTITIONS t [PARTITION (...)]`, `SHOW TBLPROPERTIES t`, `DESCRIBE t`, `DESCRIBE HISTORY t [LIMIT n]`, `ANALYZE TABLE t COMPUTE STATISTICS`",
        "as `table.partitions()`, `options`, `schema`, `history()`, `analyze()`",
        (
            Example("SHOW TBLPROPERTIES {t}", returns=[("bucket", "2")]),
            Example("DESCRIBE paimon.`{path}`", returns=[("id", "bigint", None), ("city", "string", None)]),
            Example("SHOW PARTITIONS {d}"),
            Example("SHOW PARTITIONS {d} PARTITION (day = '2026-01-01')"),
            Example("SHOW PARTITIONS {d} PARTITION (nobody = 1)", refused="UnknownColumn"),
            Example("SHOW PARTITIONS {d} LIKE 'x'", refused="InvalidArgument.*LIKE"),
            Example("DESCRIBE HISTORY {d} LIMIT 1"),
            Example("SET spark.paimon.nonsense = 1", refused="UnsupportedOption.*nonsense"),
            Example("DESCRIBE paimon.`{path}` CITY", returns=[("col_name", "city"), ("data_type", "string"), ("comment", "NULL")]),
            Example("OPTIMIZE {t}", refused=r"InvalidArgument.*CALL sys\.compact"),
            Example("ANALYZE TABLE {t} COMPUTE STATISTICS FOR COLUMNS id"),
        ),
    ),
    Feature(
        "`EXECUTE IMMEDIATE '...' [USING ...]`, `CACHE [LAZY] TABLE c AS SELECT ...`, `SHOW PROCEDURES`, `DESCRIBE DATABASE db`, `sys.all_tables`, "
        "`sys.all_partitions`, `sys.all_table_options`",
        "as in Spark and Paimon. A temporary view comes before a table of its name. The rows of a query are cached, never a table",
        (
            Example("EXECUTE IMMEDIATE 'SELECT city FROM {t} WHERE id = ?' USING 1", returns=[("Oslo",)]),
            Example("SHOW PROCEDURES LIKE 'compact'", returns=[("paimon", "sys", "compact")]),
            Example("DESCRIBE DATABASE db", returns=[("Catalog Name", "paimon"), ("Namespace Name", "db"), ("Tables", "0")]),
            Example("CREATE TABLE db.{new} (id INT)"),
            Example("SELECT database_name, record_count FROM sys.all_tables", returns=[("db", 0)]),
            Example("CACHE TABLE db.{new}", refused="InvalidArgument.*AS TABLE"),
            Example("SELECT * FROM sys.catalog_options", refused="InvalidArgument.*print the Catalog"),
            Example("DROP TABLE db.{new}"),
        ),
    ),
)
"""Through ``pyspark_paimon.sql``, with a catalog that has a database ``db``."""


def docs_table() -> str:
    """The docs' table, markers included."""
    lines = ["<!-- sql:begin -->", "", "| SQL that works | |", "|---|---|"]
    lines += [f"| {feature.shown} | {feature.answer} |" for feature in WORKS]
    lines += ["", "| SQL that Spark does not hand to a Python source | instead |", "|---|---|"]
    lines += [f"| {feature.shown} | {feature.answer} |" for feature in REFUSED]
    lines += ["", "| SQL by `pyspark_paimon.sql(spark, text, catalog=...)` | |", "|---|---|"]
    lines += [f"| {feature.shown} | {feature.answer} |" for feature in OURS]
    return "\n".join([*lines, "", "<!-- sql:end -->"])
