"""The forms of statements that Paimon's documentation of Spark shows, with statements of our own, in the order in which they run.

``{folder}`` is an empty directory. A form is refused if ``refused`` is set: a pattern of the error. The docs' table comes from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True)
class Form:
    """A documented form.

    refused: Pattern of its error. Empty: it works.
    instead: For the docs: what to do instead of a refused form.
    hidden: Whether the docs leave it out, because it only prepares others.
    """

    page: str
    shown: str
    sql: str
    refused: str = ""
    instead: str = ""
    hidden: bool = False


def _forms(page: str, *forms: tuple[str, ...]) -> list[Form]:
    return [Form(page, *form) for form in forms]


_HIDDEN = "hidden"
FORMS = [
    *_forms(
        "SQL DDL",
        ("`USE paimon.db`", "USE paimon.default"),
        (
            "`CREATE TABLE ... TBLPROPERTIES ('primary-key' = ...)`",
            "CREATE TABLE visits (visitor BIGINT, page STRING, day STRING, hour STRING) TBLPROPERTIES ('primary-key' = 'day,hour,visitor')",
        ),
        (
            "`PARTITIONED BY (day, hour)`",
            (
                "CREATE TABLE parts (visitor BIGINT, page STRING, day STRING, hour STRING) PARTITIONED BY (day, hour) "
                "TBLPROPERTIES ('primary-key' = 'day,hour,visitor', 'bucket' = '1')"
            ),
        ),
        (
            "`CREATE TABLE ... LOCATION '/path'`",
            "CREATE TABLE outside (visitor BIGINT, page STRING) USING paimon TBLPROPERTIES ('primary-key' = 'visitor') LOCATION '{folder}/outside'",
        ),
        ("`CREATE TABLE t LOCATION '/path'` of an existing table", "CREATE TABLE again LOCATION '{folder}/outside'"),
        ("`CREATE TABLE ... AS SELECT`", "CREATE TABLE counted AS SELECT 1 AS visitor, 'a' AS page"),
        ("`... PARTITIONED BY (day) AS SELECT`", "CREATE TABLE by_day PARTITIONED BY (day) AS SELECT * FROM parts"),
        (
            "`... TBLPROPERTIES ('file.format' = 'orc') AS SELECT`",
            "CREATE TABLE as_orc TBLPROPERTIES ('file.format' = 'orc') AS SELECT * FROM counted",
        ),
        (
            "`... TBLPROPERTIES ('primary-key' = ...) AS SELECT`",
            "CREATE TABLE all_of PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'day,hour') AS SELECT * FROM parts",
        ),
        ("`CREATE TABLE t LIKE s`", "CREATE TABLE alike LIKE parts"),
        ("`REPLACE TABLE t (...)`", "REPLACE TABLE counted (visitor INT, words STRING)"),
        ("`CREATE OR REPLACE TABLE t AS SELECT`", "CREATE OR REPLACE TABLE counted AS SELECT 2 AS visitor, 'b' AS words"),
        ("`CREATE TEMPORARY VIEW v AS SELECT`", "CREATE TEMPORARY VIEW paimon_docs_v AS SELECT * FROM visits"),
        ("`CREATE OR REPLACE TEMPORARY VIEW v AS SELECT`", "CREATE OR REPLACE TEMPORARY VIEW paimon_docs_v AS SELECT * FROM visits"),
        (
            "`CREATE VIEW db.v AS SELECT`",
            "CREATE VIEW default.v AS SELECT * FROM visits",
            "InvalidArgument.*CREATE TEMPORARY VIEW",
            "a REST or Hive catalog has views; without one `CREATE TEMPORARY VIEW`",
        ),
        ("`DROP VIEW v`", "DROP VIEW paimon_docs_v"),
    ),
    *_forms(
        "SQL Write",
        ("`INSERT INTO t VALUES`", "INSERT INTO visits VALUES (1, 'home', '2026-01-01', '07'), (2, 'shop', '2026-01-02', '08')"),
        ("`INSERT INTO t SELECT`", "INSERT INTO parts SELECT * FROM visits"),
        ("`INSERT INTO t (columns)`", "INSERT INTO visits (visitor, day, hour) VALUES (3, '2026-01-02', '09')"),
        ("`INSERT OVERWRITE t SELECT`", "INSERT OVERWRITE by_day SELECT * FROM parts"),
        ("`INSERT OVERWRITE t PARTITION (k = v)`", "INSERT OVERWRITE parts PARTITION (day = '2026-01-01', hour = '07') SELECT 9L, 'cart'"),
        ("`INSERT OVERWRITE t PARTITION (k)`", "INSERT OVERWRITE by_day PARTITION (day) SELECT visitor, page, day, hour FROM parts"),
        ("`SET spark.sql.sources.partitionOverwriteMode = dynamic`", "SET spark.sql.sources.partitionOverwriteMode = dynamic"),
        ("dynamic `INSERT OVERWRITE`", "INSERT OVERWRITE by_day SELECT * FROM parts WHERE day = '2026-01-02'"),
        ("", "RESET spark.sql.sources.partitionOverwriteMode", "", "", _HIDDEN),
        ("`UPDATE t SET c = v WHERE`", "UPDATE visits SET page = 'new' WHERE visitor = 1"),
        (
            "",
            (
                "CREATE TABLE people (id INT, s STRUCT<c1: INT, c2: STRING>, l ARRAY<STRUCT<f1: STRING, f2: INT>>, m MAP<INT, STRUCT<f1: STRING, f2: INT>>, "
                "name STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"
            ),
            "",
            "",
            _HIDDEN,
        ),
        ("", "INSERT INTO people (id, s, name) VALUES (1, named_struct('c1', 1, 'c2', 'a'), 'x')", "", "", _HIDDEN),
        ("`UPDATE t SET s.field = v`", "UPDATE people SET s.c2 = 'b' WHERE s.c1 = 1"),
        (
            "`MERGE INTO ... UPDATE SET t.s.field = v`",
            "MERGE INTO people t USING (SELECT 1 AS id, 'c' AS new) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET t.s.c2 = q.new, t.s.c1 = q.id",
        ),
        ("`DELETE FROM t WHERE`", "DELETE FROM visits WHERE visitor = 2"),
        ("", "CREATE TABLE target (a INT, b INT, c STRING) TBLPROPERTIES ('primary-key' = 'a', 'bucket' = '1')", "", "", _HIDDEN),
        ("", "CREATE TABLE source AS SELECT 1 AS a, 2 AS b, 'c9' AS c", "", "", _HIDDEN),
        (
            "`MERGE INTO ... UPDATE SET * ... INSERT *`",
            "MERGE INTO target USING source ON target.a = source.a WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        ),
        (
            "`MERGE INTO` with conditions, `DELETE`, `INSERT (columns) VALUES`",
            (
                "MERGE INTO target USING source ON target.a = source.a WHEN MATCHED AND target.a = 5 THEN UPDATE SET b = source.b + target.b "
                "WHEN MATCHED AND source.c > 'd' THEN UPDATE SET * WHEN MATCHED THEN DELETE "
                "WHEN NOT MATCHED AND c > 'c9' THEN INSERT (a, b, c) VALUES (a, b * 2, c) WHEN NOT MATCHED THEN INSERT *"
            ),
        ),
        (
            "`MERGE WITH SCHEMA EVOLUTION INTO ...`",
            (
                "MERGE WITH SCHEMA EVOLUTION INTO target USING (SELECT 7 AS a, 8 AS b, 'c7' AS c, 9 AS e) q ON target.a = q.a "
                "WHEN NOT MATCHED THEN INSERT *"
            ),
        ),
        ("`SET spark.paimon.write.merge-schema = true`", "SET `spark.paimon.write.merge-schema` = true"),
        ("`INSERT INTO t BY NAME` with new columns", "INSERT INTO target BY NAME SELECT 3 AS a, '3' AS c, 4 AS d"),
        ("", "RESET `spark.paimon.write.merge-schema`", "", "", _HIDDEN),
        ("`TRUNCATE TABLE t`", "TRUNCATE TABLE target"),
        (
            "`COPY INTO t FROM 'path' FILE_FORMAT = (TYPE = CSV)`",
            "COPY INTO target (a, c) FROM '{folder}/csv' FILE_FORMAT = (TYPE = CSV, SKIP_HEADER = 1)",
        ),
        (
            "`... PATTERN = '...' FORCE = TRUE ON_ERROR = CONTINUE`",
            (
                "COPY INTO target (a, c) FROM '{folder}/csv' FILE_FORMAT = (TYPE = CSV, SKIP_HEADER = 1, FIELD_DELIMITER = ',', NULL_IF = ('NULL', '\\\\N')) "
                "PATTERN = '.*\\\\.csv' FORCE = TRUE ON_ERROR = CONTINUE"
            ),
        ),
        (
            "`... FILE_FORMAT = (TYPE = JSON)`, `PARQUET`",
            "COPY INTO target FROM '{folder}/json' FILE_FORMAT = (TYPE = JSON, MULTI_LINE = TRUE)",
        ),
        (
            "`COPY INTO 'path' FROM t`",
            "COPY INTO '{folder}/out' FROM target FILE_FORMAT = (TYPE = CSV, HEADER = TRUE) OVERWRITE = TRUE",
            "InvalidArgument.*df.write",
            "`df.write.format('csv').save(path)`, or the command `scan TABLE --output FILE`",
        ),
    ),
    *_forms(
        "SQL Query",
        ("`SELECT * FROM t`", "SELECT * FROM visits"),
        (
            "`__paimon_file_path`, `__paimon_partition`, `__paimon_bucket`, `__paimon_row_index`",
            "SELECT *, __paimon_file_path, __paimon_partition, __paimon_bucket, __paimon_row_index FROM by_day",
        ),
        ("`VERSION AS OF 1`", "SELECT * FROM visits VERSION AS OF 1"),
        ("`TIMESTAMP AS OF '2100-01-01 00:00:00.123'`", "SELECT * FROM visits TIMESTAMP AS OF '2100-01-01 00:00:00.123'"),
        ("`TIMESTAMP AS OF 4102444800`", "SELECT * FROM visits TIMESTAMP AS OF 4102444800"),
        ("", "CALL sys.create_tag(table => 'visits', tag => 'my-tag', snapshot => 1)", "", "", _HIDDEN),
        ("`VERSION AS OF 'my-tag'`", "SELECT * FROM visits VERSION AS OF 'my-tag'"),
        (
            "`VERSION AS OF 'watermark-...'`",
            "SELECT * FROM visits VERSION AS OF 'watermark-1678883047356'",
            "SnapshotNotFound.*watermark",
            "works where snapshots have watermarks, which writers of this package do not make",
        ),
        ("`paimon_incremental_query('t', 1, 2)`", "SELECT * FROM paimon_incremental_query('visits', 1, 2)"),
        (
            "`paimon_incremental_between_timestamp('t', '...', '...')`",
            "SELECT * FROM paimon_incremental_between_timestamp('visits', '2025-03-12 00:00:00', '2100-01-01 00:00:00')",
        ),
        ("`paimon_incremental_to_auto_tag('t', '2024-12-04')`", "SELECT * FROM paimon_incremental_to_auto_tag('visits', '2024-12-04')"),
        ("`sys.max_pt('t')`", "SELECT * FROM by_day WHERE day = sys.max_pt('by_day')"),
        (
            "`sys.path_to_descriptor`, `sys.descriptor_to_string`",
            "SELECT sys.path_to_descriptor('file:///x')",
            "UNRESOLVED_ROUTINE|path_to_descriptor",
            "BLOB values are read and written whole, not by descriptors",
        ),
    ),
    *_forms(
        "Altering Tables",
        ("`SET TBLPROPERTIES`", "ALTER TABLE visits SET TBLPROPERTIES ('write-buffer-size' = '256 MB')"),
        ("`UNSET TBLPROPERTIES`", "ALTER TABLE visits UNSET TBLPROPERTIES ('write-buffer-size')"),
        ("`SET TBLPROPERTIES ('comment' = ...)`", "ALTER TABLE visits SET TBLPROPERTIES ('comment' = 'table comment')"),
        ("`UNSET TBLPROPERTIES ('comment')`", "ALTER TABLE visits UNSET TBLPROPERTIES ('comment')"),
        ("`RENAME TO new`", "ALTER TABLE as_orc RENAME TO in_orc"),
        ("`ADD COLUMNS (...)`", "ALTER TABLE visits ADD COLUMNS (c1 INT, c2 STRING)"),
        ("`ADD COLUMN s.f3`", "ALTER TABLE people ADD COLUMN s.f3 STRING"),
        ("`ADD COLUMN l.element.f3`", "ALTER TABLE people ADD COLUMN l.element.f3 STRING"),
        ("`ADD COLUMN m.value.f3`", "ALTER TABLE people ADD COLUMN m.value.f3 STRING"),
        ("`RENAME COLUMN c0 TO c1`", "ALTER TABLE visits RENAME COLUMN c2 TO c3"),
        ("`RENAME COLUMN s.f1 TO f100`, `l.element.f1`, `m.value.f1`", "ALTER TABLE people RENAME COLUMN l.element.f1 to f100"),
        ("`DROP COLUMNS (...)`", "ALTER TABLE visits DROP COLUMNS (c1, c3)"),
        ("`DROP COLUMN s.f3`, `l.element.f3`, `m.value.f3`", "ALTER TABLE people DROP COLUMN m.value.f3"),
        ("`DROP PARTITION (...)`", "ALTER TABLE parts DROP PARTITION (day = '2026-01-02', hour = '08')"),
        ("`ALTER COLUMN c COMMENT`", "ALTER TABLE visits ALTER COLUMN page COMMENT 'what was seen'"),
        ("`ADD COLUMN c INT FIRST`", "ALTER TABLE visits ADD COLUMN c INT FIRST"),
        ("`ADD COLUMN c INT AFTER b`", "ALTER TABLE visits ADD COLUMN d INT AFTER page"),
        ("`ALTER COLUMN c FIRST`, `AFTER`", "ALTER TABLE visits ALTER COLUMN c AFTER d"),
        ("`ALTER COLUMN c TYPE`", "ALTER TABLE visits ALTER COLUMN c TYPE DOUBLE"),
        ("`ALTER COLUMN s.f2 TYPE`, `l.element.f2`, `m.value.f2`", "ALTER TABLE people ALTER COLUMN l.element.f2 TYPE BIGINT"),
        (
            "`ALTER DATABASE db SET DBPROPERTIES`",
            "ALTER DATABASE more SET DBPROPERTIES ('team' = 'a')",
            "SCHEMA_NOT_FOUND",
            "a database of directories has no properties; `RestCatalog.alter_database`",
        ),
        (
            "`ALTER DATABASE db SET LOCATION`",
            "ALTER DATABASE more SET LOCATION '{folder}/more'",
            "SCHEMA_NOT_FOUND",
            "a database is the directory `db.db` of the warehouse",
        ),
    ),
    *_forms(
        "SQL DDL: Tags",
        ("`ALTER TABLE t CREATE TAG`", "ALTER TABLE visits CREATE TAG `TAG-1`"),
        ("`CREATE TAG IF NOT EXISTS`", "ALTER TABLE visits CREATE TAG IF NOT EXISTS `TAG-1`"),
        ("`CREATE TAG ... RETAIN 7 DAYS`", "ALTER TABLE visits CREATE TAG `TAG-2` RETAIN 7 DAYS"),
        ("`CREATE TAG ... AS OF VERSION 1`", "ALTER TABLE visits CREATE TAG `TAG-3` AS OF VERSION 1"),
        ("`REPLACE TAG ... AS OF VERSION 2 RETAIN 24 HOURS`", "ALTER TABLE visits REPLACE TAG `TAG-3` AS OF VERSION 2 RETAIN 24 HOURS"),
        ("`CREATE OR REPLACE TAG`", "ALTER TABLE visits CREATE OR REPLACE TAG `TAG-5` AS OF VERSION 2 RETAIN 24 HOURS"),
        ("`RENAME TAG`", "ALTER TABLE visits RENAME TAG `TAG-1` TO `TAG-6`"),
        ("`SHOW TAGS t`", "SHOW TAGS visits"),
        ("`DELETE TAG 'a,b'`", "ALTER TABLE visits DELETE TAG `TAG-6,TAG-2`"),
        ("`DELETE TAG IF EXISTS`", "ALTER TABLE visits DELETE TAG IF EXISTS `TAG-1`"),
    ),
    *_forms(
        "Default Value",
        ("`c INT DEFAULT 5`", "CREATE TABLE defaults (a BIGINT, b STRING DEFAULT 'my_value', c INT DEFAULT 5)"),
        (
            "`DEFAULT ARRAY(...)`, `MAP(...)`, `STRUCT(...)`",
            "CREATE TABLE nested_defaults (a BIGINT, tags ARRAY<STRING> DEFAULT ARRAY('tag1', 'tag2'))",
            "InvalidArgument",
            "defaults are of plain types",
        ),
        ("`INSERT INTO t (a)`", "INSERT INTO defaults (a) VALUES (1), (2)"),
        ("`VALUES (..., DEFAULT)`", "INSERT INTO defaults VALUES (3, DEFAULT, DEFAULT)"),
        ("`ALTER COLUMN b SET DEFAULT 3`", "ALTER TABLE defaults ALTER COLUMN c SET DEFAULT 3"),
        (
            "`ALTER COLUMN tags SET DEFAULT ARRAY(...)`",
            "ALTER TABLE people ALTER COLUMN l SET DEFAULT ARRAY()",
            "InvalidArgument|InvalidSchema",
            "defaults are of plain types",
        ),
    ),
    *_forms(
        "Auxiliary Statements",
        ("`SET spark.paimon.<option>`", "SET spark.paimon.file.block-size = 512M"),
        ("`RESET spark.paimon.<option>`", "RESET spark.paimon.file.block-size"),
        ("`SET spark.paimon.*.db.t.<option>`", "SET `spark.paimon.*.default.visits.scan.snapshot-id` = 1"),
        ("a read with it", "SELECT * FROM default.visits"),
        ("", "RESET `spark.paimon.*.default.visits.scan.snapshot-id`", "", "", _HIDDEN),
        ("`DESCRIBE TABLE t`", "DESCRIBE TABLE visits"),
        ("`DESCRIBE TABLE EXTENDED t`", "DESCRIBE TABLE EXTENDED visits"),
        ("`SHOW CREATE TABLE t`", "SHOW CREATE TABLE visits"),
        ("`SHOW COLUMNS FROM t`", "SHOW COLUMNS FROM visits"),
        ("`SHOW PARTITIONS t [PARTITION (...)]`", "SHOW PARTITIONS by_day PARTITION (day = '2026-01-02')"),
        ("`SHOW TABLE EXTENDED IN db LIKE '...'`", "SHOW TABLE EXTENDED IN default LIKE 'vis*'"),
        ("`SHOW TABLE EXTENDED ... PARTITION (...)`", "SHOW TABLE EXTENDED IN default LIKE 'by_day' PARTITION (day = '2026-01-02')"),
        ("`SHOW VIEWS`", "SHOW VIEWS"),
        ("`SHOW VIEWS LIKE '...'`", "SHOW VIEWS LIKE 'test*'"),
        ("`ANALYZE TABLE t COMPUTE STATISTICS`", "ANALYZE TABLE visits COMPUTE STATISTICS"),
        ("`... FOR COLUMNS c`", "ANALYZE TABLE visits COMPUTE STATISTICS FOR COLUMNS visitor"),
        ("`... FOR ALL COLUMNS`", "ANALYZE TABLE visits COMPUTE STATISTICS FOR ALL COLUMNS"),
        ("`REFRESH TABLE t`", "REFRESH TABLE visits"),
    ),
    *_forms(
        "Procedures",
        (
            "`compact` with `partitions`, `order_strategy`, `order_by`",
            "CALL sys.compact(table => 'by_day', partitions => 'day=2026-01-01;day=2026-01-02', order_strategy => 'zorder', order_by => 'visitor,page')",
        ),
        (
            "`compact` with `where`, `options`",
            "CALL sys.compact(table => 'by_day', where => \"day > '2025' and day < '2027'\", options => 'target-file-size=128m')",
        ),
        (
            "`compact` with `partition_idle_time`",
            "CALL sys.compact(table => 'parts', partition_idle_time => '60s')",
            "InvalidArgument.*no argument 'partition_idle_time'",
            "name the partitions in `partitions` or `where`",
        ),
        ("`compact` with `compact_strategy`", "CALL sys.compact(table => 'parts', compact_strategy => 'minor')"),
        (
            "`compact_database`",
            (
                "CALL sys.compact_database(including_databases => 'default', including_tables => '.*', excluding_tables => '.*visits', "
                "options => 'target-file-size=128m')"
            ),
        ),
        (
            "`expire_snapshots` with `retain_max`, `options`",
            "CALL sys.expire_snapshots(table => 'default.parts', retain_max => 10, options => 'snapshot.expire.limit=1')",
        ),
        ("`expire_snapshots`", "CALL sys.expire_snapshots(table => 'default.parts', retain_max => 10, max_deletes => 1)"),
        (
            "`expire_partitions`",
            (
                "CALL sys.expire_partitions(table => 'default.parts', expiration_time => '9000 d', timestamp_formatter => 'yyyy-MM-dd', "
                "timestamp_pattern => '$day', expire_strategy => 'values-time')"
            ),
        ),
        ("`create_tag`", "CALL sys.create_tag(table => 'default.visits', tag => 'my_tag', snapshot => 2, time_retained => '1 d')"),
        (
            "`create_tag_from_timestamp`",
            "CALL sys.create_tag_from_timestamp(`table` => 'default.visits', `tag` => 'timed', `timestamp` => 1724404318750, time_retained => '1 d')",
        ),
        ("`rename_tag`", "CALL sys.rename_tag(table => 'default.visits', tag => 'my_tag', target_tag => 'tag2')"),
        ("`replace_tag`", "CALL sys.replace_tag(table => 'default.visits', tag => 'tag2', snapshot => 1, time_retained => '1 d')"),
        ("`delete_tag`", "CALL sys.delete_tag(table => 'default.visits', tag => 'tag2')"),
        ("`expire_tags`", "CALL sys.expire_tags(table => 'default.visits', older_than => '2024-09-06 11:00:00')"),
        (
            "`trigger_tag_automatic_creation`",
            "CALL sys.trigger_tag_automatic_creation(table => 'default.visits')",
            "UnsupportedOption.*tag.automatic-creation",
            "works for tables with `tag.automatic-creation`",
        ),
        ("`rollback` with `version`, `tag`, `snapshot`", "CALL sys.rollback(table => 'default.by_day', version => 1)"),
        ("`rollback_to_timestamp`", "CALL sys.rollback_to_timestamp(table => 'default.by_day', timestamp => 4102444800000)"),
        (
            "`rollback_to_watermark`",
            "CALL sys.rollback_to_watermark(table => 'default.by_day', watermark => 1730292023000)",
            "SnapshotNotFound",
            "works where snapshots have watermarks",
        ),
        ("`remove_orphan_files`", "CALL sys.remove_orphan_files(table => 'default.visits', older_than => '2023-10-31 12:00:00')"),
        (
            "`remove_orphan_files` with `dry_run`, `parallelism`, `mode`, of a database",
            "CALL sys.remove_orphan_files(table => 'default.*', older_than => '2023-10-31 12:00:00', dry_run => true, parallelism => 5, mode => 'local')",
        ),
        ("`remove_unexisting_files`", "CALL sys.remove_unexisting_files(table => 'default.visits', dry_run => true)"),
        (
            "`repair`",
            "CALL sys.repair('default.visits')",
            "InvalidArgument.*'repair' is not supported",
            "repairs a Hive metastore; the command `fsck --repair` repairs a table",
        ),
        ("`repair_earliest_snapshot`", "CALL sys.repair_earliest_snapshot(table => 'default.visits', snapshot_id => 1)"),
        ("`create_branch`", "CALL sys.create_branch(table => 'default.visits', branch => 'test_branch')"),
        ("`create_branch` with `tag`", "CALL sys.create_branch(table => 'default.visits', branch => 'of_tag', tag => 'my-tag')"),
        ("`rename_branch`", "CALL sys.rename_branch(table => 'default.visits', from_branch => 'test_branch', to_branch => 'new_branch')"),
        ("`delete_branch`", "CALL sys.delete_branch(table => 'default.visits', branch => 'new_branch')"),
        ("`fast_forward`", "CALL sys.fast_forward(table => 'default.visits', branch => 'of_tag')"),
        (
            "`merge_branch`",
            "CALL sys.merge_branch(table => 'default.visits', source_branch => 'of_tag')",
            "InvalidArgument.*'merge_branch' is not supported",
            "not in Paimon 1.4; write the rows of the branch, or `fast_forward`",
        ),
        ("`reset_consumer`", "CALL sys.reset_consumer(table => 'default.visits', consumerId => 'myid', nextSnapshotId => 10)"),
        (
            "`clear_consumers`",
            "CALL sys.clear_consumers(table => 'default.visits', includingConsumers => 'my.*', excludingConsumers => 'x.*')",
        ),
        ("`mark_partition_done`", "CALL sys.mark_partition_done(table => 'default.parts', partitions => 'day=2026-01-01,hour=07')"),
        ("`compact_manifest`", "CALL sys.compact_manifest(`table` => 'default.visits')"),
        ("`rewrite_file_index` with `where`", "CALL sys.rewrite_file_index(table => 'by_day', where => \"day = '2026-01-02'\")"),
        ("`copy` with `where`", "CALL sys.copy(source_table => 'by_day', target_table => 'by_day_copy', where => \"day = '2026-01-02'\")"),
        ("`rescale`", "CALL sys.rescale(table => 'default.parts', bucket_num => 2)"),
        ("`purge_files`", "CALL sys.purge_files(table => 'default.by_day_copy')"),
        (
            "`alter_view_dialect`",
            "CALL sys.alter_view_dialect('default.v', 'add', 'spark', 'SELECT 1')",
            "UnsupportedOption.*has no views",
            "a REST or Hive catalog has views",
        ),
        *(
            (f"`{name}`", f"CALL sys.{name}(table => 'default.visits')", f"InvalidArgument.*'{name}' is not supported", instead)
            for name, instead in (
                ("materialize_deletion_vectors", "`compact` does it"),
                ("compact_chain_table", "chain tables are not supported"),
                ("migrate_table", "write the rows: `df.write.format('paimon').save(path)`"),
                ("migrate_database", "write the rows of each table"),
                ("create_function", "functions belong to Spark: `CREATE FUNCTION`"),
                ("alter_function", "functions belong to Spark"),
                ("drop_function", "functions belong to Spark: `DROP FUNCTION`"),
                ("create_global_index", "file indexes: options `file-index.*`, then `rewrite_file_index`"),
                ("drop_global_index", "file indexes: `table.drop_index`"),
                ("reassign_row_id", "row ids are never assigned again"),
            )
        ),
    ),
]


def docs_table() -> str:
    """The docs' tables, markers included."""
    lines = ["<!-- forms:begin -->"]
    shown = [form for form in FORMS if form.shown]
    for page, forms in groupby(shown, lambda form: form.page):
        lines += ["", f"| {page} | |", "|---|---|"]
        lines += [f"| {form.shown} | {f'refused: {form.instead}' if form.refused else 'works'} |" for form in forms]
    refused = sum(bool(form.refused) for form in shown)
    lines += ["", f"{len(shown)} forms: {len(shown) - refused} work, {refused} are refused.", "", "<!-- forms:end -->"]
    return "\n".join(lines)
