"""The limits of ``scripts/prose.py`` on the language of modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import prose


def _count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> prose.Prose:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    module = tmp_path / "m.py"
    module.write_text(source)
    counted = prose.Prose()
    counted.add_file(module)
    return counted


def test_vague_names_of_arguments_and_variables_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = _count(
        tmp_path, monkeypatch, "def read(at, rows):\n    for one in rows:\n        found, _known = one, at\n    return found\n"
    )
    assert (counted.bindings, counted.vague) == (5, 4)
    assert counted.places == [f"m.py:{line}: vague name '{name}'" for line, name in ((1, "at"), (2, "one"), (3, "found"), (3, "_known"))]
    assert counted.figures()["vague"] == 800


def test_words_that_contain_a_vague_one_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = _count(tmp_path, monkeypatch, "found_rows = 1\nrows.found = 2\nprint(found_rows, end='')\n")
    assert (counted.bindings, counted.vague) == (1, 0)


def test_a_package_over_the_limit_of_vague_names_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "PACKAGES", ("p",))
    monkeypatch.setattr(prose, "DOCS", ())
    monkeypatch.setattr("sys.argv", ["prose.py"])
    (tmp_path / "p").mkdir()
    rows = [f"row_{number} = {number}\n" for number in range(199)]
    (tmp_path / "p/m.py").write_text("".join([*rows, "found = 199\n"]))
    assert prose.main() == 0, "five of a thousand are allowed"
    (tmp_path / "p/m.py").write_text("".join([*rows[20:], "found = 199\n"]))
    assert prose.main() == 1
    assert "m.py:180: vague name 'found'" in capsys.readouterr().out
