"""The public names, and what importing and using them in process must not import or start."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
import re

import pytest

import fileindex
import lsm
import manifest
import pyspark_paimon
from pyspark_paimon.example import cities
from pyspark_paimon.local import engine as local
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.table import table
from tests.children import run_python

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


@pytest.mark.slow
def test_in_process_work_imports_no_spark_and_starts_no_jvm() -> None:
    done = run_python(IN_PROCESS, flags=("-X", "importtime"))
    imported = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "lsm.write.table_write" in imported
    assert {name for name in imported if name.split(".")[0] in {"pyspark", "py4j", "grpc"}} == set()
    assert done.stdout.strip() == "[]"


def test_importing_the_package_imports_next_to_nothing() -> None:
    code = "import sys, pyspark_paimon; print(sorted({m.split('.')[0] for m in sys.modules} & {'pyarrow', 'numpy', 'pydantic', 'sqlglot', 'pyspark'}))"
    done = run_python(code)
    assert done.stdout.strip() == "[]"


PUBLIC = [name for name in pyspark_paimon.__all__ if name not in {"DefaultSource", "__version__"}]
"""Spark looks for ``DefaultSource`` and pickles it by its own name."""
INTERNAL_ERRORS = {"CorruptIndex", "ResourceMissing", "ResourceTaken", "_Named"}
"""Errors that turn into others before a caller sees them."""


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


def test_the_local_engine_has_every_method_of_the_seam() -> None:
    seam = {name for name in vars(Engine) if not name.startswith("_")}
    assert seam <= {name for kind in local.LocalEngine.__mro__ for name in vars(kind)}


def test_public_methods_of_table_are_documented() -> None:
    parts = [part for part in table.Table.__mro__ if part is not object]
    methods = {name: value for part in parts for name, value in vars(part).items() if not name.startswith("_")}
    expected = {"create", "open", "write", "delete", "compact", "scan", "snapshots", "files", "expire_snapshots", "rewrite_file_index"}
    assert expected <= set(methods)
    assert all((getattr(value, "__func__", value)).__doc__ for value in methods.values())


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_report_the_package_and_pickle_by_reference(name) -> None:
    found = getattr(pyspark_paimon, name)
    assert (found.__module__, found.__qualname__) == ("pyspark_paimon", name)
    assert pickle.loads(pickle.dumps(found)) is found


@pytest.mark.parametrize("name", PUBLIC)
def test_spark_pickles_public_names_by_reference(name) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    found = getattr(pyspark_paimon, name)
    assert cloudpickle.loads(cloudpickle.dumps(found)) is found


def test_a_fresh_process_unpickles_public_classes_and_errors() -> None:
    values = [
        cities().write({"id": [9], "city": ["Bern"], "country": ["CH"], "attrs": [None]}),
        pyspark_paimon.UnknownColumn("citi", ("id", "city")),
    ]
    code = f"import pickle; print(*map(repr, pickle.loads({pickle.dumps(values)!r})), sep='\\n')"
    done = run_python(code)
    assert done.stdout.splitlines() == [repr(value) for value in values]


def test_all_errors_are_public_but_for_a_few() -> None:
    for package in (fileindex, manifest, lsm, pyspark_paimon):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(("__main__", ".demo")) and not module.name.startswith("pyspark_paimon.spark"):
                importlib.import_module(module.name)
    kinds = [pyspark_paimon.PaimonError]
    for kind in kinds:
        kinds += [sub for sub in kind.__subclasses__() if sub not in kinds and not sub.__module__.startswith("tests.")]
    assert {kind.__name__ for kind in kinds if kind.__module__ != "pyspark_paimon"} == INTERNAL_ERRORS
    assert {kind.__name__ for kind in kinds} - INTERNAL_ERRORS <= set(pyspark_paimon.__all__)


def test_classes_that_public_methods_return_are_public() -> None:
    kinds = [pyspark_paimon.Table, pyspark_paimon.Scan, pyspark_paimon.Merge, pyspark_paimon.TableWriter, pyspark_paimon.AnyCatalog]
    methods = [method for kind in kinds for name, method in inspect.getmembers(kind) if not name.startswith("_") and callable(method)]
    named = {name for method in methods for name in re.findall(r"\b(?<!\.)([A-Z]\w+)", str(inspect.signature(method).return_annotation))}
    elsewhere = {
        "Any",
        "DataFrame",
        "Iterator",
        "LazyFrame",
        "None",
        "Path",
        "RecordBatch",
        "RecordBatchReader",
        "Self",
        "ScanPlan",
        "PaimonDataset",
    }
    assert named - elsewhere <= set(pyspark_paimon.__all__)


def test_dir_lists_public_names_only(tmp_path) -> None:
    table = cities()
    with table.writer() as writer:
        written = dir(writer)
    shown = {
        "table": dir(table),
        "scan": dir(table.scan()),
        "writer": written,
        "catalog": dir(pyspark_paimon.Catalog(tmp_path)),
        "merge": dir(table.merge({"id": [1]}, on="id")),
    }
    owners = ["Table", "Scan", "TableWriter", "Catalog", "Merge"]
    for (what, names), owner in zip(shown.items(), owners, strict=True):
        public = [name for name in names if not name.startswith("_")]
        kind = getattr(pyspark_paimon, owner)
        assert all(inspect.getdoc(getattr(kind, name)) for name in public if hasattr(kind, name)), what
        fields = [name for name in public if not hasattr(kind, name)]
        assert fields == (["table_schema"] if what == "scan" else []), what


@pytest.mark.parametrize("module", ["pyspark_paimon", "pyspark_paimon.pandas", "pyspark_paimon.typing"])
def test_dir_of_a_public_module_lists_what_it_exports(module) -> None:
    found = importlib.import_module(module)
    assert dir(found) == sorted(found.__all__)
    assert all(hasattr(found, name) for name in dir(found))


def test_examples_of_public_names_are_tested() -> None:
    """doctest leaves out what says it belongs to another module, unless ``__test__`` lists it."""
    assert table.__test__ == {"Table": pyspark_paimon.Table}
