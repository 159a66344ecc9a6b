"""The scripts of ``examples`` run and print what they promise."""

from __future__ import annotations

import json

import pytest

from tests.children import ROOT, run_python

PRINTED = {
    "change_events.py": "{'item': 'bolt', 'price': 12, '_row_kind': '+U'}",
    "indexed_filters.py": "key candidates                       1  100,000",
    "partial_update.py": "[{'id': 1, 'amount': 9.5, 'address': 'Oslo'}, {'id': 2, 'amount': 20.0, 'address': None}]",
    "quickstart.py": "[{'id': 2, 'name': 'Grace', 'city': 'Arlington'}]",
    "time_travel.py": "[{'item': 'bolt', 'count': 10}, {'item': 'nut', 'count': 20}]",
}


def test_each_example_is_tested() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == PRINTED.keys()


ALL = """
import contextlib, io, json, runpy, sys
printed = {}
for path in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        runpy.run_path(path, run_name="__main__")
    printed[path.rpartition("/")[2]] = out.getvalue()
print(json.dumps(printed))
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each script prints, all run by one process."""
    scripts = [str(ROOT / "examples" / name) for name in sorted(PRINTED)]
    done = run_python(ALL, *scripts, variables={"TMPDIR": str(tmp_path_factory.mktemp("examples"))})
    texts: dict[str, str] = json.loads(done.stdout)
    return texts


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_example_prints_its_answer(name: str, printed: dict[str, str]) -> None:
    assert PRINTED[name] in printed[name]
