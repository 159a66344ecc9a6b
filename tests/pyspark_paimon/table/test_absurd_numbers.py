"""Numbers of metadata files that no table has: a right answer or a ``PaimonError``, never another error."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paimon_base.errors import PaimonError
from pyspark_paimon import Table
from tests.build import keyed
from tests.examples import some

pytestmark = pytest.mark.local_files
ABSURD = (2**31, 2**53, 2**62, 2**63, 2**70, 10**300, -1, -(2**63), -(2**70), 0, 1.5, 1e300)
HINTS = ("9" * 5000, "9" * 19, "-1", "1e5", "18446744073709551616", "\u0663", "")
READS: dict[str, Callable[[Table], Any]] = {
    "count": lambda table: table.count(),
    "rows": lambda table: table.scan("n > 1").to_arrow(),
    "snapshots": lambda table: table.snapshots().to_pylist(),
    "tags": lambda table: table.tags().to_pylist(),
    "branches": lambda table: table.branches().to_pylist(),
    "consumers": lambda table: table.consumers().to_pylist(),
    "system table": lambda table: Table.open(f"{table.path}$snapshots").scan().to_arrow().to_pylist(),
    "tag": lambda table: table.scan(tag="a").count(),
    "time": lambda table: table.scan(timestamp=2**41).count(),
    "explain": lambda table: str(table.scan("id = 1").explain()),
    "text": lambda table: (str(table), repr(table.table_schema)),
    "check": lambda table: table.fsck(),
}
WRITES: dict[str, Callable[[Table], Any]] = {
    "write": lambda table: table.write([{"id": 9, "n": 9}]),
    "follow": lambda table: list(table.follow(consumer="c")),
    "expire": lambda table: table.expire_snapshots(retain_min=1, retain_max=1),
    "roll back": lambda table: table.rollback_to(1),
    "repair": lambda table: table.fsck(repair=True),
    "remove orphans": lambda table: table.remove_orphan_files(),
}


def _numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every whole number of a JSON value."""
    if type(value) is int:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _numbers(inner, (*path, key))


def _forms(text: str, rng: random.Random) -> Iterator[str]:
    """Yield the file with each number replaced."""
    if text.isdigit():
        yield from HINTS
        return
    for path in _numbers(json.loads(text)):
        for number in rng.sample(ABSURD, 4):
            changed = json.loads(text)
            parent = changed
            for key in path[:-1]:
                parent = parent[key]
            parent[path[-1]] = number
            changed.pop("crc32", None)  # as engines write it
            yield json.dumps(changed)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("absurd") / "whole"
    table = keyed(path, "id BIGINT, n INT")
    for key in range(3):
        table.write([{"id": key, "n": key}])
    table.create_tag("a", 2)
    table.reset_consumer("c", 2)
    table.analyze()
    table.create_branch("b", "a")
    return path


@pytest.mark.parametrize("directory", ["snapshot", "tag", "consumer", "schema", "statistics"])
def test_absurd_numbers_give_a_right_answer_or_a_typed_error(tmp_path: Path, whole: Path, directory: str) -> None:
    rng = random.Random(directory)
    cases = [(file, form) for file in sorted((whole / directory).iterdir()) for form in _forms(file.read_text(), rng)]
    for file, form in rng.sample(cases, min(len(cases), some(6))):
        calls = [*READS.items(), rng.choice(list(WRITES.items()))]
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        shutil.copytree(whole, tmp_path / "t")
        (tmp_path / "t" / directory / file.name).write_text(form)
        for name, call in calls:
            try:
                call(Table.open(tmp_path / "t"))
            except PaimonError:
                continue
            except Exception as error:  # noqa: BLE001  # the kind of the error is what is tested
                pytest.fail(f"{name} of {file.name} as {form[:300]}: {type(error).__name__}: {error}")
