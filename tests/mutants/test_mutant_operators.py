"""The mutator changes one thing at a time, names it by a stable key, and its runs tell noticed mutants from survivors."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.accepted import PATH, Accepted, entry_of
from tests.mutants.coverage_map import CoverageMap, Recording, module_of
from tests.mutants.operators import mutations
from tests.mutants.recorder import ROOT
from tests.mutants.runner import FIRST_SECONDS, function_lines, plan

MODULE = "lsm/some.py"


def changes(source: str) -> set[tuple[str, str]]:
    """The changed line of each valid mutant, with its operator."""
    found = set()
    for mutation in mutations(MODULE, source):
        changed = mutation.apply(source)
        if mutation.is_valid(source):
            lines = [new for old, new in zip(source.splitlines(), changed.splitlines(), strict=True) if old != new]
            found.add((mutation.operator, lines[0].strip()))
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x = a < b", {("comparison", "x = a <= b")}),
        ("x = a not in b", {("comparison", "x = a in b")}),
        ("x = 0 < a != b", {("comparison", "x = 0 <= a != b"), ("comparison", "x = 0 < a == b"), ("integer", "x = 1 < a != b")}),
        ("x = a and b", {("and or", "x = a or b"), ("drop operand", "x = b")}),
        ("x = not a", {("not", "x = bool(a)")}),
        ("x = a // b", {("arithmetic", "x = a * b")}),
        ("x -= y", {("arithmetic", "x +=y"), ("arithmetic", "x += y"), ("drop statement", "pass")}),
        ("x = 2", {("integer", "x = 3"), ("integer", "x = 1")}),
        ("x = True", {("boolean", "x = False")}),
        (
            "x = a[1:b]",
            {
                ("slice", "x = a[:b]"),
                ("slice", "x = a[1:]"),
                ("slice", "x = a[1:(b) + 1]"),
                ("integer", "x = a[2:b]"),
                ("integer", "x = a[0:b]"),
            },
        ),
        ("f(a, b)", {("swap arguments", "f(b, a)"), ("drop statement", "pass")}),
        ("x = f(a, key=b)", {("drop keyword", "x = f(a, )")}),
        ("x = min(a)", {("other function", "x = max(a)")}),
        ("raise ValueError(a < 1)", {("drop raise", "pass")}),
        ("x = a if b else c", {("condition", "x = a if not (b) else c")}),
        ("x = 'é', a < b", {("comparison", "x = 'é', a <= b")}),
    ],
)
def test_every_operator_changes_one_place(line: str, expected: set[tuple[str, str]]) -> None:
    assert changes(line) <= expected
    assert {operator for operator, _ in changes(line)} == {operator for operator, _ in expected}


@pytest.mark.parametrize(
    "text",
    [
        "x: int | None = y",
        "__all__ = ['a', 'b']",
        "import a, b",
        "assert a < 1",
        "_LOG.info('x', 1)",
        "x = f'{a + 1}'",
        '"""Text."""',
        "zip(a, strict=True)",
    ],
)
def test_what_changes_no_behaviour_is_left_alone(text: str) -> None:
    assert changes(text) <= {("drop statement", "pass")}


@pytest.mark.parametrize(
    ("annotation", "values"),
    [("bool", {"True", "False"}), ("int | None", {"None", "0"}), ("list[int]", {"[]"}), ("str", {'""'}), ("Table", set())],
)
def test_returned_values_keep_to_the_annotation(annotation: str, values: set[str]) -> None:
    source = f"def f() -> {annotation}:\n    return a\n"
    assert {mutation.after for mutation in mutations(MODULE, source) if mutation.operator == "return"} == values


def test_all_mutants_of_a_module_parse_and_differ() -> None:
    source = (ROOT / "lsm/keys/order_by.py").read_text()
    found = [mutation for mutation in mutations(MODULE, source) if mutation.is_valid(source)]
    assert len(found) > 50
    assert len({mutation.apply(source) for mutation in found}) == len(found)
    assert all(ast.parse(mutation.apply(source)) for mutation in found)


def test_keys_are_unique_and_do_not_depend_on_line_numbers() -> None:
    source = "def f(a):\n    if a < 1:\n        return a < 1\n\ndef g(a):\n    return a < 1\n"
    keys = [mutation.key for mutation in mutations(MODULE, source)]
    assert len(set(keys)) == len(keys)
    assert [mutation.key for mutation in mutations(MODULE, "# moved\n\n" + source)] == keys


def test_a_mutation_of_another_text_is_refused() -> None:
    mutation = mutations(MODULE, "x = a < b")[0]
    with pytest.raises(ValueError, match="has changed"):
        mutation.apply("y = 1; x = a < b")


def test_nearest_test_modules_run_first_within_the_budget() -> None:
    seconds = {
        "tests/lsm/keys/test_a.py::one": 3.0,
        "tests/lsm/keys/test_a.py::two": 1.0,
        "tests/lsm/merge/test_b.py::one": FIRST_SECONDS,
        "tests/manifest/test_c.py::one": 0.5,
        "tests/manifest/test_c.py::slow": 90.0,
    }
    made = plan("lsm/keys/sort.py", seconds, seconds, 20)
    assert made.rounds == [
        ["tests/lsm/keys/test_a.py::two", "tests/lsm/keys/test_a.py::one"],
        ["tests/lsm/merge/test_b.py::one", "tests/manifest/test_c.py::one"],
    ]
    assert made.left_out == 1


def test_the_examples_in_the_module_itself_run_before_all_tests() -> None:
    seconds = {"tests/lsm/keys/test_a.py::one": 1.0, "lsm/keys/sort.py": 1.0}
    assert plan("lsm/keys/sort.py", seconds, seconds, 20).rounds == [["lsm/keys/sort.py", "tests/lsm/keys/test_a.py::one"]]


def test_half_of_the_budget_is_for_test_modules_far_away() -> None:
    near = {f"tests/lsm/keys/test_a.py::{number}": 1.0 for number in range(20)}
    far = {f"tests/manifest/test_{module}.py::{number}": 1.0 for module in "bc" for number in range(20)}
    made = plan("lsm/keys/sort.py", {**near, **far}, {**near, **far}, 20)
    counts = Counter(module_of(test) for tests in made.rounds for test in tests)
    assert counts.total() == 20
    assert counts["tests/lsm/keys/test_a.py"] >= 10
    assert min(counts["tests/manifest/test_b.py"], counts["tests/manifest/test_c.py"]) >= 4


def test_lines_of_a_function_are_found_by_its_qualified_name() -> None:
    source = "class A:\n    def f(self):\n        pass\n\ndef f():\n    pass\n"
    assert function_lines(source, "A.f") == range(2, 4)
    assert function_lines(source, "f") == range(5, 7)
    assert function_lines(source, "") == function_lines(source, "A") == range(1, 8)


def test_accepted_mutants_have_a_reason(tmp_path: Path) -> None:
    Accepted.read(PATH)
    mutation = mutations(MODULE, "x = a < b")[0]
    path = tmp_path / "accepted.toml"
    path.write_text(entry_of(mutation))
    with pytest.raises(ValueError, match="needs a kind"):
        Accepted.read(path)
    path.write_text(entry_of(mutation).replace('kind = ""', 'kind = "speed"').replace('reason = ""', 'reason = "a cache"'))
    assert Accepted.read(path).kind(mutation.key) == "speed"
    assert Accepted.read(path).kind("another") is None


class _Lines(Recording):
    """A recording without a database: the contexts of each line by file."""

    contexts: dict[str, dict[int, list[str]]]

    def lines(self, file: str) -> dict[int, list[str]]:
        return self.contexts.get(file, {})


def recording(modules: dict[str, str], contexts: dict[int, list[str]], digest: str = "1") -> _Lines:
    tests = {context for found in contexts.values() for context in found if not context.endswith("::shared")}
    made = _Lines(Path(), {**modules, MODULE: digest}, dict.fromkeys(tests, 1.0))
    made.contexts = {MODULE: contexts}
    return made


def test_the_newest_recording_of_a_test_module_counts() -> None:
    old = recording({"tests/test_a.py": "1", "tests/test_b.py": "1"}, {3: ["tests/test_a.py::gone", "tests/test_b.py::one"]})
    new = recording({"tests/test_a.py": "2"}, {3: ["tests/test_a.py::here"]})
    assert CoverageMap([old, new]).tests_by_line(MODULE) == {3: {"tests/test_a.py::here", "tests/test_b.py::one"}}


def test_lines_of_shared_fixtures_count_for_all_tests_of_the_module() -> None:
    made = recording({"tests/test_a.py": "1"}, {1: ["tests/test_a.py::shared"], 2: ["tests/test_a.py::one", "tests/test_a.py::two"]})
    assert CoverageMap([made]).tests_by_line(MODULE)[1] == {"tests/test_a.py::one", "tests/test_a.py::two"}


def test_lines_that_run_on_import_count_as_the_whole_function() -> None:
    made = recording({"tests/test_a.py": "1"}, {1: [""], 2: ["tests/test_a.py::one"]})
    mutation = next(found for found in mutations(MODULE, "def f(a=1):\n    return a\n") if found.operator == "integer")
    assert CoverageMap([made]).tests_of(mutation, range(1, 3)) == {"tests/test_a.py::one"}


def test_test_modules_are_recorded_again_when_they_or_their_lines_change() -> None:
    made = recording({"tests/test_a.py": "1", "tests/test_b.py": "1"}, {1: ["tests/test_a.py::one"]})
    tests = ["tests/test_a.py", "tests/test_b.py", "tests/test_c.py"]
    digests = {**dict.fromkeys(tests, "1"), MODULE: "1"}
    assert CoverageMap([made]).outdated(tests, digests) == ["tests/test_c.py"]
    assert CoverageMap([made]).outdated(tests, {**digests, MODULE: "2"}) == ["tests/test_a.py", "tests/test_c.py"]
    assert CoverageMap([made]).outdated(tests, {**digests, "tests/test_b.py": "2"}) == ["tests/test_b.py", "tests/test_c.py"]
