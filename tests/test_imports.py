"""What an import costs: a module is loaded where it is first used, so that a process that asks one question does not pay for writing.

The lists name what must not be there; they are why some imports stand inside functions.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.build import keyed
from tests.children import run_python

HEAVY = (
    "duckdb",
    "fastavro",
    "jinja2",
    "obstore",
    "pandas",
    "polars",
    "pyarrow.acero",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pyspark",
    "rich",
    "sqlalchemy",
    "sqlglot",
    "typer",
    "zstandard",
)
OURS = (
    "manifest.commit",
    "manifest.expire",
    "manifest.store",
    "lsm.compaction",
    "lsm.write",
    "lsm.merge",
    "pyspark_paimon.plugins.fsck",
    "lsm.scan",
    "lsm.parquet",
)
FILTERS = ("sparkexpr.expression.functions", "fileindex.predicate.json", "pyspark_paimon.filter.bind", "pyspark_paimon.filter.from_arrow")
RARE = (
    "sparkexpr.variant.decoding",
    "sparkexpr.variant.encoding",
    "sparkexpr.variant.extraction",
    "lsm.aggregate.summary",
    "lsm.keys.order_by",
    "pyspark_paimon.results.fsck_problem",
    "manifest.schema.change",
    "manifest.types.ddl",
    "pyspark_paimon.plugins.page.html",
    "pyspark_paimon.jobs.aggregates",
    "pyspark_paimon.operations",
    "pyspark_paimon.jobs.ordering",
    "pyspark_paimon.results.state_results",
    "pyspark_paimon.views",
)
"""What a table has for calls that few processes make: with it an import took half as long again as that of the libraries that are used."""
WRITING = (
    "manifest.commit",
    "manifest.expire",
    "sparkexpr.variant.decoding",
    "sparkexpr.variant.encoding",
    "pyspark_paimon.plugins.fsck",
    "lsm.compaction",
    "lsm.write",
    "pyspark_paimon.plugins.file_formats.orc.writer",
    "pyspark_paimon.plugins.file_formats.avro.writer",
)
NOT_WRITING = (
    "sparkexpr.variant.decoding",
    "sparkexpr.variant.encoding",
    "pyspark_paimon.plugins.file_formats.avro",
    "lsm.bucket.dynamic",
    "lsm.commit.postponed",
    "lsm.cross_partition",
    "lsm.deletion_vectors.maintainer",
    "lsm.file_index",
    "lsm.merge.aggregation",
    "pyspark_paimon.plugins.file_formats.orc",
    "lsm.parquet.reader",
    "lsm.read.data_file",
    "lsm.scan.planner",
    "lsm.write.append_writer",
    "manifest.expire.rollback",
    "manifest.expire.snapshots",
    "pyspark_paimon.plugins.iceberg",
    "manifest.schema.iceberg_schema",
)
"""A write that compacts nothing reads no rows, and has one kind of table."""
NOT_COMPACTING = ("lsm.compaction", "lsm.levels", "lsm.write.bucket_compaction")
"""Where others compact, nobody asks whether that is due."""


def loaded(code: str, *arguments: str) -> set[str]:
    """The modules that a fresh process has after ``code``."""
    whole = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    return set(json.loads(run_python(whole, *arguments).stdout.splitlines()[-1]))


def found(names: tuple[str, ...], modules: set[str]) -> list[str]:
    return [name for name in names if any(module == name or module.startswith(f"{name}.") for module in modules)]


def test_importing_the_package_loads_no_library() -> None:
    modules = loaded("import pyspark_paimon")
    assert found((*HEAVY, *OURS, "pyarrow", "numpy", "pydantic"), modules) == []


def test_importing_table_loads_neither_what_reads_nor_what_writes() -> None:
    modules = loaded("from pyspark_paimon import Table")
    assert found(HEAVY, modules) == []
    assert found((*OURS, *FILTERS, *RARE), modules) == []


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = keyed(tmp_path_factory.mktemp("imports") / "t", "id BIGINT, city STRING")
    table.write(pa.table({"id": [1, 2], "city": ["Oslo", "Lima"]}))
    return table.path


@pytest.mark.slow
def test_a_scan_loads_nothing_that_writes_compacts_or_checks(path: str) -> None:
    modules = loaded("import sys\nfrom pyspark_paimon import Table\nTable.open(sys.argv[1]).scan().to_arrow()", path)
    assert found(WRITING, modules) == []
    assert found(("duckdb", "jinja2", "polars", "pyarrow.acero", "pyarrow.dataset", "pyspark", "rich", "sqlglot", "typer"), modules) == []


QUESTIONS = """
import sys
import pyspark.sql.worker.create_data_source
from pyspark_paimon.spark.source import PaimonDataSource
for name, arguments in (("request.state.SchemaOf", "{}"), ("request.state.Start", '{"travel": {}}'), ("spark.wire.rpc.AskOutcome", '{"commit_id": "new"}')):
    question = f'{{"name": "{name}", "arguments": {arguments}}}'
    PaimonDataSource({"path": sys.argv[1], "paimon.question": question}).schema()
"""
READING = """
import sys
import pyspark.sql.worker.plan_data_source_read
from pyspark_paimon.spark.source import PaimonDataSource
source = PaimonDataSource({"path": sys.argv[1]})
reader = source.reader(source.schema())
assert sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part)) == 2
"""


@pytest.mark.slow
@pytest.mark.parametrize(("write_only", "unneeded"), [("false", NOT_WRITING), ("true", (*NOT_WRITING, *NOT_COMPACTING))])
def test_a_write_loads_nothing_that_reads_nor_what_other_tables_need(tmp_path: Path, write_only: str, unneeded: tuple[str, ...]) -> None:
    keyed(tmp_path / "t", "id BIGINT, city STRING", {"write-only": write_only})
    code = "import sys, pyarrow as pa\nfrom pyspark_paimon import Table\nTable.open(sys.argv[1]).write(pa.table({'id': [1], 'city': ['Oslo']}))"
    assert found(unneeded, loaded(code, str(tmp_path / "t"))) == []


@pytest.mark.slow
def test_the_process_of_a_spark_question_loads_nothing_that_plans_reads_or_writes(path: str) -> None:
    pytest.importorskip("pyspark.sql.worker")
    modules = loaded(QUESTIONS, path)
    heavy = [name for name in HEAVY if name not in {"pyspark", "fastavro", "zstandard"}]
    assert found((*heavy, *FILTERS, "pyspark.sql.connect"), modules) == []
    rooms = (
        *WRITING,
        *OURS,
        "lsm.read",
        "lsm.scan.planner",
        "lsm.file_index",
        "pyspark_paimon.local.read",
        "pyspark_paimon.operations.compact",
    )
    known = {"manifest.commit", "manifest.store"}  # what finds a commit's snapshot, and what knows where things are
    assert found(tuple(room for room in rooms if room not in known), modules) == []


@pytest.mark.slow
def test_a_spark_task_that_reads_loads_nothing_that_writes_compacts_or_checks(path: str) -> None:
    pytest.importorskip("pyspark.sql.worker")
    modules = loaded(READING, path)
    assert found(WRITING, modules) == []
    assert found(("duckdb", "jinja2", "polars", "pyarrow.acero", "pyarrow.dataset", "rich", "sqlglot", "typer"), modules) == []


@pytest.mark.slow
def test_a_filter_in_sql_loads_only_its_parser_besides(path: str) -> None:
    modules = loaded("import sys\nfrom pyspark_paimon import Table\nTable.open(sys.argv[1]).scan('id = 1').to_arrow()", path)
    assert found(WRITING, modules) == []
    assert found(("duckdb", "jinja2", "polars", "pyarrow.acero", "pyarrow.dataset", "pyspark", "rich", "typer"), modules) == []


ANSWERS = """
table.lookup(["k1", "k5000"]).num_rows == 2
table.lookup([{"key": "none"}]).num_rows == 0
table.scan().to_arrow().num_rows == 9000
table.scan("key = 'k7' AND number < 40").to_arrow().num_rows == 1
table.scan("key IN ('k7', 'k8') AND city LIKE 'Os%' AND price IS NOT NULL").to_arrow().num_rows >= 0
table.scan("number = 7 AND city = 'Oslo'").to_arrow().num_rows == 0
table.scan("number BETWEEN 7 AND 9 OR price > 0.5 OR day = DATE '2024-01-02'", columns=["city"]).to_arrow().num_rows > 0
table.scan("city <> 'Oslo'", order_by="price DESC", limit=3).to_arrow().num_rows == 3
table.scan("number = 7").count() == 90
table.scan("city = 'Oslo'").aggregate({"number": ("sum", "max")}) is not None
table.reader().lookup(["k1"]).num_rows == 1
sum(batch.num_rows for batch in table.scan().to_batches()) == 9000
"""


@pytest.mark.slow
def test_no_answer_loads_pandas_or_fastavro_and_plain_ones_no_parser(tmp_path: Path) -> None:
    """Arrow's conversions would, for a fifth of a second of each process; manifests of few files need no library."""
    created = Table.create(
        tmp_path / "t",
        "key STRING, number INT, price DOUBLE, day DATE, city STRING",
        primary_keys=["key"],
        options={"bucket": "2", "write-only": "true", "file-index.bitmap.columns": "city", "file-index.range-bitmap.columns": "number"},
    )
    rows = {
        "key": [f"k{at}" for at in range(9000)],
        "number": pa.array([at % 100 for at in range(9000)], pa.int32()),
        "price": [at / 9000 for at in range(9000)],
        "day": pa.array([19724 + at % 3 for at in range(9000)], pa.int32()).cast(pa.date32()),
        "city": [["Oslo", "Lima"][at % 2] for at in range(9000)],
    }
    created.write(pa.table(rows))
    for live in (False, True):
        if live:
            created.write(pa.table(rows).slice(100, 2000))
        code = "import sys\nfrom pyspark_paimon import Table\ntable = Table.open(sys.argv[1])\n"
        unneeded = {"pandas", "fastavro", "sqlglot"}
        for answer in ANSWERS.strip().splitlines():
            is_plain = "DATE" not in answer  # all answers after it may use the loaded parser
            unneeded = unneeded if is_plain else unneeded - {"sqlglot"}
            code += f"assert {answer}\nassert not {unneeded} & sys.modules.keys(), {answer!r}\n"
        assert found(("pandas", "fastavro"), loaded(code, str(tmp_path / "t"))) == []


CHANGES = """
table.write(rows).rows
table.write(rows.slice(0, 100)).rows
table.delete("number = 7").rows
table.compact(full=True).snapshot_id
table.write(rows.slice(0, 100)).rows
"""


@pytest.mark.slow
def test_no_change_loads_pandas_or_a_parser(tmp_path: Path) -> None:
    """A first write of few rows would take twice as long. Lists of Python values load it in Arrow, and updates do by ``acero``."""
    Table.create(
        tmp_path / "t",
        "key STRING, number INT, price DOUBLE",
        primary_keys=["key"],
        options={"bucket": "2", "file-index.bloom-filter.columns": "key", "file-index.bitmap.columns": "number"},
    )
    rows = pa.table(
        {"key": [f"k{at}" for at in range(9000)], "number": pa.array([at % 100 for at in range(9000)], pa.int32()), "price": [1.5] * 9000}
    )
    with pa.OSFile(str(tmp_path / "rows.arrow"), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    code = "import sys\nimport pyarrow as pa\nfrom pyspark_paimon import Table\ntable = Table.open(sys.argv[1])\n"
    code += "rows = pa.ipc.open_file(sys.argv[1] + '/../rows.arrow').read_all()\n"
    for change in CHANGES.strip().splitlines():
        code += f"{change}\nassert not {{'pandas', 'sqlglot'}} & sys.modules.keys(), {change!r}\n"
    assert found(("pandas", "sqlglot"), loaded(code, str(tmp_path / "t"))) == []


def test_help_of_the_command_line_loads_no_engine() -> None:
    modules = loaded(
        "import contextlib\nfrom pyspark_paimon.plugins.cli import main\nwith contextlib.suppress(SystemExit):\n    main(['--help'])"
    )
    assert found(("duckdb", "jinja2", "numpy", "pandas", "polars", "pyarrow", "pydantic", "pyspark", "sqlglot"), modules) == []
    assert found((*OURS, *WRITING, "pyspark_paimon.table", "pyspark_paimon.request"), modules) == []
