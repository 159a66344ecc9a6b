"""``make check`` runs the tests that a change can break, the nearest first, and names those it leaves out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.check import selection
from tests.check.import_graph import ImportGraph
from tests.check.selection import FOLDERS, changed_files, distances_of_tests, select

ROOT = Path(__file__).parents[2]
TREE = {
    "lsm/__init__.py": "",
    "lsm/keys.py": "def key():\n    pass\n",
    "lsm/merge.py": "from lsm.keys import key\n",
    "lsm/page.html": "<p>",
    "pyspark_paimon/__init__.py": "from lsm.merge import key\nfrom pyspark_paimon.pages import page\n",
    "pyspark_paimon/pages.py": '"""\n>>> 1\n1\n"""\n',
    "pyspark_paimon/late.py": 'load("pyspark_paimon.pages")\n',
    "pyspark_paimon/any.py": 'load(f"pyspark_paimon.{name}")\n',
    "tests/__init__.py": "",
    "tests/kit.py": "import lsm.keys\n",
    "tests/lsm/conftest.py": "from tests.kit import lsm\n",
    "tests/lsm/test_keys.py": "from lsm.keys import key\n",
    "tests/lsm/test_merge.py": "from lsm.merge import key\n",
    "tests/test_docs.py": "",
    "tests/test_kit.py": "from tests import kit\n",
    "tests/test_public.py": "from pyspark_paimon import page\n",
    "tests/test_alone.py": "import json  # page.html\n",
    "tests/spark/test_far.py": "import lsm.keys\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_direct_importers_are_nearer_than_transitive_ones(tree: Path) -> None:
    distances = distances_of_tests(tree, ["lsm/keys.py"])
    assert distances == {
        "tests/lsm/test_keys.py": 1,
        "tests/lsm/test_merge.py": 2,
        "tests/test_kit.py": 2,
    }


def test_a_conftest_counts_as_imported_by_the_tests_below_it(tree: Path) -> None:
    assert distances_of_tests(tree, ["tests/lsm/conftest.py"]) == {"tests/lsm/test_keys.py": 1, "tests/lsm/test_merge.py": 1}


def test_a_changed_test_module_comes_first(tree: Path) -> None:
    assert distances_of_tests(tree, ["tests/test_alone.py"]) == {"tests/test_alone.py": 0}


def test_names_of_a_package_lead_to_their_home_only(tree: Path) -> None:
    assert "tests/test_public.py" not in distances_of_tests(tree, ["lsm/merge.py"])
    assert distances_of_tests(tree, ["pyspark_paimon/pages.py"]) == {"pyspark_paimon/pages.py": 0, "tests/test_public.py": 1}
    assert "tests/test_public.py" in distances_of_tests(tree, ["pyspark_paimon/__init__.py"])


def test_modules_imported_by_name_when_the_code_runs_are_found(tree: Path) -> None:
    imports = ImportGraph.read(tree, FOLDERS).imports
    assert "pyspark_paimon.pages" in imports["pyspark_paimon.late"]
    assert {"pyspark_paimon.pages", "pyspark_paimon.late"} <= imports["pyspark_paimon.any"]


def test_a_file_that_is_no_module_counts_as_the_modules_beside_it(tree: Path) -> None:
    distances = distances_of_tests(tree, ["lsm/page.html"])
    assert distances["tests/test_alone.py"] == 1, "it mentions the file"
    assert distances["tests/lsm/test_keys.py"] == 1


def test_importers_of_a_deleted_module_are_chosen(tree: Path) -> None:
    (tree / "lsm/keys.py").unlink()
    assert "tests/lsm/test_keys.py" in distances_of_tests(tree, ["lsm/keys.py"])


def test_a_changed_page_runs_the_docs(tree: Path) -> None:
    assert distances_of_tests(tree, ["docs/page.md"]) == {"tests/test_docs.py": 1}


def test_the_nearest_modules_fill_the_budget_and_the_others_are_named() -> None:
    distances = {"tests/far.py": 3, "tests/slow.py": 1, "tests/lsm/mirror.py": 1, "tests/quick.py": 1}
    seconds = {"tests/slow.py": 50.0, "tests/lsm/mirror.py": 20.0, "tests/quick.py": 5.0, "tests/far.py": 10.0}
    selection = select(distances, seconds, ["lsm/keys.py"], 40)
    assert list(selection.chosen) == ["tests/lsm/mirror.py", "tests/quick.py", "tests/far.py"]
    assert list(selection.left_out) == ["tests/slow.py"]
    assert selection.seconds == 35


def test_the_nearest_module_is_chosen_whatever_it_costs() -> None:
    assert list(select({"tests/slow.py": 0}, {"tests/slow.py": 500.0}, [], 40).chosen) == ["tests/slow.py"]


def test_changes_are_counted_from_the_merge_base(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    (tmp_path / "kept.py").write_text("")
    git("add", ".")
    git("commit", "-qm", "one")
    git("checkout", "-qb", "work")
    (tmp_path / "committed.py").write_text("")
    git("add", ".")
    git("commit", "-qm", "two")
    (tmp_path / "untracked.py").write_text("")
    assert changed_files(tmp_path, "main") == ["committed.py", "untracked.py"]
    (tmp_path / "kept.py").write_text("x = 2\n")
    assert changed_files(tmp_path, "main") == ["committed.py", "kept.py", "untracked.py"]
    assert changed_files(tmp_path, "no such branch") == ["kept.py", "untracked.py"]


@pytest.mark.slow
@pytest.mark.parametrize("folders", [("lsm", "tests/lsm"), pytest.param(FOLDERS, marks=pytest.mark.long)], ids=["part", "all"])
def test_the_graph_of_this_tree_reaches_the_tests_of_a_module(folders: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "FOLDERS", folders)
    distances = distances_of_tests(ROOT, ["lsm/keys/order_by.py"])
    assert distances["tests/lsm/keys/test_order_by.py"] == 1
    assert distances.get("tests/test_import_direction.py") == (1 if folders == FOLDERS else None)
    assert max(distances.values()) > 3
