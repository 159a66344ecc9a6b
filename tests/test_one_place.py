"""One decision, one place: what only one module may look at, so that nobody decides it a second time."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from manifest.options import merge_engine
from manifest.options.merge_engine import ENGINES
from tests.source_tree import MODULES, mentioning, parsed


@cache
def mentioned(path: Path) -> set[str]:
    """Every name that a module reads or imports, and every text of it, docstrings apart."""
    tree = parsed(path)
    found = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    found |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    return found | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_merge_engines_are_told_by_their_traits_not_by_their_names() -> None:
    constants = {name for name, value in vars(merge_engine).items() if value in ENGINES}
    assert len(constants) == len(ENGINES)
    looking = {str(path) for path in mentioning(*ENGINES, *constants) if mentioned(path) & {*ENGINES, *constants}}
    assert looking == {
        "manifest/options/merge_engine.py",  # the names and their traits
        "manifest/options/core_options.py",  # the default
        "manifest/schema/merge_options.py",  # the options of each
        "lsm/merge/function.py",  # the function of each
    }
    asking = {str(path) for path in mentioning("merge_engine") if "merge_engine" in mentioned(path)}
    assert asking <= looking


def test_only_one_module_puts_floats_in_order() -> None:
    """NaN as the greatest value: who compares asks ``sparkexpr.values.float_order``; others may look at NaN to store or show it."""
    turning = {str(path) for path in mentioning("copysign") if "copysign" in mentioned(path)}
    assert turning == {"sparkexpr/values/float_order.py"}
    orders = {"total_order_key", "spark_order_key", "total_order", "spark_order"}
    keyed = {str(path) for path in mentioning(*orders) if orders & defined(path)}
    assert keyed == {"sparkexpr/values/float_order.py"}


def defined(path: Path) -> set[str]:
    return {node.name for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)}


def test_parquets_metadata_is_read_by_the_names_of_its_fields() -> None:
    """``group[1][1][1]``: only ``fields.py`` knows that a field is a pair of its type and value."""
    numbered = set()
    for path in (path for path in MODULES if path.parts[:2] == ("lsm", "parquet")):
        nodes = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Subscript)]
        pairs = [(node.slice, node.value.slice) for node in nodes if isinstance(node.value, ast.Subscript)]
        if any(isinstance(one, ast.Constant) and isinstance(other, ast.Constant) for one, other in pairs):
            numbered.add(path.name)
    assert numbered == {"fields.py"}


def test_only_one_loop_cuts_a_stream_of_batches_at_a_limit() -> None:
    counting = {
        str(path)
        for path in mentioning("-=")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub) and "num_rows" in ast.unparse(node.value)
    }
    assert counting == {"lsm/arrow/limit.py"}


def test_overwrites_and_the_counts_of_compactions_are_the_same_locally_and_on_spark() -> None:
    """Which partitions a static overwrite replaces, and what a compaction has done, is told by ``jobs`` to both engines."""
    homes = {
        "publish_rows": {"pyspark_paimon/local/open_write.py", "pyspark_paimon/spark/driver/commit.py"},
        "compaction_counts": {
            "manifest/commit/file_store_commit.py",
            "lsm/commit/post_commit.py",
            "pyspark_paimon/operations/compact.py",
        },
    }
    for name, expected in homes.items():
        assert {str(path) for path in mentioning(name) if name in mentioned(path)} == expected, name
    overwriting = {
        str(path)
        for path in mentioning(".overwrite(")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "overwrite"
    }
    copying = {"lsm/commit/restore.py", "lsm/commit/rescale.py"}  # the table's own rows, of no partitions that anybody named
    assert overwriting == {"manifest/commit/file_store_commit.py", "pyspark_paimon/jobs/counting.py", *copying}
    counting = {str(path) for path in mentioning("compaction_files") if {"compaction_files", "compact_before"} <= mentioned(path)}
    assert counting == {"manifest/commit/message.py", "pyspark_paimon/jobs/counting.py"}


def test_one_loop_meets_the_conflicts_of_commits() -> None:
    """What an operation does after a lost race is decided by ``Transaction``; Spark's client asks first whether it was lost."""
    catching = {
        str(path)
        for path in mentioning("CommitConflict")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler) and node.type is not None and "CommitConflict" in ast.unparse(node.type)
    }
    assert catching == {"manifest/commit/transaction.py", "pyspark_paimon/spark/client/engine.py"}


PROCESS_WIDE = {
    "gc": {"disable", "enable", "freeze", "set_threshold"},
    "os": {"register_at_fork", "putenv", "unsetenv", "umask"},
    "pa": {"set_cpu_count", "set_io_thread_count", "set_memory_pool"},
    "sys": {"setrecursionlimit", "setswitchinterval"},
}


def test_one_module_changes_settings_of_the_process() -> None:
    """Garbage collector, forks, threads and environment: the reason of each change stands in ``process.py``."""
    changing = set()
    for path in mentioning("os.environ", *(f"{owner}.{name}" for owner, names in PROCESS_WIDE.items() for name in names)):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value)
                changes = node.func.attr in PROCESS_WIDE.get(owner, ()) or (
                    owner == "os.environ" and node.func.attr not in {"get", "items", "copy"}
                )
            else:
                changes = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and ast.unparse(node.value) == "os.environ"
            if changes:
                changing.add(str(path))
    assert changing == {"paimon_base/process.py"}
