"""Processes that tests start do the same in every shell."""

from __future__ import annotations

import ast

import pytest

from tests.children import ROOT, child_environment, run_python


def test_children_lack_what_tests_over_spark_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_TESTING", "1")
    monkeypatch.setenv("PAIMON_TEST_SET", "kept")
    code = "import os; print(os.environ.get('SPARK_TESTING'), os.environ['PAIMON_TEST_SET'], os.environ['PAIMON_TEST_MORE'])"
    assert run_python(code, variables={"PAIMON_TEST_MORE": "more"}).stdout == "None kept more\n"
    assert "SPARK_TESTING" not in child_environment()


def test_a_child_that_fails_shows_why() -> None:
    with pytest.raises(AssertionError, match="out of paint"):
        run_python("raise SystemExit('out of paint')")
    assert run_python("raise SystemExit(3)", check=False).returncode == 3


def test_code_in_process_tests_runs_by_run_python() -> None:
    """``subprocess.run([sys.executable, "-c", ...])`` would inherit the shell's variables, unless it says which it has."""
    in_process = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path.relative_to(ROOT).parts[1] not in {"spark", "interop"}]
    bare = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in in_process
        if "subprocess.run(" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "subprocess.run" and _runs_code(node)
    ]
    assert bare == []


def _runs_code(call: ast.Call) -> bool:
    command = call.args[0] if call.args else None
    if not isinstance(command, ast.List) or any(keyword.arg == "env" for keyword in call.keywords):
        return False
    words = [ast.unparse(word) for word in command.elts]
    return words[:1] == ["sys.executable"] and "'-c'" in words
