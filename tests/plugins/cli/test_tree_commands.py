"""The commands that show a table's tree."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon.plugins.cli import main


@pytest.fixture
def path(create) -> str:
    table = create()
    table.write(pa.table({"id": [1, 2], "city": ["Oslo", "Lima"], "n": pa.array([1, 2], pa.int32())}))
    return table.path


def test_report_writes_a_page_and_says_where(path, capsys, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", path, "-o", str(tmp_path / "r.html"), "-f", "id = 9"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.strip() == str((tmp_path / "r.html").resolve())
    assert "0 of 1 file<" in (tmp_path / "r.html").read_text()


def test_report_as_json(path, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["report", path, "--json"])
    assert json.loads(capsys.readouterr().out)["buckets"][0]["rows"] == 2


@pytest.mark.slow
def test_ui_prints_its_address_serves_and_ends(path) -> None:
    command = [sys.executable, "-m", "pyspark_paimon", "ui", path, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        with urllib.request.urlopen(address) as page:
            assert 'id="filter"' in page.read().decode()
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 0
