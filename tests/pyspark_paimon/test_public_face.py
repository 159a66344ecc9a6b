"""The public names, and what importing and using them in process must not import or start."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyspark_paimon
from pyspark_paimon.local import backend as local
from pyspark_paimon.request.executor import Backend
from pyspark_paimon.table import table

ROOT = Path(__file__).parent.parent.parent
IN_PROCESS = """
import tempfile, psutil, pyarrow as pa
from pyspark_paimon import Table
table = Table.create(tempfile.mkdtemp() + "/t", "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "2"})
table.write(pa.table({"id": [1, 2], "city": ["Oslo", "Lima"]}))
table.write(pa.table({"id": [2, 3], "city": ["Rome", "Bonn"]}))
table.compact(full=True)
assert table.scan("city = 'Rome'").to_arrow().to_pylist() == [{"id": 2, "city": "Rome"}]
print([child.name() for child in psutil.Process().children(recursive=True)])
"""


def test_in_process_work_imports_no_spark_and_starts_no_jvm() -> None:
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", IN_PROCESS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    imported = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "lsm.write.table_write" in imported
    assert {name for name in imported if name.split(".")[0] in {"pyspark", "py4j", "grpc"}} == set()
    assert done.stdout.strip() == "[]"


def test_importing_the_package_imports_next_to_nothing() -> None:
    code = "import sys, pyspark_paimon; print(sorted({m.split('.')[0] for m in sys.modules} & {'pyarrow', 'numpy', 'pydantic', 'sqlglot', 'pyspark'}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [name for name in pyspark_paimon.__all__ if name != "DefaultSource"])
def test_every_public_name_is_there_and_documented(name) -> None:
    found = getattr(pyspark_paimon, name)
    assert found.__doc__
    assert name in dir(pyspark_paimon)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Tabel"):
        pyspark_paimon.Tabel  # noqa: B018


def test_every_error_is_a_paimon_error() -> None:
    errors = [getattr(pyspark_paimon, name) for name in pyspark_paimon.__all__ if name != "DefaultSource"]
    errors = [error for error in errors if isinstance(error, type) and issubclass(error, Exception)]
    assert len(errors) > 15
    assert all(issubclass(error, pyspark_paimon.PaimonError) for error in errors)


def test_the_local_backend_has_every_method_of_the_seam() -> None:
    seam = {name for name in vars(Backend) if not name.startswith("_")}
    assert seam <= {name for kind in local.LocalBackend.__mro__ for name in vars(kind)}


def test_public_methods_of_table_are_documented() -> None:
    parts = [part for part in table.Table.__mro__ if part is not object]
    methods = {name: value for part in parts for name, value in vars(part).items() if not name.startswith("_")}
    expected = {"create", "open", "write", "delete", "compact", "scan", "snapshots", "files", "expire_snapshots", "rewrite_file_index"}
    assert expected <= set(methods)
    assert all((getattr(value, "__func__", value)).__doc__ for value in methods.values())
